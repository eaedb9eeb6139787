"""tensorflow.python.platform.test and googletest: the names of tests beyond `tf.test`."""

from __future__ import annotations

import contextlib
import os
import sys
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

from absl.testing import parameterized

__all__ = [
    "Benchmark", "StatefulSessionAvailable", "StubOutForTesting", "disable_with_predicate", "is_cpu_target_available",
    "mock", "parameterized", "test_src_dir_path",
]  # fmt: skip


class Benchmark:
    """A base class for benchmarks: a test program that contains them runs only its tests."""

    def run_op_benchmark(self, *_: Any, **__: Any) -> dict[str, float]:
        """Does nothing; no figures."""
        return {}

    def report_benchmark(self, *_: Any, **__: Any) -> None:
        """Does nothing."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in the default session."""
        from dtf.build.default_graph import get_default_session

        return get_default_session().run(tensors)


class StubOutForTesting:
    """Attributes that are replaced until the end of a test."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *_: object) -> None:
        self.CleanUp()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:  # noqa: N802
        """Replaces an attribute."""
        self._replaced.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    SmartSet = Set

    def UnsetAll(self) -> None:  # noqa: N802
        """Puts all attributes back."""
        while self._replaced:
            parent, name, old = self._replaced.pop()
            setattr(parent, name, old)

    CleanUp = SmartUnsetAll = UnsetAll


def StatefulSessionAvailable() -> bool:  # noqa: N802
    """False."""
    return False


def is_cpu_target_available(target: str) -> bool:
    """Whether kernels for this processor can be compiled: they cannot."""
    return False


def test_src_dir_path(relative_path: str) -> str:
    """The path of a file next to the test program's folders."""
    return os.path.join(os.environ.get("TEST_SRCDIR", os.path.dirname(os.path.abspath(sys.argv[0]))), relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]


@contextlib.contextmanager
def disable_with_predicate(pred: Any, skip_message: str) -> Iterator[None]:
    """A block that is skipped where the predicate holds."""
    if pred():
        raise unittest.SkipTest(skip_message)
    yield
