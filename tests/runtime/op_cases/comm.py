"""Ops that move values into and out of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dtf.run.executor.executor import Executor, local_step, run_graph_def
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder
from tests.runtime.op_cases import Case

HERE = "/job:localhost/replica:0/task:0/device:CPU:0"
ELSEWHERE = "/job:ps/replica:0/task:3/device:CPU:0"


def what_is_sent_is_received(send: str, recv: str) -> None:
    g = GraphBuilder()
    ends = {"send_device": HERE.encode(), "recv_device": HERE.encode(), "send_device_incarnation": 1}
    g.node(send, g.const(np.float32(4)), T=dtypes.float32, tensor_name=b"x", **ends)
    received = g.node(recv, tensor_type=dtypes.float32, tensor_name=b"x", **ends)
    g.node("_Retval", received, T=dtypes.float32, index=0)
    step = local_step()
    step.results = {}
    Executor(g.graph_def).run(step)
    assert step.results == {0: 4}


def a_receive_from_another_task_asks_that_task() -> None:
    asked = []

    def remote(task, step_id, key, done):
        asked.append((task, step_id, key))
        done(error=errors.UnavailableError.of("it is gone"))

    g = GraphBuilder(HERE)
    g.node("Neg", g.recv("x", source=ELSEWHERE, incarnation=-1, name="x_recv"), T=dtypes.float32)
    step = local_step()
    step.exchange.remote = remote
    with pytest.raises(errors.UnavailableError, match="it is gone\n.*node x_recv"):
        Executor(g.graph_def).run(step)
    assert asked == [("/job:ps/replica:0/task:3", step.step_id, f"{ELSEWHERE};ffffffffffffffff;{HERE};x;0:0")]


def arguments_become_results() -> None:
    g = GraphBuilder()
    for index in (0, 1):
        argument = g.node("_Arg", T=dtypes.float32, index=index)
        g.node("_Retval", argument, T=dtypes.float32, index=1 - index)
    step = local_step()
    step.arguments, step.results = (np.float32(1), np.float32(2)), {}
    Executor(g.graph_def).run(step)
    assert step.results == {0: 2, 1: 1}


def lists_of_one_kind_are_lists_of_several(op: str, **types: Any) -> None:
    g = GraphBuilder()
    values = [g.const(np.float32(number)) for number in (1, 2)]
    node = g.node(op, *values, T=dtypes.float32, N=2, **types)
    assert run_graph_def(g.graph_def, [node, f"{node}:1"]) == [1, 2]


CASES = [
    Case("_Send", run=lambda: what_is_sent_is_received("_Send", "_Recv")),
    Case("_Recv", run=a_receive_from_another_task_asks_that_task),
    Case("_HostSend", run=lambda: what_is_sent_is_received("_HostSend", "_HostRecv")),
    Case("_HostRecv", run=lambda: what_is_sent_is_received("_Send", "_HostRecv")),
    Case("_Arg", run=arguments_become_results),
    Case("_Retval", run=arguments_become_results),
    Case(
        "_ArrayToList",
        run=lambda: lists_of_one_kind_are_lists_of_several("_ArrayToList", out_types=[dtypes.float32] * 2),
    ),
    Case("_ListToArray", run=lambda: lists_of_one_kind_are_lists_of_several("_ListToArray", Tin=[dtypes.float32] * 2)),
]
