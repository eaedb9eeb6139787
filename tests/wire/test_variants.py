"""Tensor lists and optionals on the wire, against the bytes of TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.wire import codec, dtypes, errors
from dtf.wire.pb import tensor_pb2
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.variants import Optional, TensorList

# What TensorFlow's master answers when such lists are fetched: one length, then the message.
GOLDEN = {
    "two vectors": (
        TensorList(
            dtypes.float32, TensorShape([2]), (np.array([1, 2], np.float32), np.array([3, 4], np.float32))
        ),
        b"R\n\026tensorflow::TensorList\022\020\000\001\377\377\377\377\377\377\377\377\377\001\022\002\010\002"
        b"\032\022\010\001\022\004\022\002\010\002*\010\000\000\200?\000\000\000@"
        b"\032\022\010\001\022\004\022\002\010\002*\010\000\000@@\000\000\200@",
    ),
    "one of three is set": (
        TensorList(dtypes.int32, TensorShape(None), (None, np.array([5, 6, 7], np.int32), None)),
        b"9\n\026tensorflow::TensorList\022\020\002\000\002\003\377\377\377\377\377\377\377\377\377\001\030\001"
        b"\032\r\010\003\022\004\022\002\010\003:\003\005\006\007",
    ),
    "strings": (
        TensorList(dtypes.string, TensorShape([None, 3]), (np.array([[b"a", b"b", b"c"]], object),), 7),
        b"E\n\026tensorflow::TensorList\022\024\000\007\007\022\013\010\377\377\377\377\377\377\377\377\377\001"
        b"\022\002\010\003\032\025\010\007\022\010\022\002\010\001\022\002\010\003B\001aB\001bB\001c",
    ),
}


def assert_same(found: TensorList, wanted: TensorList) -> None:
    assert (found.dtype, found.max_num_elements) == (wanted.dtype, wanted.max_num_elements)
    assert found.element_shape == wanted.element_shape or found.element_shape.ndims is wanted.element_shape.ndims
    assert len(found.values) == len(wanted.values)
    for ours, theirs in zip(found.values, wanted.values, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_list_of_tensorflow_is_read(name):
    wanted, content = GOLDEN[name]
    proto = tensor_pb2.TensorProto(dtype=dtypes.variant.as_datatype_enum, tensor_content=content)  # type: ignore
    assert_same(codec.proto_to_array(proto), wanted)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_list_survives_the_wire(name):
    wanted, content = GOLDEN[name]
    proto = tensor_pb2.VariantTensorDataProto.FromString(content[1:])
    assert wanted.to_proto(codec.array_to_proto).metadata == proto.metadata
    pieces = codec.encode_recv_tensor_response(wanted)
    assert_same(codec.decode_recv_tensor_response(b"".join(pieces)).value, wanted)


@pytest.mark.parametrize("metadata", [b"", b"\x05", b"\x01\x07\x01\x00", b"\x00\x01\x00\x12"])
def test_a_malformed_list_is_refused(metadata):
    proto = tensor_pb2.VariantTensorDataProto(type_name="tensorflow::TensorList", metadata=metadata)
    with pytest.raises(errors.InvalidArgumentError, match="Malformed"):
        TensorList.from_proto(proto, codec.proto_to_array)


@pytest.mark.parametrize(
    ("wanted", "content"),
    [
        (Optional(), b"\x1f\n\x1atensorflow::data::Optional\x12\x01\0"),
        (
            Optional((np.array([1, 2], np.float32), np.int32(3))),
            b"<\n\032tensorflow::data::Optional\022\001\001\032\022\010\001\022\004\022\002\010\002*\010\000\000\200?\000\000\000@"
            b"\032\007\010\003\022\000:\001\003",
        ),
    ],
)
def test_an_optional_is_read_and_survives_the_wire(wanted, content):
    proto = tensor_pb2.TensorProto(dtype=dtypes.variant.as_datatype_enum, tensor_content=content)  # type: ignore
    written = b"".join(codec.encode_recv_tensor_response(wanted))
    for found in (codec.proto_to_array(proto), codec.decode_recv_tensor_response(written).value):
        assert (found.values is None) == (wanted.values is None)
        for ours, theirs in zip(found.values or (), wanted.values or (), strict=True):
            np.testing.assert_array_equal(ours, theirs)
