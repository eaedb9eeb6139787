"""One socket of a channel: frames in, frames out.

A frame is a header of 24 bytes and a body. Whoever has something to send puts it into the lane's queue and writes what
is there as long as the socket takes it without waiting; when the socket is full, a thread of the pool writes the rest.
So several messages that are ready at the same time leave in one sendmsg, nobody but that one thread ever waits for a
slow reader, and the reading thread least of all: two peers cannot block each other. What waits is references to the
arrays' memory, not copies.

The thread that reads a frame also handles it: waking another one costs more than most messages. When that may take
long, it first hands the reading over to a second thread, and afterwards waits to be the next that takes over.

Bounds: a queue of `WAITING_FRAMES_MAX`, a body of `BODY_BYTES_MAX`, `STALL_S_MAX` without a byte taken by the peer.
Who exceeds one is cut off.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dtf.channel import receive_buffers
from dtf.channel.lookout import Lookout
from dtf.run import borrowed, growing_pool

WAITING_FRAMES_MAX = 100_000
BODY_BYTES_MAX = 1 << 36
STALL_S_MAX = 120

REQUEST, RESPONSE, ERROR, CANCEL, PING, PONG, WELCOME = range(1, 8)
IN_MEMORY = 0x80
"""Added to the kind of a frame whose body lies in shared memory; it names the place."""
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
_FOLLOWER_IDLE_S = 30.0
_NO_WAIT = int(socket.MSG_DONTWAIT)
_WRITE = int(getattr(socket, "MSG_NOSIGNAL", 0))
_TRY_TO_WRITE = _WRITE | _NO_WAIT


class Lane:
    """A connected socket, after the greeting. `_writing` is held by whoever writes; `_queue` is safe by itself."""

    def __init__(
        self,
        sock: Any,
        on_frame: OnFrame,
        on_lost: Callable[[str], None],
        on_end: Callable[[], None] = lambda: None,
        holds: bool = False,
    ) -> None:
        """A lane; call `read` from a thread of its own.

        Args:
          on_frame: called for each frame, in the reading thread; if it may take long, it calls `hand_over` before.
          on_lost: called once with the reason when the connection is over, from any thread.
          on_end: called once when nothing more will be read.
          holds: what `on_frame` sends from the reading thread while further frames are there already leaves together
            after the last of them. Only where `on_frame` never runs a kernel or anything else that may take long.
        """
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", STALL_S_MAX, 0))
        if sock.family == socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNIX_BUFFER_BYTES)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = sock
        # A connection that its owner has just let go is closed without the interpreter's complaint.
        self._close_socket = weakref.finalize(self, sock.close)
        self._close_socket.atexit = False
        self._has_more = getattr(sock, "pending", None)
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._on_end = on_end
        self._holds = holds
        self._held: set[Lane] = set()
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._view = memoryview(self._scratch)
        self._start = self._end = 0
        self._lookout = Lookout()
        self._turns = threading.Lock()
        self._turn = threading.Lock()
        self._turn.acquire()
        self._has_follower = False
        self._is_over = False
        self._queue: collections.deque[Sequence[Buffer]] = collections.deque()
        self._unsent: list[Buffer] = []
        self._writing = threading.Lock()
        self._closing = threading.Lock()
        self._is_closed = False

    def send(self, kind: int, flags: int, number: int, call_id: int, body: Sequence[Buffer] = ()) -> None:
        """Sends a frame, at once or soon; never waits. On a lost lane it does nothing: `on_lost` has told."""
        if self._is_closed:
            return
        head = _HEADER.pack(kind, flags, number, _MARK, call_id, sum(map(len, body)))
        self._queue.append((head, *body))
        if len(self._queue) > WAITING_FRAMES_MAX:
            self.close(f"{WAITING_FRAMES_MAX} messages wait for it")
            return
        held = getattr(_reader, "held", None)
        if held is not None:
            held.add(self)
        else:
            self._flush()

    def read(self) -> None:
        """Reads frames until the connection is over, or other threads do so; calls `on_end` when it is over."""
        reason = _LOST
        try:
            reason = self._read_frames()
        except OSError:
            pass
        except MemoryError:
            reason = "there is no memory for its message"
        except Exception:
            logging.getLogger("dtf").exception("a message of the channel failed")
            reason = "a message failed"
        if not reason:
            return
        self._end_reading(reason)

    def read_available(self) -> None:
        """Handles what has come, without waiting: for a thread that knows that nobody else reads, instead of `read`."""
        reason = _LOST
        _reader.lane = self
        try:
            while True:
                received = self._socket.recv_into(self._view[self._end :], 0, _NO_WAIT)
                self._end += received
                reason = self._handle_frames() if received else _LOST
                if reason or self._has_more is None or _reader.lane is not self or not self._has_more():
                    break
        except BlockingIOError:
            reason = ""
        except OSError:
            pass
        finally:
            if _reader.lane is self:
                self._leave_turn()
        if reason:
            self._end_reading(reason)

    def hand_over(self) -> None:
        """Called from `on_frame`: lets another thread read on, for what this one does next may take long."""
        if getattr(_reader, "lane", None) is not self:
            return
        self._let_go()
        self._leave_turn()
        if not self._give_turn():
            threading.Thread(target=self.read, name=threading.current_thread().name, daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether it has been read to its end."""
        return self._is_over

    def fileno(self) -> int:
        """The socket's descriptor, to wait for."""
        return self._socket.fileno()

    def close(self, reason: str) -> None:
        """Ends the connection; who still has to read or write notices. Harmless when repeated."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._queue.clear()
        self._on_lost(reason)

    def drain(self, timeout_s: float) -> None:
        """Waits until what was sent has been written, or the time is over."""
        if self._writing.acquire(timeout=timeout_s):
            self._writing.release()
            self._flush()

    def _end_reading(self, reason: str) -> None:
        self._leave_turn()
        self._let_go()
        with self._turns:
            if self._is_over:
                return
            self._is_over = True
        self._give_turn()
        self.close(reason)
        with self._writing:
            self._unsent.clear()
            self._close_socket()
        self._on_end()

    # -- reading

    def _read_frames(self) -> str:
        """Reads in turn with the lane's other threads. Returns why the connection is over, or "" when this thread is
        not needed any more.
        """
        self._take_turn()
        while True:
            reason = self._handle_frames()
            if reason:
                return reason
            if _reader.lane is not self:
                if not self._wait_for_turn():
                    return ""
                continue
            received = self._lookout.look(self._received) if self._has_more is None else None
            if received is None:
                received = self._socket.recv_into(self._view[self._end :])
            if not received:
                return _LOST
            self._end += received

    def _received(self) -> int | None:
        """How many bytes have come; None: none yet."""
        try:
            return self._socket.recv_into(self._view[self._end :], 0, _NO_WAIT)
        except BlockingIOError:
            return None

    def _handle_frames(self) -> str:
        """Handles the frames that have come, until this thread hands over. Why the connection is over, or ""."""
        scratch, view, on_frame = self._scratch, self._view, self._on_frame
        while self._end - self._start >= 24:
            kind, flags, number, mark, call_id, length = _HEADER.unpack_from(scratch, self._start)
            if mark != _MARK or length > BODY_BYTES_MAX:
                return "it sent something that is no message"
            begin = self._start + 24
            if begin + length <= self._end:
                body: Any = bytes(view[begin : begin + length])
                self._start = begin + length
                if self._holds and self._start < self._end:
                    # While further frames wait here, what this thread sends waits too, and leaves in one piece.
                    _reader.held = self._held
            elif 24 + length <= _SCRATCH_BYTES // 2:
                break
            else:
                self._let_go()
                body = self._large_body(view[begin : self._end], length)
                if body is None:
                    return _LOST
                self._start = self._end = 0
            on_frame(self, kind, flags, number, call_id, body)
            del body
            if _reader.lane is not self:
                return ""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start:
            waiting = self._end - self._start
            scratch[:waiting] = scratch[self._start : self._end]
            self._start, self._end = 0, waiting
        self._let_go()
        return ""

    def _let_go(self) -> None:
        """Sends what this reading thread has held back."""
        _reader.held = None
        while self._held:
            self._held.pop()._flush()

    def _wait_for_turn(self) -> bool:
        """After `hand_over`: whether this thread is to read again. False: another one waits already."""
        with self._turns:
            if self._has_follower or self._is_over:
                return False
            self._has_follower = True
        if not self._turn.acquire(timeout=_FOLLOWER_IDLE_S):
            with self._turns:
                if self._has_follower:
                    self._has_follower = False
                    return False
            self._turn.acquire()  # it has just been given
        if self._is_over:
            return False
        self._take_turn()
        return True

    def _take_turn(self) -> None:
        _reader.lane = self
        borrowed.lend(self.hand_over)

    def _leave_turn(self) -> None:
        _reader.lane = None
        borrowed.take_back()

    def _give_turn(self) -> bool:
        with self._turns:
            waits, self._has_follower = self._has_follower, False
        if waits:
            self._turn.release()
        return waits

    def _large_body(self, first: memoryview, length: int) -> memoryview | None:
        body = receive_buffers.take(length)
        at = len(first)
        body[:at] = first
        while at < length:
            received = self._socket.recv_into(body[at:], 0, socket.MSG_WAITALL)
            if not received:
                return None
            at += received
        return body

    # -- writing

    def _flush(self) -> None:
        # Whoever finds the lock taken may leave: its holder looks at the queue again after it has let go.
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
        """Writes until nothing is left. False when the socket takes no more for now. The lock is held."""
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
            done = 0
            for buffer in unsent:
                size = len(buffer)
                if sent < size:
                    if sent:
                        unsent[done] = memoryview(buffer)[sent:]
                    break
                sent -= size
                done += 1
            del unsent[:done]


_reader = threading.local()
