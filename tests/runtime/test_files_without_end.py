"""Files that hold more than the memory that is free, as files that are all hole do, and streams of nothing."""

from __future__ import annotations

import gzip
import os
import struct
import time

import pytest

import dtf as tf
from dtf.run.state import readers
from dtf.wire import errors, filesystems, limits
from dtf.wire.crc import masked_crc32c
from dtf.wire.decompress import InflatingFile, decompress
from dtf.wire.files import fixed_length_records, lines_within_memory, read_within_memory

TOO_LARGE = 1 << 42


def all_hole(tmp_path, head=b""):
    path = tmp_path / "hole"
    path.write_bytes(head)
    os.truncate(path, TOO_LARGE)
    return str(path)


def dataset_of(dataset):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.data.make_one_shot_iterator(dataset()).get_next())


def evaluated(make):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def record_header(length):
    data = struct.pack("<Q", length)
    return data + struct.pack("<I", masked_crc32c(data))


READERS = {
    "record": lambda path: list(tf.python_io.tf_record_iterator(path)),
    "events": lambda path: list(tf.train.summary_iterator(path)),
    "records of a dataset": lambda path: dataset_of(lambda: tf.data.TFRecordDataset(path)),
    "fixed records of a dataset": lambda path: dataset_of(
        lambda: tf.data.FixedLengthRecordDataset(path, TOO_LARGE // 2)
    ),
    "fixed records": lambda path: next(readers.fixed_length_records(0, TOO_LARGE // 2, 0, 0, False)(path)),
    "whole file": lambda path: list(readers.whole_files(path)),
    "ReadFile": lambda path: evaluated(lambda: tf.read_file(path)),
    "a checkpoint or model": filesystems.read_regular,
    "vocabulary": lambda path: evaluated(
        lambda: tf.contrib.lookup.index_table_from_file(path).init
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path, name):
    path = all_hole(tmp_path, record_header(TOO_LARGE - 16))
    with pytest.raises(errors.ResourceExhaustedError, match="memory that are free") as caught:
        READERS[name](path)
    assert path in str(caught.value)


def test_a_device_without_an_end_is_refused_when_memory_is_short(monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: 1 << 29)
    with open("/dev/zero", "rb") as file, pytest.raises(errors.ResourceExhaustedError, match="/dev/zero"):
        read_within_memory(file, "/dev/zero")
    with open("/dev/zero", "rb") as file, pytest.raises(errors.ResourceExhaustedError, match="/dev/zero"):
        next(lines_within_memory(file, "/dev/zero: a line"))


STREAM_READERS = {
    **{name: READERS[name] for name in ("whole file", "ReadFile", "vocabulary")},
    "lines of a dataset": lambda path: dataset_of(lambda: tf.data.TextLineDataset(path)),
    "line": lambda path: next(readers.lines(0)(path)),
    "fixed records of a stream": lambda path: next(readers.fixed_length_records(0, 1 << 27, 0, 0, False)(path)),
    "lines of a compressed file": lambda path: dataset_of(
        lambda: tf.data.TextLineDataset(path + ".gz", compression_type="GZIP")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAM_READERS)
def test_one_string_of_a_stream_whose_size_is_unknown_has_a_limit(tmp_path, monkeypatch, name):
    """However much memory is free: /dev/zero gave half of it to one read, which went on after its step had ended."""
    monkeypatch.setenv(limits.STREAM_BYTES.variable, "40M")
    path = tmp_path / "stream"
    path.symlink_to("/dev/zero")
    (tmp_path / "stream.gz").write_bytes(gzip.compress(bytes(1 << 26), 1))
    with pytest.raises(errors.ResourceExhaustedError, match="DTF_MAX_STREAM_BYTES") as caught:
        STREAM_READERS[name](str(path))
    assert str(path) in str(caught.value)


def test_a_vocabulary_of_empty_lines_is_refused_before_the_lines_are_made(tmp_path, monkeypatch):
    path = tmp_path / "words"
    path.write_bytes(b"\n" * (1 << 23))
    monkeypatch.setattr(limits, "available_bytes", lambda: 1 << 28)
    with pytest.raises(errors.ResourceExhaustedError, match="words"):
        READERS["vocabulary"](str(path))


def test_a_header_or_a_step_beyond_the_end_is_skipped_without_memory(tmp_path):
    path = all_hole(tmp_path)
    with open(path, "rb") as file:
        assert list(fixed_length_records(file, path, 1 << 62, 1, 0)) == []
    with open(path, "rb") as file:
        assert list(fixed_length_records(file, path, 0, 1, 0, 1 << 62)) == [b"\0"]


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize(
    ("header", "record", "footer", "step", "found"),
    [
        (0, 3, 0, 0, [b"012", b"345", b"678"]),
        (1, 2, 3, 0, [b"12", b"34", b"56"]),
        (0, 4, 0, 2, [b"0123", b"2345", b"4567", b"6789"]),
        (0, 2, 0, 7, [b"01", b"78"]),
        (9, 2, 0, 0, []),
        (11, 1, 0, 0, []),
    ],
)
def test_records_of_fixed_length_are_read_as_they_come(tmp_path, is_compressed, header, record, footer, step, found):
    path = tmp_path / "records"
    path.write_bytes(gzip.compress(b"0123456789") if is_compressed else b"0123456789")
    with open(path, "rb") as file:
        opened = InflatingFile(str(path), file, "GZIP") if is_compressed else file
        assert list(fixed_length_records(opened, "", header, record, footer, step)) == found


def test_lines_longer_than_a_piece_are_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("dtf.wire.files._PIECE_BYTES", 4)
    path = tmp_path / "lines"
    lines = [b"\n", b"abc\n", b"abcd\n", b"abcdefgh\n", b"abcdefghi"]
    path.write_bytes(b"".join(lines))
    with open(path, "rb") as file:
        assert list(lines_within_memory(file, "")) == lines


def test_many_empty_streams_cost_no_copies_of_what_follows():
    streams = gzip.compress(b"") * 20_000 + gzip.compress(b"end")
    begun = time.process_time()
    assert decompress(streams, "GZIP", "") == b"end"
    assert time.process_time() - begun < 20, "each stream copied the rest: 4 GB"


def test_a_compressed_text_larger_than_the_limit_is_read_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DTF_MAX_DECOMPRESSED_BYTES", "1K")
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"line\n" * 1000))
    assert dataset_of(lambda: tf.data.TextLineDataset(str(path), compression_type="GZIP")) == b"line"
