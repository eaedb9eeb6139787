"""A program of either runtime: recurrent networks with the same inputs and the same values in their variables.

    python rnn_programs.py dtf|tensorflow.compat.v1 values.npz

Writes what every network of `NETWORKS` gives, and the gradients of its sum for the inputs and the variables, and the
losses of twenty steps of training of some; prints as JSON the names of variables and the shapes of outputs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from types import SimpleNamespace

import numpy as np

RANDOM = np.random.RandomState(6)
INPUTS = {
    "batch": RANDOM.uniform(-1, 1, (3, 5, 4)),
    "time_major": RANDOM.uniform(-1, 1, (5, 3, 4)),
    "deep": RANDOM.uniform(-1, 1, (3, 5, 2, 2)),
    "state": RANDOM.uniform(-1, 1, (3, 6)),
}
LENGTHS = [4, 0, 2]
"""Shorter than the inputs, so that the loop ends before them."""

CELLS = {
    "basic_rnn": lambda c: c.BasicRNNCell(6),
    "basic_lstm": lambda c: c.BasicLSTMCell(6),
    "basic_lstm_flat": lambda c: c.BasicLSTMCell(6, forget_bias=0.3, state_is_tuple=False, name="memory"),
    "lstm": lambda c: c.LSTMCell(6),
    "lstm_all": lambda c: c.LSTMCell(
        6, use_peepholes=True, cell_clip=0.4, num_proj=3, proj_clip=0.2, num_unit_shards=2, num_proj_shards=3
    ),
    "lstm_projected_flat": lambda c: c.LSTMCell(6, num_proj=3, state_is_tuple=False, forget_bias=0.5),
    "gru": lambda c: c.GRUCell(6),
    "several": lambda c: c.MultiRNNCell([c.BasicLSTMCell(6), c.GRUCell(5), c.LSTMCell(4, use_peepholes=True)]),
    "several_flat": lambda c: c.MultiRNNCell([c.GRUCell(6), c.BasicRNNCell(4)], state_is_tuple=False),
    "dropout": lambda c: c.DropoutWrapper(c.LSTMCell(6), 0.7, 0.6, 0.8, seed=11),
    "dropout_variational": lambda c: c.DropoutWrapper(
        c.GRUCell(6), 0.7, 0.6, 0.8, variational_recurrent=True, input_size=4, dtype="float32", seed=12
    ),
    "residual": lambda c: c.ResidualWrapper(c.GRUCell(4)),
    "residual_function": lambda c: c.ResidualWrapper(c.GRUCell(4), lambda inputs, outputs: outputs - 0.5 * inputs),
    "device": lambda c: c.DeviceWrapper(c.BasicRNNCell(6), "/cpu:0"),
    "wrapped_several": lambda c: c.MultiRNNCell([c.ResidualWrapper(c.GRUCell(4)), c.DropoutWrapper(c.GRUCell(4))]),
}


def flattened(value):
    """The tensors of a structure, in order."""
    return [leaf for each in value for leaf in flattened(each)] if isinstance(value, list | tuple) else [value]


def dynamic(kind, **given):
    return lambda tf, x: tf.nn.dynamic_rnn(CELLS[kind](tf.nn.rnn_cell), x.batch, dtype=tf.float32, **given)


def static(kind, **given):
    return lambda tf, x: tf.nn.static_rnn(
        CELLS[kind](tf.nn.rnn_cell), tf.unstack(x.time_major), dtype=tf.float32, **given
    )


class StateSaver:
    """A state saver whose states are what they were before the first step."""

    def __init__(self, tf):
        self.tf = tf

    def state(self, name):
        return self.tf.fill([3, 6], {"one": 0.25, "c": 0.5, "h": -0.25}[name])

    def save_state(self, name, value):
        return self.tf.identity(value, name="saved_" + name).op


def saved_states(tf, x):
    """Steps that begin with states of a state saver: one state, and the two of an LSTM cell."""
    saver = StateSaver(tf)
    steps = tf.unstack(x.time_major)
    one = tf.nn.static_state_saving_rnn(tf.nn.rnn_cell.GRUCell(6), steps, saver, "one", scope="one")
    two = tf.nn.static_state_saving_rnn(
        tf.nn.rnn_cell.LSTMCell(6), steps, saver, ("c", "h"), sequence_length=LENGTHS, scope="two"
    )
    return [one[0], one[1], two[0], two[1]]


def stepwise(tf, x):
    """A cell that is called by hand, from a state that is given, and once more with its variables reused."""
    cell = tf.nn.rnn_cell.GRUCell(6)
    first, state = cell(x.time_major[0], x.state)
    second, state = cell(x.time_major[1], state)
    with tf.variable_scope("again"):
        named = tf.nn.rnn_cell.BasicRNNCell(6)
        third, state = named(x.time_major[2], state, scope="here")
    with tf.variable_scope("again", reuse=True):
        fourth, state = tf.nn.rnn_cell.BasicRNNCell(6)(x.time_major[3], state, scope="here")
    return [first, second, third, fourth, state]


def own_cell(tf, x):
    """A cell of one's own, with variables of tf.get_variable and nested states and outputs of any rank."""

    class Cell(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self):
            return (tf.TensorShape([2, 2]), 1)

        @property
        def output_size(self):
            return (1, tf.TensorShape([2, 2]))

        def call(self, inputs, state):
            matrix, count = state
            weights = tf.get_variable("weights", [2, 2])
            matrix = tf.tanh(inputs * weights + matrix)
            return (count, matrix), (matrix, count + 1.0)

    cell = Cell()
    outputs, state = tf.nn.dynamic_rnn(cell, x.deep, LENGTHS, dtype=tf.float32)
    assert [each.op.name for each in cell.trainable_weights] == ["rnn/cell/weights"]
    return [outputs, state]


