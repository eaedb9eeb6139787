"""What is read from disks and from contents of files: tensors, checkpoints, records, images, sounds, saved models."""

from __future__ import annotations

import functools
import os
import random
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dtf as tf
from dtf.run.lib.png import encode_png
from dtf.wire import checkpoint, codec, dtypes, errors, events, index_table, tensor_frames
from dtf.wire.checkpoint_v1 import TableReader, write_v1
from dtf.wire.pb import event_pb2, tensor_bundle_pb2, tensor_pb2
from tests.fuzz import mutate
from tests.fuzz.harness import Target

DAMAGED = (errors.OpError, ValueError)
"""What damaged files are answered with."""


@functools.cache
def folder() -> Path:
    """Of this process, for files."""
    path = os.environ.get("DTF_FUZZ_FOLDER") or tempfile.mkdtemp(prefix="dtf-fuzz-")
    return Path(path)


# -- several byte strings as one input


def joined(parts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def parted(data: bytes, count: int) -> list[bytes]:
    parts = []
    for _ in range(count):
        (size,) = struct.unpack_from("<I", data.ljust(4, b"\0"))
        parts.append(data[4 : 4 + size])
        data = data[4 + size :]
    return parts


# -- tensors


def arrays() -> list[Any]:
    return [
        np.arange(6, dtype=np.float32).reshape(2, 3), np.array([b"a", b"bc\0", b""], object), np.float64(2.5),
        np.array([[True], [False]]), np.arange(100, dtype=np.int64), np.array(1 + 2j, np.complex64), np.zeros((0, 3)),
        np.array([1.5], dtypes.bfloat16.as_numpy_dtype), np.uint8([1, 2, 3]),
    ]  # fmt: skip


def tensor_examples() -> list[bytes]:
    protos = [codec.array_to_proto(array, as_content=is_content) for array in arrays() for is_content in (True, False)]
    return [proto.SerializeToString(deterministic=True) for proto in protos]


def mutated_tensor(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    data = chance.choice(examples)
    if chance.random() < 0.6:
        proto = tensor_pb2.TensorProto.FromString(data)
        mutate.of_message(chance, proto)
        data = proto.SerializeToString(deterministic=True)
    else:
        data = mutate.of_bytes(chance, data, examples)
    return bytes([chance.randrange(2)]) + data


def read_tensor(data: bytes) -> None:
    if data[:1] == b"\0":
        codec.decode_tensor(data[1:])
    else:
        codec.decode_recv_tensor_response(codec.length_delimited(1, len(data) - 1) + data[1:])


def frame_examples() -> list[bytes]:
    values = [value for value in arrays() if isinstance(value, np.ndarray)]
    plain = b"".join(bytes(piece) for piece in tensor_frames.pack(values))
    tags = [tensor_frames.LABELLED, *range(1, len(values))]
    return [plain, b"".join(bytes(piece) for piece in tensor_frames.pack(values, tags, ["a"]))]


# -- files


@functools.cache
def bundle_parts() -> list[list[bytes]]:
    found = []
    with tempfile.TemporaryDirectory() as place:
        prefix = f"{place}/b"
        writer = checkpoint.BundleWriter(prefix)
        for number, array in enumerate(arrays()):
            writer.add(f"v/{number}", np.asarray(array))
        writer.add_slice("sliced", [4, 2], [(0, 2), (0, 2)], np.ones((2, 2), np.float32))
        writer.add_slice("sliced", [4, 2], [(2, 2), (0, 2)], np.ones((2, 2), np.float32))
        writer.finish()
        found.append(
            [Path(checkpoint.index_file(prefix)).read_bytes(), Path(checkpoint.data_file(prefix, 0, 1)).read_bytes()]
        )
        write_v1(f"{place}/v1", [("a", [2, 3], [(0, 2), (0, 3)], np.zeros((2, 3), np.float32))])
        found.append([Path(f"{place}/v1").read_bytes(), b""])
    return found


def mutated_bundle(chance: random.Random, examples: Sequence[list[bytes]]) -> bytes:
    index, data = examples[0]
    if chance.random() < 0.3:
        return joined([mutate.of_bytes(chance, index), data])
    if chance.random() < 0.2:
        return joined([index, mutate.of_bytes(chance, data)])
    # The table is whole, and its checksums right; what it says is not.
    items = list(index_table.read_table(index, "example"))
    at = chance.randrange(len(items))
    key, value = items[at]
    entry = tensor_bundle_pb2.BundleHeaderProto if not key else tensor_bundle_pb2.BundleEntryProto
    proto = entry.FromString(value)
    mutate.of_message(chance, proto)
    value = proto.SerializeToString(deterministic=True) if chance.random() < 0.8 else mutate.of_bytes(chance, value)
    items[at] = (key if chance.random() < 0.9 else mutate.of_bytes(chance, key)), value
    return joined([index_table.write_table(sorted(dict(items).items())), data])


def read_bundle(data: bytes) -> None:
    index, content = parted(data, 2)
    prefix = str(folder() / "bundle")
    Path(checkpoint.index_file(prefix)).write_bytes(index)
    Path(checkpoint.data_file(prefix, 0, 1)).write_bytes(content)
    state = folder() / "checkpoint"
    state.write_text('model_checkpoint_path: "bundle"\n')
    tf.train.latest_checkpoint(str(folder()))
    reader = checkpoint.BundleReader(prefix)
    reader.is_whole()
    for name in reader.keys():  # noqa: SIM118  (a reader is no dictionary)
        reader.dtype(name), reader.shape(name)
        reader.read(name)


def read_v1(data: bytes) -> None:
    path = folder() / "v1"
    path.write_bytes(data)
    reader = TableReader(str(path))
    for name in reader.keys():  # noqa: SIM118
        reader.read(name)


def table_examples() -> list[bytes]:
    return [part[0] for part in bundle_parts()]


def read_table(data: bytes) -> None:
    list(index_table.read_table(data, "table"))


def snappy_examples() -> list[bytes]:
    return [b"\x05\x10hello", b"\x14\x0cabcd\x3d\x04\x00", b"\x80\x01\xf0\x7f" + bytes(128)]


def record_payloads() -> list[bytes]:
    event = event_pb2.Event(wall_time=1.0, step=2)
    event.summary.value.add(tag="loss", simple_value=1.5)
    first = event_pb2.Event(wall_time=0.5, file_version="brain.Event:2")
    return [first.SerializeToString(), event.SerializeToString(), b""]


def mutated_records(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    payloads = [mutate.of_bytes(chance, each) if chance.random() < 0.4 else each for each in examples]
    data = b"".join(map(events.record_bytes, payloads))
    return mutate.of_bytes(chance, data) if chance.random() < 0.5 else data


def read_events(data: bytes) -> None:
    path = folder() / "events"
    path.write_bytes(data)
    for _ in events.read_events(str(path)):
        pass


def read_records(data: bytes) -> None:
    path = folder() / "records"
    path.write_bytes(data)
    for _ in events.read_records(str(path)):
        pass


# -- contents given to ops


@functools.cache
def ops() -> tuple[Any, Any, dict[str, Any]]:
    """(session, placeholder of the contents, fetches by the kind of contents)."""
    with tf.Graph().as_default() as graph:
        contents = tf.placeholder(tf.string, [])
        batch = tf.reshape(contents, [1])
        columns = {"a": tf.FixedLenFeature([2], tf.float32, [0.0, 0.0]), "b": tf.VarLenFeature(tf.int64)}
        fetches = {
            "png": tf.image.decode_png(contents),
            "bmp": tf.image.decode_bmp(contents),
            "gif": tf.image.decode_gif(contents),
            "jpeg": tf.image.decode_jpeg(contents),
            "image": tf.image.decode_image(contents),
            "wav": tf.audio.decode_wav(contents).audio,
            "example": tf.parse_single_example(contents, columns)["a"],
            "examples": tf.parse_example(batch, columns)["a"],
            "tensor": tf.io.parse_tensor(contents, tf.float32),
            "raw": tf.decode_raw(batch, tf.float32),
            "zlib": tf.io.decode_compressed(batch, "ZLIB"),
            "gzip": tf.io.decode_compressed(batch, "GZIP"),
            "csv": tf.decode_csv(batch, [[0.0], [1], ["x"]])[0],
            "base64": tf.decode_base64(contents),
            "number": tf.string_to_number(contents),
            "json": tf.io.decode_json_example(batch),
        }
        return tf.Session(graph=graph), contents, fetches


def kinds() -> list[str]:
    return sorted(ops()[2])


def content_examples() -> dict[str, list[bytes]]:
    image = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    features = tf.train.Features(feature={"a": tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2])),
                                          "b": tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))})  # fmt: skip
    example = tf.train.Example(features=features).SerializeToString()
    pngs = [encode_png(image), encode_png(image.astype(np.uint16)), encode_png(image[:, :, :1])]
    bmp = b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + 64, 0, 54, 40, 5, 4, 1, 24, 0, 64, 0, 0, 0, 0) + bytes(64)
    wav = b"RIFF" + struct.pack("<I", 44) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    wav += b"data" + struct.pack("<I", 8) + bytes(range(8))
    gif = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")
    jpeg = bytes.fromhex(
        "ffd8ffe000104a46494600010100000100010000ffdb004300" + "01" * 64 + "ffc0000b080001000101011100ffc40014000100"
        "00000000000000000000000000000000ffc4001410010000000000000000000000000000000000ffda0008010100003f0037ffd9"
    )
    tensor = codec.array_to_proto(np.float32([1, 2])).SerializeToString()
    gzip = zlib.compressobj(9, zlib.DEFLATED, 31)
    return {
        "png": pngs, "bmp": [bmp], "gif": [gif], "jpeg": [jpeg], "image": [*pngs, bmp, gif, jpeg], "wav": [wav],
        "example": [example], "examples": [example], "tensor": [tensor], "raw": [bytes(range(16))],
        "zlib": [zlib.compress(bytes(1000))], "gzip": [gzip.compress(bytes(1000)) + gzip.flush()],
        "csv": [b'1.5,2,"a ""b"""', b"1,2,x"], "base64": [b"aGVsbG8", b"_-A"], "number": [b"1.5", b"-3e7", b"nan"],
        "json": [b'{"features": {"feature": {"a": {"floatList": {"value": [1, 2]}}}}}'],
    }  # fmt: skip


