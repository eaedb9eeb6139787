"""TLS under a lane: the socket methods that a lane uses, with the bytes on the wire encrypted.

Owns the handshake and the records; the credentials' contexts decide trust. OpenSSL works on memory buffers here; this
module reads and writes the socket. One thread can thus wait for bytes while another sends, which an `ssl.SSLSocket`
does not allow. A large message costs one system call for many records.

Bytes offered to `sendmsg` count as sent once their encrypted form has left. Until then the caller offers the same
bytes again, as with a full socket, and they are not encrypted twice.
"""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any

_SEALED_AT_ONCE_BYTES = 1 << 18
_READ_AT_ONCE_BYTES = 1 << 17
_JOINED_BYTES_MAX = 1 << 12
"""Buffers up to this size share a record; larger ones are sealed where they are."""

_NO_WAIT = int(socket.MSG_DONTWAIT)
_WAIT_FOR_ALL = int(socket.MSG_WAITALL)


class TlsSocket:
    """A connected socket with TLS on it. The lock guards the TLS state, which reading and writing share; one thread at
    a time reads, and one writes.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None = None) -> None:
        """Shakes hands, within the socket's timeouts.

        Args:
          server_name: the host that the other end must prove to be; None: this end is the server.

        Raises:
          OSError: the socket failed; as ssl.SSLError: the other end does not speak TLS, or one end does not trust the
              other.
        """
        self._socket = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: Any = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._lock = threading.Lock()
        self._view = memoryview(bytearray(_READ_AT_ONCE_BYTES))
        self._is_over = False
        self._sealed = memoryview(b"")
        self._owed = 0
        self.family = sock.family
        if self.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or the handshake waits for delayed answers
        self._shake_hands()
        self.gettimeout = sock.gettimeout
        self.settimeout = sock.settimeout
        self.setsockopt = sock.setsockopt
        self.shutdown = sock.shutdown
        self.fileno = sock.fileno
        self.getpeername = sock.getpeername
        self.close = sock.close

    def pending(self) -> bool:
        """Whether decrypted bytes may be buffered that the socket does not report."""
        return bool(self._tls.pending() or self._incoming.pending)

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        """As of a socket, with MSG_DONTWAIT and MSG_WAITALL."""
        view = memoryview(buffer)
        if size:
            view = view[:size]
        done = 0
        while True:
            done += self._open(view[done:])
            if done == len(view) or self._is_over or (done and not flags & _WAIT_FOR_ALL):
                return done
            self._take_in(flags & _NO_WAIT)

    def recv(self, size: int) -> bytes:
        """As of a socket."""
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(buffer)])

    def sendmsg(self, buffers: Sequence[Any], ancillary: Sequence[Any] = (), flags: int = 0) -> int:
        """As of a socket; BlockingIOError also when all but the last of the sealed bytes have left."""
        if not self._sealed:
            self._owed = self._seal(buffers)
        while self._sealed:
            self._sealed = self._sealed[self._socket.send(self._sealed, flags) :]
        return self._owed

    def sendall(self, data: bytes) -> None:
        """As of a socket."""
        left = memoryview(data)
        while left:
            left = left[self.sendmsg((left,)) :]

    # --

    def _shake_hands(self) -> None:
        deadline = time.monotonic() + (self._socket.gettimeout() or math.inf)
        while time.monotonic() < deadline:
            try:
                self._tls.do_handshake()
                self._send_outgoing()
                return
            except ssl.SSLWantReadError:
                self._send_outgoing()
                self._take_in(0)
                if self._is_over:
                    raise ConnectionResetError("the peer closed the connection during the TLS handshake") from None
            except ssl.SSLError:
                with contextlib.suppress(OSError):  # send the reason to the other end
                    self._send_outgoing()
                raise
        raise TimeoutError("the TLS handshake takes too long")

    def _send_outgoing(self) -> None:
        data = self._outgoing.read()
        if data:
            self._socket.sendall(data)

    def _take_in(self, flags: int) -> None:
        received = self._socket.recv_into(self._view, 0, flags)
        if received:
            with self._lock:
                self._incoming.write(self._view[:received])
        else:
            self._is_over = True

    def _open(self, view: memoryview) -> int:
        """Opens the records that are here, as far as there is room."""
        done = 0
        with self._lock:
            try:
                while done < len(view) and self.pending():  # reading without data costs an exception
                    count = self._tls.read(len(view) - done, view[done:])
                    if not count:
                        self._is_over = True
                        break
                    done += count
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                self._is_over = True
        return done

    def _seal(self, buffers: Sequence[Any]) -> int:
        """Seals as much as leaves at once, and returns how many bytes that were."""
        count = 0
        small: list[Any] = []
        with self._lock:
            for buffer in buffers:
                if len(buffer) <= _JOINED_BYTES_MAX:
                    small.append(buffer)
                    count += len(buffer)
                else:
                    self._seal_joined(small)
                    piece = memoryview(buffer)[: _SEALED_AT_ONCE_BYTES - count]
                    self._tls.write(piece)
                    count += len(piece)
                if count >= _SEALED_AT_ONCE_BYTES:
                    break
            self._seal_joined(small)
            self._sealed = memoryview(self._outgoing.read())
        return count

    def _seal_joined(self, small: list[Any]) -> None:
        if small:
            data = b"".join(small)
            if data:
                self._tls.write(data)
            small.clear()
