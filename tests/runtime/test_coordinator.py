"""Coordinator and LooperThread: threads stop together and the first error reaches `join`."""

from __future__ import annotations

import threading

import pytest

import dtf as tf
from dtf.train.coordinator import Coordinator, LooperThread


def started(target, *args) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def test_join_returns_when_the_threads_have_ended_by_themselves():
    coord = Coordinator()
    coord.join([started(lambda: None)])
    assert coord.joined and not coord.should_stop()


def test_the_first_exception_is_raised_by_join():
    coord = Coordinator()

    def fail(message):
        with coord.stop_on_exception():
            raise ValueError(message)

    first = started(fail, "first")
    first.join()
    with pytest.raises(ValueError, match="first"):
        coord.join([first, started(fail, "second")])


def test_the_end_of_the_input_is_no_error():
    coord = Coordinator()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "the queue is empty"))
    coord.join()
    assert coord.should_stop()


def test_threads_that_outlive_the_grace_period_are_named():
    coord, end = Coordinator(), threading.Event()
    stuck = threading.Thread(target=end.wait, name="stuck", daemon=True)
    stuck.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="threads still running: stuck"):
        coord.join([stuck], stop_grace_period_secs=0.01)
    coord.clear_stop()
    coord.request_stop()
    coord.join([stuck], stop_grace_period_secs=0.01, ignore_live_threads=True)
    end.set()


def test_an_exception_after_join_is_raised_at_once():
    coord = Coordinator()
    coord.join()
    with pytest.raises(KeyError):
        coord.request_stop(KeyError("late"))


def test_a_looper_calls_until_the_coordinator_stops():
    coord, calls = Coordinator(), []

    def turn():
        calls.append(1)
        if len(calls) == 3:
            coord.request_stop()

    LooperThread.loop(coord, None, turn)
    coord.join()
    assert len(calls) == 3


def test_a_loopers_first_call_is_at_once():
    coord, called = Coordinator(), threading.Event()
    LooperThread.loop(coord, 3600.0, called.set)
    assert called.wait(10)
    coord.request_stop()
    coord.join()


def test_a_loopers_exception_stops_the_others():
    coord = Coordinator()
    LooperThread.loop(coord, 3600.0, lambda: None)
    LooperThread.loop(coord, None, lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        coord.join()
