"""Functions that change variables, and the shape rules of all ops that hold, read and change them.

Owns `tf.assign`, `tf.scatter_add` and similar functions, for variables held by reference and by handle. Also owns the
shape rules of the ops that move values into and out of a partition; these have no public functions. Optimizers'
updates are `ops.training`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.graph import Operation, Tensor
from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unknown
from dtf.build.variable_storage import ReferenceStorage, Storage
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "assign", "assign_add", "assign_sub", "batch_scatter_update", "count_up_to", "scatter_add", "scatter_div",
    "scatter_max", "scatter_min", "scatter_mul", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "scatter_sub",
    "scatter_update",
]  # fmt: skip


def assign(
    ref: Any,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Sets a variable to `value`.

    Args:
      ref: a Variable, or a reference tensor.
      value: of the variable's dtype; of its shape too, unless `validate_shape` is False, which lets the variable
        change it.
      validate_shape: True by default.
      use_locking: accepted; updates always hold the variable's lock.

    Returns:
      the variable after the change: a reference, or for a variable held by handle the value read then.

    Raises:
      InvalidArgumentError: (when it runs) the shapes differ.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/assign
    """
    storage = _storage_of(ref)
    if not storage.is_resource:
        return apply_op(
            "Assign", name, ref=storage.tensor, value=value, validate_shape=validate_shape, use_locking=use_locking
        )
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds `value`, of the variable's shape, to a variable. See `assign`.

    Args:
      ref: a Variable, or a reference tensor.
      value: of the variable's shape and dtype.
      use_locking: accepted; updates always hold the variable's lock.
      name: the name of the operation.

    Returns:
      The variable after the change, as `assign` gives it.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/assign_add
    """
    if _storage_of(ref).is_resource:
        return ref.assign_add(value, name=name)
    return _update("AssignAdd", ref, value, use_locking, name)


def assign_sub(ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts `value`, of the variable's shape, from a variable. See `assign`.

    Args:
      ref: a Variable, or a reference tensor.
      value: of the variable's shape and dtype.
      use_locking: accepted; updates always hold the variable's lock.
      name: the name of the operation.

    Returns:
      The variable after the change, as `assign` gives it.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/assign_sub
    """
    if _storage_of(ref).is_resource:
        return ref.assign_sub(value, name=name)
    return _update("AssignSub", ref, value, use_locking, name)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Adds one to a scalar integer variable and gives the value before that.

    Raises:
      OutOfRangeError: (when it runs) the value is `limit` already.
    """
    storage = _storage_of(ref)
    if storage.is_resource:
        return apply_op("ResourceCountUpTo", name, resource=storage.tensor, limit=limit, T=storage.dtype)
    return apply_op("CountUpTo", name, ref=storage.tensor, limit=limit)


def scatter_update(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets rows of a variable: ref[indices[i, ...]] = updates[i, ...]. Which of several updates of one row wins is
    undefined.

    Args:
      ref: a Variable or reference tensor of shape [n, ...].
      indices: int32 or int64 of any shape, within [0, n).
      updates: of shape indices.shape + ref.shape[1:], or a scalar.

    Returns:
      the variable after the change: a reference, or for a variable held by handle the value read then.

    Raises:
      InvalidArgumentError: (when it runs) an index is out of range, or the shapes do not fit.
    """
    return _scattered("ScatterUpdate", ref, indices, updates, use_locking, name)


