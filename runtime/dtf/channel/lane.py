"""One socket of a channel: frames in, frames out.

A frame is a header of 24 bytes and a body. Whoever has something to send puts it into the lane's queue and writes what
is there as long as the socket takes it without waiting; when the socket is full, a thread of the pool writes the rest.
So several messages that are ready at the same time leave in one sendmsg, nobody but that one thread ever waits for a
slow reader, and the reading thread least of all: two peers cannot block each other. What waits is references to the
arrays' memory, not copies.

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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.run import growing_pool

WAITING_FRAMES_MAX = 100_000
BODY_BYTES_MAX = 1 << 36
STALL_S_MAX = 120

REQUEST, RESPONSE, ERROR, CANCEL, PING, PONG, WELCOME = range(1, 8)
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
_WRITE = int(getattr(socket, "MSG_NOSIGNAL", 0))
_TRY_TO_WRITE = _WRITE | int(socket.MSG_DONTWAIT)


class Lane:
    """A connected socket, after the greeting. `_writing` is held by whoever writes; `_queue` is safe by itself."""

    def __init__(
        self, sock: socket.socket, on_frame: OnFrame, on_lost: Callable[[str], None], holds: bool = False
    ) -> None:
        """A lane; call `read` from a thread of its own.

        Args:
          on_frame: called for each frame, in the reading thread; it must not wait.
          on_lost: called once with the reason when the connection is over, from any thread.
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
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._holds = holds
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
        """Reads frames until the connection is over."""
        reason = "the connection was lost"
        try:
            reason = self._read_frames()
        except OSError:
            pass
        except MemoryError:
            reason = "there is no memory for its message"
        except Exception:
            logging.getLogger("dtf").exception("a message of the channel failed")
            reason = "a message failed"
        self.close(reason)

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

    def close_socket(self) -> None:
        """Frees the descriptor, when the reading thread has ended."""
        with self._writing:
            self._unsent.clear()
            self._socket.close()

    # -- reading

    def _read_frames(self) -> str:
        scratch = bytearray(_SCRATCH_BYTES)
        view = memoryview(scratch)
        receive, unpack, on_frame = self._socket.recv_into, _HEADER.unpack_from, self._on_frame
        start = end = 0
        held: set[Lane] = set()
        while True:
            _let_go(held)
            received = receive(view[end:])
            if not received:
                return "the connection was lost"
            end += received
            # While further frames wait here, what this thread sends waits too, and leaves in one piece.
            _reader.held = held if self._holds and end - start > 2 * _HEADER.size else None
            while end - start >= 24:
                kind, flags, number, mark, call_id, length = unpack(scratch, start)
                if mark != _MARK or length > BODY_BYTES_MAX:
                    return "it sent something that is no message"
                begin = start + 24
                if begin + length <= end:
                    body: Any = bytes(view[begin : begin + length])
                    start = begin + length
                elif 24 + length <= _SCRATCH_BYTES // 2:
                    break
                else:
                    _let_go(held)
                    body = self._large_body(view[begin:end], length)
                    if body is None:
                        return "the connection was lost"
                    start = end = 0
                on_frame(self, kind, flags, number, call_id, body)
                del body
            if start == end:
                start = end = 0
            elif start:
                scratch[: end - start] = scratch[start:end]
                start, end = 0, end - start

    def _large_body(self, first: memoryview, length: int) -> memoryview | None:
        body = np.empty(length, np.uint8).data
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
                self.close("the connection was lost")
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
            self.close("the connection was lost")
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


def _let_go(held: set[Lane]) -> None:
    """Sends what this reading thread has held back."""
    _reader.held = None
    while held:
        held.pop()._flush()


_reader = threading.local()
