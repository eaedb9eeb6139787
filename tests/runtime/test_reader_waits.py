"""The hook of tests/reader_waits, which every test runs under, must find what it is there for."""

from __future__ import annotations

import concurrent.futures
import queue
import threading

import numpy as np
import pytest

import dtf as tf
from dtf.run.threads import reader_thread
from dtf.train import Server
from tests import reader_waits
from tests.ports import free_ports


class Ended:
    has_ended = True

    def wait_ended(self, timeout_s):
        return True


def ended_thread():
    thread = threading.Thread(target=int)
    thread.start()
    return thread


WAITS = {
    "event": lambda: threading.Event().wait(0.001),
    "queue": lambda: pytest.raises(queue.Empty, queue.Queue().get, timeout=0.001),
    "semaphore": lambda: threading.Semaphore(0).acquire(timeout=0.001),
    "future": lambda: pytest.raises(concurrent.futures.TimeoutError, concurrent.futures.Future().result, 0.001),
    "join": lambda: ended_thread().join(),
    "step": lambda: reader_thread.wait(Ended()),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_wait_in_a_reader_thread_is_found(wait):
    reader_thread.lend(lambda: None)
    try:
        wait()
    finally:
        reader_thread.take_back()
    stacks = list(reader_waits.found)
    reader_waits.found.clear()
    assert stacks and all("test_reader_waits" in stack for stack in stacks)


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_thread_that_has_handed_over_may_wait(wait):
    reader_thread.lend(lambda: None)
    reader_thread.yield_reader()
    wait()
    assert not reader_waits.found


def test_what_tasks_do_for_each_other_waits_in_no_reader_thread(monkeypatch):
    """Steps, queues that wait, Python functions, errors, large tensors and the ends of sessions, of two tasks that
    reach each other by the channel.
    """
    lent: list[str] = []
    lend = reader_thread.lend
    monkeypatch.setattr(reader_thread, "lend", lambda *given: (lent.append("turn"), lend(*given)))
    ports = free_ports(2)
    cluster = tf.train.ClusterSpec({"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]})
    servers = [Server(cluster, job_name=job, task_index=0) for job in ("ps", "worker")]
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            total = tf.Variable(np.zeros(200_000, np.float32))
            waiting = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
        with tf.device("/job:worker"):
            given = tf.placeholder(tf.float32, [])
            put = waiting.enqueue(given)
            taken = waiting.dequeue() + 1.0
            moved = total.assign_add(tf.fill([200_000], given))
            called = tf.py_func(lambda value: value * np.float32(2), [given], tf.float32)
            refused = tf.check_numerics(given / 0.0, "no number")
        for target in (servers[0].target, servers[1].target):
            with tf.Session(target) as session:
                session.run(tf.global_variables_initializer())
                got: list[float] = []
                taker = threading.Thread(target=lambda session=session, got=got: got.append(session.run(taken)))
                taker.start()
                for _ in range(5):
                    session.run([moved.op, called], {given: 1.0})
                session.run(put, {given: 2.0})
                taker.join(30)
                assert got == [3.0]
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(refused, {given: 1.0})
                assert session.run(total)[0] == 5.0
    for server in servers:
        server.stop()
    assert lent
