"""Large bodies between two processes of one host: written once into shared memory, read in place.

Each end of a connection makes a `Region` that it alone fills, and hands its descriptor to the other end over a Unix
socket (`SharedMemory`). A body is copied into a free place of the region, and only the place is sent as a frame. The
receiver views it there and marks the place as free when the last view is gone. A body thus costs one copy; a socket
costs two and the pages between them. No thread waits: when no place is free, the body goes through the socket.

Owns the layout of a region: `PLACES_MAX` bytes of marks (1: taken, 0: free again), then the places. A region is sparse;
its pages come with their first use, and go back after `cache_reaper.IDLE_S_MAX` without use.

The other end can write to what is read here, also after it was checked: numpy looks at the indices of a gather first,
and uses them then. So only processes of one user share memory, who could do each other any harm in other ways.
"""

from __future__ import annotations

import bisect
import fcntl
import functools
import mmap
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.channel import cache_reaper
from dtf.channel.endpoint import is_same_user
from dtf.wire import limits

__all__ = ["BODY_BYTES_MAX", "REGION_BYTES", "Region", "SharedMemory", "Window", "find", "is_possible"]

REGION_BYTES = 1 << 29
BODY_BYTES_MAX = 1 << 27
"""Larger ones go by socket, in half the speed, and need no pages of the region."""
PLACES_MAX = 4096

_COPIED_BY_VIEW_BYTES_MAX = 1 << 16
_ALIGNMENT = 64
_PLACE = struct.Struct("<IIQQ")  # number of the mark, 0, begin, bytes
_SEALS = getattr(fcntl, "F_SEAL_SHRINK", 0) | getattr(fcntl, "F_SEAL_GROW", 0)
_OFFER, _READY = b"M", b"R"

Buffer = Any


class Region:
    """Memory that this process fills. The lock guards the places."""

    def __init__(self) -> None:
        """Raises OSError if the system cannot provide the memory."""
        self.descriptor = os.memfd_create("dtf", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, REGION_BYTES)
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
            self._memory = mmap.mmap(self.descriptor, REGION_BYTES)
        finally:
            self._close = weakref.finalize(self, os.close, self.descriptor)
            self._close.atexit = False
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._view = self._bytes.data
        self._lock = threading.Lock()
        self._begins: list[int] = []  # of the places that are taken, in order
        self._places: dict[int, tuple[int, int]] = {}  # begin -> its end, and the number of its mark
        self._marks = list(range(PLACES_MAX))
        self._used_at_s = 0.0
        self._is_watched = False

    def hand_over(self, sock: socket.socket) -> None:
        """Sends the descriptor, which this process no longer needs."""
        socket.send_fds(sock, [_OFFER], [self.descriptor])
        self._close()

    def place(self, body: Sequence[Buffer], size: int) -> bytes | None:
        """Copies the pieces of a body of `size` bytes into a free place; returns the reference for the other end.
        None: no place is free.
        """
        if size > BODY_BYTES_MAX:
            return None
        with self._lock:
            begin = self._take(size)
            if begin is None:
                return None
            mark = self._places[begin][1]
            self._used_at_s = time.monotonic()
            is_first, self._is_watched = not self._is_watched, True
        if is_first:
            cache_reaper.watch(self.forget_idle)
        at = begin
        for piece in body:
            count = len(piece)
            if count < _COPIED_BY_VIEW_BYTES_MAX:  # faster while no other thread waits for the interpreter
                self._view[at : at + count] = piece
            else:
                self._bytes[at : at + count] = np.frombuffer(piece, np.uint8)
            at += count
        return _PLACE.pack(mark, 0, begin, size)

    def forget_idle(self, now_s: float) -> bool:
        """Gives the pages back to the system if the region has been idle for a while; returns whether it has pages."""
        with self._lock:
            if now_s - self._used_at_s < cache_reaper.IDLE_S_MAX:
                return True
            self._reap()
            begin = PLACES_MAX
            for taken in [*self._begins, REGION_BYTES]:
                self._give_back(begin, taken)
                begin = self._places[taken][0] if taken < REGION_BYTES else taken
            self._is_watched = bool(self._begins)
            return self._is_watched

    def _take(self, size: int) -> int | None:
        """The first gap that is large enough, so that the same pages are used repeatedly."""
        self._reap()
        if not self._marks:
            return None
        room = size + -size % _ALIGNMENT
        begin = PLACES_MAX
        for taken in [*self._begins, REGION_BYTES]:
            if taken - begin >= room:
                mark = self._marks.pop()
                self._bytes[mark] = 1
                bisect.insort(self._begins, begin)
                self._places[begin] = begin + room, mark
                return begin
            if taken < REGION_BYTES:
                begin = self._places[taken][0]
        return None

    def _reap(self) -> None:
        """Takes back the places that the other end has marked as free."""
        for begin in [begin for begin in self._begins if not self._bytes[self._places[begin][1]]]:
            self._begins.remove(begin)
            self._marks.append(self._places.pop(begin)[1])

    def _give_back(self, begin: int, end: int) -> None:
        page = mmap.PAGESIZE
        first, last = begin + -begin % page, end - end % page
        if last > first:
            self._memory.madvise(mmap.MADV_REMOVE, first, last - first)


