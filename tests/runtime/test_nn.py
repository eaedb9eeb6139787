"""tf.nn: static shapes, checks, errors at run time, randomness. Values are op_cases/nn's and tests/interop's."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def images(*shape):
    return tf.placeholder(tf.float32, shape)


# Static shapes


def test_a_convolution_knows_what_it_can_of_its_shape():
    filters = tf.zeros([3, 3, 2, 4])
    assert tf.nn.conv2d(images(None, 9, 8, 2), filters, [1, 2, 2, 1], "SAME").shape.as_list() == [None, 5, 4, 4]
    assert tf.nn.conv2d(images(7, None, 8, 2), filters, 1, "VALID").shape.as_list() == [7, None, 6, 4]
    first = tf.nn.conv2d(images(7, 2, 9, 8), filters, 1, "VALID", data_format="NCHW")
    assert first.shape.as_list() == [7, 4, 7, 6]
    assert tf.nn.max_pool(images(None, 5, 5, 3), 2, 2, "SAME").shape.as_list() == [None, 3, 3, 3]
    unknown = tf.nn.conv2d(tf.placeholder(tf.float32), filters, 1, "SAME")
    assert unknown.shape.as_list() == [None, None, None, 4]


def test_a_transposed_convolution_has_the_shape_it_is_given():
    small = images(None, 4, 4, 2)
    grown = tf.nn.conv2d_transpose(small, tf.zeros([3, 3, 5, 2]), tf.stack([tf.shape(small)[0], 8, 8, 5]), 2)
    assert grown.shape.as_list() == [None, 8, 8, 5]
    assert run(grown, {small: np.zeros((3, 4, 4, 2))}).shape == (3, 8, 8, 5)


def test_shapes_that_do_not_fit_are_said_when_the_graph_is_built():
    with pytest.raises(ValueError, match=r"Dimensions must be equal, but are 3 and 2 for 'Conv2D.*Conv2D"):
        tf.nn.conv2d(images(1, 5, 5, 3), tf.zeros([3, 3, 2, 4]), 1, "SAME")
    with pytest.raises(ValueError, match="Negative dimension size caused by subtracting 7 from 5"):
        tf.nn.max_pool(images(1, 5, 5, 3), 7, 1, "VALID")
    with pytest.raises(ValueError, match="Rank mismatch"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[1]], logits=[[1.0, 2.0]])
    with pytest.raises(ValueError, match="must have the same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[1.0, 2.0])
    with pytest.raises(ValueError, match="last dimension >= k"):
        tf.nn.top_k([1.0, 2.0], 3)
    with pytest.raises(ValueError):
        tf.nn.bias_add(tf.zeros([2, 3]), tf.zeros([4]))


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="Only call `softmax_cross_entropy_with_logits` with named arguments"):
        tf.nn.softmax_cross_entropy_with_logits([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="must be provided"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1])
    with pytest.raises(ValueError, match="Exactly one of"):
        tf.nn.dropout(tf.ones([3]), keep_prob=0.5, rate=0.5)
    with pytest.raises(ValueError, match=r"range \[0, 1\)"):
        tf.nn.dropout(tf.ones([3]), rate=1.0)
    with pytest.raises(ValueError, match="floating point"):
        tf.nn.dropout(tf.constant([1, 2]), rate=0.5)
    with pytest.raises(ValueError, match="should be of length 1, 2 or 4"):
        tf.nn.conv2d(images(1, 5, 5, 3), tf.zeros([3, 3, 3, 4]), [1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="not in"):
        tf.nn.conv2d(images(1, 5, 5, 3), tf.zeros([3, 3, 3, 4]), 1, "FULL")
    with pytest.raises(ValueError, match="Both mean and variance"):
        tf.nn.fused_batch_norm(images(1, 5, 5, 3), tf.ones([3]), tf.ones([3]), is_training=False)
    with pytest.raises(ValueError, match="Unrecognized partition strategy"):
        tf.nn.embedding_lookup([tf.zeros([2, 2])] * 2, [0], partition_strategy="odd")
    with pytest.raises(ValueError, match="Need at least one param"):
        tf.nn.embedding_lookup(None, [0])
    with pytest.raises(TypeError, match="sp_ids must be SparseTensor"):
        tf.nn.embedding_lookup_sparse(tf.zeros([2, 2]), [0], None)


# Errors at run time


def test_wrong_values_are_said_by_the_op_that_meets_them():
    labels = tf.placeholder(tf.int64, [None])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.zeros([2, 3]), name="xent")
    message = r"Received a label value of 3 which is outside the valid range of \[0, 3\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(loss, {labels: [0, 3]})
    values = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least k columns"):
        run(tf.nn.top_k(values, 3)[0], {values: [1.0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="input depth must be evenly divisible by filter depth"):
        run(tf.nn.conv2d(values, tf.zeros([1, 1, 2, 1]), 1, "SAME"), {values: np.zeros((1, 2, 2, 3))})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Negative dimension size"):
        run(tf.nn.max_pool(values, 4, 1, "VALID"), {values: np.zeros((1, 2, 2, 3))})


def test_empty_batches_are_fine():
    fed = images(None, 4, 4, 2)
    net = tf.nn.max_pool(tf.nn.conv2d(fed, tf.ones([3, 3, 2, 3]), 1, "SAME"), 2, 2, "SAME")
    logits = tf.reshape(net, [-1, 12])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros([0], tf.int64), logits=logits)
    gradient = tf.gradients(loss, fed)[0]
    found = run([net, loss, gradient], {fed: np.zeros((0, 4, 4, 2))})
    assert [each.shape for each in found] == [(0, 2, 2, 3), (0,), (0, 4, 4, 2)]


# Dropout


def test_dropout_scales_what_it_keeps():
    ones = tf.ones([200, 200])
    found = run(tf.nn.dropout(ones, rate=0.4, seed=7))
    np.testing.assert_allclose(np.unique(found), [0, 1 / 0.6], rtol=1e-6)
    assert abs((found == 0).mean() - 0.4) < 0.01
    rows = run(tf.nn.dropout(ones, keep_prob=0.5, noise_shape=[200, 1], seed=7))
    assert set(np.unique(rows.mean(1))) == {0.0, 2.0}
    columns = run(tf.nn.dropout(ones, rate=0.5, noise_shape=[1, None], seed=7))
    assert set(np.unique(columns.mean(0))) == {0.0, 2.0}


def test_dropout_of_nothing_is_the_input():
    ones = tf.ones([3])
    assert tf.nn.dropout(ones, rate=0.0) is ones
    rate = tf.placeholder(tf.float32, [])
    np.testing.assert_array_equal(run(tf.nn.dropout(ones, rate=rate), {rate: 0.0}), [1, 1, 1])


def test_the_gradient_of_dropout_is_the_mask_that_was_drawn():
    x = tf.constant(np.linspace(1, 2, 50).astype(np.float32))
    dropped = tf.nn.dropout(x, rate=0.5, seed=5)
    value, gradient = run([dropped, tf.gradients(dropped, x)[0]])
    np.testing.assert_allclose(gradient, (value != 0) * 2.0)


# Softmax losses


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_the_gradient_of_a_softmax_loss_costs_one_product_and_has_a_gradient_itself(sparse):
    logits = tf.placeholder(tf.float64, [1, 3])
    loss = (
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2], logits=logits)
        if sparse
        else tf.nn.softmax_cross_entropy_with_logits(labels=tf.constant([[0.0, 0.0, 1.0]], tf.float64), logits=logits)
    )
    gradient = tf.gradients(loss, logits)[0]
    assert "Softmax" not in {op.type for op in tf.get_default_graph().get_operations()}
    second = tf.stack([tf.gradients(gradient[0, number], logits)[0][0] for number in range(3)])
    fed = np.array([[0.5, -1.0, 2.0]])
    probability = np.exp(fed[0]) / np.exp(fed).sum()
    first, hessian = run([gradient, second], {logits: fed})
    np.testing.assert_allclose(first[0], probability - [0, 0, 1])
    np.testing.assert_allclose(hessian, np.diag(probability) - np.outer(probability, probability))


# Half precision


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_losses_of_half_precision_are_computed_in_single(dtype):
    logits = tf.cast(tf.constant([[1.0, 2.0, 3.0]]), dtype)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=logits)
    assert loss.dtype == dtype
    np.testing.assert_allclose(run(tf.cast(loss, tf.float32)), [2.4076], rtol=1e-2)
    mean, variance = tf.nn.moments(logits, [1])
    assert (mean.dtype, variance.dtype) == (dtype, dtype)


# Embeddings


def test_an_embedding_is_looked_up_in_a_partitioned_variable():
    table = tf.get_variable(
        "table", [5, 2], initializer=tf.random_uniform_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    rows = tf.nn.embedding_lookup(table, [[4, 0], [3, 2]], partition_strategy="div")
    assert rows.shape.as_list() == [2, 2, 2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, whole = session.run([rows, table.as_tensor()])
    np.testing.assert_array_equal(found, whole[[[4, 0], [3, 2]]])


def test_a_lookup_runs_beside_the_table(graph):
    with tf.device("/job:ps/task:1"):
        table = tf.get_variable("table", [5, 2])
    with tf.device("/job:worker"):
        rows = tf.nn.embedding_lookup(table, [1, 2], name="rows")
        gradient = tf.gradients(rows, table)[0]
    assert graph.get_operation_by_name("rows").device == "/job:ps/task:1"
    assert isinstance(gradient, tf.IndexedSlices)