def raw(tf, x):
    """A network that takes its own output as next input, with examples that end at different steps."""
    cell = tf.nn.rnn_cell.LSTMCell(4)
    lengths = tf.constant([4, 1, 3])

    def step(time, output, state, total):
        if output is None:
            return time >= lengths, x.time_major[0], cell.zero_state(3, tf.float32), None, tf.constant(0.0)
        return time >= lengths, output * 0.5, state, output, total + tf.reduce_sum(output)

    emitted, state, total = tf.nn.raw_rnn(cell, step)
    return [emitted.stack(), state, total]


def raw_pair(tf, x):
    """What is emitted is a pair of other sizes than the cell's output."""
    cell = tf.nn.rnn_cell.BasicRNNCell(6)
    inputs = tf.TensorArray(tf.float32, 5).unstack(x.time_major)

    def step(time, output, state, loop_state):
        finished = tf.logical_or(time >= 5, time >= [5, 2, 3])
        following = tf.cond(time < 5, lambda: inputs.read(time), lambda: tf.zeros([3, 4]))
        following.set_shape([3, 4])
        if output is None:
            return finished, following, x.state, (tf.zeros([2]), tf.zeros([], tf.int32)), None
        return finished, following, state, (output[:, :2], tf.fill([3], time)), None

    emitted, state, _ = tf.nn.raw_rnn(cell, step)
    return [emitted[0].stack(), emitted[1].stack(), state]


def bidirectional(**given):
    return lambda tf, x: tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.BasicLSTMCell(2), x.batch, dtype=tf.float32, **given
    )


def two_scopes(tf, x):
    """An encoder whose state begins the decoder."""
    with tf.variable_scope("encoder"):
        _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(6), x.batch, LENGTHS, dtype=tf.float32)
    with tf.variable_scope("decoder"):
        return tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(6), x.batch, initial_state=state, scope="steps")


