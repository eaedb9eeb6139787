"""Accumulators: gradients summed until enough have come, the heart of synchronous replicas.

Owns the dense and the sparse accumulator, their rule of stale gradients, and the wait for `num_required` of them,
which holds no thread (`wait_queue.py`). Does not know ops or nodes: `kernels/data_flow.py` binds them.

A gradient computed at `local_step` is dropped when the accumulator's global step has moved past it. Taking a gradient
moves that step on by one. Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/ConditionalAccumulator
"""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

import numpy as np

from dtf.run.kernels.gathering import scatter_rows
from dtf.run.lib.growth import Growth
from dtf.run.state.change_log import NOT_KEPT, ChangeLog, Entries, EntryKey, Parts
from dtf.run.state.wait_queue import Done, Operation, Outputs, WaitQueue, flush
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

__all__ = ["Accumulator", "DenseSum", "SparseSum", "Sum"]

_Gradient = TypeVar("_Gradient")


class Sum(Protocol[_Gradient]):
    """What is being added up.

    Attributes:
      log: where changes are reported.
    """

    log: ChangeLog

    def add(self, gradient: _Gradient) -> None:
        """Adds one gradient. Raises InvalidArgumentError when its shape does not fit."""

    def entries(self) -> dict[EntryKey, Parts]:
        """What has been added."""

    def fill(self, entries: Entries) -> None:
        """Gives a new sum this state."""

    def take(self, mean: bool, count: int) -> _Gradient:
        """The sum, or the mean of `count` gradients, and starts again from nothing."""


