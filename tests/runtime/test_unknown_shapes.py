"""What depends on axes, ranks or values that only the step knows must be right in the step."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

RANKS = [None, "rank"]


def placeholder(value, knowledge):
    return tf.placeholder(value.dtype, None if knowledge is None else [None] * value.ndim)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.mark.parametrize("knowledge", RANKS)
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
def test_the_loss_along_an_axis_keeps_the_order_of_the_others(graph, axis, knowledge):
    logits, labels = np.random.RandomState(1).uniform(size=(2, 2, 3, 4)).astype(np.float32)
    x = placeholder(logits, knowledge)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x, axis=axis)
    expected = -(labels * (logits - np.log(np.exp(logits).sum(axis, keepdims=True)))).sum(axis)
    np.testing.assert_allclose(graph.run(loss, {x: logits}), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 1), (5, 2, 3, 1)])
def test_a_turn_by_a_number_that_is_fed_has_no_known_sides(graph, shape):
    image = np.arange(np.prod(shape)).reshape(shape)
    k = tf.placeholder(tf.int32, [])
    turned = tf.image.rot90(tf.constant(image), k)
    assert turned.shape.as_list() == [*shape[:-3], None, None, 1]
    for times in range(-1, 6):
        axes = (len(shape) - 3, len(shape) - 2)
        np.testing.assert_array_equal(graph.run(turned, {k: times}), np.rot90(image, times, axes))


@pytest.mark.parametrize("knowledge", RANKS)
@pytest.mark.parametrize("shape", [(4,), (4, 1), ()])
def test_weights_of_a_metric_fit_in_the_step(graph, shape, knowledge):
    weights = np.array([0.1, 0.2, 0.3, 0.4])[: int(np.prod(shape))].reshape(shape)
    w = placeholder(weights, knowledge)
    update = tf.metrics.accuracy([1, 1, 0, 1], [1, 0, 0, 0], w)[1]
    graph.run(tf.local_variables_initializer())
    np.testing.assert_allclose(graph.run(update, {w: weights}), 0.4 if shape else 0.5, rtol=1e-6)


@pytest.mark.parametrize("knowledge", RANKS)
def test_labels_of_a_metric_fit_in_the_step(graph, knowledge):
    labels = np.array([[1], [0], [1]])
    y = placeholder(labels, knowledge)
    update = tf.metrics.accuracy(y, [1, 1, 1])[1]
    graph.run(tf.local_variables_initializer())
    np.testing.assert_allclose(graph.run(update, {y: labels}), 2 / 3, rtol=1e-6)


@pytest.mark.parametrize("knowledge", RANKS)
@pytest.mark.parametrize("shape", [(3,), (1, 4), (2, 2)])
def test_weights_that_do_not_broadcast_end_the_step(graph, shape, knowledge):
    w, x = tf.placeholder(tf.float32, None), placeholder(np.ones(4, np.float32), knowledge)
    loss = tf.losses.absolute_difference(x, tf.zeros([4]), w)
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph.run(loss, {w: np.ones(shape), x: np.ones(4)})


@pytest.mark.parametrize("knowledge", RANKS)
@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_the_sparse_loss_takes_labels_of_unknown_shape(graph, shape, knowledge):
    labels, logits = np.array([0, 2]).reshape(shape), np.array([[1, 2, 3], [4, 5, 7]], np.float32)
    y, x = placeholder(labels, knowledge), placeholder(logits, knowledge)
    loss = tf.losses.sparse_softmax_cross_entropy(y, x)
    expected = np.mean(np.log(np.exp(logits).sum(1)) - logits[[0, 1], [0, 2]])
    np.testing.assert_allclose(graph.run(loss, {x: logits, y: labels}), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("encoding", "text", "offsets"),
    [
        ("UTF-16", b"\x00a\x00b", [0, 2]),
        ("UTF-16", b"\xff\xfea\x00b\x00", [0, 4]),
        ("UTF-16", b"\xfe\xff\x00a\x00b", [0, 4]),
        ("UTF-32", b"\x00\x00\x00a\x00\x00\x00b", [0, 4]),
        ("UTF-32", b"\xff\xfe\x00\x00a\x00\x00\x00b\x00\x00\x00", [0, 8]),
        ("UTF-16-LE", b"a\x00b\x00", [0, 2]),
    ],
)
def test_text_without_a_byte_order_mark_has_the_high_byte_first(graph, encoding, text, offsets):
    ops = tf.raw_ops
    transcoded = ops.UnicodeTranscode(input=text, input_encoding=encoding, output_encoding="UTF-8")
    decoded = ops.UnicodeDecodeWithOffsets(input=[text], input_encoding=encoding)
    assert graph.run(transcoded) == b"ab"
    _, codes, starts = graph.run(list(decoded))
    assert codes.tolist() == [97, 98] and starts.tolist() == offsets


def test_a_single_examples_string_keeps_its_nul_bytes(graph):
    example = tf.train.Example()
    example.features.feature["a"].bytes_list.value.append(b"ab\x00\x00")
    keys = {"a": tf.FixedLenFeature([], tf.string), "b": tf.FixedLenFeature([], tf.string, default_value=b"d\x00")}
    found = tf.parse_single_example(example.SerializeToString(), keys)
    assert graph.run([tf.strings.length(found["a"]), tf.strings.length(found["b"])]) == [4, 2]
    assert graph.run(tf.decode_raw(found["a"], tf.uint8)).tolist() == [97, 98, 0, 0]
