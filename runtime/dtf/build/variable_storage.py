"""The two ways in which a graph holds a variable's value, and the ops of each.

A *reference* variable is an op whose output is the buffer itself (`VariableV2`, `Assign`); a *resource* variable is
a handle that names the buffer (`VarHandleOp`, `AssignVariableOp`). `variables.Variable` is the same for both; this
module chooses the ops that create, read and change the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import colocate_with, device, get_default_graph, name_scope
from dtf.build.graph import Operation, Tensor
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike


def create_reference(name: str, shape: TensorShape, dtype: DType) -> Tensor:
    """Adds a VariableV2 at `name`, a scope with its final slash."""
    return apply_op("VariableV2", name, shape=shape, dtype=dtype)


def create_resource(name: str, shape: TensorShape, dtype: DType) -> Tensor:
    """Adds a VarHandleOp at `name`, a scope with its final slash."""
    shared_name = name.rstrip("/")
    return apply_op("VarHandleOp", name, shape=shape, dtype=dtype, shared_name=shared_name, debug_name=name)


@dataclass(frozen=True)
class ReferenceStorage:
    """A variable held by reference; `tensor` is the reference."""

    tensor: Tensor
    is_resource = False

    @property
    def dtype(self) -> DType:
        """The dtype as the variable shows it: a reference type."""
        return self.tensor.dtype

    def read(self, name: str | None) -> Tensor:
        """A copy-free view of the value at the time when this op runs."""
        return apply_op("Identity", name, input=self.tensor)

    def read_beside(self, name: str) -> Tensor:
        """A read on the variable's own device, made together with the variable."""
        with colocate_with(self.tensor.op):
            return apply_op("Identity", name, input=self.tensor)

    def initialize(self, value: Tensor, validate_shape: bool) -> Operation:
        """The op that gives the variable its first value."""
        return apply_op("Assign", None, ref=self.tensor, value=value, validate_shape=validate_shape).op

    def is_initialized(self, name: str | None) -> Tensor:
        """A scalar bool."""
        return apply_op("IsVariableInitialized", name, ref=self.tensor)

    def assign(self, op_type: str, value: TensorLike, use_locking: bool, name: str | None) -> Any:
        """`op_type` is "Assign", "AssignAdd" or "AssignSub". Gives the reference, after the change."""
        return apply_op(op_type, name, ref=self.tensor, value=value, use_locking=use_locking)

    def scatter(
        self, op_type: str, indices: TensorLike, updates: TensorLike, use_locking: bool | None, name: str | None
    ) -> Any:
        """`op_type` is one of the Scatter ops. Gives the reference, after the change."""
        return apply_op(
            op_type, name, ref=self.tensor, indices=indices, updates=updates, use_locking=use_locking
        )

    def gather_nd(self, indices: TensorLike, name: str | None) -> Tensor:
        """Elements or slices at `indices`."""
        return apply_op("GatherNd", name, params=self.tensor, indices=indices)

    def sparse_read(self, indices: TensorLike, name: str | None) -> Tensor:
        """Rows at `indices`."""
        return apply_op("GatherV2", name, params=self.tensor, indices=indices, axis=0)

    def count_up_to(self, limit: int) -> Tensor:
        """Counts up, and raises OutOfRangeError at `limit`."""
        return apply_op("CountUpTo", None, ref=self.tensor, limit=limit)


@dataclass(frozen=True)
class ResourceStorage:
    """A variable held by handle; `tensor` is the handle, of dtype resource."""

    tensor: Tensor
    dtype: DType
    is_resource = True

    def read(self, name: str | None) -> Tensor:
        """The value at the time when this op runs; the read is on the handle's device, regardless of colocation."""
        with colocate_with(None, ignore_existing=True), device(self.tensor.device or None):
            return apply_op("ReadVariableOp", name, resource=self.tensor, dtype=self.dtype)

    def read_beside(self, name: str) -> Tensor:
        """A read on the variable's own device, made together with the variable."""
        with name_scope("Read"):
            return self.read(None)

    def initialize(self, value: Tensor, validate_shape: bool) -> Operation:
        """The op that gives the variable its first value."""
        graph = get_default_graph()
        with graph.name_scope("Assign") as name, colocate_with(None, ignore_existing=True), device(self.tensor.device):
            return apply_op(
                "AssignVariableOp", name, resource=self.tensor, value=value, validate_shape=False
            )

    def is_initialized(self, name: str | None) -> Tensor:
        """A scalar bool."""
        return apply_op("VarIsInitializedOp", name, resource=self.tensor)

    def assign(self, op_type: str, value: TensorLike, use_locking: bool, name: str | None) -> Any:
        """`op_type` is "Assign", "AssignAdd" or "AssignSub". Gives the operation."""
        return apply_op(f"{op_type}VariableOp", name, resource=self.tensor, value=value, dtype=self.dtype)

    def scatter(
        self, op_type: str, indices: TensorLike, updates: TensorLike, use_locking: bool | None, name: str | None
    ) -> Any:
        """`op_type` is one of the Scatter ops. Gives the operation."""
        operand = "ref" if "Nd" in op_type else "resource"
        return apply_op(f"Resource{op_type}", name, **{operand: self.tensor}, indices=indices, updates=updates)

    def gather_nd(self, indices: TensorLike, name: str | None) -> Tensor:
        """Elements or slices at `indices`."""
        return apply_op("ResourceGatherNd", name, resource=self.tensor, indices=indices, dtype=self.dtype)

    def sparse_read(self, indices: TensorLike, name: str | None) -> Tensor:
        """Rows at `indices`."""
        with name_scope("Gather" if name is None else name) as scope:
            rows = apply_op("ResourceGather", scope, resource=self.tensor, indices=indices, dtype=self.dtype)
            return apply_op("Identity", None, input=rows)

    def count_up_to(self, limit: int) -> Tensor:
        """Counts up, and raises OutOfRangeError at `limit`."""
        return apply_op("ResourceCountUpTo", None, resource=self.tensor, limit=limit, T=self.dtype)


Storage = ReferenceStorage | ResourceStorage
