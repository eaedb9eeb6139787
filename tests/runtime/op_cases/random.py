"""Cases of random ops: what their numbers are like, and that seeds repeat them."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run import executor
from dtf.run.step import SessionState
from dtf.wire import errors
from tests.runtime.op_cases import Case

SHAPE = [200, 50]


def draws(build, times=1):
    """The values of build() in `times` steps of one new session."""
    with tf.Graph().as_default() as graph:
        tensor = build()
        session = SessionState()
        return [executor.run_graph_def(graph.as_graph_def(), [tensor.name], session=session)[0] for _ in range(times)]


def check_seeds(op_type, **arguments):
    """A new session repeats the stream of a seeded op, a step goes on in it, another seed or no seed draws others."""

    def build(seed, seed2):
        return lambda: apply_op(op_type, seed=seed, seed2=seed2, **arguments)

    first, second = draws(build(1, 2), times=2)
    (again,) = draws(build(1, 2))
    (other,) = draws(build(1, 3))
    np.testing.assert_array_equal(first, again)
    for different in (second, other, *draws(build(0, 0)), *draws(build(0, 0))):
        assert not np.array_equal(first, different)
    assert not np.array_equal(draws(build(0, 0))[0], draws(build(0, 0))[0])
    return first


def uniform():
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        values = check_seeds("RandomUniform", shape=SHAPE, dtype=dtype)
        assert values.dtype == dtype.as_numpy_dtype and values.shape == (200, 50)
        assert values.min() >= 0 and values.max() < 1
        assert abs(values.astype(float).mean() - 0.5) < 0.02


def uniform_int():
    values = check_seeds("RandomUniformInt", shape=SHAPE, minval=np.int32(-2), maxval=np.int32(3))
    assert values.dtype == np.int32 and set(np.unique(values)) == {-2, -1, 0, 1, 2}
    try:
        draws(lambda: apply_op("RandomUniformInt", shape=SHAPE, minval=3, maxval=3))
    except errors.InvalidArgumentError as error:
        assert "Need minval < maxval, got 3 >= 3" in error.message
    else:
        raise AssertionError("an empty range was accepted")


def normal():
    for dtype in (tf.float16, tf.float32, tf.float64):
        values = check_seeds("RandomStandardNormal", shape=SHAPE, dtype=dtype).astype(float)
        assert abs(values.mean()) < 0.05 and abs(values.std() - 1) < 0.05


def truncated_normal():
    values = check_seeds("TruncatedNormal", shape=SHAPE, dtype=tf.float32)
    assert np.abs(values).max() < 2
    assert abs(values.mean()) < 0.05 and abs(values.std() - 0.88) < 0.05


def shuffle():
    rows = np.arange(60).reshape(30, 2)
    values = check_seeds("RandomShuffle", value=rows)
    np.testing.assert_array_equal(values[values[:, 0].argsort()], rows)


def multinomial():
    logits = np.log(np.array([[0.1, 0.2, 0.7], [1e-30, 0.5, 0.5]], np.float32))
    values = check_seeds("Multinomial", logits=logits, num_samples=5000)
    assert values.dtype == np.int64 and values.shape == (2, 5000)
    np.testing.assert_allclose(np.bincount(values[0]) / 5000, [0.1, 0.2, 0.7], atol=0.03)
    assert values[1].min() == 1


def gamma():
    values = check_seeds("RandomGamma", shape=[5000], alpha=np.array([0.5, 3.0], np.float32))
    assert values.dtype == np.float32 and values.shape == (5000, 2)
    np.testing.assert_allclose(values.mean(0), [0.5, 3.0], rtol=0.1)


def poisson(op_type):
    def check():
        values = check_seeds(op_type, shape=[5000], rate=np.array([0.5, 3.0], np.float32), dtype=tf.float32)
        assert values.dtype == np.float32 and values.shape == (5000, 2)
        np.testing.assert_allclose(values.mean(0), [0.5, 3.0], rtol=0.1)

    return check


def stateless(op_type):
    def check():
        def build(*seed):
            return lambda: apply_op(op_type, shape=SHAPE, seed=list(seed), dtype=tf.float32)

        first, again = draws(build(1, 2), times=2)
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, draws(build(2, 1))[0])

    return check


CASES = [
    Case("RandomUniform", run=uniform),
    Case("RandomUniformInt", run=uniform_int),
    Case("RandomStandardNormal", run=normal),
    Case("TruncatedNormal", run=truncated_normal),
    Case("RandomShuffle", run=shuffle),
    Case("Multinomial", run=multinomial),
    Case("RandomGamma", run=gamma),
    Case("RandomPoisson", run=poisson("RandomPoisson")),
    Case("RandomPoissonV2", run=poisson("RandomPoissonV2")),
    Case("StatelessRandomUniform", run=stateless("StatelessRandomUniform")),
    Case("StatelessRandomNormal", run=stateless("StatelessRandomNormal")),
    Case("StatelessTruncatedNormal", run=stateless("StatelessTruncatedNormal")),
]
