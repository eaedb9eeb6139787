"""Kernels that move values into and out of a partition, and between its devices: _Send and _Recv, _Arg and _Retval,
_DeviceCopy.

Own nothing but the keys; the step's `StepExchange` carries the values.
"""

from __future__ import annotations

import functools

from dtf.run.devices.backends import backend_of, device_type_of, storage_of
from dtf.run.exchange.rendezvous import OUTSIDE, key_maker
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import DEFAULT, Function, KernelNode, kernel
from dtf.run.state.resources import Variable
from dtf.run.value_types import Array
from dtf.wire.device import task_of


@kernel("_Send", "_HostSend", stateful=True, accepts_dead=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    key_of = key_maker(node.attrs)
    destination = task_of(node.attr("recv_device").decode())
    here = task_of(node.device) or task_of(node.attr("send_device").decode())
    remote_task = None if node.attr("client_terminated") or destination == here else destination

    outside = key_of(OUTSIDE)

    def send(step: StepContext, value: Array) -> None:
        frame_iteration = step.frame_iteration
        key = outside if frame_iteration == OUTSIDE else key_of(frame_iteration)
        if isinstance(value, Variable):  # the worker reads it when the step has ended
            value.read()  # a variable without a value is reported here
        step.exchange.send(key, value, remote_task)

    return send


@kernel("_Recv", "_HostRecv", asynchronous=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    key_of = key_maker(node.attrs)
    source = task_of(node.attr("send_device").decode())
    here = task_of(node.device) or task_of(node.attr("recv_device").decode())
    remote_task = None if node.attr("client_terminated") or source == here else source

    outside = key_of(OUTSIDE)

    def recv(step: StepContext, done: Done[Outputs]) -> None:
        frame_iteration = step.frame_iteration
        key = outside if frame_iteration == OUTSIDE else key_of(frame_iteration)
        step.exchange.recv(key, done, remote_task)

    return recv


@kernel("_Arg", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    index = node.attr("index")
    return lambda step: step.arguments[index]


@kernel("_Retval", stateful=True, accepts_dead=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    index = node.attr("index")

    def retval(step: StepContext, value: Array) -> None:
        assert step.results is not None
        step.results[index] = value

    return retval


@kernel("_ArrayToList", "_ListToArray", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda *values: values


@kernel("_DeviceCopy", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    """Brings a value from one memory to another (see `passes.copies`); from one type of device to another by way of the
    host's.
    """
    source = backend_of(device_type_of(node.attr("source").decode()))
    target = storage_of(node.attr("target").decode())
    if target is None:
        return source.copy_out if source is not None else lambda value: value
    if source is None or source is target.backend:
        return functools.partial(target.backend.copy_in, target.number)
    return lambda value: target.backend.copy_in(target.number, source.copy_out(value))
