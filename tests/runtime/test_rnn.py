"""Recurrent networks: cells by their formulas, loops over sequences of different lengths, gradients, training."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.testing import LocalCluster, check_gradient

random = np.random.RandomState(3)
BATCH, STEPS, DEPTH, UNITS = 3, 5, 4, 6
INPUTS = random.uniform(-1, 1, (BATCH, STEPS, DEPTH)).astype(np.float32)
LENGTHS = np.array([4, 0, 2], np.int32)
cells = tf.nn.rnn_cell


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(inputs, c, h, kernel, bias, forget_bias=1.0):
    i, j, f, o = np.split(np.concatenate([inputs, h], 1) @ kernel + bias, 4, 1)
    c = sigmoid(f + forget_bias) * c + sigmoid(i) * np.tanh(j)
    return c, sigmoid(o) * np.tanh(c)


def test_a_loop_gives_what_the_formulas_give_step_by_step():
    cell = cells.BasicLSTMCell(UNITS)
    outputs, state = tf.nn.dynamic_rnn(cell, INPUTS, LENGTHS, dtype=tf.float32)
    assert outputs.shape.as_list() == [BATCH, STEPS, UNITS]
    found, (last_c, last_h), kernel, bias = run([outputs, state, *cell.weights])
    c = h = np.zeros([BATCH, UNITS])
    for step in range(STEPS):
        new_c, new_h = lstm_step(INPUTS[:, step], c, h, kernel, bias)
        goes_on = (step < LENGTHS)[:, None]
        np.testing.assert_allclose(found[:, step], np.where(goes_on, new_h, 0), rtol=1e-4, atol=1e-6)
        c, h = np.where(goes_on, new_c, c), np.where(goes_on, new_h, h)
    np.testing.assert_allclose([last_c, last_h], [c, h], rtol=1e-4, atol=1e-6)


def test_a_list_of_steps_gives_what_the_loop_gives():
    cell = cells.MultiRNNCell([cells.GRUCell(UNITS), cells.LSTMCell(3, use_peepholes=True)])
    looped = tf.nn.dynamic_rnn(cell, INPUTS, LENGTHS, dtype=tf.float32)
    outputs, state = tf.nn.static_rnn(cell, tf.unstack(INPUTS, axis=1), dtype=tf.float32, sequence_length=LENGTHS)
    unrolled = tf.stack(outputs, 1), state
    for one, other in zip(*(tf.contrib.framework.nest.flatten(each) for each in run([looped, unrolled])), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert len(cell.trainable_weights) == len(tf.trainable_variables()) == 4 + 5


def test_batch_and_steps_may_be_unknown():
    fed, lengths = tf.placeholder(tf.float32, [None, None, DEPTH]), tf.placeholder(tf.int64, [None])
    outputs, state = tf.nn.dynamic_rnn(cells.GRUCell(UNITS), fed, lengths, dtype=tf.float32)
    assert outputs.shape.as_list() == [None, None, UNITS] and state.shape.as_list() == [None, UNITS]
    found, last = run([outputs, state], {fed: INPUTS, lengths: LENGTHS})
    assert found.shape == (BATCH, STEPS, UNITS) and not found[1].any() and not last[1].any()
    np.testing.assert_array_equal(last[0], found[0, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for Tensor sequence_length"):
        run(outputs, {fed: INPUTS, lengths: [1, 2]})


def test_time_may_be_the_first_dimension():
    cell = cells.BasicRNNCell(UNITS)
    first, _ = tf.nn.dynamic_rnn(cell, INPUTS, dtype=tf.float32)
    other, _ = tf.nn.dynamic_rnn(cell, INPUTS.swapaxes(0, 1), dtype=tf.float32, time_major=True)
    first, other = run([first, other])
    np.testing.assert_array_equal(first, other.swapaxes(0, 1))


def test_backwards_begins_at_the_end_of_each_sequence():
    forward, backward = cells.BasicRNNCell(UNITS), cells.BasicRNNCell(UNITS)
    (ahead, back), (_, last) = tf.nn.bidirectional_dynamic_rnn(
        forward, backward, INPUTS, LENGTHS, dtype=tf.float32
    )
    ahead, back, last = run([ahead, back, last])
    assert not back[0, 4:].any() and not back[1].any() and back[0, :4].all()
    np.testing.assert_array_equal(last[0], back[0, 0])
    assert [each.op.name for each in backward.weights] == [
        "bidirectional_rnn/bw/basic_rnn_cell/kernel", "bidirectional_rnn/bw/basic_rnn_cell/bias",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda: cells.LSTMCell(2, use_peepholes=True, num_proj=3),
        lambda: cells.MultiRNNCell([cells.GRUCell(2), cells.ResidualWrapper(cells.BasicRNNCell(2))]),
    ],
    ids=["lstm", "several"],
)
def test_gradients_are_the_difference_quotients(make):
    fed = tf.placeholder(tf.float64, [2, 3, 2])
    outputs, _ = tf.nn.dynamic_rnn(make(), fed, [3, 1], dtype=tf.float64)
    check_gradient(outputs, fed, {fed: random.uniform(-1, 1, (2, 3, 2))}, tolerance=1e-5)


def test_a_network_learns_on_a_cluster_with_its_variables_on_ps():
    with LocalCluster({"ps": 2, "worker": 1}) as cluster:
        with tf.device(tf.train.replica_device_setter(cluster=cluster.cluster_spec)):
            fed = tf.placeholder(tf.float32, [None, None, 1])
            outputs, _ = tf.nn.dynamic_rnn(cells.LSTMCell(8, num_unit_shards=2), fed, dtype=tf.float32)
            loss = tf.reduce_mean(tf.square(tf.layers.dense(outputs[:, -1], 1) - tf.reduce_sum(fed, 1)))
            train = tf.train.AdamOptimizer(0.05).minimize(loss)
        assert {each.device for each in tf.trainable_variables()} == {"/job:ps/task:0", "/job:ps/task:1"}
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for step in range(40):
                feed = {fed: random.uniform(-1, 1, (8, 2 + step % 3, 1))}
                losses.append(session.run(loss, feed))
                session.run(train, feed)
    assert np.mean(losses[-5:]) < 0.3 * np.mean(losses[:5])


def test_dropout_drops_of_what_it_is_told_and_no_more():
    ones = np.ones([200, 1, 10], np.float32)

    class Pass(cells.RNNCell):
        state_size = cells.LSTMStateTuple(10, 10)
        output_size = 10

        def call(self, inputs, state):
            return inputs, cells.LSTMStateTuple(inputs, inputs)

    for which in range(3):
        keep = [1.0, 1.0, 1.0]
        keep[which] = 0.25
        outputs, state = tf.nn.dynamic_rnn(cells.DropoutWrapper(Pass(), *keep, seed=7), ones, dtype=tf.float32)
        outputs, (c, h) = run([outputs, state])
        dropped = [bool((each == 0).any()) for each in (outputs, c, h)]
        assert dropped == [[True, True, True], [True, False, False], [False, False, True]][which]
        some = h if which == 2 else outputs
        np.testing.assert_allclose(np.unique(some), [0, 4])
        assert abs((some == 0).mean() - 0.75) < 0.05


def test_variational_dropout_drops_the_same_at_every_step():
    ones = np.ones([50, 4, 10], np.float32)
    cell = cells.DropoutWrapper(
        cells.ResidualWrapper(cells.BasicRNNCell(10)), output_keep_prob=0.5, variational_recurrent=True,
        dtype=tf.float32, seed=1,
    )  # fmt: skip
    outputs, _ = tf.nn.dynamic_rnn(cell, ones, dtype=tf.float32)
    dropped = run(outputs) == 0
    assert 0.2 < dropped.mean() < 0.8
    assert (dropped == dropped[:1, :1]).all()
    with pytest.raises(ValueError, match="dtype must be provided"):
        cells.DropoutWrapper(cells.GRUCell(2), variational_recurrent=True)
    with pytest.raises(ValueError, match="input_size is required"):
        cells.DropoutWrapper(cells.GRUCell(2), 0.5, variational_recurrent=True, dtype=tf.float32)


def test_a_function_says_what_may_be_dropped_of_a_state():
    class Cell(cells.RNNCell):
        state_size = {"kept": (2, 2), "mixed": [2, 2]}
        output_size = 2

        def call(self, inputs, state):
            return inputs, {"kept": (inputs, inputs), "mixed": [inputs, inputs]}

    def visit(state):
        return [False, True] if isinstance(state, list) else isinstance(state, dict)

    wrapped = cells.DropoutWrapper(Cell(), state_keep_prob=1e-6, dropout_state_filter_visitor=visit)
    ones = np.ones([3, 2], np.float32)
    _, state = wrapped(ones, wrapped.zero_state(3, tf.float32))
    found = run(state)
    assert [each.all() for each in (*found["kept"], *found["mixed"])] == [True, True, True, False]
    with pytest.raises(TypeError, match="must be callable"):
        cells.DropoutWrapper(Cell(), dropout_state_filter_visitor=3)


def test_raw_rnn_feeds_back_what_it_gave():
    cell = cells.GRUCell(DEPTH)

    def step(time, output, state, loop_state):
        following = tf.constant(INPUTS[:, 0]) if output is None else output
        state = cell.zero_state(BATCH, tf.float32) if state is None else state
        return time >= LENGTHS, following, state, output, None

    emitted, state, loop_state = tf.nn.raw_rnn(cell, step)
    assert loop_state is None
    found, last = run([emitted.stack(), state])
    assert found.shape == (4, BATCH, DEPTH)
    np.testing.assert_array_equal((found != 0).all(2), (np.arange(4)[:, None] < LENGTHS))
    np.testing.assert_array_equal(last[[0, 2]], [found[3, 0], found[1, 2]])


class StatesInVariables:
    def __init__(self, **kept):
        self.kept = kept

    def state(self, name):
        return self.kept[name]

    def save_state(self, name, value):
        return self.kept[name].assign(value)


def test_a_state_that_is_saved_goes_on_in_the_next_step():
    saver = StatesInVariables(c=tf.Variable(tf.zeros([BATCH, UNITS])), h=tf.Variable(tf.zeros([BATCH, UNITS])))
    steps, cell = tf.unstack(INPUTS[:, :2], axis=1), cells.LSTMCell(UNITS)
    outputs, state = tf.nn.static_state_saving_rnn(cell, steps, saver, ("c", "h"))
    twice = tf.nn.static_rnn(cell, steps + steps, dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(outputs)
        found = session.run([outputs, state])
        wanted_outputs, wanted_state = session.run(twice)
        kept = session.run([saver.kept["c"], saver.kept["h"]])
    np.testing.assert_allclose(found[0], wanted_outputs[2:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], wanted_state, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(kept, found[1])
    with pytest.raises(ValueError, match="which is a structure"):
        tf.nn.static_state_saving_rnn(cell, steps, saver, "c")
    with pytest.raises(ValueError, match="state_name. != #elems.cell.state_size.: 1 vs. 2"):
        tf.nn.static_state_saving_rnn(cell, steps, saver, ("c",))


def test_every_way_of_reusing_a_cells_variables_is_tensorflows():
    cell = cells.GRUCell(UNITS)
    tf.nn.dynamic_rnn(cell, INPUTS, dtype=tf.float32)
    tf.nn.dynamic_rnn(cell, INPUTS, dtype=tf.float32)
    with pytest.raises(ValueError, match="rnn/gru_cell/gates/kernel already exists"):
        tf.nn.dynamic_rnn(cells.GRUCell(UNITS), INPUTS, dtype=tf.float32)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        tf.nn.dynamic_rnn(cells.GRUCell(UNITS), INPUTS, dtype=tf.float32)
    tf.nn.dynamic_rnn(cells.GRUCell(UNITS, reuse=True), INPUTS, dtype=tf.float32)
    assert len(tf.global_variables()) == 4
    assert tf.contrib.rnn.GRUCell is cells.GRUCell and tf.contrib.rnn.static_rnn is tf.nn.static_rnn


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="argument `dtype`"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), INPUTS)
    with pytest.raises(TypeError, match="'cell_bw' .3. is not an RNNCell: it has no output_size"):
        tf.nn.bidirectional_dynamic_rnn(cells.GRUCell(2), 3, INPUTS, dtype=tf.float32)
    with pytest.raises(ValueError, match="vector of length batch_size"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), INPUTS, [1, 2], dtype=tf.float32)
    with pytest.raises(ValueError, match="dimensions of batch and time"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), INPUTS[0, 0], dtype=tf.float32)
    with pytest.raises(ValueError, match="differ in dimension 0"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), (INPUTS, INPUTS[:, :2]), dtype=tf.float32)
    with pytest.raises(ValueError, match="must not be empty"):
        tf.nn.static_rnn(cells.GRUCell(2), [], dtype=tf.float32)
    with pytest.raises(TypeError, match="must be a sequence"):
        tf.nn.static_rnn(cells.GRUCell(2), tf.constant(INPUTS), dtype=tf.float32)
    with pytest.raises(ValueError, match="at least one cell"):
        cells.MultiRNNCell([])
    with pytest.raises(TypeError, match="must be a list"):
        cells.MultiRNNCell(cells.GRUCell(2))
    with pytest.raises(ValueError, match="state_is_tuple is not set"):
        cells.MultiRNNCell([cells.LSTMCell(2)], state_is_tuple=False)
    with pytest.raises(ValueError, match="output_keep_prob must be between 0 and 1"):
        cells.DropoutWrapper(cells.GRUCell(2), 1.0, 1.5)
    with pytest.raises(ValueError, match="incompatible"):
        cells.ResidualWrapper(cells.GRUCell(3))(INPUTS[:, 0], np.zeros([BATCH, 3], np.float32))
    with pytest.raises(NotImplementedError, match="state_size"):
        cells.RNNCell().zero_state(2, tf.float32)
    with pytest.raises(ValueError, match="batch_size and a dtype"):
        cells.GRUCell(2).get_initial_state()
    with pytest.raises(TypeError, match="Inconsistent internal state"):
        cells.LSTMStateTuple(tf.constant(1.0), tf.constant(1)).dtype  # noqa: B018
