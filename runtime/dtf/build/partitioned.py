"""Variables in parts: `PartitionedVariable`, and the partitioners that say into how many.

A partitioner is a function from a shape and a dtype to the number of parts per dimension; at most one number may
exceed 1. `variable_scope.get_variable` makes the parts; together with a device setter each lands on another ps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_graph import name_scope
from dtf.build.graph import Graph, Tensor
from dtf.build.variables import Variable
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "fixed_size_partitioner", "min_max_variable_partitioner", "variable_axis_size_partitioner",
]  # fmt: skip

Partitioner = Callable[..., Sequence[int]]


class PartitionedVariable:
    """Several variables that are the consecutive slices of one tensor; it converts to their concatenation.

    Args:
      name: the name of the whole.
      shape: the shape of the whole.
      dtype: the element type.
      variable_list: the parts, each with its save slice info.
      partitions: the number of parts per dimension.
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any, variable_list: Sequence[Variable], partitions: Sequence[int]
    ) -> None:
        self._name = name
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._variable_list = sorted(variable_list, key=lambda part: _slice_info(part).var_offset or [])
        self._partitions = list(partitions)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        return len(self._variable_list)

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    @property
    def graph(self) -> Graph:
        """The graph of the parts."""
        return self._variable_list[0].graph

    @property
    def partition_axis(self) -> int:
        """The dimension that is partitioned."""
        return next((axis for axis, parts in enumerate(self._partitions) if parts > 1), 0)

    def as_tensor(self) -> Tensor:
        """The whole."""
        if len(self._variable_list) == 1:
            with name_scope(None):
                return apply_op("Identity", self._name, input=self._variable_list[0])
        with name_scope(self._name + "/ConcatPartitions/"):
            whole = apply_op("ConcatV2", "concat", values=list(self._variable_list), axis=self.partition_axis)
        with name_scope(None):
            return apply_op("Identity", self._name, input=whole)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the parts from a tensor of the whole shape; one result per part."""
        return self._each("assign", value, use_locking, name, read_value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the parts; one result per part."""
        return self._each("assign_add", value, use_locking, name, read_value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the parts; one result per part."""
        return self._each("assign_sub", value, use_locking, name, read_value)

    def _each(self, method: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> list[Any]:
        sizes = [part.shape.as_list()[self.partition_axis] for part in self._variable_list]
        slices = apply_op(
            "SplitV",
            "split",
            value=convert_to_tensor(value, self._dtype),
            size_splits=sizes,
            split_dim=self.partition_axis,
            num_split=len(sizes),
        )
        return [
            getattr(part, method)(piece, use_locking=use_locking, name=name, read_value=read_value)
            for part, piece in zip(self._variable_list, slices, strict=True)
        ]

    def _get_variable_list(self) -> list[Variable]:
        return self._variable_list

    def _get_partitions(self) -> list[int]:
        return self._partitions


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """A partitioner into `num_shards` parts along `axis`, or as many as it has rows. Raises ValueError for a variable
    without this axis.
    """

    def partition(shape: Any, dtype: Any = None, **_: Any) -> list[int]:
        parts = _whole(shape, axis)
        parts[axis] = min(num_shards, TensorShape(shape).as_list()[axis] or num_shards)
        return parts

    return partition


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """A partitioner into parts of at most `max_shard_bytes` bytes each, `max_shards` of them at most. It raises
    ValueError for a variable without this axis.

    Raises:
      ValueError: a bound is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1 or (max_shards is not None and max_shards < 1):
        raise ValueError("max_shard_bytes, bytes_per_string_element and max_shards must be positive.")

    def partition(shape: Any, dtype: Any, **_: Any) -> list[int]:
        sizes, parts = _known_sizes(shape), _whole(shape, axis)
        element_bytes = _element_bytes(dtype, bytes_per_string_element)
        slice_bytes = math.prod(sizes) // max(sizes[axis], 1) * element_bytes
        slices_per_shard = max(1, max_shard_bytes // slice_bytes) if slice_bytes else sizes[axis]
        parts[axis] = max(1, -(-sizes[axis] // max(slices_per_shard, 1)))
        if max_shards is not None:
            parts[axis] = min(max_shards, parts[axis])
        return parts

    return partition


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """A partitioner into up to `max_partitions` parts, of at least `min_slice_size` bytes each. Raises ValueError for
    a variable without this axis.

    Raises:
      ValueError: a bound is not positive.
    """
    if max_partitions < 1 or min_slice_size < 1 or bytes_per_string_element < 1:
        raise ValueError("max_partitions, min_slice_size and bytes_per_string_element must be positive.")

    def partition(shape: Any, dtype: Any, **_: Any) -> list[int]:
        sizes, parts = _known_sizes(shape), _whole(shape, axis)
        total_bytes = math.prod(sizes) * _element_bytes(dtype, bytes_per_string_element)
        parts[axis] = max(1, min(sizes[axis], max_partitions, -(-total_bytes // min_slice_size)))
        return parts

    return partition


def _whole(shape: Any, axis: int) -> list[int]:
    """One part along each dimension; `axis` must be one of the dimensions."""
    shape = TensorShape(shape)
    rank = len(shape.as_list())
    if not -rank <= axis < rank:
        raise ValueError(f"A variable of shape {shape} cannot be partitioned along axis {axis}: it has {rank} axes.")
    return [1] * rank


def _known_sizes(shape: Any) -> list[int]:
    shape = TensorShape(shape)
    if not shape.is_fully_defined():
        raise ValueError(f"shape is not fully defined: {shape}")
    return [int(size) for size in shape.as_list() if size is not None]


def _element_bytes(dtype: Any, bytes_per_string_element: int) -> int:
    dtype = as_dtype(dtype)
    return bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size


def _slice_info(part: Variable) -> Any:
    info = part._get_save_slice_info()
    if info is None:
        raise ValueError(f"{part.name} is not a part of a partitioned variable: it has no slice info.")
    return info


def _to_tensor(
    value: PartitionedVariable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if as_ref:
        raise NotImplementedError(f"PartitionedVariable {value.name} has no single reference.")
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type '{value.dtype.name}'"
        )
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _to_tensor)
