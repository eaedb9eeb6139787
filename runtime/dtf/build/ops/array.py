"""Array ops: their public functions, TensorFlow 1.x's names and signatures, and their static shapes.

Owns making, reshaping, joining, slicing, gathering, scattering and rearranging tensors. Arithmetic is `ops/math.py`;
what the ops
compute is `kernels/array.py`; their gradients are `ops/array_grad.py`.

Reader's order: public functions by theme, then the shape rules in the same order.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf (the array functions of the tf namespace)
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant, constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import name_scope
from dtf.build.shape_rules import broadcast, broadcast_shape, scalar, shape_rule, unchanged, unknown
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.slicing import slice_index, sliced_shape
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = [
    "batch_gather",
    "batch_to_space",
    "batch_to_space_nd",
    "bitcast",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "check_numerics",
    "concat",
    "constant",
    "depth_to_space",
    "diag",
    "diag_part",
    "dynamic_partition",
    "dynamic_stitch",
    "ensure_shape",
    "expand_dims",
    "extract_image_patches",
    "fill",
    "gather",
    "gather_nd",
    "guarantee_const",
    "identity",
    "identity_n",
    "invert_permutation",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
    "matrix_transpose",
    "meshgrid",
    "newaxis",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "parallel_stack",
    "placeholder",
    "placeholder_with_default",
    "rank",
    "required_space_to_batch_paddings",
    "reshape",
    "reverse",
    "reverse_sequence",
    "reverse_v2",
    "roll",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "setdiff1d",
    "shape",
    "shape_n",
    "size",
    "slice",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_mask",
    "sparse_placeholder",
    "split",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "tensor_scatter_add",
    "tensor_scatter_sub",
    "tensor_scatter_update",
    "tile",
    "transpose",
    "unique",
    "unique_with_counts",
    "unstack",
    "where",
    "where_v2",
    "zeros",
    "zeros_like",
]

newaxis = None

# Up to this many elements zeros() and ones() are constants of the graph rather than ops.
_CONSTANT_ELEMENTS_MAX = 1000


# -- placeholders and identities


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed. `shape`: what fed values must fit; None: anything.

    Running it unfed raises InvalidArgumentError.
    """
    return apply_op("Placeholder", name, dtype=dtypes.as_dtype(dtype), shape=as_shape(shape))


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input`, unless something else of that `shape` is fed."""
    return apply_op("PlaceholderWithDefault", name, input=input, shape=as_shape(shape))


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor that must be fed (with a SparseTensorValue, or a tuple of indices, values, shape)."""
    name = f"{name}/" if name else ""
    known = None if shape is None or not as_shape(shape).is_fully_defined() else as_shape(shape).as_list()
    rank_ = None if shape is None else as_shape(shape).ndims
    if known is None:
        dense_shape = placeholder(dtypes.int64, [rank_], name=f"{name}shape" if name else None)
    else:
        dense_shape = constant(known, dtypes.int64, name=f"{name}shape" if name else "Const")
    return SparseTensor(
        indices=placeholder(dtypes.int64, [None, rank_], name=f"{name}indices" if name else None),
        values=placeholder(dtype, [None], name=f"{name}values" if name else None),
        dense_shape=dense_shape,
    )


def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor with the value of `input`: a name, a device or a control dependency of its own for it."""
    return apply_op("Identity", name, input=input)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """`identity` of several tensors at once: none of them is ready before all are."""
    return list(apply_op("IdentityN", name, input=input))


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The value of `input`, seen as a constant by gradients."""
    return apply_op("StopGradient", name, input=input)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """The value of `input`, with the promise that it never changes."""
    return apply_op("GuaranteeConst", name, input=input)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """`tensor` itself; InvalidArgumentError with `message` when it holds an infinity or a NaN."""
    return apply_op("CheckNumerics", name, tensor=tensor, message=message)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, known to be of `shape`; InvalidArgumentError when it is not."""
    return apply_op("EnsureShape", name, input=x, shape=as_shape(shape))


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bytes of `input` read as another dtype; a last dimension comes or goes with the element size."""
    return apply_op("Bitcast", name, input=input, type=dtypes.as_dtype(type))


# -- shapes


def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The shape of `input` as a vector; a constant when it is known statically."""
    return _shape(input, name, out_type)


def _shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    with name_scope(name, "Shape", [input]) as scope:
        if isinstance(input, SparseTensor):
            return _cast(input.dense_shape, out_type)
        tensor = convert_to_tensor(input)
        if tensor.shape.is_fully_defined():
            return constant(tensor.shape.as_list(), out_type, name=scope)
        return apply_op("Shape", scope, input=tensor, out_type=dtypes.as_dtype(out_type))


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return list(apply_op("ShapeN", name, input=input, out_type=dtypes.as_dtype(out_type)))


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements of `input`."""
    with name_scope(name, "Size", [input]) as scope:
        if isinstance(input, SparseTensor):
            return apply_op("Prod", scope, input=_cast(input.dense_shape, out_type), reduction_indices=[0])
        tensor = convert_to_tensor(input)
        elements = tensor.shape.num_elements()
        if elements is not None:
            return constant(elements, out_type, name=scope)
        return apply_op("Size", scope, input=tensor, out_type=dtypes.as_dtype(out_type))


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of `input`, an int32 scalar."""
    with name_scope(name, "Rank", [input]) as scope:
        if isinstance(input, SparseTensor):
            return apply_op("Size", scope, input=input.dense_shape)
        tensor = convert_to_tensor(input)
        if tensor.shape.ndims is not None:
            return constant(tensor.shape.ndims, dtypes.int32, name=scope)
        return apply_op("Rank", scope, input=tensor)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements of `tensor` in row-major order under another shape; one size may be -1: what is left."""
    return apply_op("Reshape", name, tensor=tensor, shape=_shape_argument(shape))


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Removes the dimensions of size 1: all, or those in `axis`."""
    axis = squeeze_dims if axis is None else axis
    axes = [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]
    return apply_op("Squeeze", name, input=input, squeeze_dims=[int(one) for one in axes])


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Inserts a dimension of size 1 before dimension `axis` (negative: from the end)."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply_op("ExpandDims", name, input=input, dim=axis)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated to `shape` by numpy's rule."""
    return apply_op("BroadcastTo", name, input=input, shape=_shape_argument(shape))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The vector of the shape to which two shapes broadcast."""
    return apply_op("BroadcastArgs", s0=shape_x, s1=shape_y)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The same for static shapes. Raises ValueError when they do not broadcast."""
    return broadcast_shape(shape_x, shape_y)


# -- making tensors


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims`, each element `value`."""
    return apply_op("Fill", name, dims=_shape_argument(dims), value=value)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Zeros (False, empty strings) of that shape."""
    return _filled(shape, dtypes.as_dtype(dtype), 0, name, "zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Ones (True) of that shape."""
    return _filled(shape, dtypes.as_dtype(dtype), 1, name, "ones")


def _filled(shape: Any, dtype: Any, number: int, name: str | None, default_name: str) -> Tensor:
    dtype = dtype.base_dtype
    value: Any = b"" if dtype == dtypes.string else bool(number) if dtype == dtypes.bool else number
    with name_scope(name, default_name, [shape] if isinstance(shape, Tensor) else []) as scope:
        if not isinstance(shape, Tensor):
            static = _static_dims(shape)
            if static is not None and math.prod(static) < _CONSTANT_ELEMENTS_MAX:
                return constant(value if math.prod(static) else [], dtype, shape=static, name=scope)
            shape = _shape_argument(shape)
        return apply_op("Fill", scope, dims=shape, value=constant(value, dtype))


def _static_dims(shape: Any) -> list[int] | None:
    """A shape given as Python numbers, a TensorShape or an array, or None when a tensor is among the sizes."""
    if isinstance(shape, TensorShape):
        if not shape.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {shape}")
        return shape.as_list()  # type: ignore[return-value]
    if isinstance(shape, (int, np.integer)):
        return [int(shape)]
    sizes = list(shape)
    if any(isinstance(one, Tensor) or hasattr(one, "_as_graph_element") for one in sizes):
        return None
    return [int(one) for one in sizes]


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros of the shape (and dtype, unless given) of `tensor`."""
    return _like(tensor, dtype, name, optimize, "zeros_like", "ZerosLike", zeros)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones of the shape (and dtype, unless given) of `tensor`."""
    return _like(tensor, dtype, name, optimize, "ones_like", "OnesLike", ones)


def _like(
    tensor: Any, dtype: Any, name: str | None, optimize: bool, default_name: str, op_type: str, make: Any
) -> Tensor:
    with name_scope(name, default_name, [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        wanted = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)
        if optimize and tensor.shape.is_fully_defined() and wanted != dtypes.variant:
            return make(tensor.shape, wanted, name=scope)
        if wanted != tensor.dtype.base_dtype:
            return make(_shape(tensor), wanted, name=scope)
        if op_type == "OnesLike":
            return apply_op("OnesLike", scope, x=tensor)
        return apply_op("ZerosLike", scope, x=tensor)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """`on_value` at the place that each index names along a new dimension of size `depth`, `off_value` elsewhere.

    An index outside of [0, depth) names no place. The dtype is that of the values, float32 without any.
    """
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        given = [value for value in (on_value, off_value) if value is not None]
        if dtype is None:
            dtype = convert_to_tensor(given[0]).dtype.base_dtype if given else dtypes.float32
        on = convert_to_tensor(1 if on_value is None else on_value, dtype, name="on_value")
        off = convert_to_tensor(0 if off_value is None else off_value, dtype, name="off_value")
        return apply_op(
            "OneHot", scope, indices=indices, depth=depth, on_value=on, off_value=off, axis=-1 if axis is None else axis
        )


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None) -> Tensor:
    """For each length n a row of `maxlen` values of which the first n are True. Shape: lengths.shape + [maxlen]."""
    with name_scope(name, "SequenceMask", [lengths]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            longest = apply_op("Max", input=reshape(lengths, [-1]), reduction_indices=[0])
            maxlen = apply_op("Maximum", x=constant(0, longest.dtype), y=longest)
        else:
            maxlen = convert_to_tensor(maxlen)
        positions = apply_op("Range", start=constant(0, maxlen.dtype), limit=maxlen, delta=constant(1, maxlen.dtype))
        row = _cast(positions, lengths.dtype)
        mask = apply_op("Less", x=row, y=expand_dims(lengths, -1))
        return mask if dtypes.as_dtype(dtype) == dtypes.bool else _cast(mask, dtype)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Coordinate arrays of a grid over the given vectors, as numpy.meshgrid."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    with name_scope(name, "meshgrid", args):
        count = len(args)
        columns = [reshape(stack([arg]), [1] * i + [-1] + [1] * (count - i - 1)) for i, arg in enumerate(args)]
        sizes = [size(arg) for arg in args]
        if indexing == "xy" and count > 1:
            columns[0] = reshape(columns[0], [1, -1] + [1] * (count - 2))
            columns[1] = reshape(columns[1], [-1, 1] + [1] * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        return [broadcast_to(column, stack(sizes)) for column in columns]


# -- joining and splitting


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Joins tensors along an existing dimension; their other dimensions are equal."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        return identity(values[0], name=name)
    return apply_op("ConcatV2", name, values=list(values), axis=axis)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Joins tensors of one shape along a new dimension `axis`."""
    if axis == 0 and not any(isinstance(value, Tensor) or hasattr(value, "_as_graph_element") for value in values):
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    values = list(unstack(values) if isinstance(values, Tensor) else values)
    return apply_op("Pack", name, values=values, axis=axis)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """`stack` along dimension 0 of tensors whose shapes are known."""
    tensors = [expand_dims(value, 0) for value in values]
    whole = TensorShape([len(tensors)]).concatenate(tensors[0].shape[1:])
    return apply_op("ParallelConcat", name, values=tensors, shape=whole)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices of `value` along dimension `axis`, which they lose.

    Raises:
      ValueError: `num` is not given and cannot be told from the shape.
    """
    value = convert_to_tensor(value)
    if num is None:
        dims = value.shape.as_list() if value.shape.ndims is not None else None
        if dims is not None and not -len(dims) <= axis < len(dims):
            raise ValueError(f"Argument `axis` = {axis} not in [{-len(dims)}, {len(dims)})")
        num = None if dims is None else dims[axis]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {value.shape}")
    return list(apply_op("Unpack", name, value=value, num=num, axis=axis))


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Cuts `value` along `axis`: into a number of equal pieces, or into pieces of the given sizes."""
    if isinstance(num_or_size_splits, (int, np.integer)):
        return list(apply_op("Split", name, split_dim=axis, value=value, num_split=int(num_or_size_splits)))
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.shape.ndims == 0:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument provided: "
            f"{num_or_size_splits}"
        )
    if num is None:
        num = sizes.shape.as_list()[0] if sizes.shape.ndims is not None else None
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {sizes.shape}")
    return list(apply_op("SplitV", name, value=value, size_splits=sizes, split_dim=axis, num_split=num))


# -- slicing


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The block of `size` elements per dimension that starts at `begin`; a size of -1: to the end."""
    return apply_op("Slice", name, input=input_, begin=begin, size=size)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """`input_[begin:end:strides]` with a bit per entry in each mask; Tensor's square brackets come here.

    With `var`, a reference variable, the result has `.assign(value)`, which writes into that slice of it.
    """
    if strides is None:
        strides = ones_like(convert_to_tensor(begin))
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    sliced = apply_op("StridedSlice", name, input=input_, begin=begin, end=end, strides=strides, **masks)

    def assign(value: Any, name: str | None = None) -> Tensor:
        """Writes `value` into this slice of the variable; gives the variable."""
        if var is None:
            raise ValueError("Sliced assignment is only supported for variables")
        if getattr(var, "_is_resource", False) or not hasattr(var, "_ref"):
            return apply_op(
                "ResourceStridedSliceAssign",
                name,
                ref=var.handle,
                begin=begin,
                end=end,
                strides=strides,
                value=value,
                **masks,
            )
        return apply_op(
            "StridedSliceAssign", name, ref=var._ref(), begin=begin, end=end, strides=strides, value=value, **masks
        )

    if var is not None:
        sliced.assign = assign
    return sliced


def slice_helper(tensor: Any, slice_spec: Any, var: Any = None) -> Tensor:
    """Tensor.__getitem__: integers, slices, None, Ellipsis, scalar tensors, or a tuple of them; a boolean mask.

    Raises:
      TypeError: anything else as an index.
    """
    if isinstance(slice_spec, Tensor) and slice_spec.dtype == dtypes.bool:
        return boolean_mask(tensor, slice_spec)
    if isinstance(slice_spec, (np.ndarray, list)) and np.asarray(slice_spec).dtype == np.bool_:
        return boolean_mask(tensor, slice_spec)
    entries = list(slice_spec) if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, entry in enumerate(entries):
        bit = 1 << i
        start, stop, step = 0, 0, 1
        if isinstance(entry, builtins.slice):
            if entry.start is None:
                masks["begin_mask"] |= bit
            if entry.stop is None:
                masks["end_mask"] |= bit
            start, stop, step = entry.start or 0, entry.stop, entry.step
            stop, step = (0 if stop is None else stop), (1 if step is None else step)
        elif entry is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif entry is None:
            masks["new_axis_mask"] |= bit
        else:
            _check_index(entry)
            start, stop = entry, entry + 1
            masks["shrink_axis_mask"] |= bit
        begin.append(start)
        end.append(stop)
        strides.append(step)
    with name_scope(None, "strided_slice", [tensor]) as scope:
        bounds = [_index_vector(entries) for entries in (begin, end, strides)]
        if any(vector.dtype == dtypes.int64 for vector in bounds):
            bounds = [_cast(vector, dtypes.int64) for vector in bounds]
        return strided_slice(tensor, bounds[0], bounds[1], bounds[2], var=var, name=scope, **masks)


def _check_index(entry: Any) -> None:
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        return
    dtype = getattr(entry, "dtype", None)
    if isinstance(dtype, dtypes.DType) and dtype.base_dtype.is_integer:
        return
    if isinstance(entry, np.ndarray) and entry.ndim == 0 and np.issubdtype(entry.dtype, np.integer):
        return
    if type(entry).__name__ == "Dimension":
        return
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors "
        "are valid "
        f"indices, got {entry!r}"
    )


def _index_vector(entries: list[Any]) -> Tensor:
    """The indices of one bound as a tensor; plain numbers make a constant of int32 (int64 where needed)."""
    if not entries:
        return constant([], dtypes.int32, shape=[0])
    if any(isinstance(entry, Tensor) or hasattr(entry, "_as_graph_element") for entry in entries):
        tensors = [convert_to_tensor(entry) for entry in entries if not isinstance(entry, (int, np.integer))]
        wanted = dtypes.int64 if any(tensor.dtype.base_dtype == dtypes.int64 for tensor in tensors) else dtypes.int32
        return apply_op("Pack", values=[_cast(convert_to_tensor(entry), wanted) for entry in entries])
    numbers = [int(entry) for entry in entries]
    return constant(numbers, dtypes.int32 if all(-(2**31) <= n < 2**31 for n in numbers) else dtypes.int64)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The slices of `tensor` where `mask` is True, in order.

    Args:
      tensor: [d0, d1, ...].
      mask: bool, of a known rank K >= 1; equal to dimensions axis ... axis + K - 1 of `tensor`.
      axis: where the mask applies; 0 by default.
    """
    with name_scope(name, values=[tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        if mask.shape.ndims == 0:
            raise ValueError("mask cannot be scalar.")
        if mask.shape.ndims is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. shape=[None] "
                "is ok, "
                "but shape=None is not."
            )
        at, masked = int(axis or 0), mask.shape.ndims
        tensor.shape[at : at + masked].assert_is_compatible_with(mask.shape)
        whole = _shape(tensor)
        count = apply_op("Prod", input=whole[at : at + masked], reduction_indices=[0])
        flat = reshape(tensor, concat([whole[:at], reshape(count, [1]), whole[at + masked :]], 0))
        known = tensor.shape[at : at + masked].num_elements()
        flat.set_shape(TensorShape(tensor.shape[:at]).concatenate([known]).concatenate(tensor.shape[at + masked :]))
        indices = squeeze(where(reshape(mask, [-1])), axis=[1])
        return gather(flat, indices, axis=at)


# -- gathering and scattering


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of `params` along `axis` that `indices` name.

    Shape: params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. An index outside of the
      dimension is an
    InvalidArgumentError. `axis` is `batch_dims` by default.
    """
    del validate_indices
    axis = batch_dims if axis is None else axis
    if not batch_dims and isinstance(axis, int) and axis == 0 and hasattr(params, "sparse_read"):
        return params.sparse_read(indices, name=name)
    return apply_op("GatherV2", name, params=params, indices=indices, axis=axis, batch_dims=batch_dims)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """`gather` along the last dimension of `indices`, all before it being batch dimensions."""
    indices = convert_to_tensor(indices)
    if indices.shape.ndims is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    return gather(params, indices, name=name, axis=indices.shape.ndims - 1, batch_dims=indices.shape.ndims - 1)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The slices of `params` that the vectors along the last dimension of `indices` name.

    Shape: indices.shape[:-1] + params.shape[indices.shape[-1]:].
    """
    if batch_dims:
        return _batch_gather_nd(params, indices, batch_dims, name)
    if hasattr(params, "gather_nd"):
        return params.gather_nd(indices, name=name)
    return apply_op("GatherNd", name, params=params, indices=indices)


def _batch_gather_nd(params: Any, indices: Any, batch_dims: int, name: str | None) -> Tensor:
    """Puts each element's place in the batch before its index vector."""
    with name_scope(name, "BatchGatherND", [params, indices]):
        indices = convert_to_tensor(indices)
        if indices.shape.ndims is None or batch_dims >= indices.shape.ndims:
            raise ValueError(f"batch_dims = {batch_dims} must be less than rank(indices) = {indices.shape.ndims}")
        whole = _shape(indices)
        leading = [whole[i] for i in range(indices.shape.ndims - 1)]
        parts = []
        for i in range(batch_dims):
            steps = apply_op("Range", start=0, limit=whole[i], delta=1)
            steps = reshape(steps, [1] * i + [-1] + [1] * (indices.shape.ndims - 1 - i))
            parts.append(_cast(broadcast_to(steps, stack([*leading, 1])), indices.dtype))
        return apply_op("GatherNd", params=params, indices=concat([*parts, indices], -1))


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape` with `updates` added at the index vectors; equal vectors add up."""
    return apply_op("ScatterNd", name, indices=indices, updates=updates, shape=shape)


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """`tensor` with the slices at the index vectors replaced."""
    return apply_op("TensorScatterUpdate", name, tensor=tensor, indices=indices, updates=updates)


def tensor_scatter_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """`tensor` with `updates` added at the index vectors."""
    return apply_op("TensorScatterAdd", name, tensor=tensor, indices=indices, updates=updates)


def tensor_scatter_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """`tensor` with `updates` subtracted at the index vectors."""
    return apply_op("TensorScatterSub", name, tensor=tensor, indices=indices, updates=updates)


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """`a` without the slices at `mask_indices`."""
    with name_scope(name, "sparse_mask", [a.values, a.indices, mask_indices]):
        kept, places = setdiff1d(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, places), kept, a.dense_shape)


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Puts data[m][i, ...] at row indices[m][i] of the result; of equal rows the last one stays."""
    return apply_op("DynamicStitch", name, indices=list(indices), data=list(data))


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """The rows of `data` by the number in `partitions`, one tensor for each of [0, num_partitions)."""
    return list(apply_op("DynamicPartition", name, data=data, partitions=partitions, num_partitions=num_partitions))


# -- padding and rearranging


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """`tensor` with paddings[d] = (before, after) elements added to each dimension.

    mode: CONSTANT (of `constant_values`), REFLECT (mirrored without the border) or SYMMETRIC (with it).
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if isinstance(constant_values, Tensor) or constant_values != 0:
            return apply_op("PadV2", name, input=tensor, paddings=paddings, constant_values=constant_values)
        return apply_op("Pad", name, input=tensor, paddings=paddings)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Unknown padding mode: {mode}")
    return apply_op("MirrorPad", name, input=tensor, paddings=paddings, mode=mode)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` repeated multiples[d] times along each dimension."""
    return apply_op("Tile", name, input=input, multiples=multiples)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Dimension i of the result is dimension perm[i] of `a`; without `perm` their order is reversed."""
    with name_scope(name, "transpose", [a]) as scope:
        op_type = "ConjugateTranspose" if conjugate else "Transpose"
        a = convert_to_tensor(a, name="a")
        if perm is None:
            if a.shape.ndims is not None:
                perm = constant(list(range(a.shape.ndims))[::-1], dtypes.int32, shape=[a.shape.ndims])
            else:
                last = apply_op("Sub", x=rank(a), y=1)
                perm = apply_op("Sub", x=last, y=apply_op("Range", start=0, limit=rank(a), delta=1))
        return apply_op(op_type, scope, x=a, perm=perm)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Swaps the last two dimensions."""
    with name_scope(name, "matrix_transpose", [a]):
        a = convert_to_tensor(a, name="a")
        dims = a.shape.ndims
        if dims is None:
            order = apply_op("Range", start=0, limit=rank(a), delta=1)
            perm: Any = concat([order[:-2], order[-1:], order[-2:-1]], 0)
        else:
            if dims < 2:
                raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = {a}")
            perm = [*range(dims - 2), dims - 1, dims - 2]
        return transpose(a, perm, conjugate=conjugate)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """`tensor` with the dimensions in the vector `axis` turned round."""
    return apply_op("ReverseV2", name, tensor=tensor, axis=axis)


reverse_v2 = reverse


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """For each slice i along the batch dimension turns the first seq_lengths[i] steps round, and leaves the rest."""
    along = seq_dim if seq_axis is None else seq_axis
    batch = batch_dim if batch_axis is None else batch_axis
    if along is None:
        raise ValueError("seq_axis must be given")
    return apply_op(
        "ReverseSequence",
        name,
        input=input,
        seq_lengths=seq_lengths,
        seq_dim=along,
        batch_dim=0 if batch is None else batch,
    )


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Shifts along each axis; what leaves at one end comes back at the other."""
    return apply_op("Roll", name, input=input, shift=shift, axis=axis)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The y with y[x[i]] = i."""
    return apply_op("InvertPermutation", name, x=x)


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Pads, cuts the spatial dimensions into blocks, and moves the places within a block into the batch."""
    return apply_op("SpaceToBatchND", name, input=input, block_shape=block_shape, paddings=paddings)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch_nd`, cropping instead of padding."""
    return apply_op("BatchToSpaceND", name, input=input, block_shape=block_shape, crops=crops)


def space_to_batch(
    input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """`space_to_batch_nd` of images [batch, height, width, depth] with square blocks."""
    block = block_shape if block_shape is not None else [block_size, block_size]
    return space_to_batch_nd(input, block, paddings, name)


def batch_to_space(
    input: Any, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """`batch_to_space_nd` to images [batch, height, width, depth] with square blocks."""
    block = block_shape if block_shape is not None else [block_size, block_size]
    return batch_to_space_nd(input, block, crops, name)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings and crops, each [N, 2], with which `space_to_batch_nd` divides evenly and can be undone.

    Args:
      input_shape: int32 [N], known; the spatial sizes.
      block_shape: int32 [N], known.
      base_paddings: int32 [N, 2], at least this much padding; none by default.
    """
    with name_scope(name, "required_space_to_batch_paddings"):
        sizes, block = (np.asarray(constant_value(convert_to_tensor(each))) for each in (input_shape, block_shape))
        if sizes.dtype == object or block.dtype == object:
            raise ValueError("input_shape and block_shape must be known statically")
        base = np.zeros((len(block), 2), np.int32)
        if base_paddings is not None:
            base = np.asarray(constant_value(convert_to_tensor(base_paddings)), np.int32)
        extra = (-(sizes + base.sum(axis=1))) % block
        paddings = np.stack([base[:, 0], base[:, 1] + extra], axis=1)
        crops = np.stack([np.zeros_like(extra), extra], axis=1)
        return constant(paddings, dtypes.int32, name="paddings"), constant(crops, dtypes.int32, name="crops")


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves blocks of pixels into the depth: [b, h, w, d] -> [b, h/s, w/s, d*s*s]."""
    return apply_op("SpaceToDepth", name, input=input, block_size=block_size, data_format=data_format)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """The inverse of `space_to_depth`."""
    return apply_op("DepthToSpace", name, input=input, block_size=block_size, data_format=data_format)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Patches of [batch, height, width, depth] images, each flattened into the depth of its output pixel."""
    return apply_op(
        "ExtractImagePatches",
        name,
        images=images,
        ksizes=list(ksizes if sizes is None else sizes),
        strides=list(strides),
        rates=list(rates),
        padding=padding,
    )


# -- diagonals


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` where both halves of the index agree, zeros elsewhere."""
    return apply_op("Diag", name, diagonal=diagonal)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The inverse of `diag`."""
    return apply_op("DiagPart", name, input=input)


def matrix_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Square matrices with the given diagonals: [..., n] -> [..., n, n]."""
    return apply_op("MatrixDiag", name, diagonal=diagonal)


def matrix_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The main diagonals of matrices: [..., m, n] -> [..., min(m, n)]."""
    return apply_op("MatrixDiagPart", name, input=input)


def matrix_set_diag(input: Any, diagonal: Any, name: str | None = None) -> Tensor:
    """Matrices with their main diagonals replaced."""
    return apply_op("MatrixSetDiag", name, input=input, diagonal=diagonal)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside the band of that many sub- and superdiagonals (negative: all of them)."""
    lower = convert_to_tensor(num_lower)
    upper = convert_to_tensor(num_upper, lower.dtype) if not isinstance(num_upper, Tensor) else num_upper
    return apply_op("MatrixBandPart", name, input=input, num_lower=lower, num_upper=upper)


# -- choosing and searching


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Without `x` and `y` the coordinates [n, rank] (int64) of the true elements; else each element from `x` or `y`.

    `condition` has their shape, or is a vector that chooses rows, or a scalar.
    """
    if x is None and y is None:
        return apply_op("Where", name, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op("Select", name, condition=condition, t=x, e=y)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """As `where`, but the three broadcast against each other."""
    if x is None and y is None:
        return apply_op("Where", name, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op("SelectV2", name, condition=condition, t=x, e=y)


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx): the distinct values of a vector in order of their first occurrence, and each value's place among
    them.
    """
    return apply_op("Unique", name, x=x, out_idx=dtypes.as_dtype(out_idx))


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx, count): as `unique`, and how often each value occurs."""
    return apply_op("UniqueWithCounts", name, x=x, out_idx=dtypes.as_dtype(out_idx))


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """(out, idx): the values of vector `x` that are not in `y`, and their places in `x`."""
    return apply_op("ListDiff", name, x=x, y=y, out_idx=dtypes.as_dtype(index_dtype))


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """For each value the place where it keeps the last dimension of `sorted_sequence` sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left', got {side!r}")
    with name_scope(name, "searchsorted", [sorted_sequence, values]):
        sorted_sequence, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
        rows = reshape(sorted_sequence, stack([-1, _shape(sorted_sequence)[-1]]))
        wanted = reshape(values, stack([-1, _shape(values)[-1]]))
        found = apply_op(
            "LowerBound" if side == "left" else "UpperBound",
            sorted_inputs=rows,
            values=wanted,
            out_type=dtypes.as_dtype(out_type),
        )
        return reshape(found, _shape(values))


def _cast(value: Any, dtype: Any) -> Tensor:
    """`value` as `dtype`, without an op when it already is."""
    tensor = convert_to_tensor(value)
    wanted = dtypes.as_dtype(dtype).base_dtype
    return tensor if tensor.dtype.base_dtype == wanted else apply_op("Cast", x=tensor, DstT=wanted)


def _shape_argument(shape: Any) -> Any:
    """A shape as apply_op takes it: sizes may be numbers, Dimensions or scalar tensors."""
    if isinstance(shape, TensorShape):
        return constant(_static_dims(shape), dtypes.int32, shape=[shape.ndims])
    if isinstance(shape, (list, tuple)):
        if not shape:
            return constant([], dtypes.int32, shape=[0])
        if not any(isinstance(one, Tensor) for one in shape):
            return [one if isinstance(one, (np.ndarray, np.generic)) else int(one) for one in shape]
        wide = any(isinstance(one, Tensor) and one.dtype == dtypes.int64 for one in shape)
        return stack([_cast(convert_to_tensor(one), dtypes.int64 if wide else dtypes.int32) for one in shape])
    return shape


# -- shape rules

_NEVER_CHANGED = (
    "Identity Snapshot StopGradient PreventGradient CheckNumerics GuaranteeConst DeepCopy ZerosLike OnesLike "
    "RefIdentity "
    "Reverse MatrixBandPart InvertPermutation StridedSliceAssign TensorStridedSliceUpdate ScatterNdNonAliasingAdd "
    "TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin"
)
shape_rule(*_NEVER_CHANGED.split())(unchanged)
shape_rule("SelectV2")(broadcast)
shape_rule("Rank", "Size")(scalar)
shape_rule("Where")(lambda op: [TensorShape([None, op.inputs[0].shape.ndims])])


def _dims(tensor: Tensor) -> list[int | None] | None:
    """The static sizes of a tensor, or None when not even their number is known."""
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def _scalar_value(tensor: Tensor) -> int | None:
    """The value of a constant scalar tensor as an int."""
    value = constant_value(tensor)
    return None if value is None else int(np.reshape(value, ()))


def _axis_in(axis: int, rank: int, what: str = "axis") -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"{what} {axis} is out of range [{-rank}, {rank})")
    return axis % rank


@shape_rule("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "ParallelConcat")
def _(op):
    return [op.get_attr("shape")]


@shape_rule("EnsureShape")
def _(op):
    return [op.inputs[0].shape.merge_with(op.get_attr("shape"))]


@shape_rule("IdentityN")
def _(op):
    return [tensor.shape for tensor in op.inputs]


@shape_rule("Shape")
def _(op):
    return [TensorShape([op.inputs[0].shape.ndims])]


@shape_rule("ShapeN")
def _(op):
    return [TensorShape([tensor.shape.ndims]) for tensor in op.inputs]


@shape_rule("Bitcast")
def _(op):
    dims = _dims(op.inputs[0])
    before, after = op.inputs[0].dtype.size, op.get_attr("type").size
    if dims is None:
        return unknown(op)
    if after > before:
        if not dims or dims[-1] not in (None, after // before):
            raise ValueError(
                f"Cannot bitcast due to shape. {dims[-1] if dims else 'a scalar'} does not match {after // before}"
            )
        return [TensorShape(dims[:-1])]
    return [TensorShape([*dims, before // after] if after < before else dims)]


@shape_rule("Reshape")
def _(op):
    wanted = constant_value_as_shape(op.inputs[1])
    if wanted.ndims is None:
        return [wanted]
    dims = wanted.as_list()
    elements = op.inputs[0].shape.num_elements()
    unknown_at = [i for i, dim in enumerate(dims) if dim is None]
    product = math.prod(dim for dim in dims if dim is not None)
    if elements is None:
        return [wanted]
    value = constant_value(op.inputs[1])
    if not unknown_at:
        if product != elements:
            raise ValueError(f"Cannot reshape a tensor with {elements} elements to shape {wanted} ({product} elements)")
    elif len(unknown_at) == 1 and product:
        if elements % product:
            raise ValueError(
                f"Cannot reshape a tensor with {elements} elements to shape {wanted}: {elements} is not divisible "
                f"by {product}"
            )
        dims[unknown_at[0]] = elements // product
    elif value is not None and len(unknown_at) > 1:
        raise ValueError(f"Only one size of a shape may be -1, not {len(unknown_at)}: {value.tolist()}")
    return [TensorShape(dims)]


@shape_rule("Squeeze")
def _(op):
    dims, axes = _dims(op.inputs[0]), op.get_attr("squeeze_dims")
    if dims is None:
        return unknown(op)
    if not axes:
        if None in dims:
            return unknown(op)
        return [TensorShape([dim for dim in dims if dim != 1])]
    removed = {_axis_in(axis, len(dims), "squeeze dimension") for axis in axes}
    for axis in removed:
        if dims[axis] not in (None, 1):
            raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
    return [TensorShape([dim for axis, dim in enumerate(dims) if axis not in removed])]


@shape_rule("ExpandDims")
def _(op):
    dims, axis = _dims(op.inputs[0]), _scalar_value(op.inputs[1])
    if dims is None:
        return unknown(op)
    if axis is None:
        return [TensorShape([None] * (len(dims) + 1))]
    at = _axis_in(axis, len(dims) + 1, "dim")
    return [TensorShape([*dims[:at], 1, *dims[at:]])]


@shape_rule("BroadcastTo")
def _(op):
    return [constant_value_as_shape(op.inputs[1])]


@shape_rule("BroadcastArgs")
def _(op):
    sizes = [tensor.shape.with_rank(1).as_list()[0] for tensor in op.inputs]
    return [TensorShape([None if None in sizes else max(sizes)])]


@shape_rule("BroadcastGradientArgs")
def _(op):
    return [TensorShape([None])] * 2


@shape_rule("Fill", "Empty")
def _(op):
    return [constant_value_as_shape(op.inputs[0])]


@shape_rule("OneHot")
def _(op):
    dims, depth, axis = _dims(op.inputs[0]), _scalar_value(op.inputs[1]), op.get_attr("axis")
    if dims is None:
        return unknown(op)
    at = _axis_in(axis, len(dims) + 1)
    return [TensorShape([*dims[:at], depth, *dims[at:]])]


@shape_rule("Concat", "ConcatV2")
def _(op):
    first, last = list(op.inputs[:1]), list(op.inputs[-1:])
    values, (axis_tensor,) = (op.inputs[1:], first) if op.type == "Concat" else (op.inputs[:-1], last)
    known = [tensor.shape for tensor in values if tensor.shape.ndims is not None]
    if not known:
        return unknown(op)
    rank, axis = known[0].ndims, _scalar_value(axis_tensor)
    for shape in known:
        if shape.ndims != rank:
            raise ValueError(f"Shapes must be equal rank, but are {known[0].ndims} and {shape.ndims}")
    if axis is None:
        return [TensorShape([None] * rank)]
    at = _axis_in(axis, rank, "concat dimension")
    merged = TensorShape([None] * rank)
    for shape in known:
        sizes = shape.as_list()
        sizes[at] = None
        merged = merged.merge_with(sizes)
    dims = merged.as_list()
    lengths = [shape.as_list()[at] for shape in known]
    dims[at] = None if len(known) < len(values) or None in lengths else sum(lengths)
    return [TensorShape(dims)]


@shape_rule("ConcatOffset")
def _(op):
    return [tensor.shape for tensor in op.inputs[1:]]


@shape_rule("Pack")
def _(op):
    merged = TensorShape(None)
    for tensor in op.inputs:
        merged = merged.merge_with(tensor.shape)
    if merged.ndims is None:
        return unknown(op)
    at = _axis_in(op.get_attr("axis"), merged.ndims + 1)
    dims = merged.as_list()
    return [TensorShape([*dims[:at], len(op.inputs), *dims[at:]])]


@shape_rule("Unpack")
def _(op):
    dims, count = _dims(op.inputs[0]), op.get_attr("num")
    if dims is None:
        return unknown(op)
    at = _axis_in(op.get_attr("axis"), len(dims))
    if dims[at] not in (None, count):
        raise ValueError(f"Dimension must be {count} but is {dims[at]}")
    return [TensorShape(dims[:at] + dims[at + 1 :])] * count


@shape_rule("Split")
def _(op):
    dims, axis, count = _dims(op.inputs[1]), _scalar_value(op.inputs[0]), op.get_attr("num_split")
    if dims is None:
        return unknown(op)
    if axis is None:
        return [TensorShape([None] * len(dims))] * count
    at = _axis_in(axis, len(dims), "split dimension")
    if dims[at] is not None:
        if dims[at] % count:
            raise ValueError(f"Dimension size must be evenly divisible by {count} but is {dims[at]}")
        dims[at] //= count
    return [TensorShape(dims)] * count


@shape_rule("SplitV")
def _(op):
    dims, axis, count = _dims(op.inputs[0]), _scalar_value(op.inputs[2]), op.get_attr("num_split")
    sizes = constant_value(op.inputs[1])
    if dims is None:
        return unknown(op)
    if axis is None:
        return [TensorShape([None] * len(dims))] * count
    at = _axis_in(axis, len(dims), "split dimension")
    lengths: list[int | None] = [None] * count
    if sizes is not None:
        given, size = sizes.tolist(), dims[at]
        rest = None if size is None else size - sum(one for one in given if one != -1)
        if rest is not None and (rest < 0 or (rest and -1 not in given)):
            raise ValueError(f"can't split axis of size {size} into pieces of size {given}")
        lengths = [rest if one == -1 else one for one in given]
    return [TensorShape([*dims[:at], one, *dims[at + 1 :]]) for one in lengths]


@shape_rule("Slice")
def _(op):
    dims, begins, sizes = _dims(op.inputs[0]), constant_value(op.inputs[1]), constant_value(op.inputs[2])
    if sizes is None:
        # The sizes may still be a shape that is known in part; an unknown one there is not a -1.
        rank = op.inputs[0].shape.ndims
        if rank is None:
            rank = op.inputs[2].shape.with_rank(1).as_list()[0]
        known = constant_value_as_shape(op.inputs[2])
        return [known if known.ndims is not None else TensorShape(None if rank is None else [None] * rank)]
    out: list[int | None] = []
    for i, length in enumerate(sizes.tolist()):
        size = None if dims is None else dims[i]
        start = None if begins is None else int(begins[i])
        if size is not None and start is not None and not 0 <= start <= size:
            raise ValueError(f"Slice index {start} of dimension {i} out of bounds.")
        if length == -1:
            out.append(None if size is None or start is None else size - start)
            continue
        if size is not None and start is not None and start + length > size:
            raise ValueError(f"Expected size[{i}] in [0, {size - start}], but got {length}")
        out.append(length)
    return [TensorShape(out)]


@shape_rule("StridedSlice")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is None:
        return unknown(op)
    masks = {
        mask: op.get_attr(mask)
        for mask in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    }
    bounds = [constant_value(tensor) for tensor in op.inputs[1:4]]
    lengths = [tensor.shape.num_elements() for tensor in op.inputs[1:4] if tensor.shape.num_elements() is not None]
    if not lengths:
        return unknown(op)
    # Where a bound is not known, its entries still say which dimensions stay, go or come.
    begin, end, strides = ([1] * lengths[0] if bound is None else bound.tolist() for bound in bounds)
    index = slice_index(len(dims), begin, end, strides, **masks)
    if all(bound is not None for bound in bounds):
        return [TensorShape(sliced_shape(dims, index))]
    out: list[int | None] = []
    axis = 0
    for entry in index:
        if entry is None:
            out.append(1)
            continue
        if not isinstance(entry, int):
            out.append(dims[axis] if entry == builtins.slice(None, None, 1) else None)
        axis += 1
    return [TensorShape(out)]


@shape_rule("StridedSliceGrad")
def _(op):
    return [constant_value_as_shape(op.inputs[0])]


@shape_rule("Gather")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is None or op.inputs[1].shape.ndims is None:
        return unknown(op)
    return [op.inputs[1].shape.concatenate(op.inputs[0].shape.with_rank_at_least(1)[1:])]


@shape_rule("GatherV2")
def _(op):
    dims, indices, axis = _dims(op.inputs[0]), _dims(op.inputs[1]), _scalar_value(op.inputs[2])
    batch_dims = op.get_attr("batch_dims")
    if dims is None or indices is None:
        return unknown(op)
    batch_dims = batch_dims + len(indices) if batch_dims < 0 else batch_dims
    op.inputs[0].shape.with_rank_at_least(1)
    if axis is None:
        return [TensorShape([None] * (len(dims) - 1 + len(indices) - batch_dims))]
    at = _axis_in(axis, len(dims))
    return [TensorShape(dims[:at] + indices[batch_dims:] + dims[at + 1 :])]


@shape_rule("GatherNd")
def _(op):
    dims, indices = _dims(op.inputs[0]), _dims(op.inputs[1])
    if dims is None or indices is None or indices[-1] is None:
        return unknown(op)
    if indices[-1] > len(dims):
        raise ValueError(
            f"indices.shape[-1] must be <= params.rank, but saw indices shape {indices} and params shape {dims}"
        )
    return [TensorShape(indices[:-1] + dims[indices[-1] :])]


@shape_rule("ScatterNd")
def _(op):
    return [constant_value_as_shape(op.inputs[2])]


@shape_rule("DynamicStitch", "ParallelDynamicStitch")
def _(op):
    count = op.get_attr("N")
    indices, data = op.inputs[:count], op.inputs[count:]
    rest = TensorShape(None)
    for index, values in zip(indices, data, strict=True):
        if index.shape.ndims is not None and values.shape.ndims is not None:
            rest = rest.merge_with(values.shape[index.shape.ndims :])
    known = [value for value in map(constant_value, indices) if value is not None]
    rows = None
    if len(known) == count:
        rows = max((int(np.max(value)) for value in known if np.size(value)), default=-1) + 1
    return [TensorShape([rows]).concatenate(rest)]


@shape_rule("DynamicPartition")
def _(op):
    count, rank = op.get_attr("num_partitions"), op.inputs[1].shape.ndims
    if rank is None or op.inputs[0].shape.ndims is None:
        return unknown(op)
    return [TensorShape([None]).concatenate(op.inputs[0].shape[rank:])] * count


@shape_rule("Pad", "PadV2", "MirrorPad")
def _(op):
    return _padded(op, 1)


@shape_rule("MirrorPadGrad")
def _(op):
    return _padded(op, -1)


def _padded(op: Any, sign: int) -> list[TensorShape]:
    dims, paddings = _dims(op.inputs[0]), constant_value(op.inputs[1])
    if dims is None:
        rows = op.inputs[1].shape.with_rank(2).as_list()[0]
        return [TensorShape(None if rows is None else [None] * rows)]
    op.inputs[1].shape.assert_is_compatible_with([len(dims), 2])
    if paddings is None:
        return [TensorShape([None] * len(dims))]
    added = np.sum(paddings, axis=1).tolist()
    return [TensorShape([None if dim is None else dim + sign * extra for dim, extra in zip(dims, added, strict=True)])]


@shape_rule("Tile")
def _(op):
    dims, multiples = _dims(op.inputs[0]), constant_value(op.inputs[1])
    if dims is None:
        length = op.inputs[1].shape.with_rank(1).as_list()[0]
        return [TensorShape(None if length is None else [None] * length)]
    op.inputs[1].shape.assert_is_compatible_with([len(dims)])
    if multiples is None:
        known = constant_value_as_shape(op.inputs[1])
        counts = [None] * len(dims) if known.ndims is None else known.as_list()
    else:
        counts = multiples.tolist()
    pairs = zip(dims, counts, strict=True)
    return [TensorShape([None if dim is None or count is None else dim * count for dim, count in pairs])]


@shape_rule("Transpose", "ConjugateTranspose")
def _(op):
    dims, perm = _dims(op.inputs[0]), constant_value(op.inputs[1])
    if perm is None:
        rank = op.inputs[0].shape.ndims
        if rank is None:
            rank = op.inputs[1].shape.with_rank(1).as_list()[0]
        return [TensorShape(None if rank is None else [None] * rank)]
    if dims is None:
        return [TensorShape([None] * len(perm))]
    if len(perm) != len(dims):
        raise ValueError(f"Dimension must be {len(dims)} but is {len(perm)}")
    axes = [_axis_in(int(axis), len(dims), "perm dim") for axis in perm]
    if sorted(axes) != list(range(len(dims))):
        raise ValueError(f"perm {axes} is not a permutation of the dimensions")
    return [TensorShape([dims[axis] for axis in axes])]


@shape_rule("ReverseV2")
def _(op):
    dims, axes = _dims(op.inputs[0]), constant_value(op.inputs[1])
    if dims is not None and axes is not None:
        used = [_axis_in(int(axis), len(dims)) for axis in axes]
        if len(set(used)) != len(used):
            raise ValueError(f"axis {used} specified more than once")
    return unchanged(op)


@shape_rule("ReverseSequence")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is not None:
        op.inputs[1].shape.assert_is_compatible_with([dims[op.get_attr("batch_dim")]])
    return unchanged(op)


shape_rule("Roll")(unchanged)


@shape_rule("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is None:
        return unknown(op)
    if op.type.endswith("ND"):
        block, amounts = constant_value(op.inputs[1]), constant_value(op.inputs[2])
    else:
        block, amounts = np.array([op.get_attr("block_size")] * 2), constant_value(op.inputs[1])
    if block is None:
        return [TensorShape([None] * len(dims))]
    to_batch = op.type.startswith("SpaceToBatch")
    out = list(dims)
    total = int(np.prod(block))
    if dims[0] is not None:
        if not to_batch and dims[0] % total:
            raise ValueError(f"Dimension size must be evenly divisible by {total} but is {dims[0]}")
        out[0] = dims[0] * total if to_batch else dims[0] // total
    for i, factor in enumerate(block.tolist()):
        size = dims[i + 1]
        if size is None or amounts is None:
            out[i + 1] = None
            continue
        extra = int(np.sum(amounts[i]))
        if to_batch and (size + extra) % factor:
            raise ValueError(f"Dimension size must be evenly divisible by {factor} but is {size + extra}")
        out[i + 1] = (size + extra) // factor if to_batch else size * factor - extra
    return [TensorShape(out)]


@shape_rule("SpaceToDepth", "DepthToSpace")
def _(op):
    dims, block = _dims(op.inputs[0]), op.get_attr("block_size")
    if dims is None:
        return [TensorShape([None] * 4)]
    op.inputs[0].shape.assert_has_rank(4)
    channels_first = op.get_attr("data_format") in ("NCHW", b"NCHW")
    depth_at, spatial = (1, (2, 3)) if channels_first else (3, (1, 2))
    to_depth = op.type == "SpaceToDepth"
    out = list(dims)
    for axis in spatial:
        out[axis] = _scaled(dims[axis], block, not to_depth)
    out[depth_at] = _scaled(dims[depth_at], block * block, to_depth)
    return [TensorShape(out)]


def _scaled(size: int | None, factor: int, up: bool) -> int | None:
    if size is None:
        return None
    if not up and size % factor:
        raise ValueError(f"Dimension size must be evenly divisible by {factor} but is {size}")
    return size * factor if up else size // factor


@shape_rule("ExtractImagePatches")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is None:
        return [TensorShape([None] * 4)]
    op.inputs[0].shape.assert_has_rank(4)
    sizes, strides, rates = op.get_attr("ksizes"), op.get_attr("strides"), op.get_attr("rates")
    same = op.get_attr("padding") in ("SAME", b"SAME")
    out = list(dims)
    for axis in (1, 2):
        span = (sizes[axis] - 1) * rates[axis] + 1
        size = dims[axis]
        if size is not None:
            out[axis] = -(-size // strides[axis]) if same else -(-(size - span + 1) // strides[axis])
    out[3] = None if dims[3] is None else dims[3] * sizes[1] * sizes[2]
    return [TensorShape(out)]


@shape_rule("Diag")
def _(op):
    return [op.inputs[0].shape.concatenate(op.inputs[0].shape)]


@shape_rule("DiagPart")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is None:
        return unknown(op)
    if len(dims) % 2 or not dims:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(dims)}")
    half = len(dims) // 2
    return [TensorShape(dims[:half]).merge_with(dims[half:])]


@shape_rule("MatrixDiag")
def _(op):
    dims = _dims(op.inputs[0])
    return unknown(op) if dims is None else [TensorShape([*dims, dims[-1]])]


@shape_rule("MatrixDiagPart")
def _(op):
    dims = _dims(op.inputs[0])
    if dims is None:
        return unknown(op)
    op.inputs[0].shape.with_rank_at_least(2)
    rows, columns = dims[-2:]
    return [TensorShape([*dims[:-2], None if rows is None or columns is None else min(rows, columns)])]


@shape_rule("MatrixSetDiag")
def _(op):
    return [op.inputs[0].shape.with_rank_at_least(2)]


@shape_rule("Select")
def _(op):
    return [op.inputs[1].shape.merge_with(op.inputs[2].shape)]


@shape_rule("Unique", "UniqueWithCounts")
def _(op):
    return [TensorShape([None]), op.inputs[0].shape.with_rank(1), TensorShape([None])][: len(op.outputs)]


@shape_rule("UniqueV2", "UniqueWithCountsV2")
def _(op):
    dims = _dims(op.inputs[0])
    whole = TensorShape(None if dims is None else [None] * len(dims))
    return [whole, TensorShape([None]), TensorShape([None])][: len(op.outputs)]


@shape_rule("ListDiff")
def _(op):
    return [TensorShape([None])] * 2


@shape_rule("LowerBound", "UpperBound")
def _(op):
    return [op.inputs[1].shape]
