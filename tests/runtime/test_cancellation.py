"""How a step tells everything that waits in it to stop."""

from __future__ import annotations

from dtf.run.threads.cancellation import CancellationManager


def test_who_waits_is_told_once():
    manager, told = CancellationManager(), []
    manager.register(lambda: told.append("a"))
    manager.start_cancel()
    manager.start_cancel()
    assert told == ["a"]
    assert manager.is_cancelled


def test_who_has_gone_is_not_told():
    manager, told = CancellationManager(), []
    token = manager.register(lambda: told.append("a"))
    assert manager.deregister(token)
    assert not manager.deregister(token)
    manager.start_cancel()
    assert told == []


def test_who_comes_too_late_gets_no_token():
    manager = CancellationManager()
    manager.start_cancel()
    assert manager.register(lambda: None) is None
    assert not manager.deregister(None)


def test_one_callback_that_fails_does_not_spare_the_others(caplog):
    manager, told = CancellationManager(), []
    manager.register(lambda: 1 / 0)
    manager.register(lambda: told.append("b"))
    manager.start_cancel()
    assert told == ["b"]
    assert "a cancellation callback failed" in caplog.text


def test_a_callback_may_use_the_manager():
    manager, tokens = CancellationManager(), []
    manager.register(lambda: tokens.append(manager.register(lambda: None)))
    manager.start_cancel()
    assert tokens == [None]
