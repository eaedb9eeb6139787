"""What a task does for masters and peers: sessions, graphs, steps and tensors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from dtf.run.exchange.push import Pushed
from dtf.run.exchange.rendezvous import make_key
from dtf.run.interfaces import Device
from dtf.run.kernels import DEAD
from dtf.run.state.resources import Variable
from dtf.run.worker.worker import LocalWorker
from dtf.wire import dtypes, errors
from dtf.wire.pb import tensorflow_server_pb2, worker_pb2
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32
PS = "/job:ps/replica:0/task:0/device:CPU:0"
WORKER = "/job:worker/replica:0/task:0/device:CPU:0"


class Answer:
    """What an asynchronous call is answered with, once."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, errors.OpError | None]] = []
        self._called = threading.Event()

    def __call__(self, value: Any = None, error: errors.OpError | None = None) -> None:
        self.calls.append((value, error))
        self._called.set()

    def get(self) -> Any:
        assert self._called.wait(10)
        assert len(self.calls) == 1
        value, error = self.calls[0]
        if error is not None:
            raise error
        return value


class Cluster:
    """A ps and a worker in this process that know each other."""

    def __init__(self) -> None:
        self.ps = LocalWorker([Device(PS, incarnation=11)], self.find)
        self.worker = LocalWorker([Device(WORKER, incarnation=22)], self.find)
        for each in (self.ps, self.worker):
            each.create_worker_session("s")

    def find(self, task: str) -> LocalWorker:
        return {self.ps.task: self.ps, self.worker.task: self.worker}[task]


def key_of(name: str, source: str = WORKER, destination: str = WORKER, incarnation: int = 22) -> str:
    return make_key(source, incarnation, destination, name)


def negate(device: str = WORKER) -> GraphBuilder:
    """Feeds x, fetches y = -x."""
    g = GraphBuilder(device)
    incarnation = 22 if device == WORKER else 11
    x = g.recv("x", client_terminated=True, incarnation=incarnation)
    g.send(g.node("Neg", x, name="neg", T=F32), "y", client_terminated=True, incarnation=incarnation)
    return g


def run(worker: LocalWorker, graph: str, step_id: int, sends=(), recv_keys=(), **options: Any) -> Answer:
    answer = Answer()
    worker.run_graph("s", graph, step_id, sends, recv_keys, options.pop("options", None), answer, **options)
    return answer


def test_a_step_takes_feeds_and_gives_fetches_by_key():
    worker = Cluster().worker
    graph = worker.register_graph("s", negate().graph_def)
    result = run(worker, graph, 1, [(key_of("x"), np.float32(3))], [key_of("y")]).get()
    assert result.values == {key_of("y"): -3}
    assert result.step_stats is None


def test_a_trace_is_made_only_when_asked_for():
    worker = Cluster().worker
    graph = worker.register_graph("s", negate().graph_def)
    options = worker_pb2.ExecutorOpts(record_timeline=True)
    result = run(worker, graph, 1, [(key_of("x"), np.float32(3))], [key_of("y")], options=options).get()
    assert {node.node_name for node in result.step_stats.dev_stats[0].node_stats} >= {"neg"}


def pull_and_push(cluster: Cluster) -> tuple[str, str]:
    """The ps sends w and adds what comes back; the worker sends w + 1 back."""
    g = GraphBuilder(PS)
    w = g.variable("w", [2])
    init = g.node("Assign", w, g.const(np.float32([1, 2])), T=F32)
    read = g.node("Identity", w, f"^{init}", T=F32)
    g.send(read, "w", to=WORKER, incarnation=11)
    g.node("AssignAdd", w, g.recv("delta", source=WORKER, incarnation=22), T=F32)
    on_ps = cluster.ps.register_graph("s", g.graph_def)
    g = GraphBuilder(WORKER)
    one = g.const(np.float32(1))
    total = g.node("AddV2", g.recv("w", source=PS, incarnation=11), one, name="total", T=F32)
    g.send(total, "delta", to=PS, incarnation=22)
    return on_ps, cluster.worker.register_graph("s", g.graph_def)


