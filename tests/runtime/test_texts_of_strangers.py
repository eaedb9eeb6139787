"""Text that only Python would take, or that costs Python much: it is refused as TensorFlow refuses it."""

from __future__ import annotations

import resource

import numpy as np
import pytest

import dtf as tf
from dtf.run.lib.csv_fields import csv_fields
from dtf.run.lib.number_text import number_of
from dtf.run.lib.patterns import Pattern
from dtf.wire import errors


def refused(make, words):
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match=words):
        session.run(make())


@pytest.mark.parametrize("text", ["1_0", "١", "1\0", "", "0x", "1 2", "9" * 5000])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_text_that_is_a_number_for_python_only_is_none(dtype, text):
    if dtype == np.float32 and text.startswith("9"):
        assert number_of(text.encode(), dtype) == np.inf
        return
    with pytest.raises((ValueError, OverflowError)):
        number_of(text.encode(), dtype)


@pytest.mark.parametrize(
    ("text", "value"), [("0x1p3", 8.0), (" -0X10\t", -16.0), ("1e999", np.inf), ("infinity", np.inf), (" 7 ", 7.0)]
)
def test_floats_are_read_as_tensorflow_reads_them(text, value):
    assert number_of(text.encode(), np.float32) == value


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b"", []),
        (b",", [b"", b""]),
        (b'"a,b",c', [b"a,b", b"c"]),
        (b'"a""b"', [b'a"b']),
        (b'"",x,""', [b"", b"x", b""]),
        (b'"two\nlines",x', [b"two\nlines", b"x"]),
        (b'"a",', [b"a", b""]),
        (b"\na", [b"a"]),
        (b'"abc', None),
        (b'"a"b', None),
        (b'a"b', None),
        (b"a\n", None),
        (b'"', None),
    ],
)
def test_a_record_has_the_fields_of_tensorflow_or_is_refused(line, fields):
    if fields is None:
        with pytest.raises(errors.InvalidArgumentError, match="uote"):
            csv_fields(line, b",", b'"')
    else:
        assert csv_fields(line, b",", b'"') == fields


def test_quotes_are_text_where_nobody_quotes():
    assert csv_fields(b'a"b,"c', b",", b"") == [b'a"b', b'"c']


def test_a_vocabulary_holds_numbers_and_not_pythons(tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("a\t1_0\n")
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.contrib.lookup.HashTable(
            tf.contrib.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter="\t"), -1
        )
        with pytest.raises(errors.InvalidArgumentError, match="Field 1_0 in line 0 is not a valid int64"):
            session.run(made.init)


@pytest.mark.parametrize("encoding", ["zlib_codec", "rot13", "idna", "punycode", "unicode_escape", "undefined", "a\0b"])
def test_a_codec_of_python_is_no_encoding(encoding):
    refused(lambda: tf.raw_ops.UnicodeDecode(input=["xn--"], input_encoding=encoding), "Could not create converter")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tf.as_string([1], width=3, fill="%s"), "one or fewer"),
        (lambda: tf.as_string([1], width=3, fill="%"), "Fill argument not supported"),
        (lambda: tf.decode_csv(["a"], [["x"]], field_delim="ab"), "field_delim should be only 1 char"),
        (lambda: tf.audio.encode_wav(tf.zeros([0, 100_000]), 44100), "num_channels must be in"),
        (
            lambda: tf.raw_ops.StringNGrams(
                data=["a"], data_splits=tf.constant([0, 1], tf.int64), separator="", ngram_widths=[-1], left_pad="",
                right_pad="", pad_width=-1, preserve_short_sequences=False,
            ),
            "ngram_widths must contain positive values",
        ),
    ],
)  # fmt: skip
def test_an_attribute_out_of_range_is_refused_in_tensorflows_words(make, words):
    refused(make, words)


def test_groups_that_nobody_asks_for_cost_no_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pattern = Pattern(b"(" * 10_000 + b"a" + b")" * 10_000)
    assert pattern.matches(b"a") and pattern.replace(b"xax", b"<\\0>", True) == b"x<a>x"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10
    with pytest.raises(errors.ResourceExhaustedError, match="10000 groups"):
        pattern.replace(b"a", b"\\1", True)
