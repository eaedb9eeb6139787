"""Gradients of the ops on sparse tensors: of the stored values, and of dense operands."""

from __future__ import annotations

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array, filling, gathering, rearranging, searching
from dtf.build.ops.math import floormod, multiply, negative, range
from dtf.build.ops.reductions import reduce_sum

not_differentiable("SparseConcat", "SparseReshape", "SparseFillEmptyRowsGrad")


@gradient("SparseToDense")
def _(op, grad):
    indices = op.inputs[0]
    if indices.shape.ndims is not None and indices.shape.ndims < 2:
        indices = array.reshape(indices, [-1, 1])
    stored = array.reshape(gathering.gather_nd(grad, indices), array.shape(op.inputs[2]))
    return [None, None, stored, reduce_sum(grad) - reduce_sum(stored)]


@gradient("SparseTensorDenseMatMul")
def _(op, grad):
    indices, values, shape, dense = op.inputs
    adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    dense_grad = apply_op(
        "SparseTensorDenseMatMul", a_indices=indices, a_values=values, a_shape=shape, b=grad, adjoint_a=not adjoint_a
    )
    right = dense
    if adjoint_b:
        dense_grad = rearranging.matrix_transpose(dense_grad, conjugate=True)
        right = rearranging.matrix_transpose(dense, conjugate=True)
    rows, columns = indices[:, 0], indices[:, 1]
    if adjoint_a:
        rows, columns = columns, rows
    values_grad = reduce_sum(gathering.gather(grad, rows) * gathering.gather(right, columns), 1)
    return [None, values_grad, None, dense_grad]


@gradient("SparseTensorDenseAdd")
def _(op, grad):
    return [None, gathering.gather_nd(grad, op.inputs[0]), None, grad]


@gradient("SparseReorder")
def _(op, _, grad):
    indices, values, shape = op.inputs
    places = range(array.shape(values)[0])
    _, order = apply_op("SparseReorder", input_indices=indices, input_values=places, input_shape=shape)
    return [None, gathering.gather(grad, rearranging.invert_permutation(order)), None]


@gradient("SparseFillEmptyRows")
def _(op, _, grad, __, ___):
    values_grad, default_grad = apply_op("SparseFillEmptyRowsGrad", reverse_index_map=op.outputs[3], grad_values=grad)
    return [None, values_grad, None, default_grad]


@gradient("SparseReduceSum")
def _(op, grad):
    indices, _, shape, axes = op.inputs
    # A reduced dimension keeps one place, number 0, which represents all of its places.
    rank = array.size(shape)
    is_reduced = reduce_sum(filling.one_hot(floormod(array.reshape(axes, [-1]), rank), rank, dtype=shape.dtype), 0) > 0
    kept = searching.where_v2(is_reduced, filling.ones_like(shape), shape)
    places = searching.where_v2(is_reduced, filling.zeros_like(indices), indices)
    return [None, gathering.gather_nd(array.reshape(grad, kept), places), None, None]


not_differentiable(
    "AddManySparseToTensorsMap", "AddSparseToTensorsMap", "DenseToDenseSetOperation", "DenseToSparseSetOperation",
    "DeserializeManySparse", "DeserializeSparse", "SerializeManySparse", "SerializeSparse", "SetSize", "SparseAddGrad",
    "SparseCross", "SparseCrossV2",
    "SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSumSparse", "SparseSliceGrad", "SparseSparseMaximum",
    "SparseSparseMinimum", "SparseSplit", "SparseToSparseSetOperation", "TakeManySparseFromTensorsMap",
)  # fmt: skip


@gradient("SparseAdd")
def _(op, _, grad, __):
    a_grad, b_grad = apply_op(
        "SparseAddGrad", backprop_val_grad=grad, a_indices=op.inputs[0], b_indices=op.inputs[3],
        sum_indices=op.outputs[0],
    )  # fmt: skip
    a_grad.set_shape(op.inputs[1].shape)
    b_grad.set_shape(op.inputs[4].shape)
    return [None, a_grad, None, None, b_grad, None, None]


@gradient("SparseSlice")
def _(op, _, grad, __):
    indices, _, _, start, _ = op.inputs
    stored = apply_op(
        "SparseSliceGrad", backprop_val_grad=grad, input_indices=indices, input_start=start,
        output_indices=op.outputs[0],
    )  # fmt: skip
    return [None, stored, None, None, None]


@gradient("SparseSoftmax")
def _(op, grad):
    indices, _, shape = op.inputs
    values = op.outputs[0]
    product = multiply(values, grad)
    sums = apply_op(
        "SparseReduceSum", input_indices=indices, input_values=product, input_shape=shape, reduction_axes=[-1],
        keep_dims=True,
    )  # fmt: skip
    centred = apply_op("SparseDenseCwiseAdd", sp_indices=indices, sp_values=grad, sp_shape=shape, dense=-sums)
    return [None, multiply(values, centred), None]


@gradient("SparseDenseCwiseAdd")
def _(op, grad):
    return [None, grad, None, _dense_gradient(op, grad)]


@gradient("SparseDenseCwiseMul")
def _(op, grad):
    indices, values, shape, dense = op.inputs
    stored = apply_op("SparseDenseCwiseMul", sp_indices=indices, sp_values=grad, sp_shape=shape, dense=dense)
    return [None, stored, None, _dense_gradient(op, multiply(grad, values))]


@gradient("SparseDenseCwiseDiv")
def _(op, grad):
    indices, _, shape, dense = op.inputs
    stored = apply_op("SparseDenseCwiseDiv", sp_indices=indices, sp_values=grad, sp_shape=shape, dense=dense)
    return [None, stored, None, _dense_gradient(op, negative(multiply(stored, op.outputs[0])))]


def _dense_gradient(op, stored):
    """`stored` at the places of the sparse operand, summed to the shape of the dense one that was broadcast there."""
    indices, _, shape, dense = op.inputs
    whole = gathering.scatter_nd(indices, stored, shape)
    dense_shape = array.shape(dense, out_type=shape.dtype)
    axes = apply_op("BroadcastGradientArgs", s0=dense_shape, s1=shape).r0
    return array.reshape(reduce_sum(whole, axes), dense_shape)
