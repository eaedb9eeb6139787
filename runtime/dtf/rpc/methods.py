"""The methods of tensorflow.MasterService and tensorflow.WorkerService, independent of the transport.

Owns what requests and responses mean. A method gets the request's bytes and an answer, which it sets or fails now or
later, from any thread; it returns soon. A waiting RecvTensor holds no thread. Methods that compute or wait run in a
pool that grows while its threads are busy, so waiting steps never block another call.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from dtf.channel.listener import Answer, Method
from dtf.rpc import MASTER_SERVICE, WORKER_SERVICE, groups, messages, status
from dtf.rpc.leases import HOLD, Leases, client_in, hold_method, with_mark
from dtf.rpc.messages import Buffer
from dtf.rpc.peer_sessions import PeerSessions
from dtf.run.exchange.push import dead_fetch
from dtf.run.exchange.rendezvous import parse_key
from dtf.run.interfaces import Device, GraphResult, Membership, ServingMaster, ServingWorker, StepResult, Value
from dtf.run.kernels import DEAD
from dtf.run.lib import rate_limited_log
from dtf.run.passes import parse_tensor_name
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.request_ids import RecentRequestIds
from dtf.wire import errors, task_reports
from dtf.wire.pb import config_pb2, device_attributes_pb2, master_pb2, worker_pb2
from dtf.wire.task_notes import notes

_STRINGS_ENCODED_AT_ONCE_MAX = 1000
_REQUESTS_REMEMBERED_MAX = 100_000


def methods(
    master: ServingMaster, worker: ServingWorker, status_tail: bytes, leases: tuple[Leases, Leases]
) -> dict[str, Method]:
    """The methods by name, "/service/method". `status_tail` is appended to the response of GetStatus; `leases` belong
    to the master's sessions and to the worker's.
    """
    of_master, of_worker = leases
    table: dict[str, Method] = {HOLD: hold_method(*leases)}
    owners = (
        (MASTER_SERVICE, _MasterMethods(master, of_master)),
        (WORKER_SERVICE, _WorkerMethods(worker, status_tail, of_worker)),
    )
    for service, owner in owners:
        for name, method in vars(type(owner)).items():
            if not name.startswith("_"):
                table[f"/{service}/{name}"] = method.__get__(owner)
    return table


def as_op_error(error: BaseException, peer: str = "") -> errors.OpError:
    """The error to send to `peer`; an exception that is not an OpError is a bug, and is logged."""
    if isinstance(error, errors.OpError):
        return error
    rate_limited_log.shared.warn(
        "failed requests", "a request of %s failed: %s: %s (%s)", peer or "a peer", type(error).__name__, error,
        rate_limited_log.place_of(error),
    )  # fmt: skip
    return errors.InternalError.of(f"{type(error).__name__}: {error}")


class _MasterMethods:
    """tensorflow.MasterService."""

    def __init__(self, master: ServingMaster, leases: Leases) -> None:
        self._master = master
        self._leases = leases
        self._of_peers = PeerSessions(lambda handle: master.has_session(handle))

    def CreateSession(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(master_pb2.CreateSessionRequest, data)
            client = client_in(data)
            self._of_peers.check(answer.peer)
            handle, version = self._master.create_session(request.graph_def, request.config, request.target)
            self._of_peers.opened(answer.peer, handle)
            if client:
                self._leases.grant(client, handle)
            response = master_pb2.CreateSessionResponse(session_handle=handle, graph_version=version)
            return [response.SerializeToString(), *with_mark(client)]

        _at_leisure(call, answer)

    def ExtendSession(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(master_pb2.ExtendSessionRequest, data)
            version = self._master.extend_session(
                request.session_handle, request.graph_def, request.current_graph_version
            )
            return master_pb2.ExtendSessionResponse(new_graph_version=version)

        _at_leisure(call, answer)

    def RunStep(self, data: Buffer, answer: Answer) -> None:
        cancellation = CancellationManager()

        def call() -> Any:
            request, feeds = messages.parse_apart(
                master_pb2.RunStepRequest, master_pb2.RunStepRequest.FEED_FIELD_NUMBER, data
            )
            try:
                return self._run_step(request, feeds, cancellation)
            except errors.OpError as error:
                if not request.store_errors_in_response_body:
                    raise
                return master_pb2.RunStepResponse(
                    status_code=status.code_of(error), status_error_message=error.message
                )

        answer.on_cancel(cancellation.start_cancel)
        _at_leisure(call, answer)

    def PartialRunSetup(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(master_pb2.PartialRunSetupRequest, data)
            handle = self._master.partial_run_setup(
                request.session_handle,
                list(request.feed),
                list(request.fetch),
                list(request.target),
                request.request_id,
            )
            return master_pb2.PartialRunSetupResponse(partial_run_handle=handle)

        _at_leisure(call, answer)

    def CloseSession(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            handle = messages.parse(master_pb2.CloseSessionRequest, data).session_handle
            self._leases.forget(handle)
            self._master.close_session(handle)
            return master_pb2.CloseSessionResponse()

        _at_leisure(call, answer)

    def ListDevices(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            found = self._master.list_devices(messages.parse(master_pb2.ListDevicesRequest, data).session_handle)
            return master_pb2.ListDevicesResponse(
                local_device=map(_attributes, found.local), remote_device=map(_attributes, found.remote)
            )

        _at_leisure(call, answer)

    def Reset(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(master_pb2.ResetRequest, data)
            self._master.reset(list(request.container), list(request.device_filters))
            return master_pb2.ResetResponse()

        _at_leisure(call, answer)

    def MakeCallable(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(master_pb2.MakeCallableRequest, data)
            handle = self._master.make_callable(request.session_handle, request.options, request.request_id)
            return master_pb2.MakeCallableResponse(handle=handle)

        _at_leisure(call, answer)

    def RunCallable(self, data: Buffer, answer: Answer) -> None:
        def done(result: StepResult | None = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.fail(error)
            else:
                assert result is not None
                _at_leisure(lambda: respond(result), answer)

        def respond(result: StepResult) -> list[Buffer]:
            response = master_pb2.RunCallableResponse(metadata=result.metadata)
            return messages.with_tensors(response, master_pb2.RunCallableResponse.FETCH_FIELD_NUMBER, result.values)

        def start() -> None:
            try:
                request, tensors = messages.parse_apart(
                    master_pb2.RunCallableRequest, master_pb2.RunCallableRequest.FEED_FIELD_NUMBER, data
                )
                session, feeds = request.session_handle, messages.values(tensors)
                self._master.start_callable(session, request.handle, feeds, answer.on_cancel, done, request.request_id)
            except Exception as error:
                answer.fail(as_op_error(error, answer.peer))

        answer.work(start)

    def ReleaseCallable(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(master_pb2.ReleaseCallableRequest, data)
            self._master.release_callable(request.session_handle, request.handle)
            return master_pb2.ReleaseCallableResponse()

        _at_leisure(call, answer)

    def _run_step(
        self, request: master_pb2.RunStepRequest, feeds: list[Any], cancellation: CancellationManager
    ) -> list[Buffer]:
        fetches = list(request.fetch)
        options = request.options if request.options != config_pb2.RunOptions() else None
        given = messages.named_values(feeds)
        if len(given) < len(feeds):
            raise errors.InvalidArgumentError.of("A tensor is fed more than once.")
        values, metadata = self._master.run_step(
            request.session_handle,
            given,
            fetches,
            [parse_tensor_name(target)[0] for target in request.target],
            options,
            request.partial_run_handle,
            request.request_id,
            cancellation,
        )
        response = master_pb2.RunStepResponse(metadata=metadata or config_pb2.RunMetadata())
        named = zip(fetches, values, strict=True)
        return messages.with_named_tensors(response, master_pb2.RunStepResponse.TENSOR_FIELD_NUMBER, named)


class _WorkerMethods:
    """tensorflow.WorkerService."""

    def __init__(self, worker: ServingWorker, status_tail: bytes, leases: Leases) -> None:
        self._worker = worker
        self._leases = leases
        self._of_peers = PeerSessions(lambda handle: worker.has_session(handle))
        self._status_tail = status_tail
        self._request_ids = RecentRequestIds(_REQUESTS_REMEMBERED_MAX)

    def GetStatus(self, data: Buffer, answer: Answer) -> None:
        response = worker_pb2.GetStatusResponse(device_attributes=map(_attributes, self._worker.get_status()))
        status = response.SerializeToString()
        if not len(data):
            answer.set((status, self._status_tail, notes.report()))
            return
        request = bytes(data)
        notes.ask(request)
        # A report may take a while to be put together: the thread that reads requests has others to read.
        answer.work(
            lambda: answer.set((status, self._status_tail, notes.report(), task_reports.answer(request)))
        )

    def CreateWorkerSession(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(worker_pb2.CreateWorkerSessionRequest, data)
            self._of_peers.check(answer.peer)
            self._worker.create_worker_session(
                request.session_handle,
                request.server_def,
                request.isolate_session_state,
                request.master_task,
                request.master_incarnation,
            )
            self._of_peers.opened(answer.peer, request.session_handle)
            client = client_in(data)
            if client:
                self._leases.grant(client, request.session_handle)
            return [worker_pb2.CreateWorkerSessionResponse().SerializeToString(), *with_mark(client)]

        _at_leisure(call, answer)

    def DeleteWorkerSession(self, data: Buffer, answer: Answer) -> None:
        def done(_: object = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.fail(error)
            else:
                answer.set((worker_pb2.DeleteWorkerSessionResponse().SerializeToString(),))

        def call() -> None:
            try:
                request = messages.parse(worker_pb2.DeleteWorkerSessionRequest, data)
                self._leases.forget(request.session_handle)
                self._worker.delete_worker_session(request.session_handle, done)
            except Exception as error:
                answer.fail(as_op_error(error, answer.peer))

        answer.work(call)

    def RegisterGraph(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(worker_pb2.RegisterGraphRequest, data)
            handle = self._worker.register_graph(
                request.session_handle if request.create_worker_session_called else "",
                request.graph_def,
                request.graph_options,
                request.config_proto,
            )
            return worker_pb2.RegisterGraphResponse(graph_handle=handle)

        _at_leisure(call, answer)

    def DeregisterGraph(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            request = messages.parse(worker_pb2.DeregisterGraphRequest, data)
            session = request.session_handle if request.create_worker_session_called else ""
            self._worker.deregister_graph(session, request.graph_handle)
            return worker_pb2.DeregisterGraphResponse()

        _at_leisure(call, answer)

    def RunGraph(self, data: Buffer, answer: Answer) -> None:
        answer.work(self._start_graph, data, answer)

    def CleanupGraph(self, data: Buffer, answer: Answer) -> None:
        self._worker.cleanup_graph(messages.parse(worker_pb2.CleanupGraphRequest, data).step_id)
        answer.set(())

    def CleanupAll(self, data: Buffer, answer: Answer) -> None:
        def call() -> Any:
            self._worker.cleanup_all(list(messages.parse(worker_pb2.CleanupAllRequest, data).container))
            return worker_pb2.CleanupAllResponse()

        _at_leisure(call, answer)

    def RecvTensor(self, data: Buffer, answer: Answer) -> None:
        request = messages.parse(worker_pb2.RecvTensorRequest, data)
        self._request_ids.check(request.request_id, "RecvTensor (Worker)")

        def done(value: Value = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.fail(error)
            elif isinstance(value, ndarray) and value.size > _STRINGS_ENCODED_AT_ONCE_MAX and value.dtype.hasobject:
                growing_pool.submit(_encode, value)
            else:
                _encode(value)

        def _encode(value: Any) -> None:
            try:
                answer.set(messages.recv_tensor_response(value, time.time_ns() // 1000))
            except Exception as error:
                answer.fail(as_op_error(error, answer.peer))

        answer.on_cancel(self._worker.recv_tensor(request.step_id, request.rendezvous_key, done))

    def MarkRecvFinished(self, _: Buffer, answer: Answer) -> None:
        answer.set(())  # responses are not kept for a second request

    def Logging(self, _: Buffer, answer: Answer) -> None:
        answer.set((worker_pb2.LoggingResponse().SerializeToString(),))

    def Tracing(self, _: Buffer, answer: Answer) -> None:
        raise errors.UnimplementedError.of("Tracing is not supported; ask for it step by step in RunOptions.")

    def GetStepSequence(self, data: Buffer, answer: Answer) -> None:
        request = messages.parse(worker_pb2.GetStepSequenceRequest, data)
        response = worker_pb2.GetStepSequenceResponse()
        for key, step_id in self._worker.step_sequence(list(request.graph_key)).items():
            response.step_sequence.add(graph_key=key, next_step_id=step_id)
        answer.set((response.SerializeToString(),))

    def CompleteGroup(self, data: Buffer, answer: Answer) -> None:
        request = messages.parse(worker_pb2.CompleteGroupRequest, data)
        try:
            member = groups.member(request)
        except errors.UnimplementedError as error:
            self._worker.refuse_group(request.group_key, error)
            raise

        def done(found: Membership | None = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.fail(error)
            else:
                assert found is not None
                answer.set((groups.response(request, found).SerializeToString(),))

        answer.on_cancel(self._worker.complete_group(request.group_key, request.group_size, member, done))

    def CompleteInstance(self, _: Buffer, answer: Answer) -> None:
        raise errors.UnimplementedError.of(groups.NO_MIXED_RINGS)

    def RecvBuf(self, _: Buffer, answer: Answer) -> None:
        raise errors.UnimplementedError.of(groups.NO_MIXED_RINGS)

    def _start_graph(self, data: Buffer, answer: Answer) -> None:
        try:
            self._run_graph(data, answer)
        except Exception as error:
            answer.fail(as_op_error(error, answer.peer))

    def _run_graph(self, data: Buffer, answer: Answer) -> None:
        request, sends = messages.parse_apart(
            worker_pb2.RunGraphRequest, worker_pb2.RunGraphRequest.SEND_FIELD_NUMBER, data
        )
        keys = list(request.recv_key)
        self._request_ids.check(request.request_id, "RunGraph (Worker)")
        values = messages.named_values(sends)
        for key in (*keys, *values):
            parse_key(key)

        def done(result: GraphResult | None = None, error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    answer.set(_graph_response(keys, result))
                    return
                except Exception as failure:
                    error = as_op_error(failure, answer.peer)
            if not request.store_errors_in_response_body:
                answer.fail(error)
                return
            response = worker_pb2.RunGraphResponse(
                status_code=status.code_of(error), status_error_message=status.encode_message(error)
            )
            answer.set((response.SerializeToString(),))

        cancellation = CancellationManager()
        answer.on_cancel(functools.partial(self._worker.stop_step, request.step_id, cancellation))
        cancel = self._worker.run_graph(
            request.session_handle if request.create_worker_session_called else "",
            request.graph_handle,
            request.step_id,
            list(values.items()),
            keys,
            request.exec_opts,
            done,
            request.is_partial,
            request.is_last_partial_run,
            cancellation,
        )
        if request.is_partial:  # an earlier call began it
            answer.on_cancel(cancel)


def _attributes(device: Device) -> device_attributes_pb2.DeviceAttributes:
    return device_attributes_pb2.DeviceAttributes(
        name=device.name,
        device_type=device.device_type,
        memory_limit=device.memory_limit,
        incarnation=device.incarnation,
        locality=device_attributes_pb2.DeviceLocality(),
        physical_device_desc=device.description,
    )


def _graph_response(keys: list[str], result: Any) -> list[Buffer]:
    for key in keys:
        if result.values[key] is DEAD:
            raise dead_fetch(parse_key(key).tensor_name)
    response = worker_pb2.RunGraphResponse(step_stats=result.step_stats)
    if result.graph_def is not None:
        response.partition_graph.append(result.graph_def)
    named = [(key, result.values[key]) for key in keys]
    return messages.with_named_tensors(response, worker_pb2.RunGraphResponse.RECV_FIELD_NUMBER, named)


def _at_leisure(call: Callable[[], Any], answer: Answer) -> None:
    """Answers with the message (or the pieces of one) that `call()` returns; it may take long or wait."""

    def run() -> None:
        try:
            response = call()
            answer.set(response if isinstance(response, list) else (response.SerializeToString(),))
        except Exception as error:
            answer.fail(as_op_error(error, answer.peer))

    answer.work(run)
