"""Gradients of the array ops.

Most array ops move elements, so their gradients move them back: the gradient of a gather is a scatter, the gradient of
a split a concat. The public functions are in `array`, `joining`, `slicing`, `gathering`, `rearranging`, `diagonals`
and `searching`.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array, diagonals, filling, gathering, joining, rearranging, searching, slicing
from dtf.build.ops.math import cast, floormod, negative, range
from dtf.build.ops.reductions import reduce_prod, reduce_sum
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

not_differentiable(
    *(
        "Const Placeholder PlaceholderV2 StopGradient Shape ShapeN Size Rank BroadcastArgs BroadcastGradientArgs "
        "Empty OneHot "
        "ZerosLike OnesLike ConcatOffset InvertPermutation Where Unique UniqueV2 UniqueWithCounts "
        "UniqueWithCountsV2 ListDiff "
        "LowerBound UpperBound Bitcast ParallelConcat StridedSliceAssign"
    ).split()
)


@gradient("Identity", "RefIdentity", "Snapshot", "GuaranteeConst", "PlaceholderWithDefault", "EnsureShape", "DeepCopy")
def _(op, grad):
    return [grad]


@gradient("IdentityN")
def _(op, *grads):
    return list(grads)


@gradient("PreventGradient")
def _(op, grad):
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.get_attr('message')}")


@gradient("CheckNumerics")
def _(op, grad):
    return [array.check_numerics(grad, "Not a number (NaN) or infinity (Inf) values detected in gradient.")]


# -- shapes


@gradient("Reshape", "ExpandDims")
def _(op, grad):
    return [_like_input(op, grad), None]


@gradient("Squeeze")
def _(op, grad):
    return [_like_input(op, grad)]


def _like_input(op: Any, grad: Any) -> Tensor:
    return array.reshape(grad, array.shape(op.inputs[0]))


@gradient("BroadcastTo")
def _(op, grad):
    return [_summed_to(grad, array.shape(op.inputs[0])), None]


def _summed_to(grad: Any, shape: Tensor) -> Tensor:
    """Sums the dimensions along which something of `shape` was repeated."""
    grad = convert_to_tensor(grad)
    axes, _ = apply_op("BroadcastGradientArgs", s0=shape, s1=array.shape(grad, out_type=shape.dtype))
    return array.reshape(reduce_sum(grad, axes), shape)


@gradient("Fill")
def _(op, grad):
    return [None, reduce_sum(grad)]


# -- joining and splitting


@gradient("Concat")
def _(op, grad):
    return [None, *_concat_pieces(grad, list(op.inputs[1:]), op.inputs[0])]


@gradient("ConcatV2")
def _(op, grad):
    return [*_concat_pieces(grad, list(op.inputs[:-1]), op.inputs[-1]), None]


def _concat_pieces(grad: Any, values: list[Tensor], axis: Tensor) -> list[Tensor]:
    grad = convert_to_tensor(grad)
    if len(values) == 1:
        return [grad]
    known_axis = constant_value(axis)
    if known_axis is not None:
        sizes = [value.shape.as_list()[int(known_axis)] if value.shape.ndims is not None else None for value in values]
        if None not in sizes:
            return joining.split(grad, constant(sizes, dtypes.int32), int(known_axis))
    shapes = array.shape_n(values)
    rank = array.rank(values[0])
    position = apply_op("FloorMod", x=cast(axis, dtypes.int32), y=rank)
    offsets = apply_op("ConcatOffset", concat_dim=position, shape=shapes)
    return [slicing.slice(grad, begin, size) for begin, size in zip(offsets, shapes, strict=True)]


@gradient("Split")
def _(op, *grads):
    return [None, joining.concat(list(grads), op.inputs[0])]


@gradient("SplitV")
def _(op, *grads):
    return [joining.concat(list(grads), op.inputs[2]), None, None]


@gradient("Pack")
def _(op, grad):
    return joining.unstack(grad, num=op.get_attr("N"), axis=op.get_attr("axis"))


@gradient("Unpack")
def _(op, *grads):
    return [joining.stack(list(grads), axis=op.get_attr("axis"))]


# -- slicing and padding

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _masks(op: Any) -> dict[str, Any]:
    return {mask: op.get_attr(mask) for mask in _MASKS}


@gradient("Slice")
def _(op, grad):
    begin = op.inputs[1]
    whole = array.shape(op.inputs[0], out_type=begin.dtype)
    after = whole - array.shape(grad, out_type=begin.dtype) - begin
    return [joining.pad(grad, joining.stack([begin, after], axis=1)), None, None]


@gradient("StridedSlice")
def _(op, grad):
    begin, end, strides = op.inputs[1:4]
    shape = array.shape(op.inputs[0], out_type=begin.dtype)
    whole = apply_op("StridedSliceGrad", shape=shape, begin=begin, end=end, strides=strides, dy=grad, **_masks(op))
    return [whole, None, None, None]


@gradient("StridedSliceGrad")
def _(op, grad):
    _, begin, end, strides, _ = op.inputs
    return [None, None, None, None, slicing.strided_slice(grad, begin, end, strides, **_masks(op))]


@gradient("TensorStridedSliceUpdate")
def _(op, grad):
    _, begin, end, strides, value = op.inputs
    rest = apply_op(
        "TensorStridedSliceUpdate",
        input=grad,
        begin=begin,
        end=end,
        strides=strides,
        value=filling.zeros_like(value),
        **_masks(op),
    )
    by_value = slicing.strided_slice(grad, begin, end, strides, **_masks(op))
    return [rest, None, None, None, _summed_to(by_value, array.shape(value))]


@gradient("Pad", "PadV2")
def _(op, grad):
    paddings = op.inputs[1]
    begin = array.reshape(slicing.slice(paddings, [0, 0], joining.stack([array.rank(op.inputs[0]), 1])), [-1])
    size = array.shape(op.inputs[0], out_type=paddings.dtype)
    return [slicing.slice(grad, begin, size)] + [None] * (len(op.inputs) - 1)


@gradient("MirrorPad")
def _(op, grad):
    return [apply_op("MirrorPadGrad", input=grad, paddings=op.inputs[1], mode=op.get_attr("mode")), None]


@gradient("MirrorPadGrad")
def _(op, grad):
    return [apply_op("MirrorPad", input=grad, paddings=op.inputs[1], mode=op.get_attr("mode")), None]


@gradient("Tile")
def _(op, grad):
    # Each dimension becomes (copy, place), and the copies are added up.
    multiples = op.inputs[1]
    shape = array.shape(op.inputs[0], out_type=multiples.dtype)
    split = array.reshape(rearranging.transpose(joining.stack([multiples, shape])), [-1])
    axes = range(0, array.size(split), 2)
    summed = reduce_sum(array.reshape(grad, split), axes)
    return [array.reshape(summed, shape), None]


# -- rearranging


@gradient("Transpose")
def _(op, grad):
    return [rearranging.transpose(grad, rearranging.invert_permutation(op.inputs[1])), None]


@gradient("ConjugateTranspose")
def _(op, grad):
    return [rearranging.transpose(grad, rearranging.invert_permutation(op.inputs[1]), conjugate=True), None]


@gradient("Reverse")
def _(op, grad):
    return [apply_op("Reverse", tensor=grad, dims=op.inputs[1]), None]


@gradient("ReverseV2")
def _(op, grad):
    return [rearranging.reverse(grad, op.inputs[1]), None]


@gradient("ReverseSequence")
def _(op, grad):
    back = rearranging.reverse_sequence(
        grad, op.inputs[1], seq_axis=op.get_attr("seq_dim"), batch_axis=op.get_attr("batch_dim")
    )
    return [back, None]


@gradient("Roll")
def _(op, grad):
    return [rearranging.roll(grad, negative(op.inputs[1]), op.inputs[2]), None, None]


@gradient("SpaceToBatch")
def _(op, grad):
    return [apply_op("BatchToSpace", input=grad, crops=op.inputs[1], block_size=op.get_attr("block_size")), None]


@gradient("BatchToSpace")
def _(op, grad):
    return [apply_op("SpaceToBatch", input=grad, paddings=op.inputs[1], block_size=op.get_attr("block_size")), None]


@gradient("SpaceToBatchND")
def _(op, grad):
    return [rearranging.batch_to_space_nd(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("BatchToSpaceND")
def _(op, grad):
    return [rearranging.space_to_batch_nd(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("SpaceToDepth")
def _(op, grad):
    return [rearranging.depth_to_space(grad, op.get_attr("block_size"), data_format=op.get_attr("data_format"))]


@gradient("DepthToSpace")
def _(op, grad):
    return [rearranging.space_to_depth(grad, op.get_attr("block_size"), data_format=op.get_attr("data_format"))]


@gradient("ExtractImagePatches")
def _(op, grad):
    # Patches of an image of pixel numbers say which pixel each place of a patch came from; 0 is the padding.
    images = op.inputs[0]
    shape = array.shape(images)
    batch, height, width, depth = (shape[i] for i in (0, 1, 2, 3))
    pixels = height * width
    numbers = array.reshape(range(1, pixels + 1), joining.stack([1, height, width, 1]))
    attrs = {name: op.get_attr(name) for name in ("ksizes", "strides", "rates", "padding")}
    sources = apply_op("ExtractImagePatches", images=numbers, **attrs)
    rows = array.reshape(sources, [-1])
    by_place = rearranging.transpose(array.reshape(grad, joining.stack([batch, -1, depth])), [1, 0, 2])
    sums = apply_op("UnsortedSegmentSum", data=by_place, segment_ids=rows, num_segments=pixels + 1)
    by_pixel = rearranging.transpose(sums[1:], [1, 0, 2])
    return [array.reshape(by_pixel, shape)]


# -- diagonals


@gradient("Diag")
def _(op, grad):
    return [diagonals.diag_part(grad)]


@gradient("DiagPart")
def _(op, grad):
    return [diagonals.diag(grad)]


@gradient("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def _(op, grad):
    part = diagonals.matrix_diag_part(grad, k=_diagonal(op, 1), align=_alignment(op))
    return [part, *[None] * (len(op.inputs) - 1)]


@gradient("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def _(op, grad):
    zeros = filling.zeros_like(op.inputs[0])
    whole = diagonals.matrix_set_diag(zeros, grad, k=_diagonal(op, 1), align=_alignment(op))
    return [whole, *[None] * (len(op.inputs) - 1)]


@gradient("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def _(op, grad):
    where = {"k": _diagonal(op, 2), "align": _alignment(op)}
    rest = diagonals.matrix_set_diag(grad, filling.zeros_like(op.inputs[1]), **where)
    return [rest, diagonals.matrix_diag_part(grad, **where), *[None] * (len(op.inputs) - 2)]


def _diagonal(op, index):
    """Which diagonals an op is about: the main one where it has no input of that."""
    return op.inputs[index] if len(op.inputs) > index else 0


def _alignment(op):
    return op.get_attr("align").decode() if op.type.endswith("V3") else "LEFT_LEFT"


@gradient("MatrixBandPart")
def _(op, grad):
    return [diagonals.matrix_band_part(grad, op.inputs[1], op.inputs[2]), None, None]


# -- gathering and scattering


@gradient("Gather")
def _(op, grad):
    return [_gathered_rows(op, grad), None]


@gradient("GatherV2")
def _(op, grad):
    axis, batch_dims = constant_value(op.inputs[2]), op.get_attr("batch_dims")
    if axis is not None and int(axis) == 0 and batch_dims == 0:
        return [_gathered_rows(op, grad), None, None]
    rank = array.rank(op.inputs[0]) if op.inputs[0].shape.ndims is None else op.inputs[0].shape.ndims
    position = floormod(cast(op.inputs[2] if axis is None else axis, dtypes.int32), rank)
    return [_gathered_along(op, grad, position, batch_dims), None, None]


def _gathered_rows(op: Any, grad: Any) -> IndexedSlices:
    params, indices = op.inputs[0], op.inputs[1]
    # With the variable, so that its shape, not its value, goes to where the gradient is computed.
    with colocate_with(params):
        params_shape = array.shape(params, out_type=dtypes.int64 if indices.dtype == dtypes.int64 else dtypes.int32)
    count = array.size(indices, out_type=params_shape.dtype)  # not -1: the rows may be empty
    values = array.reshape(grad, joining.concat([[count], params_shape[1:]], 0))
    return IndexedSlices(values, array.reshape(indices, [-1]), params_shape)


def _gathered_along(op: Any, grad: Any, axis: Any, batch_dims: int) -> Tensor:
    """Sums the slices of each index, with all batch dimensions as one, and all those before and after the axis."""
    params, indices = op.inputs[0], op.inputs[1]
    if batch_dims < 0:
        if indices.shape.ndims is None:
            raise ValueError("The gradient of a gather with negative batch_dims needs the static rank of the indices.")
        batch_dims += indices.shape.ndims
    shape = array.shape(params)
    size = shape[axis]
    batches, outer, inner = (
        reduce_prod(part) for part in (shape[:batch_dims], shape[batch_dims:axis], shape[axis + 1 :])
    )
    picked = reduce_prod(array.shape(indices)[batch_dims:])
    slices = rearranging.transpose(array.reshape(grad, joining.stack([batches, outer, picked, inner])), [0, 2, 1, 3])
    starts = array.reshape(range(0, batches) * size, [-1, 1])
    rows = array.reshape(cast(indices, dtypes.int32), joining.stack([batches, picked])) + starts
    sums = apply_op("UnsortedSegmentSum", data=slices, segment_ids=rows, num_segments=batches * size)
    whole = rearranging.transpose(array.reshape(sums, joining.stack([batches, size, outer, inner])), [0, 2, 1, 3])
    return array.reshape(whole, shape)


@gradient("GatherNd")
def _(op, grad):
    params, indices = op.inputs
    return [gathering.scatter_nd(indices, grad, array.shape(params, out_type=indices.dtype)), None]


@gradient("ScatterNd")
def _(op, grad):
    return [None, gathering.gather_nd(grad, op.inputs[0]), None]


@gradient("ScatterNdNonAliasingAdd", "TensorScatterAdd")
def _(op, grad):
    return [grad, None, gathering.gather_nd(grad, op.inputs[1])]


@gradient("TensorScatterSub")
def _(op, grad):
    return [grad, None, negative(gathering.gather_nd(grad, op.inputs[1]))]


@gradient("TensorScatterUpdate")
def _(op, grad):
    rest = gathering.tensor_scatter_update(grad, op.inputs[1], filling.zeros_like(op.inputs[2]))
    return [rest, None, gathering.gather_nd(grad, op.inputs[1])]


@gradient("TensorScatterMax", "TensorScatterMin")
def _(op, grad):
    """Where several are the extreme, each has an equal part."""
    tensor, indices, updates = op.inputs
    extreme = op.outputs[0]
    is_tensor = cast(apply_op("Equal", x=tensor, y=extreme), grad.dtype)
    is_update = cast(apply_op("Equal", x=updates, y=gathering.gather_nd(extreme, indices)), grad.dtype)
    count = is_tensor + gathering.scatter_nd(indices, is_update, array.shape(tensor, out_type=indices.dtype))
    part = grad / count
    return [is_tensor * part, None, is_update * gathering.gather_nd(part, indices)]


@gradient("DynamicStitch", "ParallelDynamicStitch")
def _(op, grad):
    indices = list(op.inputs[: op.get_attr("N")])
    return [None] * len(indices) + [gathering.gather(grad, index) for index in indices]


@gradient("DynamicPartition")
def _(op, *grads):
    data, partitions = op.inputs
    prefix = array.shape(partitions)
    places = array.reshape(range(reduce_prod(prefix)), prefix)
    by_partition = gathering.dynamic_partition(places, partitions, op.get_attr("num_partitions"))
    joined = gathering.dynamic_stitch(by_partition, list(grads))
    return [array.reshape(joined, array.shape(data)), None]


# -- choosing


@gradient("Select")
def _(op, grad):
    condition = op.inputs[0]
    zeros = filling.zeros_like(op.inputs[1])
    return [None, searching.where(condition, grad, zeros), searching.where(condition, zeros, grad)]


@gradient("SelectV2")
def _(op, grad):
    condition, then, otherwise = op.inputs
    zero = filling.zeros([], grad.dtype.base_dtype)
    return [
        None,
        _summed_to(searching.where_v2(condition, grad, zero), array.shape(then)),
        _summed_to(searching.where_v2(condition, zero, grad), array.shape(otherwise)),
    ]


not_differentiable(
    "DataFormatDimMap", "DataFormatVecPermute", "EditDistance", "InplaceAdd", "InplaceSub", "InplaceUpdate",
    "UnravelIndex", "_ParallelConcatStart", "_ParallelConcatUpdate",
)  # fmt: skip
