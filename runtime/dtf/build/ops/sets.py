"""Set operations on the last dimension of tensors: the functions of tf.sets, and their static shapes.

Kernels: `run.kernels.sets`. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/sets
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.shape_rules import shape_rule
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["set_difference", "set_intersection", "set_size", "set_union"]


def set_size(a: SparseTensor, validate_indices: bool = True) -> Tensor:
    """How many different elements each row of the last dimension stores: int32, of the rank of `a` less one.

    Raises:
      TypeError: `a` is no SparseTensor.
    """
    if not isinstance(a, SparseTensor):
        raise TypeError(f"set_size takes a SparseTensor, got {a!r}.")
    return apply_op(
        "SetSize", set_indices=a.indices, set_values=a.values, set_shape=a.dense_shape,
        validate_indices=validate_indices,
    )  # fmt: skip


def set_intersection(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> SparseTensor:
    """The elements of each row of the last dimension that both have. The other dimensions of a and b are equal."""
    return _combine(a, b, "intersection", validate_indices)


def set_difference(a: TensorLike, b: TensorLike, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of each row of the last dimension that are in a but not in b (the reverse without `aminusb`)."""
    return _combine(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> SparseTensor:
    """The elements of each row of the last dimension that either has."""
    return _combine(a, b, "union", validate_indices)


_MIRRORED = {"a-b": "b-a", "b-a": "a-b"}


def _combine(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    a, b = (each if isinstance(each, SparseTensor) else convert_to_tensor(each) for each in (a, b))
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):  # the op takes the dense one first
        a, b, operation = b, a, _MIRRORED.get(operation, operation)
    with name_scope("set_operation"):
        common: dict[str, Any] = {"set_operation": operation, "validate_indices": validate_indices}
        if not isinstance(b, SparseTensor):
            return SparseTensor(*apply_op("DenseToDenseSetOperation", set1=a, set2=b, **common))
        second: dict[str, Any] = {"set2_indices": b.indices, "set2_values": b.values, "set2_shape": b.dense_shape}
        if not isinstance(a, SparseTensor):
            return SparseTensor(*apply_op("DenseToSparseSetOperation", set1=a, **second, **common))
        first: dict[str, Any] = {"set1_indices": a.indices, "set1_values": a.values, "set1_shape": a.dense_shape}
        return SparseTensor(*apply_op("SparseToSparseSetOperation", **first, **second, **common))


# -- shape rules


@shape_rule("DenseToDenseSetOperation", "DenseToSparseSetOperation")
def _(op):
    ranks = [each.shape.ndims for each in op.inputs[: 2 if op.type.startswith("DenseToDense") else 1]]
    rank = next((each for each in ranks if each is not None), None)
    return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]


@shape_rule("SparseToSparseSetOperation")
def _(op):
    rank = op.inputs[0].shape.with_rank(2).as_list()[1]
    return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]


@shape_rule("SetSize")
def _(op):
    rank = op.inputs[2].shape.with_rank(1).as_list()[0]
    return [unknown_shape(None if rank is None else rank - 1)]
