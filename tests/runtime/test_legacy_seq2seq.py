"""tf.contrib.legacy_seq2seq: decoders with and without attention, buckets, inputs that are fed back."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.contrib import legacy_seq2seq as seq2seq

ENCODER, DECODER, SYMBOLS = 3, 4, 6


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        yield


def ids(steps):
    return [tf.constant(np.random.RandomState(step).randint(0, SYMBOLS, 5), tf.int32) for step in range(steps)]


def fetch(value, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(value, feeds)


MODELS = {
    "rnn": lambda feed: seq2seq.embedding_rnn_seq2seq(
        ids(ENCODER), ids(DECODER), tf.nn.rnn_cell.GRUCell(4), SYMBOLS, SYMBOLS, 3, feed_previous=feed
    ),
    "tied": lambda feed: seq2seq.embedding_tied_rnn_seq2seq(
        ids(ENCODER), ids(DECODER), tf.nn.rnn_cell.BasicLSTMCell(4), SYMBOLS, 3, feed_previous=feed
    ),
    "attention": lambda feed: seq2seq.embedding_attention_seq2seq(
        ids(ENCODER), ids(DECODER), tf.nn.rnn_cell.BasicLSTMCell(4), SYMBOLS, SYMBOLS, 3, 2, feed_previous=feed,
        initial_state_attention=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_tensor_chooses_whether_outputs_are_fed_back(name):
    chooses = tf.placeholder(tf.bool, [])
    with tf.variable_scope("model") as scope:
        chosen = MODELS[name](chooses)
        scope.reuse_variables()
        count = len(tf.trainable_variables())
        fed, read = MODELS[name](True), MODELS[name](False)
    assert len(tf.trainable_variables()) == count
    assert len(chosen[0]) == DECODER and chosen[0][0].shape[-1] == SYMBOLS
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value, wanted in ((True, fed), (False, read)):
            found, expected = session.run([chosen, wanted], {chooses: value})
            flatten = tf.contrib.framework.nest.flatten
            for one, other in zip(flatten(found), flatten(expected), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_attention_is_a_mean_of_states_weighted_by_additive_scores():
    random = np.random.RandomState(1)
    states = random.rand(2, 3, 4).astype(np.float32)
    inputs = tf.constant(random.rand(2, 5), tf.float32)
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    zeros = cell.zero_state(2, tf.float32)
    outputs, state = seq2seq.attention_decoder([inputs], zeros, tf.constant(states), cell, 3, scope="d")
    names = ["AttnW_0", "AttnV_0", "Attention_0/kernel", "Attention_0/bias"]
    names += ["AttnOutputProjection/kernel", "AttnOutputProjection/bias"]
    with tf.variable_scope("d", reuse=True):
        parts = [tf.get_variable(name) for name in names]
    output, last, (w, v, k, b, p, c) = fetch([outputs[0], state, parts])
    scores = (v * np.tanh(states @ w[0, 0] + (last @ k + b)[:, None])).sum(2)
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    mean = (weights[..., None] * states).sum(1)
    np.testing.assert_allclose(output, np.concatenate([last, mean], 1) @ p + c, rtol=1e-4)


def test_one_encoder_has_several_decoders():
    cells = {"a": tf.nn.rnn_cell.GRUCell(4), "b": tf.nn.rnn_cell.GRUCell(4)}
    outputs, states = seq2seq.one2many_rnn_seq2seq(
        ids(ENCODER), {"a": ids(2), "b": ids(3)}, tf.nn.rnn_cell.GRUCell(4), cells, SYMBOLS, {"a": 6, "b": 7}, 3
    )
    found = fetch([outputs, states])
    assert [each.shape for each in found[0]["a"]] == [(5, 6)] * 2
    assert [each.shape for each in found[0]["b"]] == [(5, 7)] * 3
    assert found[1]["b"].shape == (5, 4)


def test_buckets_share_the_variables_of_a_model_that_learns():
    encoder, targets = ids(4), ids(4)
    decoder = [tf.zeros([5], tf.int32), *targets[:3]]
    weights = [tf.ones([5])] * 4
    outputs, losses = seq2seq.model_with_buckets(
        encoder, decoder, targets, weights, [(2, 2), (4, 4)],
        lambda x, y: seq2seq.embedding_attention_seq2seq(x, y, tf.nn.rnn_cell.GRUCell(8), SYMBOLS, SYMBOLS, 8),
    )  # fmt: skip
    assert [len(each) for each in outputs] == [2, 4]
    train = tf.train.AdamOptimizer(0.05).minimize(losses[1])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(losses[1])
        for _ in range(30):
            session.run(train)
        assert session.run(losses[1]) < first / 2


def test_wrong_calls_are_refused():
    states = tf.zeros([2, 3, 4])
    cell = tf.nn.rnn_cell.GRUCell(4)
    with pytest.raises(ValueError, match="at least 1 input"):
        seq2seq.attention_decoder([], tf.zeros([2, 4]), states, cell)
    with pytest.raises(ValueError, match="less than 1 heads"):
        seq2seq.attention_decoder([tf.zeros([2, 3])], tf.zeros([2, 4]), states, cell, num_heads=0)
    with pytest.raises(ValueError):
        projection = (tf.zeros([4, 3]), tf.zeros([3]))
        seq2seq.embedding_rnn_decoder(ids(2), tf.zeros([5, 4]), cell, SYMBOLS, 3, projection)


def test_the_reference_tensor_of_a_variable_serves_as_global_step():
    step = tf.Variable(0, trainable=False, name="global_step")
    found = tf.contrib.framework.get_global_step()
    assert isinstance(found, tf.Tensor)
    x = tf.Variable(1.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(x), global_step=found)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(step) == 1
