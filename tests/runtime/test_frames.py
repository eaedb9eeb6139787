"""Loops: frames, iterations, and what is dead in them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from dtf.run.executor.executor import Executor, local_step, run_graph_def
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder

F32, I32 = dtypes.float32, dtypes.int32


class Loop:
    """One while loop over a scalar: while value < limit: value = body(value)."""

    def __init__(self, g: GraphBuilder, start: str, limit: str, frame: bytes = b"loop", parallel: int = 10) -> None:
        self.g = g
        self.frame = frame
        self.parallel = parallel
        enter = self.enter(start, is_constant=False)
        merge = self._reserve("Merge")
        self.value = merge
        less = g.node("Less", merge, self.enter(limit), T=I32)
        self.condition = g.node("LoopCond", less)
        switch = g.node("Switch", merge, self.condition, T=I32)
        self.inside = g.node("Identity", f"{switch}:1", T=I32)
        self.exit = g.node("Exit", switch, T=I32)
        self._merge_inputs = [enter]

    def enter(self, value: str, dtype=I32, is_constant: bool = True) -> str:
        """A value from outside, as the loop sees it."""
        return self.g.node(
            "Enter", value, T=dtype, frame_name=self.frame, is_constant=is_constant, parallel_iterations=self.parallel
        )

    def close(self, body: str) -> str:
        """Ends the body; returns the value after the loop."""
        following = self.g.node("NextIteration", body, T=I32)
        self._node.input.extend([*self._merge_inputs, following])
        return self.exit

    def _reserve(self, op: str) -> str:
        name = self.g.node(op, T=I32, N=2)
        self._node = self.g.graph_def.node[-1]
        return name


def counting(g: GraphBuilder, start: str, limit: str, frame: bytes = b"loop", parallel: int = 10) -> str:
    loop = Loop(g, start, limit, frame, parallel)
    one = loop.enter(g.const(np.int32(1)))
    return loop.close(g.node("AddV2", loop.inside, one, T=I32))


@pytest.mark.parametrize("parallel", [1, 2, 10])
@pytest.mark.parametrize(("start", "end"), [(0, 100), (99, 100), (100, 100), (200, 200)])
def test_a_loop_runs_until_its_condition_fails(parallel, start, end):
    g = GraphBuilder()
    result = counting(g, g.const(np.int32(start)), g.const(np.int32(100)), parallel=parallel)
    assert run_graph_def(g.graph_def, [result]) == [max(start, end)]


def test_a_loop_in_a_loop_starts_afresh_each_time():
    g = GraphBuilder()
    outer = Loop(g, g.const(np.int32(0)), g.const(np.int32(5)), b"outer")
    inner_limit = g.node("AddV2", outer.inside, outer.enter(g.const(np.int32(3))), T=I32)
    inner = Loop(g, outer.inside, inner_limit, b"inner")
    one = inner.enter(outer.enter(g.const(np.int32(1))))
    result = outer.close(inner.close(g.node("AddV2", inner.inside, one, T=I32)))
    assert run_graph_def(g.graph_def, [result]) == [6]


@pytest.mark.parametrize("taken", [True, False])
def test_a_loop_in_a_branch_that_is_not_taken_is_dead_as_a_whole(taken):
    g = GraphBuilder()
    switch = g.node("Switch", g.const(np.int32(0)), g.const(taken), T=I32)
    looped = counting(g, f"{switch}:1", g.const(np.int32(4)))
    merge = g.node("Merge", switch, looped, T=I32, N=2)
    assert run_graph_def(g.graph_def, [merge]) == [4 if taken else 0]


def test_an_error_in_an_iteration_ends_the_step_with_its_node_named():
    g = GraphBuilder()
    loop = Loop(g, g.const(np.int32(0)), g.const(np.int32(10)))
    three = loop.enter(g.const(np.int32(3)))
    small = g.node("Less", loop.inside, three, T=I32)
    check = g.node("Assert", small, loop.inside, name="check", T=[I32])
    result = loop.close(g.node("AddV2", loop.inside, loop.enter(g.const(np.int32(1))), f"^{check}", T=I32))
    with pytest.raises(errors.InvalidArgumentError, match=r"assertion failed: \[3\]\n.*node check"):
        run_graph_def(g.graph_def, [result])


def test_a_variable_is_updated_in_every_iteration():
    g = GraphBuilder()
    v = g.variable("v", [], I32)
    init = g.node("Assign", v, g.const(np.int32(0)), T=I32)
    loop = Loop(g, g.const(np.int32(0)), g.const(np.int32(7)))
    reference = g.node("RefEnter", v, f"^{init}", T=I32, frame_name=b"loop", is_constant=True, parallel_iterations=10)
    add = g.node("AssignAdd", reference, loop.inside, T=I32)
    result = loop.close(g.node("AddV2", loop.inside, loop.enter(g.const(np.int32(1))), f"^{add}", T=I32))
    after = g.node("Identity", v, f"^{result}", T=I32)
    assert run_graph_def(g.graph_def, [after]) == [21]


def receiving(g: GraphBuilder, parallel: int) -> str:
    """A loop of three iterations, each of which waits for a tensor of its own."""
    loop = Loop(g, g.const(np.int32(0)), g.const(np.int32(3)), parallel=parallel)
    received = g.recv("x", I32, controls=(f"^{loop.inside}",))
    return loop.close(g.node("AddV2", loop.inside, received, T=I32))


def test_an_iteration_waits_for_a_receive_without_holding_a_thread():
    g = GraphBuilder()
    g.node("_Retval", receiving(g, 10), T=I32, index=0)
    step = local_step()
    step.results = {}
    finished = threading.Event()
    outcome: list[errors.OpError | None] = []

    def done(error):
        outcome.append(error)
        finished.set()

    Executor(g.graph_def).run_async(step, done)
    for _ in range(3):
        (key,) = step.exchange._waiters
        assert not finished.is_set()
        step.exchange.send(key, np.int32(1))
    assert finished.wait(10)
    assert outcome == [None]
    assert step.results == {0: 3}


def test_each_iteration_has_keys_of_its_own():
    g = GraphBuilder()
    receiving(g, 10)
    step = local_step()
    keys = []
    Executor(g.graph_def).run_async(step, lambda error: None)
    for _ in range(3):
        (key,) = step.exchange._waiters
        keys.append(key)
        step.exchange.send(key, np.int32(1))
    assert len(set(keys)) == 3
    assert [key.rpartition(":")[2] for key in keys] == ["0", "1", "2"]


def test_cancelling_ends_a_loop_that_waits():
    g = GraphBuilder()
    receiving(g, 1)
    step = local_step()
    outcome: list[errors.OpError | None] = []
    Executor(g.graph_def).run_async(step, outcome.append)
    assert outcome == []
    step.cancel(errors.CancelledError.of("enough"))
    assert [type(error) for error in outcome] == [errors.CancelledError]


def test_the_program_of_a_loop_prints():
    g = GraphBuilder()
    counting(g, g.const(np.int32(0)), g.const(np.int32(1)))
    text = Executor(g.graph_def).describe()
    assert "Merge_3 = Merge(Enter_2:0, NextIteration_13:0)" in text


def _two_frames(g):
    here, there = (
        g.node("Enter", g.const(np.int32(1)), T=I32, frame_name=name, is_constant=False, parallel_iterations=1)
        for name in (b"here", b"there")
    )
    return g.node("Add", here, there, T=I32)


def _inside_and_outside(g):
    inside = g.node("Enter", g.const(np.int32(1)), T=I32, frame_name=b"f", is_constant=False, parallel_iterations=1)
    return g.node("Add", inside, g.const(np.int32(1)), T=I32)


def _an_exit_too_many(g):
    inside = g.node("Enter", g.const(np.int32(1)), T=I32, frame_name=b"f", is_constant=False, parallel_iterations=1)
    return g.node("Exit", g.node("Exit", inside, T=I32), T=I32)


def _no_name(g):
    return g.node("Enter", g.const(np.int32(1)), T=I32, frame_name=b"", is_constant=False, parallel_iterations=1)


@pytest.mark.parametrize(
    "build, words",
    [
        (_two_frames, "has inputs from different frames: .* in the frame '(here|there)'"),
        (_inside_and_outside, "has inputs from different frames: .*no frame"),
        (_an_exit_too_many, "Exit is in no loop"),
        (_no_name, "frame of an Enter must have a name"),
    ],
)
def test_a_graph_whose_frames_do_not_match_is_refused(build, words):
    g = GraphBuilder()
    fetch = build(g)
    with pytest.raises(errors.InvalidArgumentError, match=words):
        run_graph_def(g.graph_def, [fetch])
