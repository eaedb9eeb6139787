"""Shape rules of tensor lists and optionals.

They have no public functions: graphs that TensorFlow's control flow v2 made hold them.

Source: https://www.tensorflow.org/api_docs/python/tf/raw_ops (TensorListReserve and its neighbours)
"""

from __future__ import annotations

from dtf.build.constant_value import constant_value
from dtf.build.graph import Operation
from dtf.build.shape_rules import scalar, shape_rule, unchanged
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

shape_rule(
    "EmptyTensorList", "TensorListReserve", "TensorListFromTensor", "TensorListLength", "TensorListPushBack",
    "TensorListResize", "TensorListScatter", "TensorListScatterIntoExistingList", "TensorListScatterV2",
    "TensorListSetItem", "TensorListSplit", "OptionalFromValue", "OptionalHasValue", "OptionalNone",
)(scalar)  # fmt: skip
shape_rule("TensorListPushBackBatch")(unchanged)


@shape_rule("TensorListConcatLists")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.merge_with(op.inputs[1].shape)]


@shape_rule("TensorListElementShape")
def _(op: Operation) -> list[TensorShape]:
    return [TensorShape(None)]


@shape_rule("TensorListGetItem")
def _(op: Operation) -> list[TensorShape]:
    return [_declared(op.inputs[2])]


@shape_rule("TensorListPopBack")
def _(op: Operation) -> list[TensorShape]:
    return [TensorShape([]), _declared(op.inputs[1])]


@shape_rule("TensorListStack")
def _(op: Operation) -> list[TensorShape]:
    count = op.get_attr("num_elements")
    return [TensorShape([None if count == -1 else count]).concatenate(_declared(op.inputs[1]))]


@shape_rule("TensorListGather")
def _(op: Operation) -> list[TensorShape]:
    count = op.inputs[1].shape[:1] if op.inputs[1].shape.ndims else TensorShape([None])
    return [count.concatenate(_declared(op.inputs[2]))]


@shape_rule("TensorListConcat")
def _(op: Operation) -> list[TensorShape]:
    return [_rows_of(op.get_attr("element_shape")), TensorShape([None])]


@shape_rule("TensorListConcatV2")
def _(op: Operation) -> list[TensorShape]:
    return [_rows_of(_declared(op.inputs[1])), TensorShape([None])]


@shape_rule("OptionalGetValue")
def _(op: Operation) -> list[TensorShape]:
    return [TensorShape(shape) for shape in op.get_attr("output_shapes")]


def _declared(tensor: Tensor) -> TensorShape:
    """The known part of the element shape that a tensor of sizes holds."""
    sizes = constant_value(tensor)
    if sizes is None:
        return TensorShape(None)
    if sizes.ndim == 0:
        return TensorShape(None)
    return TensorShape([None if size < 0 else size for size in sizes.tolist()])


def _rows_of(shape: TensorShape) -> TensorShape:
    return TensorShape(None) if shape.ndims is None else TensorShape([None]).concatenate(shape[1:])
