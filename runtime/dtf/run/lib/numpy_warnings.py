"""numpy's warnings of floating-point errors: TensorFlow has none, so a step turns them off.

In a thread of dtf's own they are off for good, which costs its steps nothing; in a thread of the user's, for a moment.
"""

from __future__ import annotations

import threading

import numpy as np

__all__ = ["are_off", "turn_off"]


def turn_off() -> None:
    """Called at the start of a thread that is dtf's own."""
    np.seterr(all="ignore")
    _thread.are_off = True


def are_off() -> bool:
    """Whether this thread is one where they have been turned off."""
    return _thread.are_off


class _Thread(threading.local):
    are_off = False


_thread = _Thread()
