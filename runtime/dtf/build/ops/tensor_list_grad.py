"""Gradients of tensor lists: the gradient of a list is the list of the gradients of its elements."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.graph import Operation, Tensor
from dtf.wire import dtypes

not_differentiable(
    "EmptyTensorList", "TensorListReserve", "TensorListLength", "TensorListElementShape", "TensorListConcatLists",
    "TensorListPushBackBatch", "OptionalNone", "OptionalHasValue",
)  # fmt: skip


@gradient("TensorListPushBack")
def push_back(op: Operation, grad: Tensor) -> list[Any]:
    return list(
        apply_op(
            "TensorListPopBack",
            None,
            input_handle=grad,
            element_shape=_shape_of(op.inputs[1]),
            element_dtype=op.get_attr("element_dtype"),
        )
    )


@gradient("TensorListPopBack")
def pop_back(op: Operation, list_grad: Tensor | None, grad: Tensor | None) -> list[Any]:
    dtype = op.get_attr("element_dtype")
    if list_grad is None:
        list_grad = apply_op(
            "EmptyTensorList",
            None,
            element_shape=_element_shape(op.outputs[0]),
            max_num_elements=-1,
            element_dtype=dtype,
        )
    if grad is None:
        grad = _zeros_like(op.outputs[1])
    return [apply_op("TensorListPushBack", None, input_handle=list_grad, tensor=grad), None]


@gradient("TensorListGetItem")
def get_item(op: Operation, grad: Tensor) -> list[Any]:
    items, index, _ = op.inputs
    zeros = apply_op(
        "TensorListReserve",
        None,
        element_shape=_element_shape(items),
        num_elements=_length(items),
        element_dtype=grad.dtype,
    )
    return [apply_op("TensorListSetItem", None, input_handle=zeros, index=index, item=grad), None, None]


@gradient("TensorListSetItem")
def set_item(op: Operation, grad: Tensor) -> list[Any]:
    items, index, item = op.inputs
    list_grad = apply_op("TensorListSetItem", None, input_handle=grad, index=index, item=_zeros_like(item))
    if op.get_attr("resize_if_index_out_of_bounds"):
        list_grad = apply_op("TensorListResize", None, input_handle=list_grad, size=_length(items))
    item_grad = apply_op(
        "TensorListGetItem",
        None,
        input_handle=grad,
        index=index,
        element_shape=_shape_of(item),
        element_dtype=item.dtype,
    )
    return [list_grad, None, item_grad]


@gradient("TensorListStack")
def stack(op: Operation, grad: Tensor) -> list[Any]:
    return [_from_tensor(grad, _element_shape(op.inputs[0])), None]


@gradient("TensorListFromTensor")
def from_tensor(op: Operation, grad: Tensor) -> list[Any]:
    tensor, element_shape = op.inputs
    result = apply_op(
        "TensorListStack",
        None,
        input_handle=grad,
        element_shape=_as_int32(element_shape),
        element_dtype=tensor.dtype,
        num_elements=-1,
    )
    return [result, None]


@gradient("TensorListResize")
def resize(op: Operation, grad: Tensor) -> list[Any]:
    return [apply_op("TensorListResize", None, input_handle=grad, size=_length(op.inputs[0])), None]


@gradient("TensorListGather")
def gather(op: Operation, grad: Tensor) -> list[Any]:
    items, indices, _ = op.inputs
    list_grad = apply_op(
        "TensorListScatterV2",
        None,
        tensor=grad,
        indices=indices,
        element_shape=_element_shape(items),
        num_elements=_length(items),
    )
    return [list_grad, None, None]


@gradient("TensorListScatter", "TensorListScatterV2")
def scatter(op: Operation, grad: Tensor) -> list[Any]:
    tensor, indices, element_shape = op.inputs[:3]
    return [_gathered(grad, indices, element_shape, tensor), *[None] * (len(op.inputs) - 1)]


@gradient("TensorListScatterIntoExistingList")
def scatter_into(op: Operation, grad: Tensor) -> list[Any]:
    _, tensor, indices = op.inputs
    zeros = _zeros_like(tensor)
    list_grad = apply_op(
        "TensorListScatterIntoExistingList", None, input_handle=grad, tensor=zeros, indices=indices
    )
    return [list_grad, _gathered(grad, indices, _element_shape(grad), tensor), None]


@gradient("TensorListConcat", "TensorListConcatV2")
def concat(op: Operation, grad: Tensor, _: Any) -> list[Any]:
    list_grad = apply_op(
        "TensorListSplit",
        None,
        tensor=grad,
        element_shape=_element_shape(op.inputs[0]),
        lengths=op.outputs[1],
    )
    return [list_grad, *[None] * (len(op.inputs) - 1)]


@gradient("TensorListSplit")
def split(op: Operation, grad: Tensor) -> list[Any]:
    tensor, element_shape, lengths = op.inputs
    result = apply_op(
        "TensorListConcatV2",
        None,
        input_handle=grad,
        element_shape=element_shape,
        leading_dims=lengths,
        element_dtype=tensor.dtype,
    )
    return [result[0], None, None]


@gradient("OptionalFromValue")
def optional_from_value(op: Operation, grad: Tensor) -> list[Any]:
    result = apply_op(
        "OptionalGetValue",
        None,
        optional=grad,
        output_types=[tensor.dtype for tensor in op.inputs],
        output_shapes=[tensor.shape for tensor in op.inputs],
    )
    return list(result)


@gradient("OptionalGetValue")
def optional_get_value(op: Operation, *grads: Tensor) -> list[Any]:
    return [apply_op("OptionalFromValue", None, components=list(grads))]


def _gathered(items: Tensor, indices: Tensor, element_shape: Tensor, like: Tensor) -> Tensor:
    return apply_op(
        "TensorListGather",
        None,
        input_handle=items,
        indices=indices,
        element_shape=_as_int32(element_shape),
        element_dtype=like.dtype,
    )


def _from_tensor(tensor: Tensor, element_shape: Tensor) -> Tensor:
    return apply_op("TensorListFromTensor", None, tensor=tensor, element_shape=element_shape)


def _element_shape(items: Tensor) -> Tensor:
    return apply_op("TensorListElementShape", None, input_handle=items, shape_type=dtypes.int32)


def _length(items: Tensor) -> Tensor:
    return apply_op("TensorListLength", None, input_handle=items)


def _zeros_like(tensor: Tensor) -> Tensor:
    return apply_op("ZerosLike", None, x=tensor)


def _shape_of(tensor: Tensor) -> Tensor:
    return apply_op("Shape", None, input=tensor)


def _as_int32(shape: Tensor) -> Tensor:
    return shape if shape.dtype == dtypes.int32 else apply_op("Cast", None, x=shape, DstT=dtypes.int32)