def mutated_contents(chance: random.Random, examples: Sequence[tuple[str, bytes]]) -> bytes:
    kind, data = chance.choice(examples)
    if kind == "png" and chance.random() < 0.5:
        data = _mutated_png(chance, data)
    elif kind in ("zlib", "gzip") and chance.random() < 0.3:
        data = zlib.compress(bytes(chance.choice((1 << 10, 1 << 20, 1 << 25))))
    else:
        data = mutate.of_bytes(chance, data, [each for _, each in examples])
    return bytes([kinds().index(kind)]) + data


def _mutated_png(chance: random.Random, data: bytes) -> bytes:
    """Of one of its chunks the content, with the right checksum."""
    chunks, at = [], 8
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    number = chance.randrange(len(chunks))
    kind, body = chunks[number]
    if kind == b"IDAT" and chance.random() < 0.7:
        body = zlib.compress(mutate.of_bytes(chance, zlib.decompress(body)))
    else:
        body = mutate.of_bytes(chance, body)
    chunks[number] = kind, body
    if chance.random() < 0.3:
        chance.shuffle(chunks)
    return data[:8] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def read_contents(data: bytes) -> None:
    session, contents, fetches = ops()
    kind = kinds()[data[0] % len(kinds())] if data else "png"
    value = session.run(fetches[kind], {contents: data[1:]})
    assert isinstance(value, (np.ndarray, np.generic, bytes)), type(value)