@pytest.mark.parametrize("worker_first", [True, False])
def test_tensors_move_between_tasks_whoever_starts_first(worker_first):
    cluster = Cluster()
    on_ps, on_worker = pull_and_push(cluster)
    starts = [(cluster.ps, on_ps), (cluster.worker, on_worker)]
    answers = [run(task, graph, 7) for task, graph in (reversed(starts) if worker_first else starts)]
    for answer in answers:
        answer.get()
    variable = cluster.ps.resources.lookup("", "w", Variable)
    assert variable is not None
    assert variable.read().tolist() == [3, 5]


def test_an_error_at_one_task_reaches_the_others_as_derived():
    cluster = Cluster()
    g = GraphBuilder(PS)
    bad = g.node("Identity", g.variable("never_initialized", []), name="bad", T=F32)
    g.send(bad, "w", to=WORKER, incarnation=11)
    on_ps = cluster.ps.register_graph("s", g.graph_def)
    g = GraphBuilder(WORKER)
    g.node("Neg", g.recv("w", source=PS, incarnation=11), T=F32)
    on_worker = cluster.worker.register_graph("s", g.graph_def)
    waiting = run(cluster.worker, on_worker, 7)
    failed = run(cluster.ps, on_ps, 7)
    with pytest.raises(errors.FailedPreconditionError, match="never_initialized") as root:
        failed.get()
    with pytest.raises(errors.FailedPreconditionError) as derived:
        waiting.get()
    assert (root.value.derived, derived.value.derived) == (False, True)


def test_a_receive_may_come_before_the_step_and_is_consumed_once():
    worker = Cluster().worker
    graph = worker.register_graph("s", negate().graph_def)
    early, late = Answer(), Answer()
    worker.recv_tensor(1, key_of("y"), early)
    run(worker, graph, 1, [(key_of("x"), np.float32(3))]).get()
    assert early.get() == -3
    worker.recv_tensor(1, key_of("y"), late)
    assert late.calls == []
    worker.cleanup_graph(1)
    with pytest.raises(errors.AbortedError, match="Cleanup 1"):
        late.get()


def test_a_receive_of_a_former_self_is_aborted_with_both_incarnations():
    answer = Answer()
    Cluster().worker.recv_tensor(1, key_of("y", incarnation=21), answer)
    with pytest.raises(errors.AbortedError, match="RecvTensor expects a different device incarnation: 21 vs. 22"):
        answer.get()


def test_a_malformed_key_is_an_invalid_argument():
    answer = Answer()
    Cluster().worker.recv_tensor(1, "what", answer)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key: what"):
        answer.get()


def test_a_cancelled_receive_leaves_nothing_behind():
    worker, answer = Cluster().worker, Answer()
    cancel = worker.recv_tensor(1, key_of("y"), answer)
    cancel()
    cancel()
    with pytest.raises(errors.CancelledError):
        answer.get()
    assert worker.rendezvous.find(1) is None


@pytest.mark.parametrize(
    ("tasks", "home", "keys"),
    [
        ([], -1, []),
        (["/job:other/replica:0/task:0"], 0, []),
        (["/job:worker/replica:0/task:0"], 3, []),
        (["/job:worker/replica:0/task:0"] * 2, 0, []),
        (["/job:worker/replica:0/task:0"], 0, ["rubbish"]),
        (["\n", "/job:worker/replica:0/task:0"], 0, ["a;b;c;d"]),
    ],
)
def test_what_is_no_step_of_this_task_cannot_be_prepared(tasks, home, keys):
    cluster = Cluster()
    graph = cluster.worker.register_graph("s", negate().graph_def)
    with pytest.raises(errors.InvalidArgumentError):
        cluster.worker.prepare(5, "s", graph, keys, [], tasks, home)


def test_a_push_of_a_task_that_takes_no_part_fails_the_step():
    worker = Cluster().worker
    graph = worker.register_graph("s", negate().graph_def)
    worker.prepare(5, "s", graph, [key_of("x")], [key_of("y")], [worker.task], 0)
    answer = Answer()
    worker.pushed_steps.deliver(Pushed(5, 40, 7, [0], [np.float32(1)]))
    worker.run_prepared(5, 40, [np.float32(1)], lambda result=None, error=None: answer(result, error))
    with pytest.raises(errors.OpError, match="was not to push|cancelled"):
        answer.get()
    good = Answer()
    worker.run_prepared(5, 41, [np.float32(1)], lambda result=None, error=None: good(result, error))
    assert good.get().values == [-1]


