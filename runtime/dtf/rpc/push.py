"""Requests between dtf tasks and clients only: pushed steps, and callables without protobuf.

Owns their layout, from both ends. Pushes use only the channel; peers without one are served by TensorFlow's protocol.

    Prepare      PushPrepareRequest (protos/dtf/push.proto) -> nothing
    Run          run id, step id, values -> outcome, values, and the last values pushed to the caller
    Push         run id, step id, source, values tagged with their keys' numbers; no answer
    RunCallable  session, callable, values -> outcome, values

Values have the layout of `tensor_frames`. An outcome is a status code, 0 for success, and whether the error is derived;
an error's message takes the place of values.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from dtf.channel.listener import Answer, Method
from dtf.rpc import messages
from dtf.rpc.messages import Buffer
from dtf.rpc.methods import as_op_error
from dtf.run.interfaces import PreparedResult, Pushed, Rest, ServingMaster, ServingWorker, StepResult
from dtf.run.kernels import DEAD
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors, tensor_frames
from dtf.wire.pb import push_pb2

SERVICE = "dtf.Direct"
PREPARE, RUN, PUSH, RUN_CALLABLE = (f"/{SERVICE}/{name}" for name in ("Prepare", "Run", "Push", "RunCallable"))

_RUN = struct.Struct("<QQ")
_PUSH = struct.Struct("<QQQQ")
_CALL = struct.Struct("<QQ")
_OUTCOME = struct.Struct("<II8x")
_PUSHED = 1 << 31
"""Added to the tags of values that are pushed with an answer."""


VERSION = 1
"""Of the layout of Run and Push; it changes with them, and a task of another version is spoken to by gRPC."""


def prepare_request(
    run_id: int,
    session_handle: str,
    graph_handle: str,
    send_keys: Sequence[str],
    recv_keys: Sequence[str],
    tasks: Sequence[str],
    home: int,
) -> bytes:
    """The arguments of `LocalWorker.prepare`."""
    return push_pb2.PushPrepareRequest(
        version=VERSION,
        run_id=run_id,
        session_handle=session_handle,
        graph_handle=graph_handle,
        send_keys=send_keys,
        recv_keys=recv_keys,
        tasks=tasks,
        home=home,
    ).SerializeToString()


def run_request(run_id: int, step_id: int, values: Sequence[Any]) -> list[Buffer]:
    """The arguments of `LocalWorker.run_prepared`."""
    return [_RUN.pack(run_id, step_id), *_packed(values)]


def push_request(pushed: Pushed) -> list[Buffer]:
    """Values for another task."""
    head = _PUSH.pack(pushed.run_id, pushed.step_id, pushed.source, 0)
    tags: Sequence[Any] = pushed.keys
    labels = [key for key in tags if type(key) is str]
    if labels:
        tags = [tensor_frames.LABELLED if type(key) is str else key for key in tags]
    return [head, *tensor_frames.pack(pushed.values, tags, labels, DEAD)]


def callable_request(session_handle: str, callable_handle: int, values: Sequence[Any]) -> list[Buffer]:
    """The arguments of `Master.run_callable`."""
    return [_CALL.pack(int(session_handle, 16), callable_handle), *tensor_frames.pack(values)]


def outcome_values(response: Buffer) -> list[Any]:
    """The values of a response. Raises the error that it contains."""
    code, derived = _OUTCOME.unpack_from(response)
    if code:
        error = errors.error_from_code(code, bytes(response[_OUTCOME.size :]).decode("utf-8", "replace"))
        error.derived = bool(derived)
        raise error
    return _unpacked(response, _OUTCOME.size)


def run_outcome(response: Buffer) -> PreparedResult:
    """The values of a response to Run, and the values pushed with it. Raises the error that it contains."""
    if response == _OK:
        return PreparedResult(())
    code, _ = _OUTCOME.unpack_from(response)
    if code:
        return PreparedResult(outcome_values(response))
    values, tags, _ = tensor_frames.unpack_tagged(response, _OUTCOME.size, DEAD)
    if not tags or tags[-1] < _PUSHED:
        return PreparedResult(values)
    first = 0 if tags[0] >= _PUSHED else next(place for place, tag in enumerate(tags) if tag >= _PUSHED)
    return PreparedResult(values[:first], ([tag - _PUSHED for tag in tags[first:]], values[first:]))


def methods(master: ServingMaster, worker: ServingWorker) -> dict[str, Method]:
    """The methods by name, for the channel."""
    owner = _PushMethods(master, worker)
    return {
        PREPARE: owner.prepare, RUN: owner.run, PUSH: owner.push, RUN_CALLABLE: owner.run_callable,
    }  # fmt: skip


class _PushMethods:
    def __init__(self, master: ServingMaster, worker: ServingWorker) -> None:
        self._master = master
        self._worker = worker

    def prepare(self, data: Buffer, answer: Answer) -> None:
        def call() -> list[Buffer]:
            request = messages.parse(push_pb2.PushPrepareRequest, data)
            if request.version != VERSION:
                raise errors.UnimplementedError.of(
                    f"This task speaks push protocol version {VERSION}, but the master's is {request.version}."
                )
            self._worker.prepare(
                request.run_id,
                request.session_handle,
                request.graph_handle,
                list(request.send_keys),
                list(request.recv_keys),
                list(request.tasks),
                request.home,
            )
            return []

        answer.work(_answer, call, answer)

    def run_callable(self, data: Buffer, answer: Answer) -> None:
        def done(result: StepResult | None = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.set(_failure(error))
            else:
                assert result is not None
                _answer(lambda: _packed(result.values), answer)

        try:
            session, handle = _head(_CALL, data)
            values = tensor_frames.unpack(data, _CALL.size)
            self._master.start_callable(f"{session:016x}", handle, values, answer.on_cancel, done)
        except Exception as error:
            answer.set(_failure(as_op_error(error, answer.peer)))

    def run(self, data: Buffer, answer: Answer) -> None:
        def done(result: PreparedResult | None = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                answer.set(_failure(error))
            else:
                assert result is not None
                _answer(lambda: _packed(result.values, result.rest), answer)

        try:
            run_id, step_id = _head(_RUN, data)
            values = _unpacked(data, _RUN.size)
            cancellation = CancellationManager()
            answer.on_cancel(functools.partial(self._worker.stop_step, step_id, cancellation))
            self._worker.run_prepared(run_id, step_id, values, done, cancellation)
        except Exception as error:
            answer.set(_failure(as_op_error(error, answer.peer)))

    def push(self, data: Buffer, answer: Answer) -> None:
        run_id, step_id, source, _ = _head(_PUSH, data)
        values, tags, labels = tensor_frames.unpack_tagged(data, _PUSH.size, DEAD)
        if tags.count(tensor_frames.LABELLED) != len(labels):
            raise errors.InvalidArgumentError.of(f"Malformed push: {len(labels)} labels for other tags.")
        keys: Sequence[int | str] = tags
        if labels:
            names = iter(labels)
            keys = [next(names) if tag == tensor_frames.LABELLED else tag for tag in tags]
        self._worker.push(Pushed(run_id, step_id, source, keys, values))


def _head(layout: struct.Struct, data: Buffer) -> tuple[Any, ...]:
    """The numbers at the beginning of a message. Raises InvalidArgumentError."""
    if len(data) < layout.size:
        raise errors.InvalidArgumentError.of(
            f"Malformed message: {len(data)} bytes, and its header needs {layout.size}."
        )
    return layout.unpack_from(data)


def _packed(values: Sequence[Any], rest: Rest | None = None) -> list[Buffer]:
    """Encodes values and the values pushed with them; empty if there are no values."""
    if rest is None:
        return tensor_frames.pack(values) if values else []
    numbers, pushed = rest
    tags = [*range(len(values)), *[_PUSHED + number for number in numbers]]
    return tensor_frames.pack([*values, *pushed], tags, (), DEAD)


def _unpacked(data: Buffer, at: int) -> list[Any]:
    """The values that follow a head of `at` bytes, if any do."""
    return tensor_frames.unpack(data, at) if len(data) > at else []


def _answer(call: Callable[[], list[Buffer]], answer: Answer) -> None:
    try:
        pieces = call()
    except Exception as error:
        answer.set(_failure(as_op_error(error, answer.peer)))
    else:
        answer.set([_OK, *pieces])


def _failure(error: errors.OpError) -> list[Buffer]:
    return [_OUTCOME.pack(error.error_code, error.derived), error.message.encode()]


_OK = _OUTCOME.pack(0, 0)
