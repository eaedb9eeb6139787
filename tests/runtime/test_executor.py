"""The flat program: segments, deadness, errors, and what is kept in memory."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from dtf.run import kernels
from dtf.run.executor.executor import Executor, local_step, run_graph_def
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.executor.instructions import read_graph
from dtf.run.kernels import DEAD
from dtf.run.state.resources import ResourceManager
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32
KEY = (
    "/job:localhost/replica:0/task:0/device:CPU:0;0000000000000001;/job:localhost/replica:0/task:0/device:CPU:0;{};0:0"
)


class Outcome:
    """Waits for, and counts, the calls of a step's `done`."""

    def __init__(self) -> None:
        self.calls: list[errors.OpError | None] = []
        self._called = threading.Event()

    def __call__(self, error: errors.OpError | None) -> None:
        self.calls.append(error)
        self._called.set()

    def error(self) -> errors.OpError | None:
        assert self._called.wait(10)
        assert len(self.calls) == 1
        return self.calls[0]


def test_it_computes_what_the_graph_says():
    g = GraphBuilder()
    x = g.const(np.float32([1, 2]))
    total = g.node("AddV2", x, g.node("Neg", x, T=F32), T=F32)
    assert run_graph_def(g.graph_def, [total])[0].tolist() == [0, 0]


def test_a_feed_replaces_an_output_and_only_what_is_needed_runs():
    g = GraphBuilder()
    p = g.node("Placeholder", name="p", dtype=F32)
    g.node("Assert", g.const(False), g.const("never"), T=[dtypes.string])
    double = g.node("AddV2", p, p, T=F32)
    assert run_graph_def(g.graph_def, [double, "p"], {"p:0": np.float32(3)}) == [6, 3]
    with pytest.raises(errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'p'"):
        run_graph_def(g.graph_def, [double])


def test_the_program_prints_and_forgets_each_value_after_its_last_use():
    g = GraphBuilder()
    x = g.recv("x")
    y = g.node("Neg", x, name="y", T=F32)
    g.send(g.node("Identity", y, name="z", T=F32), "z")
    assert Executor(g.graph_def).describe() == "\n".join(
        [
            "def segment_0(step, shared, run):",
            "    function_0(step, partial(run.finish, 0))  # _Recv_0: _Recv",
            "def segment_1(step, shared, run):",
            "    s0 = shared[0]",
            "    s1 = function_1(s0)  # y: Neg",
            "    del s0",
            "    function_3(step, s1)  # _Send_3: _Send",
            "    del s1",
        ]
    )


def test_values_wait_for_a_receive_without_holding_a_thread():
    g = GraphBuilder()
    g.send(g.node("AddV2", g.recv("a"), g.recv("b"), T=F32), "sum")
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    step.exchange.send(KEY.format("b"), np.float32(1))
    assert outcome.calls == []
    step.exchange.send(KEY.format("a"), np.float32(2))
    assert outcome.error() is None
    assert step.exchange.take(KEY.format("sum")) == 3


def test_control_edges_order_what_has_no_data_between_it():
    g, resources = GraphBuilder(), ResourceManager()
    v = g.variable("v", [])
    init = g.node("Assign", v, g.const(np.float32(1)), T=F32)
    add = g.node("AssignAdd", v, g.const(np.float32(1)), f"^{init}", T=F32)
    read = g.node("Identity", v, f"^{add}", T=F32)
    for _ in range(3):
        assert run_graph_def(g.graph_def, [read], resources=resources) == [2]


def test_an_error_names_its_node_and_keeps_its_kind():
    g = GraphBuilder()
    read = g.node("Identity", g.variable("w", [2]), name="w/read", T=F32)
    with pytest.raises(errors.FailedPreconditionError) as caught:
        run_graph_def(g.graph_def, [read])
    assert caught.value.message == "Attempting to use uninitialized value w\n\t [[{{node w/read}}]]"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("shapes differ"), errors.InvalidArgumentError),
        (MemoryError("100 TiB"), errors.ResourceExhaustedError),
        (ZeroDivisionError("oops"), errors.InternalError),
        (errors.DataLossError.of("cut short"), errors.DataLossError),
    ],
)
def test_stray_exceptions_become_errors_of_the_runtime(raised, expected, monkeypatch):
    def fail(*_):
        raise raised

    row = kernels.lookup("Neg")
    monkeypatch.setitem(kernels._rows, ("Neg", "CPU"), (kernels.Kernel(lambda node: fail, False, False, False, False),))
    assert row is not kernels.lookup("Neg")
    g = GraphBuilder()
    failing = g.node("Neg", g.const(np.float32(1)), name="failing", T=F32)
    with pytest.raises(expected, match="node failing"):
        run_graph_def(g.graph_def, [failing])


