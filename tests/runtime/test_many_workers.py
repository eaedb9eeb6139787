"""32 workers on one ps: nothing is lost, nothing comes twice, and what one of them sends stays in order."""

from __future__ import annotations

import struct
import threading

import numpy as np
import pytest

import dtf as tf
from dtf.channel.client import Channel
from dtf.channel.listener import Listener
from dtf.train import Server
from tests.ports import free_ports

WORKERS = 32
STEPS = 12
WIDTH = 20_000  # floats: large enough for the way that large bodies take


@pytest.fixture
def servers():
    """A ps and the workers as servers of this process; their sockets are real."""
    ports = free_ports(1 + WORKERS)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{port}" for port in ports[1:]]}
    servers = [Server(cluster, "ps", 0), *(Server(cluster, "worker", index) for index in range(WORKERS))]
    yield servers
    for server in servers:
        server.stop(0)


def at_once(function, count=WORKERS):
    """function(index) in `count` threads; raises what one of them raised."""
    failures = []

    def guarded(index):
        try:
            function(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_updates_of_32_workers_all_count_once_and_each_reads_what_it_wrote(servers):
    def build(index):
        with tf.device("/job:ps/task:0"):
            total = tf.Variable(tf.zeros([WIDTH]), name="total")
            rows = tf.Variable(tf.zeros([WORKERS, 3]), name="rows")
            told = tf.FIFOQueue(WORKERS * STEPS, [tf.int32, tf.int32], [[], []], shared_name="told")
        with tf.device(f"/job:worker/task:{index}"):
            number = tf.placeholder(tf.int32, [])
            gradient = tf.fill([WIDTH], tf.cast(number, tf.float32))
            row = tf.fill([1, 3], tf.cast(number, tf.float32))
        update = tf.group(total.assign_add(gradient), tf.scatter_update(rows, [index], row))
        with tf.control_dependencies([update]), tf.device(rows.device):
            own = tf.gather(rows.read_value(), index)
            tell = told.enqueue([index, number])
        return number, own, tell, total, told

    with tf.Graph().as_default():
        *_, total, told = build(0)
        with tf.Session(servers[0].target) as session:
            session.run(tf.global_variables_initializer())

    def work(index):
        with tf.Graph().as_default():
            number, own, tell, *_ = build(index)
            with tf.Session(servers[1 + index].target) as session:
                for step in range(1, STEPS + 1):
                    read, _ = session.run([own, tell], {number: step})
                    assert read.tolist() == [step] * 3

    at_once(work)
    with tf.Graph().as_default():
        *_, total, told = build(0)
        with tf.Session(servers[0].target) as session:
            found = session.run(total)
            indices, numbers = session.run(told.dequeue_many(WORKERS * STEPS))
    assert set(found.tolist()) == {WORKERS * STEPS * (STEPS + 1) / 2}
    for index in range(WORKERS):
        assert numbers[indices == index].tolist() == list(range(1, STEPS + 1))


def test_messages_of_32_connections_come_once_and_in_order():
    """Small ones and large ones; each kind in its own order, for they take different ways."""
    messages = 60
    came: dict[tuple[int, bool], list[int]] = {}

    def take(request, answer):
        index, number = struct.unpack_from("<II", request)
        is_large = len(request) > 8
        assert not is_large or set(np.frombuffer(request, np.uint8)[8:].tolist()) == {number}
        came.setdefault((index, is_large), []).append(number)
        answer.set((b"",))

    listener = Listener("127.0.0.1", "ps")
    listener.start({"/take": take})
    try:

        def send(index):
            channel = Channel(listener.endpoint, "127.0.0.1", "ps")
            for number in range(messages):
                head = struct.pack("<II", index, number)
                channel.tell("/take", (head,))
                if number % 10 == 0:
                    channel.call("/take", (head, np.full(70_000, number, np.uint8).data), 60.0)
            channel.call("/take", (struct.pack("<II", index, messages),), 60.0)
            channel.close()

        at_once(send)
    finally:
        listener.stop(0)
    for index in range(WORKERS):
        assert came[index, False] == list(range(messages + 1))
        assert came[index, True] == list(range(0, messages, 10))
