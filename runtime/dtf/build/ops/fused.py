"""Shape rules of the fused ops, which only graphs from TensorFlow's optimizer have: those of the op that is fused."""

from __future__ import annotations

from collections.abc import Sequence

from dtf.build.ops import conv, linalg, nn  # noqa: F401 - they hold the rules of the plain ops
from dtf.build.shape_rules import shape_rule, table, unchanged
from dtf.build.tensor import Operation
from dtf.wire.tensor_shape import TensorShape


@shape_rule("_FusedMatMul", "_FusedConv2D", "_FusedDepthwiseConv2dNative")
def _(op: Operation) -> Sequence[TensorShape]:
    return table[op.type.removeprefix("_Fused")](op)


shape_rule("_UnaryOpsComposition")(unchanged)


@shape_rule("_FusedBatchNormEx")
def _(op: Operation) -> Sequence[TensorShape]:
    return table["FusedBatchNormV3"](op)
