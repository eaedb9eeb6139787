"""tf.contrib.summary: the summary functions of eager programs that graphs use; nothing is recorded automatically."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dtf as tf

__all__ = [
    "always_record_summaries", "create_file_writer", "histogram", "image", "never_record_summaries",
    "record_summaries_every_n_global_steps", "scalar",
]  # fmt: skip


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """`tf.summary.scalar`: it is written by hooks or by `merge_all`."""
    return tf.summary.scalar(name, tensor, family=family)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """`tf.summary.histogram`: it is written by hooks or by `merge_all`."""
    return tf.summary.histogram(name, tensor, family=family)


def image(
    name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: str | None = None, step: Any = None
) -> Any:
    """`tf.summary.image`: it is written by hooks or by `merge_all`."""
    return tf.summary.image(name, tensor, max_images, family=family)


class _Writer:
    """A folder; the block that it opens changes nothing."""

    def __init__(self, logdir: str | None) -> None:
        self.logdir = logdir

    @contextlib.contextmanager
    def as_default(self) -> Iterator[_Writer]:
        """A block that changes nothing."""
        yield self

    def set_as_default(self) -> None:
        """Does nothing."""


def create_file_writer(logdir: str | None, *args: Any, **kwargs: Any) -> _Writer:
    """A placeholder for a writer: hooks and FileWriters write the summaries."""
    return _Writer(logdir)


@contextlib.contextmanager
def always_record_summaries() -> Iterator[None]:
    """A block that changes nothing."""
    yield


@contextlib.contextmanager
def never_record_summaries() -> Iterator[None]:
    """A block that changes nothing."""
    yield


@contextlib.contextmanager
def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Iterator[None]:
    """A block that changes nothing: SummarySaverHook says how often."""
    yield