def test_a_step_takes_no_values_of_another_compiled_step():
    cluster = Cluster()
    worker, answer = cluster.worker, Answer()
    g = GraphBuilder(WORKER)
    taken = g.recv("t", source=PS, incarnation=11)
    g.send(g.node("Neg", taken, name="neg", T=F32), "y", client_terminated=True, incarnation=22)
    graph = worker.register_graph("s", g.graph_def)
    tasks = [worker.task, cluster.ps.task]
    for run_id in (5, 6):
        worker.prepare(run_id, "s", graph, [], [key_of("y")], tasks, 0)
    worker.run_prepared(5, 40, [], lambda result=None, error=None: answer(result, error))
    with pytest.raises(errors.InvalidArgumentError, match="another compiled step"):
        worker.push(Pushed(6, 40, 1, [0], [np.float32(7)]))
    worker.push(Pushed(5, 40, 1, [0], [np.float32(1)]))
    assert answer.get().values == [-1]


def test_what_was_agreed_on_ends_with_its_session_its_graph_and_its_successors():
    worker = Cluster().worker
    worker.create_worker_session("t")
    graphs = {session: worker.register_graph(session, negate().graph_def) for session in "st"}
    known = worker.pushed_steps._prepared
    for run_id in range(1000):
        worker.prepare(run_id, "s", graphs["s"], [key_of("x")], [key_of("y")], [worker.task], 0)
    assert len(known) < 20 and 999 in known
    worker.prepare(1001, "t", graphs["t"], [key_of("x")], [key_of("y")], [worker.task], 0)
    for run_id in (999, 1001):
        worker.push(Pushed(run_id, 40 + run_id, 0, [0], [np.float32(1)]))
    worker.deregister_graph("s", graphs["s"])
    assert list(known) == [1001] and list(worker.pushed_steps._early) == [1041]
    worker.delete_worker_session("t", lambda error=None: None)
    assert not known and not worker.pushed_steps._early


def test_a_dead_value_is_given_as_dead():
    worker, answer = Cluster().worker, Answer()
    worker.send(1, key_of("y"), DEAD)
    worker.recv_tensor(1, key_of("y"), answer)
    assert answer.get() is DEAD


def test_an_unknown_session_or_graph_says_that_the_task_may_have_restarted():
    worker = Cluster().worker
    words = (
        r'Session handle is not found: gone. Possibly this worker \("/job:worker/replica:0/task:0"\) just restarted.'
    )
    with pytest.raises(errors.AbortedError, match=words):
        worker.register_graph("gone", negate().graph_def)
    with pytest.raises(errors.AbortedError, match=words):
        worker.run_graph("gone", "0", 1, [], [], None, Answer())
    with pytest.raises(errors.AbortedError, match="Graph handle is not found: 0"):
        run(worker, "0", 1)


def test_an_empty_session_handle_means_the_session_that_all_share():
    worker = LocalWorker([Device(WORKER, incarnation=22)])
    graph = worker.register_graph("", negate().graph_def)
    answer = Answer()
    worker.run_graph("", graph, 1, [(key_of("x"), np.float32(3))], [key_of("y")], None, answer)
    assert answer.get().values == {key_of("y"): -3}


def test_a_deleted_session_and_a_deregistered_graph_are_unknown():
    worker = Cluster().worker
    graph = worker.register_graph("s", negate().graph_def)
    worker.deregister_graph("s", graph)
    with pytest.raises(errors.AbortedError, match="Graph handle is not found"):
        run(worker, graph, 1)
    worker.delete_worker_session("s", Answer())
    worker.delete_worker_session("s", Answer())
    with pytest.raises(errors.AbortedError, match="Session handle is not found"):
        run(worker, graph, 2)