def test_the_first_error_stops_what_waits_and_done_is_called_once_after_it():
    g = GraphBuilder()
    g.send(g.recv("never"), "out")
    g.node("Assert", g.recv("flag", dtypes.bool), g.const("told so"), T=[dtypes.string])
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    step.exchange.send(KEY.format("flag"), np.bool_(False))
    error = outcome.error()
    assert isinstance(error, errors.InvalidArgumentError)
    assert "assertion failed: [told so]" in error.message
    assert not error.derived
    assert step.cancellation.is_cancelled


def test_an_error_at_the_start_of_a_segment_leaves_no_receive_waiting():
    g = GraphBuilder()
    failed = g.node("Assert", g.const(False), g.const("no"), T=[dtypes.string])
    g.send(g.recv("never", controls=(f"^{failed}",)), "out")
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    assert isinstance(outcome.error(), errors.InvalidArgumentError)


def test_a_derived_error_does_not_hide_the_root_cause():
    g = GraphBuilder()
    g.node("Assert", g.const(False), g.const("root"), "^" + g.recv("never"), T=[dtypes.string])
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    step.cancel(errors.AbortedError.of("another task failed"))
    error = outcome.error()
    assert isinstance(error, errors.AbortedError)
    assert error.derived


def test_cancelling_ends_the_step():
    g = GraphBuilder()
    g.send(g.recv("never"), "out")
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    step.cancel(errors.CancelledError.of("Step was cancelled by an explicit call"))
    assert isinstance(outcome.error(), errors.CancelledError)


def test_a_cancelled_step_does_not_start():
    g = GraphBuilder()
    g.variable("v", [])
    step, outcome = local_step(), Outcome()
    step.cancellation.start_cancel()
    Executor(g.graph_def).run_async(step, outcome)
    assert isinstance(outcome.error(), errors.CancelledError)


# -- deadness


def cond_graph(predicate: str, g: GraphBuilder) -> tuple[str, str, str]:
    """x -> -x if the predicate holds, else x + x; returns merge, its false and its true branch."""
    x = g.const(np.float32(5))
    switch = g.node("Switch", x, predicate, name="switch", T=F32)
    true = g.node("Neg", f"{switch}:1", name="true", T=F32)
    false = g.node("AddV2", switch, switch, name="false", T=F32)
    return g.node("Merge", false, true, name="merge", T=F32, N=2), false, true


@pytest.mark.parametrize(("predicate", "value", "index"), [(True, -5, 1), (False, 10, 0)])
def test_a_branch_that_is_not_taken_does_not_run(predicate, value, index):
    g = GraphBuilder()
    merge, _, _ = cond_graph(g.const(predicate), g)
    assert run_graph_def(g.graph_def, [merge, f"{merge}:1"]) == [value, index]


def test_fetching_a_dead_value_is_an_error():
    g = GraphBuilder()
    _, false, _ = cond_graph(g.const(True), g)
    with pytest.raises(errors.InvalidArgumentError, match="The tensor returned for false was not valid"):
        run_graph_def(g.graph_def, [false])


def test_after_the_branches_meet_nothing_checks_for_deadness_any_more():
    g = GraphBuilder()
    merge, _, _ = cond_graph(g.recv("p", dtypes.bool), g)
    g.send(g.node("Neg", merge, name="after", T=F32), "out")
    lines = Executor(g.graph_def).describe().split("\n")
    after = next(number for number, line in enumerate(lines) if "# after: Neg" in line)
    assert lines[after].startswith("    s")
    assert "DEAD" not in "".join(lines[after - 1 :])


