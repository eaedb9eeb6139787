"""Work of the growing pool must be done, whatever the system lacks meanwhile."""

from __future__ import annotations

import threading

import pytest

from dtf.run.threads import growing_pool


@pytest.fixture
def lacking(monkeypatch):
    """No thread can be started until it is called."""

    class Thread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(growing_pool.threading, "Thread", Thread)
    return monkeypatch.undo


def test_work_without_a_thread_is_done_by_one_that_becomes_free(lacking):
    pool, begun, goes_on, done = growing_pool._Pool(), threading.Event(), threading.Event(), threading.Event()
    lacking()
    pool.submit(lambda: (begun.set(), goes_on.wait()), ())
    assert begun.wait(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", _refuse)
        pool.submit(done.set, ())
    assert not done.is_set() and not pool.is_quiet()
    goes_on.set()
    assert done.wait(60)


def test_work_without_any_thread_is_done_with_the_next(lacking):
    pool, first, second = growing_pool._Pool(), threading.Event(), threading.Event()
    pool.submit(first.set, ())
    assert not pool.is_quiet()
    lacking()
    pool.submit(second.set, ())
    assert first.wait(60) and second.wait(60)


def _refuse(thread):
    raise RuntimeError("can't start new thread")
