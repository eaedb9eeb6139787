"""The state of a RaggedTensor: its values, the row splits of its outermost ragged dimension, and what they tell.

Owns the class `RaggedRows` below RaggedTensor, so that slices (`ragged_slices`) and factories (`ragged`) know it
without a circle of imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dtf.build.composite import Composite
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, filling, gathering, joining, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ragged_value import RaggedTensorValue
from dtf.build.row_partitions import ids_of_splits
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = ["RaggedRows", "count_values", "match_row_splits_dtypes", "one_splits_dtype", "rows_or_dense"]

Rows = TypeVar("Rows", bound="RaggedRows")


class RaggedRows(Composite):
    """The values and the row splits of a RaggedTensor; its factories and slices are in that class."""

    __array_priority__ = 100

    def __init__(
        self, values: Any, row_splits: Tensor, internal: bool = False, *, value_rowids: Tensor | None = None,
        nrows: Tensor | None = None, uniform_row_length: int | None = None,
    ) -> None:  # fmt: skip
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods instead (e.g., "
                "RaggedTensor.from_row_lengths())"
            )
        row_splits.set_shape([None])
        values.shape.with_rank_at_least(1)
        if isinstance(values, RaggedRows) and values.row_splits.dtype != row_splits.dtype:
            raise ValueError(
                "Row splits of all ragged dimensions must be of one dtype: "
                f"{row_splits.dtype.name} and {values.row_splits.dtype.name}; use with_row_splits_dtype()"
            )
        self._values = values
        self._row_splits = row_splits
        self._value_rowids = value_rowids
        self._nrows = nrows
        self._uniform_row_length = uniform_row_length

    # -- what it is made of --

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape; ragged dimensions are None."""
        splits = self._row_splits.shape.as_list()[0]
        rows = None if splits is None else splits - 1
        if rows is None and self._nrows is not None:
            known = constant_value(self._nrows)
            rows = None if known is None else int(known)
        inner = self._values.shape
        row = TensorShape([rows, self._uniform_row_length])
        return TensorShape(None) if inner.ndims is None else row.concatenate(inner[1:])

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    @property
    def graph(self) -> Any:
        """The graph of the tensors."""
        return self._row_splits.graph

    @property
    def op(self) -> Operation:
        """The operation of the flat values."""
        return self.flat_values.op

    @property
    def name(self) -> str:
        """The name of the flat values."""
        return self.flat_values.name

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return 1 + self._values.ragged_rank if isinstance(self._values, RaggedRows) else 1

    @property
    def values(self) -> Any:
        """The rows one after the other: a Tensor or RaggedTensor [nvals, ...]."""
        return self._values

    @property
    def flat_values(self) -> Any:
        """The innermost values, a Tensor."""
        return self._values.flat_values if isinstance(self._values, RaggedRows) else self._values

    @property
    def row_splits(self) -> Tensor:
        """Where the rows of the outermost ragged dimension begin and end, [nrows + 1]."""
        return self._row_splits

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedRows) else ()
        return (self._row_splits, *inner)

    @property
    def uniform_row_length(self) -> Any:
        """The length of all rows if it is known to be one, as a tensor; else None."""
        if self._uniform_row_length is None:
            return None
        return constant(self._uniform_row_length, self._row_splits.dtype)

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value, [nvals]."""
        if self._value_rowids is None:
            with name_scope(name, "RaggedValueRowIds"):
                self._value_rowids = ids_of_splits(self._row_splits)
        return self._value_rowids

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """`value_rowids` of all ragged dimensions, the outermost first."""
        inner = self._values.nested_value_rowids(name) if isinstance(self._values, RaggedRows) else ()
        return (self.value_rowids(name), *inner)

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """The number of rows of the outermost dimension, a scalar."""
        dtype = self._row_splits.dtype if out_type is None else as_dtype(out_type)
        with name_scope(name, "RaggedNRows"):
            if self._nrows is not None:
                return self._nrows if self._nrows.dtype == dtype else math_ops.cast(self._nrows, dtype)
            return array.shape(self._row_splits, out_type=dtype)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where the rows begin, [nrows]."""
        with name_scope(name, "RaggedRowStarts"):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where the rows end, [nrows]."""
        with name_scope(name, "RaggedRowLimits"):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows along `axis`: a tensor [nrows], ragged for inner axes."""
        if axis == 0:
            return self.nrows()
        if axis < 0:
            rank = self.shape.ndims
            if rank is None:
                raise ValueError("`axis` may only be negative if `self.shape.ndims` is known")
            axis += rank
        with name_scope(name, "RaggedRowLengths"):
            if axis == 1:
                return self._row_splits[1:] - self._row_splits[:-1]
            if isinstance(self._values, RaggedRows):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = array.shape(self._values, out_type=self._row_splits.dtype)
            ones = filling.ones(sizes[: axis - 1], self._row_splits.dtype)
            return self.with_values(ones * sizes[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """`row_lengths` of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_lengths(name) if isinstance(self._values, RaggedRows) else ()
        return (self.row_lengths(name=name), *inner)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
        """The smallest dense shape that has room for all rows; or its sizes along `axis`."""
        dtype = self._row_splits.dtype if out_type is None else as_dtype(out_type)
        with name_scope(name, "RaggedBoundingBox"):
            if isinstance(axis, int) and axis == 0:
                return self.nrows(dtype)
            lengths = self.row_lengths()
            zero = constant([0], lengths.dtype)
            widest = math_ops.cast(reductions.reduce_max(joining.concat([zero, lengths], axis=0)), dtype)
            if isinstance(axis, int) and axis == 1:
                return widest
            inner = (
                self._values.bounding_shape(out_type=dtype)[1:]
                if isinstance(self._values, RaggedRows)
                else array.shape(self._values, out_type=dtype)[1:]
            )
            whole = joining.concat([joining.stack([self.nrows(dtype), widest]), inner], axis=0)
            return whole if axis is None else gathering.gather(whole, axis)

    # -- other values in the same rows --

    def with_values(self: Rows, new_values: Any) -> Rows:
        """The same rows of other values, as many as there are."""
        values = rows_or_dense(type(self), new_values)
        values.shape.with_rank_at_least(1)
        self._values.shape[:1].assert_is_compatible_with(values.shape[:1])
        mine = self
        if isinstance(values, RaggedRows) and values.row_splits.dtype != self._row_splits.dtype:
            values, mine = values.with_row_splits_dtype(dtypes.int64), self.with_row_splits_dtype(dtypes.int64)
        return type(self)(
            values, mine._row_splits, True, value_rowids=mine._value_rowids, nrows=mine._nrows,
            uniform_row_length=self._uniform_row_length,
        )  # fmt: skip

    def with_flat_values(self: Rows, new_values: Any) -> Rows:
        """The same rows, of all dimensions, of other innermost values."""
        if isinstance(self._values, RaggedRows):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self: Rows, dtype: DTypeLike) -> Rows:
        """This tensor, whose row splits have another dtype: int32 or int64."""
        wanted = as_dtype(dtype)
        if wanted not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"Argument `row_splits` dtype must be int32 or int64. Received {wanted!r}")
        if self._row_splits.dtype == wanted:
            return self
        values = self._values.with_row_splits_dtype(wanted) if isinstance(self._values, RaggedRows) else self._values
        cast = [None if each is None else math_ops.cast(each, wanted) for each in (self._value_rowids, self._nrows)]
        return type(self)(
            values, math_ops.cast(self._row_splits, wanted), True, value_rowids=cast[0], nrows=cast[1],
            uniform_row_length=self._uniform_row_length,
        )  # fmt: skip

    # -- as the parts of branches, loops, fetches and feeds --

    def _parts(self) -> list[Any]:
        return [self.flat_values, *self.nested_row_splits]

    def _with_parts(self: Rows, parts: Sequence[Any]) -> Rows:
        flat, splits = parts[0], list(parts[1:])
        result: Any = flat
        lengths: list[int | None] = []
        level: Any = self
        while isinstance(level, RaggedRows):
            lengths.append(level._uniform_row_length)
            level = level.values
        for each, length in zip(reversed(splits), reversed(lengths), strict=True):
            result = type(self)(result, each, True, uniform_row_length=length)
        return result

    def _fetched(self, values: Sequence[Any]) -> RaggedTensorValue:
        result: Any = values[0]
        for splits in reversed(values[1:]):
            result = RaggedTensorValue(result, splits)
        return result

    def _fed(self, value: Any) -> list[Any]:
        if not isinstance(value, RaggedTensorValue):
            raise TypeError(
                "A ragged tensor is fed with a RaggedTensorValue (tf.ragged.constant_value), got "
                f"{type(value).__name__}"
            )
        return [value.flat_values, *value.nested_row_splits]


def rows_or_dense(kind: Any, value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A ragged value unchanged, a RaggedTensorValue as one of `kind`, anything else by `convert_to_tensor`.

    Raises:
      ValueError: it is ragged and of another dtype.
    """
    if isinstance(value, RaggedTensorValue):
        value = kind.from_row_splits(rows_or_dense(kind, value.values), constant(value.row_splits), validate=False)
    if isinstance(value, RaggedRows):
        if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {as_dtype(dtype).name} for RaggedTensor with dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    return convert_to_tensor(value, dtype, name=name)


def match_row_splits_dtypes(*values: Any) -> list[Any]:
    """The values, the ragged ones of them with row splits of one dtype: int64 if they differ."""
    kinds = {each.row_splits.dtype for each in values if isinstance(each, RaggedRows)}
    if len(kinds) < 2:
        return list(values)
    return [each.with_row_splits_dtype(dtypes.int64) if isinstance(each, RaggedRows) else each for each in values]


def one_splits_dtype(values: Any, splits: Tensor) -> tuple[Any, Tensor]:
    if isinstance(values, RaggedRows) and values.row_splits.dtype != splits.dtype:
        return values.with_row_splits_dtype(dtypes.int64), math_ops.cast(splits, dtypes.int64)
    return values, splits


def count_values(values: Any, dtype: DType) -> Tensor:
    """The number of values, a scalar."""
    if isinstance(values, RaggedRows):
        return values.nrows(dtype)
    return array.shape(values, out_type=dtype)[0]
