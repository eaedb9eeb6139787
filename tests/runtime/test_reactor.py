"""Who reads the connections of a process: the thread on duty, and those that wait, in its stead."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
import time

import pytest

from dtf.channel import reactor
from dtf.channel.client import Channel
from dtf.channel.endpoint import greet, new_connection_id
from dtf.channel.lane import Lane
from dtf.channel.listener import Listener
from dtf.run.threads import reader_thread
from tests.runtime.channel_frames import frame

TASK = "/job:ps/replica:0/task:0"


class Awaited:
    """What a thread waits for."""

    def __init__(self):
        self._over = threading.Event()

    @property
    def has_ended(self):
        return self._over.is_set()

    def wait_ended(self, timeout_s):
        return self._over.wait(None if timeout_s < 0 else timeout_s)

    def end(self):
        self._over.set()
        reader_thread.tell_ended(self)


class Methods:
    """A method that echoes, one that takes long, and one that never answers."""

    def __init__(self):
        self.begun, self.release, self.cancelled = threading.Semaphore(0), threading.Event(), threading.Event()
        self.table = {
            "/echo": lambda request, answer: answer.set((bytes(request),)),
            "/long": self.long,
            "/park": lambda request, answer: answer.on_cancel(self.cancelled.set),
        }

    def long(self, request, answer):
        reader_thread.yield_reader()
        self.begun.release()
        assert self.release.wait(10)
        answer.set((b"at last",))


@pytest.fixture
def methods():
    return Methods()


@pytest.fixture
def listener(methods):
    listener = Listener("127.0.0.1", TASK)
    listener.start(methods.table)
    yield listener
    listener.stop(0)


@pytest.fixture
def channel(listener):
    channel = Channel(listener.endpoint, "127.0.0.1", TASK)
    yield channel
    channel.close()


def pair():
    """A lane that is read, what it was sent, and the other end."""
    here, there = socket.socketpair()
    frames, arrived = [], threading.Semaphore(0)

    def on_frame(lane, kind, flags, number, call_id, body):
        frames.append((call_id, bytes(body)))
        arrived.release()

    lane = Lane(here, on_frame, lambda reason: None)
    return lane, frames, arrived, there


def test_who_waits_reads_what_ends_the_wait():
    """In the end: the thread on duty gives way as soon as it sees that others want to read."""
    awaited_by = []
    for _ in range(200):
        awaited = Awaited()
        here, there = socket.socketpair()

        def on_frame(*_, awaited=awaited):
            awaited_by.append(threading.current_thread())
            awaited.end()

        lane = Lane(here, on_frame, lambda reason: None)
        lane.begin()
        there.sendall(frame(1))
        assert reader_thread.wait(awaited, 10)
        there.close()
        if awaited_by[-1] is threading.main_thread():
            break
    assert awaited_by[-1] is threading.main_thread()


def test_what_another_thread_ends_wakes_who_reads(channel):
    ways = []
    for _ in range(200):
        awaited = Awaited()

        def end(awaited=awaited):
            while reactor.shared()._reading_for is not awaited and awaited not in reactor.shared()._blocked:
                threading.Event().wait(0.0001)
            ways.append("reads" if reactor.shared()._reading_for is awaited else "is blocked")
            awaited.end()

        ender = threading.Thread(target=end)
        channel.call("/echo", (b"something comes, so the thread on duty gives way",), 10.0)
        ender.start()
        assert reader_thread.wait(awaited, 10)
        ender.join(10)
        assert not ender.is_alive()
        if ways[-1] == "reads":
            break
    assert ways[-1] == "reads"


def test_a_wait_has_its_limit(channel):
    assert not reader_thread.wait(Awaited(), 0)
    assert not reader_thread.wait(Awaited(), 0.01)


def test_what_takes_long_keeps_nobody_from_reading(channel, methods):
    answers = []
    callers = [
        threading.Thread(target=lambda: answers.append(bytes(channel.call("/long", (), 10.0)))) for _ in range(5)
    ]
    for caller in callers:
        caller.start()
    for _ in callers:
        assert methods.begun.acquire(timeout=10)
    assert bytes(channel.call("/echo", (b"meanwhile",), 10.0)) == b"meanwhile"
    methods.release.set()
    for caller in callers:
        caller.join(10)
    assert answers == [b"at last"] * 5


def test_frames_that_came_with_one_that_takes_long_do_not_wait_for_it():
    here, there = socket.socketpair()
    release, handled = threading.Event(), threading.Semaphore(0)
    order = []

    def on_frame(lane, kind, flags, number, call_id, body):
        if call_id == 1:
            reader_thread.yield_reader()
            release.wait(10)
        order.append(call_id)
        handled.release()

    lane = Lane(here, on_frame, lambda reason: None)
    there.sendall(frame(1) + frame(2) + frame(3))
    lane.begin()
    for _ in range(2):
        assert handled.acquire(timeout=10)
    assert order == [2, 3]
    release.set()
    assert handled.acquire(timeout=10)
    there.close()


def test_a_system_without_another_thread_is_survived(monkeypatch, caplog):
    alone = reactor.Reactor()
    monkeypatch.setattr(reactor, "shared", lambda: alone)
    here, there = socket.socketpair()
    handled, arrived = [], threading.Semaphore(0)

    def on_frame(lane, kind, flags, number, call_id, body):
        reader_thread.yield_reader()
        handled.append(call_id)
        arrived.release()

    def no_thread():
        raise RuntimeError("can't start new thread")

    with there:
        lane = Lane(here, on_frame, lambda reason: None)
        lane.begin()
        monkeypatch.setattr(alone, "_start_thread", no_thread)
        for call_id in range(3):
            there.sendall(frame(call_id))
            assert arrived.acquire(timeout=10)
    assert handled == [0, 1, 2]
    assert "can't start new thread" in caplog.text


def test_a_wait_ends_with_the_frame_that_ends_it_even_if_it_was_left_by_what_takes_long():
    here, there = socket.socketpair()
    awaited, readers = [Awaited()], []

    def on_frame(lane, kind, flags, number, call_id, body):
        if call_id % 2:
            awaited[-1].end()
        else:
            readers.append(threading.current_thread())
            reader_thread.yield_reader()

    with there:
        lane = Lane(here, on_frame, lambda reason: None)
        lane.begin()
        for number in range(200):
            began = time.monotonic()
            there.sendall(frame(2 * number) + frame(2 * number + 1))
            assert reader_thread.wait(awaited[-1], 30)
            assert time.monotonic() < began + 20
            if readers[-1] is threading.main_thread():
                break
            awaited.append(Awaited())
        assert readers[-1] is threading.main_thread() and not lane._is_over


@pytest.mark.parametrize("size", [40_000, 1_000_000])
def test_half_a_body_keeps_nobody_from_reading(channel, size):
    lane, frames, arrived, there = pair()
    whole = frame(7, bytes(range(250)) * (size // 250))
    lane.begin()
    there.sendall(whole[: size // 2])
    for _ in range(20):
        assert bytes(channel.call("/echo", (b"meanwhile",), 10.0)) == b"meanwhile"
    assert not frames
    there.sendall(whole[size // 2 :] + frame(8, b"next"))
    for _ in range(2):
        assert arrived.acquire(timeout=10)
    assert [call_id for call_id, _ in frames] == [7, 8]
    assert frames[0][1] == whole[24:]
    there.close()


def test_ctrl_c_in_a_thread_that_reads_while_it_waits_loses_no_message():
    here, there = socket.socketpair()
    handled, interrupted, awaited = [], [], [Awaited()]

    def on_frame(lane, kind, flags, number, call_id, body):
        handled.append(call_id)
        if call_id % 2:
            awaited[-1].end()
        elif threading.current_thread() is threading.main_thread() and not interrupted:
            interrupted.append(call_id)
            raise KeyboardInterrupt

    with there:
        lane = Lane(here, on_frame, lambda reason: None)
        lane.begin()
        for number in range(200):
            there.sendall(frame(2 * number) + frame(2 * number + 1))
            with contextlib.suppress(KeyboardInterrupt):
                assert reader_thread.wait(awaited[-1], 10)
            assert reader_thread.wait(awaited[-1], 10) or interrupted
            if interrupted:
                break
            awaited.append(Awaited())
        assert interrupted and not lane._is_over
        assert handled == list(range(2 * number + 2))


def test_a_lane_that_ends_is_forgotten_and_its_descriptor_used_again(channel):
    for _ in range(50):
        lane, _, arrived, there = pair()
        lane.begin()
        there.sendall(frame(1))
        assert arrived.acquire(timeout=10)
        there.close()
    assert bytes(channel.call("/echo", (b"still there",), 10.0)) == b"still there"


def test_a_channel_that_nobody_holds_is_closed(listener, methods):
    channel = Channel(listener.endpoint, "127.0.0.1", TASK)
    channel.call("/echo", (b"x",), 10.0)
    channel.call_async("/park", (), lambda *_, **__: None)
    del channel
    gc.collect()
    for _ in range(100):
        if methods.cancelled.wait(0.1):
            break
        gc.collect()
    assert methods.cancelled.is_set()


def test_a_greeting_that_takes_its_time_costs_nobody_else(listener, channel):
    slow = socket.create_connection(("127.0.0.1", listener.endpoint.port), timeout=10)
    assert bytes(channel.call("/echo", (b"x",), 10.0)) == b"x"
    quick = Channel(listener.endpoint, "127.0.0.1", TASK)
    assert bytes(quick.call("/echo", (b"x",), 10.0)) == b"x"
    assert greet(slow, listener.endpoint.token, new_connection_id(), 0)
    slow.close()
    quick.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_leaves_the_connections_to_the_one_that_it_comes_from(channel):
    assert bytes(channel.call("/echo", (b"before",), 10.0)) == b"before"
    child = os.fork()
    if not child:
        os._exit(0 if reader_thread.reader is None and not reader_thread.wait(Awaited(), 0.01) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bytes(channel.call("/echo", (b"after",), 10.0)) == b"after"
