"""tensorflow.python.ops.list_ops: lists of tensors, whose element shapes may be given in any form."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "_build_element_shape", "empty_tensor_list", "tensor_list_concat", "tensor_list_element_shape",
    "tensor_list_from_tensor", "tensor_list_gather", "tensor_list_get_item", "tensor_list_pop_back",
    "tensor_list_reserve", "tensor_list_scatter", "tensor_list_set_item", "tensor_list_split", "tensor_list_stack",
]  # fmt: skip


def _build_element_shape(shape: Any) -> Tensor:
    """The element shape as a tensor: -1 is any shape, or any size in a vector."""
    if isinstance(shape, Tensor):
        return shape
    if isinstance(shape, TensorShape):
        shape = None if shape.ndims is None else shape.as_list()
    if shape is None:
        return convert_to_tensor(-1, dtypes.int32)
    if hasattr(shape, "dtype"):
        return convert_to_tensor(shape)
    if not isinstance(shape, list | tuple):
        return convert_to_tensor(shape, dtypes.int32)
    return convert_to_tensor([-1 if size is None else size for size in shape], dtypes.int32)


def empty_tensor_list(
    element_shape: Any, element_dtype: Any, max_num_elements: Any = None, name: str | None = None
) -> Tensor:
    return apply_op(
        "EmptyTensorList", name, element_shape=_build_element_shape(element_shape), element_dtype=element_dtype,
        max_num_elements=-1 if max_num_elements is None else max_num_elements,
    )  # fmt: skip


def tensor_list_reserve(element_shape: Any, num_elements: Any, element_dtype: Any, name: str | None = None) -> Tensor:
    return apply_op(
        "TensorListReserve", name, element_shape=_build_element_shape(element_shape), num_elements=num_elements,
        element_dtype=element_dtype,
    )  # fmt: skip


def tensor_list_from_tensor(tensor: Any, element_shape: Any, name: str | None = None) -> Tensor:
    return apply_op("TensorListFromTensor", name, tensor=tensor, element_shape=_build_element_shape(element_shape))


def tensor_list_get_item(
    input_handle: Any, index: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Tensor:
    return apply_op(
        "TensorListGetItem", name, input_handle=input_handle, index=index,
        element_shape=_build_element_shape(element_shape), element_dtype=element_dtype,
    )  # fmt: skip


def tensor_list_pop_back(
    input_handle: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Any:
    return apply_op(
        "TensorListPopBack", name, input_handle=input_handle, element_shape=_build_element_shape(element_shape),
        element_dtype=element_dtype,
    )  # fmt: skip


def tensor_list_gather(
    input_handle: Any, indices: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Tensor:
    return apply_op(
        "TensorListGather", name, input_handle=input_handle, indices=indices,
        element_shape=_build_element_shape(element_shape), element_dtype=element_dtype,
    )  # fmt: skip


def tensor_list_scatter(
    tensor: Any, indices: Any, element_shape: Any = None, input_handle: Any = None, num_elements: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """A list with the rows of `tensor` at `indices`, or `input_handle` with these rows."""
    if input_handle is not None:
        return apply_op(
            "TensorListScatterIntoExistingList", name, input_handle=input_handle, tensor=tensor, indices=indices
        )
    return apply_op(
        "TensorListScatterV2", name, tensor=tensor, indices=indices, element_shape=_build_element_shape(element_shape),
        num_elements=-1 if num_elements is None else num_elements,
    )  # fmt: skip


def tensor_list_stack(
    input_handle: Any, element_dtype: Any, num_elements: int = -1, element_shape: Any = None, name: str | None = None
) -> Tensor:
    return apply_op(
        "TensorListStack", name, input_handle=input_handle, element_shape=_build_element_shape(element_shape),
        element_dtype=element_dtype, num_elements=num_elements,
    )  # fmt: skip


def tensor_list_concat(
    input_handle: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None, lengths: Any = None
) -> Tensor:
    """The rows of all elements; without `lengths` the sizes of elements that were never set must be known."""
    leading = convert_to_tensor([] if lengths is None else lengths, dtypes.int64)
    return apply_op(
        "TensorListConcatV2", name, input_handle=input_handle, element_shape=_build_element_shape(element_shape),
        leading_dims=leading, element_dtype=element_dtype,
    )[0]  # fmt: skip


def tensor_list_split(tensor: Any, element_shape: Any, lengths: Any, name: str | None = None) -> Tensor:
    return apply_op(
        "TensorListSplit", name, tensor=tensor, element_shape=_build_element_shape(element_shape), lengths=lengths
    )


def tensor_list_set_item(
    input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False, name: str | None = None
) -> Tensor:
    """The list with `item` at `index`; `resize_if_index_out_of_bounds` lengthens a list that ends before it."""
    if resize_if_index_out_of_bounds:
        size = apply_op("TensorListLength", None, input_handle=input_handle)
        wanted = apply_op("Maximum", None, x=size, y=apply_op("AddV2", None, x=index, y=1))
        input_handle = apply_op("TensorListResize", None, input_handle=input_handle, size=wanted)
    return apply_op("TensorListSetItem", name, input_handle=input_handle, index=index, item=item)


def tensor_list_element_shape(input_handle: Any, shape_type: Any, name: str | None = None) -> Tensor:
    return apply_op("TensorListElementShape", name, input_handle=input_handle, shape_type=shape_type)