NETWORKS = {
    **{f"dynamic_{kind}": dynamic(kind) for kind in CELLS if kind != "dropout"},
    **{f"lengths_{kind}": dynamic(kind, sequence_length=LENGTHS) for kind in ("basic_lstm", "several", "gru")},
    **{f"static_{kind}": static(kind) for kind in ("basic_lstm", "lstm_all", "several", "dropout")},
    "static_lengths": static("several", sequence_length=LENGTHS),
    "time_major": lambda tf, x: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(6), x.time_major, LENGTHS, x.state, time_major=True, parallel_iterations=1,
        swap_memory=True,
    ),
    "bidirectional": bidirectional(),
    "bidirectional_lengths": bidirectional(sequence_length=LENGTHS),
    "static_bidirectional": lambda tf, x: tf.nn.static_bidirectional_rnn(
        tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.BasicLSTMCell(2), tf.unstack(x.time_major), dtype=tf.float32,
        sequence_length=[5, 1, 2],
    ),
    "saved_states": saved_states,
    "stepwise": stepwise,
    "own_cell": own_cell,
    "raw": raw,
    "raw_pair": raw_pair,
    "two_scopes": two_scopes,
}  # fmt: skip


WITHOUT_GRADIENT = ("_flat", "_function", "device", "wrapped_several", "dropout", "raw_pair")
"""Gradients of loops are what costs time: not those that are like others."""


def fill(variables, session) -> None:
    """Gives every variable values that depend on its name alone."""
    for variable in variables:
        seed = sum(variable.op.name.encode())
        variable.load(np.random.RandomState(seed).uniform(-0.6, 0.6, variable.shape.as_list()).astype("f"), session)


def evaluate(tf, name: str):
    """Returns (values, names of variables and shapes of outputs) of a network."""
    with tf.Graph().as_default() as graph:
        used = {key: tf.constant(value.astype(np.float32)) for key, value in INPUTS.items()}
        outputs = flattened(NETWORKS[name](tf, SimpleNamespace(**used)))
        variables = tf.trainable_variables()
        made = {f"output {number}": each for number, each in enumerate(outputs)}
        if not name.endswith(WITHOUT_GRADIENT):
            targets = {**used, **{each.op.name: each for each in variables}}
            squares = [tf.square(each) for each in outputs if each.dtype.is_floating]
            found = tf.gradients(squares, list(targets.values()))
            made |= {f"grad {key}": each for key, each in zip(targets, found, strict=True) if each is not None}
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            fill(variables, session)
            values = session.run(made)
        return values, [[each.op.name for each in variables], [str(each.shape) for each in outputs]]


def trained(tf, kind: str, target: str = "", device=None):
    """The losses of twenty steps of a network that learns to add up what it saw, and its variables then."""
    with tf.Graph().as_default() as graph, tf.device(device):
        inputs = tf.placeholder(tf.float32, [None, None, 4])
        lengths = tf.placeholder(tf.int32, [None])
        outputs, _ = tf.nn.dynamic_rnn(CELLS[kind](tf.nn.rnn_cell), inputs, lengths, dtype=tf.float32)
        wanted = tf.cumsum(inputs, axis=1)[:, :, :1]
        found = tf.layers.dense(outputs, 1)
        mask = tf.sequence_mask(lengths, tf.shape(inputs)[1], tf.float32)
        loss = tf.reduce_sum(tf.square(found - wanted)[:, :, 0] * mask) / tf.reduce_sum(mask)
        gradients, variables = zip(*tf.train.AdamOptimizer(0.02).compute_gradients(loss), strict=True)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(gradients, variables, strict=True))
        random = np.random.RandomState(8)
        losses = []
        with tf.Session(target, graph=graph) as session:
            session.run(tf.global_variables_initializer())
            fill(variables, session)
            for step in range(20):
                steps = 3 + step % 4
                feed = {inputs: random.uniform(-1, 1, (6, steps, 4)), lengths: random.randint(1, steps + 1, 6)}
                losses.append(session.run(loss, feed))
                session.run(train, feed)
            return {"losses": losses, **{each.op.name: session.run(each) for each in variables}}


def main(runtime: str, path: str) -> None:
    if runtime != "dtf":
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the cells are in the package tf_keras
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
    arrays, names = {}, {}
    for name in NETWORKS:
        values, names[name] = evaluate(tf, name)
        arrays |= {f"{name}|{key}": value for key, value in values.items()}
    for kind in ("basic_lstm", "lstm_all", "gru", "several"):
        arrays |= {f"trained {kind}|{key}": value for key, value in trained(tf, kind).items()}
    np.savez(path, **arrays)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
