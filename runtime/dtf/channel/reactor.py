"""Reactor: one thread reads all connections of the process; a thread that only waits may read instead.

The thread that reads a message also handles it: waking another one costs more than most messages. Before that takes
long (`reader_thread.yield_reader`) it hands the reading over. There is always one thread of the reactor's own on
duty. A thread that waits for the end of a step or a call can itself read the message that ends it. It takes the turn
if it can. The thread on duty then sleeps, checks every few milliseconds whether any thread reads, and resumes when
none does. A program that runs step after step thus wakes no second thread of its own process.

Owns which thread reads. Does not know frames: a `Readable` is called when its socket has data, and reads it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import select
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from dtf.channel.spin_wait import SpinWait
from dtf.run.lib import numpy_warnings
from dtf.run.threads import reader_thread
from dtf.run.threads.reader_thread import Waiting
from dtf.wire import forks

__all__ = ["Reactor", "is_possible", "shared"]

_ASIDE_S = 0.002
"""How long reading may pause before the thread on duty resumes."""
_FAR_ASIDE_S = 0.25
"""How often it looks while a thread that waits has been reading for long; that one calls it when it stops."""
_SPARE_IDLE_S = 30.0


class Readable(Protocol):
    """A connection that is read: a `lane.Lane`."""

    @property
    def has_frames(self) -> bool:
        """Whether frames that came are not handled yet."""

    def fileno(self) -> int:
        """The number of its socket."""

    def read(self) -> None:
        """Reads and handles all that has come."""

    def leave(self) -> None:
        """Leaves the frames that came, and are not handled yet, to the thread that reads next."""

    def leave_to_parent(self) -> None:
        """In a forked process: the connection is the parent's."""