def test_deleting_a_session_cancels_its_steps():
    worker = Cluster().worker
    waiting = run(worker, worker.register_graph("s", negate().graph_def), 1)
    worker.delete_worker_session("s", Answer())
    with pytest.raises(errors.CancelledError, match="Session s has been closed"):
        waiting.get()


def test_a_step_can_be_cancelled_and_its_error_is_derived():
    worker, answer = Cluster().worker, Answer()
    graph = worker.register_graph("s", negate().graph_def)
    cancel = worker.run_graph("s", graph, 1, [], [key_of("y")], None, answer)
    assert answer.calls == []
    cancel()
    cancel()
    with pytest.raises(errors.CancelledError) as caught:
        answer.get()
    assert caught.value.derived


def test_cleaning_up_a_running_step_ends_it():
    worker = Cluster().worker
    waiting = run(worker, worker.register_graph("s", negate().graph_def), 1)
    worker.cleanup_graph(1)
    with pytest.raises(errors.CancelledError, match="Step 1 was cleaned up"):
        waiting.get()
    with pytest.raises(errors.AbortedError, match="Cleanup 1"):
        run(worker, worker.register_graph("s", negate().graph_def), 1)


def test_a_restarted_master_drops_the_sessions_of_its_former_self():
    worker = Cluster().worker
    worker.create_worker_session("old", master_task="/job:chief/replica:0/task:0", master_incarnation=1)
    worker.create_worker_session("other", master_task="/job:worker/replica:0/task:0", master_incarnation=5)
    worker.create_worker_session("new", master_task="/job:chief/replica:0/task:0", master_incarnation=2)
    worker.register_graph("new", negate().graph_def)
    worker.register_graph("other", negate().graph_def)
    with pytest.raises(errors.AbortedError):
        worker.register_graph("old", negate().graph_def)


def assign_graph(value: float) -> GraphBuilder:
    g = GraphBuilder(WORKER)
    g.node("Assign", g.variable("v", []), g.const(np.float32(value)), T=F32)
    return g


def read_graph() -> GraphBuilder:
    g = GraphBuilder(WORKER)
    g.send(g.node("Identity", g.variable("v", []), T=F32), "v", client_terminated=True, incarnation=22)
    return g


def read(worker: LocalWorker, session: str, step_id: int) -> Any:
    answer = Answer()
    graph = worker.register_graph(session, read_graph().graph_def)
    worker.run_graph(session, graph, step_id, [], [key_of("v")], None, answer)
    return answer.get().values[key_of("v")]


def test_sessions_share_variables_unless_they_are_isolated():
    worker = Cluster().worker
    worker.create_worker_session("t")
    worker.create_worker_session("alone", isolate=True)
    run(worker, worker.register_graph("s", assign_graph(4).graph_def), 1).get()
    assert read(worker, "t", 2) == 4
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value v"):
        read(worker, "alone", 3)


def test_cleaning_a_container_makes_its_variables_uninitialized():
    worker = Cluster().worker
    run(worker, worker.register_graph("s", assign_graph(4).graph_def), 1).get()
    worker.cleanup_all(["elsewhere"])
    assert read(worker, "s", 2) == 4
    worker.cleanup_all()
    with pytest.raises(errors.FailedPreconditionError):
        read(worker, "s", 3)


def test_a_partial_run_is_fed_and_fetched_in_parts():
    worker = Cluster().worker
    g = GraphBuilder(WORKER)
    terminated = {"client_terminated": True, "incarnation": 22}
    first = g.node("Neg", g.recv("a", **terminated), T=F32)
    g.send(first, "first", **terminated)
    g.send(g.node("AddV2", first, g.recv("b", **terminated), T=F32), "second", **terminated)
    graph = worker.register_graph("s", g.graph_def)
    part = run(worker, graph, 1, [(key_of("a"), np.float32(2))], [key_of("first")], is_partial=True)
    assert part.get().values == {key_of("first"): -2}
    last = run(
        worker, graph, 1, [(key_of("b"), np.float32(5))], [key_of("second")], is_partial=True, is_last_partial_run=True
    )
    assert last.get().values == {key_of("second"): 3}


