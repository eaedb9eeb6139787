"""tensorflow.python.data.util.convert: arguments of datasets as tensors."""

from __future__ import annotations

from typing import Any

from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["optional_param_to_tensor", "partial_shape_to_tensor"]


def optional_param_to_tensor(
    argument_name: str, argument_value: Any, argument_default: Any = 0, argument_dtype: Any = dtypes.int64
) -> Tensor:
    """The argument as a tensor; the default where it is None."""
    if argument_value is None:
        return constant(argument_default, dtype=argument_dtype, name=argument_name)
    return convert_to_tensor(argument_value, dtype=argument_dtype, name=argument_name)


def partial_shape_to_tensor(shape_like: Any) -> Tensor:
    """A shape as an int64 vector, with -1 for a size that is not known.

    Raises:
      ValueError: a tensor that is not a vector.
      TypeError: a tensor that does not hold int64.
    """
    try:
        sizes = TensorShape(shape_like).as_list()
        return constant([-1 if size is None else size for size in sizes], dtype=dtypes.int64)
    except (TypeError, ValueError):
        vector = convert_to_tensor(shape_like, dtype=dtypes.int64)
        if vector.shape.ndims not in (None, 1):
            raise ValueError(
                f"The given shape {shape_like} must be a 1-D tensor of tf.int64 values, but the shape was "
                f"{vector.shape}."
            ) from None
        return vector
