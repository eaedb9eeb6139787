"""Examples as arrays: checked, split, shuffled, and fed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtf.keras.program import Program


@dataclass(frozen=True)
class Examples:
    """Inputs and targets.

    Attributes:
      x: [n, ...], float32 or ids.
      y: [n, ...], or None.
    """

    x: np.ndarray
    y: np.ndarray | None

    def __len__(self) -> int:
        return len(self.x)

    def taken(self, rows: np.ndarray) -> Examples:
        """Some of the examples."""
        return Examples(self.x[rows], None if self.y is None else self.y[rows])

    def split(self, part: float) -> tuple[Examples, Examples | None]:
        """All but the last part, and that; (all, None) for a part of 0.

        Raises:
          ValueError: the part is not from 0 to 1, or leaves nothing.
        """
        if not part:
            return self, None
        first = int(len(self) * (1.0 - part))
        if not 0 < first < len(self):
            raise ValueError(f"validation_split={part} of {len(self)} examples leaves one of the two parts empty")
        rows = np.arange(len(self))
        return self.taken(rows[:first]), self.taken(rows[first:])

    def feeds(self, program: Program) -> dict[Any, Any]:
        """The values to feed to a program.

        Raises:
          ValueError: there are other numbers of targets than of outputs.
        """
        assert program.y is not None and self.y is not None
        shape = [len(self), *program.y.shape.as_list()[1:]]
        try:
            return {program.x: self.x, program.y: self.y.reshape([-1 if size is None else size for size in shape])}
        except ValueError:
            message = f"Targets of shape {self.y.shape[1:]} differ from the model's output shape: {tuple(shape[1:])}"
            raise ValueError(message) from None


def examples_of(x: Any, y: Any, is_ids: bool, is_classes: bool) -> Examples:
    """Examples from the user's arguments.

    Args:
      is_ids: whether the inputs are integers.
      is_classes: whether the targets are the numbers of classes.

    Raises:
      ValueError: there are not as many targets as inputs.
    """
    inputs = np.asarray(x, np.int32 if is_ids else np.float32)
    if y is None:
        return Examples(inputs, None)
    targets = np.asarray(y, np.int64 if is_classes else np.float32)
    if inputs.ndim == 0 or targets.ndim == 0 or len(inputs) != len(targets):
        raise ValueError(f"x and y must have the same number of examples; x is {inputs.shape} and y {targets.shape}")
    return Examples(inputs, targets)


def mini_batches(order: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """The rows of batch after batch."""
    for start in range(0, len(order), size):
        yield order[start : start + size]
