"""RaggedTensor: rows of different lengths, and RaggedTensorValue, the arrays of one.

Owns the container: its values, the row splits of its outermost ragged dimension, the other ways to tell the rows, its
conversions and its slices. The functions on ragged tensors are in `build.ops.ragged_functions`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/RaggedTensor
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import dtf.build.ops.ragged  # shape rules
import dtf.build.packing  # noqa: F401 values may be lists of tensors
from dtf.build.apply import apply_op
from dtf.build.composite import Composite
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, check_ops, filling, gathering, joining, ordering, reductions, segment, slicing
from dtf.build.ops import math as math_ops
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor, session_for
from dtf.build.tensor_spec import RaggedTensorSpec
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = ["RaggedTensor", "RaggedTensorValue", "match_row_splits_dtypes", "ragged_or_dense", "take_rows"]


class RaggedTensor(Composite):
    """A tensor with ragged dimensions: its rows have different lengths.

    Made by the `from_...` methods and by `tf.ragged.constant`; the initializer is not public.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/RaggedTensor
    """

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
        if isinstance(values, RaggedTensor) and values.row_splits.dtype != row_splits.dtype:
            raise ValueError(
                "Row splits of all ragged dimensions must be of one dtype: "
                f"{row_splits.dtype.name} and {values.row_splits.dtype.name}; use with_row_splits_dtype()"
            )
        self._values = values
        self._row_splits = row_splits
        self._value_rowids = value_rowids
        self._nrows = nrows
        self._uniform_row_length = uniform_row_length

    # -- made of values and of where rows begin or end --

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """The rows `row[i]` made of the values whose row number is i.

        Args:
          values: a tensor or RaggedTensor [nvals, ...].
          value_rowids: ascending integers [nvals]: the row of each value.
          nrows: the number of rows; the last row number plus one by default.
          name: a prefix of the names of the operations.
          validate: check the row numbers when the graph runs.

        Returns:
          A RaggedTensor [nrows, None, ...].

        Raises:
          ValueError: `nrows` is negative or smaller than the row numbers need.
        """
        with name_scope(name, "RaggedFromValueRowIds"):
            values = ragged_or_dense(values)
            value_rowids = _splits_tensor(value_rowids, "value_rowids")
            value_rowids.shape.assert_has_rank(1)
            if nrows is None:
                known = constant_value(value_rowids)
                if known is not None:
                    nrows = constant(int(known[-1]) + 1 if known.size else 0, value_rowids.dtype, name="nrows")
                else:
                    nrows = joining.concat([value_rowids[-1:], constant([-1], value_rowids.dtype)], axis=0)[0] + 1
            else:
                known, ids = constant_value(nrows) if isinstance(nrows, Tensor) else nrows, constant_value(value_rowids)
                if known is not None and known < 0:
                    raise ValueError(f"Expected nrows >= 0; got {known}")
                if known is not None and ids is not None and ids.size and ids[-1] >= known:
                    raise ValueError(f"Expected nrows >= value_rowids[-1] + 1; got nrows={known}, "
                                     f"value_rowids[-1]={ids[-1]}")  # fmt: skip
                nrows = convert_to_tensor(nrows, value_rowids.dtype, name="nrows")
            if validate:
                checks = [
                    check_ops.assert_equal(
                        _count(values, value_rowids.dtype), array.shape(value_rowids, out_type=value_rowids.dtype)[0],
                        message="Arguments to from_value_rowids do not form a valid RaggedTensor",
                    ),
                    check_ops.assert_non_negative(value_rowids[:1]),
                    check_ops.assert_less_equal(value_rowids[:-1], value_rowids[1:]),
                    check_ops.assert_less(value_rowids[-1:], nrows),
                ]  # fmt: skip
                value_rowids = ordering.with_dependencies(checks, value_rowids)
            splits = _splits_of_ids(value_rowids, nrows)
            return cls(values, splits, True, value_rowids=value_rowids, nrows=nrows)

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """The rows `row[i] = values[row_splits[i]:row_splits[i + 1]]`.

        Args:
          values: a tensor or RaggedTensor [nvals, ...].
          row_splits: ascending integers [nrows + 1] that begin with 0 and end with nvals.
          name: a prefix of the names of the operations.
          validate: check the splits when the graph runs.

        Returns:
          A RaggedTensor [nrows, None, ...].

        Raises:
          ValueError: `row_splits` is empty.
        """
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with name_scope(name, "RaggedFromRowSplits"):
            values, row_splits = ragged_or_dense(values), _splits_tensor(row_splits, "row_splits")
            row_splits.shape.assert_has_rank(1)
            values, row_splits = _one_splits_dtype(values, row_splits)
            if validate:
                dtype = row_splits.dtype
                checks = [
                    check_ops.assert_equal(row_splits[0], constant(0, dtype), message="row_splits must begin with 0"),
                    check_ops.assert_less_equal(row_splits[:-1], row_splits[1:], message="row_splits must ascend"),
                    check_ops.assert_equal(
                        row_splits[-1], _count(values, dtype), message="row_splits must end with the number of values"
                    ),
                ]
                row_splits = ordering.with_dependencies(checks, row_splits)
            return cls(values, row_splits, True)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows of these lengths, one after the other.

        Args:
          values: a tensor or RaggedTensor [nvals, ...].
          row_lengths: non-negative integers [nrows] whose sum is nvals.
          name: a prefix of the names of the operations.
          validate: check the lengths when the graph runs.

        Returns:
          A RaggedTensor [nrows, None, ...].
        """
        with name_scope(name, "RaggedFromRowLengths"):
            values, row_lengths = ragged_or_dense(values), _splits_tensor(row_lengths, "row_lengths")
            row_lengths.shape.assert_has_rank(1)
            values, row_lengths = _one_splits_dtype(values, row_lengths)
            if validate:
                checks = [
                    check_ops.assert_non_negative(row_lengths, message="row_lengths must not be negative"),
                    check_ops.assert_equal(
                        reductions.reduce_sum(row_lengths), _count(values, row_lengths.dtype),
                        message="row_lengths must sum up to the number of values",
                    ),
                ]  # fmt: skip
                row_lengths = ordering.with_dependencies(checks, row_lengths)
            return cls(values, _splits_of_lengths(row_lengths), True)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that begin at these positions; each ends where the next begins."""
        with name_scope(name, "RaggedFromRowStarts"):
            values, row_starts = ragged_or_dense(values), _splits_tensor(row_starts, "row_starts")
            row_starts.shape.assert_has_rank(1)
            values, row_starts = _one_splits_dtype(values, row_starts)
            if validate:
                zero = constant(0, row_starts.dtype)
                row_starts = ordering.with_dependencies(
                    [
                        check_ops.assert_equal(row_starts[:1], zero, message="row_starts must begin with 0"),
                        check_ops.assert_less_equal(row_starts[:-1], row_starts[1:], message="row_starts must ascend"),
                    ],
                    row_starts,
                )
            return cls(values, joining.concat([row_starts, _count(values, row_starts.dtype)[None]], axis=0), True)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that end before these positions; each begins where the previous ends."""
        with name_scope(name, "RaggedFromRowLimits"):
            values, row_limits = ragged_or_dense(values), _splits_tensor(row_limits, "row_limits")
            row_limits.shape.assert_has_rank(1)
            values, row_limits = _one_splits_dtype(values, row_limits)
            if validate:
                row_limits = ordering.with_dependencies(
                    [
                        check_ops.assert_non_negative(row_limits[:1]),
                        check_ops.assert_less_equal(row_limits[:-1], row_limits[1:]),
                        check_ops.assert_equal(row_limits[-1:], _count(values, row_limits.dtype)),
                    ],
                    row_limits,
                )
            return cls(values, joining.concat([constant([0], row_limits.dtype), row_limits], axis=0), True)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True,
        name: str | None = None,
    ) -> RaggedTensor:  # fmt: skip
        """Rows of one length each.

        Args:
          values: a tensor or RaggedTensor [nvals, ...].
          uniform_row_length: the length, an integer or scalar tensor.
          nrows: the number of rows; needed for rows of length 0.
          validate: check the number of values when the graph runs.
          name: a prefix of the names of the operations.

        Returns:
          A RaggedTensor [nrows, uniform_row_length, ...].
        """
        with name_scope(name, "RaggedFromUniformRowLength"):
            values = ragged_or_dense(values)
            dtype = values.row_splits.dtype if isinstance(values, RaggedTensor) else dtypes.int64
            length = convert_to_tensor(uniform_row_length, name="uniform_row_length")
            if length.dtype != dtype:
                length = math_ops.cast(length, dtype)
            known = constant_value(length)
            if known is not None and known < 0:
                raise ValueError(f"uniform_row_length must be a non-negative integer, got {known}")
            count = _count(values, dtype)
            if nrows is None:
                nrows = _rows_of(count, length)
            else:
                nrows = math_ops.cast(convert_to_tensor(nrows, name="nrows"), dtype)
            if validate:
                nrows = ordering.with_dependencies(
                    [check_ops.assert_equal(nrows * length, count, message="uniform_row_length does not divide "
                                            "the number of values")], nrows,
                )  # fmt: skip
            splits = math_ops.range(nrows + 1) * length
            sizes = values.shape.as_list() if values.shape.ndims is not None else [None]
            rows = constant_value(nrows)
            if rows is None and known and sizes[0] is not None:
                rows = sizes[0] // int(known)
            if rows is not None:
                splits.set_shape([int(rows) + 1])
            return cls(values, splits, True, nrows=nrows, uniform_row_length=None if known is None else int(known))

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: Any, nested_value_rowids: Sequence[Any], nested_nrows: Sequence[Any] | None = None,
        name: str | None = None, validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Several ragged dimensions, the outermost first, each by `from_value_rowids`."""
        _check_nested("nested_value_rowids", nested_value_rowids)
        if nested_nrows is not None and len(nested_nrows) != len(nested_value_rowids):
            raise ValueError(
                f"Expected len(nested_nrows) == {len(nested_value_rowids)}; got {len(nested_nrows)}"
            )
        counts = list(nested_nrows or [None] * len(nested_value_rowids))
        with name_scope(name, "RaggedFromNestedValueRowIds"):
            result: Any = flat_values
            for ids, rows in zip(reversed(nested_value_rowids), reversed(counts), strict=True):
                result = cls.from_value_rowids(result, ids, rows, validate=validate)
            return result

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several ragged dimensions, the outermost first, each by `from_row_splits`."""
        _check_nested("nested_row_splits", nested_row_splits)
        with name_scope(name, "RaggedFromNestedRowSplits"):
            result: Any = flat_values
            for splits in reversed(nested_row_splits):
                result = cls.from_row_splits(result, splits, validate=validate)
            return result

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Sequence[Any], name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Several ragged dimensions, the outermost first, each by `from_row_lengths`."""
        _check_nested("nested_row_lengths", nested_row_lengths)
        with name_scope(name, "RaggedFromNestedRowlengths"):
            result: Any = flat_values
            for lengths in reversed(nested_row_lengths):
                result = cls.from_row_lengths(result, lengths, validate=validate)
            return result

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
        name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> RaggedTensor:  # fmt: skip
        """The rows of a dense tensor, without the padding at their ends.

        Args:
          tensor: a tensor of rank above `ragged_rank`.
          lengths: the length of each row [nrows], or a tuple of those of several dimensions.
          padding: the value that is left out at the ends of rows; a scalar, or one row of `tensor`.
          ragged_rank: how many dimensions become ragged.
          name: a prefix of the names of the operations.
          row_splits_dtype: int32 or int64.

        Returns:
          A RaggedTensor.

        Raises:
          ValueError: `lengths` and `padding` are both given, or the rank is too small.
        """
        dtype = as_dtype(row_splits_dtype)
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        if not isinstance(ragged_rank, int):
            raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank}.")
        if ragged_rank <= 0:
            raise ValueError(f"Argument `ragged_rank` must be greater than 0. Received {ragged_rank}.")
        with name_scope(name, "RaggedFromTensor"):
            tensor = convert_to_tensor(tensor, name="tensor")
            if tensor.shape.ndims is not None:
                tensor.shape.with_rank_at_least(ragged_rank + 1)
            if isinstance(lengths, (list, tuple)) and lengths and not isinstance(lengths[0], (int, float)):
                if ragged_rank not in (1, len(lengths)):
                    raise ValueError(f"If `lengths` is a tuple of row_lengths, then `ragged_rank` must be "
                                     f"len(lengths) == {len(lengths)}, got {ragged_rank}")  # fmt: skip
                return cls._from_nested_lengths(tensor, list(lengths), dtype)
            if ragged_rank > 1:
                return cls._from_many_dimensions(tensor, lengths, padding, ragged_rank, dtype)
            sizes = array.shape(tensor, out_type=dtype)
            rows, columns = sizes[0], sizes[1]
            if padding is not None:
                lengths = _lengths_without(tensor, padding, dtype)
            if lengths is not None:
                lengths = math_ops.cast(convert_to_tensor(lengths, name="lengths"), dtype)
                lengths.shape.assert_has_rank(1)
                lengths = math_ops.maximum(math_ops.minimum(lengths, columns), constant(0, dtype))
                values = slicing.boolean_mask(tensor, filling.sequence_mask(lengths, columns))
                return cls.from_row_lengths(values, lengths, validate=False)
            known = tensor.shape.as_list() if tensor.shape.ndims is not None else [None, None]
            values = array.reshape(tensor, joining.concat([(rows * columns)[None], sizes[2:]], axis=0))
            if tensor.shape.ndims is not None:
                count = _product(known[:2])
                values.set_shape([count, *known[2:]])
            splits = math_ops.range(rows + 1) * columns
            splits.set_shape([None if known[0] is None else known[0] + 1])
            return cls(values, splits, True, nrows=rows, uniform_row_length=known[1])

    @classmethod
    def _from_nested_lengths(cls, tensor: Tensor, lengths: list[Any], dtype: DType) -> RaggedTensor:
        outer = cls.from_tensor(tensor, lengths[0], row_splits_dtype=dtype)
        if len(lengths) == 1:
            return outer
        return outer.with_values(cls._from_nested_lengths(outer.values, lengths[1:], dtype))

    @classmethod
    def _from_many_dimensions(
        cls, tensor: Tensor, lengths: Any, padding: Any, ragged_rank: int, dtype: DType
    ) -> RaggedTensor:
        sizes = array.shape(tensor, out_type=dtype)
        count = reductions.reduce_prod(sizes[:ragged_rank])
        flat = array.reshape(tensor, joining.concat([count[None], sizes[ragged_rank:]], axis=0))
        known = tensor.shape.as_list() if tensor.shape.ndims is not None else None
        if known is not None:
            flat.set_shape([_product(known[:ragged_rank]), *known[ragged_rank:]])
        result = cls.from_tensor(flat, lengths, padding, row_splits_dtype=dtype)
        for axis in range(ragged_rank - 1, 0, -1):
            rows = reductions.reduce_prod(sizes[:axis])
            splits = math_ops.range(rows + 1) * sizes[axis]
            count_known = None if known is None else _product(known[:axis])
            splits.set_shape([None if count_known is None else count_known + 1])
            result = cls(result, splits, True, uniform_row_length=None if known is None else known[axis])
        return result

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64
    ) -> RaggedTensor:
        """The rows of a SparseTensor of two dimensions, whose values stand at the beginnings of the rows.

        Raises:
          TypeError: `st_input` is not a SparseTensor.
          ValueError: it has another rank than 2.
        """
        dtype = as_dtype(row_splits_dtype)
        if not isinstance(st_input, SparseTensor):
            raise TypeError(f"Argument `st_input` must be of type SparseTensor, got {type(st_input).__name__}")
        with name_scope(name, "RaggedFromSparse"):
            rank = st_input.dense_shape.shape.as_list()[0] if st_input.dense_shape.shape.ndims == 1 else None
            if rank is None:
                columns = st_input.indices.shape.as_list() if st_input.indices.shape.ndims == 2 else [None, None]
                rank = columns[1]
            if rank != 2:
                raise ValueError(f"rank(st_input) must be 2, got {rank}")
            ids = math_ops.cast(st_input.indices[:, 0], dtype)
            places = math_ops.cast(st_input.indices[:, 1], dtype)
            nrows = math_ops.cast(st_input.dense_shape[0], dtype)
            splits = _splits_of_ids(ids, nrows)
            check = check_ops.assert_equal(
                places, math_ops.range(array.shape(ids, out_type=dtype)[0]) - gathering.gather(splits, ids),
                message="SparseTensor is not right-ragged",
            )
            values = ordering.with_dependencies([check], st_input.values)
            return cls(values, splits, True, value_rowids=ids, nrows=nrows)

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
        return 1 + self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 1

    @property
    def values(self) -> Any:
        """The rows one after the other: a Tensor or RaggedTensor [nvals, ...]."""
        return self._values

    @property
    def flat_values(self) -> Any:
        """The innermost values, a Tensor."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self) -> Tensor:
        """Where the rows of the outermost ragged dimension begin and end, [nrows + 1]."""
        return self._row_splits

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
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
                self._value_rowids = _ids_of_splits(self._row_splits)
        return self._value_rowids

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """`value_rowids` of all ragged dimensions, the outermost first."""
        inner = self._values.nested_value_rowids(name) if isinstance(self._values, RaggedTensor) else ()
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
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = array.shape(self._values, out_type=self._row_splits.dtype)
            ones = filling.ones(sizes[: axis - 1], self._row_splits.dtype)
            return self.with_values(ones * sizes[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """`row_lengths` of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_lengths(name) if isinstance(self._values, RaggedTensor) else ()
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
                if isinstance(self._values, RaggedTensor)
                else array.shape(self._values, out_type=dtype)[1:]
            )
            whole = joining.concat([joining.stack([self.nrows(dtype), widest]), inner], axis=0)
            return whole if axis is None else gathering.gather(whole, axis)

    # -- other values in the same rows --

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values, as many as there are."""
        values = ragged_or_dense(new_values)
        values.shape.with_rank_at_least(1)
        self._values.shape[:1].assert_is_compatible_with(values.shape[:1])
        mine = self
        if isinstance(values, RaggedTensor) and values.row_splits.dtype != self._row_splits.dtype:
            values, mine = values.with_row_splits_dtype(dtypes.int64), self.with_row_splits_dtype(dtypes.int64)
        return RaggedTensor(
            values, mine._row_splits, True, value_rowids=mine._value_rowids, nrows=mine._nrows,
            uniform_row_length=self._uniform_row_length,
        )  # fmt: skip

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows, of all dimensions, of other innermost values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """This tensor, whose row splits have another dtype: int32 or int64."""
        wanted = as_dtype(dtype)
        if wanted not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"Argument `row_splits` dtype must be int32 or int64. Received {wanted!r}")
        if self._row_splits.dtype == wanted:
            return self
        values = self._values.with_row_splits_dtype(wanted) if isinstance(self._values, RaggedTensor) else self._values
        cast = [None if each is None else math_ops.cast(each, wanted) for each in (self._value_rowids, self._nrows)]
        return RaggedTensor(
            values, math_ops.cast(self._row_splits, wanted), True, value_rowids=cast[0], nrows=cast[1],
            uniform_row_length=self._uniform_row_length,
        )  # fmt: skip

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """This tensor, whose dimensions from `outer_axis` to `inner_axis` are one."""
        rank = self.shape.ndims
        outer, inner = (
            axis if axis >= 0 or rank is None else axis + rank for axis in (outer_axis, inner_axis)
        )
        if not 0 <= outer <= inner:
            raise ValueError(f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis "
                             f"({inner_axis})")  # fmt: skip
        return _merge_dims(self, outer, inner)

    # -- other forms --

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
        """A dense tensor whose rows are padded.

        Args:
          default_value: the padding; 0 or the empty string by default.
          name: a prefix of the names of the operations.
          shape: the shape of the result; longer rows are cut. By default, all rows have room.

        Returns:
          A Tensor of the rank of this tensor.
        """
        with name_scope(name, "RaggedToTensor"):
            if default_value is None:
                default = "" if self.dtype == dtypes.string else np.zeros((), self.dtype.as_numpy_dtype)
                default_value = constant(default, self.dtype)
            else:
                default_value = convert_to_tensor(default_value, self.dtype, name="default_value")
            splits = list(self.nested_row_splits)
            static = TensorShape(None)
            if shape is None:
                wanted = constant(-1, dtypes.int64)
            elif isinstance(shape, Tensor):
                wanted = shape
            else:
                static = TensorShape(shape)
                sizes = [-1 if each is None else each for each in static.as_list()] if static.ndims is not None else -1
                wanted = constant(sizes, dtypes.int64)
            result = apply_op(
                "RaggedTensorToTensor", shape=wanted, values=self.flat_values, default_value=default_value,
                row_partition_tensors=splits, row_partition_types=["ROW_SPLITS"] * len(splits),
            )  # fmt: skip
            if static.ndims is not None and self.shape.ndims is not None:
                known = [a if a is not None else b for a, b in zip(static.as_list(), self.shape.as_list(), strict=True)]
                result.set_shape(known)
            elif shape is None:
                result.set_shape(self.shape)
            return result

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A SparseTensor of the values, at their places in the rows."""
        with name_scope(name, "RaggedToSparse"):
            parts = apply_op(
                "RaggedTensorToSparse", rt_nested_splits=list(self.nested_row_splits),
                rt_dense_values=self.flat_values,
            )  # fmt: skip
            return SparseTensor(*parts)

    def to_list(self) -> Any:
        """Refused: a graph has no values before it runs. Raises NotImplementedError."""
        raise NotImplementedError(
            "RaggedTensor.to_list() is only supported in eager mode; run the tensor and use the value's to_list()"
        )

    def numpy(self) -> Any:
        """Refused: a graph has no values before it runs. Raises NotImplementedError."""
        raise NotImplementedError(
            "RaggedTensor.numpy() is only supported in eager mode; run the tensor with session.run"
        )

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> RaggedTensorValue:
        """The value, from `session` or the default session."""
        session = session_for(self.graph, session, "`eval()`", "evaluate tensor")
        return session.run(self, feed_dict)

    def consumers(self) -> list[Operation]:
        """The operations that take one of the tensors."""
        return list(dict.fromkeys(op for part in self._parts() for op in part.consumers()))

    def __repr__(self) -> str:
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    # -- slices --

    def __getitem__(self, slice_spec: Any) -> Any:
        keys = list(slice_spec) if isinstance(slice_spec, tuple) else [slice_spec]
        with name_scope(None, "RaggedGetItem"):
            return _item(self, keys)

    # -- as the parts of branches, loops, fetches and feeds --

    def _parts(self) -> list[Any]:
        return [self.flat_values, *self.nested_row_splits]

    def _with_parts(self, parts: Sequence[Any]) -> RaggedTensor:
        flat, splits = parts[0], list(parts[1:])
        result: Any = flat
        lengths: list[int | None] = []
        level: Any = self
        while isinstance(level, RaggedTensor):
            lengths.append(level._uniform_row_length)
            level = level.values
        for each, length in zip(reversed(splits), reversed(lengths), strict=True):
            result = RaggedTensor(result, each, True, uniform_row_length=length)
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


RaggedTensorSpec.ragged_type = RaggedTensor


class RaggedTensorValue:
    """The arrays of a RaggedTensor: what `session.run` returns, and what is fed.

    Args:
      values: an array, or a RaggedTensorValue for a further ragged dimension.
      row_splits: an integer array [nrows + 1].
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        if not isinstance(row_splits, (np.ndarray, np.generic)) or row_splits.dtype not in (np.int64, np.int32):
            raise TypeError("row_splits must be a numpy array of int32 or int64 values")
        if row_splits.ndim != 1 or not row_splits.size:
            raise ValueError("row_splits must be a vector of at least one number")
        if not isinstance(values, (RaggedTensorValue, np.ndarray, np.generic)):
            raise TypeError(f"values must be an array or a RaggedTensorValue, got {type(values).__name__}")
        self._values = values
        self._row_splits: Any = row_splits

    @property
    def row_splits(self) -> Any:
        """Where the rows begin and end."""
        return self._row_splits

    @property
    def values(self) -> Any:
        """The rows one after the other."""
        return self._values

    @property
    def dtype(self) -> Any:
        """The numpy dtype of the values."""
        return self._values.dtype

    @property
    def flat_values(self) -> Any:
        """The innermost array."""
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensorValue) else 0)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape; ragged dimensions are None."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        inner = self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        splits = self._row_splits.tolist()
        return [inner[start:end] for start, end in zip(splits[:-1], splits[1:], strict=True)]

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"


