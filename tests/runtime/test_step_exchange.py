"""Both ways to move a step's values between tasks: pushed, and TensorFlow's, in which their receivers ask.

Every test here runs on both. Tests of one way alone are in test_push and test_rendezvous.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.run.exchange.push_exchange import PushExchange
from dtf.run.exchange.rendezvous import StepRendezvous, make_key
from dtf.run.interfaces import StepExchange
from dtf.run.kernels import DEAD
from dtf.testing import LocalCluster
from dtf.train import Server
from dtf.wire import errors
from tests.interop import control_flow_programs
from tests.ports import free_ports
from tests.waiting import wait_until

WAYS = ["push", "rpc"]
SLOW_BY_RPC = pytest.mark.parametrize("way", ["push", pytest.param("rpc", marks=pytest.mark.slow)], indirect=True)
HERE, THERE = (f"/job:{job}/replica:0/task:0" for job in ("worker", "ps"))
KEYS = [make_key(f"{HERE}/device:CPU:0", 1, f"{THERE}/device:CPU:0", f"edge_{number}") for number in range(4)]


# -- one exchange at each of two tasks


class Inbox:
    """Takes the answer to a receive."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.errors: list[errors.OpError] = []

    def __call__(self, value: Any = None, error: errors.OpError | None = None) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.values.append(value)


def push_pair() -> tuple[StepExchange, StepExchange]:
    pair: dict[str, PushExchange] = {}
    for source, task in enumerate((HERE, THERE)):
        pair[task] = PushExchange(1, 5, source, None, lambda to, pushed: pair[to].arrived(pushed.keys, pushed.values))
    return pair[HERE], pair[THERE]


def rpc_pair() -> tuple[StepExchange, StepExchange]:
    pair: dict[str, StepRendezvous] = {}

    def ask(task, step_id, key, done):
        pair[task].recv(key, done)
        return lambda: pair[task].forget(key, done) and done(error=errors.CancelledError.of("taken back"))

    pair.update({task: StepRendezvous(5, ask) for task in (HERE, THERE)})
    return pair[HERE], pair[THERE]


@pytest.fixture(params=WAYS)
def pair(request):
    """The exchanges of one step at HERE and THERE."""
    return push_pair() if request.param == "push" else rpc_pair()


@pytest.mark.parametrize("is_receiver_first", [True, False])
@pytest.mark.parametrize("method", ["send", "send_grouped", "send_piggybacked"])
def test_a_value_arrives_whichever_end_comes_first(pair, method, is_receiver_first):
    (here, there), inbox = pair, Inbox()
    if is_receiver_first:
        there.recv(KEYS[0], inbox, HERE)
    getattr(here, method)(KEYS[0], 7, THERE)
    here.flush(is_last=True)
    if not is_receiver_first:
        there.recv(KEYS[0], inbox, HERE)
    assert (inbox.values, inbox.errors) == ([7], [])


def test_values_that_wait_for_each_other_all_arrive(pair):
    (here, there), inboxes = pair, [Inbox() for _ in range(3)]
    for key, inbox in zip(KEYS, inboxes, strict=False):
        there.recv(key, inbox, HERE)
    here.send_piggybacked(KEYS[0], np.int64(1), THERE)
    here.send_grouped(KEYS[1], np.float32(2), THERE)
    here.computing()
    here.send(KEYS[2], DEAD, THERE)
    here.flush()
    here.flush()
    assert [inbox.values for inbox in inboxes] == [[1], [2], [DEAD]]


def test_a_value_of_the_same_task_needs_no_flush(pair):
    (here, _), inbox = pair, Inbox()
    here.send(KEYS[0], 3)
    here.recv(KEYS[0], inbox)
    assert inbox.values == [3]
    here.send(KEYS[1], 3)
    with pytest.raises(errors.InternalError, match="Duplicate send"):
        here.send(KEYS[1], 4)


def test_an_abort_reaches_waiting_and_later_receivers_and_the_first_one_counts(pair):
    (_, there), inboxes = pair, [Inbox() for _ in range(4)]
    there.recv(KEYS[0], inboxes[0], HERE)
    there.recv(KEYS[1], inboxes[1])
    there.abort(errors.UnavailableError.of("a task is gone"))
    there.abort(errors.InternalError.of("too late to matter"))
    there.recv(KEYS[2], inboxes[2], HERE)
    there.recv(KEYS[3], inboxes[3])
    assert [[error.message for error in inbox.errors] for inbox in inboxes] == [["a task is gone"]] * 4


def test_a_value_for_a_task_that_has_aborted_is_lost_without_an_error(pair):
    (here, there), inbox = pair, Inbox()
    there.abort(errors.CancelledError.of("the step is over"))
    here.send(KEYS[0], 1, THERE)
    here.flush(is_last=True)
    there.recv(KEYS[0], inbox, HERE)
    assert (inbox.values, [error.message for error in inbox.errors]) == ([], ["the step is over"])


