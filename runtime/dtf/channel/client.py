"""Channel: calls to one task over its lanes.

Owns pending calls, their deadlines, and the errors when the connection is lost. Does not know the messages: requests
are lists of buffers, responses bytes, or a memoryview of a large one's own buffer. Nothing is ever sent twice.
"""

from __future__ import annotations

import functools
import itertools
import logging
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dtf.channel import lane as lanes
from dtf.channel import reactor
from dtf.channel.endpoint import Endpoint, greet, is_same_user, new_connection_id
from dtf.channel.lane import Buffer, Lane
from dtf.channel.shared_memory import SharedMemory, find, is_possible
from dtf.run.interfaces import Done
from dtf.run.threads import growing_pool, reader_thread
from dtf.wire import errors
from dtf.wire.credentials import Credentials
from dtf.wire.measures import RECEIVED, SENT, Durations, measures

LARGE_FROM_BYTES = 1 << 16
"""Messages of this size and more take the large lane."""
MEMORY_LANE = 2
"""The lane number in the greeting of a connection for shared memory; the lanes are 0 and 1."""
CONNECT_TIMEOUT_S = 1.0
_HEARTBEAT_PERIOD_S = 10.0
_HEARTBEAT_TIMEOUT_S = 10.0
_TRUSTED_FOR_S = 0.005


