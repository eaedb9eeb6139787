"""Cases of the ops that draw from a generator whose state is a variable."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import evaluate
from tests.runtime.op_cases.data_flow import in_order
from tests.runtime.op_cases.io import raises

START = np.array([5, 6, 77])
PHILOX = np.int64(1)


def from_start(op_type, start=START, algorithm=PHILOX, **arguments):
    """(what the op gives when the state is `start`, the state after it)."""
    with tf.Graph().as_default():
        state = tf.Variable(start, use_resource=True, trainable=False)
        handle = state.handle
        name = "alg" if op_type == "RngReadAndSkip" else "algorithm"
        made = []

        def draw():
            drawn = apply_op(op_type, resource=handle, **{name: algorithm}, **arguments)
            made.append(drawn)
            return drawn

        after = in_order(lambda: state.initializer, draw, lambda: state.read_value())
        fetches = [tensor for tensor in made if isinstance(tensor, tf.Tensor)]
        *drawn, left = evaluate(*fetches, after)
        return (drawn[0] if drawn else None), left.tolist()


def draws_as(op_type, stateless, **arguments):
    def check():
        drawn, after = from_start(op_type, shape=[7], **arguments)
        with tf.Graph().as_default():
            same = apply_op(
                stateless, shape=[7], key=np.array([77], np.uint64), counter=np.array([5, 6], np.uint64), alg=1,
                **arguments,
            )  # fmt: skip
            np.testing.assert_array_equal(drawn, evaluate(same)[0])
        assert after == [5 + 7 * 256, 6, 77]

    return check


def uniform():
    drawn, _ = from_start("StatefulUniform", shape=[3])
    np.testing.assert_allclose(drawn, [0.02899611, 0.39657426, 0.3396213], rtol=1e-6)
    draws_as("StatefulUniform", "StatelessRandomUniformV2", dtype=tf.float64)()
    with raises(errors.InvalidArgumentError, "dtype of RNG state variable must be int64, not int32"):
        from_start("StatefulUniform", START.astype(np.int32), shape=[3])
    with raises(errors.InvalidArgumentError, "the size of state must be at least 3; got 2"):
        from_start("StatefulUniform", START[:2], shape=[3])
    with raises(errors.UnimplementedError, "Unknown algorithm 2"):
        from_start("StatefulUniform", algorithm=np.int64(2), shape=[3])


def integers():
    drawn, after = from_start("StatefulUniformInt", shape=[1000], minval=np.int64(-2), maxval=np.int64(3))
    assert set(drawn.tolist()) == {-2, -1, 0, 1, 2}
    assert after == [5 + 256000, 6, 77]


def binomial():
    drawn, after = from_start("StatefulRandomBinomial", shape=[5000], counts=10.0, probs=0.25)
    again, _ = from_start("StatefulRandomBinomial", shape=[5000], counts=10.0, probs=0.25)
    np.testing.assert_array_equal(drawn, again)
    assert abs(drawn.mean() - 2.5) < 0.1 and after != START.tolist()


def skipping():
    assert from_start("RngSkip", delta=np.int64(3)) == (None, [5 + 3 * 256, 6, 77])
    almost = np.array([-1, -1, 77])
    assert from_start("RngSkip", almost, delta=np.int64(1))[1] == [255, 0, 77]


def reading_and_skipping():
    before, after = from_start("RngReadAndSkip", algorithm=np.int32(1), delta=np.uint64(5))
    assert before.tolist() == START.tolist() and after == [5 + 5 * 256, 6, 77]


def not_repeatable():
    with tf.Graph().as_default():
        first, second = (apply_op("NonDeterministicInts", shape=[2, 8]) for _ in range(2))
        values = evaluate(first, second)
    assert values[0].shape == (2, 8) and values[0].dtype == np.int64
    assert not np.array_equal(*values)


CASES = [
    Case("StatefulUniform", run=uniform),
    Case("StatefulUniformFullInt", run=draws_as("StatefulUniformFullInt", "StatelessRandomUniformFullIntV2")),
    Case("StatefulUniformInt", run=integers),
    Case("StatefulStandardNormalV2", run=draws_as("StatefulStandardNormalV2", "StatelessRandomNormalV2")),
    Case("StatefulTruncatedNormal", run=draws_as("StatefulTruncatedNormal", "StatelessTruncatedNormalV2")),
    Case("StatefulRandomBinomial", run=binomial),
    Case("RngSkip", run=skipping),
    Case("RngReadAndSkip", run=reading_and_skipping),
    Case("NonDeterministicInts", run=not_repeatable),
]