@pytest.mark.parametrize("predicate", [True, False])
def test_control_edges_carry_deadness(predicate):
    g, resources = GraphBuilder(), ResourceManager()
    v = g.variable("v", [])
    run_graph_def(g.graph_def, [], targets=[g.node("Assign", v, g.const(np.float32(0)), T=F32)], resources=resources)
    switch = g.node("Switch", g.const(predicate), g.const(predicate), T=dtypes.bool)
    pivot = g.node("Identity", f"{switch}:1", T=dtypes.bool)
    inside = g.node("Const", f"^{pivot}", dtype=F32, value=np.float32(1))
    add = g.node("AssignAdd", v, inside, T=F32)
    waiter = g.node("NoOp", f"^{add}")
    always = g.node("ControlTrigger", f"^{waiter}")
    run_graph_def(g.graph_def, [], targets=[always, waiter], resources=resources)
    assert run_graph_def(g.graph_def, [g.node("Identity", v, T=F32)], resources=resources) == [float(predicate)]


@pytest.mark.parametrize("predicate", [True, False])
def test_a_receive_in_a_branch_that_is_not_taken_is_skipped(predicate):
    g = GraphBuilder()
    switch = g.node("Switch", g.const(predicate), g.const(predicate), T=dtypes.bool)
    pivot = g.node("Identity", f"{switch}:1", T=dtypes.bool)
    received = g.recv("r", controls=(f"^{pivot}",))
    other = g.node("Const", f"^{g.node('Identity', switch, T=dtypes.bool)}", dtype=F32, value=np.float32(7))
    merge = g.node("Merge", received, g.node("Neg", other, T=F32), T=F32, N=2)
    g.send(merge, "out")
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    if predicate:
        step.exchange.send(KEY.format("r"), np.float32(3))
    assert outcome.error() is None
    assert step.exchange.take(KEY.format("out")) == (3 if predicate else -7)


def test_a_send_in_a_branch_that_is_not_taken_tells_its_receiver():
    g = GraphBuilder()
    _, false, true = cond_graph(g.const(True), g)
    g.send(false, "false")
    g.send(true, "true")
    step = local_step()
    Executor(g.graph_def).run(step)
    assert step.exchange.take(KEY.format("false")) is DEAD
    assert step.exchange.take(KEY.format("true")) == -5


def test_a_dead_value_from_elsewhere_is_handled_though_nobody_could_foresee_it():
    g = GraphBuilder()
    received = g.recv("r")
    negated = g.node("Neg", received, T=F32)
    after = g.node("NoOp", f"^{negated}")
    g.send(g.node("Const", f"^{after}", dtype=F32, value=np.float32(1)), "after")
    g.send(g.node("AddV2", negated, g.recv("q"), T=F32), "sum")
    g.send(g.node("Merge", negated, g.recv("q2"), T=F32, N=2), "merge")
    step, outcome = local_step(), Outcome()
    Executor(g.graph_def).run_async(step, outcome)
    step.exchange.send(KEY.format("r"), DEAD)
    step.exchange.send(KEY.format("q"), np.float32(1))
    step.exchange.send(KEY.format("q2"), np.float32(2))
    assert outcome.error() is None
    results = [step.exchange.take(KEY.format(key)) for key in ("after", "sum", "merge")]
    assert results == [DEAD, DEAD, 2]


# -- memory


def test_a_value_is_freed_when_its_last_user_has_run(monkeypatch):
    alive: list[bool] = []
    made: list[weakref.ref] = []

    def make(*_):
        array = np.zeros(10, np.float32)
        made.append(weakref.ref(array))
        return array

    def look(value):
        alive.append(made[0]() is not None)
        return value

    rows = kernels._rows
    kernels.load_all()
    monkeypatch.setitem(rows, ("Neg", "CPU"), (kernels.Kernel(lambda node: make, False, False, False, False),))
    monkeypatch.setitem(rows, ("Abs", "CPU"), (kernels.Kernel(lambda node: look, False, False, False, False),))
    monkeypatch.setitem(rows, ("Exp", "CPU"), (kernels.Kernel(lambda _: lambda x: np.float32(0)),))
    g = GraphBuilder()
    one = g.const(np.float32(1))
    big = g.node("Neg", one, T=F32)
    small = g.node("Exp", big, T=F32)
    assert run_graph_def(g.graph_def, [g.node("Abs", small, T=F32)], {f"{one}:0": np.float32(1)}) == [0]
    assert alive == [False]


