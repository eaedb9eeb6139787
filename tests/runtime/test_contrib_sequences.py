"""Cells, networks, beam search and random fields of tf.contrib, against what they mean."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dtf as tf

rnn, seq2seq, crf = tf.contrib.rnn, tf.contrib.seq2seq, tf.contrib.crf
X = np.random.RandomState(0).normal(size=(2, 4, 3)).astype(np.float32)
CELLS = {
    "LayerNormBasicLSTMCell": lambda: rnn.LayerNormBasicLSTMCell(4, dropout_keep_prob=0.9),
    "UGRNNCell": lambda: rnn.UGRNNCell(4),
    "IntersectionRNNCell": lambda: rnn.IntersectionRNNCell(4, num_in_proj=4),
    "NASCell": lambda: rnn.NASCell(4, use_bias=True, num_proj=3),
    "CoupledInputForgetGateLSTMCell": lambda: rnn.CoupledInputForgetGateLSTMCell(4, use_peepholes=True, num_proj=3),
    "AttentionCellWrapper": lambda: rnn.AttentionCellWrapper(rnn.BasicLSTMCell(4), 3),
    "HighwayWrapper": lambda: rnn.HighwayWrapper(rnn.GRUCell(3)),
    "OutputProjectionWrapper": lambda: rnn.OutputProjectionWrapper(rnn.IndRNNCell(4), 5),
    "SRUCell": lambda: rnn.SRUCell(4),
}


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_every_cell_of_contrib_learns(name: str):
    cell = CELLS[name]()
    outputs, _ = tf.nn.dynamic_rnn(cell, X, [4, 2], dtype=tf.float32)
    assert outputs.shape.as_list() == [2, 4, cell.output_size]
    loss = tf.reduce_mean(tf.square(outputs - 0.5))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(loss)
        for _ in range(10):
            session.run(train)
        assert session.run(loss) < first


def test_fused_cells_compute_what_the_plain_ones_do():
    time_major = tf.constant(X.transpose(1, 0, 2))
    results = []
    with tf.variable_scope("both", initializer=tf.constant_initializer(0.1)):
        for cell in (rnn.LSTMBlockCell(4), rnn.BasicLSTMCell(4)):
            with tf.variable_scope(type(cell).__name__):
                results.append(tf.nn.dynamic_rnn(cell, time_major, [4, 2], dtype=tf.float32, time_major=True))
        fused = rnn.LSTMBlockFusedCell(4)
        results.append(fused(time_major, dtype=tf.float32, sequence_length=[4, 2]))
        gru = [
            tf.nn.dynamic_rnn(cell, X, dtype=tf.float32, scope=type(cell).__name__)
            for cell in (rnn.GRUBlockCellV2(4), rnn.GRUCell(4))
        ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        block, plain, whole = session.run(results)
        for one, other in [(block, plain), (whole, plain), *[session.run(gru)]]:
            np.testing.assert_allclose(one[0], other[0], atol=1e-6)
            np.testing.assert_allclose(one[1], other[1], atol=1e-6)


def test_a_random_field_is_normalised_over_all_sequences():
    random = np.random.RandomState(1)
    scores, transitions = (random.normal(size=size).astype(np.float32) for size in [(1, 3, 2), (2, 2)])
    every = np.array(list(itertools.product(range(2), repeat=3)), np.int32)
    many = np.repeat(scores, 8, 0)
    likelihood, _ = crf.crf_log_likelihood(tf.constant(many), every, [3] * 8, tf.constant(transitions))
    best, score = crf.crf_decode(tf.constant(scores), tf.constant(transitions), [3])
    with tf.Session() as session:
        found, tags, value = session.run([likelihood, best, score])
    assert abs(np.exp(found).sum() - 1) < 1e-5
    assert tags[0].tolist() == every[found.argmax()].tolist()
    path, by_numpy = crf.viterbi_decode(scores[0], transitions)
    assert path == tags[0].tolist() and abs(value[0] - by_numpy) < 1e-5


def test_beam_search_finds_the_most_probable_sequence():
    """With as many beams as there are prefixes, the search is exhaustive."""
    table = np.log(np.array([[0.1, 0.5, 0.4], [0.2, 0.4, 0.4], [0.9, 0.05, 0.05]], np.float32))  # of the last id

    class Chain(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 3

        def call(self, inputs, state):
            return inputs, state

    decoder = seq2seq.BeamSearchDecoder(
        Chain(), tf.constant(table), tf.constant([1, 1]), 0, tf.zeros([2 * 6, 3]), 6
    )
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=3)
    with tf.Session() as session:
        ids, totals, ends = session.run([outputs.predicted_ids, state.log_probs, lengths])
    sequences = {}
    for ids_ in itertools.product(range(3), repeat=3):
        kept, total, last = [], 0.0, 1
        for each in ids_:
            kept.append(each)
            total += table[last][each]
            last = each
            if each == 0:
                break
        sequences[tuple(kept)] = total
    best = max(sequences, key=sequences.__getitem__)
    assert tuple(ids[0, : len(best), 0]) == best and math.isclose(totals[1, 0], sequences[best], rel_tol=1e-5)
    assert (np.diff(totals) <= 1e-6).all() and ends.shape == (2, 6)


def test_gather_tree_follows_the_parents_of_beams():
    ids = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]], np.int32)
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]], np.int32)
    with tf.Session() as session:
        found = session.run(seq2seq.gather_tree(ids, parents, [3], 10))
    assert found[:, 0].tolist() == [[2, 2, 2], [6, 5, 6], [7, 8, 9]]


def test_attention_of_several_memories_keeps_its_history():
    mechanisms = [seq2seq.LuongAttention(4, X), seq2seq.BahdanauMonotonicAttention(4, X, [4, 2])]
    wrapper = seq2seq.AttentionWrapper(rnn.GRUCell(4), mechanisms, [3, 2], alignment_history=True)
    helper = seq2seq.TrainingHelper(tf.constant(X), [4, 2])
    decoder = seq2seq.BasicDecoder(wrapper, helper, wrapper.zero_state(2, tf.float32))
    outputs, state, _ = seq2seq.dynamic_decode(decoder)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows, history = session.run([outputs.rnn_output, state.alignment_history[0].stack()])
    assert rows.shape == (2, 4, 5) and history.shape == (4, 2, 4)
    np.testing.assert_allclose(history.sum(-1), 1, rtol=1e-5)


def test_layers_say_the_shapes_of_their_outputs():
    assert tf.layers.Dense(5).compute_output_shape([None, 3]).as_list() == [None, 5]
    conv = tf.layers.Conv2D(6, 3, padding="same", strides=2)
    assert conv.compute_output_shape((None, 8, 8, 3)).as_list() == [None, 4, 4, 6]
    assert not conv.built and not tf.global_variables()
