"""Cases of the readers: each reads real files whose names come from a queue, by both kinds of handle."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import dtf as tf
from dtf.build.apply import apply_op
from tests.runtime.op_cases import Case

LINES = [b"head\none\r\ntwo\n", b"head\nthree"]


def check_reader(kind: str, version: str, contents: list[bytes], expected: list[bytes], **attrs) -> None:
    """Reads everything, one record and then up to ten at a time, and looks at the counts."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default() as graph:
        if not version:
            graph._producer = 1  # a graph of the time when it had such readers
        paths = []
        for number, data in enumerate(contents):
            path = Path(folder) / f"file{number}"
            path.write_bytes(data)
            paths.append(str(path))
        queue_type = f"FIFOQueue{version}"
        queue = apply_op(queue_type, component_types=[tf.string], shapes=[[]])
        fill = apply_op(f"QueueEnqueueMany{version}", handle=queue, components=[paths])
        close = apply_op(f"QueueClose{version}", handle=queue)
        reader = apply_op(f"{kind}Reader{version}", **attrs)
        one = apply_op(f"ReaderRead{version}", reader_handle=reader, queue_handle=queue)
        many = apply_op(f"ReaderReadUpTo{version}", reader_handle=reader, queue_handle=queue, num_records=10)
        produced = apply_op(f"ReaderNumRecordsProduced{version}", reader_handle=reader)
        completed = apply_op(f"ReaderNumWorkUnitsCompleted{version}", reader_handle=reader)
        reset = apply_op(f"ReaderReset{version}", reader_handle=reader)
        with tf.Session() as session:
            session.run(fill)
            session.run(close)
            key, record = session.run(list(one))
            assert key.decode().startswith(paths[0]), key
            records = [record]
            while len(records) < len(expected):
                keys, more = session.run(list(many))
                assert len(keys) == len(more) > 0
                records += list(more)
            wanted = [path.encode() for path in paths] if kind == "Identity" else expected
            assert records == wanted
            assert session.run(produced) == len(expected)
            try:
                session.run(list(one))
            except tf.errors.OutOfRangeError:
                pass
            else:
                raise AssertionError("there is no more to read")
            assert session.run(completed) == len(contents)
            if kind in ("Identity", "WholeFile"):
                state = session.run(apply_op(f"ReaderSerializeState{version}", reader_handle=reader))
                session.run(reset)
                restore = apply_op(f"ReaderRestoreState{version}", reader_handle=reader, state=state)
                assert session.run(produced) == 0
                session.run(restore)
                assert session.run(produced) == len(expected)
            session.run(reset)
            assert session.run([produced, completed]) == [0, 0]


def tf_records(compression: str) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        options = tf.python_io.TFRecordOptions(compression or None)
        with tf.python_io.TFRecordWriter(str(path), options) as writer:
            writer.write(b"first")
            writer.write(b"")
        return [path.read_bytes()]


def readers() -> dict[str, Callable[[str], None]]:
    fixed = {"record_bytes": 3, "header_bytes": 1, "footer_bytes": 2}
    return {
        "WholeFile": lambda version: check_reader("WholeFile", version, [b"a", b"bc"], [b"a", b"bc"]),
        "Identity": lambda version: check_reader("Identity", version, [b"", b""], [b"", b""]),
        "TextLine": lambda version: check_reader(
            "TextLine", version, LINES, [b"one", b"two", b"three"], skip_header_lines=1
        ),
        "TFRecord": lambda version: check_reader("TFRecord", version, tf_records(""), [b"first", b""]),
        "FixedLengthRecord": lambda version: check_reader(
            "FixedLengthRecord", version, [b"habcdefff"], [b"abc", b"def"], **fixed
        ),
    }


def the_classes_read_what_queue_runners_give():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        path = Path(folder) / "lines"
        path.write_bytes(LINES[0])
        names = tf.FIFOQueue(4, tf.string)
        tf.train.add_queue_runner(tf.train.QueueRunner(names, [names.enqueue([str(path)])]))
        _, line = tf.TextLineReader(skip_header_lines=1).read(names)
        with tf.Session() as session:
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            assert [session.run(line), session.run(line)] == [b"one", b"two"]
            coordinator.request_stop()
            coordinator.join(threads)


def compressed_records_are_read():
    check_reader("TFRecord", "V2", tf_records("GZIP"), [b"first", b""], compression_type="GZIP")
    check_reader(
        "FixedLengthRecord", "V2", [zlib.compress(b"abcdef")], [b"abc", b"def"], record_bytes=3, encoding="ZLIB"
    )


def all_of_a_version(version: str) -> Callable[[], None]:
    return lambda: check_reader("WholeFile", version, [b"a", b"bc"], [b"a", b"bc"])


CASES = [
    *(
        Case(f"{kind}Reader{version}", run=lambda check=check, version=version: check(version))  # type: ignore[misc]
        for kind, check in readers().items()
        for version in ("", "V2")
    ),
    *(
        Case(f"Reader{method}{version}", run=all_of_a_version(version))
        for method in (
            "Read", "ReadUpTo", "NumRecordsProduced", "NumWorkUnitsCompleted", "SerializeState", "RestoreState",
            "Reset",
        )
        for version in ("", "V2")
    ),
    Case("TFRecordReaderV2", run=compressed_records_are_read, name="compressed"),
    Case("ReaderReadV2", run=the_classes_read_what_queue_runners_give, name="classes"),
]  # fmt: skip
