"""Sessions end with the process that made them: a dtf client holds a call open at a task that keeps sessions for it.

Owns both ends. A client names itself in CreateSession or CreateWorkerSession, in a field that TensorFlow skips. A dtf
task answers with the same field, and the client then calls Hold, a call that is never answered. So a dead process,
whose connections the system ends, and a dead host, which keepalive finds, are known without a message. A connection
may be lost for other reasons. A client therefore has some seconds to hold again, and a session in use by another
client is kept. Sessions of clients without a lease, such as TensorFlow's, last until they are closed.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import threading
import time
from collections.abc import Callable

from dtf.channel import cache_reaper
from dtf.channel.listener import Answer
from dtf.rpc.discovery import Transport
from dtf.rpc.messages import Buffer
from dtf.run.threads import growing_pool
from dtf.wire import codec, errors

__all__ = ["HOLD", "Holder", "Leases", "client_in"]

HOLD = "/dtf.Lease/Hold"
LEASE_FIELD = 47_475
"""Number of the field, in the requests and in the responses."""

_GRACE_VARIABLE = "DTF_CLIENT_GRACE_S"


def _grace_s() -> float:
    try:
        return max(1.0, float(os.environ.get(_GRACE_VARIABLE, "20")))
    except ValueError:
        return 20.0


GRACE_S = _grace_s()
"""How long a client may be without a connection, by default 20 s; from the environment variable DTF_CLIENT_GRACE_S."""

_ID_BYTES = 16
_RETRY_S = 2.0
_UNKNOWN = b"?"
_MARK = codec.length_delimited(LEASE_FIELD, 0)

_logger = logging.getLogger("dtf")


def client_in(message: Buffer) -> bytes | None:
    """The client name in a serialized request; b"" in a response, None in a TensorFlow message."""
    try:
        for field, value, _ in codec.message_fields(memoryview(message)):
            if field == LEASE_FIELD:
                return bytes(value)[:_ID_BYTES]
    except (errors.OpError, TypeError):  # a field of another extension
        return None
    return None


def with_mark(client: bytes | None) -> tuple[bytes, ...]:
    """The bytes to append to the response for a client with a lease; b"" for other clients."""
    return (_MARK,) if client else ()


class Holder:
    """The client's end, for one connection. Its lock guards the sessions and the call."""

    def __init__(self, connection: Transport) -> None:
        self._connection = connection
        self._client = os.urandom(_ID_BYTES)
        self._lock = threading.Lock()
        self._handles: set[str] = set()
        self._is_held = False
        self._cancel: Callable[[], object] | None = None

    @property
    def field(self) -> bytes:
        """The bytes to append to a request that makes a session."""
        return codec.length_delimited(LEASE_FIELD, _ID_BYTES) + self._client

    def made(self, handle: str, response: Buffer) -> None:
        """A session has been made, with this response."""
        if client_in(response) is None:
            return
        with self._lock:
            self._handles.add(handle)
            is_held, self._is_held = self._is_held, True
        if not is_held:
            self._hold()

    def released(self, handle: str) -> None:
        """A session has been closed, or is about to be."""
        with self._lock:
            self._handles.discard(handle)
            if self._handles:
                return
            cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def close(self) -> None:
        """The connection is about to be closed: sessions are no longer held."""
        with self._lock:
            self._handles.clear()
            cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def _hold(self) -> None:
        with self._lock:
            if not self._handles:
                self._is_held = False
                return
            known = frozenset(self._handles)
        ended = functools.partial(self._ended, known)
        try:
            cancel = self._connection.call_async(HOLD, (self._client,), ended)
        except Exception as error:  # the connection is lost, or threads are lacking: it is tried again
            ended(error=error)
            return
        with self._lock:
            if self._handles:
                self._cancel = cancel
                return
        cancel()

    def _ended(self, known: frozenset[str], response: Buffer = b"", error: Exception | None = None) -> None:
        """The connection was lost, the task stops or does not know this client, or the client has nothing to hold.
        `known` are the sessions at the time of the call: the answer does not concern later sessions.
        """
        with self._lock:
            self._cancel = None
            if error is None and bytes(response) == _UNKNOWN:
                self._handles -= known
            if not self._handles or self._connection.is_closed:
                self._is_held = False
                return
        again = threading.Timer(_RETRY_S, self._hold)
        again.daemon = True
        try:
            again.start()
        except RuntimeError as cannot_start:  # the thread limit is reached: the next session retries
            _logger.warning("%s: cannot hold its sessions: %s", self._connection.where, cannot_start)
            with self._lock:
                self._is_held = False


