"""Cases of the summary and message ops."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.build.ops import summary_ops
from dtf.wire import errors
from dtf.wire.pb import summary_pb2
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, evaluate, strings
from tests.runtime.op_cases.io import raises


def parsed(tensor) -> summary_pb2.Summary:
    return summary_pb2.Summary.FromString(evaluate(tensor)[0].item())


def a_scalar_is_told_under_its_scope():
    with tf.Graph().as_default(), tf.name_scope("train"):
        value = parsed(summary_ops.scalar("my loss", tf.constant(0.5), family="all")).value[0]
        assert (value.tag, value.simple_value) == ("all/train/all/my_loss", 0.5)


def scalars_of_many_tags():
    with tf.Graph().as_default():
        summary = parsed(apply_op("ScalarSummary", tags=["a", "b"], values=[1.0, 2.0]))
        assert [(value.tag, value.simple_value) for value in summary.value] == [("a", 1.0), ("b", 2.0)]


def a_histogram_has_tensorflows_buckets():
    with tf.Graph().as_default():
        histogram = parsed(summary_ops.histogram("h", tf.constant([1.0, 2.0, -3.0, 0.0]))).value[0].histo
        assert (histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares) == (-3, 2, 4, 0, 14)
        told = dict(zip(histogram.bucket_limit, histogram.bucket, strict=True))
        full = {round(limit, 6): count for limit, count in told.items() if count}
        assert full == {-2.878712: 1, 0.0: 1, 1.008971: 1, 2.162819: 1}
        with raises(errors.InvalidArgumentError, "Nan in summary histogram for"):
            parsed(summary_ops.histogram("n", tf.constant([np.nan])))


def summaries_are_merged_and_tags_are_unique():
    with tf.Graph().as_default():
        assert summary_ops.merge_all() is None
        one, two = summary_ops.scalar("a", tf.constant(1.0)), summary_ops.scalar("b", tf.constant(2.0))
        assert [value.tag for value in parsed(summary_ops.merge_all()).value] == ["a", "b"]
        with raises(errors.InvalidArgumentError, "Duplicate tag a found in summary inputs"):
            parsed(summary_ops.merge([one, two, one]))


def a_tensor_is_told_with_its_metadata():
    with tf.Graph().as_default():
        value = parsed(summary_ops.text("t", tf.constant(["x"]))).value[0]
        assert (value.tag, value.metadata.plugin_data.plugin_name) == ("t", "text")
        assert list(value.tensor.string_val) == [b"x"]


def an_old_tensor_summary_names_its_node():
    with tf.Graph().as_default():
        value = parsed(apply_op("TensorSummary", "node", tensor=tf.constant(1.0))).value[0]
        assert value.node_name == "node"


def pixels_of(image: summary_pb2.Summary.Image) -> np.ndarray:
    """The pixels of a PNG file that has one data chunk and no filters."""
    data = image.encoded_image_string
    at = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[at - 4 : at])
    raw = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + length]), np.uint8)
    return raw.reshape(image.height, -1)[:, 1:].reshape(image.height, image.width, image.colorspace)


def an_image_is_scaled_into_a_png():
    with tf.Graph().as_default():
        batch = np.array([[[[0.0], [0.5]], [[1.0], [np.inf]]], [[[-1.0], [0.0]], [[0.5], [1.0]]]], np.float32)
        first, second = parsed(summary_ops.image("i", tf.constant(batch))).value
        assert (first.tag, second.tag) == ("i/image/0", "i/image/1")
        assert pixels_of(first.image).ravel().tolist() == [0, 127, 255, 255]
        assert pixels_of(second.image).ravel().tolist() == [1, 128, 191, 255]
        whole = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
        (only,) = parsed(summary_ops.image("j", tf.constant(whole), max_outputs=1)).value
        assert only.tag == "j/image"
        np.testing.assert_array_equal(pixels_of(only.image), whole[0])


def sound_is_told_as_wav(op: str):
    def run():
        with tf.Graph().as_default() as graph:
            clip = tf.constant([[0.0, 1.0, -1.0]])
            if op == "AudioSummary":
                graph._producer = 1
                made = apply_op("AudioSummary", tag="a", tensor=clip, sample_rate=8000.0, max_outputs=1)
            else:
                made = summary_ops.audio("a", clip, 8000, max_outputs=1)
            value = parsed(made).value[0]
            assert value.tag == "a/audio" and value.audio.length_frames == 3 and value.audio.sample_rate == 8000
            assert np.frombuffer(value.audio.encoded_audio_string[44:], "<i2").tolist() == [0, 32767, -32768]

    return run


def print_passes_its_input_on_and_says_the_rest():
    with tf.Graph().as_default():
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            value = evaluate(tf.Print(tf.constant(1.0), [tf.constant([1, 2, 3, 4])], "seen: "))[0]
        assert value == 1.0 and out.getvalue() == "seen: [1 2 3...]\n"


def print_v2_writes_its_line():
    with tf.Graph().as_default():
        out = io.StringIO()
        with tf.control_dependencies([apply_op("PrintV2", input="hello")]):
            done = tf.constant(1)
        with contextlib.redirect_stderr(out):
            evaluate(tf.identity(done))
        assert out.getvalue() == "hello\n"


def a_timestamp_is_a_time():
    with tf.Graph().as_default():
        assert evaluate(tf.timestamp())[0] > 1.6e9


CASES = [
    Case("ScalarSummary", run=a_scalar_is_told_under_its_scope),
    Case("ScalarSummary", run=scalars_of_many_tags, name="many_tags"),
    Case("HistogramSummary", run=a_histogram_has_tensorflows_buckets),
    Case("MergeSummary", run=summaries_are_merged_and_tags_are_unique),
    Case("TensorSummaryV2", run=a_tensor_is_told_with_its_metadata),
    Case("TensorSummary", run=an_old_tensor_summary_names_its_node),
    Case("ImageSummary", run=an_image_is_scaled_into_a_png),
    Case("AudioSummary", run=sound_is_told_as_wav("AudioSummary")),
    Case("AudioSummaryV2", run=sound_is_told_as_wav("AudioSummaryV2")),
    Case("Print", run=print_passes_its_input_on_and_says_the_rest),
    Case("Print", [doubles(2), [strings(b"x")]], {"first_n": 0}, lambda x, _: x, grad=[0], name="gradient"),
    Case("PrintV2", run=print_v2_writes_its_line),
    Case("Timestamp", run=a_timestamp_is_a_time),
]
