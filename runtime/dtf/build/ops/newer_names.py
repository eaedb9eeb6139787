"""Functions that TensorFlow 1.14 and later added next to older ones, composed of the ops of other families.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, name_scope
from dtf.build.ops.array import broadcast_to, check_numerics, expand_dims, identity, reshape, shape_of
from dtf.build.ops.control_flow import case
from dtf.build.ops.filling import sequence_mask
from dtf.build.ops.gathering import tensor_scatter_add, tensor_scatter_sub, tensor_scatter_update
from dtf.build.ops.joining import concat, tile
from dtf.build.ops.math import cast
from dtf.build.ops.reductions import reduce_max
from dtf.build.ops.slicing import boolean_mask
from dtf.build.sparse import IndexedSlices, SparseTensor, convert_to_tensor_or_indexed_slices
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.wire import dtypes
from dtf.wire.tensor_shape import Dimension, TensorShape, dimension_value

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "assert_all_finite", "assert_shapes", "control_flow_v2_enabled", "convert_to_tensor_or_indexed_slices",
    "create_partitioned_variables", "dimension_at_index", "dimension_value", "executing_eagerly_outside_functions",
    "extract_volume_patches", "fingerprint", "get_static_value", "is_symbolic_tensor", "is_tensor", "repeat",
    "sparse_merge", "switch_case", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "verify_tensor_all_finite",
]  # fmt: skip


def repeat(input: TensorLike, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element, or each slice along `axis`, repeated.

    Args:
      input: any tensor.
      repeats: how often, a scalar or a vector with a number for each slice.
      axis: the dimension; the tensor is flattened if None.
      name: the name scope.

    Returns:
      A Tensor with the sum of `repeats` slices along `axis`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/repeat
    """
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input)
        if axis is None:
            data, axis = reshape(data, [-1]), 0
        repeats = convert_to_tensor(repeats)
        repeats = repeats if repeats.dtype == dtypes.int64 else cast(repeats, dtypes.int32)
        if data.shape.ndims == 0:
            data = reshape(data, [1])
        rank = data.shape.ndims
        if rank is None:
            raise ValueError("The rank of the input of tf.repeat must be known.")
        axis = axis + rank if axis < 0 else axis
        if not 0 <= axis < rank:
            raise ValueError(f"axis={axis} out of bounds: expected 0<=axis<{rank}")
        known, times = constant_value(repeats), data.shape.as_list()[axis]
        if repeats.shape.num_elements() == 1 or repeats.shape.ndims is None:
            repeats = _single(repeats, shape_of(data)[axis] if times is None else times)
        if repeats.shape.ndims == 0:
            columns = tile(expand_dims(data, axis + 1), _at(rank + 1, axis + 1, repeats))
            shape = shape_of(data)
            result = reshape(columns, concat([shape[:axis], [-1], shape[axis + 1 :]], 0))
        else:
            count = reduce_max(repeats)
            mask = sequence_mask(repeats, count)
            columns = tile(expand_dims(data, axis + 1), _at(rank + 1, axis + 1, count))
            result = boolean_mask(columns, mask, axis=axis)
        sizes = data.shape.as_list()
        if known is not None and times is not None:
            sizes[axis] = int(np.sum(np.broadcast_to(known, [times])))
        else:
            sizes[axis] = None
        result.set_shape(sizes)
        return result


def _single(repeats: Tensor, count: Any) -> Tensor:
    """One number as a scalar; a tensor of unknown rank as a vector with a number for each slice."""
    if repeats.shape.num_elements() == 1:
        return reshape(repeats, [])
    return broadcast_to(repeats, [count])


def _at(rank: int, axis: int, number: Tensor) -> list[Any]:
    """A list of `rank` ones, with `number` at `axis`."""
    ones: list[Any] = [1] * rank
    ones[axis] = cast(number, dtypes.int32)
    return ones


def tensor_scatter_nd_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """`tensor` with the slices at the index vectors replaced."""
    del bad_indices_policy
    return tensor_scatter_update(tensor, indices, updates, name)


