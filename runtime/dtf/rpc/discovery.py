"""A connection that begins on gRPC and moves to the channel when the task turns out to have one.

Owns which of the two carries a call. A task publishes its channel's endpoint in every answer to GetStatus, in a field
that TensorFlow skips. A client that asks a dtf task for its status thus finds the channel without a failing call;
TensorFlow tasks are not affected. When the channel is lost, for example because the task restarts, calls use gRPC
again, and one of them is a GetStatus.

DTF_CHANNEL=off keeps everything on gRPC.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from dtf.channel import reactor
from dtf.channel.client import Channel
from dtf.channel.endpoint import find_endpoint
from dtf.rpc import WORKER_SERVICE
from dtf.rpc.connection import Connection, Request
from dtf.rpc.messages import Buffer
from dtf.run.interfaces import Done
from dtf.run.threads import growing_pool
from dtf.wire import errors
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials

_STATUS_METHOD = f"/{WORKER_SERVICE}/GetStatus"
_STATUS_TIMEOUT_S = 10.0
_RETRY_S = 30.0
_NEVER = math.inf
_SWITCH = "DTF_CHANNEL"


class Transport(Protocol):
    """How calls reach a task; see `connection.Connection` for arguments and errors."""

    is_closed: bool

    @property
    def address(self) -> str: ...

    @property
    def where(self) -> str: ...

    def call(
        self, method: str, request: Request, timeout_s: float | None = None, watch: bool = False
    ) -> Buffer: ...

    def call_async(
        self, method: str, request: Request, done: Done[Buffer], timeout_s: float | None = None
    ) -> Callable[[], None]: ...

    def tell(self, method: str, request: Request) -> None: ...

    def explain(self, error: errors.OpError) -> errors.OpError: ...

    @property
    def channel(self) -> Channel | None:
        """The open channel to the task, or None."""

    def open_channel(self, on_lost: Callable[[], None]) -> bool: ...

    def close(self) -> None: ...


def is_channel_on() -> bool:
    """Whether this process uses the channel."""
    return reactor.is_possible() and os.environ.get(_SWITCH, "").lower() not in ("off", "0", "no", "false")


def connect(address: str, name: str = "", credentials: Credentials | None = None) -> Transport:
    """The best transport to a task "host:port". Connects when the first call is made; with credentials, by TLS only."""
    if is_channel_on():
        return DiscoveringConnection(address, name, credentials)
    return Connection(address, name, credentials)


class DiscoveringConnection:
    """A `Transport`. The lock guards the change from one transport to the other. `channel` is for others to look at.

    `_ask_at` is the time of the next request for the channel: at once at the start and after a loss, later when the
    channel was unreachable. It is never while the channel is open or when the task has none.
    """

    def __init__(self, address: str, name: str = "", credentials: Credentials | None = None) -> None:
        self._grpc = Connection(address, name, credentials)
        self._credentials = credentials
        self.address = address
        self.where = self._grpc.where
        self._host, _ = split_address(address)
        self._lock = threading.Lock()
        self.channel: Channel | None = None
        self._ask_at = 0.0
        self.is_closed = False
        self._told_lost: Callable[[], None] | None = None

    def call(self, method: str, request: Request, timeout_s: float | None = None, watch: bool = False) -> Buffer:
        channel = self.channel
        if channel is not None and channel.check():
            response = channel.call(method, _pieces(request), timeout_s, watch)
        else:
            if method != _STATUS_METHOD:
                self._discover()
            response = self._grpc.call(method, request, timeout_s, watch)
            if method == _STATUS_METHOD:
                self._learn(response)
        return response

    def call_async(
        self, method: str, request: Request, done: Done[Buffer], timeout_s: float | None = None
    ) -> Callable[[], None]:
        channel = self.channel
        if channel is not None:
            if method == _STATUS_METHOD:
                done = _closing(channel, done)
            return channel.call_async(method, _pieces(request), done, timeout_s)
        self._discover()
        return self._grpc.call_async(method, request, done, timeout_s)

    def tell(self, method: str, request: Request) -> None:
        channel = self.channel
        if channel is not None:
            channel.tell(method, _pieces(request))
        else:
            self._grpc.tell(method, request)

    def explain(self, error: errors.OpError) -> errors.OpError:
        return self._grpc.explain(error)

    def open_channel(self, on_lost: Callable[[], None]) -> bool:
        """Whether there is a channel, after asking for it where that is not known. `on_lost` is called when it is lost.

        Raises:
          OpError: the task does not answer.
        """
        self._told_lost = on_lost
        channel = self.channel
        if channel is None or not channel.check():
            self.call(_STATUS_METHOD, b"", _STATUS_TIMEOUT_S)
            channel = self.channel
        if channel is None:
            return False
        return channel.check()

    def close(self) -> None:
        with self._lock:
            self.is_closed = True
            channel = self.channel
        if channel is not None:
            channel.close()
        self._grpc.close()

    def _discover(self) -> None:
        """Asks the task in the background whether it has a channel, unless that is known."""
        if time.monotonic() < self._ask_at:
            return
        with self._lock:
            if time.monotonic() < self._ask_at or self.is_closed:
                return
            self._ask_at = _NEVER

        def answered(response: bytes = b"", error: errors.OpError | None = None) -> None:
            if error is not None:
                self._ask_at = 0.0
            elif find_endpoint(response) is not None:
                growing_pool.submit(self._learn, response)

        self._grpc.call_async(_STATUS_METHOD, b"", answered, _STATUS_TIMEOUT_S)

    def _learn(self, status_response: Any) -> None:
        """Opens the channel that the task says it has."""
        endpoint = find_endpoint(status_response)
        with self._lock:
            if self.is_closed or self.channel is not None or time.monotonic() < self._ask_at < _NEVER:
                return
            self._ask_at = _NEVER
            if endpoint is None:
                return
            try:
                channel = Channel(endpoint, self._host, self.where, self._lose, self._credentials)
            except errors.OpError as error:
                self._ask_at = time.monotonic() + _RETRY_S
                _logger.info("%s; using gRPC", error.message)
                return
            self.channel = channel
            if not channel.is_open:  # it was lost before it could be forgotten
                self._lose()

    def _lose(self) -> None:
        """The channel has been lost: from now on it is as in the beginning."""
        self.channel = None
        self._ask_at = 0.0
        if self._told_lost is not None:
            self._told_lost()


def _closing(channel: Channel, done: Done[Buffer]) -> Done[Buffer]:
    """`done` of a heartbeat: a channel that does not answer it is given up."""

    def answered(response: Buffer = b"", error: errors.OpError | None = None) -> None:
        if error is None:
            done(response)
            return
        done(error=error)
        if isinstance(error, errors.DeadlineExceededError):
            channel.close()

    return answered


def _pieces(request: Request) -> Any:
    return (request,) if isinstance(request, bytes) else request


_logger = logging.getLogger("dtf")
