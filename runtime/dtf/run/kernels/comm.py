"""Kernels that move values into and out of a partition: _Send and _Recv, _Arg and _Retval.

Own nothing but the keys; who carries a value is the matter of the step's rendezvous.
"""

from __future__ import annotations

from dtf.run.exchange.rendezvous import make_key
from dtf.run.executor.step import task_of
from dtf.run.kernels import kernel
from dtf.run.state.resources import Variable

OUTSIDE = "0:0"
"""The frame and iteration of what is in no loop, where keys are always the same."""


@kernel("_Send", "_HostSend", stateful=True, accepts_dead=True)
def _(node):
    key_of = _key_maker(node)
    destination = task_of(node.attr("recv_device").decode())
    here = task_of(node.device) or task_of(node.attr("send_device").decode())
    remote_task = None if node.attr("client_terminated") or destination == here else destination

    outside = key_of(OUTSIDE)

    def send(step, value):
        frame_iteration = step.frame_iteration
        key = outside if frame_iteration == OUTSIDE else key_of(frame_iteration)
        if type(value) is Variable:  # the worker reads it when the step has ended
            value.read()  # one without a value is told of here
        step.rendezvous.send(key, value, remote_task)

    return send


@kernel("_Recv", "_HostRecv", asynchronous=True)
def _(node):
    key_of = _key_maker(node)
    source = task_of(node.attr("send_device").decode())
    here = task_of(node.device) or task_of(node.attr("recv_device").decode())
    remote_task = None if node.attr("client_terminated") or source == here else source

    outside = key_of(OUTSIDE)

    def recv(step, done):
        frame_iteration = step.frame_iteration
        key = outside if frame_iteration == OUTSIDE else key_of(frame_iteration)
        step.rendezvous.recv_async(key, done, remote_task)

    return recv


@kernel("_Arg", stateful=True)
def _(node):
    index = node.attr("index")
    return lambda step: step.arguments[index]


@kernel("_Retval", stateful=True, accepts_dead=True)
def _(node):
    index = node.attr("index")

    def retval(step, value):
        step.results[index] = value

    return retval


@kernel("_ArrayToList", "_ListToArray")
def _(node):
    return lambda *values: values


def _key_maker(node):
    """frame_iteration -> rendezvous key."""
    source, destination = node.attr("send_device").decode(), node.attr("recv_device").decode()
    name, incarnation = node.attr("tensor_name").decode(), node.attr("send_device_incarnation")

    def key_of(frame_iteration):
        return make_key(source, incarnation, destination, name, frame_iteration)

    return key_of
