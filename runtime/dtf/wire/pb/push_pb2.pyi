from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class PushPrepareRequest(_message.Message):
    __slots__ = ("version", "run_id", "session_handle", "graph_handle", "send_keys", "recv_keys", "tasks", "home")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_HANDLE_FIELD_NUMBER: _ClassVar[int]
    GRAPH_HANDLE_FIELD_NUMBER: _ClassVar[int]
    SEND_KEYS_FIELD_NUMBER: _ClassVar[int]
    RECV_KEYS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    version: int
    run_id: int
    session_handle: str
    graph_handle: str
    send_keys: _containers.RepeatedScalarFieldContainer[str]
    recv_keys: _containers.RepeatedScalarFieldContainer[str]
    tasks: _containers.RepeatedScalarFieldContainer[str]
    home: int
    def __init__(self, version: _Optional[int] = ..., run_id: _Optional[int] = ..., session_handle: _Optional[str] = ..., graph_handle: _Optional[str] = ..., send_keys: _Optional[_Iterable[str]] = ..., recv_keys: _Optional[_Iterable[str]] = ..., tasks: _Optional[_Iterable[str]] = ..., home: _Optional[int] = ...) -> None: ...
