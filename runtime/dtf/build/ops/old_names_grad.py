"""Gradients of ops that newer ops have replaced; most never had one."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.tensor import Operation, Tensor

not_differentiable(
    *(
        "AdjustContrast BatchCholesky BatchCholeskyGrad BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D "
        "BatchIFFT3D BatchMatrixBandPart BatchMatrixDeterminant BatchMatrixDiag BatchMatrixDiagPart "
        "BatchMatrixInverse BatchMatrixSetDiag BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve "
        "BatchNormWithGlobalNormalizationGrad BatchSelfAdjointEig BatchSelfAdjointEigV2 BatchSvd "
        "Conv3DBackpropFilter Conv3DBackpropInput Fact RandomCrop SegmentMaxV2 SegmentMinV2 SegmentProdV2 "
        "SegmentSumV2 SelfAdjointEig TileGrad"
    ).split()
)


@gradient("BatchNormWithGlobalNormalization")
def _(op: Operation, grad: Tensor) -> list[Any]:
    value, mean, variance, _, gamma = op.inputs
    by = apply_op(
        "BatchNormWithGlobalNormalizationGrad", t=value, m=mean, v=variance, gamma=gamma, backprop=grad,
        variance_epsilon=op.get_attr("variance_epsilon"),
        scale_after_normalization=op.get_attr("scale_after_normalization"),
    )  # fmt: skip
    return [by.dx, by.dm, by.dv, by.db, by.dg]
