from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class RecvBufRespExtra(_message.Message):
    __slots__ = ("tensor_content",)
    TENSOR_CONTENT_FIELD_NUMBER: _ClassVar[int]
    tensor_content: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, tensor_content: _Optional[_Iterable[bytes]] = ...) -> None: ...
