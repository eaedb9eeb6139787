"""Who keeps memory for later is asked now and then to forget what nobody has needed for a while.

Owns the one thread that asks; it ends when nobody keeps anything.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable

from dtf.run.threads import growing_pool
from dtf.wire import forks

__all__ = ["IDLE_S_MAX", "watch"]

IDLE_S_MAX = 10.0
"""What has not been needed for so long is forgotten."""

Forget = Callable[[float], bool]
"""forget(time of the monotonic clock): forgets what is idle by then, and says whether some is still kept."""


def watch(forget: Forget) -> None:
    """Calls `forget`, a bound method, now and then until it returns False or its object is gone.

    The object is not kept for that: a region of a lost connection, whose peer frees no place any more, would stay.
    """
    _watched[weakref.WeakMethod(forget)] = None
    if len(_watched) == 1:
        growing_pool.submit(_look_round)


def _look_round() -> None:
    while _watched:
        time.sleep(IDLE_S_MAX / 2)
        now_s = time.monotonic()
        for each in list(_watched):
            forget = each()
            if forget is None or not forget(now_s):
                _watched.pop(each, None)
            del forget  # or it would be kept until the next look


_watched: dict[weakref.WeakMethod[Forget], None] = {}
forks.in_child(_watched.clear)  # the thread is the parent's
