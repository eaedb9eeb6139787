"""The bytes of tensors: golden ones checked by hand, round trips of every dtype and layout, malformed ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dtf.wire import codec, dtypes, errors
from dtf.wire.codec import ResourceHandle
from dtf.wire.pb import attr_value_pb2, tensor_pb2, worker_pb2
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.varints import varint

NUMERIC = [dtypes.as_dtype(enum) for enum in range(1, 31) if dtypes.as_dtype(enum).size]
SHAPES = [(), (1,), (0,), (2, 3), (0, 4), (3000,)]


def sample(dtype, shape):
    """Small numbers, negative ones where the type has them."""
    return (np.arange(math.prod(shape)) % 7 - 2).astype(dtype.as_numpy_dtype).reshape(shape)


def assert_same(value, expected):
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert value.tobytes() == expected.tobytes()


GOLDEN = {
    # dtype=1; shape {dim {size: 2}}; tensor_content of 8 bytes
    "float vector": (
        np.array([1, -2], np.float32),
        "0801 1204 1202 0802 2208 0000803f 000000c0",
    ),
    # an empty shape is written out
    "int scalar": (np.int32(258), "0803 1200 2204 02010000"),
    # a dimension of 0 is an empty Dim, and there is no content
    "no elements": (np.empty((0, 3), np.float64), "0802 1206 1200 1202 0803"),
    "bool": (np.array([True, False]), "080a 1204 1202 0802 2202 0100"),
    # dtype 19; 1.0 is 0x3c00
    "half scalar": (np.float16(1), "0813 1200 2202 003c"),
    # a length that needs two bytes: 300 = ac 02
    "bytes": (np.zeros(300, np.uint8), "0804 1205 1203 08ac02 22ac02" + "00" * 300),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_tensor_bytes(name):
    array, hexadecimal = GOLDEN[name]
    expected = bytes.fromhex(hexadecimal)
    assert b"".join(codec.encode_tensor(array)) == expected
    assert codec.array_to_proto(array).SerializeToString() == expected
    assert_same(codec.decode_tensor(expected), np.asarray(array))


def test_golden_string_bytes_are_string_vals_in_order():
    array = np.array([b"ab", b""], object)
    expected = bytes.fromhex("0807 1204 1202 0802 4202 6162 4200")
    assert b"".join(codec.encode_tensor(array)) == expected
    assert codec.decode_tensor(expected).tolist() == [b"ab", b""]


def test_golden_recv_tensor_response_has_the_tensor_last():
    pieces = codec.encode_recv_tensor_response(np.float32(1), send_start_micros=1000, require_ack=True)
    assert b"".join(pieces) == bytes.fromhex("18e807 2801 0a0a 0801 1200 2204 0000803f")


def test_golden_dead_tensor_response_still_holds_a_tensor_that_parses():
    data = b"".join(codec.encode_recv_tensor_response(None, is_dead=True))
    assert data == bytes.fromhex("1001 0a06 0801 1202 1200")
    assert codec.decode_recv_tensor_response(data) == (None, True, 0, False)


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda dtype: dtype.name)
def test_every_numeric_type_survives_every_layout(dtype):
    for shape in SHAPES:
        array = sample(dtype, shape)
        assert_same(codec.proto_to_array(codec.array_to_proto(array, dtype)), array)
        assert_same(codec.make_ndarray(codec.make_tensor_proto(array, dtype)), array)
        data = b"".join(codec.encode_tensor(array, dtype))
        assert data == codec.array_to_proto(array, dtype).SerializeToString()
        assert_same(codec.decode_tensor(data), array)
        response = b"".join(codec.encode_recv_tensor_response(array, dtype, send_start_micros=2**45))
        received = codec.decode_recv_tensor_response(response)
        assert_same(received.value, array)
        assert received[1:] == (False, 2**45, False)
        parsed = worker_pb2.RecvTensorResponse.FromString(response)
        assert parsed.send_start_micros == 2**45 and not parsed.is_dead
        assert_same(codec.proto_to_array(parsed.tensor), array)


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda dtype: dtype.name)
def test_values_in_their_own_field_repeat_the_last_and_default_to_zero(dtype):
    full = codec.make_tensor_proto(sample(dtype, (3,)), dtype, shape=[2, 3])
    assert not full.tensor_content
    expected = np.concatenate([sample(dtype, (3,)), np.repeat(sample(dtype, (3,))[-1:], 3)]).reshape(2, 3)
    assert_same(codec.proto_to_array(full), expected)
    empty = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    empty.tensor_shape.dim.add(size=2)
    assert_same(codec.proto_to_array(empty), np.zeros(2, dtype.as_numpy_dtype))


@pytest.mark.parametrize("shape", SHAPES)
def test_strings_survive_with_zeros_and_non_ascii(shape):
    array = np.empty(shape, object)
    array[...] = b"\x00a\xff\x00"
    for value in (
        codec.proto_to_array(codec.array_to_proto(array, dtypes.string)),
        codec.make_ndarray(codec.make_tensor_proto(array, dtypes.string)),
        codec.decode_tensor(b"".join(codec.encode_tensor(array, dtypes.string))),
    ):
        assert value.dtype == object and value.shape == shape
        assert value.ravel().tolist() == array.ravel().tolist()


def test_strings_in_tensor_content_are_lengths_then_bytes():
    proto = tensor_pb2.TensorProto(dtype=7, tensor_content=b"\x02\x00\xac\x02ab" + b"c" * 300)
    proto.tensor_shape.dim.add(size=3)
    assert codec.proto_to_array(proto).tolist() == [b"ab", b"", b"c" * 300]


def test_a_scalar_resource_is_a_handle():
    handle = ResourceHandle("/device:CPU:0", "box", "v", "Var", ((dtypes.float32, (1, None)), (dtypes.int32, None)), 7)
    assert codec.proto_to_array(codec.array_to_proto(handle)) == handle
    assert codec.decode_tensor(b"".join(codec.encode_tensor(handle))) == handle
    handles = np.array([handle, handle], object)
    assert codec.proto_to_array(codec.array_to_proto(handles)).tolist() == [handle, handle]


def test_large_tensors_are_neither_copied_out_nor_in():
    array = np.arange(100_003, dtype=np.float32)
    pieces = codec.encode_tensor(array)
    assert np.shares_memory(np.frombuffer(pieces[1], np.uint8), array)
    for micros in (0, 5, 300, 2**40):
        response = b"".join(codec.encode_recv_tensor_response(array, send_start_micros=micros))
        value = codec.decode_recv_tensor_response(response).value
        assert np.shares_memory(value, np.frombuffer(response, np.uint8)) and value.flags.aligned
        assert not value.flags.writeable


def test_unaligned_large_tensors_are_copied_once_and_read_only():
    array = np.arange(5000, dtype=np.float64)
    for shift in range(8):
        data = bytes(shift) + b"".join(codec.encode_tensor(array))
        value = codec.decode_tensor(memoryview(data)[shift:])
        assert_same(value, array)
        assert value.flags.aligned and not value.flags.writeable


def test_other_row_orders_and_byte_orders_are_written_the_one_way():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for other in (array.T.copy().T, array[::-1][::-1], array.astype(">f4")):
        assert b"".join(codec.encode_tensor(other)) == b"".join(codec.encode_tensor(array))


def test_fields_in_another_order_and_unknown_ones_are_read_as_protobuf_reads_them():
    array = np.arange(3000, dtype=np.int64)
    proto = codec.array_to_proto(array)
    content_first = b"\x22" + b"\xc0\xbb\x01" + proto.tensor_content + b"\x12\x05\x12\x03\x08\xb8\x17\x08\x09"
    assert_same(codec.decode_tensor(content_first), array)
    assert_same(codec.decode_tensor(proto.SerializeToString() + b"\x98\x06\x01"), array)
    response = worker_pb2.RecvTensorResponse(tensor=proto).SerializeToString()
    again = worker_pb2.RecvTensorResponse(send_start_micros=7).SerializeToString()
    assert_same(codec.decode_recv_tensor_response(response + again).value, array)
    merged = codec.decode_recv_tensor_response(response + b"\x0a\x02\x18\x00")
    assert_same(merged.value, array)


BIG = bytes(5000)
MALFORMED = {
    "empty": b"",
    "no such type": bytes.fromhex("0863"),
    "cut in a tag": bytes.fromhex("08"),
    "content too short": bytes.fromhex("0801 1204 1202 0803 2205") + b"abcde",
    "negative size": bytes.fromhex("0801 120d 120b 08ffffffffffffffffff01 2204") + b"abcd",
    "unknown rank": bytes.fromhex("0801 1202 1801 2204") + b"abcd",
    "string lengths": bytes.fromhex("0807 1200 2202 0561"),
    "too many values": bytes.fromhex("0801 1200 2a08 0000803f 0000803f"),
    "large, content too long": bytes.fromhex("0801 1204 1202 0803 22") + b"\x88\x27" + BIG,
    "large, cut": bytes.fromhex("0801 1200 22") + b"\xff\xff\x7f" + BIG,
    "large, group": b"\x0b" + BIG,
    "large, endless number": b"\x08" + b"\xff" * 5000,
    "large, no such type": bytes.fromhex("0863 1200 22") + b"\x88\x27" + BIG,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_bytes_raise_invalid_argument(name):
    data = MALFORMED[name]
    with pytest.raises(errors.InvalidArgumentError, match="Cannot decode a tensor"):
        codec.decode_tensor(data)
    with pytest.raises(errors.InvalidArgumentError, match="Cannot decode a tensor"):
        codec.decode_recv_tensor_response(b"\x0a" + varint(len(data)) + data)


INFERRED = [
    (1, "int32"),
    (2**40, "int64"),
    ([2**31], "int64"),
    (1.5, "float32"),
    ([1, 2.5], "float32"),
    (True, "bool"),
    (1j, "complex128"),
    ("a", "string"),
    ([b"a", "b"], "string"),
    ([], "float32"),
    (range(3), "int32"),
    (TensorShape([1, 2]), "int32"),
    (TensorShape([1, 2])[0], "int32"),
    (np.float64(1), "float64"),
    (np.zeros(2), "float64"),
    ([np.float64(1)], "float32"),
    (np.array(["a"]), "string"),
]


@pytest.mark.parametrize(("values", "name"), INFERRED, ids=repr)
def test_make_tensor_proto_infers_the_type_as_tensorflow_does(values, name):
    assert dtypes.as_dtype(codec.make_tensor_proto(values).dtype).name == name


REFUSED = [
    (None, None, ValueError, "None values not supported"),
    ([1, None], "float32", TypeError, "Expected float32, but got None of type 'NoneType'"),
    (1.5, "int32", TypeError, "Expected int32, but got 1.5 of type 'float'"),
    ([1, 2.5], "int32", TypeError, "Expected int32, but got 2.5 of type 'float'"),
    (1, "bool", TypeError, "Expected bool, but got 1 of type 'int'"),
    (1, "string", TypeError, "Expected string, but got 1 of type 'int'"),
    ("a", "int32", TypeError, "Expected int32, but got a of type 'str'"),
    ([1, "a"], None, TypeError, "Failed to convert object of type"),
    ([None], None, TypeError, "Failed to convert object of type"),
    ({}, None, TypeError, "Failed to convert object of type"),
    (2**70, None, TypeError, "Failed to convert object of type"),
    ([[1], [2, 3]], None, ValueError, "sequence"),
    (np.array([b"a", None], object), None, TypeError, "binary or unicode string, got None"),
]


@pytest.mark.parametrize(("values", "dtype", "error", "words"), REFUSED, ids=repr)
def test_make_tensor_proto_refuses_what_tensorflow_refuses(values, dtype, error, words):
    with pytest.raises(error, match=words):
        codec.make_tensor_proto(values, dtype)


def test_make_tensor_proto_checks_the_shape():
    with pytest.raises(ValueError, match="Needed at most 2, but received 3"):
        codec.make_tensor_proto([1, 2, 3], shape=[2])
    with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(3,\), but got \(2,\)"):
        codec.make_tensor_proto([1, 2], shape=[3], verify_shape=True)
    assert codec.make_ndarray(codec.make_tensor_proto([[1, 2], [3, 4]], shape=[4])).tolist() == [1, 2, 3, 4]
    assert codec.make_ndarray(codec.make_tensor_proto([], shape=[2])).tolist() == [0, 0]


def test_a_filled_constant_takes_one_value_however_large():
    proto = codec.make_tensor_proto(0.5, shape=[1000, 1000])
    assert proto.ByteSize() < 40
    assert (codec.make_ndarray(proto) == np.full((1000, 1000), 0.5, np.float32)).all()


def test_make_ndarray_gives_an_array_of_the_callers_own():
    array = codec.make_ndarray(codec.make_tensor_proto([1, 2]))
    array += 1
    assert array.tolist() == [2, 3]


def test_text_of_scalars_shows_the_value():
    assert str(codec.make_tensor_proto(1.5)) == "dtype: DT_FLOAT\ntensor_shape {\n}\nfloat_val: 1.5\n"


ATTRS = [
    ("int", 3, "i: 3", 3),
    ("float", 1, "f: 1", 1.0),
    ("bool", True, "b: true", True),
    ("string", "a", 's: "a"', b"a"),
    ("type", "float", "type: DT_FLOAT", dtypes.float32),
    ("shape", [1, None], "shape { dim { size: 1 } dim { size: -1 } }", TensorShape([1, None])),
    ("list(int)", (1, 2), "list { i: 1 i: 2 }", [1, 2]),
    ("list(int)", [], "list { }", []),
    ("list(type)", [np.int32], "list { type: DT_INT32 }", [dtypes.int32]),
    ("list(shape)", [None], "list { shape { unknown_rank: true } }", [TensorShape(None)]),
    ("list(string)", ["a", b"b"], 'list { s: "a" s: "b" }', [b"a", b"b"]),
]


@pytest.mark.parametrize(("kind", "value", "text", "back"), ATTRS, ids=repr)
def test_attributes_convert_both_ways(kind, value, text, back):
    attr = codec.python_to_attr(value, kind)
    assert " ".join(str(attr).split()) == text
    assert codec.attr_to_python(attr) == back
    if kind != "list(int)" or back:
        assert codec.python_to_attr(codec.attr_to_python(attr)) == attr


def test_tensor_func_and_placeholder_attributes():
    assert codec.attr_to_python(codec.python_to_attr([1, 2], "tensor")).tolist() == [1, 2]
    assert codec.attr_to_python(codec.python_to_attr("f", "func")).name == "f"
    assert codec.attr_to_python(attr_value_pb2.AttrValue(placeholder="T")) == "T"
    assert codec.attr_to_python(attr_value_pb2.AttrValue()) is None
    attr = attr_value_pb2.AttrValue(i=1)
    assert codec.python_to_attr(attr, "int") is attr


@pytest.mark.parametrize(
    ("value", "kind"),
    [("a", "int"), (1.5, "int"), ("a", "float"), (3, "bool"), (3, "string"), ("ab", "list(int)"), ("q", "type")],
)
def test_attributes_of_the_wrong_type_raise(value, kind):
    with pytest.raises(TypeError):
        codec.python_to_attr(value, kind)
