"""What a client has at servers must end soon after its process, and never before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

import dtf as tf
from dtf.channel import cache_reaper
from dtf.channel.listener import Answer
from dtf.rpc import leases
from dtf.rpc.connection import Connection
from dtf.rpc.leases import GRACE_S, Leases
from dtf.testing import LocalCluster
from dtf.wire.pb import master_pb2
from tests.ports import free_ports


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ended(monkeypatch):
    monkeypatch.setattr(leases.growing_pool, "submit", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(leases.cache_reaper, "watch", lambda forget: None)
    return []


def _leases(ended, clock, is_free=lambda handle: True):
    return Leases(lambda handle: is_free(handle) and (ended.append(handle) or True), "sessions", clock)


def _answer():
    return Answer(lambda pieces, error: None)


def _pass(table, clock, seconds):
    """Time passes as it does for the thread that looks."""
    for _ in range(int(seconds / 5)):
        clock.now += 5
        more = table.look(clock.now)
    return more


def test_a_client_that_is_gone_for_long_loses_its_sessions(ended, clock):
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    table.grant(b"a", "2")
    held = _answer()
    assert table.hold(b"a", held)
    assert not _pass(table, clock, 1000) and ended == []
    table.lost(b"a", held)
    assert _pass(table, clock, GRACE_S - 5) and ended == []
    _pass(table, clock, 10)
    assert sorted(ended) == ["1", "2"] and not table.hold(b"a", held)


def test_a_client_that_holds_again_in_time_loses_nothing(ended, clock):
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    first, second = _answer(), _answer()
    table.hold(b"a", first)
    table.lost(b"a", first)
    _pass(table, clock, GRACE_S - 5)
    assert table.hold(b"a", second)
    _pass(table, clock, 1000)
    assert ended == []


def test_one_of_several_connections_is_enough(ended, clock):
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    first, second = _answer(), _answer()
    table.hold(b"a", first)
    table.hold(b"a", second)
    table.lost(b"a", first)
    _pass(table, clock, 1000)
    assert ended == []


def test_a_session_that_others_use_is_asked_for_again(ended, clock):
    is_used = True
    table = _leases(ended, clock, lambda handle: not is_used)
    table.grant(b"a", "1")
    _pass(table, clock, 100)
    assert ended == []
    is_used = False
    _pass(table, clock, GRACE_S + 5)
    assert ended == ["1"]


def test_a_server_that_was_stopped_itself_gives_its_clients_time(ended, clock):
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    clock.now += 3600
    assert table.look(clock.now) and ended == []
    assert table.hold(b"a", _answer())


def test_a_closed_session_is_nobodys(ended, clock):
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    table.forget("1")
    _pass(table, clock, 1000)
    assert ended == [] and not table.hold(b"a", _answer())


def test_a_server_that_hardly_runs_counts_only_the_time_in_which_it_could_hear(ended, clock):
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    for _ in range(3):  # 5 s of each 14 s
        clock.now += 14
        assert table.look(clock.now) and ended == []
    _pass(table, clock, GRACE_S)
    assert ended == ["1"]


def test_a_client_that_comes_back_just_before_its_end_loses_nothing(ended, clock, monkeypatch):
    late = []
    monkeypatch.setattr(leases.growing_pool, "submit", lambda *work: late.append(work))
    table = _leases(ended, clock)
    table.grant(b"a", "1")
    _pass(table, clock, GRACE_S)
    [(end, *arguments)] = late
    assert table.hold(b"a", _answer())
    end(*arguments)
    assert ended == []


class _Connection:
    """Calls that are answered by hand."""

    where = "a task"
    is_closed = False

    def __init__(self):
        self.calls = []
        self.failure = None

    def call_async(self, method, request, done, timeout_s=None):
        self.calls.append(done)
        if self.failure is not None:
            raise self.failure
        return lambda: None


@pytest.fixture
def holder(monkeypatch):
    class Timer:
        daemon = False

        def __init__(self, delay_s, function):
            self.start = function

    monkeypatch.setattr(leases.threading, "Timer", Timer)
    return leases.Holder(_Connection())


def test_what_a_task_says_of_earlier_sessions_is_not_taken_for_a_later_one(holder):
    marked = b"".join(leases.with_mark(b"a"))
    holder.made("1", marked)
    holder.released("1")
    holder.made("2", marked)
    [said] = holder._connection.calls
    said(b"?")  # of the first session, whose end the task has heard before this call
    assert len(holder._connection.calls) == 2, "the second session is not held"
    holder._connection.calls[1](b"?")
    assert len(holder._connection.calls) == 2


def test_a_hold_that_fails_in_any_way_is_tried_again(holder, monkeypatch):
    later = []

    class Timer:
        daemon = False

        def __init__(self, delay_s, function):
            self.start = lambda: later.append(function)

    monkeypatch.setattr(leases.threading, "Timer", Timer)
    holder._connection.failure = RuntimeError("can't start new thread")
    holder.made("1", b"".join(leases.with_mark(b"a")))
    holder._connection.failure = None
    later.pop()()
    assert len(holder._connection.calls) == 2 and holder._cancel is not None


# -- with sockets


_CLIENT = """
import sys
import dtf as tf
sessions = []
for _ in range(3):
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=1.0)
        sessions.append(tf.Session(sys.argv[1]))
        sessions[-1].run(v.initializer)
        sessions[-1].run(v.assign_add(1.0))