class Accumulator(Generic[_Gradient]):
    """Counts gradients in and hands out their mean (or sum) once enough are in.

    Attributes:
      name: its name in its container.
      dtype, shape: of one gradient.
      num_accumulated: how many are in now.
      global_step: gradients of older steps are dropped.

    The lock guards all of it; no callback runs under it.
    """

    def __init__(
        self, kind: str, name: str, dtype: DType, shape: TensorShape, reduction_type: str, total: Sum[_Gradient]
    ) -> None:
        if reduction_type not in ("MEAN", "SUM"):
            raise errors.InvalidArgumentError.of(f"reduction_type must be MEAN or SUM, got {reduction_type!r}")
        self.kind = kind
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.num_accumulated = 0
        self.global_step = 0
        self._mean = reduction_type == "MEAN"
        self._total = total
        self._lock = threading.RLock()
        self._takers = WaitQueue(self._lock)

    def __repr__(self) -> str:
        return f"Accumulator({self.kind} {self.name!r}, {self.num_accumulated} at step {self.global_step})"

    def read(self) -> np.ndarray:
        """The value of the string handle: container and name."""
        return np.array([b"", self.name.encode()], object)

    def check_same(self, kind: str, dtype: DType) -> None:
        """Raises InvalidArgumentError when a node that shares this accumulator by name describes another one.

        The shape may differ: the accumulator keeps that of the node that made it.
        """
        if (kind, dtype) != (self.kind, self.dtype):
            raise errors.InvalidArgumentError.of(
                f"Shared accumulator '{self.name}' is a {self.kind} of {self.dtype.name}, requested was a {kind} of "
                f"{dtype.name}.",
            )

    def apply(self, local_step: int, gradient: _Gradient) -> None:
        """Adds a gradient computed at `local_step`, or drops it when it is stale."""
        with self._lock:
            if local_step < self.global_step:
                return
            self._total.add(gradient)
            self.num_accumulated += 1
            self._log_counts()
        flush(self._lock, self._takers)

    def take(self, num_required: int, cancellation: CancellationManager | None, done: Done[Outputs]) -> None:
        """done(gradient) as soon as `num_required` are in; the global step then moves on by one."""
        if num_required < 1:
            raise errors.InvalidArgumentError.of(f"Argument num_required must be positive, but was {num_required}")

        def attempt(operation: Operation) -> bool:
            if self.num_accumulated < num_required:
                return False
            operation.value = self._total.take(self._mean, self.num_accumulated)
            self.num_accumulated = 0
            self.global_step += 1
            self._log_counts()
            return True

        operation = Operation(attempt, done, cancellation, "TakeGrad operation was cancelled")
        if self._takers.join(operation):
            flush(self._lock, self._takers)
        else:
            operation.report()

    def set_global_step(self, new_global_step: int) -> None:
        """Moves the step that gradients are measured against."""
        with self._lock:
            if new_global_step < self.global_step:
                logging.getLogger("dtf").warning(
                    "accumulator %s: the global step goes back from %d to %d",
                    self.name,
                    self.global_step,
                    new_global_step,
                )
            self.global_step = new_global_step
            self._log_counts()

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`."""
        self._total.log = log
        self._takers.guard = guard

    def entries(self) -> Entries:
        """See `change_log.Keepable`."""
        with self._lock:
            return {_COUNTS: [self._counts()], **self._total.entries()}

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`."""
        with self._lock:
            if _COUNTS in entries:
                self.num_accumulated, self.global_step = (int(each) for each in entries[_COUNTS][0])
            self._total.fill(entries)

    def _log_counts(self) -> None:
        if self._total.log.is_kept:
            self._total.log.put(_COUNTS, [self._counts()])

    def _counts(self) -> np.ndarray:
        return np.array([self.num_accumulated, self.global_step], np.int64)

    def close(self) -> None:
        """The container that held it is gone: everyone who waits gets a CancelledError."""
        with self._lock:
            ended = self._takers.drain(
                lambda _: errors.CancelledError.of(f"{self.kind} '{self.name}' was removed")
            )
        for operation in ended:
            operation.report()


_COUNTS, _SUM = "counts", "sum"


class DenseSum:
    """Sums arrays of one shape."""

    def __init__(self, shape: TensorShape) -> None:
        self.log: ChangeLog = NOT_KEPT
        self._shape = shape
        self._dims = tuple(shape.as_list()) if shape.is_fully_defined() else None
        self._sum: np.ndarray | None = None
        self._is_own = False  # the first gradient's memory belongs to its producer

    def add(self, gradient: np.ndarray) -> None:
        if np.shape(gradient) != (self._dims if self._sum is None else np.shape(self._sum)):
            self._check(gradient)
        if self._sum is None:
            self._sum, self._is_own = gradient, False
        elif self._is_own:
            self._sum += gradient
        else:
            self._sum, self._is_own = np.asarray(self._sum + gradient), True
        self.log.put(_SUM, [self._sum])

    def entries(self) -> dict[EntryKey, Parts]:
        return {} if self._sum is None else {_SUM: [self._sum]}

    def fill(self, entries: Entries) -> None:
        if _SUM in entries:
            self._sum, self._is_own = np.asarray(entries[_SUM][0]), False

    def _check(self, gradient: np.ndarray) -> None:
        expected = self._shape if self._sum is None else TensorShape(list(np.shape(self._sum)))
        if not expected.is_compatible_with(TensorShape(list(np.shape(gradient)))):
            raise _invalid(
                f"Shape mismatch: expected {_text(expected)}, got {_text(TensorShape(list(np.shape(gradient))))}"
            )

    def take(self, mean: bool, count: int | np.ndarray) -> np.ndarray:
        assert self._sum is not None
        total, self._sum = self._sum, None
        self.log.remove(_SUM)
        if mean and self._is_own and total.dtype.kind in "fc":
            mean_of: np.ndarray = np.divide(total, np.asarray(count, total.dtype), out=total)
            return mean_of
        return _divided(total, count) if mean else total


class SparseSum:
    """Sums rows by index; a row's mean counts only the gradients that had that row."""

    def __init__(self, shape: TensorShape) -> None:
        """shape: of the dense tensor; a scalar's shape, which has no rows, says nothing, as an unknown one."""
        self.log: ChangeLog = NOT_KEPT
        self._shape = TensorShape(None) if shape.ndims == 0 else shape
        self._gradients: list[tuple[np.ndarray, np.ndarray]] = []
        self._growth = Growth("a sparse accumulator")
        self._row_shape: tuple[int, ...] | None = None

    def add(self, gradient: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        """gradient: indices [n], values [n, ...], dense shape (empty when unknown)."""
        indices, values, dense_shape = gradient
        self._check(indices, values, dense_shape)
        self._row_shape = values.shape[1:]
        distinct, inverse = np.unique(indices, return_inverse=True)
        sums = np.zeros((len(distinct), *self._row_shape), values.dtype)
        scatter_rows(np.add, sums, inverse, values)
        self._growth.add((distinct, sums), len(self._gradients))
        added = distinct.astype(np.int64), sums
        self.log.put(len(self._gradients), added)
        self._gradients.append(added)

    def entries(self) -> dict[EntryKey, Parts]:
        return dict(enumerate(self._gradients))

    def fill(self, entries: Entries) -> None:
        for key, parts in entries.items():
            if isinstance(key, int):
                rows, sums = (np.asarray(part) for part in parts)
                self._growth.add((rows, sums), len(self._gradients))
                self._gradients.append((rows, sums))
                self._row_shape = sums.shape[1:]

    def take(self, mean: bool, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        gradients, self._gradients, self._row_shape = self._gradients, [], None
        self.log.clear()  # the counts follow
        indices, inverse = np.unique(np.concatenate([rows for rows, _ in gradients]), return_inverse=True)
        parts = np.concatenate([sums for _, sums in gradients])
        values = np.zeros((len(indices), *parts.shape[1:]), parts.dtype)
        scatter_rows(np.add, values, inverse, parts)
        if mean:
            times = np.bincount(inverse, minlength=len(indices)).reshape(-1, *[1] * (values.ndim - 1))
            values = _divided(values, times)
        dims = self._shape.as_list() if self._shape.ndims is not None else [None]
        first = -1 if dims[0] is None else dims[0]
        return indices, values, np.array([first, *parts.shape[1:]], np.int64)

    def _check(self, indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray) -> None:
        if indices.ndim != 1:
            raise _invalid(f"Input indices should be vector but received shape: {list(indices.shape)}")
        if values.ndim < 1 or len(values) != len(indices):
            raise _invalid(
                f"Number of indices and values do not match: {len(indices)} indices, values of shape "
                f"{list(values.shape)}"
            )
        if dense_shape.size and self._shape.ndims is not None:
            given = TensorShape([None if dim < 0 else dim for dim in dense_shape.tolist()])
            if not self._shape.is_compatible_with(given):
                raise _invalid(f"Shape mismatch: expected {_text(self._shape)}, got {_text(given)}")
        row = TensorShape(list(values.shape[1:]))
        expected = self._row_shape
        if expected is not None and tuple(expected) != values.shape[1:]:
            raise _invalid(
                f"Shape mismatch: expected values shape [?,{','.join(map(str, expected))}], got {list(values.shape)}"
            )
        if self._shape.ndims is not None and not TensorShape(self._shape.as_list()[1:]).is_compatible_with(row):
            raise _invalid(f"Shape mismatch: expected {_text(self._shape)}, got values of shape {list(values.shape)}")


def _invalid(message: str) -> errors.OpError:
    return errors.InvalidArgumentError.of(message)


def _divided(total: np.ndarray, count: int | np.ndarray) -> np.ndarray:
    if np.issubdtype(total.dtype, np.integer):
        return np.asarray(total // count, total.dtype)
    return np.asarray(total / np.asarray(count, total.dtype), total.dtype)


def _text(shape: TensorShape) -> str:
    if shape.ndims is None:
        return "<unknown>"
    return "[" + ",".join("?" if dim is None else str(dim) for dim in shape.as_list()) + "]"