class Channel:
    """An open connection to the channel of a task. `_pending` (call id -> done) is changed by single operations only;
    the lock guards the end.

    Attributes:
      is_open: whether the connection is open, as far as reads have shown; for other threads.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        host: str,
        where: str,
        on_lost: Callable[[], None] = lambda: None,
        credentials: Credentials | None = None,
    ) -> None:
        """Connects by Unix socket if the endpoint is on this host, else by TCP.

        Args:
          host: where the task is; its channel's port is in the endpoint.
          where: the task's name in messages.
          on_lost: called when the connection is over.
          credentials: with them, TCP is wrapped in TLS, and a Unix socket must be another process's of this user.

        Raises:
          UnavailableError: it cannot be reached, or does not know the endpoint's token.
        """
        self.where = where
        self.token = endpoint.token
        self._told_lost = on_lost
        self._reading = 2
        self._lock = threading.Lock()
        self._pending: dict[int, Done[Buffer]] = {}
        self._ids = itertools.count(1)
        self._lost: errors.OpError | None = None
        self.is_open = True
        self._last_frame = time.monotonic()
        self._numbers: dict[str, int] = {}
        self._welcomed = _Answered()
        self._memory: SharedMemory | None = None
        self._identity = identity = new_connection_id()
        sockets: list[Any] = []
        try:
            for number in range(2):
                sockets.append(_connect(endpoint, host, credentials))
                if not greet(sockets[-1], endpoint.token, identity, number):
                    raise OSError("another task answers there")
        except OSError as error:
            for sock in sockets:
                sock.close()
            raise errors.UnavailableError.of(f"{where}: no channel: {error}") from None
        self._small, self._large = (Lane(sock, self._on_frame, self._on_lost, self._on_end) for sock in sockets)
        way = "unix" if sockets[0].family == socket.AF_UNIX else "tcp"
        self._sent = measures.traffic(where, way, SENT)
        self._sent_in_memory = measures.traffic(where, "memory", SENT)
        self._received = measures.traffic(where, way, RECEIVED)
        self._received_in_memory = measures.traffic(where, "memory", RECEIVED)
        _channels.add(self)
        self._share_once = functools.partial(self._share, endpoint) if is_possible(sockets[1]) else None
        for lane in (self._small, self._large):
            lane.begin()
        if not self._wait(self._welcomed, CONNECT_TIMEOUT_S) or not self.is_open:
            self.close()
            raise errors.UnavailableError.of(f"{where}: no channel: it does not answer")

    def check(self) -> bool:
        """Whether the connection is open; reads once itself if no thread reads and the last read was not just now."""
        if time.monotonic() >= self._last_frame + _TRUSTED_FOR_S:
            reactor.shared().glance()
        return self._lost is None

    def call(
        self, method: str, request: Sequence[Buffer], timeout_s: float | None = None, watch: bool = False
    ) -> Buffer:
        """Calls and waits for the response; arguments and errors as in `rpc.connection.Connection.call`."""
        answered = _Answered()
        started = time.perf_counter()
        cancel = self._start(method, request, answered)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while True:
                wait_s = _HEARTBEAT_PERIOD_S if watch else -1
                if deadline is not None:
                    left_s = max(0.0, deadline - time.monotonic())
                    wait_s = min(left_s, wait_s) if watch else left_s
                if self._wait(answered, wait_s):
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    cancel()
                    self._wait(answered, -1)
                    if answered.was_cancelled:
                        raise errors.DeadlineExceededError.of(f"{self.where}: no answer in time")
                    break
                self._check_alive()
        except BaseException:
            cancel()
            raise
        if answered.error is not None:
            raise answered.error
        measures.calls(method).add(time.perf_counter() - started)
        assert answered.response is not None
        return answered.response

    def call_async(
        self, method: str, request: Sequence[Buffer], done: Done[Buffer], timeout_s: float | None = None
    ) -> Callable[[], None]:
        """Calls `done(response)` or `done(error=OpError)` later, from another thread. Returns what cancels the call."""
        done = _timed(measures.calls(method), done)
        if timeout_s is None:
            return self._start(method, request, done)
        return self._start_timed(method, request, done, timeout_s)

    def tell(self, method: str, request: Sequence[Buffer]) -> None:
        """Sends a request that expects no answer."""
        number = self._numbers.get(method)
        if number is not None:
            self._send(lanes.NO_REPLY, number, 0, request)

    def close(self) -> None:
        """Ends the connection; waiting calls fail."""
        self._on_lost("this process has closed the connection")
        self._fail_pending()

    # --

    def _start(self, method: str, request: Sequence[Buffer], done: Done[Buffer]) -> Callable[[], None]:
        number = self._numbers.get(method)
        if number is None:
            done(error=errors.UnimplementedError.of(f"{self.where} has no method {method}"))
            return _nothing
        call_id = next(self._ids)
        self._pending[call_id] = done
        lane = self._send(0, number, call_id, request)
        if self._lost is not None and self._pending.pop(call_id, None) is not None:
            done(error=self._lost)
        return functools.partial(self._cancel, call_id, lane)

    def _start_timed(
        self, method: str, request: Sequence[Buffer], done: Done[Buffer], timeout_s: float
    ) -> Callable[[], None]:
        expired = False

        def expire() -> None:
            nonlocal expired
            expired = True
            cancel()

        timer = threading.Timer(timeout_s, expire)
        timer.daemon = True

        def answered(response: Any = None, error: errors.OpError | None = None) -> None:
            timer.cancel()
            if expired and error is not None:
                error = errors.DeadlineExceededError.of(f"{self.where}: no answer in time")
            if error is not None:
                done(error=error)
            else:
                done(response)

        cancel = self._start(method, request, answered)
        timer.start()
        return cancel

    def _send(self, flags: int, number: int, call_id: int, request: Sequence[Buffer]) -> Lane:
        """Sends a request by the way that fits its size; returns the lane used."""
        size = sum(map(len, request))
        if size < LARGE_FROM_BYTES:
            self._sent.messages += 1
            self._sent.bytes += size
            self._small.send(lanes.REQUEST, flags, number, call_id, request, size)
            return self._small
        place = self._memory.place(request, size) if self._memory is not None else None
        if place is not None:
            self._sent_in_memory.messages += 1
            self._sent_in_memory.bytes += size
            self._small.send(lanes.REQUEST | lanes.IN_MEMORY, flags, number, call_id, (place,))
            return self._small
        self._sent.messages += 1
        self._sent.bytes += size
        self._begin_to_share()
        self._large.send(lanes.REQUEST, flags, number, call_id, request, size)
        return self._large

    def _begin_to_share(self) -> None:
        """After a large body went through a socket: offers shared memory for the next ones, if possible."""
        share, self._share_once = self._share_once, None
        if share is not None:
            growing_pool.submit(share)

    def _share(self, endpoint: Endpoint) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            try:
                sock.settimeout(CONNECT_TIMEOUT_S)
                sock.connect("\0" + endpoint.unix)
                if greet(sock, endpoint.token, self._identity, MEMORY_LANE):
                    self._memory = SharedMemory.offered(sock)
                    self._memory.begin(sock)
            except OSError as error:
                _logger.debug("%s: no shared memory: %s", self.where, error)

    def _cancel(self, call_id: int, lane: Lane) -> None:
        done = self._pending.pop(call_id, None)
        if done is not None:
            lane.send(lanes.CANCEL, 0, 0, call_id)
            error = errors.CancelledError.of(f"{self.where}: the call was cancelled")
            error.derived = True
            done(error=error)

    def _check_alive(self) -> None:
        """Closes the connection when nothing has come for a while and a ping is not answered."""
        if time.monotonic() - self._last_frame < _HEARTBEAT_PERIOD_S or not self.is_open:
            return
        answered = _Answered()
        call_id = next(self._ids)
        self._pending[call_id] = answered
        self._small.send(lanes.PING, 0, 0, call_id)
        if not self._wait(answered, _HEARTBEAT_TIMEOUT_S):
            self._pending.pop(call_id, None)
            self._on_lost(f"no answer to a heartbeat for {_HEARTBEAT_TIMEOUT_S:.0f} s", " has stopped answering")
            self._fail_pending()

    def _wait(self, answered: _Answered, timeout_s: float) -> bool:
        """Waits until the call has been answered. -1: without a limit."""
        reader_thread.yield_reader()
        return reader_thread.wait(answered, timeout_s)

    def _on_end(self) -> None:
        """A lane has been read to its end. Frames received on the other lane still count, so calls fail only when both
        lanes have ended.
        """
        with self._lock:
            self._reading -= 1
            is_last = self._reading == 0
        if is_last:
            self._fail_pending()

    def _on_frame(self, lane: Lane, kind: int, flags: int, number: int, call_id: int, body: Any) -> None:
        self._last_frame = time.monotonic()
        if lane is self._large:
            self._begin_to_share()
        received = self._received_in_memory if kind & lanes.IN_MEMORY else self._received
        if kind & lanes.IN_MEMORY:
            try:
                body = find(self._memory, body)
            except ValueError as error:
                self._on_lost(str(error))
                return
            kind ^= lanes.IN_MEMORY
        received.messages += 1
        received.bytes += len(body)
        if kind == lanes.RESPONSE or kind == lanes.PONG:
            done = self._pending.pop(call_id, None)
            if done is not None:
                done(body)
        elif kind == lanes.ERROR:
            done = self._pending.pop(call_id, None)
            if done is not None:
                done(error=self._error(number, bool(flags & lanes.DERIVED), bytes(body).decode("utf-8", "replace")))
        elif kind == lanes.WELCOME and not self._numbers:
            names = bytes(body).decode().split("\n")
            self._numbers = {name: index for index, name in enumerate(names)}
            self._welcomed()

    @property
    def waiting(self) -> tuple[str, int]:
        """The task's name, and how many calls to it have no answer yet."""
        return self.where, len(self._pending)

    def _error(self, code: int, derived: bool, message: str) -> errors.OpError:
        if code in (errors.UNAVAILABLE, errors.DEADLINE_EXCEEDED):
            message = f"{self.where}: {message}"
        error = errors.error_from_code(code, message)
        error.derived = derived or code == errors.CANCELLED
        return error

    def _on_lost(self, reason: str, what: str = "") -> None:
        with self._lock:
            if self._lost is not None:
                return
            self._lost = errors.UnavailableError.of(f"{self.where}{what}: {reason}")
            self.is_open = False
        for each in (self._small, self._large):
            each.close(reason)
        self._told_lost()

    def _fail_pending(self) -> None:
        assert self._lost is not None
        for call_id in list(self._pending):
            done = self._pending.pop(call_id, None)
            if done is not None:
                done(error=errors.UnavailableError.of(self._lost.message))


