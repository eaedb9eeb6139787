"""RoamingConnection: a connection to a task that may be at one of several places (runtime/durability.md, `host`).

Owns which place calls go to: the last one that answered GetStatus as the primary. A place that cannot be reached, or
whose state is older than one that was seen, is left for the next one. Nothing is sent twice.

A lost host closes no connection, and a primary that is cut off does not know it. So a thread asks the place once a
second. When it does not answer and another place is the primary of a later term, the connection is closed, and the
calls that wait there fail.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Sequence

from dtf.channel.client import Channel
from dtf.rpc import WORKER_SERVICE, messages
from dtf.rpc.connection import Request
from dtf.rpc.discovery import Transport, connect
from dtf.rpc.messages import Buffer
from dtf.run.interfaces import Done
from dtf.run.threads import growing_pool
from dtf.wire import errors
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials
from dtf.wire.durability import KeptState, kept_state
from dtf.wire.pb import worker_pb2

__all__ = ["RoamingConnection"]

_STATUS_METHOD = f"/{WORKER_SERVICE}/GetStatus"
_STATUS_TIMEOUT_S = 2.0
_KNOCK_S = 0.3
_WATCH_PERIOD_S = 1.0
_WATCH_TIMEOUT_S = 1.0


class RoamingConnection:
    """A `discovery.Transport`. The lock guards the place and its connection; no call is made under it."""

    def __init__(self, addresses: Sequence[str], name: str, credentials: Credentials | None) -> None:
        """A connection to the task `name` at one of these addresses. Connects when the first call is made."""
        self._addresses = list(addresses)
        self._name = name
        self._credentials = credentials
        self._lock = threading.Lock()
        self._place = 0
        self._current: Transport = connect(addresses[0], name, credentials)
        self._connections: dict[int, Transport] = {0: self._current}
        self._is_suspect = True
        self._seen: KeptState | None = None
        self._closed = threading.Event()
        self._is_watched = False
        self.is_closed = False

    @property
    def address(self) -> str:
        """Of the place that is called now."""
        return self._current.address

    @property
    def where(self) -> str:
        """The task and the place, for messages."""
        return self._current.where

    @property
    def channel(self) -> Channel | None:
        """See `Transport.channel`."""
        return self._current.channel

    def call(self, method: str, request: Request, timeout_s: float | None = None, watch: bool = False) -> Buffer:
        """See `Connection.call`."""
        if method == _STATUS_METHOD:
            return self._status(request, timeout_s)
        if self._is_suspect:
            self._settle()
        current = self._current
        try:
            return current.call(method, request, timeout_s, watch)
        except errors.UnavailableError:
            self._suspect(current)
            raise

    def call_async(
        self, method: str, request: Request, done: Done[Buffer], timeout_s: float | None = None
    ) -> Callable[[], None]:
        """See `Connection.call_async`. After a failure another thread looks for the primary first."""
        if not self._is_suspect or method == _STATUS_METHOD:
            return self._start(method, request, done, timeout_s)
        started = _Started()

        def settle_and_call() -> None:
            self._settle()
            started.cancels_with(self._start(method, request, done, timeout_s))

        growing_pool.submit(settle_and_call)
        return started.cancel

    def _start(
        self, method: str, request: Request, done: Done[Buffer], timeout_s: float | None
    ) -> Callable[[], None]:
        current = self._current

        def answered(response: Buffer = b"", error: errors.OpError | None = None) -> None:
            if error is None:
                done(response)
                return
            if error.error_code == errors.UNAVAILABLE:
                self._suspect(current)
            done(error=error)

        return current.call_async(method, request, answered, timeout_s)

    def tell(self, method: str, request: Request) -> None:
        """See `Connection.tell`."""
        self._current.tell(method, request)

    def explain(self, error: errors.OpError) -> errors.OpError:
        """See `Connection.explain`. Another program at one of the places may be the task's own, while it waits."""
        return error

    def open_channel(self, on_lost: Callable[[], None]) -> bool:
        """See `DiscoveringConnection.open_channel`."""
        if self._is_suspect:
            self._settle()
        current = self._current

        def lost() -> None:
            self._suspect(current)
            on_lost()

        try:
            return current.open_channel(lost)
        except errors.UnavailableError:
            self._suspect(current)
            raise

    def close(self) -> None:
        """Ends the connection."""
        with self._lock:
            self.is_closed = True
            self._closed.set()
            connections = list(self._connections.values())
        for each in connections:
            each.close()

    # --

    def _suspect(self, place: Transport) -> None:
        """A call to a place has failed: the next one looks for the primary first."""
        if place is self._current:
            self._is_suspect = True

    def _settle(self) -> None:
        """Looks once at all places for the primary. The present one stays where none is found."""
        for _ in self._addresses:
            try:
                self._status(b"", _STATUS_TIMEOUT_S)
                return
            except (errors.UnavailableError, errors.DeadlineExceededError):
                continue

    def _status(self, request: Request, timeout_s: float | None) -> Buffer:
        """GetStatus at the present place. When it fails, the next call goes to the next place.

        Raises:
          OpError: the place cannot be reached, or its state is older than one that was seen.
        """
        current = self._current
        try:
            self._knock(current.address)
            response = current.call(_STATUS_METHOD, request, timeout_s)
            self._check(current, response)
        except errors.OpError:
            self._move_on(current)
            raise
        self._is_suspect = False
        return response

    def _knock(self, address: str) -> None:
        """Fails at once where no process listens; gRPC itself would wait before it tries again."""
        try:
            socket.create_connection(split_address(address), _KNOCK_S).close()
        except OSError as error:
            raise errors.UnavailableError.of(
                f"{self._name} at {address}: no process serves there: {error.strerror or error}"
            ) from None

    def _check(self, current: Transport, response: Buffer) -> None:
        state = _state_in(response)
        if state is None:
            return
        seen = self._seen
        if seen is not None and state != seen and seen.follows(state):
            raise errors.UnavailableError.of(f"{current.where} has an older state than another place has shown")
        self._seen = state
        if state.terms and not self._is_watched:
            with self._lock:
                if self._is_watched or self.is_closed:
                    return
                self._is_watched = True
            threading.Thread(target=self._watch, name="dtf-roaming", daemon=True).start()

    def _watch(self) -> None:
        while not self._closed.wait(_WATCH_PERIOD_S):
            current = self._current
            answered = threading.Event()
            failed: list[errors.OpError] = []

            def done(
                response: Buffer = b"",
                error: errors.OpError | None = None,
                answered: threading.Event = answered,
                failed: list[errors.OpError] = failed,
            ) -> None:
                if error is not None:
                    failed.append(error)
                answered.set()

            cancel = current.call_async(_STATUS_METHOD, b"", done)
            if answered.wait(_WATCH_TIMEOUT_S) and not failed:
                continue
            cancel()
            self._leave_for_later(current)

    def _leave_for_later(self, former: Transport) -> None:
        """Closes the connection to a silent place if another one is the primary of a later term."""
        for place, address in enumerate(self._addresses):
            if self.is_closed or former is not self._current:
                return
            if address == former.address:
                continue
            found = connect(address, self._name, self._credentials)
            try:
                self._knock(address)
                response = found.call(_STATUS_METHOD, b"", _WATCH_TIMEOUT_S)
                state = _state_in(response)
            except errors.OpError:
                found.close()
                continue
            seen = self._seen
            if state is None or seen is None or state == seen or not state.follows(seen):
                found.close()
                continue
            with self._lock:
                if self.is_closed or former is not self._current:
                    found.close()
                    return
                older = self._connections.get(place)
                self._connections[place] = self._current = found
                self._place, self._is_suspect = place, False
                self._seen = state
            _logger.warning("%s does not answer; %s is the primary now", former.where, found.where)
            former.close()
            if older is not None:
                older.close()
            return

    def _move_on(self, former: Transport) -> None:
        with self._lock:
            if self._current is not former or self.is_closed:
                return
            self._place = (self._place + 1) % len(self._addresses)
            found = self._connections.get(self._place)
            if found is None or found.is_closed:
                found = connect(self._addresses[self._place], self._name, self._credentials)
                self._connections[self._place] = found
            self._current = found  # the former one stays: its place may go on, with the sessions that it has
            self._is_suspect = True
        _logger.debug("%s: the next place is %s", self._name, self._current.address)


def _state_in(response: Buffer) -> KeptState | None:
    """The state that a GetStatusResponse tells of."""
    status = messages.parse(worker_pb2.GetStatusResponse, response)
    return kept_state(each.physical_device_desc for each in status.device_attributes)


class _Started:
    """A call that another thread makes, and what cancels it. The lock guards both."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._cancel: Callable[[], None] | None = None

    def cancels_with(self, cancel: Callable[[], None]) -> None:
        """The call was made."""
        with self._lock:
            self._cancel = cancel
            is_cancelled = self._is_cancelled
        if is_cancelled:
            cancel()

    def cancel(self) -> None:
        """Cancels the call, now or when it is made."""
        with self._lock:
            self._is_cancelled = True
            cancel = self._cancel
        if cancel is not None:
            cancel()


_logger = logging.getLogger("dtf")
