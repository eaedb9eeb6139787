"""Constants: `tf.constant`, and the conversion of Python values, arrays and shapes to constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.conversion import register_tensor_conversion_function
from dtf.build.default_graph import get_default_graph
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire import codec
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2
from dtf.wire.tensor_shape import Dimension, TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["constant"]


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A tensor of the given value.

    Args:
      value: a number, string, nested sequence or numpy array.
      dtype: the element type; by default float32 or int32 for Python numbers, numpy's own for arrays.
      shape: the shape; if it has more elements than `value`, the last element fills the rest.
      name: the name of the operation.
      verify_shape: raise instead where `value` does not have that shape.

    Returns:
      A constant Tensor.

    Raises:
      TypeError: `value` is not of type `dtype`, or (verify_shape) not of the shape.
      ValueError: `value` is None, ragged, or too large for `shape`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/constant
    """
    proto = codec.make_tensor_proto(value, dtype, shape, verify_shape)
    element_type = as_dtype(proto.dtype)
    attrs = {
        "value": attr_value_pb2.AttrValue(tensor=proto),
        "dtype": codec.python_to_attr(element_type, "type"),
    }
    return get_default_graph().create_op("Const", [], [element_type], name=name, attrs=attrs).outputs[0]


def from_values(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    """The conversion function of Python values and arrays."""
    return constant(value, dtype, name=name or "Const")


def _from_shape(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    if not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
    sizes = value.as_list()
    if dtype is not None and dtype.name not in ("int32", "int64"):
        raise TypeError(f"Cannot convert a TensorShape to dtype {dtype.name}")
    kind = dtype.name if dtype is not None else ("int64" if any(size >= 2**31 for size in sizes) else "int32")
    return from_values(np.array(sizes, kind), None, name or "shape_as_tensor")


def _from_dimension(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    if value.value is None:
        raise ValueError(f"Cannot convert unknown Dimension to a Tensor: {value}")
    if dtype is not None and dtype.name not in ("int32", "int64"):
        raise TypeError(f"Cannot convert a Dimension to dtype {dtype.name}")
    return from_values(value.value, dtype, name)


register_tensor_conversion_function(TensorShape, _from_shape, 100)
register_tensor_conversion_function(Dimension, _from_dimension, 100)
register_tensor_conversion_function(object, from_values, 200)


@shape_rule("Const")
def _const_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape(op._attrs["value"].tensor.tensor_shape)]