def scatter_add(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds to rows of a variable; a row that is named twice takes both updates. See `scatter_update`."""
    return _scattered("ScatterAdd", ref, indices, updates, use_locking, name)


def scatter_sub(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts from rows of a variable; a row that is named twice takes both updates. See `scatter_update`."""
    return _scattered("ScatterSub", ref, indices, updates, use_locking, name)


def scatter_mul(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Multiplies rows of a variable; a row that is named twice takes both updates. See `scatter_update`."""
    return _scattered("ScatterMul", ref, indices, updates, use_locking, name)


def scatter_div(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Divides rows of a variable; a row that is named twice takes both updates. See `scatter_update`."""
    return _scattered("ScatterDiv", ref, indices, updates, use_locking, name)


def scatter_min(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Keeps the smaller of each element and its updates. See `scatter_update`."""
    return _scattered("ScatterMin", ref, indices, updates, use_locking, name)


def scatter_max(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Keeps the larger of each element and its updates. See `scatter_update`."""
    return _scattered("ScatterMax", ref, indices, updates, use_locking, name)


def scatter_nd_update(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets elements or slices of a variable.

    Args:
      ref: a Variable or reference tensor.
      indices: int32 or int64, [..., depth]: each vector names an element, or a slice when depth is less than the rank
        of `ref`.
      updates: of shape indices.shape[:-1] + ref.shape[depth:].

    Returns:
      the variable after the change: a reference, or for a variable held by handle the value read then.

    Raises:
      InvalidArgumentError: (when it runs) an index is out of range, or the shapes do not fit.
    """
    return _scattered("ScatterNdUpdate", ref, indices, updates, use_locking, name)


def scatter_nd_add(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds to elements or slices of a variable. See `scatter_nd_update`."""
    return _scattered("ScatterNdAdd", ref, indices, updates, use_locking, name)


def scatter_nd_sub(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts from elements or slices of a variable. See `scatter_nd_update`."""
    return _scattered("ScatterNdSub", ref, indices, updates, use_locking, name)


def batch_scatter_update(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Any:
    """As `scatter_update` in each matrix of a batch: ref[b, indices[b, i], ...] = updates[b, i, ...].

    Args:
      ref: a Variable of static shape [b1, .., bm, n, ...].
      indices: int32 or int64 of static shape [b1, .., bm, k].
      updates: [b1, .., bm, k, ...].
    """
    from dtf.build.conversion import convert_to_tensor
    from dtf.build.default_graph import name_scope
    from dtf.build.ops.filling import meshgrid
    from dtf.build.ops.joining import concat, stack

    with name_scope(name, "BatchScatterUpdate", [indices, updates]):
        rows = convert_to_tensor(indices, name="indices")
        if not rows.shape.is_fully_defined():
            raise ValueError(f"batch_scatter_update needs indices of a known shape, got {rows.shape}")
        sizes = rows.shape.as_list()
        grids = meshgrid(*[list(range(size or 0)) for size in sizes], indexing="ij")[:-1]
        leading = [apply_op("Cast", None, x=grid, DstT=rows.dtype) for grid in grids]
        vectors = concat([stack(leading, axis=-1), stack([rows], axis=-1)], axis=-1) if leading else stack([rows], -1)
        return scatter_nd_update(ref, vectors, updates, use_locking)


def _storage_of(ref: Any) -> Storage:
    storage = getattr(ref, "_storage", None)
    if storage is not None:
        return storage
    return ReferenceStorage(ref)


def _scattered(
    op_type: str, ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool | None, name: str | None
) -> Any:
    change = _storage_of(ref).scatter(op_type, indices, updates, use_locking, name)
    return ref._changed(change) if hasattr(ref, "_changed") else change


def _update(op_type: str, ref: Any, value: Any, use_locking: bool | None, name: str | None) -> Any:
    return apply_op(op_type, name, ref=_storage_of(ref).tensor, value=value, use_locking=use_locking)


# -- shape rules


@shape_rule("VariableV2", "TemporaryVariable")
def _variable(op: Operation) -> list[TensorShape]:
    return [TensorShape(op.get_attr("shape"))]


@shape_rule("Variable")
def _legacy_variable(op: Operation) -> list[TensorShape]:
    shape = TensorShape(op.get_attr("shape"))
    return [unknown_shape() if shape.ndims == 0 else shape]


@shape_rule("DestroyTemporaryVariable")
def _destroyed(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape]


@shape_rule("Assign")
def _assign(op: Operation) -> list[TensorShape]:
    variable, value = (tensor.shape for tensor in op.inputs)
    return [variable.merge_with(value) if op.get_attr("validate_shape") else value]


@shape_rule("AssignAdd", "AssignSub")
def _assign_update(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.merge_with(op.inputs[1].shape)]


@shape_rule("ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax")
def _scatter(op: Operation) -> list[TensorShape]:
    variable, indices, updates = (tensor.shape for tensor in op.inputs)
    variable.with_rank_at_least(1)
    if updates.ndims != 0:
        updates.assert_is_compatible_with(indices.concatenate(variable[1:]))
    return [variable]


@shape_rule("ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdMin", "ScatterNdMax")
def _scatter_nd(op: Operation) -> list[TensorShape]:
    variable, indices, updates = (tensor.shape for tensor in op.inputs)
    _check_nd_updates(variable, indices, updates)
    return [variable]


@shape_rule("CountUpTo", "ResourceCountUpTo", "IsVariableInitialized", "VarIsInitializedOp", "VarHandleOp")
def _scalar(op: Operation) -> list[TensorShape]:
    return scalar(op)


@shape_rule("_VarHandlesOp")
def _scalars(op: Operation) -> list[TensorShape]:
    return [TensorShape([])] * len(op.outputs)


@shape_rule("ReadVariableOp", "_ReadVariablesOp")
def _read(op: Operation) -> list[TensorShape]:
    return [handle_shape(tensor) for tensor in op.inputs]


@shape_rule("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def _assign_resource(op: Operation) -> list[TensorShape]:
    handle_shape(op.inputs[0]).assert_is_compatible_with(op.inputs[1].shape)
    return []


@shape_rule("DestroyResourceOp", "_Send", "_HostSend", "_Retval", "ResourceStridedSliceAssign")
def _nothing(op: Operation) -> list[TensorShape]:
    return no_outputs(op)


@shape_rule("_Recv", "_HostRecv", "_Arg", "_ArrayToList", "_ListToArray")
def _unknown(op: Operation) -> list[TensorShape]:
    return unknown(op)


@shape_rule("VariableShape")
def _variable_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([handle_shape(op.inputs[0]).ndims])]


@shape_rule("ResourceGather")
def _gather(op: Operation) -> list[TensorShape]:
    variable, indices = handle_shape(op.inputs[0]), op.inputs[1].shape
    if variable.ndims is None or indices.ndims is None:
        return [unknown_shape()]
    variable.with_rank_at_least(1)
    batch = op.get_attr("batch_dims")
    return [variable[:batch].concatenate(indices[batch:]).concatenate(variable[batch + 1 :])]


@shape_rule("ResourceGatherNd")
def _gather_nd(op: Operation) -> list[TensorShape]:
    variable, indices = handle_shape(op.inputs[0]), op.inputs[1].shape
    if variable.ndims is None or not indices.ndims or indices.as_list()[-1] is None:
        return [unknown_shape()]
    return [indices[:-1].concatenate(variable[indices.as_list()[-1] :])]


@shape_rule(
    "ResourceScatterUpdate",
    "ResourceScatterAdd",
    "ResourceScatterSub",
    "ResourceScatterMul",
    "ResourceScatterDiv",
    "ResourceScatterMin",
    "ResourceScatterMax",
)
def _scatter_resource(op: Operation) -> list[TensorShape]:
    variable, indices, updates = handle_shape(op.inputs[0]), op.inputs[1].shape, op.inputs[2].shape
    if updates.ndims != 0 and variable.ndims is not None:
        updates.assert_is_compatible_with(indices.concatenate(variable[1:]))
    return []


@shape_rule(
    "ResourceScatterNdUpdate",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceScatterNdMin",
    "ResourceScatterNdMax",
)
def _scatter_nd_resource(op: Operation) -> list[TensorShape]:
    _check_nd_updates(handle_shape(op.inputs[0]), op.inputs[1].shape, op.inputs[2].shape)
    return []


def handle_shape(handle: Tensor) -> TensorShape:
    """The static shape of the variable that a handle names, as far as the graph tells."""
    seen: set[str] = set()
    while handle.op.type in ("Identity", "Enter", "Switch", "Merge") and handle.op.name not in seen:
        seen.add(handle.op.name)
        handle = handle.op.inputs[0]
    if handle.op.type == "VarHandleOp":
        return TensorShape(handle.op.get_attr("shape"))
    return unknown_shape()


def _check_nd_updates(variable: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
    if variable.ndims is None or not indices.ndims:
        return
    depth = indices.as_list()[-1]
    if depth is None:
        return
    if depth > variable.ndims:
        raise ValueError(f"Index vectors of length {depth} do not fit a variable of rank {variable.ndims}")
    updates.assert_is_compatible_with(indices[:-1].concatenate(variable[depth:]))
