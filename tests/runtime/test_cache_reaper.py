"""Who keeps memory for later is asked to forget it, and is not itself kept for that."""

from __future__ import annotations

import gc
import weakref

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