def ragged_or_dense(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A RaggedTensor unchanged, a RaggedTensorValue as one, anything else by `convert_to_tensor`.

    Raises:
      ValueError: it is ragged and of another dtype.
    """
    if isinstance(value, RaggedTensorValue):
        value = RaggedTensor.from_row_splits(ragged_or_dense(value.values), constant(value.row_splits), validate=False)
    if isinstance(value, RaggedTensor):
        if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {as_dtype(dtype).name} for RaggedTensor with dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    return convert_to_tensor(value, dtype, name=name)


def match_row_splits_dtypes(*values: Any) -> list[Any]:
    """The values, the ragged ones of them with row splits of one dtype: int64 if they differ."""
    kinds = {each.row_splits.dtype for each in values if isinstance(each, RaggedTensor)}
    if len(kinds) < 2:
        return list(values)
    return [each.with_row_splits_dtype(dtypes.int64) if isinstance(each, RaggedTensor) else each for each in values]


def _refuse_conversion(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    raise TypeError(
        f"Failed to convert {type(value).__name__} to Tensor: {value!r}. Use its to_tensor() or flat_values."
    )


register_tensor_conversion_function((RaggedTensor, RaggedTensorValue), _refuse_conversion, 10)


def _splits_tensor(value: Any, name: str) -> Tensor:
    """Row splits, lengths or ids as an integer tensor; int64 unless they are an int32 tensor or array."""
    keeps = isinstance(value, Tensor) or isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.int32
    tensor = convert_to_tensor(value, None if keeps else dtypes.int64, name=name)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"Row partition tensors must be int32 or int64, got {name} of {tensor.dtype.name}")
    return tensor


def _one_splits_dtype(values: Any, splits: Tensor) -> tuple[Any, Tensor]:
    if isinstance(values, RaggedTensor) and values.row_splits.dtype != splits.dtype:
        return values.with_row_splits_dtype(dtypes.int64), math_ops.cast(splits, dtypes.int64)
    return values, splits


def _check_nested(name: str, value: Any) -> None:
    if isinstance(value, Tensor):
        raise TypeError(f"Argument `{name}` must be a list of Tensors. Received {value}.")


def _count(values: Any, dtype: DType) -> Tensor:
    """The number of values, a scalar."""
    if isinstance(values, RaggedTensor):
        return values.nrows(dtype)
    return array.shape(values, out_type=dtype)[0]


def _rows_of(count: Tensor, length: Tensor) -> Tensor:
    """How many rows of this length there are; 0 for rows of length 0."""
    one = constant(1, length.dtype)
    return math_ops.floordiv(count, math_ops.maximum(length, one))


def _splits_of_lengths(lengths: Tensor) -> Tensor:
    return joining.concat([constant([0], lengths.dtype), reductions.cumsum(lengths)], axis=0)


def _splits_of_ids(ids: Tensor, nrows: Any) -> Tensor:
    ones = filling.ones_like(ids)
    lengths = segment.unsorted_segment_sum(ones, ids, nrows)
    return _splits_of_lengths(lengths)


def _ids_of_splits(splits: Tensor) -> Tensor:
    positions = math_ops.range(splits[-1])
    # The row of a position: how many rows end at or before it.
    return math_ops.cast(
        apply_op("UpperBound", sorted_inputs=splits[1:][None], values=positions[None], out_type=dtypes.int64)[0],
        splits.dtype,
    )


def _product(sizes: Sequence[int | None]) -> int | None:
    """The product of sizes; None if one is unknown."""
    result = 1
    for each in sizes:
        if each is None:
            return None
        result *= each
    return result


def _lengths_without(tensor: Tensor, padding: Any, dtype: DType) -> Tensor:
    """The lengths of the rows without the padding at their ends."""
    padding = convert_to_tensor(padding, tensor.dtype, name="padding")
    differs = math_ops.not_equal(tensor, padding)
    rank = tensor.shape.ndims
    if rank is None or rank > 2:
        axes = list(range(2, rank)) if rank is not None else math_ops.range(2, array.rank(tensor))
        differs = reductions.reduce_any(differs, axis=axes)
    columns = array.shape(tensor, out_type=dtype)[1]
    places = math_ops.range(1, columns + 1)
    zero = constant([[0]], dtype)
    ends = math_ops.cast(differs, dtype) * places[None]
    rows = array.shape(tensor, out_type=dtype)[0]
    return reductions.reduce_max(joining.concat([ends, joining.tile(zero, joining.stack([rows, 1]))], axis=1), axis=1)


def _merge_dims(value: Any, outer: int, inner: int) -> Any:
    for _ in range(inner - outer):
        value = _merged_with_next(value, outer)
    return value


def _merged_with_next(value: Any, axis: int) -> Any:
    """`value`, whose dimensions `axis` and `axis + 1` are one."""
    if isinstance(value, RaggedTensor):
        if axis == 0:
            return value.values
        if axis > 1:
            return value.with_values(_merged_with_next(value.values, axis - 1))
        inner = value.values
        if isinstance(inner, RaggedTensor):
            return RaggedTensor(inner.values, gathering.gather(inner.row_splits, value.row_splits), True)
        width = array.shape(inner, out_type=value.row_splits.dtype)[1]
        return RaggedTensor(_merged_with_next(inner, 0), value.row_splits * width, True)
    sizes = array.shape(value)
    result = array.reshape(value, joining.concat([sizes[:axis], [-1], sizes[axis + 2 :]], axis=0))
    if value.shape.ndims is not None:
        known = value.shape.as_list()
        pair = known[axis : axis + 2]
        result.set_shape([*known[:axis], _product(pair), *known[axis + 2 :]])
    return result


def _item(value: Any, keys: list[Any]) -> Any:
    """value[keys]."""
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[tuple(keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        return _item(value, _without_ellipsis(rest, value.shape.ndims))
    if key is None:
        inner = _item(value, rest)
        return RaggedTensor.from_uniform_row_length(inner, _count(inner, value.row_splits.dtype), nrows=1,
                                                    validate=False)  # fmt: skip
    if isinstance(key, slice):
        rows = value if _is_whole(key) else _sliced_rows(value, key)
        return _inner_item(rows, rest)
    splits = value.row_splits
    start = splits[:-1][key]
    limit = splits[1:][key]
    return _item(value.values[start:limit], rest)


def _inner_item(value: Any, keys: list[Any]) -> Any:
    """The keys applied to each row."""
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[tuple([slice(None)] + keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        rank = value.shape.ndims
        return _inner_item(value, _without_ellipsis(rest, None if rank is None else rank - 1))
    if key is None:
        inner = _inner_item(value, rest)
        return RaggedTensor.from_uniform_row_length(inner, 1, nrows=_count(inner, value.row_splits.dtype),
                                                    validate=False)  # fmt: skip
    if isinstance(key, slice):
        if not _is_whole(key):
            value = _sliced_columns(value, key)
        return value.with_values(_inner_item(value.values, rest))
    if value._uniform_row_length is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    length = value._uniform_row_length
    if isinstance(key, int) and not -length <= key < length:
        raise ValueError(f"Index {key} is out of bounds for a dimension of size {length}")
    places = value.row_starts() + (key % length if isinstance(key, int) else math_ops.cast(key, value.row_splits.dtype))
    return _inner_item(take_rows(value.values, places), rest)


def _without_ellipsis(rest: list[Any], rank: int | None) -> list[Any]:
    if not rest:
        return []
    if rank is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    used = sum(each is not None for each in rest)
    return [slice(None)] * max(0, rank - used) + rest


def _is_whole(key: slice) -> bool:
    return key.start is None and key.stop is None and key.step is None


def _sliced_rows(value: RaggedTensor, key: slice) -> RaggedTensor:
    places = math_ops.range(value.nrows())[key]
    return take_rows(value, places)


def _sliced_columns(value: RaggedTensor, key: slice) -> RaggedTensor:
    """Each row[key]."""
    lengths, dtype = value.row_lengths(), value.row_splits.dtype
    step = 1 if key.step is None else key.step
    if isinstance(step, int) and step == 0:
        raise ValueError("slice step cannot be zero")
    zero, forward = constant(0, dtype), not isinstance(step, int) or step > 0
    low, high = (zero, lengths) if forward else (zero - 1, lengths - 1)

    def bound(place: Any, default: Any) -> Any:
        if place is None:
            return default
        place = math_ops.cast(convert_to_tensor(place), dtype)
        from_end = lengths + place
        chosen = apply_op("SelectV2", condition=math_ops.less(place, zero), t=from_end,
                          e=filling.zeros_like(lengths) + place)  # fmt: skip
        return math_ops.minimum(math_ops.maximum(chosen, low), high)

    starts = bound(key.start, filling.zeros_like(lengths) if forward else lengths - 1)
    limits = bound(key.stop, lengths if forward else filling.zeros_like(lengths) - 1)
    offsets = value.row_starts()
    splits, places = apply_op(
        "RaggedRange", starts=starts + offsets, limits=limits + offsets,
        deltas=math_ops.cast(convert_to_tensor(step), dtype), Tsplits=dtype,
    )  # fmt: skip
    splits.set_shape(value.row_splits.shape)
    return RaggedTensor(take_rows(value.values, places), splits, True)


def take_rows(params: Any, indices: Tensor) -> Any:
    """Rows of a Tensor or RaggedTensor, by a vector of their numbers."""
    if not isinstance(params, RaggedTensor):
        return gathering.gather(params, indices)
    outputs = apply_op(
        "RaggedGather", params_nested_splits=list(params.nested_row_splits), params_dense_values=params.flat_values,
        indices=indices, OUTPUT_RAGGED_RANK=params.ragged_rank + (indices.shape.ndims or 1) - 1,
    )  # fmt: skip
    splits, flat = list(outputs[0]), outputs[1]
    if params.flat_values.shape.ndims is not None:
        flat.set_shape(TensorShape([None]).concatenate(params.flat_values.shape[1:]))
    count = indices.shape.as_list()[0] if indices.shape.ndims else None
    if splits and count is not None:
        splits[0].set_shape([count + 1])
    result = flat
    for each in reversed(splits):
        result = RaggedTensor(result, each, True)
    return result
