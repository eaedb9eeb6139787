"""Ragged tensors of nested lists, and placeholders of ragged tensors: tf.ragged.constant and its neighbours."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.constant import constant as dense_constant
from dtf.build.default_graph import name_scope
from dtf.build.ops import array
from dtf.build.ragged import RaggedTensor
from dtf.build.ragged_value import RaggedTensorValue
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike


def constant(
    pylist: Any, dtype: DTypeLike | None = None, ragged_rank: int | None = None, inner_shape: Any = None,
    name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:  # fmt: skip
    """A constant RaggedTensor of nested lists.

    Args:
      pylist: nested lists; those of one depth may have different lengths.
      dtype: the dtype of the values.
      ragged_rank: how many dimensions are ragged; by default all but those of `inner_shape`, or but the innermost
        dimension's values.
      inner_shape: the shape of the values of the innermost ragged dimension.
      name: a prefix of the names of the operations.
      row_splits_dtype: int32 or int64.

    Returns:
      A RaggedTensor; a Tensor if no dimension is ragged.

    Raises:
      ValueError: the nesting differs in depth, or does not fit `ragged_rank` and `inner_shape`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ragged/constant
    """
    splits_dtype = as_dtype(row_splits_dtype).as_numpy_dtype

    def ragged(values: Any, splits: Any) -> RaggedTensor:
        return RaggedTensor.from_row_splits(values, dense_constant(np.asarray(splits, splits_dtype)), validate=False)

    def dense(values: Any, shape: Any) -> Tensor:
        return dense_constant(values, dtype if dtype is None else as_dtype(dtype), shape)

    with name_scope(name, "RaggedConstant"):
        return _nested(ragged, dense, pylist, dtype, ragged_rank, inner_shape)


def constant_value(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:  # fmt: skip
    """A RaggedTensorValue of nested lists: what a ragged placeholder is fed with. Arguments as for `constant`."""
    splits_dtype = as_dtype(row_splits_dtype).as_numpy_dtype
    if dtype is not None and isinstance(dtype, dtypes.DType):
        dtype = dtype.as_numpy_dtype

    def ragged(values: Any, splits: Any) -> RaggedTensorValue:
        return RaggedTensorValue(values, np.asarray(splits, splits_dtype))

    def dense(values: Any, shape: Any) -> np.ndarray:
        return np.reshape(np.array(values, dtype), shape)

    return _nested(ragged, dense, pylist, dtype, ragged_rank, inner_shape)


def placeholder(
    dtype: DTypeLike, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """A RaggedTensor that must be fed, with a RaggedTensorValue.

    Args:
      dtype: the dtype of the values.
      ragged_rank: how many dimensions are ragged; 0 gives a plain placeholder.
      value_shape: the shape of the values of the innermost ragged dimension; () by default.
      name: a prefix of the names of the placeholders.

    Returns:
      A RaggedTensor.
    """
    if ragged_rank == 0:
        return array.placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder"):
        sizes = [None, *(array.TensorShape(value_shape).as_list() if value_shape is not None else [])]
        result: Any = array.placeholder(dtype, sizes, "flat_values")
        for index in reversed(builtins.range(ragged_rank)):
            splits = array.placeholder(dtypes.int64, [None], f"row_splits_{index}")
            result = RaggedTensor.from_row_splits(result, splits, validate=False)
        return result


def _nested(
    ragged: Callable[[Any, Any], Any], dense: Callable[[Any, Any], Any], pylist: Any, dtype: Any,
    ragged_rank: int | None, inner_shape: Any,
) -> Any:  # fmt: skip
    if isinstance(pylist, np.ndarray):
        pylist = pylist.tolist()
    elif isinstance(pylist, (list, tuple)):
        pylist = _plain_lists(pylist)
    if not isinstance(pylist, (list, tuple)):
        if ragged_rank:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        if inner_shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner_shape)}")
        return dense(pylist, ())
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    depth = _checked_depth(pylist, ragged_rank, inner_shape)
    if ragged_rank == 0 or (ragged_rank is None and depth < 2 and inner_shape is None):
        return dense(pylist, inner_shape_of(pylist, depth if inner_shape is None else None, inner_shape))
    if inner_shape is None:
        inner_shape = () if ragged_rank is None else _common_shape(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, depth - 1) if inner_shape == () else max(1, depth - 1 - len(inner_shape))
    nested_splits = []
    values = pylist
    for _ in builtins.range(ragged_rank):
        splits: list[int] = [0]
        flat: list[Any] = []
        for row in values:
            if not isinstance(row, (list, tuple)):
                raise ValueError(f"all scalar values must have the same nesting depth in {pylist!r}")
            flat.extend(row)
            splits.append(len(flat))
        nested_splits.append(splits)
        values = flat
    result = dense(values, (len(values), *inner_shape))
    for splits in reversed(nested_splits):
        result = ragged(result, splits)
    return result


def _checked_depth(pylist: Any, ragged_rank: int | None, inner_shape: Any) -> int:
    """The depth of the lists. Raises ValueError if it does not fit the other arguments."""
    scalar_depth, depth = _depths(pylist)
    if scalar_depth is not None and depth > scalar_depth:
        raise ValueError(f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting")
    if ragged_rank is not None and depth < ragged_rank:
        raise ValueError(f"Invalid pylist={pylist!r}, max_depth={depth} is less than ragged_rank={ragged_rank}")
    if inner_shape is not None and ragged_rank is not None:
        expected = ragged_rank + 1 + len(inner_shape)
        if (scalar_depth is not None and expected != scalar_depth) or (scalar_depth is None and expected < depth):
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
                f"dim(inner_shape)={len(inner_shape)}"
            )
    return depth


def inner_shape_of(pylist: Any, depth: int | None, inner_shape: Any) -> tuple[int, ...]:
    """The shape of a dense constant."""
    if inner_shape is not None:
        return (len(pylist), *inner_shape)
    return np.shape(np.array(pylist, object)) if depth == 1 else np.shape(np.array(pylist))


def _plain_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim else value.item()
    return [_plain_lists(each) for each in value] if isinstance(value, (list, tuple)) else value


def _depths(value: Any) -> tuple[int | None, int]:
    """The depth of the scalars (None without any) and that of the lists. Raises ValueError if scalars differ in it."""
    if not isinstance(value, (list, tuple)):
        return 0, 0
    scalar, depth = None, 1
    for each in value:
        below, deep = _depths(each)
        if below is not None:
            if scalar is not None and scalar != below + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalar = below + 1
        depth = max(depth, deep + 1)
    return scalar, depth


def _common_shape(value: Any, ragged_rank: int) -> tuple[int, ...]:
    """The shape of the values below the ragged dimensions, which must be one."""
    below = [value]
    for _ in builtins.range(ragged_rank + 1):
        below = [each for row in below if isinstance(row, (list, tuple)) for each in row]
    shapes = {np.shape(np.array(each, object)) if isinstance(each, (list, tuple)) else () for each in below}
    if len(shapes) > 1:
        raise ValueError("inner values have inconsistent shape")
    return shapes.pop() if shapes else ()
