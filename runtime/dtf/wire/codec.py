"""Tensors and attributes between Python, protobuf and bytes.

Three directions, each with the layouts that TensorFlow writes and reads:

    python values <-> TensorProto    make_tensor_proto, make_ndarray    (constants, attributes: reads well as text)
    arrays        <-> TensorProto    array_to_proto, proto_to_array     (feeds, fetches: no loops over elements)
    arrays        <-> bytes          encode_*, decode_*                 (RecvTensor: no protobuf on tensor bytes)

and AttrValue <-> Python values: attr_to_python, python_to_attr.

Numbers are row-major and little-endian. Strings are object arrays of `bytes`, also when scalar. A scalar of type
resource is a `ResourceHandle`, one of type variant a `TensorList` or `Optional`, or the protobuf message of anything
else; arrays of them are object arrays. What is decoded may share the memory of the message and is read-only, but for
make_ndarray, whose result is the caller's own.

    python_values ... Python values as arrays, with TensorFlow's dtypes
    tensor_proto .... TensorProto, every layout
    tensor_bytes .... the bytes of tensors and of RecvTensorResponse, by hand
    attr_values ..... AttrValue
    protobuf_bytes .. varints and fields

This module gathers the names. Graphs and messages are converted in graph and importer; rpc sends.
"""

from __future__ import annotations

from dtf.wire.attr_values import attr_to_python, python_to_attr
from dtf.wire.protobuf_bytes import Buffer, length_delimited, message_fields
from dtf.wire.python_values import ResourceHandle, values_to_array
from dtf.wire.tensor_bytes import (
    BY_HAND_FROM_BYTES,
    ReceivedTensor,
    decode_recv_tensor_response,
    decode_tensor,
    encode_recv_tensor_response,
    encode_tensor,
    plain_response_value,
)
from dtf.wire.tensor_proto import array_to_proto, make_ndarray, make_tensor_proto, proto_to_array, repeated_bytes

__all__ = [
    "BY_HAND_FROM_BYTES", "Buffer", "ReceivedTensor", "ResourceHandle", "array_to_proto", "attr_to_python",
    "decode_recv_tensor_response", "decode_tensor", "encode_recv_tensor_response", "encode_tensor",
    "length_delimited", "make_ndarray", "make_tensor_proto", "message_fields", "plain_response_value",
    "proto_to_array", "python_to_attr", "repeated_bytes", "values_to_array",
]  # fmt: skip
