"""Values made of tensors: SparseTensor, IndexedSlices and TensorArray, taken apart and put together again.

Owns which tensors of such a value travel through branches and loops. A TensorArray travels as its flow. Other kinds,
such as RaggedTensor, are subclasses of `Composite`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build import nest
from dtf.build.composite import Composite
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.wire.tensor_shape import TensorShape


def parts_of(value: Any) -> list[Any]:
    """The tensors of a value; any other value alone."""
    if isinstance(value, SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    if isinstance(value, Composite):
        return value._parts()
    if isinstance(value, IndexedSlices):
        return [value.values, value.indices, *([] if value.dense_shape is None else [value.dense_shape])]
    return [value.flow] if hasattr(value, "flow") else [value]


def with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """A value of the kind of `value`, of other tensors."""
    if isinstance(value, SparseTensor):
        return SparseTensor(*parts)
    if isinstance(value, IndexedSlices):
        return IndexedSlices(*parts)
    if isinstance(value, Composite):
        return value._with_parts(parts)
    if hasattr(value, "flow"):
        from dtf.build.ops.tensor_array import build_ta_with_new_flow

        return build_ta_with_new_flow(value, parts[0])
    return parts[0]


def part_shapes(value: Any, shape: TensorShape) -> list[TensorShape]:
    """The shapes of the tensors of `value`, a value of the static shape `shape`."""
    if isinstance(value, SparseTensor):
        return [TensorShape([None, shape.ndims]), TensorShape([None]), TensorShape([shape.ndims])]
    if isinstance(value, IndexedSlices):
        rows = [shape, TensorShape([None if shape.ndims is None else shape.as_list()[0]])]
        return [*rows, TensorShape([shape.ndims])][: len(parts_of(value))]
    if isinstance(value, Composite):
        return [part.shape for part in value._parts()]
    return [shape]


def flatten(structure: Any) -> list[Any]:
    """The tensors of all leaves of a structure, in order."""
    return [part for leaf in nest.flatten(structure) for part in parts_of(leaf)]


def pack(structure: Any, tensors: Sequence[Any]) -> Any:
    """`tensors`, in the order of `flatten(structure)`, in its shape."""
    rest = iter(tensors)
    leaves = [with_parts(leaf, [next(rest) for _ in parts_of(leaf)]) for leaf in nest.flatten(structure)]
    return nest.pack_sequence_as(structure, leaves)
