"""One socket of a channel: frames in, frames out.

A frame is a header of 24 bytes and a body. A sender puts its frame into the lane's queue and writes from it as long as
the socket accepts bytes without waiting. When the socket is full, a thread of the pool writes the rest. Messages that
are ready at the same time thus leave in one sendmsg, and only that pool thread ever waits for a slow reader. The
reading thread never waits to write, so two peers cannot block each other. The queue holds references to the arrays'
memory, not copies.

The process's `Reactor` says when something has come, and the thread that reads a frame also handles it. A thread of
the pool reads a large body and owns the lane meanwhile; no other thread waits for it.

Bounds: a queue of `WAITING_FRAMES_MAX`, a body of `limits.MESSAGE_BYTES`, `STALL_S_MAX` without a byte taken by the
peer. A peer that exceeds a limit is disconnected.
"""

from __future__ import annotations

import collections
import contextlib
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dtf.channel import reactor, receive_buffers
from dtf.run.lib import rate_limited_log
from dtf.run.threads import growing_pool, reader_thread
from dtf.wire import limits

WAITING_FRAMES_MAX = 100_000
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
"""A host that does not answer for 35 s is gone; the system answers for a process that is stopped."""
STALL_S_MAX = 120

REQUEST, RESPONSE, ERROR, CANCEL, PING, PONG, WELCOME = range(1, 8)
IN_MEMORY = 0x80
"""Added to the kind of a frame whose body is in shared memory; the frame holds its place."""
NO_REPLY = 1
"""Flag of a REQUEST that wants no answer."""
DERIVED = 1
"""Flag of an ERROR that only follows from another."""

Buffer = bytes | bytearray | memoryview
OnFrame = Callable[["Lane", int, int, int, int, Any], None]
"""on_frame(lane, kind, flags, number, call id, body): bytes, or a memoryview of a large body's own buffer."""

_HEADER = struct.Struct("<BBHIQQ")
_MARK = 0x31667464
_SCRATCH_BYTES = 1 << 16
_BUFFERS_AT_ONCE_MAX = 512
_UNIX_BUFFER_BYTES = 1 << 20
_LOST = "the connection was lost"
_NO_WAIT = int(socket.MSG_DONTWAIT)
_WRITE = int(getattr(socket, "MSG_NOSIGNAL", 0))
_TRY_TO_WRITE = _WRITE | _NO_WAIT


