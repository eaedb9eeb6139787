"""Files byte for byte: what TensorFlow writes must be read, and the same must be written.

The bytes of the checkpoints and of the records are TensorFlow's; those of the events and of the meta graph are ours,
read by TensorFlow's and TensorBoard's readers.
"""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.wire import errors, index_table
from dtf.wire.checkpoint import BundleReader, BundleWriter
from dtf.wire.checkpoint_v1 import TableReader, open_checkpoint, write_v1
from dtf.wire.crc import masked_crc32c
from dtf.wire.events import EventsWriter, read_events, read_records, record_bytes
from dtf.wire.pb import event_pb2
from dtf.wire.varints import varint
from tests.wire import snappy


def from_hex(text):
    return bytes.fromhex("".join(text.split()))


# Tensors a, p in two parts, and s.
BUNDLE_DATA = from_hex("""
    0000803f000000c0 07000000000000000800000000000000 0900000000000000
    010002 c4355c28 78797a
""")
BUNDLE_INDEX = from_hex("""
    000006 08011a020801
    000811 0070000101018082 080912041202080220082810354696d446
    060211 8281 0809120412020801201828083537f97139
    000113 61 080112081202080112020802280835453f1688
    000116 70 08091204120208033a040a0210023a060a0408021001
    000111 73 08071204120208032020280a3580c48ebf
    0000000001000000 00a1f83a81
    0000000001000000 00c0f2a1b0
    000103 74 008901
    0000000001000000 00f76327fa
    8e01089b010f00000000000000000000000000000000000000000000000000000000000000000000
    57fb808b247547db
""")
V1 = from_hex("""
    0000490a470a150a016112081202080112020802180122040a000a000a190a0170120412020803180922040a02100222
    060a04080210010a0f0a0173120412020803180722020a0012020801000a17006100010102807f807f12150a01611204
    0a000a001a0a2a080000803f000000c001071170000101018082120f0a017012040a0210021a04520207080602128281
    12100a017012060a04080210011a035201090107147300010101807f12120a017312020a001a0942017842004202797a
    0000000001000000003fe5df99000000000100000000c0f2a1b00001030100c80100000000010000000036307f4bcd01
    08da010f0000000000000000000000000000000000000000000000000000000000000000000057fb808b247547db
""")
RECORDS = from_hex("""
    0300000000000000 b099490e 6f6e65 01405508
    0000000000000000 29039807 d8ea82a2
""")
EVENTS = from_hex("""
    1800000000000000 a37f4b22 09000000000000f83f1a0d627261696e2e4576656e743a32 2a28646c
    1a00000000000000 129bd82d 09000000000000044010072a0d0a0b0a046c6f7373150000003f 587545b7
""")
META_GRAPH = from_hex("""
    0a5412450a430a0b506c616365686f6c6465721a0f0a066f757470757422056474797065220d0a056474797065120474
    79706522140a057368617065120573686170651a043a0218012a06312e31352e35320364746612510a4a0a0178120b506c61636568
    6f6c6465722a1a0a0e5f6f75747075745f73686170657312080a063a04120208022a0b0a056474797065120230012a0f
    0a05736861706512063a0412020802220308860122120a076f75747075747312070a050a03783a30220f0a05776f7264
    73120612040a026869
""")


def write_bundle(prefix):
    with BundleWriter(prefix) as writer:
        writer.add("a", np.array([[1.0, -2.0]], np.float32))
        writer.add_slice("p", [3], [(0, 2)], np.array([7, 8]))
        writer.add_slice("p", [3], [(2, 1)], np.array([9]))
        writer.add("s", np.array([b"x", b"", b"yz"], object))


def assert_holds(reader):
    assert reader.keys() == ["a", "p", "s"] and reader.is_whole()
    assert reader.read("a").tolist() == [[1.0, -2.0]] and reader.dtype("a") == tf.float32
    assert reader.read("p").tolist() == [7, 8, 9] and reader.shape("p").as_list() == [3]
    assert reader.read_slice("p", [(1, 2)]).tolist() == [8, 9]
    assert reader.read("s").tolist() == [b"x", b"", b"yz"]


def test_a_tensor_bundle(tmp_path):
    (tmp_path / "theirs.index").write_bytes(BUNDLE_INDEX)
    (tmp_path / "theirs.data-00000-of-00001").write_bytes(BUNDLE_DATA)
    assert_holds(BundleReader(str(tmp_path / "theirs")))
    write_bundle(str(tmp_path / "ours"))
    assert (tmp_path / "ours.data-00000-of-00001").read_bytes() == BUNDLE_DATA
    assert (tmp_path / "ours.index").read_bytes() == BUNDLE_INDEX


def test_a_checkpoint_of_the_first_format(tmp_path):
    (tmp_path / "model").write_bytes(V1)
    reader = open_checkpoint(str(tmp_path / "model"))
    assert isinstance(reader, TableReader)
    assert_holds(reader)
    parts = [
        ("a", [1, 2], [(0, -1), (0, -1)], np.array([[1.0, -2.0]], np.float32)),
        ("p", [3], [(0, 2)], np.array([7, 8])),
        ("p", [3], [(2, 1)], np.array([9])),
        ("s", [3], [(0, -1)], np.array([b"x", b"", b"yz"], object)),
    ]
    write_v1(str(tmp_path / "ours"), parts)
    assert (tmp_path / "ours").read_bytes() == V1
    with pytest.raises(errors.InvalidArgumentError, match="two values for p"):
        write_v1(str(tmp_path / "ours"), [*parts, parts[1]])
    with pytest.raises(errors.NotFoundError, match="Key b not found in checkpoint .*model"):
        reader.read("b")