def _timed(durations: Durations, done: Done[Buffer]) -> Done[Buffer]:
    """`done` that also counts how long an answer took."""
    started = time.perf_counter()

    def answered(response: Any = None, error: errors.OpError | None = None) -> None:
        if error is not None:
            done(error=error)
            return
        durations.add(time.perf_counter() - started)
        done(response)

    return answered


class _Answered:
    """A `done` that one thread waits for."""

    __slots__ = ("_over", "error", "has_ended", "response")

    def __init__(self) -> None:
        self._over = threading.Lock()
        self._over.acquire()
        self.response: Buffer | None = None
        self.error: errors.OpError | None = None
        self.has_ended = False

    def __call__(self, response: Buffer | None = None, error: errors.OpError | None = None) -> None:
        self.response, self.error = response, error
        self.has_ended = True
        self._over.release()
        reader_thread.tell_ended(self)

    def wait_ended(self, timeout_s: float) -> bool:
        """Whether the answer comes within this time; -1: waits for it. True once only."""
        return self._over.acquire(timeout=timeout_s)

    @property
    def was_cancelled(self) -> bool:
        return isinstance(self.error, errors.CancelledError)


def _connect(endpoint: Endpoint, host: str, credentials: Credentials | None) -> Any:
    if endpoint.unix and sys.platform == "linux":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(CONNECT_TIMEOUT_S)
            sock.connect("\0" + endpoint.unix)
            if credentials is None or is_same_user(sock):
                return sock
        except OSError:  # another host, or another network namespace of this one
            pass
        sock.close()
    sock = socket.create_connection((host, endpoint.port), timeout=CONNECT_TIMEOUT_S)
    if credentials is None:
        return sock
    from dtf.channel.tls import TlsSocket

    try:
        return TlsSocket(sock, credentials.client_context, host)
    except OSError:
        sock.close()
        raise


def _nothing() -> None:
    """Cancels what was never sent."""


_logger = logging.getLogger("dtf")

_channels: weakref.WeakSet[Channel] = weakref.WeakSet()
measures.ask("calls_waiting", lambda: [channel.waiting for channel in list(_channels) if channel.is_open])
