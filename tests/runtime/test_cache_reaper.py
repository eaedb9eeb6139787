"""Who keeps memory for later is asked to forget it, and is not itself kept for that."""

from __future__ import annotations

import gc
import weakref

import pytest

from dtf.channel import cache_reaper


class Keeper:
    def __init__(self) -> None:
        self.asked = 0

    def forget(self, now_s: float) -> bool:
        self.asked += 1
        return True


def test_what_is_watched_is_not_kept_alive(monkeypatch):
    submitted = []
    monkeypatch.setattr(cache_reaper, "_watched", {})
    monkeypatch.setattr(cache_reaper, "_is_looking", False)
    monkeypatch.setattr(cache_reaper.growing_pool, "submit", submitted.append)
    monkeypatch.setattr(cache_reaper.time, "sleep", lambda seconds: None)
    keeper = Keeper()
    cache_reaper.watch(keeper.forget)
    assert len(submitted) == 1
    gone = weakref.ref(keeper)
    del keeper
    gc.collect()
    assert gone() is None
    submitted[0]()  # ends, since nobody is left
    assert cache_reaper._watched == {}


class Careless(Keeper):
    """It is given something to keep while it is asked, fails at first, or both."""

    def __init__(self, fails: bool, is_given_more: bool) -> None:
        super().__init__()
        self._fails, self._is_given_more = fails, is_given_more

    def forget(self, now_s: float) -> bool:
        self.asked += 1
        if self.asked == 1:
            if self._is_given_more:
                cache_reaper.watch(self.forget)
            if self._fails:
                raise RuntimeError("a bug")
        return False


@pytest.mark.parametrize(("fails", "is_given_more"), [(True, False), (False, True), (True, True)])
def test_what_fails_or_is_watched_again_meanwhile_is_asked_again(monkeypatch, fails, is_given_more):
    monkeypatch.setattr(cache_reaper, "_watched", {})
    monkeypatch.setattr(cache_reaper, "_is_looking", True)
    careless, other = Careless(fails, is_given_more), Keeper()
    for each in (careless, other):
        cache_reaper.watch(each.forget)
    for _ in range(3):
        cache_reaper.look(0.0)
    assert (careless.asked, other.asked) == (2, 3)
