"""Serves a master and a worker on one port, as tensorflow.MasterService and tensorflow.WorkerService.

Owns the port, the event loop, and the channel's listener. All servers of a process share one loop in one thread
(grpc.aio), which reads requests and writes responses. `methods` never runs long work in that thread.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import grpc
import grpc.aio

from dtf.channel.listener import Answer, Listener, Method
from dtf.rpc import WORKER_SERVICE, discovery, message_options, messages, push, status
from dtf.rpc.leases import Leases
from dtf.rpc.messages import Buffer
from dtf.rpc.methods import as_op_error, methods
from dtf.run.interfaces import ServingMaster, ServingWorker
from dtf.run.threads import growing_pool
from dtf.wire import errors, forks
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials
from dtf.wire.measures import CALLERS, RECEIVED, SENT, measures

_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    # A lost host closes no connection. A client process may be stopped for half a minute and lose no step.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 35_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
_JOINED_ON_LOOP_BYTES_MAX = 1 << 18
_START_TIMEOUT_S = 30.0
_FAREWELL_S = 0.2
"""The time for gRPC to send a stopping server's last answers."""
_EAGER_SERVICE = "/tensorflow.eager.EagerService/"

_TOLD = frozenset({push.PUSH, f"/{WORKER_SERVICE}/CleanupGraph"})
"""Methods that tasks call without an answer."""

_Future = asyncio.Future[bytes | errors.OpError]
"""The future that a handler awaits. An error is its result, because raising it would make a cycle of frames."""


class Service:
    """A master and a worker behind a port."""

    def __init__(
        self,
        address: str,
        name: str,
        master: ServingMaster,
        worker: ServingWorker,
        credentials: Credentials | None = None,
    ) -> None:
        """Listens at `address` ("host:port"; port 0: any that is free) and accepts calls after `start`.

        Args:
          name: of the task, for messages.
          credentials: with credentials, only peers of the same cluster may connect, over TLS.

        Raises:
          UnknownError: the port is in use, or the address is not one of this machine's; names task and address.
          InvalidArgumentError: the address is malformed, or its host name does not resolve.
        """
        host, port = split_address(address)
        self._name = name
        with _reserved(name, address, host, port):
            self._listener = _listener(host, name, credentials) if discovery.is_channel_on() else None
            endpoint = b"" if self._listener is None else self._listener.endpoint.encode()
            self._leases = (
                Leases(lambda handle: master.abandon_session(handle), "sessions"),
                Leases(lambda handle: worker.abandon_session(handle), "sessions of another master"),
            )
            self._methods = methods(master, worker, endpoint, self._leases)
            self._push_methods = push.methods(master, worker)
            self._stopped = False
            self._waiting: set[_Future] = set()
            self._server, self.port = _on_loop(self._open(address, credentials))
        if not self.port:
            self.stop(0)
            raise errors.UnknownError.of(f"Could not start the server of {name} at {address}")

    def start(self) -> None:
        """Begins to accept calls."""
        if self._listener is not None:
            self._listener.start({**self._methods, **self._push_methods}, _TOLD)
        _on_loop(self._server.start())

    def stop(self, grace_s: float = 0.5) -> None:
        """Stops accepting, gives running calls `grace_s`, and frees the port. Harmless when repeated."""
        if not self._stopped:
            self._stopped = True
            for leases in self._leases:
                leases.close()
            if self._listener is not None:
                self._listener.stop(grace_s)
            _on_loop(self._stop(grace_s))

    async def _stop(self, grace_s: float) -> None:
        """Callers not answered within `grace_s` get UnavailableError; gRPC itself would report them as cancelled."""
        stopping = asyncio.ensure_future(self._server.stop(grace_s + _FAREWELL_S))
        if self._waiting:
            await asyncio.wait(list(self._waiting), timeout=grace_s)
        for future in list(self._waiting):
            if not future.done():
                future.set_result(errors.UnavailableError.of(f"{self._name} has shut down"))
        await stopping

    async def _open(self, address: str, credentials: Credentials | None) -> tuple[Any, int]:
        server = grpc.aio.server(options=[*_OPTIONS, *message_options()])
        server.add_generic_rpc_handlers((_Handlers(self._methods, self._waiting),))
        try:
            if credentials is None:
                return server, server.add_insecure_port(address)
            pair = (credentials.key, credentials.certificate)
            secure = grpc.ssl_server_credentials([pair], credentials.ca, require_client_auth=True)
            return server, server.add_secure_port(address, secure)
        except RuntimeError:
            return server, 0


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    def __init__(self, methods: Mapping[str, Method], waiting: set[_Future]) -> None:
        self._methods = {
            name: grpc.unary_unary_rpc_method_handler(_handler(method, waiting)) for name, method in methods.items()
        }

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        found = self._methods.get(method)
        if found is None and method.startswith(_EAGER_SERVICE):
            return _NO_EAGER
        return found


