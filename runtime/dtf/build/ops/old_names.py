"""Static shapes of ops that newer ops have replaced: graphs before TensorFlow 1.0 and `tf.raw_ops` have them.

No public function makes them. Kernels: those of the newer ops, and `run.kernels.old_names`.
"""

from __future__ import annotations

from dtf.build.constant_value import constant_value
from dtf.build.ops import decompositions, diagonals, matrix_functions, segment, spectral, volume
from dtf.build.shape_rules import scalar, shape_rule, table, unchanged, unknown
from dtf.build.tensor import Operation
from dtf.wire.tensor_shape import TensorShape

# Modules whose rules the older ops share.
_SHARED = (decompositions, diagonals, matrix_functions, segment, spectral, volume)

for _name in (
    "Cholesky CholeskyGrad FFT FFT2D FFT3D IFFT IFFT2D IFFT3D MatrixBandPart MatrixDeterminant MatrixDiag "
    "MatrixDiagPart MatrixInverse MatrixSetDiag MatrixSolve MatrixSolveLs MatrixTriangularSolve SelfAdjointEigV2 Svd"
).split():
    shape_rule(f"Batch{_name}")(table[_name])

shape_rule("Fact")(scalar)
shape_rule("AdjustContrast", "BatchNormWithGlobalNormalization")(unchanged)


@shape_rule("SelfAdjointEig", "BatchSelfAdjointEig")
def _(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank_at_least(2)
    if shape.ndims is None:
        return unknown(op)
    rows, columns = shape.as_list()[-2:]
    size = columns if rows is None else rows
    return [shape[:-2].concatenate([None if size is None else size + 1, size])]


@shape_rule("SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2")
def _(op: Operation) -> list[TensorShape]:
    data, count = op.inputs[0].shape.with_rank_at_least(1), constant_value(op.inputs[2])
    if data.ndims is None:
        return unknown(op)
    return [TensorShape([None if count is None else int(count)]).concatenate(data[1:])]


@shape_rule("BatchNormWithGlobalNormalizationGrad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape, *(op.inputs[i].shape for i in (1, 2)), op.inputs[3].shape, op.inputs[3].shape]


@shape_rule("Conv3DBackpropInput")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(5)]


@shape_rule("Conv3DBackpropFilter")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape.with_rank(5)]


@shape_rule("TileGrad")
def _(op: Operation) -> list[TensorShape]:
    shape, counts = op.inputs[0].shape, constant_value(op.inputs[1])
    if shape.ndims is None or counts is None:
        return [shape] if shape.ndims is None else [TensorShape([None] * shape.ndims)]
    sizes = zip(shape.as_list(), counts.tolist(), strict=True)
    return [TensorShape([None if size is None or not count else size // count for size, count in sizes])]


@shape_rule("RandomCrop")
def _(op: Operation) -> list[TensorShape]:
    size = constant_value(op.inputs[1])
    rows, columns = (None, None) if size is None else size.tolist()
    return [TensorShape([rows, columns, op.inputs[0].shape.with_rank(3)[2]])]