def test_training_updates_a_variable_in_place():
    g, resources = GraphBuilder(), ResourceManager()
    v = g.variable("v", [1000])
    init = g.node("Assign", v, g.const(np.zeros(1000, np.float32)), T=F32)
    read = g.node("Identity", v, T=F32)
    update = g.node("AssignAdd", v, g.node("Exp", read, T=F32), T=F32)
    run_graph_def(g.graph_def, [], targets=[init], resources=resources)
    run_graph_def(g.graph_def, [], targets=[update], resources=resources)
    from dtf.run.state.resources import Variable

    variable = resources.lookup("", "v", Variable)
    assert variable is not None
    before = variable.read().ctypes.data
    run_graph_def(g.graph_def, [], targets=[update], resources=resources)
    assert variable.read().ctypes.data == before
    np.testing.assert_allclose(variable.read(), np.full(1000, 1 + np.e), rtol=1e-6)


def test_a_constant_that_a_variable_was_assigned_stays_what_it_is():
    g, resources = GraphBuilder(), ResourceManager()
    v = g.variable("v", [2])
    c = g.const(np.float32([1, 2]))
    init = g.node("Assign", v, c, T=F32)
    update = g.node("AssignAdd", v, c, f"^{init}", T=F32)
    executor_runs = [run_graph_def(g.graph_def, [update, c], resources=resources) for _ in range(2)]
    for updated, constant in executor_runs:
        assert updated.tolist() == [2, 4]
        assert constant.tolist() == [1, 2]


# -- the graph


def test_a_graph_with_a_cycle_is_refused():
    g = GraphBuilder()
    g.node("Neg", "b", name="a", T=F32)
    g.node("Neg", "a", name="b", T=F32)
    with pytest.raises(errors.InvalidArgumentError, match="cycle through a, b"):
        Executor(g.graph_def)


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda node: setattr(node, "op", "Negg"), errors.NotFoundError, "Op type not registered 'Negg'"),
        (lambda node: node.input.append("nowhere"), errors.InvalidArgumentError, "Unknown input node 'nowhere'"),
        (lambda node: node.input.append(node.input[0]), errors.InvalidArgumentError, "has 2 inputs, expected 1"),
        (lambda node: node.input.__setitem__(0, "Const_0:3"), errors.InvalidArgumentError, "no such output"),
        (lambda node: node.attr.pop("T"), errors.InvalidArgumentError, "missing attr 'T'"),
    ],
)
def test_a_malformed_graph_is_refused_with_the_node_named(spoil, error, words):
    g = GraphBuilder()
    g.node("Neg", g.const(np.float32(1)), name="bad", T=F32)
    spoil(g.graph_def.node[1])
    with pytest.raises(error, match=words) as caught:
        Executor(g.graph_def)
    assert "bad" in caught.value.message


def test_attributes_that_nobody_knows_are_tolerated():
    g = GraphBuilder()
    node = g.node("Neg", g.const(np.float32(1)), T=F32)
    g.graph_def.node[1].attr["_class"].list.s.append(b"loc:@x")
    assert run_graph_def(g.graph_def, [node]) == [-1]


def test_a_list_of_one_is_a_value():
    g = GraphBuilder()
    parts = g.node("Unpack", g.const(np.float32([[1, 2]])), T=F32, num=1)
    assert run_graph_def(g.graph_def, [parts])[0].tolist() == [1, 2]


def test_a_trace_has_every_node_that_ran():
    from dtf.run.executor.step_stats import StepStatsCollector

    g = GraphBuilder()
    g.send(g.node("Neg", g.recv("x"), name="neg", T=F32), "y")
    step = local_step()
    collector = step.collector = StepStatsCollector("/device:CPU:0")
    step.exchange.send(KEY.format("x"), np.zeros((2, 3), np.float32))
    Executor(g.graph_def).run(step)
    (device,) = collector.step_stats().dev_stats
    assert device.device == "/device:CPU:0"
    found = {node.node_name: node for node in device.node_stats}
    assert set(found) == {"_Recv_0", "neg", "_Send_2"}
    output = found["neg"].output[0].tensor_description
    assert [dim.size for dim in output.shape.dim] == [2, 3]
    assert output.allocation_description.requested_bytes == 24


