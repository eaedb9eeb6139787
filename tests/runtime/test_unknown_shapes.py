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


@pytest.mark.parametrize("shape", [(4, 6, 3), (2, 4, 6, 3)])
def test_images_of_unknown_rank_turn_in_the_step(graph, shape):
    image = np.random.RandomState(1).uniform(size=shape).astype(np.float32)
    x, k, first = placeholder(image, None), tf.placeholder(tf.int32, []), len(shape) - 3
    found = [
        tf.image.flip_left_right(x), tf.image.flip_up_down(x), tf.image.transpose_image(x), tf.image.rot90(x, k),
        tf.image.rot90(x, -1), tf.image.random_flip_left_right(x)[..., 0, 0] * 0,
    ]  # fmt: skip
    assert all(tensor.shape.ndims is None for tensor in found[:-1])
    axes = (first, first + 1)
    expected = [
        np.flip(image, first + 1), np.flip(image, first), np.swapaxes(image, *axes), np.rot90(image, 3, axes),
        np.rot90(image, -1, axes), np.zeros(shape[:-2]),
    ]  # fmt: skip
    for got, want in zip(graph.run(found, {x: image, k: 3}), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_image_of_unknown_rank_is_cut_and_padded_as_a_single_one(graph):
    image = np.random.RandomState(1).uniform(size=(4, 6, 3)).astype(np.float32)
    x, height = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    cut = tf.image.crop_to_bounding_box(x, 1, 1, height, 3)
    padded = tf.image.pad_to_bounding_box(x, 1, 1, 8, 9)
    both = tf.image.resize_image_with_crop_or_pad(x, 5, 4)
    assert [each.shape.as_list() for each in (cut, padded, both)] == [[None, 3, None], [8, 9, None], [5, 4, None]]
    got = graph.run([cut, padded, both], {x: image, height: 2})
    np.testing.assert_array_equal(got[0], image[1:3, 1:4])
    np.testing.assert_array_equal(got[1], np.pad(image, [(1, 3), (1, 2), (0, 0)]))
    np.testing.assert_array_equal(got[2], np.pad(image[:, 1:5], [(0, 1), (0, 0), (0, 0)]))
    for each in (cut, padded, both):
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph.run(each, {x: image[None], height: 2})
    for refused in (lambda: tf.image.central_crop(x, 0.5), lambda: tf.image.resize_images(x, [3, 5])):
        with pytest.raises(ValueError, match="known rank|contains no shape"):
            refused()


def test_a_size_in_which_one_side_is_fed_resizes(graph):
    height = tf.placeholder(tf.int32, [])
    resized = tf.image.resize_images(np.ones((4, 6, 3), np.float32), [height, 5])
    assert graph.run(resized, {height: 3}).shape == (3, 5, 3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_values_of_unknown_rank_are_sorted_along_any_axis(graph, axis):
    values = np.random.RandomState(1).uniform(size=(2, 3, 4)).astype(np.float32)
    x = tf.placeholder(tf.float32)
    ordered, places, falling = graph.run(
        [tf.sort(x, axis), tf.argsort(x, axis), tf.sort(x, axis, "DESCENDING")], {x: values}
    )
    np.testing.assert_array_equal(ordered, np.sort(values, axis))
    np.testing.assert_array_equal(places, np.argsort(values, axis))
    np.testing.assert_array_equal(falling, -np.sort(-values, axis))


@pytest.mark.parametrize("knowledge", RANKS)
@pytest.mark.parametrize("axes", [0, 1, 2, [[2], [0]], [[0, -1], [1, 0]], [[], []]])
def test_tensordot_takes_ranks_and_axes_that_only_the_step_knows(graph, axes, knowledge):
    a = np.random.RandomState(1).uniform(size=(3, 4, 4)).astype(np.float32)
    b = (
        np.random.RandomState(2)
        .uniform(size=(4, 3) if axes in (1, [[2], [0]], [[0, -1], [1, 0]]) else (4, 4))
        .astype(np.float32)
    )
    x, y = placeholder(a, knowledge), placeholder(b, knowledge)
    along = tf.placeholder(tf.int32, np.shape(axes))
    got = graph.run([tf.tensordot(x, y, axes), tf.tensordot(x, y, along)], {x: a, y: b, along: axes})
    for each in got:
        np.testing.assert_allclose(each, np.tensordot(a, b, axes), rtol=1e-4)


@pytest.mark.parametrize("knowledge", RANKS)
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_recall_at_k_sees_the_rank_of_labels_in_the_step(graph, shape, knowledge):
    labels, scores = np.array([0, 2, 1]).reshape(shape), np.array([[3, 2, 1], [3, 2, 1], [1, 3, 2]], np.float32)
    y, x = placeholder(labels, knowledge), placeholder(scores, knowledge)
    w = tf.placeholder(tf.float32)
    update = tf.metrics.recall_at_k(y, x, 2, weights=w)[1]
    graph.run(tf.local_variables_initializer())
    feeds = {y: labels, x: scores, w: [1, 2, 1]}
    np.testing.assert_allclose(graph.run(update, feeds), 0.5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph.run(update, {**feeds, w: np.ones([3, 1])})


@pytest.mark.parametrize("knowledge", RANKS)
def test_the_pairwise_loss_sums_over_all_axes_of_an_example(graph, knowledge):
    labels, guesses = np.zeros([2, 3], np.float32), np.array([[1, 2, 4], [0, 0, 3]], np.float32)
    y, x, w = placeholder(labels, knowledge), placeholder(guesses, knowledge), tf.placeholder(tf.float32)
    loss = tf.losses.mean_pairwise_squared_error(y, x, w)
    feeds = {y: labels, x: guesses}
    pairs = [(1 + 4 + 9) / 3, (0 + 9 + 9) / 3]
    np.testing.assert_allclose(graph.run(loss, {**feeds, w: 1}), sum(pairs), rtol=1e-5)
    np.testing.assert_allclose(graph.run(loss, {**feeds, w: [[1], [2]]}), pairs[0] + 2 * pairs[1], rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph.run(loss, {**feeds, w: [1, 2]})
