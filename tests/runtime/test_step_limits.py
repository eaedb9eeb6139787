"""A step must end at its time limit, when its session is closed, when its caller goes, and by Ctrl-C, whatever it does;
and the thread that computed it must be free afterwards.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dtf as tf
from dtf.wire import errors


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("dtf.run.datasets.iterator.GRACE_S", 0.05)
    monkeypatch.setattr("dtf.run.master.step_monitor._STOP_GRACE_S", 0.3)


LIMIT = tf.RunOptions(timeout_in_ms=100)


def _endless(x=0):
    return tf.while_loop(lambda i: i > -1, lambda i: i + 1, [tf.constant(x)])


FORMS = {
    "loop": _endless,
    "nested loops": lambda: tf.while_loop(lambda i: i > -1, lambda i: i + 0 * _endless(), [tf.constant(0)]),
    "map_fn": lambda: tf.map_fn(lambda i: _endless() + i, tf.constant([1, 2])),
    "cond": lambda: tf.cond(tf.placeholder_with_default(True, []), _endless, lambda: tf.constant(1)),
    "filter": lambda: _next(tf.data.Dataset.range(10).repeat().filter(lambda x: x < 0)),
    "filter in a batch": lambda: _next(tf.data.Dataset.range(10).repeat().filter(lambda x: x < 0).batch(2)),
    "map": lambda: _next(tf.data.Dataset.range(10).map(lambda x: tf.cast(_endless(), tf.int64) + x)),
    "parallel map": lambda: _next(
        tf.data.Dataset.range(10).map(lambda x: tf.cast(_endless(), tf.int64) + x, num_parallel_calls=2)
    ),
    "flat_map of nothing": lambda: _next(
        tf.data.Dataset.range(3).repeat().flat_map(lambda x: tf.data.Dataset.range(tf.constant(0, tf.int64)))
    ),
    "unbatch of nothing": lambda: _next(
        tf.data.Dataset.from_tensors(np.zeros([0, 2])).repeat().apply(tf.data.experimental.unbatch())
    ),
    "dequeue": lambda: tf.FIFOQueue(3, tf.int32).dequeue(),
    "accumulator": lambda: tf.ConditionalAccumulator(tf.float32, []).take_grad(1),
    "reduce": lambda: tf.data.Dataset.range(5).repeat().reduce(np.int64(0), lambda a, b: a + b),
}


def _next(dataset):
    return tf.data.make_one_shot_iterator(dataset).get_next()


def _wait_until(condition, what, limit_s=60.0):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def _busy_threads():
    """Threads of the pool that do something."""
    import traceback

    found = []
    for ident, frame in sys._current_frames().items():
        name = next((each.name for each in threading.enumerate() if each.ident == ident), "")
        if name.startswith("dtf-pool") and "self._work.get" not in (traceback.extract_stack(frame)[-1].line or ""):
            found.append("".join(traceback.format_stack(frame)))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_step_ends_at_its_limit(form):
    with tf.Graph().as_default():
        fetch = FORMS[form]()
        with tf.Session() as session:
            for _ in range(2):
                with pytest.raises(errors.DeadlineExceededError):
                    session.run(fetch, options=LIMIT)
            _wait_until(lambda: not _busy_threads(), "a thread still computes")
            assert session.run(tf.constant(5), options=LIMIT) == 5


def test_a_function_of_the_users_that_blocks_does_not_hold_its_caller():
    go_on = threading.Event()

    def block(x):
        go_on.wait(120)
        return x

    with tf.Graph().as_default(), tf.Session() as session:
        blocked = tf.py_func(block, [1.0], tf.float32)
        try:
            with pytest.raises(errors.DeadlineExceededError):
                session.run(blocked, options=LIMIT)
        finally:
            go_on.set()
        _wait_until(lambda: not _busy_threads(), "the function's thread is not free")
        assert session.run(blocked, options=tf.RunOptions(timeout_in_ms=60_000)) == 1.0


@pytest.mark.parametrize("way", ["run", "callable", "partial run"])
def test_the_limit_of_a_session_counts_for_every_way_to_run(way):
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.int32, [])
        endless = tf.while_loop(lambda i: i >= fed, lambda i: i + 1, [fed])
        with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=100)) as session:
            with pytest.raises(errors.DeadlineExceededError):
                if way == "run":
                    session.run(endless, {fed: 0})
                elif way == "callable":
                    session.make_callable(endless, [fed])(0)
                else:
                    handle = session.partial_run_setup([endless], [fed])
                    session.partial_run(handle, [endless], {fed: 0})
            _wait_until(lambda: not _busy_threads(), "a thread still computes")


@pytest.mark.parametrize("limit", [None, tf.RunOptions(timeout_in_ms=100_000)])
def test_close_ends_an_endless_step(limit):
    with tf.Graph().as_default():
        started = threading.Event()
        told = tf.py_func(lambda: started.set() or np.int32(0), [], tf.int32)
        endless = tf.while_loop(lambda i: i > -1, lambda i: i + 1, [told])
        session = tf.Session()
        found = []

        def run():
            try:
                session.run(endless, options=limit)
            except errors.OpError as error:
                found.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert started.wait(60)
        session.close()
        thread.join(60)
        assert not thread.is_alive() and isinstance(found[0], errors.CancelledError)


def test_a_long_chain_of_kernels_ends_between_two_of_them():
    counts, go_on = [], threading.Event()

    def count(x):
        counts.append(x)
        go_on.wait(60)
        return x

    with tf.Graph().as_default():
        chain = tf.constant(1.0)
        for _ in range(100):
            chain = tf.py_func(count, [chain], tf.float32)
        session = tf.Session()
        thread = threading.Thread(target=lambda: pytest.raises(errors.CancelledError, session.run, chain))
        thread.start()
        _wait_until(lambda: counts, "the chain does not begin")
        closing = threading.Thread(target=session.close)
        closing.start()
        _wait_until(lambda: _is_cancelled(), "the step is not cancelled")
        go_on.set()
        thread.join(60)
        closing.join(60)
        assert len(counts) == 1


def _is_cancelled():
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_name == "_run_segments":
                return frame.f_locals["self"].step.cancellation.is_cancelled
            frame = frame.f_back
    return False


_INTERRUPTED = """
import os, signal, threading
import numpy as np
import dtf as tf
started = threading.Event()
with tf.control_dependencies([tf.py_func(lambda: started.set() or np.int32(0), [], tf.int32)]):
    fetch = {fetch}
session = tf.Session()
def strike():
    started.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=strike).start()
try:
    session.run(fetch)
except KeyboardInterrupt:
    print("interrupted", session.run(tf.constant(7)))
    session.close()
"""


@pytest.mark.parametrize(
    "fetch",
    [
        "tf.while_loop(lambda i: i > -1, lambda i: i + 1, [tf.identity(0)])",
        "tf.data.make_one_shot_iterator(tf.data.Dataset.range(9).repeat().filter(lambda x: x < 0)).get_next()",
    ],
)
def test_ctrl_c_ends_an_endless_step(fetch):
    program = _INTERRUPTED.format(fetch=fetch)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "interrupted 7\n", done.stderr
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
