"""Kernels and static shapes of the ops that exist for unit tests alone (test_ops.txt), where such tests run them.

Imported by `historic.test_ops`, so only a process whose program imports TensorFlow's test_ops has them.
"""

from __future__ import annotations

import time

import numpy as np

from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation
from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.data_flow import node_resource, resource_of
from dtf.run.state.resources import ResourceHandle
from dtf.run.value_types import Array
from dtf.wire import errors, opdef
from dtf.wire.strings import string_scalar
from dtf.wire.tensor_shape import TensorShape

__all__: list[str] = []


class _Stub:
    """The resource of a stub handle: it knows only whether `ResourceCreateOp` has run."""

    def __init__(self, name: str) -> None:
        self.is_created = False


@shape_rule("KernelLabel", "StubResourceHandleOp", "ResourceInitializedOp", "GraphDefVersion", "DevicePlacementOp")
def _scalars(op: Operation) -> list[TensorShape]:
    return [TensorShape([]) for _ in op.outputs]


@shape_rule("KernelLabelRequired")
def _vector_to_scalar(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.with_rank(1)
    return [TensorShape([])]


@shape_rule("CopyOp", "SleepIdentityOp", "Unary")
def _as_last_input(op: Operation) -> list[TensorShape]:
    return [op.inputs[-1].shape]


@kernel("KernelLabel")
def _(node: KernelNode) -> Function:
    label = node.attrs.get(opdef.LABEL)
    text = label.decode() if isinstance(label, bytes) else ""
    if text not in ("", "overload_1", "overload_2"):
        raise errors.NotFoundError.of(f"No registered '{node.op}' OpKernel has the label '{text}'.")
    return lambda: string_scalar(f"My label is: {text or 'default'}".encode())


@kernel("KernelLabelRequired")
def _(node: KernelNode) -> Function:
    return lambda values: string_scalar(b"My label is: default")


@kernel("Old", "None", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: None


@kernel("SleepOp", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, seconds: time.sleep(int(seconds))


@kernel("StubResourceHandleOp", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: node_resource(node, step, _Stub, _Stub, always_shared=True)[1]


@kernel("ResourceCreateOp", stateful=True)
def _(node: KernelNode) -> Function:
    def create(step: StepContext, handle: ResourceHandle) -> None:
        resource_of(step, handle, _Stub).is_created = True

    return create


@kernel("ResourceInitializedOp", stateful=True)
def _(node: KernelNode) -> Function:
    def is_created(step: StepContext, handle: ResourceHandle) -> Array:
        return np.asarray(resource_of(step, handle, _Stub).is_created)

    return is_created
