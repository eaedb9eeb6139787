"""Serves a master and a worker on one port, as tensorflow.MasterService and tensorflow.WorkerService.

Owns the port and the event loop. All servers of a process share one loop in one thread (grpc.aio), which reads
requests and writes responses and does nothing that takes long: a RecvTensor that waits is a future, and holds no
thread. Everything else runs in a pool that grows as long as its threads are busy, so that no number of waiting steps
keeps another call out.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import queue
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import grpc
import grpc.aio

from dtf import errors
from dtf.cancellation import CancellationManager
from dtf.cluster import split_address
from dtf.compiled_step import dead_fetch
from dtf.kernels import DEAD
from dtf.pb import config_pb2, device_attributes_pb2, master_pb2, worker_pb2
from dtf.rendezvous import parse_key
from dtf.rpc import MASTER_SERVICE, WORKER_SERVICE, messages, status
from dtf.step import Device

_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
)
_ENCODED_ON_LOOP_BYTES_MAX = 1 << 18
_IDLE_THREAD_S = 30.0
_START_TIMEOUT_S = 30.0


class Service:
    """A master and a worker behind a port."""

    def __init__(self, address: str, name: str, master: Any, worker: Any) -> None:
        """Listens at `address` ("host:port"; port 0: any that is free) and accepts calls after `start`.

        Args:
          name: of the task, for messages.

        Raises:
          UnknownError: the port is in use, or the address is not one of this machine's; names task and address.
          InvalidArgumentError: the address is malformed, or its host name does not resolve.
        """
        host, port = split_address(address)
        self._check_free(name, address, host, port)
        self._methods = _methods(master, worker)
        self._stopped = False
        self._server, self.port = _on_loop(self._open(address))
        if not self.port:
            raise errors.UnknownError(None, None, f"Could not start the server of {name} at {address}")

    def start(self) -> None:
        """Begins to accept calls."""
        _on_loop(self._server.start())

    def stop(self, grace_s: float = 0.5) -> None:
        """Stops accepting, gives running calls `grace_s`, and frees the port. Harmless when repeated."""
        if not self._stopped:
            self._stopped = True
            _on_loop(self._server.stop(grace_s))

    def _check_free(self, name: str, address: str, host: str, port: int) -> None:
        where = f"Could not start the server of {name} at {address}"
        try:
            family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except socket.gaierror as error:
            raise errors.InvalidArgumentError(
                None, None, f"{where}: the host name {host!r} does not resolve ({error.strerror})"
            ) from None
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
                probe.listen(1)
            except OSError as error:
                why = error.strerror
                if error.errno == errno.EADDRINUSE:
                    why = "the port is in use by another process"
                elif error.errno == errno.EADDRNOTAVAIL:
                    why = "this machine does not have that address"
                raise errors.UnknownError(None, None, f"{where}: {why}") from None

    async def _open(self, address: str) -> tuple[Any, int]:
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((_Handlers(self._methods),))
        try:
            return server, server.add_insecure_port(address)
        except RuntimeError:
            return server, 0


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, methods: dict[str, Any]) -> None:
        self._methods = methods

    def service(self, handler_call_details: Any) -> Any:
        return self._methods.get(handler_call_details.method)


def _methods(master: Any, worker: Any) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for service, owner in ((MASTER_SERVICE, _MasterMethods(master)), (WORKER_SERVICE, _WorkerMethods(worker))):
        for name, method in vars(type(owner)).items():
            if not name.startswith("_"):
                handler = _handler(method.__get__(owner))
                table[f"/{service}/{name}"] = grpc.unary_unary_rpc_method_handler(handler)
    return table


def _handler(method: Callable[[bytes], Awaitable[bytes]]) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def handle(request: bytes, context: Any) -> bytes:
        try:
            return await method(request)
        except Exception as error:
            code, details, metadata = status.encode(_as_op_error(error))
            await context.abort(code, details, metadata)
            raise  # abort has raised already

    return handle


class _MasterMethods:
    """tensorflow.MasterService: bytes in, bytes out."""

    def __init__(self, master: Any) -> None:
        self._master = master

    async def CreateSession(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.CreateSessionRequest, data)
            handle, version = self._master.create_session(request.graph_def, request.config, request.target)
            return master_pb2.CreateSessionResponse(session_handle=handle, graph_version=version)

        return await _in_pool(call)

    async def ExtendSession(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.ExtendSessionRequest, data)
            version = self._master.extend_session(
                request.session_handle, request.graph_def, request.current_graph_version
            )
            return master_pb2.ExtendSessionResponse(new_graph_version=version)

        return await _in_pool(call)

    async def RunStep(self, data: bytes) -> bytes:
        cancellation = CancellationManager()

        def call() -> Any:
            request = _parse(master_pb2.RunStepRequest, data)
            try:
                return self._run_step(request, cancellation)
            except errors.OpError as error:
                if not request.store_errors_in_response_body:
                    raise
                return master_pb2.RunStepResponse(
                    status_code=status.code_of(error), status_error_message=error.message
                )

        return await _in_pool(call, cancellation)

    async def PartialRunSetup(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.PartialRunSetupRequest, data)
            handle = self._master.partial_run_setup(
                request.session_handle,
                list(request.feed),
                list(request.fetch),
                list(request.target),
                request.request_id,
            )
            return master_pb2.PartialRunSetupResponse(partial_run_handle=handle)

        return await _in_pool(call)

    async def CloseSession(self, data: bytes) -> bytes:
        def call() -> Any:
            self._master.close_session(_parse(master_pb2.CloseSessionRequest, data).session_handle)
            return master_pb2.CloseSessionResponse()

        return await _in_pool(call)

    async def ListDevices(self, data: bytes) -> bytes:
        def call() -> Any:
            found = self._master.list_devices(_parse(master_pb2.ListDevicesRequest, data).session_handle)
            return master_pb2.ListDevicesResponse(
                local_device=map(_attributes, found.local), remote_device=map(_attributes, found.remote)
            )

        return await _in_pool(call)

    async def Reset(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.ResetRequest, data)
            self._master.reset(list(request.container), list(request.device_filters))
            return master_pb2.ResetResponse()

        return await _in_pool(call)

    async def MakeCallable(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.MakeCallableRequest, data)
            handle = self._master.make_callable(request.session_handle, request.options, request.request_id)
            return master_pb2.MakeCallableResponse(handle=handle)

        return await _in_pool(call)

    async def RunCallable(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.RunCallableRequest, data)
            values, metadata = self._master.run_callable(
                request.session_handle, request.handle, messages.values(request.feed), request.request_id
            )
            response = master_pb2.RunCallableResponse(metadata=metadata)
            return messages.with_tensors(response, master_pb2.RunCallableResponse.FETCH_FIELD_NUMBER, values)

        return await _in_pool(call)

    async def ReleaseCallable(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(master_pb2.ReleaseCallableRequest, data)
            self._master.release_callable(request.session_handle, request.handle)
            return master_pb2.ReleaseCallableResponse()

        return await _in_pool(call)

    def _run_step(self, request: master_pb2.RunStepRequest, cancellation: CancellationManager) -> bytes:
        fetches = list(request.fetch)
        options = request.options if request.options != config_pb2.RunOptions() else None
        values, metadata = self._master.run_step(
            request.session_handle,
            messages.named_values(request.feed),
            fetches,
            list(request.target),
            options,
            request.partial_run_handle,
            request.request_id,
            cancellation,
        )
        response = master_pb2.RunStepResponse(metadata=metadata or config_pb2.RunMetadata())
        named = zip(fetches, values, strict=True)
        return messages.with_named_tensors(response, master_pb2.RunStepResponse.TENSOR_FIELD_NUMBER, named)


class _WorkerMethods:
    """tensorflow.WorkerService: bytes in, bytes out."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    async def GetStatus(self, _: bytes) -> bytes:
        devices = self._worker.get_status()
        return worker_pb2.GetStatusResponse(device_attributes=map(_attributes, devices)).SerializeToString()

    async def CreateWorkerSession(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(worker_pb2.CreateWorkerSessionRequest, data)
            self._worker.create_worker_session(
                request.session_handle,
                request.server_def,
                request.isolate_session_state,
                request.master_task,
                request.master_incarnation,
            )
            return worker_pb2.CreateWorkerSessionResponse()

        return await _in_pool(call)

    async def DeleteWorkerSession(self, data: bytes) -> bytes:
        def call() -> Any:
            self._worker.delete_worker_session(_parse(worker_pb2.DeleteWorkerSessionRequest, data).session_handle)
            return worker_pb2.DeleteWorkerSessionResponse()

        return await _in_pool(call)

    async def RegisterGraph(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(worker_pb2.RegisterGraphRequest, data)
            handle = self._worker.register_graph(
                request.session_handle if request.create_worker_session_called else "",
                request.graph_def,
                request.graph_options,
                request.config_proto,
            )
            return worker_pb2.RegisterGraphResponse(graph_handle=handle)

        return await _in_pool(call)

    async def DeregisterGraph(self, data: bytes) -> bytes:
        def call() -> Any:
            request = _parse(worker_pb2.DeregisterGraphRequest, data)
            session = request.session_handle if request.create_worker_session_called else ""
            self._worker.deregister_graph(session, request.graph_handle)
            return worker_pb2.DeregisterGraphResponse()

        return await _in_pool(call)

    async def RunGraph(self, data: bytes) -> bytes:
        answer = _Answer()
        _pool.submit(lambda: self._start_graph(_parse(worker_pb2.RunGraphRequest, data), answer), answer)
        return await answer

    async def CleanupGraph(self, data: bytes) -> bytes:
        self._worker.cleanup_graph(_parse(worker_pb2.CleanupGraphRequest, data).step_id)
        return b""

    async def CleanupAll(self, data: bytes) -> bytes:
        def call() -> Any:
            self._worker.cleanup_all(list(_parse(worker_pb2.CleanupAllRequest, data).container))
            return worker_pb2.CleanupAllResponse()

        return await _in_pool(call)

    async def RecvTensor(self, data: bytes) -> bytes:
        request = _parse(worker_pb2.RecvTensorRequest, data)
        answer = _Answer()

        def done(value: Any = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.fail(error)
            elif getattr(value, "nbytes", 0) <= _ENCODED_ON_LOOP_BYTES_MAX:
                _encode(value)
            else:
                _pool.submit(lambda: _encode(value), answer)

        def _encode(value: Any) -> None:
            try:
                answer.set(messages.recv_tensor_response(value, time.time_ns() // 1000))
            except Exception as error:
                answer.fail(_as_op_error(error))

        answer.on_cancel(self._worker.recv_tensor(request.step_id, request.rendezvous_key, done))
        return await answer

    async def MarkRecvFinished(self, _: bytes) -> bytes:
        return b""  # responses are not kept for a second request

    async def Logging(self, _: bytes) -> bytes:
        return worker_pb2.LoggingResponse().SerializeToString()

    async def Tracing(self, _: bytes) -> bytes:
        raise errors.UnimplementedError(None, None, "Tracing is not supported.")

    def _start_graph(self, request: worker_pb2.RunGraphRequest, answer: _Answer) -> None:
        keys = list(request.recv_key)

        def done(result: Any = None, error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    answer.set(_graph_response(keys, result))
                    return
                except Exception as failure:
                    error = _as_op_error(failure)
            if not request.store_errors_in_response_body:
                answer.fail(error)
                return
            response = worker_pb2.RunGraphResponse(
                status_code=status.code_of(error), status_error_message=status.encode_message(error)
            )
            answer.set(response.SerializeToString())

        cancel = self._worker.run_graph(
            request.session_handle if request.create_worker_session_called else "",
            request.graph_handle,
            request.step_id,
            list(messages.named_values(request.send).items()),
            keys,
            request.exec_opts,
            done,
            request.is_partial,
            request.is_last_partial_run,
        )
        answer.on_cancel(cancel)


class _Answer:
    """A response that another thread gives. Awaited on the loop; if the caller goes away, what was set is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[bytes] = self._loop.create_future()
        self._cancel: Callable[[], Any] | None = None
        self._gone = False

    def set(self, response: bytes) -> None:
        self._resolve(lambda: self._future.set_result(response))

    def fail(self, error: BaseException) -> None:
        self._resolve(lambda: self._future.set_exception(error))

    def on_cancel(self, cancel: Callable[[], Any] | None) -> None:
        """Has `cancel()` called when the caller goes away before the answer."""
        self._cancel = cancel
        if self._gone and cancel is not None:
            cancel()

    def __await__(self) -> Any:
        try:
            return (yield from self._future.__await__())
        except asyncio.CancelledError:
            self._gone = True
            if self._cancel is not None:
                self._cancel()
            raise

    def _resolve(self, action: Callable[[], None]) -> None:
        def resolve() -> None:
            if not self._future.done():
                action()

        if threading.current_thread() is _loop_thread:
            resolve()
            return
        self._loop.call_soon_threadsafe(resolve)


class _Pool:
    """Daemon threads that are added while all are busy and end when they have been idle. Its lock guards `_idle`."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], None], _Answer]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, function: Callable[[], None], answer: _Answer) -> None:
        """Runs `function()` soon. If it raises, that is the answer."""
        self._work.put((function, answer))
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                return
        threading.Thread(target=self._run, name="dtf-rpc", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                function, answer = self._work.get(timeout=_IDLE_THREAD_S)
            except queue.Empty:
                with self._lock:
                    if self._idle == 0:
                        continue  # something was put and counts on this thread
                    self._idle -= 1
                return
            try:
                function()
            except BaseException as error:
                answer.fail(error)
            del function, answer
            with self._lock:
                self._idle += 1


_logger = logging.getLogger("dtf")
_pool = _Pool()


async def _in_pool(call: Callable[[], Any], cancellation: CancellationManager | None = None) -> bytes:
    """The serialized message (or the bytes) that `call()` returns, run in the pool."""
    answer = _Answer()
    if cancellation is not None:
        answer.on_cancel(cancellation.start_cancel)

    def run() -> None:
        response = call()
        answer.set(response if isinstance(response, bytes) else response.SerializeToString())

    _pool.submit(run, answer)
    return await answer


def _parse(message_class: Any, data: bytes) -> Any:
    try:
        return message_class.FromString(data)
    except Exception:
        raise errors.InvalidArgumentError(None, None, f"Malformed {message_class.__name__}") from None


def _as_op_error(error: Exception) -> errors.OpError:
    if isinstance(error, errors.OpError):
        return error
    _logger.error("a request failed", exc_info=error)
    return errors.InternalError(None, None, f"{type(error).__name__}: {error}")


def _attributes(device: Device) -> device_attributes_pb2.DeviceAttributes:
    return device_attributes_pb2.DeviceAttributes(
        name=device.name,
        device_type=device.device_type,
        memory_limit=device.memory_limit,
        incarnation=device.incarnation,
        locality=device_attributes_pb2.DeviceLocality(),
    )


def _graph_response(keys: list[str], result: Any) -> bytes:
    for key in keys:
        if result.values[key] is DEAD:
            raise dead_fetch(parse_key(key).tensor_name)
    response = worker_pb2.RunGraphResponse(step_stats=result.step_stats)
    named = [(key, result.values[key]) for key in keys]
    return messages.with_named_tensors(response, worker_pb2.RunGraphResponse.RECV_FIELD_NUMBER, named)


_loop_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_loop_thread: threading.Thread | None = None


def _on_loop(coroutine: Any) -> Any:
    """Runs a coroutine on the shared loop and returns its result."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, _shared_loop()).result(_START_TIMEOUT_S)
    except FutureTimeoutError:
        raise errors.DeadlineExceededError(None, None, "The server's event loop does not answer") from None


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _loop, _loop_thread
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _loop_thread = threading.Thread(target=_loop.run_forever, name="dtf-rpc-loop", daemon=True)
            _loop_thread.start()
        return _loop