class Reactor:
    """Reads lanes. The holder of `_turn` reads; `_lock` guards `_has_spare` and `_has_begun`; all other fields change
    by single operations.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._look = functools.partial(self._epoll.poll, 0)
        self._awaken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._awaken, select.EPOLLIN)
        self._lanes: dict[int, weakref.ref[Readable]] = {}
        self._unfinished: deque[Readable] = deque()
        self._spin_wait = SpinWait()
        self._turn = threading.Lock()
        self._lane: Readable | None = None
        self._lock = threading.Lock()
        self._has_begun = False
        self._has_spare = False
        self._is_deserted = False
        self._called = threading.Lock()
        self._called.acquire()
        self._spare_called = threading.Lock()
        self._spare_called.acquire()
        self._reading_for: Waiting | None = None
        self._read_since = 0.0
        self._waits = 0
        self._blocked: set[Waiting] = set()
        self._gives_way = False

    def add(self, lane: Readable) -> None:
        """Reads the lane from now on, starting with bytes received with the greeting. The reactor does not keep it
        alive."""
        self._lanes[lane.fileno()] = weakref.ref(lane)
        self._announce_unfinished(lane)
        self._epoll.register(lane.fileno(), select.EPOLLIN)
        with self._lock:
            has_begun, self._has_begun = self._has_begun, True
        if not has_begun:
            self._start_thread()

    def release(self, lane: Readable) -> None:
        """Stops reading the lane: it has ended, or another thread reads it for now. Before its socket closes."""
        with contextlib.suppress(OSError, ValueError):
            self._epoll.unregister(lane.fileno())

    def put_back(self, lane: Readable) -> None:
        """Reads a released lane again, starting with its buffered bytes."""
        self._announce_unfinished(lane)
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            self._epoll.register(lane.fileno(), select.EPOLLIN)

    def wait(self, waiting: Waiting, timeout_s: float) -> bool:
        """Waits until it has ended; reads meanwhile if no other thread does. See `reader_thread.wait`."""
        deadline = None if timeout_s < 0 else time.monotonic() + timeout_s
        self._waits += 1
        while not waiting.has_ended:
            left_s = -1.0 if deadline is None else deadline - time.monotonic()
            if deadline is not None and left_s <= 0:
                return waiting.wait_ended(0)
            if not self._has_begun or _mine.reactor is self or not self._turn.acquire(blocking=False):
                self._gives_way = True
                self._blocked.add(waiting)
                try:
                    return waiting.wait_ended(left_s)
                finally:
                    self._blocked.discard(waiting)
            self._read_until_ended(waiting, deadline)
        return waiting.wait_ended(-1)

    def tell_ended(self, waiting: Waiting) -> None:
        """Wakes the waiter of something that has ended; see `reader_thread.tell_ended`."""
        if self._reading_for is waiting and _mine.reactor is not self:
            os.eventfd_write(self._awaken, 1)

    def glance(self) -> None:
        """Handles what has come already, unless another thread reads."""
        if _mine.reactor is not self and self._turn.acquire(blocking=False):
            self._begin_turn(self._hand_over_aside, False)
            try:
                self._handle(self._epoll.poll(0))
            finally:
                if _mine.reactor is self:
                    self._end_turn()

    # -- threads that wait

    def _read_until_ended(self, waiting: Waiting, deadline: float | None) -> None:
        """Reads, with the turn, until it has ended, the time is over, or the turn has been handed over."""
        began = self._read_since = time.monotonic()
        self._reading_for = waiting
        self._begin_turn(self._hand_over_aside, False)
        try:
            while not waiting.has_ended:
                left_s = -1.0 if deadline is None else deadline - time.monotonic()
                if deadline is not None and left_s <= 0:
                    return
                self._read(left_s)
                if _mine.reactor is not self:
                    return
        finally:
            if _mine.reactor is self:
                self._end_turn()
                self._call_if_needed(began)

    def _hand_over_aside(self) -> None:
        """Gives up reading before long work: the thread on duty takes over within milliseconds."""
        began = self._read_since
        self._leave_lane()
        self._end_turn()
        self._call_if_needed(began)

    def _call_if_needed(self, began: float) -> None:
        """Wakes the thread on duty if other threads wait for unread messages, or if it checks too rarely."""
        self._waits += 1
        if self._blocked or time.monotonic() > began + _ASIDE_S:
            with contextlib.suppress(RuntimeError):  # it has been called already
                self._called.release()

    # -- the thread on duty

    def _start_thread(self) -> None:
        threading.Thread(target=self._serve, name="dtf-channel", daemon=True).start()

    def _serve(self) -> None:
        numpy_warnings.turn_off()
        while True:
            self._on_duty()
            if self._is_deserted:
                self._is_deserted = False
                continue
            with self._lock:
                if self._has_spare:
                    return
                self._has_spare = True
            if not self._spare_called.acquire(timeout=_SPARE_IDLE_S):
                with self._lock:
                    if self._has_spare:
                        self._has_spare = False
                        return
                self._spare_called.acquire()  # it has just been called

    def _on_duty(self) -> None:
        """Reads until another thread takes over."""
        while True:
            if self._gives_way and not self._is_needed():
                self._step_aside()
            if not self._turn.acquire(blocking=False):
                self._step_aside()
                continue
            self._begin_turn(self._hand_over_duty, True)
            while True:
                self._read(-1.0)
                if _mine.reactor is not self:
                    return
                if self._gives_way:
                    break
            self._end_turn()

    def _step_aside(self) -> None:
        """Lets threads that wait read, until none of them has done so for a moment."""
        while True:
            waits = self._waits
            since = self._read_since if self._reading_for is not None else 0.0
            is_far = since and time.monotonic() > since + 2 * _ASIDE_S
            is_called = self._called.acquire(timeout=_FAR_ASIDE_S if is_far else _ASIDE_S)
            if is_called and self._is_needed():
                break
            if waits == self._waits and not self._turn.locked():
                break
        self._gives_way = False

    def _is_needed(self) -> bool:
        """Whether a thread waits that found another one reading."""
        return any(not waiting.has_ended for waiting in list(self._blocked))

    def _hand_over_duty(self) -> None:
        """Before what takes long: another thread is on duty from now on."""
        self._leave_lane()
        self._end_turn()
        with self._lock:
            has_spare, self._has_spare = self._has_spare, False
        if has_spare:
            self._spare_called.release()
            return
        try:
            self._start_thread()
        except RuntimeError as error:
            _logger.warning("no thread can read until a long operation ends: %s", error)
            self._is_deserted = True

    # -- reading

    def _begin_turn(self, hand_over: Callable[[], None], is_spare: bool) -> None:
        _mine.reactor = self
        reader_thread.lend(hand_over, is_spare)

    def _end_turn(self) -> None:
        _mine.reactor = None
        self._reading_for = None
        reader_thread.take_back()
        self._turn.release()

    def _leave_lane(self) -> None:
        """Leaves the current lane's unhandled bytes to the next reader."""
        lane = self._lane
        if lane is not None:
            lane.leave()
            self._keep_unfinished(lane)

    def _announce_unfinished(self, lane: Readable) -> None:
        """Schedules a read of a lane's buffered bytes, which its socket does not report. The lane is not
        registered."""
        if self._keep_unfinished(lane):
            os.eventfd_write(self._awaken, 1)

    def _keep_unfinished(self, lane: Readable) -> bool:
        """Whether something is left in the lane, which then is read before any other."""
        is_unfinished = lane.has_frames
        if is_unfinished:
            self._unfinished.append(lane)
        return is_unfinished

    def _read(self, timeout_s: float) -> None:
        """Waits for something to come, and handles it, until that is done or the turn has been handed over."""
        if self._unfinished:
            while self._unfinished and self._read_lane(self._unfinished.popleft()):
                pass
            return  # perhaps it has ended what this thread waits for
        self._handle(self._spin_wait.look(self._look) or self._epoll.poll(timeout_s))

    def _handle(self, ready: list[tuple[int, int]]) -> None:
        for descriptor, _ in ready:
            if descriptor == self._awaken:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._awaken)
                continue
            known = self._lanes.get(descriptor)
            lane = known() if known is not None else None
            if lane is not None and not self._read_lane(lane):
                return

    def _read_lane(self, lane: Readable) -> bool:
        """False when the turn has been handed over."""
        self._lane = lane
        try:
            lane.read()
        except BaseException:  # Ctrl-C in the main thread, which read while it waited
            if _mine.reactor is self:
                self._keep_unfinished(lane)
            raise
        if _mine.reactor is not self:
            return False
        self._lane = None
        return True


def is_possible() -> bool:
    """Whether this system has what a reactor needs: epoll and eventfd, which are Linux's."""
    return hasattr(select, "epoll") and hasattr(os, "eventfd")


def shared() -> Reactor:
    """The reactor of this process."""
    global _shared
    if _shared is None:
        with _making:
            if _shared is None:
                _shared = reader_thread.reader = Reactor()
    return _shared


def _forget() -> None:
    """In a forked process: the connections belong to the parent."""
    global _shared, _making
    for reference in () if _shared is None else list(_shared._lanes.values()):
        lane = reference()
        if lane is not None:
            lane.leave_to_parent()
    _shared = reader_thread.reader = None
    _making = threading.Lock()
    _mine.reactor = None
    reader_thread.take_back()


class _Mine(threading.local):
    reactor: Reactor | None = None


_mine = _Mine()
_shared: Reactor | None = None
_making = threading.Lock()
_logger = logging.getLogger("dtf")
forks.in_child(_forget)