class _Client:
    def __init__(self, expires_at: float) -> None:
        self.handles: set[str] = set()
        self.holds: set[Answer] = set()
        self.expires_at = expires_at


class Leases:
    """The task's end. Its lock guards the clients."""

    def __init__(self, end: Callable[[str], bool], what: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`end(handle)` ends a session, or returns False if another client uses it; `what` names it in messages."""
        self._end = end
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: dict[bytes, _Client] = {}
        self._looked_at = 0.0
        self._is_closed = False

    def grant(self, client: bytes, handle: str) -> None:
        """The client has made a session, and is expected to hold soon."""
        with self._lock:
            found = self._clients.setdefault(client, _Client(self._clock() + GRACE_S))
            found.handles.add(handle)
        self._watch()

    def forget(self, handle: str) -> None:
        """The session is over."""
        with self._lock:
            for client in [client for client, each in self._clients.items() if handle in each.handles]:
                self._clients[client].handles.discard(handle)
                self._forget_if_empty(client)

    def hold(self, client: bytes, answer: Answer) -> bool:
        """The client is alive as long as the caller of this method is connected. False: it has no sessions here."""
        with self._lock:
            found = self._clients.get(client)
            if found is None or self._is_closed:
                return False
            found.holds.add(answer)
        return True

    def lost(self, client: bytes, answer: Answer) -> None:
        """The caller of a Hold has disconnected."""
        with self._lock:
            found = self._clients.get(client)
            if found is None:
                return
            found.holds.discard(answer)
            if found.holds:
                return
            found.expires_at = self._clock() + GRACE_S
            self._forget_if_empty(client)
        self._watch()

    def close(self) -> None:
        """Answers all pending Hold calls, as when the server stops."""
        with self._lock:
            self._is_closed = True
            answers = [answer for each in self._clients.values() for answer in each.holds]
            self._clients.clear()
        for answer in answers:
            answer.set(())

    def look(self, now_s: float) -> bool:
        """Ends the sessions of clients that have disconnected for good; returns whether others may follow."""
        gone: list[tuple[bytes, list[str]]] = []
        with self._lock:
            # What this process was late by, stopped or starved, it could not hear its clients in: it does not count.
            late_s = max(0.0, now_s - self._looked_at - cache_reaper.IDLE_S_MAX / 2)
            self._looked_at = now_s
            unheld = {client: each for client, each in self._clients.items() if not each.holds}
            for client, each in unheld.items():
                each.expires_at += late_s
                if now_s >= each.expires_at:
                    each.expires_at = now_s + GRACE_S  # for sessions that are still in use
                    gone.append((client, list(each.handles)))
        for client, handles in gone:
            growing_pool.submit(self._end_all, client, handles)
        return bool(unheld)

    def _end_all(self, client: bytes, handles: list[str]) -> None:
        ended = [handle for handle in handles if self._is_unheld(client) and self._end(handle)]
        if ended:
            gc.collect()  # a session may be large, and a server that only waits would not be rid of it for long
            _logger.info("%d %s closed: their client has been gone for %.0f s", len(ended), self._what, GRACE_S)
        with self._lock:
            found = self._clients.get(client)
            if found is not None:
                found.handles.difference_update(ended)
                self._forget_if_empty(client)

    def _is_unheld(self, client: bytes) -> bool:
        """Whether the client has not come back since it was found to be gone."""
        with self._lock:
            found = self._clients.get(client)
            return found is not None and not found.holds

    def _forget_if_empty(self, client: bytes) -> None:
        found = self._clients[client]
        if not found.handles and not found.holds:
            del self._clients[client]

    def _watch(self) -> None:
        with self._lock:
            self._looked_at = max(self._looked_at, self._clock())
        cache_reaper.watch(self.look)


def hold_method(*leases: Leases) -> Callable[[Buffer, Answer], None]:
    """The method Hold of a task that keeps sessions of these kinds."""

    def hold(data: Buffer, answer: Answer) -> None:
        client = bytes(data)
        holding = [each for each in leases if each.hold(client, answer)]
        if not holding:
            answer.set((_UNKNOWN,))
            return

        def lost() -> None:
            for each in holding:
                each.lost(client, answer)

        answer.on_cancel(lost)

    return hold