def tensor_scatter_nd_add(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """`tensor` with `updates` added at the index vectors."""
    del bad_indices_policy
    return tensor_scatter_add(tensor, indices, updates, name)


def tensor_scatter_nd_sub(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """`tensor` with `updates` subtracted at the index vectors."""
    del bad_indices_policy
    return tensor_scatter_sub(tensor, indices, updates, name)


def tensor_scatter_nd_max(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """`tensor` with the greater of its slices and `updates` at the index vectors."""
    del bad_indices_policy
    return apply_op("TensorScatterMax", name, tensor=tensor, indices=indices, updates=updates)


def tensor_scatter_nd_min(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """`tensor` with the smaller of its slices and `updates` at the index vectors."""
    del bad_indices_policy
    return apply_op("TensorScatterMin", name, tensor=tensor, indices=indices, updates=updates)


def switch_case(
    branch_index: TensorLike, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """Returns the result of the function at position `branch_index`.

    Args:
      branch_index: an int32 scalar tensor.
      branch_fns: a list of functions, a list of (number, function), or a dict from numbers to functions.
      default: the function for other numbers; the one of the greatest number by default.
      name: the name scope.

    Returns:
      The result of the chosen function, in its structure.

    Raises:
      TypeError, ValueError: the functions have another form.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/switch_case
    """
    if isinstance(branch_index, int):
        raise TypeError(f"branch_index must not be a Python int, got {branch_index}")
    branch_dtype = getattr(branch_index, "dtype", None)
    if isinstance(branch_dtype, dtypes.DType) and not branch_dtype.is_integer:
        raise TypeError(f"branch_index must be an integer Tensor, got {branch_dtype}")
    if not isinstance(branch_fns, (list, tuple, dict)):
        raise TypeError(f"branch_fns must be a list, tuple or dict, got {branch_fns!r}")
    if isinstance(branch_fns, dict):
        pairs = sorted(branch_fns.items())
    else:
        pairs = [each if isinstance(each, tuple) else (number, each) for number, each in enumerate(branch_fns)]
    if not pairs:
        raise ValueError("`branch_fns` must be a non-empty list or dict")
    for number, function in pairs:
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"key must be a Python `int`, got {number}")
        if not callable(function):
            raise TypeError(f"fn for key {number} must be callable.")
    if sorted(number for number, _ in pairs) != list(range(len(pairs))) and not isinstance(branch_fns, dict):
        raise ValueError(f"branch indices must form contiguous range of [0 to {len(pairs)})")
    last = default if default is not None else pairs[-1][1]
    chosen = pairs if default is not None else pairs[:-1]
    with name_scope(name, "switch_case", [branch_index]):
        index = convert_to_tensor(branch_index, name="branch_index")
        choices = [(apply_op("Equal", x=index, y=number), function) for number, function in chosen]
        return case(choices, default=last, name="case") if choices else last()


def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """The value of a tensor that is known while the graph is built, an array; None where it is not.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/get_static_value
    """
    return constant_value(tensor, partial) if isinstance(tensor, Tensor) else np.asarray(tensor)


def is_tensor(x: object) -> bool:
    """Whether `x` is a Tensor, a SparseTensor, IndexedSlices or a Variable."""
    return isinstance(x, (Tensor, SparseTensor, IndexedSlices, Variable))


def is_symbolic_tensor(x: object) -> bool:
    """`is_tensor`: all tensors are of a graph."""
    return is_tensor(x)


def executing_eagerly_outside_functions() -> bool:
    """False: there are only graphs."""
    return False


def control_flow_v2_enabled() -> bool:
    """False: conditionals and loops are version 1's."""
    return False


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Dimension number `index`; unknown where the rank is."""
    return shape.with_rank_at_least(index + 1)[index] if shape.ndims is not None else Dimension(None)


def assert_all_finite(
    t: TensorLike | None = None,
    msg: str | None = None,
    name: str | None = None,
    x: TensorLike | None = None,
    message: str | None = None,
) -> Tensor:
    """`t`, which fails with InvalidArgumentError and `msg` when it has NaN or infinite elements.

    `x` and `message` are the newer names of `t` and `msg`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/debugging/assert_all_finite
    """
    value: Any = t if x is None else x
    text = msg if message is None else message
    with name_scope(name, "VerifyFinite", [value]):
        tensor = convert_to_tensor(value, name="t")
        with colocate_with(tensor):
            check = check_numerics(tensor, message=text or "")
        with control_dependencies([check]):
            return identity(tensor)


verify_tensor_all_finite = assert_all_finite


def fingerprint(data: TensorLike, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """Eight bytes for each row of `data` that depend on its content: uint8 [rows, 8].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/fingerprint
    """
    return apply_op("Fingerprint", name, data=data, method=method)


def extract_volume_patches(
    input: TensorLike, ksizes: Sequence[int], strides: Sequence[int], padding: str, name: str | None = None
) -> Tensor:
    """The blocks of a volume [batch, depth, height, width, channels], each flattened into the last dimension."""
    return apply_op(
        "ExtractVolumePatches", name, input=input, ksizes=list(ksizes), strides=list(strides), padding=padding
    )


def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raises ValueError unless each symbol of the tensors' shapes has one size.

    Only what is known while the graph is built is checked; unknown sizes get the size that their symbol has.

    Args:
      shapes: a dict or a list of pairs from tensors to lists of sizes, symbols (strings) and None.
      data, summarize: accepted; nothing is checked when it runs.
      message: text before the error's.
      name: accepted.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/debugging/assert_shapes
    """
    del data, summarize, name
    prefix = f"{message}. " if message else ""
    sizes: dict[str, tuple[int, str]] = {}
    for tensor, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        tensor = convert_to_tensor(tensor)
        wanted = list(wanted) if isinstance(wanted, (list, tuple, TensorShape)) else [wanted]
        wanted = [each.value if isinstance(each, Dimension) else each for each in wanted]
        known = tensor.shape.ndims
        if known is None:
            continue
        if Ellipsis in wanted or "..." in wanted or "*" in wanted[:1]:
            inner = [each for each in wanted if each not in (Ellipsis, "...")]
            wanted = [None] * max(0, known - len(inner)) + inner
        if known != len(wanted):
            raise ValueError(
                f"{prefix}Specified shape {wanted} of rank {len(wanted)} for tensor {tensor.name}, which has the shape "
                f"{tensor.shape}"
            )
        for axis, (size, word) in enumerate(zip(tensor.shape.as_list(), wanted, strict=True)):
            if size is None or word is None or word in (".", "*"):
                continue
            expected, source = sizes.setdefault(word, (size, tensor.name)) if isinstance(word, str) else (word, "")
            if size != expected:
                where = f" of {source}" if source else ""
                raise ValueError(
                    f"{prefix}Tensor {tensor.name} dimension {axis} must have size {expected}{where}, "
                    f"received size {size}, shape {tensor.shape}"
                )


def sparse_merge(
    sp_ids: Any, sp_values: SparseTensor, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """One sparse tensor from the ids, which become its last coordinates, and the values of a batch of features.

    Args:
      sp_ids: a SparseTensor of ids, or a list of them for several coordinates.
      sp_values: a SparseTensor with the same indices.
      vocab_size: the size of the last dimension, or a list of sizes.
      name: the name scope.
      already_sorted: whether the result needs no sorting.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/sparse_merge
    """
    from dtf.build.ops.sparse import sparse_reorder

    listed = isinstance(sp_ids, (list, tuple))
    if listed != isinstance(vocab_size, (list, tuple)):
        raise TypeError("sp_ids and vocab_size must both be lists, or neither")
    every, vocabularies = (list(sp_ids), list(vocab_size)) if listed else ([sp_ids], [vocab_size])
    with name_scope(name, "SparseMerge", [sp_values]):
        if len(every) != len(vocabularies):
            raise ValueError(f"{len(every)} sp_ids for {len(vocabularies)} vocab_size")
        every = [SparseTensor.from_value(each) for each in every]
        sp_values = SparseTensor.from_value(sp_values)
        columns = [cast(expand_dims(each.values, 1), dtypes.int64) for each in every]
        indices = concat([every[0].indices[:, :-1], *columns], 1)
        sizes = [cast(reshape(size, [1]), dtypes.int64) for size in vocabularies]
        merged = SparseTensor(indices, sp_values.values, concat([every[0].dense_shape[:-1], *sizes], 0))
        known = [constant_value(size) if isinstance(size, Tensor) else size for size in vocabularies]
        outer = every[0].shape
        result = merged if already_sorted else sparse_reorder(merged)
        if outer.ndims is not None:
            sizes_known = [None if each is None else int(each) for each in known]
            result._partial_shape = outer[:-1].concatenate(sizes_known)
        return result


def create_partitioned_variables(
    shape: Any,
    slicing: Sequence[int],
    initializer: Any,
    dtype: DTypeLike = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: bool | None = None,
) -> list[Variable]:
    """Variables that are slices of one tensor.

    Args:
      shape: the shape of the whole.
      slicing: the number of slices of each dimension; at most one may be more than 1.
      initializer: a function of a shape and a dtype, or a value of the whole.
      dtype: the dtype of the variables.
      trainable, collections: as for tf.get_variable.
      name: the name of the whole; "PartitionedVariable" by default.
      reuse: whether the variables must exist.

    Returns:
      A list of Variables.

    Raises:
      ValueError: `slicing` does not fit `shape`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/create_partitioned_variables
    """
    from dtf.build.variable_scope import get_variable, get_variable_scope, variable_scope

    if len(shape) != len(slicing):
        raise ValueError(f"shape {shape} and slicing {slicing} must have the same length.")
    if len(shape) < 1:
        raise ValueError(f"shape must have rank at least 1, got {shape}")
    around = get_variable_scope()
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        own_name = scope.name[len(around.name) :].lstrip("/")
    with variable_scope(around, reuse=reuse):  # the whole has the name of the scope, and the slices are in it
        made = get_variable(
            name=own_name, shape=shape, dtype=dtype, initializer=initializer, trainable=trainable,
            partitioner=lambda **_: list(slicing), collections=collections,
        )  # fmt: skip
        return list(made)
