"""tensorflow.python.data.util.sparse: sparse tensors in elements, and the variant tensors that stand for them."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.ops import data_structure as _structure
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "any_sparse", "as_dense_shapes", "as_dense_types", "deserialize_sparse_tensors", "get_classes",
    "serialize_many_sparse_tensors", "serialize_sparse_tensors",
]  # fmt: skip


def any_sparse(classes: Any) -> bool:
    """Whether a class of the structure is SparseTensor."""
    return any(each is SparseTensor for each in _structure.flatten(classes))


def get_classes(tensors: Any) -> Any:
    """The classes of tensors, in their structure."""
    kinds = [SparseTensor if isinstance(each, SparseTensor) else Tensor for each in _structure.flatten(tensors)]
    return _structure.pack(tensors, kinds)


def as_dense_types(types: Any, classes: Any) -> Any:
    """The types of the tensors that stand for elements: variant for a sparse tensor."""
    return _replaced(types, classes, lambda _: dtypes.variant)


def as_dense_shapes(shapes: Any, classes: Any) -> Any:
    """The shapes of the tensors that stand for elements: unknown for a sparse tensor."""
    return _replaced(shapes, classes, lambda _: TensorShape(None))


def serialize_sparse_tensors(tensors: Any) -> Any:
    """The tensors with a variant vector [3] in place of each sparse one."""
    return _serialized(tensors, "SerializeSparse")


def serialize_many_sparse_tensors(tensors: Any) -> Any:
    """The tensors with a variant matrix [rows, 3] in place of each sparse one."""
    return _serialized(tensors, "SerializeManySparse")


def deserialize_sparse_tensors(tensors: Any, types: Any, shapes: Any, classes: Any) -> Any:
    """The inverse of `serialize_sparse_tensors`."""
    leaves = []
    for tensor, dtype, shape, kind in zip(*map(_leaves, (tensors, types, shapes, classes)), strict=True):
        if kind is not SparseTensor:
            leaves.append(tensor)
            continue
        parts = apply_op("DeserializeSparse", None, serialized_sparse=tensor, dtype=dtype)
        sparse = SparseTensor(*parts)
        if shape is not None and TensorShape(shape).ndims is not None:
            sparse.indices.set_shape([None, TensorShape(shape).ndims])
            sparse.dense_shape.set_shape([TensorShape(shape).ndims])
        leaves.append(sparse)
    return _structure.pack(tensors, leaves)


def _leaves(structure: Any) -> list[Any]:
    return _structure.flatten(structure)


def _replaced(structure: Any, classes: Any, make: Any) -> Any:
    pairs = zip(_leaves(structure), _leaves(classes), strict=True)
    return _structure.pack(structure, [make(leaf) if kind is SparseTensor else leaf for leaf, kind in pairs])


def _serialized(tensors: Any, op_type: str) -> Any:
    def of(leaf: Any) -> Any:
        if not isinstance(leaf, SparseTensor):
            return leaf
        return apply_op(
            op_type, None, sparse_indices=leaf.indices, sparse_values=leaf.values, sparse_shape=leaf.dense_shape,
            out_type=dtypes.variant,
        )  # fmt: skip

    return _structure.pack(tensors, [of(leaf) for leaf in _leaves(tensors)])
