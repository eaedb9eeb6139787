"""RemoteWorker and RemoteMaster: the interfaces of `worker` and `master` over a connection."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.message import Message

from dtf.channel.client import Channel
from dtf.rpc import MASTER_SERVICE, WORKER_SERVICE, groups, messages, push, status
from dtf.rpc.connection import Request
from dtf.rpc.discovery import Transport
from dtf.rpc.leases import Holder
from dtf.rpc.messages import Buffer
from dtf.run.exchange.retry import ask
from dtf.run.interfaces import (
    Cancel,
    Device,
    DeviceList,
    Done,
    GraphResult,
    Membership,
    PreparedResult,
    Pushed,
    StepResult,
    Value,
)
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors
from dtf.wire.pb import config_pb2, device_attributes_pb2, graph_pb2, master_pb2, tensorflow_server_pb2, worker_pb2

_Message = TypeVar("_Message", bound=Message)
_CONTROL_TIMEOUT_S = 60.0
_CLOSE_TIMEOUT_S = 15.0
_DEADLINE_SLACK_S = 2.0


class RemoteWorker:
    """The worker of another task. Calls fail at once with UnavailableError when it cannot be reached."""

    def __init__(self, connection: Transport) -> None:
        self._connection = connection
        self._holder = Holder(connection)

    def close(self) -> None:
        """Ends the connection."""
        self._holder.close()
        self._connection.close()

    def get_status(self, timeout_s: float | None = None) -> list[Device]:
        """The task's devices.

        Raises:
          FailedPreconditionError: another program serves the port.
          OpError: see `Connection.call`.
        """
        try:
            response = self._call("GetStatus", worker_pb2.GetStatusRequest(), timeout_s)
        except errors.OpError as error:
            raise self._connection.explain(error) from None
        return devices_of(messages.parse(worker_pb2.GetStatusResponse, response).device_attributes)

    def heartbeat(self, done: Done[object], timeout_s: float | None = None) -> None:
        """See `Worker.heartbeat`: GetStatus, whose answer is not read."""
        self._call_async("GetStatus", (), done, timeout_s)

    def create_worker_session(
        self,
        handle: str,
        server_def: tensorflow_server_pb2.ServerDef | None = None,
        isolate: bool = False,
        master_task: str = "",
        master_incarnation: int = 0,
    ) -> None:
        """Makes a session known to the task."""
        request = worker_pb2.CreateWorkerSessionRequest(
            session_handle=handle,
            server_def=server_def,
            isolate_session_state=isolate,
            master_task=master_task,
            master_incarnation=master_incarnation,
        )
        data = (request.SerializeToString(), self._holder.field)
        response = self._connection.call(f"/{WORKER_SERVICE}/CreateWorkerSession", data, _CONTROL_TIMEOUT_S)
        self._holder.made(handle, response)

    def delete_worker_session(self, handle: str, done: Done[object], timeout_s: float | None = None) -> None:
        """Lets the task forget a session."""
        request = worker_pb2.DeleteWorkerSessionRequest(session_handle=handle)
        self._holder.released(handle)
        self._call_async("DeleteWorkerSession", (request.SerializeToString(),), done, timeout_s)

    def register_graph(
        self,
        session_handle: str,
        graph_def: graph_pb2.GraphDef,
        graph_options: config_pb2.GraphOptions | None = None,
        config: config_pb2.ConfigProto | None = None,
    ) -> str:
        """Gives the task a partition to run; returns its handle."""
        request = worker_pb2.RegisterGraphRequest(
            session_handle=session_handle,
            create_worker_session_called=True,
            graph_def=graph_def,
            graph_options=graph_options,
            config_proto=config,
        )
        response = self._call("RegisterGraph", request, watch=True)
        return messages.parse(worker_pb2.RegisterGraphResponse, response).graph_handle

    def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        """Lets the task forget a partition."""
        request = worker_pb2.DeregisterGraphRequest(
            session_handle=session_handle, create_worker_session_called=True, graph_handle=graph_handle
        )
        self._call("DeregisterGraph", request)

    def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        sends: Sequence[tuple[str, Value]],
        recv_keys: Sequence[str],
        options: worker_pb2.ExecutorOpts | None,
        done: Done[GraphResult],
    ) -> Cancel:
        """Runs a partition; done(GraphResult) or done(error=...). Returns what cancels it."""
        request = worker_pb2.RunGraphRequest(
            session_handle=session_handle,
            create_worker_session_called=True,
            graph_handle=graph_handle,
            step_id=step_id,
            exec_opts=options or worker_pb2.ExecutorOpts(),
            recv_key=recv_keys,
            store_errors_in_response_body=True,
            request_id=_new_request_id(),
        )
        data = messages.with_named_tensors(request, worker_pb2.RunGraphRequest.SEND_FIELD_NUMBER, sends)

        def answered(response: Buffer = b"", error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    result = _graph_result(response, recv_keys)
                except errors.OpError as failure:
                    error = failure
                else:
                    done(result)
                    return
            done(error=error)

        return self._call_async("RunGraph", data, answered)

    def open_push(self, on_lost: Callable[[], None]) -> bool:
        """Whether the task can be reached over the channel; `on_lost` is called when it no longer can."""
        return self._connection.open_channel(on_lost)

    def prepare(
        self,
        run_id: int,
        session_handle: str,
        graph_handle: str,
        send_keys: Sequence[str],
        recv_keys: Sequence[str],
        tasks: Sequence[str],
        home: int = -1,
    ) -> None:
        """See `LocalWorker.prepare`. UnimplementedError also when there is no channel to the task."""
        if self._connection.channel is None:
            raise errors.UnimplementedError.of(f"{self._connection.where} has no channel")
        request = push.prepare_request(run_id, session_handle, graph_handle, send_keys, recv_keys, tasks, home)
        push.outcome_values(self._channel().call(push.PREPARE, (request,), _CONTROL_TIMEOUT_S))

    def run_prepared(self, run_id: int, step_id: int, values: Sequence[Value], done: Done[PreparedResult]) -> Cancel:
        """See `LocalWorker.run_prepared`."""

        def answered(response: Buffer = b"", error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    result = push.run_outcome(response)
                except errors.OpError as failure:
                    error = failure
                else:
                    done(result)
                    return
            done(error=error)

        return self._channel().call_async(push.RUN, push.run_request(run_id, step_id, values), answered)

    def push(self, pushed: Pushed) -> None:
        """Brings values to the task. Raises UnavailableError when there is no channel to it."""
        self._channel().tell(push.PUSH, push.push_request(pushed))

    def cleanup_graph(self, step_id: int) -> None:
        """Lets the task forget a step. Does not wait; a task that cannot be reached has forgotten it already."""
        request = worker_pb2.CleanupGraphRequest(step_id=step_id)
        self._connection.tell(f"/{WORKER_SERVICE}/CleanupGraph", (request.SerializeToString(),))

    def cleanup_all(self, containers: Sequence[str] = ()) -> None:
        """Empties resource containers; the default one if none is named."""
        self._call("CleanupAll", worker_pb2.CleanupAllRequest(container=containers))

    def recv_tensor(self, step_id: int, key: str, done: Done[Value]) -> Cancel:
        """Fetches a value from the step's rendezvous at the task: done(value) or done(error=...)."""
        request = worker_pb2.RecvTensorRequest(step_id=step_id, rendezvous_key=key, request_id=_new_request_id())

        def answered(response: Buffer = b"", error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    value = messages.received_value(response)
                except errors.OpError as malformed:
                    error = malformed
                else:
                    done(value)
                    return
            done(error=error)

        return self._call_async("RecvTensor", (request.SerializeToString(),), answered)

    def complete_group(self, group_key: int, group_size: int, device: Device, done: Done[Membership]) -> Cancel:
        """See `LocalWorker.complete_group`. UnimplementedError when the task is TensorFlow's."""
        request = worker_pb2.CompleteGroupRequest(
            group_key=group_key,
            group_size=group_size,
            device_type=device.device_type,
            device_attributes=groups.attributes(device),
        )

        def answered(response: Buffer = b"", error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    done(groups.membership(messages.parse(worker_pb2.CompleteGroupResponse, response)))
                    return
                except errors.OpError as unknown:
                    error = unknown
            done(error=error)

        return self._call_async("CompleteGroup", (request.SerializeToString(),), answered)

    def _channel(self) -> Channel:
        channel = self._connection.channel
        if channel is None or not channel.is_open:
            raise errors.UnavailableError.of(f"{self._connection.where}: the connection was lost")
        return channel

    def _call(
        self, name: str, request: Any, timeout_s: float | None = _CONTROL_TIMEOUT_S, watch: bool = False
    ) -> Buffer:
        method = f"/{WORKER_SERVICE}/{name}"
        return self._connection.call(method, (request.SerializeToString(),), None if watch else timeout_s, watch)

    def _call_async(
        self, name: str, data: Request, done: Done[Buffer], timeout_s: float | None = None
    ) -> Cancel:
        return self._connection.call_async(f"/{WORKER_SERVICE}/{name}", data, done, timeout_s)


class RemoteMaster:
    """The master of a server, as `master.Master`."""

    def __init__(self, connection: Transport) -> None:
        self._connection = connection
        self._holder = Holder(connection)
        self._callables: dict[tuple[Any, ...], int | None] = {}
        self._timeouts_ms: dict[str, int] = {}

    def create_session(
        self, graph_def: graph_pb2.GraphDef, config: config_pb2.ConfigProto | None = None, target: str = ""
    ) -> tuple[str, int]:
        """See `Master.create_session`. Waits for the server to start.

        Raises:
          DeadlineExceededError: the server did not answer within config.operation_timeout_in_ms.
          FailedPreconditionError: another program serves the port.
        """
        request = master_pb2.CreateSessionRequest(graph_def=graph_def, config=config, target=target)
        timeout_s = config.operation_timeout_in_ms / 1000 if config is not None else 0.0
        ask(self._check_server, self._connection.where, timeout_s or None)
        data = (request.SerializeToString(), self._holder.field)
        raw = self._connection.call(f"/{MASTER_SERVICE}/CreateSession", data, timeout_s or None, watch=not timeout_s)
        response = messages.parse(master_pb2.CreateSessionResponse, raw)
        self._holder.made(response.session_handle, raw)
        if config is not None and timeout_s:
            self._timeouts_ms[response.session_handle] = config.operation_timeout_in_ms
        return response.session_handle, response.graph_version

    def extend_session(self, handle: str, graph_def: graph_pb2.GraphDef, version: int) -> int:
        """See `Master.extend_session`."""
        request = master_pb2.ExtendSessionRequest(
            session_handle=handle, graph_def=graph_def, current_graph_version=version
        )
        return self._call("ExtendSession", request, master_pb2.ExtendSessionResponse).new_graph_version

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        options: config_pb2.RunOptions | None = None,
        partial_run_handle: str = "",
        request_id: int = 0,
        cancellation: CancellationManager | None = None,
    ) -> StepResult:
        """See `Master.run_step`. Interrupting the call cancels the step."""
        if options is None and not partial_run_handle:
            results = self._run_as_callable(handle, feeds, fetches, targets)
            if results is not None:
                return StepResult(results)
        options = self._with_timeout(handle, options)
        request = master_pb2.RunStepRequest(
            session_handle=handle,
            fetch=fetches,
            target=targets,
            options=options or config_pb2.RunOptions(),
            partial_run_handle=partial_run_handle,
            store_errors_in_response_body=True,
            request_id=request_id or _new_request_id(),
        )
        data = messages.with_named_tensors(request, master_pb2.RunStepRequest.FEED_FIELD_NUMBER, feeds.items())
        timeout_s = options.timeout_in_ms / 1000 if options is not None else 0.0
        raw = self._connection.call(
            f"/{MASTER_SERVICE}/RunStep", data, timeout_s + _DEADLINE_SLACK_S if timeout_s else None, watch=True
        )
        response, tensors = messages.parse_apart(
            master_pb2.RunStepResponse, master_pb2.RunStepResponse.TENSOR_FIELD_NUMBER, raw
        )
        if response.status_code:
            raise status.decode(response.status_code, response.status_error_message)
        found = messages.named_values(tensors)
        values = [_required(found, name) for name in fetches]
        return StepResult(values, response.metadata if options is not None else None)

    def _run_as_callable(
        self, handle: str, feeds: Mapping[str, Value], fetches: Sequence[str], targets: Sequence[str]
    ) -> list[Value] | None:
        """Runs a signature that has been run before as a callable, over the channel; None if that is impossible."""
        channel = self._connection.channel
        if channel is None or not channel.check():
            return None
        signature = (handle, tuple(feeds), tuple(fetches), tuple(targets))
        callable_handle = self._callables.get(signature)
        if callable_handle is None:
            if signature not in self._callables:
                self._callables[signature] = None
                return None
            options = config_pb2.CallableOptions(feed=feeds, fetch=fetches, target=targets)
            callable_handle = self._callables[signature] = self.make_callable(handle, options)
        request = push.callable_request(handle, callable_handle, list(feeds.values()))
        return push.outcome_values(channel.call(push.RUN_CALLABLE, request, watch=True))

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], request_id: int = 0
    ) -> str:
        """See `Master.partial_run_setup`."""
        request = master_pb2.PartialRunSetupRequest(
            session_handle=handle,
            feed=feeds,
            fetch=fetches,
            target=targets,
            request_id=request_id or _new_request_id(),
        )
        return self._call("PartialRunSetup", request, master_pb2.PartialRunSetupResponse).partial_run_handle

    def make_callable(self, handle: str, options: config_pb2.CallableOptions, request_id: int = 0) -> int:
        """See `Master.make_callable`."""
        request = master_pb2.MakeCallableRequest(
            session_handle=handle, options=options, request_id=request_id or _new_request_id()
        )
        return self._call("MakeCallable", request, master_pb2.MakeCallableResponse).handle

    def run_callable(
        self, handle: str, callable_handle: int, feeds: Sequence[Value], request_id: int = 0
    ) -> StepResult:
        """See `Master.run_callable`. Interrupting the call cancels the step."""
        request = master_pb2.RunCallableRequest(
            session_handle=handle, handle=callable_handle, request_id=request_id or _new_request_id()
        )
        data = messages.with_tensors(request, master_pb2.RunCallableRequest.FEED_FIELD_NUMBER, feeds)
        raw = self._connection.call(f"/{MASTER_SERVICE}/RunCallable", data, watch=True)
        response, fetches = messages.parse_apart(
            master_pb2.RunCallableResponse, master_pb2.RunCallableResponse.FETCH_FIELD_NUMBER, raw
        )
        metadata = response.metadata if response.HasField("metadata") else None
        return StepResult(messages.values(fetches), metadata)

    def release_callable(self, handle: str, callable_handle: int) -> None:
        """See `Master.release_callable`."""
        request = master_pb2.ReleaseCallableRequest(session_handle=handle, handle=callable_handle)
        self._call("ReleaseCallable", request, master_pb2.ReleaseCallableResponse)

    def close_session(self, handle: str) -> None:
        """See `Master.close_session`."""
        self._holder.released(handle)
        request = master_pb2.CloseSessionRequest(session_handle=handle)
        self._call("CloseSession", request, master_pb2.CloseSessionResponse, _CLOSE_TIMEOUT_S)

    def list_devices(self, handle: str = "") -> DeviceList:
        """See `Master.list_devices`."""
        request = master_pb2.ListDevicesRequest(session_handle=handle)
        response = self._call("ListDevices", request, master_pb2.ListDevicesResponse)
        return DeviceList(tuple(devices_of(response.local_device)), tuple(devices_of(response.remote_device)))

    def reset(self, containers: Sequence[str] = (), device_filters: Sequence[str] = ()) -> None:
        """See `Master.reset`."""
        request = master_pb2.ResetRequest(container=containers, device_filters=device_filters)
        self._call("Reset", request, master_pb2.ResetResponse)

    def close(self) -> None:
        """Ends the connection."""
        self._holder.close()
        self._connection.close()

    def _with_timeout(self, handle: str, options: config_pb2.RunOptions | None) -> config_pb2.RunOptions | None:
        """The options with the session's timeout as default; TensorFlow's master leaves the timeout to the client."""
        timeout_ms = self._timeouts_ms.get(handle)
        if not timeout_ms or (options is not None and options.timeout_in_ms):
            return options
        limited = config_pb2.RunOptions(timeout_in_ms=timeout_ms)
        if options is not None:
            limited.MergeFrom(options)
        return limited

    def _check_server(self, timeout_s: float) -> None:
        RemoteWorker(self._connection).get_status(timeout_s)

    def _call(
        self, name: str, request: Message, response_class: type[_Message], timeout_s: float | None = None
    ) -> _Message:
        raw = self._connection.call(
            f"/{MASTER_SERVICE}/{name}", (request.SerializeToString(),), timeout_s, watch=timeout_s is None
        )
        return messages.parse(response_class, raw)


def devices_of(attributes: Sequence[device_attributes_pb2.DeviceAttributes]) -> list[Device]:
    """Devices as a task reports them."""
    return [
        Device(each.name, each.device_type, each.memory_limit, each.incarnation, each.physical_device_desc)
        for each in attributes
    ]


def _graph_result(response: Buffer, recv_keys: Sequence[str]) -> GraphResult:
    message, tensors = messages.parse_apart(
        worker_pb2.RunGraphResponse, worker_pb2.RunGraphResponse.RECV_FIELD_NUMBER, response
    )
    if message.status_code:
        raise status.decode(message.status_code, message.status_error_message)
    found = messages.named_values(tensors)
    return GraphResult(
        {key: _required(found, key) for key in recv_keys},
        message.step_stats if message.HasField("step_stats") else None,
    )


def _required(found: Mapping[str, Any], name: str) -> Any:
    try:
        return found[name]
    except KeyError:
        raise errors.InternalError.of(f"The response has no value for {name}.") from None


def _new_request_id() -> int:
    return secrets.randbits(62) + 1
