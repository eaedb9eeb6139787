"""Ops that report progress: `tf.Print`, `tf.print`'s op and `tf.timestamp`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/Print
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unchanged
from dtf.build.tensor import Tensor

__all__ = ["Print", "timestamp"]


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`input_` itself; each evaluation writes `message` and `data` to the standard error of the task.

    Args:
      input_: any tensor.
      data: a list of tensors to print.
      message: text before them.
      first_n: print only so many times; always by default.
      summarize: how many elements of each tensor; 3 by default.
      name: the name of the operation.

    Returns:
      `input_`, unchanged.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/Print
    """
    return apply_op(
        "Print",
        name,
        input=input_,
        data=list(data),
        message=message or "",
        first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize,
    )


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since the epoch when the op runs, float64."""
    return apply_op("Timestamp", name)


shape_rule("Print")(unchanged)
shape_rule("PrintV2")(no_outputs)
shape_rule("Timestamp")(scalar)
