"""RoamingConnection: a connection to a task that may be at one of several places (runtime/durability.md, `host`).

Owns which place calls go to: the last one that answered GetStatus as the primary. A place that cannot be reached, or
whose state is older than one that was seen, is left for the next one. Nothing is sent twice. The primary's answers
name the places as they are now: those that have moved are known from then on, and addresses that were left are not used
any more.

A lost host closes no connection, and a primary that is cut off does not know it. So a thread asks the place once a
second. When it does not answer and another place is the primary of a later term, the connection is closed, and the
calls that wait there fail.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
from dtf.wire.device import task_of
from dtf.wire.durability import KeptState, Place, kept_state, places_of
from dtf.wire.pb import worker_pb2

__all__ = ["RoamingConnection"]

_STATUS_METHOD = f"/{WORKER_SERVICE}/GetStatus"
_STATUS_TIMEOUT_S = 2.0
_KNOCK_S = 0.3
_WATCH_PERIOD_S = 1.0
_WATCH_TIMEOUT_S = 1.0
_PLACES_MAX = 16


class RoamingConnection:
    """A `discovery.Transport`. The lock guards the place and its connection; no call is made under it."""

    def __init__(
        self,
        places: Sequence[Place],
        name: str,
        credentials: Credentials | None,
        moved: Callable[[Sequence[Place]], None] = lambda _: None,
        ask: Callable[[Place], Sequence[Place]] = lambda _: (),
    ) -> None:
        """A connection to the task `name` at one of these places. Connects when the first call is made.

        Args:
          moved: called with all places when the primary has named others.
          ask: asks a place, whether it serves or not, where the others are; may take a second. () where it does not
            answer. It is called for each of them when none serves.
        """
        self._places = list(places)
        self._moved = moved
        self._ask = ask
        self._failures = 0
        self._name = name
        self._credentials = credentials
        self._lock = threading.Lock()
        self._current: Transport = connect(places[0].address, name, credentials)
        self._connections: dict[str, Transport] = {places[0].address: self._current}
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
        for _ in list(self._places):
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
            self._failures += 1
            if self._failures % len(self._places) == 0:
                self._ask_places()
            raise
        self._failures = 0
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
        found = _said_in(response)
        if found.task and found.task != self._name:
            raise errors.UnavailableError.of(f"{current.where} is {found.task} now; {self._name} has left this address")
        state = found.state
        if state is None:
            return
        seen = self._seen
        if seen is not None and state != seen and seen.follows(state):
            raise errors.UnavailableError.of(f"{current.where} has an older state than another place has shown")
        self._seen = state
        self._learn(found.places)
        if state.terms and not self._is_watched:
            with self._lock:
                if self._is_watched or self.is_closed:
                    return
                self._is_watched = True
            threading.Thread(target=self._watch, name="dtf-roaming", daemon=True).start()

    def _learn(self, places: Sequence[Place]) -> None:
        """The primary has named the places. Connections to addresses that none of them has are closed."""
        places = places[:_PLACES_MAX]
        addresses = [place.address for place in places]
        with self._lock:
            # One that its own primary does not name is behind some translation of addresses.
            if set(places) == set(self._places) or self._current.address not in addresses:
                return
            left = [self._connections.pop(each) for each in list(self._connections) if each not in addresses]
            self._places = list(places)
        for each in left:
            each.close()
        _logger.info("%s: its places are at %s now", self._name, ", ".join(addresses))
        self._moved(places)

    def _ask_places(self) -> None:
        """None serves where this process has looked: those that wait there may know of others."""
        for place in list(self._places):
            for found in self._ask(place):
                with self._lock:
                    if found.address not in (each.address for each in self._places) and (
                        len(self._places) < _PLACES_MAX
                    ):
                        self._places.append(found)
                        _logger.info("%s: one of its places is at %s now", self._name, found.address)

    def _watch(self) -> None:
        while not self._closed.wait(_WATCH_PERIOD_S):
            current = self._current
            answered = threading.Event()
            failed: list[errors.OpError] = []
            responses: list[Buffer] = []

            def done(
                response: Buffer = b"",
                error: errors.OpError | None = None,
                answered: threading.Event = answered,
                failed: list[errors.OpError] = failed,
                responses: list[Buffer] = responses,
            ) -> None:
                if error is not None:
                    failed.append(error)
                else:
                    responses.append(bytes(response))  # its memory is the connection's
                answered.set()

            cancel = current.call_async(_STATUS_METHOD, b"", done)
            if answered.wait(_WATCH_TIMEOUT_S) and not failed:
                found = _said_in(responses[0])
                if found.state == self._seen and current is self._current:
                    self._learn(found.places)
                continue
            cancel()
            self._leave_for_later(current)

    def _leave_for_later(self, former: Transport) -> None:
        """Closes the connection to a silent place if another one is the primary of a later term."""
        for address in [place.address for place in self._places]:
            if self.is_closed or former is not self._current:
                return
            if address == former.address:
                continue
            found = connect(address, self._name, self._credentials)
            try:
                self._knock(address)
                response = found.call(_STATUS_METHOD, b"", _WATCH_TIMEOUT_S)
                said = _said_in(response)
                state = said.state if said.task in ("", self._name) else None
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
                older = self._connections.get(address)
                self._connections[address] = self._current = found
                self._is_suspect = False
                self._seen = state
            _logger.warning("%s does not answer; %s is the primary now", former.where, found.where)
            former.close()
            if older is not None:
                older.close()
            self._learn(said.places)
            return

    def _move_on(self, former: Transport) -> None:
        with self._lock:
            if self._current is not former or self.is_closed:
                return
            known = [place.address for place in self._places]
            at = known.index(former.address) if former.address in known else -1
            address = known[(at + 1) % len(known)]
            found = self._connections.get(address)
            if found is None or found.is_closed:
                found = connect(address, self._name, self._credentials)
                self._connections[address] = found
            self._current = found  # the former one stays: its place may go on, with the sessions that it has
            self._is_suspect = True
        _logger.debug("%s: the next place is %s", self._name, self._current.address)


class _Said(NamedTuple):
    """What a GetStatusResponse says: the task that serves there ("" if it has no devices), its state and its places."""

    task: str
    state: KeptState | None
    places: Sequence[Place]


def _said_in(response: Buffer) -> _Said:
    status = messages.parse(worker_pb2.GetStatusResponse, response)
    descriptions = [each.physical_device_desc for each in status.device_attributes]
    names = [each.name for each in status.device_attributes]
    return _Said(task_of(names[0]) if names else "", kept_state(descriptions), places_of(descriptions))


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