print("ready", flush=True)
sys.stdin.read()
"""


def _wait_until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture
def grace(monkeypatch):
    """Sets how long clients may be without a connection, in seconds."""
    monkeypatch.setattr(cache_reaper, "IDLE_S_MAX", 0.2)
    return lambda seconds: monkeypatch.setattr(leases, "GRACE_S", seconds)


@pytest.mark.parametrize("channel", ["on", "off"])
def test_sessions_of_a_killed_client_end_and_variables_stay(channel, grace):
    with LocalCluster({"ps": 1, "worker": 1}) as cluster:
        ps, worker = cluster.servers["ps", 0], cluster.servers["worker", 0]
        client = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, cluster.target("worker")],
            env={**os.environ, "DTF_CHANNEL": channel},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with client:
            assert client.stdout.readline() == b"ready\n"
            assert len(worker._master._sessions) == 3 and len(ps._worker._sessions) == 3
            grace(0.1)
            client.kill()
        _wait_until(lambda: not worker._master._sessions, "the master still has the sessions")
        _wait_until(lambda: not ps._worker._sessions, "the ps still has the sessions")
        grace(60.0)  # the next client may be slow
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=1.0)
            with tf.Session(cluster.target("worker")) as session:
                assert session.run(v) == 2.0


def test_sessions_outlive_a_lost_connection(monkeypatch):
    monkeypatch.setattr(leases, "_RETRY_S", 0.05)
    with LocalCluster({"worker": 1}, processes=True) as cluster, tf.Graph().as_default():
        x = tf.constant(1.0) + 1.0
        with tf.Session(cluster.target("worker")) as session:
            assert [session.run(x) for _ in range(3)] == [2.0] * 3
            master = session._master
            holder = master._holder
            _wait_until(lambda: holder._cancel is not None and master._connection.channel is not None, "not held")
            first = holder._cancel
            master._connection.channel.close()
            _wait_until(lambda: holder._cancel not in (None, first), "the client does not hold again")
            assert session.run(x) == 2.0


_MASTER = """
import json, sys
import dtf as tf
server = tf.train.Server(json.loads(sys.argv[1]), "worker", 0)
with tf.device("/job:ps/task:0"):
    x = tf.constant(1.0) + 1.0
session = tf.Session(server.target)
print(session.run(x), flush=True)
sys.stdin.read()
"""


def test_sessions_of_a_killed_master_end_at_its_workers(grace):
    cluster = {job: [f"127.0.0.1:{port}"] for job, port in zip(("ps", "worker"), free_ports(2), strict=True)}
    with tf.train.Server(cluster, "ps", 0) as ps:
        command = [sys.executable, "-c", _MASTER, json.dumps(cluster)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as master:
            assert master.stdout.readline() == b"2.0\n" and len(ps._worker._sessions) == 1
            grace(0.1)
            master.kill()
        _wait_until(lambda: not ps._worker._sessions, "the ps still has the session")


def test_sessions_of_clients_that_are_not_ours_stay():
    with LocalCluster({"worker": 1}) as cluster:
        connection = Connection(cluster.target("worker").partition("://")[2])
        raw = connection.call("/tensorflow.MasterService/CreateSession", b"", 60)
        response = master_pb2.CreateSessionResponse.FromString(raw)
        assert leases.client_in(raw) is None
        connection.close()
        assert response.session_handle in cluster.servers["worker", 0]._master._sessions


def test_a_session_is_not_taken_for_unused_between_two_of_its_steps():
    with tf.Graph().as_default():
        one = tf.constant(1)
        session = tf.Session()
        session.run(one)
        master = session._master._master
        assert not master.abandon_session(session._handle)  # a step has run since
        session.run(one)
        assert not master.abandon_session(session._handle)
        assert master.abandon_session(session._handle)
        with pytest.raises(tf.errors.AbortedError):
            session.run(one)
