"""Damaged files: each kind that dtf reads, changed in a few bytes, must be read or refused in one of few ways.

    python -m tests.fuzz.damaged_files [seconds] [seed] [target ...]

prints each new kind of escape with the target, the seed of the change, and the traceback's last line.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
import random
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dtf as tf
from dtf.run.kernels import KernelNode, bind
from dtf.wire import checkpoint_v1, errors, index_table
from dtf.wire.crc import masked_crc32c
from dtf.wire.index_table import read_table, write_table

PILLOW = importlib.util.find_spec("PIL") is not None

REFUSALS = (
    errors.DataLossError, errors.InvalidArgumentError, errors.NotFoundError, errors.ResourceExhaustedError,
    errors.UnimplementedError, errors.OutOfRangeError, errors.FailedPreconditionError, ValueError,
)  # fmt: skip
"""How a damaged file may be refused; UnicodeDecodeError, a ValueError that names nothing, is none of these."""


def is_refusal(error: BaseException) -> bool:
    """Whether an error is one of those with which a damaged file may be refused."""
    return isinstance(error, REFUSALS) and not isinstance(error, UnicodeError)


class Target:
    """One kind of file: `golden` are its bytes, `read(path)` reads a file of such bytes.

    Args:
      mend: makes checksums right again, so that the damage reaches what is behind them.
    """

    def __init__(
        self,
        name: str,
        golden: bytes,
        read: Callable[[str], Any],
        file: str = "file",
        mend: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.name, self.golden, self.read, self.file, self.mend = name, golden, read, file, mend


def changed(data: bytes, rng: random.Random) -> bytes:
    """Some bytes flipped, set, removed, inserted, doubled or cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + rng.choice((1, 2, 4, 20))]
        elif kind == 3:
            out[at:at] = rng.choice((b"\0", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x10", rng.randbytes(4)))
        elif kind == 4:
            out[at:at] = out[at : at + rng.randrange(40)]
        elif kind == 5 and rng.random() < 0.3:
            del out[at:]
        elif kind == 6:
            other = rng.randrange(len(out) + 1)
            out[at : at + 8] = out[other : other + 8]
    return bytes(out)


def try_once(target: Target, seed: int, folder: Path) -> BaseException | None:
    """What escapes for one change; None where the file was read or refused rightly."""
    rng = random.Random(f"{target.name} {seed}")
    if target.mend is not None and rng.random() < 0.8:
        data = target.mend(changed(target.golden, rng))
    else:
        data = changed(target.golden, rng)
    path = folder / target.file
    path.write_bytes(data)
    try:
        target.read(str(path))
    except Exception as error:
        return None if is_refusal(error) else error
    return None


# -- what reads


def _all_of(prefix: str) -> None:
    reader = tf.train.load_checkpoint(prefix)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)


def _session(make: Callable[[Any], Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return make(session)


def _restore_shapes(path: str) -> None:
    tf.train.latest_checkpoint(os.path.dirname(path))
    tf.train.get_checkpoint_state(os.path.dirname(path))


def _model(path: str) -> None:
    try:
        _session(lambda session: tf.saved_model.loader.load(session, ["serve"], os.path.dirname(path)))
    except RuntimeError as error:
        if "could not be found" not in str(error):  # TensorFlow's for tags that no graph has
            raise


def _meta(path: str) -> None:
    def load(session: Any) -> None:
        saver = tf.train.import_meta_graph(path)
        if saver is not None:
            saver.restore(session, str(Path(path).with_name("m")))

    _session(load)


def _graph(path: str) -> None:
    graph_def = tf.GraphDef()
    try:
        graph_def.ParseFromString(Path(path).read_bytes())
    except Exception:
        return  # the program's own reading
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.Session(graph=graph) as session:
            if {"x", "sum"} <= {op.name for op in graph.get_operations()}:
                session.run("sum:0", {"x:0": np.ones((2, 2), np.float32)})


def _vocabulary(path: str) -> None:
    def run(session: Any) -> None:
        words = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1)
        table = tf.lookup.StaticHashTable(words, -1)
        session.run(tf.tables_initializer())
        session.run(table.lookup(tf.constant(["a"])))

    _session(run)


def _kernel(op: str, **attrs: Any) -> Callable[[str], Any]:
    _, run = bind(KernelNode("n", op, "", attrs, 1, {}))

    def read(path: str) -> Any:
        try:
            return run(np.array(Path(path).read_bytes(), object))
        except (IndexError, TypeError, OverflowError) as error:
            raise ValueError("the executor names these InvalidArgument") from error

    return read


_decode_image = _kernel("DecodeImage", channels=3, dtype=tf.uint8, expand_animations=True)


# -- goldens and checksums made right again


def _mended_table(data: bytes) -> bytes:
    """A table with the same blocks and right checksums, where its blocks can be found."""
    out = bytearray(data)
    try:
        footer = data[-48:]
        _, _, position = index_table._read_handle(footer, 0)
        offset, size, _ = index_table._read_handle(footer, position)
        handles = [(offset, size)]
        for _, handle in index_table._entries(data[offset : offset + size]):
            handles.append(index_table._read_handle(handle, 0)[:2])
    except Exception:
        return data
    for offset, size in handles:
        if offset + size + 5 <= len(out):
            out[offset + size + 1 : offset + size + 5] = struct.pack(
                "<I", masked_crc32c(bytes(out[offset : offset + size + 1]))
            )
    return bytes(out)


def _in_table(golden: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The contents of a table as plain bytes to change, and what packs them again: keys stay, values change."""
    items = list(read_table(golden, "golden"))
    mark = b"\xf0MARK\xf1"

    def pack(changed_values: bytes) -> bytes:
        values = changed_values.split(mark)
        return write_table((key, values[i] if i < len(values) else b"") for i, (key, _) in enumerate(items))

    return mark.join(value for _, value in items), pack


def _mended_records(data: bytes) -> bytes:
    """Records with right checksums, as far as their lengths can be followed."""
    out, at = bytearray(data), 0
    while at + 12 <= len(out):
        (length,) = struct.unpack_from("<Q", out, at)
        struct.pack_into("<I", out, at + 8, masked_crc32c(bytes(out[at : at + 8])))
        end = at + 12 + length
        if end + 4 > len(out):
            break
        struct.pack_into("<I", out, end, masked_crc32c(bytes(out[at + 12 : end])))
        at = end + 4
    return bytes(out)


def _goldens(folder: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        v = tf.get_variable("v", initializer=np.arange(4, dtype=np.float32).reshape(2, 2))
        tf.get_variable("words", initializer=["a", "bcd"])
        tf.get_variable("part", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        total = tf.reduce_sum(tf.matmul(x, v), name="sum")
        branch = tf.cond(total > 0, lambda: total, lambda: -total)
        loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        tf.add_to_collection("wanted", branch)
        tf.add_to_collection("wanted", loop)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(folder / "m"))
        tf.train.Saver(write_version=1).save(session, str(folder / "v1"))
        tf.saved_model.simple_save(session, str(folder / "model"), {"x": x}, {"y": total})
        tf.saved_model.simple_save(session, str(folder / "model2"), {"x": x}, {"y": total})
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["sum"])
        (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
        writer = tf.summary.FileWriter(str(folder / "events"), session.graph)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1.0)]), 1)
        writer.close()
    with tf.python_io.TFRecordWriter(str(folder / "records")) as records:
        for number in range(4):
            records.write(b"record %d" % number)


def targets(folder: Path) -> list[Target]:
    """All of them; golden files are made below `folder`."""
    golden = folder / "golden"
    golden.mkdir()
    _goldens(golden)
    where = folder / "damaged"
    for name in ("m", "v1", "state", "model", "model_text", "meta"):
        (where / name).mkdir(parents=True)
    data_file = "m.data-00000-of-00001"
    for name in ("m", "meta"):
        (where / name / data_file).write_bytes((golden / data_file).read_bytes())
    (where / "meta" / "m.index").write_bytes((golden / "m.index").read_bytes())
    (where / "state" / "m.index").write_bytes((golden / "m.index").read_bytes())
    model = golden / "model"
    for name in ("model", "model_text"):
        (where / name / "variables").mkdir()
        for path in (model / "variables").iterdir():
            (where / name / "variables" / path.name).write_bytes(path.read_bytes())
    index = (golden / "m.index").read_bytes()
    values, pack = _in_table(index)
    v1 = (golden / "v1").read_bytes()
    v1_values, v1_pack = _in_table(v1)
    meta = (golden / "m.meta").read_bytes()
    saved_model = (model / "saved_model.pb").read_bytes()
    events = next((golden / "events").iterdir()).read_bytes()
    records = (golden / "records").read_bytes()
    frozen = (golden / "frozen.pb").read_bytes()
    wav = _wav()
    found = [
        Target("index", index, lambda path: _all_of(path.removesuffix(".index")), "m/m.index", _mended_table),
        Target("entries", values, lambda path: _all_of(path.removesuffix(".index")), "m/m.index", pack),
        Target("data", (golden / data_file).read_bytes(), lambda path: _all_of(path[: -len(data_file) + 1]),
               f"m/{data_file}"),
        Target("v1", v1, _all_of, "v1/v1", _mended_table),
        Target("v1 entries", v1_values, _all_of, "v1/v1", v1_pack),
        Target("v1 whole", v1, lambda path: checkpoint_v1.open_checkpoint(path).is_whole(), "v1/v1", _mended_table),
        Target("state", (golden / "checkpoint").read_bytes(), _restore_shapes, "state/checkpoint"),
        Target("latest", values, lambda path: tf.train.latest_checkpoint(os.path.dirname(path)), "state/m.index", pack),
        Target("meta graph", meta, _meta, "meta/m.meta"),
        Target("saved model", saved_model, _model, "model/saved_model.pb"),
        Target("saved model as text", _as_text(saved_model), _model, "model_text/saved_model.pbtxt"),
        Target("frozen graph", frozen, _graph),
        Target("events", events, lambda path: list(tf.train.summary_iterator(path)), mend=_mended_records),
        Target("records", records, lambda path: list(tf.python_io.tf_record_iterator(path)), mend=_mended_records),
        Target("gzip records", gzip.compress(records), lambda path: list(tf.python_io.tf_record_iterator(path, 2))),
        Target("vocabulary", b"a\t1\nb\t2\nc d\t3\n", _vocabulary),
        *(Target(kind.lower(), _image(kind), _decode_image) for kind in ("PNG", "BMP", "GIF", "JPEG") if PILLOW),
        Target("wav", wav, _kernel("DecodeWav", desired_channels=-1, desired_samples=-1)),
        Target("gzip string", gzip.compress(b"hello " * 40), _kernel("DecodeCompressed", compression_type="GZIP")),
    ]  # fmt: skip
    for target in found:
        target.file = f"damaged/{target.file}"
    return found


def _as_text(saved_model: bytes) -> bytes:
    from google.protobuf import text_format

    from dtf.wire.pb import saved_model_pb2

    return text_format.MessageToString(saved_model_pb2.SavedModel.FromString(saved_model)).encode()


def _image(kind: str) -> bytes:
    import PIL.Image

    out = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 255, (9, 7, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def _wav() -> bytes:
    samples = np.arange(40, dtype="<i2").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 2, 8000, 32000, 4, 16,
                       b"data", len(samples))  # fmt: skip
    return head + samples


def main(arguments: list[str]) -> int:
    """Runs for so many seconds from a seed on; the status is the number of kinds of escapes."""
    seconds = float(arguments[0]) if arguments else 60.0
    first = int(arguments[1]) if len(arguments) > 1 else 0
    warnings.simplefilter("ignore")
    tf.logging.set_verbosity(tf.logging.FATAL)
    seen: dict[tuple[str, str], int] = {}
    tried: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        chosen = [each for each in targets(Path(folder)) if not arguments[2:] or each.name in arguments[2:]]
        for target in chosen:
            end = time.monotonic() + seconds / len(chosen)
            seed = first
            while time.monotonic() < end:
                began = time.monotonic()
                error = try_once(target, seed, Path(folder))
                if time.monotonic() - began > 5:
                    print(f"{target.name} {seed}: took {time.monotonic() - began:.1f} s", flush=True)
                if error is not None:
                    frame = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{frame.filename.rpartition('dtf/')[2]}:{frame.lineno}"
                    key = (target.name, f"{type(error).__name__} at {place}")
                    if key not in seen:
                        print(f"{target.name} {seed}: {key[1]}: {str(error)[:200]!r}", flush=True)
                    seen[key] = seen.get(key, 0) + 1
                seed += 1
            tried[target.name] = seed - first
    print(f"{sum(tried.values())} tried ({tried}), {len(seen)} kinds of escapes")
    return len(seen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