class Lane:
    """A connected socket, after the greeting. The writing thread holds `_writing`; `_queue` is thread-safe. The state
    of reading belongs to the reading thread, which has this lane in `_reader.lane`.
    """

    def __init__(
        self,
        sock: Any,
        on_frame: OnFrame,
        on_lost: Callable[[str], None],
        on_end: Callable[[], None] = lambda: None,
        holds: bool = False,
    ) -> None:
        """A lane that is not read yet: see `begin`.

        Args:
          on_frame: called for each frame, in the reading thread; if that may take long, it calls
            `reader_thread.yield_reader` before.
          on_lost: called once with the reason when the connection is over, from any thread.
          on_end: called once when nothing more will be read.
          holds: frames that `on_frame` sends from the reading thread leave together, after the last frame that is
            already received. Only for an `on_frame` that never runs a kernel or other long work.
        """
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", STALL_S_MAX, 0))
        if sock.family == socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNIX_BUFFER_BYTES)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE.items():
                if hasattr(socket, option):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._socket = sock
        # Closes a connection whose owner has just dropped it, without a warning of the interpreter.
        self._close_socket = weakref.finalize(self, sock.close)
        self._close_socket.atexit = False
        self._has_more: Callable[[], int] | None = getattr(sock, "pending", None)
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._on_end = on_end
        self._holds = holds
        self._held: set[Lane] = set()
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._view = memoryview(self._scratch)
        self._start = self._end = 0
        self._large: _LargeFrame | None = None
        self._reactor: reactor.Reactor | None = None
        self._is_over = False
        self._queue: collections.deque[Sequence[Buffer]] = collections.deque()
        self._unsent: list[Buffer] = []
        self._writing = threading.Lock()
        self._closing = threading.Lock()
        self._is_closed = False

    def begin(self) -> None:
        """Has the lane read from now on."""
        self._reactor = reactor.shared()
        self._reactor.add(self)

    def send(
        self, kind: int, flags: int, number: int, call_id: int, body: Sequence[Buffer] = (), size: int = -1
    ) -> None:
        """Sends a frame, at once or soon; never waits. Does nothing on a lost lane: `on_lost` has reported it. `size`
        is the body's size, if the caller knows it.
        """
        if self._is_closed:
            return
        if size < 0:
            size = sum(map(len, body))
        frame = (_HEADER.pack(kind, flags, number, _MARK, call_id, size), *body)
        queue, held = self._queue, _reader.held
        if held is None and not queue and len(frame) <= _BUFFERS_AT_ONCE_MAX and self._writing.acquire(blocking=False):
            self._write_now(frame, _HEADER.size + size)
            return
        queue.append(frame)
        if len(queue) > WAITING_FRAMES_MAX:
            self.close(f"{WAITING_FRAMES_MAX} messages wait for it")
        elif held is not None:
            held.add(self)
        else:
            self._flush()

    def read(self) -> None:
        """Handles what has come, without waiting. Called by the thread that reads for the reactor."""
        _reader.lane = self
        try:
            reason = self._guarded(self._read_available)
            if reason:
                self._fail(reason)
        finally:
            if _reader.lane is self:
                _reader.lane = None
                if _reader.held is not None:
                    self._let_go()

    def leave(self) -> None:
        """Called in `on_frame`, before this thread does what takes long: another one reads on."""
        self._let_go()
        _reader.lane = None

    @property
    def has_frames(self) -> bool:
        """Whether something has been received that is to be handled yet, when this thread has left."""
        return self._end - self._start >= _HEADER.size or (self._has_more is not None and self._has_more() > 0)

    def fileno(self) -> int:
        """The socket's descriptor, to wait for."""
        descriptor: int = self._socket.fileno()
        return descriptor

    def close(self, reason: str) -> None:
        """Ends the connection; threads that read or write it notice. Harmless when repeated."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            on_lost = self._on_lost  # the reading thread forgets it as soon as it sees the end
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._queue.clear()
        on_lost(reason)

    def leave_to_parent(self) -> None:
        """In a forked process: closes this process's descriptor, so that the end of the parent ends the connection."""
        self._is_closed = True
        self._close_socket()

    def drain(self, timeout_s: float) -> None:
        """Waits until what was sent has been written, or the time is over."""
        if self._writing.acquire(timeout=timeout_s):
            self._writing.release()
            self._flush()

    # -- reading

    def _guarded(self, read: Callable[[], str]) -> str:
        """Why the connection ended, or "": the result of `read()`, or its error."""
        try:
            return read()
        except BlockingIOError:
            return ""
        except OSError:
            return _LOST
        except MemoryError:
            return "out of memory for its message"
        except Exception as error:
            rate_limited_log.shared.warn(
                "failed messages", "a message of the channel failed: %s: %s (%s)", type(error).__name__, error,
                rate_limited_log.place_of(error),
            )  # fmt: skip
            return "a message failed"

    def _fail(self, reason: str) -> None:
        """Ends the connection; the reading thread closes the socket."""
        if _reader.lane is not self:
            self.close(reason)  # and the thread that reads meanwhile notices
            return
        self._is_over = True
        self._let_go()
        self.close(reason)
        if self._reactor is not None:
            self._reactor.release(self)
        with self._writing:
            self._unsent.clear()
            self._close_socket()
        self._on_end()
        # Lanes must not reference their owner: in a cycle, both would stay until the garbage collector runs.
        self._on_frame = self._on_lost = self._on_end = _nothing

    def _read_available(self) -> str:
        if self._end > self._start:  # left by a thread that was called to other work
            reason = self._handle_frames()
            if reason or _reader.lane is not self:
                return reason
        while True:
            reason = self._read_on() if self._large is None else self._read_large()
            if reason or self._has_more is None or _reader.lane is not self or not self._has_more():
                return reason

    def _read_on(self) -> str:
        if self._start == self._end:
            # A thread that left after its frame has not done it. A full buffer would read as the end of the connection.
            self._start = self._end = 0
        received = self._socket.recv_into(self._view[self._end :], 0, _NO_WAIT)
        if not received:
            return _LOST
        self._end += received
        return self._handle_frames()

    def _handle_frames(self) -> str:
        """Handles the frames that have come, until this thread leaves. Why the connection is over, or ""."""
        scratch, view, on_frame = self._scratch, self._view, self._on_frame
        while self._end - self._start >= 24:
            kind, flags, number, mark, call_id, length = _HEADER.unpack_from(scratch, self._start)
            if mark != _MARK:
                return "it sent an invalid message"
            begin = self._start + 24
            if begin + length > self._end:
                if 24 + length <= _SCRATCH_BYTES // 2:
                    break
                if not limits.MESSAGE_BYTES.allows(length):
                    return f"a message of {length} bytes is more than {limits.MESSAGE_BYTES.variable} allows"
                self._let_go()
                self._large = _LargeFrame((kind, flags, number, call_id), view[begin : self._end], length)
                self._start = self._end = 0
                return self._read_large()
            body = bytes(view[begin : begin + length])
            self._start = begin + length
            if self._holds and self._start < self._end:
                # While further frames are received here, this thread's own frames wait and leave in one piece.
                _reader.held = self._held
            on_frame(self, kind, flags, number, call_id, body)
            if _reader.lane is not self:
                return ""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start:
            waiting = self._end - self._start
            scratch[:waiting] = scratch[self._start : self._end]
            self._start, self._end = 0, waiting
        return ""

    def _read_large(self) -> str:
        """Goes on with a large frame, and handles it when it is complete. Its body is read by another thread, unless it
        is not so large after all.
        """
        large = self._large
        assert large is not None
        flags = _NO_WAIT
        if len(large.body) > _SCRATCH_BYTES:
            if not _reader.is_apart:
                assert self._reactor is not None
                self._reactor.release(self)
                _reader.lane = None
                growing_pool.submit(self._read_apart)
                return ""
            flags = int(socket.MSG_WAITALL)
        while large.filled < len(large.body):
            received = self._socket.recv_into(large.body[large.filled :], 0, flags)
            if not received:
                return _LOST
            large.filled += received
        self._large = None
        self._on_frame(self, *large.head, large.body)
        return ""

    def _read_apart(self) -> None:
        """Reads a large frame, and frames that follow at once, in a thread of the pool."""
        _reader.lane, _reader.is_apart = self, True
        reader_thread.lend(self._put_back)
        try:
            reason = self._guarded(self._read_while_there)
            if reason:
                self._fail(reason)
        finally:
            if _reader.lane is self and not self._is_over:
                self._put_back()
            _reader.lane, _reader.is_apart = None, False
            reader_thread.take_back()

    def _read_while_there(self) -> str:
        """Reads until nothing has come yet (BlockingIOError)."""
        reason = ""
        while not reason and _reader.lane is self:
            reason = self._read_on() if self._large is None else self._read_large()
        return reason

    def _put_back(self) -> None:
        self.leave()
        assert self._reactor is not None
        self._reactor.put_back(self)

    def _let_go(self) -> None:
        """Sends what this reading thread has held back."""
        _reader.held = None
        while self._held:
            self._held.pop()._flush()

    # -- writing

    def _write_now(self, frame: tuple[Buffer, ...], size: int) -> None:
        """Writes a frame without queueing, the usual case. The lock is held on entry and released."""
        try:
            sent = self._socket.sendmsg(frame, (), _TRY_TO_WRITE)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._writing.release()
            self.close(_LOST)
            return
        if sent < size:
            self._unsent.extend(frame)
            self._forget_sent(sent)
            growing_pool.submit(self._write_rest)  # which now holds the lock
            return
        self._writing.release()
        if self._queue:
            self._flush()

    def _flush(self) -> None:
        # A thread that finds the lock taken may return: its holder checks the queue again after releasing it.
        while self._queue and self._writing.acquire(blocking=False):
            try:
                is_done = self._write(_TRY_TO_WRITE)
            except OSError:
                self._writing.release()
                self.close(_LOST)
                return
            if not is_done:
                growing_pool.submit(self._write_rest)  # which now holds the lock
                return
            self._writing.release()

    def _write_rest(self) -> None:
        try:
            is_done = self._write(_WRITE)
        except OSError:
            is_done = None
        self._writing.release()
        if is_done:
            self._flush()
        elif is_done is None:
            self.close(_LOST)
        else:
            self.close(f"it has taken nothing for {STALL_S_MAX} s")

    def _write(self, flags: int) -> bool:
        """Writes until nothing is left. Returns False when the socket is full. The lock is held."""
        unsent, queue = self._unsent, self._queue
        while True:
            while len(unsent) < _BUFFERS_AT_ONCE_MAX:
                try:
                    unsent.extend(queue.popleft())
                except IndexError:
                    break
            if not unsent:
                return True
            try:
                sent = self._socket.sendmsg(unsent[:_BUFFERS_AT_ONCE_MAX], (), flags)
            except BlockingIOError:
                return False
            self._forget_sent(sent)

    def _forget_sent(self, sent: int) -> None:
        """Removes so many written bytes from the queue."""
        unsent, done = self._unsent, 0
        for buffer in unsent:
            size = len(buffer)
            if sent < size:
                if sent:
                    unsent[done] = memoryview(buffer)[sent:]
                break
            sent -= size
            done += 1
        del unsent[:done]


class _LargeFrame:
    """A frame whose body is received into a buffer of its own."""

    __slots__ = ("body", "filled", "head")

    def __init__(self, head: tuple[int, int, int, int], first: memoryview, length: int) -> None:
        self.head = head
        self.body = receive_buffers.take(length)
        self.filled = len(first)
        self.body[: self.filled] = first


def _nothing(*_: Any) -> None:
    """Swallows errors of a lane after its end."""


class _Reader(threading.local):
    lane: Lane | None = None
    held: set[Lane] | None = None
    is_apart = False


_reader = _Reader()
