"""`tf.test.TestCase`: absl's, with a fresh graph for each test, sessions, and comparisons of arrays.

Arrays may be tensors too: they are evaluated in the test's session. Structures (lists, tuples, dictionaries) are
compared part by part.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/TestCase
"""

from __future__ import annotations

import atexit
import contextlib
import random
import re
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl.testing import absltest

from dtf.build.default_graph import get_default_graph, get_default_session, reset_default_graph
from dtf.build.graph import GRAPH_PRODUCER_VERSION, Graph
from dtf.build.ops.random import DEFAULT_GRAPH_SEED
from dtf.session import Session
from dtf.test.array_assertions import ArrayAssertions
from dtf.test.checked_thread import CheckedThread
from dtf.test.gpus import gpu_device_name
from dtf.test.messages import assert_same_message
from dtf.wire import errors
from dtf.wire.device import canonical_name
from dtf.wire.pb import config_pb2

__all__ = ["TestCase", "get_temp_dir", "main"]


class TestCase(ArrayAssertions, absltest.TestCase):
    """Tests of graphs. Each test begins with an empty default graph and with the same seeds."""

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803
        super().__init__(methodName)
        self._cached_session: Session | None = None
        self._cached_arguments: tuple[Any, ...] = ()
        self._threads: list[CheckedThread] = []
        self._tempdir: str | None = None

    def setUp(self) -> None:
        super().setUp()
        self._ClearCachedSession()
        random.seed(DEFAULT_GRAPH_SEED)
        np.random.seed(DEFAULT_GRAPH_SEED)
        reset_default_graph()
        get_default_graph().seed = DEFAULT_GRAPH_SEED

    def tearDown(self) -> None:
        for thread in self._threads:
            thread.check_was_joined()
        self._ClearCachedSession()
        super().tearDown()

    def get_temp_dir(self) -> str:
        """A folder of this test, which is removed after it."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
            self.addCleanup(shutil.rmtree, self._tempdir, ignore_errors=True)
        return self._tempdir

    # Sessions

    @contextlib.contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A new session, which is the default one of the block and is closed after it.

        Args:
          graph: the graph of the session; the default graph by default.
          config: a ConfigProto; by default with soft placement and without graph optimizations.
          use_gpu: whether the block's ops may be placed anywhere; otherwise they are made for the CPU.
          force_gpu: whether the block's ops are made for the first GPU.
        """
        with Session(graph=graph, config=_config(config, force_gpu)) as session, _device(session, use_gpu, force_gpu):
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """One session for all blocks of the test: variables keep their values from one block to the next.

        Raises:
          ValueError: the session was opened with another graph, config or force_gpu.
        """
        session = self._get_cached_session(graph, config, force_gpu, crash_if_inconsistent_args=True)
        with session.graph.as_default(), session.as_default(), _device(session, use_gpu, force_gpu):
            yield session

    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Any:
        """The old form: `cached_session`, whose other arguments may differ, or for a given graph `session`."""
        if self._testMethodName == "test_session":
            self.skipTest("This method is not a test, despite its name.")
        if graph is not None:
            return self.session(graph, config, use_gpu, force_gpu)
        return self._in_cached_session(config, use_gpu, force_gpu)

    @contextlib.contextmanager
    def _in_cached_session(self, config: Any, use_gpu: bool, force_gpu: bool) -> Iterator[Session]:
        session = self._get_cached_session(None, config, force_gpu, crash_if_inconsistent_args=False)
        with session.graph.as_default(), session.as_default(), _device(session, use_gpu, force_gpu):
            yield session

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or else in the test's session."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session(*self._cached_arguments) as cached:
            return cached.run(tensors)

    def _ClearCachedSession(self) -> None:  # noqa: N802
        """Closes the session of the test."""
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None
            self._cached_arguments = ()

    def _get_cached_session(
        self, graph: Graph | None, config: Any, force_gpu: bool, crash_if_inconsistent_args: bool
    ) -> Session:
        if self._cached_session is None:
            self._cached_session = Session(graph=graph, config=_config(config, force_gpu))
            self._cached_arguments = (graph, config, False, force_gpu)
        elif crash_if_inconsistent_args:
            first_graph, first_config, _, first_force_gpu = self._cached_arguments
            for word, given, first in (("graph", graph, first_graph), ("config", config, first_config)):
                if given is not first:
                    raise ValueError(
                        f"The session of this test was opened with another {word}: the {word} used to get the cached "
                        f"session is different than the one that was used to create it. Use self.session()."
                    )
            if force_gpu != first_force_gpu:
                raise ValueError("The session of this test was opened with another force_gpu. Use self.session().")
        return self._cached_session

    # Messages, devices, errors

    def assertProtoEquals(
        self,
        expected_message_maybe_ascii: Any,
        validate_message: Any,
        msg: str | None = None,
        relative_tolerance: float | None = None,
    ) -> None:
        """The message is the other one, which may be given as text. Floats are compared to six decimals.

        Raises:
          NotImplementedError: a tolerance is given.
        """
        if relative_tolerance is not None:
            raise NotImplementedError("assertProtoEquals compares to six decimals: leave out relative_tolerance.")
        assert_same_message(self, expected_message_maybe_ascii, validate_message, msg)

    def assertProtoEqualsVersion(
        self,
        expected: str,
        actual: Any,
        producer: int = GRAPH_PRODUCER_VERSION,
        min_consumer: int = 0,
        msg: str | None = None,
    ) -> None:
        """Asserts that the GraphDef equals the text, with these versions."""
        versions = f"versions {{ producer: {producer} min_consumer: {min_consumer} }};\n"
        assert_same_message(self, versions + expected, actual, msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Both names mean one device."""
        first, second = canonical_name(device1), canonical_name(device2)
        self.assertEqual(first, second, f"Devices {first} and {second} are not equal. {msg or ''}")

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Asserts that the block raises an exception of the type, whose message (with the name of its op) matches the
        pattern or predicate."""
        try:
            yield
        except exception_type as error:
            if callable(expected_err_re_or_predicate):
                matches = expected_err_re_or_predicate(error)
            else:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                op = getattr(error, "op", None)
                while op is not None:
                    text += f"\nCaused by: {op.name}"
                    op = getattr(op, "_original_op", None)
                matches = re.search(expected_err_re_or_predicate, text)
            if not matches:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
        else:
            self.fail(f"{exception_type} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """`assertRaisesWithPredicateMatch` for tf.errors.OpError."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    @contextlib.contextmanager
    def assertRaisesIncompatibleShapesError(self, exception_type: Any = errors.InvalidArgumentError) -> Iterator[None]:
        """The block raises an error of shapes that cannot be broadcast together."""
        with self.assertRaisesRegex(exception_type, r"(?i)incompatible shapes|dimensions must be equal|broadcast"):
            yield

    def assertItemsEqual(self, first: Any, second: Any, msg: str | None = None) -> None:
        """Asserts that both have the same elements, in any order."""
        self.assertCountEqual(first, second, msg)

    # Threads

    def checkedThread(
        self, target: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> CheckedThread:
        """A thread that is to be started, and joined before the test ends: `join` raises what it raised."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread


def _config(config: Any, force_gpu: bool) -> Any:
    """The ConfigProto of a test's session: nothing is placed in vain, computed beforehand or rewritten."""
    result = config_pb2.ConfigProto()
    if config is None:
        result.allow_soft_placement = not force_gpu
    else:
        result.CopyFrom(config)
    result.graph_options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    return result


@contextlib.contextmanager
def _device(session: Session, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    """A block whose ops are made for the CPU, for the first GPU, or for no device in particular."""
    if use_gpu and not force_gpu:
        yield
        return
    with session.graph.device((gpu_device_name() or "/device:GPU:0") if force_gpu else "/device:CPU:0"):
        yield


def get_temp_dir() -> str:
    """A folder for the tests of this process, which is removed after them."""
    global _temp_dir
    if _temp_dir is None:
        _temp_dir = tempfile.mkdtemp(prefix="dtf_test_")
        atexit.register(shutil.rmtree, _temp_dir, ignore_errors=True)
    return _temp_dir


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the program's script, and exits."""
    unittest.main(module="__main__", argv=list(sys.argv if argv is None else argv))


_temp_dir: str | None = None