def test_many_steps_of_one_executor_run_at_the_same_time():
    g = GraphBuilder()
    g.send(g.node("Neg", g.recv("x"), T=F32), "y")
    executor = Executor(g.graph_def)
    steps = [local_step() for _ in range(50)]
    outcomes = [Outcome() for _ in steps]
    for step, outcome in zip(steps, outcomes, strict=True):
        executor.run_async(step, outcome)

    def feed(some) -> None:
        for number in some:
            steps[number].exchange.send(KEY.format("x"), np.float32(number))

    threads = [threading.Thread(target=feed, args=(range(start, 50, 2),)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    for number, (step, outcome) in enumerate(zip(steps, outcomes, strict=True)):
        assert outcome.error() is None
        assert step.exchange.take(KEY.format("y")) == -number
    for thread in threads:
        thread.join()


def test_a_segment_that_takes_long_is_not_run_in_the_thread_that_made_it_ready(monkeypatch):
    threads: list[str] = []

    def note(value):
        threads.append(threading.current_thread().name)
        return value

    kernels.load_all()
    monkeypatch.setitem(kernels._rows, ("Neg", "CPU"), (kernels.Kernel(lambda node: note, False, False, False, False),))
    g = GraphBuilder()
    g.send(g.node("Neg", g.recv("x"), T=F32), "y")
    executor = Executor(g.graph_def)
    for cost_ns in (0, 10**9):
        executor._program.segments[1].cost_ns = cost_ns
        step, outcome = local_step(), Outcome()
        executor.run_async(step, outcome)
        step.exchange.send(KEY.format("x"), np.float32(1))
        assert outcome.error() is None
    assert threads[0] == threading.current_thread().name
    assert threads[1].startswith("dtf-compute-")


def test_a_kernel_that_answers_twice_is_heard_once(monkeypatch):
    def twice(step, done):
        done(np.float32(1))
        done(np.float32(2))
        done(error=errors.InternalError.of("and again"))

    kernels.load_all()
    kernel = kernels.Kernel(lambda node: twice, True, True, False, False)
    monkeypatch.setitem(kernels._rows, ("_Recv", "CPU"), (kernel,))
    g = GraphBuilder()
    g.send(g.recv("x"), "y")
    step = local_step()
    Executor(g.graph_def).run(step)
    assert step.exchange.take(KEY.format("y")) == 1


def test_a_long_chain_of_segments_needs_no_deep_stack():
    g = GraphBuilder()
    value = g.const(np.float32(0))
    for number in range(600):
        value = g.node("AddV2", value, g.recv(f"x{number}", controls=(f"^{value}",)), T=F32)
    g.send(value, "sum")
    step = local_step()
    for number in range(600):
        step.exchange.send(KEY.format(f"x{number}"), np.float32(1))
    Executor(g.graph_def).run(step)
    assert step.exchange.take(KEY.format("sum")) == 600


def test_a_step_that_wakes_another_goes_on_to_where_it_waits_itself_first(monkeypatch):
    order: list[str] = []

    def replace(op, name, after=lambda: None):
        def kernel(value):
            order.append(name)
            after()
            return value

        made = kernels.Kernel(lambda node: kernel, False, False, False, False)
        monkeypatch.setitem(kernels._rows, (op, "CPU"), (made,))

    def chain(received, *ops):
        g = GraphBuilder()
        value = g.recv(received)
        for op in ops:
            value = g.node(op, value, T=F32)
        g.send(value, "y")
        step, outcome = local_step(), Outcome()
        Executor(g.graph_def).run_async(step, outcome)
        return step, outcome

    kernels.load_all()
    replace("Neg", "the waker wakes", lambda: other.exchange.send(KEY.format("b"), np.float32(2)))
    replace("Abs", "the waker goes on")
    replace("Exp", "the other goes on")
    other, other_outcome = chain("b", "Exp")
    waker, waker_outcome = chain("a", "Neg", "Abs")
    waker.exchange.send(KEY.format("a"), np.float32(1))
    assert waker_outcome.error() is None and other_outcome.error() is None
    assert order == ["the waker wakes", "the waker goes on", "the other goes on"]


def test_a_program_goes_with_its_constants_before_the_garbage_collector_comes():
    g = GraphBuilder()
    p = g.node("Placeholder", name="p", dtype=F32)
    g.node("AddV2", g.const(np.ones(1000, np.float32)), p, T=F32)
    program = FlatProgram(read_graph(g.graph_def, {}))
    functions = program._compile(careful=False, traced=False).functions
    held = [weakref.ref(each) for each in functions[0].__globals__.values() if isinstance(each, np.ndarray)]
    assert held
    gc.disable()
    try:
        del program, functions
        assert [each() for each in held] == [None] * len(held)
    finally:
        gc.enable()