def test_a_partial_run_that_fails_tells_the_call_that_waits_why():
    worker = Cluster().worker
    g = GraphBuilder(WORKER)
    terminated = {"client_terminated": True, "incarnation": 22}
    flag = g.recv("flag", dtypes.bool, **terminated)
    check = g.node("Assert", flag, g.const("not so"), T=[dtypes.string])
    g.send(g.node("Const", f"^{check}", dtype=F32, value=np.float32(1)), "out", **terminated)
    graph = worker.register_graph("s", g.graph_def)
    part = run(worker, graph, 1, [(key_of("flag"), np.bool_(False))], [key_of("out")], is_partial=True)
    with pytest.raises(errors.InvalidArgumentError, match="not so") as caught:
        part.get()
    assert not caught.value.derived


def test_a_peer_that_the_cluster_does_not_have_fails_the_step():
    worker = LocalWorker([Device(WORKER, incarnation=22)])
    worker.create_worker_session("s")
    g = GraphBuilder(WORKER)
    g.node("Neg", g.recv("w", source=PS, incarnation=11), T=F32)
    with pytest.raises(errors.InvalidArgumentError, match="no task /job:ps/replica:0/task:0"):
        run(worker, worker.register_graph("s", g.graph_def), 1).get()


def test_a_session_with_a_cluster_of_its_own_reaches_its_own_peers():
    asked: list[str] = []

    class Peer:
        def recv_tensor(self, step_id, key, done):
            asked.append(key)
            done(np.float32(8))
            return lambda: None

    class Tasks:
        is_closed = False

        def worker(self, task):
            return Peer()

        def close(self):
            self.is_closed = True

    cluster = Tasks()
    worker = LocalWorker([Device("/job:other/replica:0/task:5/device:CPU:0", incarnation=22)], None, lambda _: cluster)
    server_def = tensorflow_server_pb2.ServerDef(job_name="worker", task_index=0)
    server_def.cluster.job.add(name="ps").tasks[0] = "host:1"
    worker.create_worker_session("s", server_def)
    g = GraphBuilder(WORKER)
    g.send(g.node("Neg", g.recv("w", source=PS, incarnation=11), T=F32), "y", client_terminated=True, incarnation=22)
    result = run(worker, worker.register_graph("s", g.graph_def), 1, (), [key_of("y")]).get()
    assert result.values == {key_of("y"): -8}
    assert asked == [make_key(PS, 11, WORKER, "w")]
    worker.delete_worker_session("s", Answer())
    assert cluster.is_closed


def test_shutting_down_ends_steps_and_receives():
    worker, receive = Cluster().worker, Answer()
    waiting = run(worker, worker.register_graph("s", negate().graph_def), 1)
    worker.recv_tensor(2, key_of("y"), receive)
    worker.shut_down()
    for answer in (waiting, receive):
        with pytest.raises(errors.UnavailableError, match="/job:worker/replica:0/task:0 has shut down"):
            answer.get()


def test_graphs_of_masters_without_a_session_are_bounded_and_used_ones_stay(monkeypatch):
    monkeypatch.setenv("DTF_MAX_SHARED_GRAPHS", "3")
    worker = Cluster().worker

    def steps_of(graph, step_id):
        answer = Answer()
        worker.run_graph("", graph, step_id, [(key_of("x"), np.float32(3))], [key_of("y")], None, answer)
        return answer.get().values[key_of("y")]

    first, second, third = (worker.register_graph("", negate().graph_def) for _ in range(3))
    assert steps_of(first, 1) == -3
    fourth = worker.register_graph("", negate().graph_def)
    with pytest.raises(errors.AbortedError, match=second):
        steps_of(second, 2)
    assert [steps_of(graph, step_id) for graph, step_id in ((first, 3), (third, 4), (fourth, 5))] == [-3, -3, -3]


def test_the_step_sequences_of_collectives_are_bounded(monkeypatch):
    monkeypatch.setattr("dtf.run.worker.worker._STEP_SEQUENCES_MAX", 3)
    worker = Cluster().worker
    for number in range(1, 10):
        worker.step_sequence([0, number])
    assert worker.step_sequence([0, 9, 1]) == {0: 10, 9: 2, 1: 1}
