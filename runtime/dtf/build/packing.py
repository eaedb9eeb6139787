"""From lists to tensors: lists of values become constants, lists that contain tensors are packed.

Registers the conversion of lists and tuples with `conversion`.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import from_values
from dtf.build.conversion import convert_to_tensor, is_dense_tensor_like, register_tensor_conversion_function
from dtf.build.default_graph import name_scope
from dtf.build.tensor import Tensor
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import Dimension


def _from_sequence(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    found = _tensor_dtype_inside(value)
    if found is None:
        if any(isinstance(each, Dimension) for each in value):
            value = [each.value if isinstance(each, Dimension) else each for each in value]
        return from_values(value, dtype, name)
    if dtype is not None and dtype.base_dtype != found.base_dtype:
        return _pack(_cast_inside(value, dtype.base_dtype), dtype.base_dtype, name or "packed")
    return _pack(value, found.base_dtype, name or "packed")


def _cast_inside(value: Any, dtype: DType) -> Any:
    """`value` with its tensors cast to `dtype`; Python values are kept."""
    if is_dense_tensor_like(value):
        return value if value.dtype.base_dtype == dtype else apply_op("Cast", x=value, DstT=dtype)
    return [_cast_inside(each, dtype) for each in value] if isinstance(value, (list, tuple)) else value


def _tensor_dtype_inside(value: Any) -> DType | None:
    if is_dense_tensor_like(value):
        return value.dtype
    if isinstance(value, list | tuple):
        for each in value:
            found = _tensor_dtype_inside(each)
            if found is not None:
                return found
    return None


def _pack(values: Any, dtype: DType, name: str) -> Tensor:
    if _tensor_dtype_inside(values) is None:
        return convert_to_tensor(values, dtype, name)
    if is_dense_tensor_like(values):
        return convert_to_tensor(values, dtype)
    with name_scope(name) as scope:
        parts = [_pack(each, dtype, str(index)) for index, each in enumerate(values)]
        return apply_op("Pack", scope, values=parts)


register_tensor_conversion_function((list, tuple), _from_sequence, 99)