class Window:
    """The other end's region, mapped into this process."""

    def __init__(self, descriptor: int) -> None:
        """Raises OSError unless it was made like `Region`'s: a file that could shrink would kill its reader."""
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        if os.fstat(descriptor).st_size != REGION_BYTES or seals & _SEALS != _SEALS:
            raise OSError("the file is not a shared-memory region")
        self._memory = mmap.mmap(descriptor, REGION_BYTES)
        self._marks = memoryview(self._memory)[:PLACES_MAX]
        self._views: dict[int, Any] = {}

    def find(self, place: bytes) -> memoryview:
        """The body at a place, which is freed when the last view of it is gone. ValueError: not available."""
        if len(place) != _PLACE.size:
            raise ValueError("the message does not name a place")
        mark, _, begin, size = _PLACE.unpack(place)
        if mark >= PLACES_MAX or begin < PLACES_MAX or begin + size > REGION_BYTES or mark in self._views:
            raise ValueError("the named place does not exist")
        if size > BODY_BYTES_MAX or not limits.MESSAGE_BYTES.allows(size):
            raise ValueError(f"a message of {size} bytes is more than {limits.MESSAGE_BYTES.variable} allows")
        body = np.frombuffer(self._memory, np.uint8, size, begin)
        # Every view of a part of it holds a reference to this array; nothing else does.
        self._views[mark] = weakref.ref(body, functools.partial(_release, self._marks, self._views, mark))
        return body.data


def _release(marks: memoryview, views: dict[int, Any], mark: int, _: Any) -> None:
    del views[mark]
    marks[mark] = 0


class SharedMemory:
    """Both directions of a connection. The client offers, the server accepts, each with a socket for this alone::

        memory = SharedMemory.offered(sock)         memory = SharedMemory.accepted(sock)
        ... keep it, so that frames find it ...     ... keep it ...
        memory.begin(sock)                          memory.answer(sock)

    The receiver of a region stores it before it answers, so a place is never named to a peer that cannot find it.
    """

    def __init__(self, region: Region, window: Window) -> None:
        self._region = region
        self._may_place = False
        self.find = window.find

    @classmethod
    def offered(cls, sock: socket.socket) -> SharedMemory:
        """Hands the client's region over and takes the server's. Raises OSError if not available."""
        region = Region()
        region.hand_over(sock)
        return cls(region, _receive(sock))

    def begin(self, sock: socket.socket) -> None:
        """Uses it from now on, and lets the server do so."""
        sock.sendall(_READY)
        self._may_place = True

    @classmethod
    def accepted(cls, sock: socket.socket) -> SharedMemory:
        """Takes the client's region. Raises OSError if not available."""
        return cls(Region(), _receive(sock))

    def answer(self, sock: socket.socket) -> None:
        """Sends the server's region to the client, and uses it when the client has opened it."""
        self._region.hand_over(sock)
        self._may_place = sock.recv(1) == _READY

    def place(self, body: Sequence[Buffer], size: int) -> bytes | None:
        """See `Region.place`."""
        return self._region.place(body, size) if self._may_place else None


def is_possible(sock: Any) -> bool:
    """Whether the ends of a connected socket can share memory, and may: they belong to one user."""
    return hasattr(os, "memfd_create") and sock.family == socket.AF_UNIX and is_same_user(sock)


def find(memory: SharedMemory | None, place: bytes) -> memoryview:
    """The body at a place. Raises ValueError if it is invalid, as from a faulty peer."""
    if memory is None:
        raise ValueError("it sent an invalid message")
    return memory.find(place)


def _receive(sock: socket.socket) -> Window:
    word, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
    try:
        if word != _OFFER or len(descriptors) != 1:
            raise OSError("it does not share memory")
        return Window(descriptors[0])
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
