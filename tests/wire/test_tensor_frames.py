"""Several tensors as one message: what goes in comes out, and what is no message is refused."""

from __future__ import annotations

import json
import struct

import ml_dtypes
import numpy as np
import pytest

from dtf.wire import errors, tensor_frames
from dtf.wire.codec import ResourceHandle

DEAD = object()

VALUES = [
    np.float32(3),
    np.arange(6.0).reshape(2, 3),
    np.zeros((0, 4), np.int32),
    np.array([b"a", b"", b"\x00\xff"], object),
    np.array(b"scalar", object),
    np.arange(5000, dtype=">i4"),
    np.ones((64, 64))[:, ::2],
    np.array(True),
    np.float16(2),
    np.array([1 + 2j, 3], np.complex128),
    np.arange(3).astype(ml_dtypes.bfloat16),
    np.arange(100_000, dtype=np.uint8),
]


def message(*arguments, **named):
    return b"".join(tensor_frames.pack(*arguments, **named))


def test_values_of_every_kind_survive():
    for _ in range(2):  # the second time, what stands in front of the elements is known
        unpacked = tensor_frames.unpack(message(VALUES))
        for value, got in zip(VALUES, unpacked, strict=True):
            assert np.shape(got) == np.shape(value)
            assert got.dtype == value.dtype.newbyteorder("=")
            np.testing.assert_array_equal(np.asarray(got), np.asarray(value))


def test_elements_lie_aligned():
    for got in tensor_frames.unpack(message([value for value in VALUES if value.dtype != object])):
        assert got.flags.aligned


def test_tags_and_labels_come_with_their_values():
    data = message([np.int32(1), DEAD, np.int32(3)], [7, tensor_frames.LABELLED, 0], ["a;b"], DEAD)
    values, tags, labels = tensor_frames.unpack_tagged(data, 0, DEAD)
    assert values[1] is DEAD and [int(values[0]), int(values[2])] == [1, 3]
    assert tags == (7, tensor_frames.LABELLED, 0) and labels == ("a;b",)


def test_handles_are_passed_on():
    handle = ResourceHandle("/job:ps/replica:0/task:0/device:CPU:0", "localhost", "v", "Var")
    assert tensor_frames.unpack(message([handle])) == [handle]


def test_a_large_array_is_sent_from_its_own_memory():
    array = np.zeros(100_000)
    pieces = tensor_frames.pack([array])
    array[0] = 5.0
    assert tensor_frames.unpack(b"".join(pieces))[0][0] == 5.0


def test_nothing_is_a_message_too():
    assert tensor_frames.unpack(message([])) == []


def test_the_layout_is_as_written_down():
    data = message([np.array([1, 2], np.int32)], [9])
    entry = struct.pack("<BB6xQ", 3, 1, 8) + struct.pack("<q", 2)
    front = struct.pack("<IIII", 1, len(entry), 0, 0) + entry + struct.pack("<I", 9)
    assert data == front + bytes(-len(front) % 16) + struct.pack("<2i8x", 1, 2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        struct.pack("<II", 1, 0),
        struct.pack("<II", 0xFFFFFFFF, 0),
        struct.pack("<II", 1, 0) + struct.pack("<BB6xQ", 1, 1, 4) + struct.pack("<q", -1) + bytes(20),
        struct.pack("<II", 1, 0) + struct.pack("<BB6xQ", 1, 1, 1 << 62) + struct.pack("<q", 1 << 60) + bytes(20),
        struct.pack("<II", 1, 0) + struct.pack("<BB6xQ", 99, 0, 4) + bytes(20),
        struct.pack("<II", 0, 8) + b"not json",
        struct.pack("<II", 0, 8) + json.dumps("x").encode(),
    ],
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(errors.InvalidArgumentError):
        tensor_frames.unpack(data)


def one(kind, sizes, size, elements):
    """A message of one value, as a peer may write it by hand."""
    entry = struct.pack("<BB6xQ", kind, len(sizes), size) + struct.pack(f"<{len(sizes)}q", *sizes)
    front = struct.pack("<IIII", 1, len(entry), 0, 0) + entry + struct.pack("<I", 0)
    return front + bytes(-len(front) % 16) + elements


@pytest.mark.parametrize("kind", range(254))
def test_no_type_makes_references_of_bytes(kind):
    for sizes, count in ((), 1), ((2,), 2), ((1, 2), 2):
        for element_bytes in (1, 2, 4, 8, 16):
            size = count * element_bytes
            try:
                values = tensor_frames.unpack(one(kind, sizes, size, b"\x41" * size))
            except errors.InvalidArgumentError:
                continue
            assert not values[0].dtype.hasobject


def test_what_peers_declare_is_not_remembered_without_bound(monkeypatch):
    monkeypatch.setattr(tensor_frames, "_manifests", {})
    monkeypatch.setattr(tensor_frames, "_remembered_bytes", 0)
    dead = struct.pack("<BB6xQ", 254, 0, 0)
    for number in range(100):
        front = struct.pack("<IIII", 3000, len(dead) * 3000, 0, 0) + dead * 3000 + struct.pack("<I", number) * 3000
        tensor_frames.unpack(front + bytes(-len(front) % 16), 0, DEAD)
    assert 0 < sum(map(len, tensor_frames._manifests)) <= 1 << 20
