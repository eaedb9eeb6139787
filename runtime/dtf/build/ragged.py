"""RaggedTensor: rows of different lengths, and RaggedTensorValue, the arrays of one.

Owns the container's factories and its other forms. Its state is `ragged_rows`, its slices are `ragged_slices`, the
tensors that tell its rows are of `row_partitions`. The functions on ragged tensors are in `build.ops.ragged_functions`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/RaggedTensor
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import dtf.build.ops.ragged  # shape rules
import dtf.build.packing  # noqa: F401 values may be lists of tensors
from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, check_ops, filling, gathering, joining, ordering, reductions, slicing
from dtf.build.ops import math as math_ops
from dtf.build.ragged_rows import RaggedRows, count_values, one_splits_dtype, rows_or_dense
from dtf.build.ragged_slices import item_of, merged_dims
from dtf.build.ragged_value import RaggedTensorValue
from dtf.build.row_partitions import lengths_without, product, rows_of, splits_of_ids, splits_of_lengths, splits_tensor
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor, session_for
from dtf.build.tensor_spec import RaggedTensorSpec
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = ["RaggedTensor", "RaggedTensorValue", "ragged_or_dense"]


class RaggedTensor(RaggedRows):
    """A tensor with ragged dimensions: its rows have different lengths.

    Made by the `from_...` methods and by `tf.ragged.constant`; the initializer is not public.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/RaggedTensor
    """


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
            value_rowids = splits_tensor(value_rowids, "value_rowids")
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
                        count_values(values, value_rowids.dtype),
                        array.shape(value_rowids, out_type=value_rowids.dtype)[0],
                        message="Arguments to from_value_rowids do not form a valid RaggedTensor",
                    ),
                    check_ops.assert_non_negative(value_rowids[:1]),
                    check_ops.assert_less_equal(value_rowids[:-1], value_rowids[1:]),
                    check_ops.assert_less(value_rowids[-1:], nrows),
                ]  # fmt: skip
                value_rowids = ordering.with_dependencies(checks, value_rowids)
            splits = splits_of_ids(value_rowids, nrows)
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
            values, row_splits = ragged_or_dense(values), splits_tensor(row_splits, "row_splits")
            row_splits.shape.assert_has_rank(1)
            values, row_splits = one_splits_dtype(values, row_splits)
            if validate:
                dtype = row_splits.dtype
                checks = [
                    check_ops.assert_equal(row_splits[0], constant(0, dtype), message="row_splits must begin with 0"),
                    check_ops.assert_less_equal(row_splits[:-1], row_splits[1:], message="row_splits must ascend"),
                    check_ops.assert_equal(
                        row_splits[-1], count_values(values, dtype),
                        message="row_splits must end with the number of values",
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
            values, row_lengths = ragged_or_dense(values), splits_tensor(row_lengths, "row_lengths")
            row_lengths.shape.assert_has_rank(1)
            values, row_lengths = one_splits_dtype(values, row_lengths)
            if validate:
                checks = [
                    check_ops.assert_non_negative(row_lengths, message="row_lengths must not be negative"),
                    check_ops.assert_equal(
                        reductions.reduce_sum(row_lengths), count_values(values, row_lengths.dtype),
                        message="row_lengths must sum up to the number of values",
                    ),
                ]  # fmt: skip
                row_lengths = ordering.with_dependencies(checks, row_lengths)
            return cls(values, splits_of_lengths(row_lengths), True)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that begin at these positions; each ends where the next begins."""
        with name_scope(name, "RaggedFromRowStarts"):
            values, row_starts = ragged_or_dense(values), splits_tensor(row_starts, "row_starts")
            row_starts.shape.assert_has_rank(1)
            values, row_starts = one_splits_dtype(values, row_starts)
            if validate:
                zero = constant(0, row_starts.dtype)
                row_starts = ordering.with_dependencies(
                    [
                        check_ops.assert_equal(row_starts[:1], zero, message="row_starts must begin with 0"),
                        check_ops.assert_less_equal(row_starts[:-1], row_starts[1:], message="row_starts must ascend"),
                    ],
                    row_starts,
                )
            return cls(values, joining.concat([row_starts, count_values(values, row_starts.dtype)[None]], axis=0), True)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that end before these positions; each begins where the previous ends."""
        with name_scope(name, "RaggedFromRowLimits"):
            values, row_limits = ragged_or_dense(values), splits_tensor(row_limits, "row_limits")
            row_limits.shape.assert_has_rank(1)
            values, row_limits = one_splits_dtype(values, row_limits)
            if validate:
                row_limits = ordering.with_dependencies(
                    [
                        check_ops.assert_non_negative(row_limits[:1]),
                        check_ops.assert_less_equal(row_limits[:-1], row_limits[1:]),
                        check_ops.assert_equal(row_limits[-1:], count_values(values, row_limits.dtype)),
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
            count = count_values(values, dtype)
            if nrows is None:
                nrows = rows_of(count, length)
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
            raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
        if ragged_rank <= 0:
            raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}.")
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
                lengths = lengths_without(tensor, padding, dtype)
            if lengths is not None:
                lengths = math_ops.cast(convert_to_tensor(lengths, name="lengths"), dtype)
                lengths.shape.assert_has_rank(1)
                lengths = math_ops.maximum(math_ops.minimum(lengths, columns), constant(0, dtype))
                values = slicing.boolean_mask(tensor, filling.sequence_mask(lengths, columns))
                return cls.from_row_lengths(values, lengths, validate=False)
            known = tensor.shape.as_list() if tensor.shape.ndims is not None else [None, None]
            values = array.reshape(tensor, joining.concat([(rows * columns)[None], sizes[2:]], axis=0))
            if tensor.shape.ndims is not None:
                count = product(known[:2])
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
            flat.set_shape([product(known[:ragged_rank]), *known[ragged_rank:]])
        result = cls.from_tensor(flat, lengths, padding, row_splits_dtype=dtype)
        for axis in range(ragged_rank - 1, 0, -1):
            rows = reductions.reduce_prod(sizes[:axis])
            splits = math_ops.range(rows + 1) * sizes[axis]
            count_known = None if known is None else product(known[:axis])
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
            raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
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
            splits = splits_of_ids(ids, nrows)
            check = check_ops.assert_equal(
                places, math_ops.range(array.shape(ids, out_type=dtype)[0]) - gathering.gather(splits, ids),
                message="SparseTensor is not right-ragged",
            )
            values = ordering.with_dependencies([check], st_input.values)
            return cls(values, splits, True, value_rowids=ids, nrows=nrows)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """This tensor, whose dimensions from `outer_axis` to `inner_axis` are one."""
        rank = self.shape.ndims
        outer, inner = (
            axis if axis >= 0 or rank is None else axis + rank for axis in (outer_axis, inner_axis)
        )
        if not 0 <= outer <= inner:
            raise ValueError(f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis "
                             f"({inner_axis})")  # fmt: skip
        return merged_dims(self, outer, inner)

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
            return item_of(self, keys)


RaggedTensorSpec.ragged_type = RaggedTensor


def ragged_or_dense(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A RaggedTensor unchanged, a RaggedTensorValue as one, anything else by `convert_to_tensor`.

    Raises:
      ValueError: it is ragged and of another dtype.
    """
    return rows_or_dense(RaggedTensor, value, dtype, name)


def _refuse_conversion(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    raise TypeError(
        f"Failed to convert {type(value).__name__} to Tensor: {value!r}. Use its to_tensor() or flat_values."
    )


register_tensor_conversion_function((RaggedTensor, RaggedTensorValue), _refuse_conversion, 10)


def _check_nested(name: str, value: Any) -> None:
    if isinstance(value, Tensor):
        raise TypeError(f"{name} must be a list of Tensors. Received {value}.")