# -- steps of three tasks


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """How tensors move between tasks, from the first step of a signature on."""
    monkeypatch.setattr("dtf.run.master.prepare._FIRST_PUSHED_STEP", 1 if request.param == "push" else 1 << 60)
    return request.param


@pytest.fixture
def cluster(way):
    """Two ps and a worker as servers of this process: their sockets are real."""
    ports = free_ports(3)
    spec = {"ps": [f"127.0.0.1:{port}" for port in ports[:2]], "worker": [f"127.0.0.1:{ports[2]}"]}
    servers = {(job, index): Server(spec, job, index) for job, tasks in spec.items() for index in range(len(tasks))}
    yield servers
    for server in servers.values():
        server.stop(0)


@pytest.fixture
def used(way, monkeypatch):
    """The ways in which values went to other tasks, as they go."""
    found = set()
    for name, exchange in (("push", PushExchange), ("rpc", StepRendezvous)):
        send = exchange.send

        def noted(self, key, value, task=None, name=name, send=send):
            if task is not None:
                found.add(name)
            send(self, key, value, task)

        monkeypatch.setattr(exchange, "send", noted)
    return found


@pytest.mark.parametrize("program", control_flow_programs.SWITCHES, ids=lambda program: program.__name__)
def test_branches_and_loops_over_tasks_give_what_they_give_on_one(program, cluster, way, used, monkeypatch):
    found = control_flow_programs.outcomes(tf, cluster["worker", 0].target, [program])
    assert used <= {way}
    monkeypatch.setattr(control_flow_programs, "on", lambda tf, job: contextlib.nullcontext())
    wanted = control_flow_programs.outcomes(tf, "", [program])
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, err_msg=key)


def test_iterations_of_a_loop_over_tasks_leave_nothing_behind(cluster, way, used):
    with tf.Graph().as_default():
        run = control_flow_programs.nested_loops(tf)
        with tf.Session(cluster["worker", 0].target) as session:
            first = run(session)
            for _ in range(20):
                for ours, theirs in zip(run(session), first, strict=True):
                    np.testing.assert_array_equal(ours, theirs)
            assert used == {way}
            for server in cluster.values():
                wait_until(lambda server=server: not server._worker.rendezvous._steps, "the steps are forgotten")
                assert not server._worker.pushed_steps._early


