"""Kernels of collective operations: reduce, gather and broadcast over the tasks of a group.

Own the attributes and what "merge" and "final" mean; how values go round is `run.ring`'s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dtf.run.exchange import ring
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.wire.tensor_shape import TensorShape

_MERGES = {"Add": np.add, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum}


@kernel("CollectiveReduce", "CollectiveReduceV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    call_of = _calls(node)
    merge = _MERGES[node.attr("merge_op").decode()]
    final = _divide if node.attr("final_op").decode() == "Div" else _leave

    def reduce(step: StepContext, done: Done[Outputs], value: np.ndarray, *keys: np.ndarray) -> None:
        def begin(exchange: ring.Exchange) -> None:
            ring.all_reduce(exchange, value, merge, final)

        ring.start(step, call_of(*keys[:3]), begin, done)

    return reduce


@kernel("CollectiveGather", "CollectiveGatherV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    call_of = _calls(node)

    def gather(step: StepContext, done: Done[Outputs], value: np.ndarray, *keys: np.ndarray) -> None:
        def begin(exchange: ring.Exchange) -> None:
            ring.all_gather(exchange, np.atleast_1d(value))

        ring.start(step, call_of(*keys[:3]), begin, done)

    return gather


@kernel("CollectiveBcastSend", "CollectiveBcastSendV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    call_of = _calls(node)

    def send(step: StepContext, done: Done[Outputs], value: np.ndarray, *keys: np.ndarray) -> None:
        ring.start(step, call_of(*keys), lambda exchange: ring.broadcast(exchange, value, _nothing_wrong), done)

    return send


@kernel("CollectiveBcastRecv", "CollectiveBcastRecvV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    call_of = _calls(node)
    dtype = node.attr("T").as_numpy_dtype
    has_shape = "shape" in node.attrs

    def receive(step: StepContext, done: Done[Outputs], *keys: np.ndarray) -> None:
        shape = node.attr("shape") if has_shape else TensorShape(keys[3].tolist())

        def check(value: np.ndarray) -> str:
            if value.dtype != dtype or not shape.is_compatible_with(value.shape):
                return f"{np.dtype(dtype)} {shape} is wanted, {value.dtype} {list(value.shape)} was sent"
            return ""

        ring.start(step, call_of(*keys[:3]), lambda exchange: ring.broadcast(exchange, None, check), done)

    return receive


def _calls(node: KernelNode) -> Callable[..., ring.Call]:
    """(group_size, group_key, instance_key), or nothing where they are attributes -> Call."""
    timeout_s = node.attr("timeout_seconds")
    if "group_key" in node.attrs:
        group, size, instance = node.attr("group_key"), node.attr("group_size"), node.attr("instance_key")
        call = ring.Call(node.name, node.device, group, size, instance, timeout_s)
        return lambda *_: call
    return lambda size, key, instance: ring.Call(node.name, node.device, int(key), int(size), int(instance), timeout_s)


def _divide(value: np.ndarray, count: int) -> None:
    if value.dtype.kind in "iu":  # as C does, towards zero
        np.copyto(value, np.sign(value) * (np.abs(value) // count))
    else:
        np.divide(value, value.dtype.type(count), out=value)


def _leave(value: np.ndarray, count: int) -> None:
    """The sum is what is wanted."""


def _nothing_wrong(value: np.ndarray) -> str:
    return ""
