"""Shape rules of the fused ops, which only graphs from TensorFlow's optimizer contain: as for the op that was
fused."""

from __future__ import annotations

from collections.abc import Sequence

from dtf.build.constant_value import constant_value
from dtf.build.ops import conv, linalg, nn  # noqa: F401 - they hold the rules of the plain ops
from dtf.build.shape_rules import shape_rule, table, unchanged
from dtf.build.tensor import Operation
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import window_extent


@shape_rule("_FusedMatMul", "_FusedConv2D", "_FusedDepthwiseConv2dNative")
def _(op: Operation) -> Sequence[TensorShape]:
    return table[op.type.removeprefix("_Fused")](op)


shape_rule("_UnaryOpsComposition")(unchanged)


@shape_rule("_FusedBatchNormEx")
def _(op: Operation) -> Sequence[TensorShape]:
    return table["FusedBatchNormV3"](op)


@shape_rule("FusedPadConv2D", "FusedResizeAndPadConv2D")
def _(op: Operation) -> Sequence[TensorShape]:
    batch, height, width, _ = op.inputs[0].shape.with_rank(4).as_list()
    rows, columns, _, channels = op.inputs[-1].shape.with_rank(4).as_list()
    if op.type == "FusedResizeAndPadConv2D":
        size = constant_value(op.inputs[1])
        height, width = (None, None) if size is None else map(int, size)
    margins = constant_value(op.inputs[-2])
    strides, padding = op.get_attr("strides"), op.get_attr("padding").decode()
    outputs: list[int | None] = []
    for axis, extent, window in ((1, height, rows), (2, width, columns)):
        if margins is None or extent is None or window is None:
            outputs.append(None)
        else:
            padded = extent + int(sum(margins[axis]))
            outputs.append(window_extent(padded, window, strides[axis], padding).output)
    return [TensorShape([batch, *outputs, channels])]
