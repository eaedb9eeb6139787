"""Who keeps memory for later is asked now and then to forget what nobody has needed for a while.

Owns the one thread that asks; it ends when nobody keeps anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dtf.run.threads import growing_pool
from dtf.wire import forks

__all__ = ["IDLE_S_MAX", "watch"]

IDLE_S_MAX = 10.0
"""What has not been needed for so long is forgotten."""

Forget = Callable[[float], bool]
"""forget(time of the monotonic clock): forgets what is idle by then, and says whether some is still kept."""


def watch(forget: Forget) -> None:
    """Has `forget` called until it says that nothing is kept any more."""
    _watched[forget] = None
    if len(_watched) == 1:
        growing_pool.submit(_look_round)


def _look_round() -> None:
    while _watched:
        time.sleep(IDLE_S_MAX / 2)
        now_s = time.monotonic()
        for forget in list(_watched):
            if not forget(now_s):
                _watched.pop(forget, None)


_watched: dict[Forget, None] = {}
forks.in_child(_watched.clear)  # the thread is the parent's
