"""RaggedTensorValue: the arrays of a RaggedTensor."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["RaggedTensorValue"]


class RaggedTensorValue:
    """The arrays of a RaggedTensor: what `session.run` returns, and what is fed.

    Args:
      values: an array, or a RaggedTensorValue for a further ragged dimension.
      row_splits: an integer array [nrows + 1].
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        if not isinstance(row_splits, (np.ndarray, np.generic)) or row_splits.dtype not in (np.int64, np.int32):
            raise TypeError("row_splits must be a numpy array of int32 or int64 values")
        if row_splits.ndim != 1 or not row_splits.size:
            raise ValueError("row_splits must be a vector of at least one number")
        if not isinstance(values, (RaggedTensorValue, np.ndarray, np.generic)):
            raise TypeError(f"values must be an array or a RaggedTensorValue, got {type(values).__name__}")
        self._values = values
        self._row_splits: Any = row_splits

    @property
    def row_splits(self) -> Any:
        """Where the rows begin and end."""
        return self._row_splits

    @property
    def values(self) -> Any:
        """The rows one after the other."""
        return self._values

    @property
    def dtype(self) -> Any:
        """The numpy dtype of the values."""
        return self._values.dtype

    @property
    def flat_values(self) -> Any:
        """The innermost array."""
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensorValue) else 0)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape; ragged dimensions are None."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        inner = self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        splits = self._row_splits.tolist()
        return [inner[start:end] for start, end in zip(splits[:-1], splits[1:], strict=True)]

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"
