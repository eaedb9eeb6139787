"""Master on workers of this process: what it contacts, how steps end, and what a restart looks like."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run.exchange import retry
from dtf.run.interfaces import Device
from dtf.run.master import step_monitor
from dtf.run.master.master import Master
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.worker import LocalWorker
from dtf.wire import errors
from dtf.wire.pb import config_pb2

OWN, PS0, PS1 = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"


class Cluster:
    """Tasks of a master: workers that call each other directly. Remembers who was asked for."""

    own_task = OWN
    names = (PS0, PS1, OWN)
    announced = None

    def __init__(self):
        self.contacted: set[str] = set()
        self.workers: dict[str, LocalWorker] = {}
        for number, task in enumerate(self.names):
            self.restart(task, number + 1)

    def restart(self, task, incarnation):
        worker = LocalWorker([Device(f"{task}/device:CPU:0", incarnation=incarnation)])
        worker.peers = self.workers.__getitem__
        self.workers[task] = worker

    def worker(self, task):
        return Calls(self, task)

    def address(self, task):
        return f"{task[5:].partition('/')[0]}.example:2222"


class Calls:
    """Passes calls on to the worker that the task has now."""

    def __init__(self, cluster, task):
        self._cluster, self._task = cluster, task

    def __getattr__(self, name):
        self._cluster.contacted.add(self._task)
        return getattr(self._cluster.workers[self._task], name)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def master(cluster):
    master = Master(cluster)
    yield master
    master.close()


@pytest.fixture
def start(master, graph):
    """Makes a session of the graph as it is; returns its handle."""
    return lambda **settings: master.create_session(graph.as_graph_def(), config_pb2.ConfigProto(**settings))[0]


def dequeue(name):
    queue = apply_op("FIFOQueueV2", component_types=[tf.float32], shared_name=name)
    return apply_op("QueueDequeueV2", handle=queue, component_types=[tf.float32])[0]


def in_thread(function):
    """Starts a thread; returns (thread, list that gets the exception)."""
    caught: list[BaseException] = []

    def run():
        try:
            function()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, caught


def test_a_session_contacts_nobody_and_a_step_only_whom_it_needs(master, cluster, start):
    with tf.device(PS0):
        a = tf.constant(1.0) + 1.0
    with tf.device(PS1):
        tf.constant(2.0, name="far") + 1.0
    handle = start()
    assert cluster.contacted == set()
    assert master.run_step(handle, {}, [a.name])[0] == [2.0]
    assert cluster.contacted <= {PS0, OWN}


def test_values_come_in_the_order_of_the_fetches_from_all_tasks(master, start):
    with tf.device(PS0):
        a = tf.placeholder(tf.float32, [], name="a")
        b = a + 1.0
    with tf.device(PS1):
        c = a * b
    handle = start()
    values, metadata = master.run_step(handle, {"a:0": np.float32(3)}, [c.name, b.name])
    assert values == [12.0, 4.0] and metadata is None


def test_an_extension_must_know_the_current_version(master, start):
    handle = start()
    with tf.Graph().as_default() as more:
        tf.constant(1.0, name="new")
    assert master.extend_session(handle, more.as_graph_def(), 0) == 1
    with pytest.raises(errors.AbortedError, match="Current version is 1 but caller expected 0"):
        master.extend_session(handle, more.as_graph_def(), 0)
    with pytest.raises(errors.InvalidArgumentError, match="'new' already"):
        master.extend_session(handle, more.as_graph_def(), 1)
    assert master.run_step(handle, {}, ["new:0"])[0] == [1.0]


def test_an_unknown_session_is_aborted(master):
    with pytest.raises(errors.AbortedError, match="Session nope is not found"):
        master.run_step("nope", {}, ["a:0"])
    with pytest.raises(errors.AbortedError, match="Possibly, this master has restarted"):
        master.close_session("nope")
    with pytest.raises(errors.InvalidArgumentError):
        master.list_devices("nope")


def test_a_request_that_comes_twice_runs_once(master, start):
    one = tf.constant(1.0)
    handle = start()
    master.run_step(handle, {}, [one.name], request_id=77)
    with pytest.raises(errors.AbortedError, match="received twice"):
        master.run_step(handle, {}, [one.name], request_id=77)
    master.run_step(handle, {}, [one.name])
    master.run_step(handle, {}, [one.name])


def test_the_root_cause_stops_the_rest_of_the_step(master, start):
    with tf.device(PS0):
        waiting = dequeue("never")
    with tf.device(PS1):
        bad = tf.reshape(tf.constant([1.0, 2.0]), tf.placeholder(tf.int32, [1], name="shape"), name="bad")
    with tf.device(OWN):
        both = waiting + bad
    handle = start()
    with pytest.raises(errors.InvalidArgumentError, match=f"(?s)From {PS1}.*node bad"):
        master.run_step(handle, {"shape:0": np.array([3], np.int32)}, [both.name])


def test_a_step_can_be_cancelled_by_its_caller(master, start):
    with tf.device(PS0):
        waiting = dequeue("never")
    handle = start()
    cancellation = CancellationManager()
    thread, caught = in_thread(lambda: master.run_step(handle, {}, [waiting.name], cancellation=cancellation))
    cancellation.start_cancel()
    thread.join(10)
    assert isinstance(caught[0], errors.CancelledError)


def test_close_says_why_the_step_ended(master, start):
    with tf.device(PS0):
        waiting = dequeue("never")
    one = tf.constant(1.0)
    handle = start()
    master.run_step(handle, {}, [one.name])
    session = master._sessions[handle]
    entered = threading.Event()
    add_step = session.add_step
    session.add_step = lambda step: (add_step(step), entered.set())
    thread, caught = in_thread(lambda: master.run_step(handle, {}, [waiting.name]))
    assert entered.wait(10)
    master.close_session(handle)
    thread.join(10)
    assert isinstance(caught[0], errors.CancelledError)
    assert "explicit call to `Session::Close()`" in caught[0].message


@pytest.mark.parametrize("who", [PS0, OWN])
def test_a_restarted_task_aborts_the_sessions_that_knew_its_former_self(master, cluster, start, who):
    with tf.device(who):
        a = tf.constant(1.0) + 1.0
    handle = start()
    master.run_step(handle, {}, [a.name])
    cluster.restart(who, 99)
    with pytest.raises(errors.AbortedError, match="restarted"):
        master.run_step(handle, {}, [a.name])
    fresh = start()
    assert master.run_step(fresh, {}, [a.name])[0] == [2.0]


def test_variables_are_shared_by_sessions_unless_they_are_isolated(master, start):
    with tf.device(PS0):
        v = tf.Variable(5.0)
    first, second, alone = start(), start(), start(isolate_session_state=True)
    master.run_step(first, {}, [], [v.initializer.name])
    assert master.run_step(second, {}, [v.name])[0] == [5.0]
    with pytest.raises(errors.FailedPreconditionError):
        master.run_step(alone, {}, [v.name])


def test_a_variable_without_a_device_stays_where_it_was_first_used(master, start):
    v = apply_op("VariableV2", "v", shape=[], dtype=tf.float32)
    init = apply_op("Assign", "init", ref=v, value=tf.constant(3.0))
    handle = start()
    master.run_step(handle, {}, [], [init.op.name])
    with tf.Graph().as_default() as more, tf.device(PS1):
        tf.constant(0.0, name="other")
    graph_def = more.as_graph_def()
    graph_def.node[0].attr["_class"].list.s.append(b"loc:@v")
    master.extend_session(handle, graph_def, 0)
    assert master.run_step(handle, {}, [v.name])[0] == [3.0]


def test_a_callable_is_compiled_once_and_fed_in_order(master, start):
    a, b = tf.placeholder(tf.float32, [], name="a"), tf.placeholder(tf.float32, [], name="b")
    c = a - b
    handle = start()
    options = config_pb2.CallableOptions(feed=["a:0", "b:0"], fetch=[c.name])
    number = master.make_callable(handle, options)
    assert master.run_callable(handle, number, [np.float32(5), np.float32(3)])[0] == [2.0]
    with pytest.raises(errors.InvalidArgumentError, match="takes 2 feeds"):
        master.run_callable(handle, number, [np.float32(5)])
    master.release_callable(handle, number)
    with pytest.raises(errors.InvalidArgumentError, match="No such callable"):
        master.run_callable(handle, number, [])


def test_device_filters_hide_tasks(master, start):
    with tf.device(PS1):
        a = tf.constant(1.0)
    handle = start(device_filters=["/job:ps/task:0"])
    assert {device.name for device in master.list_devices(handle).local} == {
        f"{PS0}/device:CPU:0",
        f"{OWN}/device:CPU:0",
    }
    with pytest.raises(errors.InvalidArgumentError, match="Cannot assign a device"):
        master.run_step(handle, {}, [a.name])
    with pytest.raises(errors.InvalidArgumentError, match="Malformed device filter '/nonsense'"):
        start(device_filters=["/nonsense"])


def test_without_a_session_the_devices_are_told_apart(master):
    found = master.list_devices()
    assert [device.name for device in found.local] == [f"{OWN}/device:CPU:0"]
    assert len(found.remote) == 2


def test_a_step_that_waits_too_long_names_the_task_it_waits_for(master, start):
    with tf.device(PS0):
        waiting = dequeue("never")
    handle = start(operation_timeout_in_ms=50)
    with pytest.raises(errors.DeadlineExceededError, match=f"waiting for {PS0}"):
        master.run_step(handle, {}, [waiting.name])


def test_a_task_that_stops_answering_its_heartbeat_ends_the_step(master, cluster, start, monkeypatch):
    monkeypatch.setattr(step_monitor, "_HEARTBEAT_PERIOD_S", 0.05)
    with tf.device(PS0):
        waiting = dequeue("never")
    handle = start()
    gone = errors.DeadlineExceededError.of("no answer in time")
    monkeypatch.setattr(cluster.workers[PS0], "heartbeat", lambda done, timeout_s: done(error=gone))
    with pytest.raises(errors.UnavailableError, match=f"{PS0} at ps.example:2222 has stopped answering"):
        master.run_step(handle, {}, [waiting.name])


def test_a_graph_with_an_unknown_op_harms_only_the_steps_that_need_it(master, graph):
    one = tf.constant(1.0, name="one")
    graph_def = graph.as_graph_def()
    graph_def.node.add(name="strange", op="NoSuchOp")
    handle, _ = master.create_session(graph_def)
    assert master.run_step(handle, {}, [one.name])[0] == [1.0]
    with pytest.raises(errors.NotFoundError, match="NoSuchOp"):
        master.run_step(handle, {}, [], ["strange"])


# -- retries


def test_asking_ends_with_the_first_answer():
    refused = errors.UnavailableError.of("refused")
    outcomes = [refused, errors.DeadlineExceededError.of("slow"), "here"]

    def attempt(timeout_s):
        outcome = outcomes.pop(0)
        if isinstance(outcome, errors.OpError):
            raise outcome
        return outcome

    assert retry.ask(attempt, "it", None) == "here"


def test_asking_in_vain_says_whom_how_long_and_why():
    def attempt(timeout_s):
        raise errors.UnavailableError.of("refused")

    with pytest.raises(errors.DeadlineExceededError, match=r"it did not answer for 0\.\d s. Last error: refused"):
        retry.ask(attempt, "it", 0.05)


def test_other_errors_are_not_worth_another_attempt():
    def attempt(timeout_s):
        raise errors.InvalidArgumentError.of("wrong")

    with pytest.raises(errors.InvalidArgumentError):
        retry.ask(attempt, "it", None)


def test_who_waits_without_a_bound_is_told_what_for(monkeypatch, caplog):
    monkeypatch.setattr(retry, "_LOG_PERIOD_S", 0.0)
    stopped = threading.Event()

    def attempt(timeout_s):
        if caplog.records:
            stopped.set()
        raise errors.UnavailableError.of("refused")

    with caplog.at_level(logging.WARNING, "dtf"), pytest.raises(errors.CancelledError, match="it"):
        retry.ask(attempt, "it", None, stopped)
    assert "Still waiting for it" in caplog.text and "refused" in caplog.text