# -- saved models


@functools.cache
def saved_model() -> tuple[bytes, Path]:
    place = Path(tempfile.mkdtemp(prefix="dtf-fuzz-model-"))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        v = tf.Variable([[1.0], [2.0]], name="v")
        y = tf.matmul(x, v, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(place / "m"), {"x": x}, {"y": y})
    return (place / "m" / "saved_model.pb").read_bytes(), place / "m"


def mutated_model(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    data = examples[0]
    if chance.random() < 0.8:
        message = _saved_model_class().FromString(data)
        mutate.of_message(chance, message)
        return message.SerializeToString(deterministic=True)
    return mutate.of_bytes(chance, data)


def _saved_model_class() -> Any:
    from dtf.wire.pb import saved_model_pb2

    return saved_model_pb2.SavedModel


def read_model(data: bytes) -> None:
    place = folder() / "model"
    if not place.exists():
        shutil.copytree(saved_model()[1], place)
    (place / "saved_model.pb").write_bytes(data)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], str(place))


def read_meta_graph(data: bytes) -> None:
    message = _saved_model_class().FromString(saved_model()[0]) if not data else None
    path = folder() / "graph.meta"
    path.write_bytes(message.meta_graphs[0].SerializeToString() if message else data)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(path))


def mutated_meta_graph(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    meta_graph = _saved_model_class().FromString(examples[0]).meta_graphs[0]
    mutate.of_message(chance, meta_graph)
    data = meta_graph.SerializeToString(deterministic=True)
    return mutate.of_bytes(chance, data) if chance.random() < 0.2 else data


def of_bytes(
    name: str, examples: Callable[[], Sequence[bytes]], read: Callable[[bytes], Any], *refusals: type[Exception]
) -> Target:
    return Target(
        name, examples, lambda chance, known: mutate.of_bytes(chance, chance.choice(known), known), read, refusals
    )


TARGETS = (
    Target("tensor", tensor_examples, mutated_tensor, read_tensor, (errors.OpError,)),
    of_bytes("push", frame_examples, tensor_frames.unpack_tagged, errors.OpError),
    Target("bundle", bundle_parts, mutated_bundle, read_bundle, DAMAGED),
    of_bytes("v1", lambda: [bundle_parts()[1][0]], read_v1, *DAMAGED),
    of_bytes("table", table_examples, read_table, errors.DataLossError),
    of_bytes(
        "snappy", snappy_examples, lambda data: index_table._unsnap(data, "block"), errors.DataLossError, IndexError
    ),
    Target("events", record_payloads, mutated_records, read_events, DAMAGED),
    Target("records", record_payloads, mutated_records, read_records, DAMAGED),
    Target(
        "contents",
        lambda: [(kind, each) for kind, found in content_examples().items() for each in found],
        mutated_contents,
        read_contents,
        (errors.OpError,),
    ),
    # RuntimeError: no graph has these tags.
    Target("saved_model", lambda: [saved_model()[0]], mutated_model, read_model, (*DAMAGED, OSError, RuntimeError)),
    Target("meta_graph", lambda: [saved_model()[0]], mutated_meta_graph, read_meta_graph, DAMAGED),
)