def test_an_error_in_a_loop_over_tasks_reaches_the_client_and_the_next_step_runs(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:0"):
            limit = tf.placeholder(tf.float32, [])

        def body(number, total):
            with tf.device("/job:ps/task:0"):
                checked = tf.check_numerics(total / (limit - total), "too far")
            with tf.device("/job:worker/task:0"):
                return number + 1, total + tf.minimum(checked, 1.0) + 1.0

        with tf.device("/job:worker/task:0"):
            _, total = tf.while_loop(lambda number, _: number < 5, body, [0, tf.constant(0.0)])
        with tf.Session(cluster["worker", 0].target) as session:
            wanted = session.run(total, {limit: 100.0})
            for _ in range(3):
                with pytest.raises(tf.errors.InvalidArgumentError, match="too far"):
                    session.run(total, {limit: 0.0})
                assert session.run(total, {limit: 100.0}) == wanted
    for server in cluster.values():
        wait_until(lambda server=server: not server._worker.rendezvous._steps, "the steps are forgotten")
        assert not server._worker.pushed_steps._running and not server._worker.pushed_steps._early


def test_a_loop_that_waits_for_another_task_ends_with_its_deadline(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(10, tf.float32, [[]])

        def body(total):
            with tf.device("/job:ps/task:0"):
                value = queue.dequeue()
            with tf.device("/job:worker/task:0"):
                return total + value

        with tf.device("/job:worker/task:0"):
            total = tf.while_loop(lambda total: total < 2.5, body, [tf.constant(0.0)])
        fill = [queue.enqueue(1.0) for _ in range(3)]
        with tf.Session(cluster["worker", 0].target) as session:
            for _ in range(2):
                session.run(fill)
                assert session.run(total) == 3.0
            options = tf.RunOptions(timeout_in_ms=300)
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(total, options=options)
            session.run(fill)
            assert session.run(total) == 3.0
    for server in cluster.values():
        assert not server._worker.pushed_steps._early


def test_strings_large_tensors_and_dead_ones_arrive(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            words = tf.Variable([b"a", b"", b"\xff"])
            large = tf.Variable(tf.range(300_000.0))
        with tf.device("/job:worker/task:0"):
            flag = tf.placeholder(tf.bool, [])
            joined = tf.string_join([words, words])
            total = tf.reduce_sum(large)

        def on_ps():
            with tf.device("/job:ps/task:0"):
                return tf.constant(2.0) + flag_number

        with tf.device("/job:worker/task:0"):
            flag_number = tf.cast(flag, tf.float32)
            chosen = tf.cond(flag, on_ps, lambda: tf.constant(7.0))
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())
            for turn in range(6):
                is_on = turn % 2 == 0
                values = session.run([joined, total, chosen], {flag: is_on})
                assert list(values[0]) == [b"aa", b"", b"\xff\xff"]
                assert values[1] == pytest.approx(300_000 * 299_999 / 2, rel=1e-4)
                assert values[2] == (3.0 if is_on else 7.0)


def test_an_error_at_one_task_reaches_the_client_and_the_next_step_runs(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(tf.ones([2]))
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [2])
            checked = tf.check_numerics(x, "not a number") + variable
        with tf.device("/job:ps/task:0"):
            update = variable.assign(checked)
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(update.op, {x: [0.0, 0.0]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
                session.run(update.op, {x: [np.nan, 0.0]})
            np.testing.assert_array_equal(session.run(update, {x: [1.0, 2.0]}), [2.0, 3.0])
    for server in cluster.values():
        wait_until(lambda server=server: not server._worker.rendezvous._steps, "the steps are forgotten")
        assert not server._worker.pushed_steps._running


def test_a_part_that_waits_for_values_when_the_step_is_cancelled_does_not_end_well(cluster, caplog):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            total = tf.Variable(0.0)
        with tf.device("/job:worker/task:0"):
            queue = tf.FIFOQueue(10, tf.float32, [[]])
            value = queue.dequeue()
        fetched = total.assign_add(value)
        config = tf.ConfigProto(operation_timeout_in_ms=500)
        with tf.Session(cluster["worker", 0].target, config=config) as session:
            session.run(tf.global_variables_initializer())
            session.run([queue.enqueue(1.0) for _ in range(3)])
            assert [session.run(fetched) for _ in range(3)] == [1.0, 2.0, 3.0]
            with pytest.raises(tf.errors.DeadlineExceededError, match="job:ps"):
                session.run(fetched)
            assert session.run(total) == 3.0
    assert not [record.message for record in caplog.records if record.levelname == "ERROR"]


@SLOW_BY_RPC
@pytest.mark.parametrize("where", ["step", "loop"])
def test_a_lock_held_while_a_step_runs_may_be_wanted_by_a_function_of_another_step(cluster, where):
    """A thread that waits for a step reads the connections meanwhile, but runs no function of the user's for others."""
    lock, over, others = threading.Lock(), threading.Event(), []

    def add_one(value):
        with lock:
            return value + np.float32(1)

    def once(count, value):
        return count + 1, tf.ensure_shape(tf.py_func(add_one, [value], tf.float32), [10])

    def call(value):
        if where == "step":
            return tf.py_func(add_one, [value], tf.float32)
        return tf.while_loop(lambda count, _: count < 1, once, [0, value])[1]

    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            first, second = tf.Variable(tf.zeros([10])), tf.Variable(tf.ones([10]))
        with tf.device("/job:worker/task:0"):
            called = call(tf.identity(first))
            doubled = tf.identity(second) * 2.0
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())

            def run_others():
                while not over.is_set():
                    others.append(session.run(called)[0])

            thread = threading.Thread(target=run_others, daemon=True)
            thread.start()
            for _ in range(300):
                with lock:
                    assert session.run(doubled)[0] == 2.0
            over.set()
            thread.join(10)
            assert not thread.is_alive() and set(others) == {1.0}


@SLOW_BY_RPC
def test_a_task_that_is_lost_fails_the_step_at_once_and_it_is_survived(way, monkeypatch):
    if way == "rpc":
        monkeypatch.setenv("DTF_CHANNEL", "off")  # the master is in another process
    with LocalCluster({"ps": 1, "worker": 1}, processes=True) as tasks, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(0.0)
            queue = tf.FIFOQueue(1, [tf.float32])
        with tf.device("/job:worker/task:0"):
            update = variable.assign_add(tf.constant(1.0)).op
        with tf.device("/job:ps/task:0"):
            waiting = variable + queue.dequeue()
        with tf.Session(tasks.target("worker")) as session:
            session.run(variable.initializer)
            for _ in range(3):
                session.run(update)
            timer = threading.Timer(0.3, tasks.kill, ("ps",))
            timer.start()
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                session.run(waiting)
            timer.join()
            tasks.start("ps")
        with tf.Session(tasks.target("worker")) as session:
            session.run(variable.initializer)
            for _ in range(3):
                session.run(update)
            assert session.run(variable) == 3.0


def test_many_workers_at_one_ps_lose_nothing(cluster):
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(tf.zeros([10]))
        with tf.device("/job:worker/task:0"):
            update = variable.assign_add(tf.ones([10]), use_locking=True).op
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(variable.initializer)

            def run():
                with tf.Session(cluster["worker", 0].target, graph=graph) as own:
                    for _ in range(20):
                        own.run(update)

            threads = [threading.Thread(target=run) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            np.testing.assert_array_equal(session.run(variable), np.full(10, 160.0))
