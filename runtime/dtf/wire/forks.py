"""Forks: what a forked process does with what it inherits from the runtime of its parent.

A fork copies memory, but of the threads only the one that forks. So in the child the pools, readers and locks of the
parent are of no use: each module that has some registers a function here that replaces them. One hook calls them all,
in the order of their registration, so a module's own comes after those of the modules that it imports.

    def _begin_anew() -> None:
        global _lock
        _lock = threading.Lock()

    forks.in_child(_begin_anew)

A lock of one object, which another thread may hold at the fork, is renewed by name:

    forks.renew_in_child(self, "_lock")

What belongs to the parent for good, such as a session at a server, remembers the `generation` in which it was made.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["generation", "in_child", "in_parent_before", "renew_in_child", "was_quiet"]

_registered: list[Callable[[], None]] = []
_looks: list[Callable[[], bool]] = []
_owners: dict[int, tuple[weakref.ref[object], tuple[str, ...]]] = {}
_RLOCK = type(threading.RLock())
_generation = 0
_was_quiet = True


def in_child(begin_anew: Callable[[], None]) -> None:
    """Has a function called in each process that is forked from this one. It must not wait for anything."""
    _registered.append(begin_anew)


def renew_in_child(owner: object, *attributes: str) -> None:
    """Has locks and events of `owner` replaced in each process that is forked from this one. It is not kept alive.

    What another thread was changing under such a lock may be half done in the child; it is never waited for.
    """
    key = id(owner)

    def forget(reference: weakref.ref[object]) -> None:
        if (found := _owners.get(key)) is not None and found[0] is reference:
            del _owners[key]

    _owners[key] = weakref.ref(owner, forget), attributes


def in_parent_before(is_quiet: Callable[[], bool]) -> None:
    """Has a function called just before each fork that says whether threads of its module are idle."""
    _looks.append(is_quiet)


def generation() -> int:
    """How many forks lie between this process and the one that has imported the runtime."""
    return _generation


def was_quiet() -> bool:
    """Whether, when this process was forked, no other thread was inside the runtime, as far as can be known."""
    return _was_quiet


def _before() -> None:
    global _now_quiet
    known = sum(thread.name.startswith(_IDLE_THREADS) for thread in threading.enumerate())
    _now_quiet = threading.active_count() - known <= 1 and all(is_quiet() for is_quiet in _looks)


def _renew(owner: object, attribute: str) -> None:
    old = getattr(owner, attribute)
    if isinstance(old, threading.Event):
        new: Any = threading.Event()
        if old.is_set():
            new.set()
    else:
        new = threading.RLock() if isinstance(old, _RLOCK) else threading.Lock()
    setattr(owner, attribute, new)


def _in_child() -> None:
    global _generation, _was_quiet
    _generation += 1
    _was_quiet = _now_quiet
    for reference, attributes in list(_owners.values()):
        owner = reference()
        for attribute in attributes if owner is not None else ():
            _renew(owner, attribute)
    for begin_anew in _registered:
        try:
            begin_anew()
        except Exception:
            logging.getLogger("dtf").exception("after a fork")


_IDLE_THREADS = ("dtf-compute-", "dtf-pool", "dtf-watch")
"""Threads that hold nothing while they are idle, which those who own them tell."""

_now_quiet = True
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
