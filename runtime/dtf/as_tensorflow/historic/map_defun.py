"""tensorflow.python.data.experimental.ops.map_defun: a function of the rows of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import functional
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["map_defun"]


def map_defun(
    fn: Callable[..., Any],
    elems: Sequence[Any],
    output_dtypes: Sequence[Any],
    output_shapes: Sequence[Any],
    max_intra_op_parallelism: int = 1,
) -> list[Tensor]:
    """The results of `fn` for the rows of several tensors, stacked.

    Args:
      fn: a function of one row of each tensor.
      elems: the tensors [rows, ...].
      output_dtypes, output_shapes: the dtypes and shapes of the results of `fn`.
      max_intra_op_parallelism: accepted; the rows are independent steps of a loop.

    Raises:
      ValueError: `elems` is not a list, or a result does not have its shape.
    """
    if not isinstance(elems, list):
        raise ValueError(f"`elems` must be a list of tensors, but was {elems}.")
    if not isinstance(output_dtypes, list) or not isinstance(output_shapes, list):
        raise ValueError("`output_dtypes` and `output_shapes` must be lists.")
    types = [dtypes.as_dtype(each) for each in output_dtypes]

    def of_rows(rows: Sequence[Tensor]) -> tuple[Tensor, ...]:
        results = fn(*rows)
        results = results if isinstance(results, list | tuple) else [results]
        return tuple(convert_to_tensor(each, dtype) for each, dtype in zip(results, types, strict=True))

    stacked = functional.map_fn(of_rows, tuple(convert_to_tensor(each) for each in elems), dtype=tuple(types))
    for result, shape in zip(stacked, output_shapes, strict=True):
        result.set_shape(TensorShape([None]).concatenate(TensorShape(shape)))
    return list(stacked)