async def _refuse_eager(_: bytes, context: Any) -> bytes:
    context.set_code(grpc.StatusCode.UNIMPLEMENTED)
    context.set_details(
        "This server is of dtf and runs graphs; eager execution is not supported. Use tf.compat.v1.Session."
    )
    return b""


_NO_EAGER = grpc.unary_unary_rpc_method_handler(_refuse_eager)


def _reserved(name: str, address: str, host: str, port: int) -> socket.socket:
    """A bound socket that does not listen: beside it gRPC can bind the port, and no outgoing connection takes it.

    Raises:
      UnknownError, InvalidArgumentError: as `Service`.
    """
    where = f"Could not start the server of {name} at {address}"
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise errors.InvalidArgumentError.of(
            f"{where}: the host name {host!r} does not resolve ({error.strerror})"
        ) from None
    holder = socket.socket(family, kind, protocol)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(place)
    except OSError as error:
        holder.close()
        why = error.strerror
        if error.errno == errno.EADDRINUSE:
            why = "the port is in use by another process"
        elif error.errno == errno.EADDRNOTAVAIL:
            why = "this machine does not have that address"
        raise errors.UnknownError.of(f"{where}: {why}") from None
    if sys.platform != "linux":
        holder.close()  # other systems let nothing bind beside it
    return holder


def _listener(host: str, name: str, credentials: Credentials | None) -> Listener | None:
    try:
        return Listener(host, name, credentials)
    except OSError as error:
        _logger.warning("%s has no channel, so all calls use gRPC: %s", name, error)
        return None


def _handler(method: Method, waiting: set[_Future]) -> Callable[[bytes, Any], Awaitable[bytes]]:
    """The handler that gRPC calls. As long as a call is not answered its future is among the `waiting`, on the
    loop."""

    received, sent = (measures.traffic(CALLERS, "grpc", direction) for direction in (RECEIVED, SENT))

    async def handle(request: bytes, context: Any) -> bytes:
        received.messages += 1
        received.bytes += len(request)
        future: _Future = asyncio.get_running_loop().create_future()
        waiting.add(future)
        answer = Answer(functools.partial(_resolve, future), context.peer())
        try:
            method(request, answer)
            response = await future
        except asyncio.CancelledError:
            answer.cancel()
            raise
        except Exception as error:
            response = as_op_error(error, answer.peer)
        finally:
            waiting.discard(future)
            del future, answer  # or the error that passes this frame would know itself by them
        if isinstance(response, bytes):
            sent.messages += 1
            sent.bytes += len(response)
            return response
        # Not context.abort: its exception ends in a cycle of frames, some 10 kB for each failed request.
        code, details, metadata = status.encode(response)
        del response
        context.set_code(code)
        context.set_details(details)
        context.set_trailing_metadata(metadata)
        return b""

    return handle


def _resolve(future: _Future, pieces: Sequence[Buffer], error: errors.OpError | None) -> None:
    """Sets what a handler waits for, from any thread."""
    is_on_loop = threading.current_thread() is _loop_thread
    if is_on_loop and sum(map(len, pieces)) > _JOINED_ON_LOOP_BYTES_MAX:
        growing_pool.submit(_resolve, future, pieces, error)
        return

    def resolve() -> None:
        if future.done():
            return
        future.set_result(response)

    response = messages.joined(pieces) if error is None else error
    if is_on_loop:
        resolve()
        return
    future.get_loop().call_soon_threadsafe(resolve)


_logger = logging.getLogger("dtf")

_parents: list[Any] = []
"""Loops of the process that this one was forked from. To end one would touch what both have open."""
_loop_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_loop_thread: threading.Thread | None = None


def _on_loop(coroutine: Any) -> Any:
    """Runs a coroutine on the shared loop and returns its result."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, _shared_loop()).result(_START_TIMEOUT_S)
    except FutureTimeoutError:
        raise errors.DeadlineExceededError.of("The server's event loop does not answer") from None


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _loop, _loop_thread
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _loop_thread = threading.Thread(target=_loop.run_forever, name="dtf-rpc-loop", daemon=True)
            _loop_thread.start()
        return _loop


def _begin_anew() -> None:
    """In a forked process: the loop's thread is the parent's."""
    global _loop_lock, _loop, _loop_thread
    if _loop is not None:
        _parents.append(_loop)
    _loop_lock, _loop, _loop_thread = threading.Lock(), None, None


forks.in_child(_begin_anew)