@pytest.mark.parametrize("size", range(0, len(V1), 13))
def test_a_cut_checkpoint_of_the_first_format_is_data_loss(tmp_path, size):
    (tmp_path / "model").write_bytes(V1[:size])
    with pytest.raises(errors.DataLossError, match="model"):
        open_checkpoint(str(tmp_path / "model"))


def test_shards_of_the_first_format_are_one_checkpoint(tmp_path):
    for shard in range(2):
        (tmp_path / f"model-0000{shard}-of-00002").write_bytes(V1)
    assert_holds(open_checkpoint(str(tmp_path / "model-00000-of-00002")))
    reader = open_checkpoint(str(tmp_path / "model-?????-of-00002"))
    assert reader.keys() == ["a", "p", "s"]
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files for .*model-x"):
        open_checkpoint(str(tmp_path / "model-x"))


def test_a_table_that_is_no_checkpoint_is_data_loss(tmp_path):
    (tmp_path / "table").write_bytes(index_table.write_table([(b"a", b"b")]))
    with pytest.raises(errors.DataLossError, match="table: not a checkpoint of format V1"):
        open_checkpoint(str(tmp_path / "table"))


def test_records(tmp_path):
    (tmp_path / "records").write_bytes(RECORDS)
    assert list(read_records(str(tmp_path / "records"))) == [b"one", b""]
    assert record_bytes(b"one") + record_bytes(b"") == RECORDS


def test_an_event_file(tmp_path):
    (tmp_path / "events").write_bytes(EVENTS)
    first, second = read_events(str(tmp_path / "events"))
    assert (first.wall_time, first.file_version) == (1.5, "brain.Event:2")
    assert (second.wall_time, second.step, second.summary.value[0].simple_value) == (2.5, 7, 0.5)
    writer = EventsWriter(str(tmp_path / "logs"), clock=lambda: 1.5)
    writer.write(event_pb2.Event(wall_time=2.5, step=7, summary={"value": [{"tag": "loss", "simple_value": 0.5}]}))
    writer.close()
    with open(writer.path, "rb") as file:
        assert file.read() == EVENTS


def test_a_meta_graph(tmp_path):
    (tmp_path / "model.meta").write_bytes(META_GRAPH)
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(str(tmp_path / "model.meta")) is None
        assert tf.get_collection("words") == [b"hi"]
        (x,) = tf.get_collection("outputs")
        assert (x.name, x.op.type, x.shape.as_list()) == ("x:0", "Placeholder", [2])
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.add_to_collection("words", "hi")
        tf.add_to_collection("outputs", x)
        message = tf.train.export_meta_graph()
    assert message.SerializeToString(deterministic=True) == META_GRAPH


# -- Snappy


def table_of(block):
    """A table of one block with a Snappy-compressed form."""
    out = bytearray()

    def append(contents, kind):
        handle = varint(len(out)) + varint(len(contents))
        typed = contents + bytes([kind])
        out.extend(typed + masked_crc32c(typed).to_bytes(4, "little"))
        return handle

    empty = from_hex("00000000 01000000")
    handle = append(block, 1)
    metaindex = append(empty, 0)
    index = append(bytes([0, 1, len(handle)]) + b"z" + handle + empty, 0)
    return bytes(out) + (metaindex + index).ljust(40, b"\0") + from_hex("57fb808b247547db")


# An entry of key "k" whose value takes each kind of element, then the restarts.
VALUE = b"abcd" * 4 + b"a" * 10 + b"bcd" + b"abcd" + bytes(range(60, 130))
COMPRESSED = (
    varint(4 + len(VALUE) + 8)
    + bytes([3 << 2]) + bytes([0, 1, len(VALUE)]) + b"k"  # a literal of 4 bytes
    + bytes([3 << 2]) + b"abcd"
    + bytes([1 | (8 - 4) << 2, 4])  # a copy of 8 bytes from 4 before, which overlaps itself
    + bytes([2 | 3 << 2, 4, 0])  # 4 bytes from 4 before, in the form of two bytes
    + bytes([0]) + b"a" + bytes([2 | 8 << 2, 1, 0])  # a run
    + bytes([3 | 2 << 2, 13, 0, 0, 0])  # 3 bytes from 13 before, in the form of four bytes
    + bytes([2 | 3 << 2, 29, 0])
    + bytes([60 << 2, 69]) + bytes(range(60, 130))  # a literal whose length takes a byte
    + bytes([61 << 2, 7, 0]) + from_hex("00000000 01000000")  # and one of two
)  # fmt: skip


def test_a_snappy_block_of_every_kind_of_element():
    assert list(index_table.read_table(table_of(COMPRESSED), "t")) == [(b"k", VALUE)]


def test_what_a_compressor_makes_is_read():
    random = np.random.RandomState(0)
    words = [bytes(random.randint(0, 255, 30, np.uint8)) for _ in range(20)]
    value = b"".join(words[i] for i in random.randint(0, 20, 5_000)) + b"\0" * 1_000
    block = b"\0\1" + varint(len(value)) + b"k" + value + from_hex("00000000 01000000")
    compressed = snappy.compress(block)
    assert len(compressed) < len(block) / 3
    assert list(index_table.read_table(table_of(compressed), "t")) == [(b"k", value)]


@pytest.mark.parametrize(
    "block",
    [
        COMPRESSED[:-1],
        COMPRESSED[:20],
        bytes([5, 0]),
        bytes([4, 1, 1]),  # a copy of what is not there
        bytes([200, 1, 3 << 2]) + b"abcd",
        b"",
        bytes([8, 7 << 2]) + b"\0" * 4 + b"\xff" * 4,  # more restarts than bytes
    ],
)
def test_a_damaged_snappy_block_is_data_loss(block):
    with pytest.raises(errors.DataLossError, match="t: "):
        list(index_table.read_table(table_of(block), "t"))
