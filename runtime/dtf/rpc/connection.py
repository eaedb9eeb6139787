"""One gRPC channel to one task: blocking and asynchronous calls, and the errors when the task does not answer.

Owns the channel. Does not know the services' messages: requests and responses are bytes. `discovery` adds the faster
channel.

A call fails at once when the connection is lost or cannot be made; gRPC itself tries to reconnect in the background.
Nothing is ever sent twice. When gRPC cannot connect, `explain` looks at the port itself. It distinguishes a missing
task from a program that is not ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from dtf.rpc import WORKER_SERVICE, diagnose_peer, message_options, status
from dtf.rpc.messages import Buffer, joined
from dtf.run.interfaces import Cancel, Done
from dtf.wire import errors
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials
from dtf.wire.measures import RECEIVED, SENT, measures

_CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 150),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
)
_HEARTBEAT_PERIOD_S = 10.0
_HEARTBEAT_TIMEOUT_S = 10.0
_TELL_TIMEOUT_S = 60.0
_STATUS_METHOD = f"/{WORKER_SERVICE}/GetStatus"

Request = bytes | Sequence[Buffer]
"""A message, or the pieces of one."""


class Connection:
    """A channel to `address` ("host:port"). Connects when the first call is made."""

    def __init__(self, address: str, name: str = "", credentials: Credentials | None = None) -> None:
        """A connection to a task; messages call the task `name` ("/job:ps/replica:0/task:0"). With credentials it
        speaks only TLS.
        """
        split_address(address)
        self.address = address
        self.where = f"{name} at {address}" if name else address
        self._credentials = credentials
        self.is_closed = False
        options = [*_CHANNEL_OPTIONS, *message_options()]
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            secure = grpc.ssl_channel_credentials(credentials.ca, credentials.key, credentials.certificate)
            self._channel = grpc.secure_channel(address, secure, options=options)
        self._methods: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._sent = measures.traffic(self.where, "grpc", SENT)
        self._received = measures.traffic(self.where, "grpc", RECEIVED)

    def call(self, method: str, request: Request, timeout_s: float | None = None, watch: bool = False) -> bytes:
        """Calls and waits for the response.

        Args:
          method: "/service/name".
          timeout_s: the deadline; None: none.
          watch: the call may wait for long; send a heartbeat every 10 s, and give up when it is not answered.

        Raises:
          OpError: any error that the task answered.
          UnavailableError: it cannot be reached, the connection was lost, or it does not answer the heartbeat.
          DeadlineExceededError: there was no answer in time.
        """
        started = time.perf_counter()
        if not watch:
            try:
                answer: bytes = self._method(method)(self._counted(request), timeout=timeout_s)
                self._arrived(answer)
                measures.calls(method).add(time.perf_counter() - started)
                return answer
            except grpc.RpcError as error:
                raise status.decode_call(error, self.where) from None
            except ValueError:  # grpc's word for a channel that this process has closed
                raise self._closed() from None
        try:
            future = self._method(method).future(self._counted(request), timeout=timeout_s)
        except ValueError:
            raise self._closed() from None
        try:
            answer = self._wait(future)
            self._arrived(answer)
            measures.calls(method).add(time.perf_counter() - started)
            return answer
        except BaseException:
            future.cancel()
            raise

    def call_async(
        self, method: str, request: Request, done: Done[Buffer], timeout_s: float | None = None
    ) -> Callable[[], None]:
        """Calls `done(response)` or `done(error=OpError)` later, from another thread. Returns what cancels the call."""
        started = time.perf_counter()
        try:
            future = self._method(method).future(self._counted(request), timeout=timeout_s)
        except ValueError:
            done(error=self._closed())
            return _nothing

        def answered(future: Any) -> None:
            if future.code() is grpc.StatusCode.OK:
                answer = future.result()
                self._arrived(answer)
                measures.calls(method).add(time.perf_counter() - started)
                done(answer)
            else:
                done(error=status.decode_call(future, self.where))

        future.add_done_callback(answered)
        cancel: Cancel = future.cancel
        return cancel

    def tell(self, method: str, request: Request) -> None:
        """Calls without caring for the answer."""
        self.call_async(method, request, _nothing, _TELL_TIMEOUT_S)

    def explain(self, error: errors.OpError) -> errors.OpError:
        """The error to report for a first contact that failed with `error`.

        Unavailable or DeadlineExceeded mean that trying again may help. If another program serves the port, the result
        is a FailedPreconditionError that describes its answer. Where the two ends do not trust each other it is an
        UnauthenticatedError, which names both.
        """
        if error.error_code == errors.UNIMPLEMENTED:
            what = "a gRPC server that does not speak TensorFlow's protocol"
        elif error.error_code not in (errors.UNAVAILABLE, errors.DEADLINE_EXCEEDED) or "refused" in error.message:
            return error
        else:
            distrust = diagnose_peer.why_no_trust(self.address, self._credentials)
            if distrust:
                return errors.UnauthenticatedError.of(f"{self.where}: {distrust}")
            found = diagnose_peer.who_answers(self.address)
            if found is None:
                return error
            what = f"something else, which answered {found}"
        return errors.FailedPreconditionError.of(
            f"{self.where} is not a TensorFlow or dtf server: the port is served by {what}."
        )

    channel = None
    """It has no dtf channel."""

    def open_channel(self, on_lost: Callable[[], None]) -> bool:
        """False: see `discovery.DiscoveringConnection.open_channel`."""
        return False

    def close(self) -> None:
        """Ends the channel; waiting calls fail."""
        self.is_closed = True
        self._channel.close()

    def _counted(self, request: Request) -> bytes:
        """A request in one piece, counted as sent."""
        whole = joined(request)
        self._sent.messages += 1
        self._sent.bytes += len(whole)
        return whole

    def _arrived(self, answer: bytes) -> None:
        self._received.messages += 1
        self._received.bytes += len(answer)

    def _method(self, name: str) -> Any:
        method = self._methods.get(name)
        if method is None:
            with self._lock:
                method = self._methods.setdefault(name, self._channel.unary_unary(name, None, None))
        return method

    def _wait(self, future: Any) -> bytes:
        while True:
            try:
                answer: bytes = future.result(timeout=_HEARTBEAT_PERIOD_S)
                return answer
            except grpc.FutureTimeoutError:
                self._check_alive()
            except grpc.FutureCancelledError:
                raise errors.CancelledError.of(f"{self.where}: the call was cancelled") from None
            except grpc.RpcError:
                raise status.decode_call(future, self.where) from None

    def _closed(self) -> errors.OpError:
        return errors.UnavailableError.of(f"{self.where}: this process has closed the connection")

    def _check_alive(self) -> None:
        try:
            self.call(_STATUS_METHOD, b"", _HEARTBEAT_TIMEOUT_S)
        except (errors.UnavailableError, errors.DeadlineExceededError) as error:
            raise errors.UnavailableError.of(f"{self.where} has stopped answering: {error.message}") from None
        except errors.OpError:
            pass  # it answers


def _nothing(*_: Any, **__: Any) -> None:
    """Cancels a call that was never sent; ignores the answer."""
