"""Cases of random ops: what their numbers are like, and that seeds repeat them."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run.executor import executor
from dtf.run.executor.step import SessionState
from dtf.wire import errors
from dtf.wire.deprecations import DEPRECATED
from tests.runtime.op_cases import RECORDED, Case, Vary
from tests.runtime.op_cases.array import ints, longs

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
        def make():
            if op_type in DEPRECATED:
                tf.get_default_graph()._producer = 1  # a graph of the time when it had such ops
            return apply_op(op_type, seed=seed, seed2=seed2, **arguments)

        return make

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


def truncated_between():
    arguments = dict(means=[0.0, 1.0, 2.0], stdevs=[1.0, 2.0, 3.0], minvals=[-1.0, 8.0, -1e9], maxvals=[0.5, 9.0, 1e9])
    values = check_seeds("ParameterizedTruncatedNormal", shape=[3, 4000], **arguments)
    assert values.dtype == np.float32 and values.shape == (3, 4000)
    low, high = np.array(arguments["minvals"])[:, None], np.array(arguments["maxvals"])[:, None]
    assert (values >= low).all() and (values <= high).all()
    np.testing.assert_allclose(values.mean(1), [-0.2067, 8.388, 2.0], atol=0.15)


def stateless_counts():
    def build():
        drawn = apply_op("StatelessRandomPoisson", shape=[5000, 2], seed=[1, 2], lam=[0.5, 30.0], dtype=tf.int32)
        return drawn

    first, again = draws(build, times=2)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.mean(0), [0.5, 30.0], rtol=0.1)


def stateless_trials():
    def build():
        counts, probs = np.float32([5, 40]), np.float32([0.5, 0.25])
        return apply_op(
            "StatelessRandomBinomial", shape=[5000, 2], seed=[1, 2], counts=counts, probs=probs, dtype=tf.int32
        )

    first, again = draws(build, times=2)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.mean(0), [2.5, 10.0], rtol=0.1)


SEEDS = {"seed": 5, "seed2": 9}
KEY, COUNTER = np.array([77], np.uint64), np.array([1, 2], np.uint64)
FLOATING = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], np.float32))
SAMPLE = {"num_true": 2, "num_sampled": 5, "range_max": 10, **SEEDS}


def seeded():
    """TensorFlow's own numbers for given seeds, of every dtype and of lengths that leave a group of four open."""
    for dtype in FLOATING:
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            yield Case(op, [ints([3, 7])], {"dtype": dtype, **SEEDS}, RECORDED, name=f"seeded_{dtype.name}")
        for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
            stream = [ints([3, 7]), KEY, COUNTER, ints(1)]
            yield Case(op, [ints([3, 7]), longs([3, 4])], {"dtype": dtype}, RECORDED, name=f"seeded_{dtype.name}")
            yield Case(f"{op}V2", stream, {"dtype": dtype}, RECORDED, name=f"seeded_{dtype.name}")
    for kind in (np.int32, np.int64):
        bounds = [np.array(-5, kind), np.array(100, kind)]
        name = f"seeded_{np.dtype(kind).name}"
        yield Case("RandomUniformInt", [ints([7]), *bounds], SEEDS, RECORDED, name=name)
        yield Case("StatelessRandomUniformInt", [ints([7]), longs([3, 4]), *bounds], {}, RECORDED, name=name)
        yield Case("StatelessRandomUniformIntV2", [ints([7]), KEY, COUNTER, ints(1), *bounds], {}, RECORDED, name=name)
    for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
        attrs = {"dtype": dtype}
        yield Case("StatelessRandomUniformFullInt", [ints([7]), longs([3, 4])], attrs, RECORDED, name=dtype.name)
        stream = [ints([7]), KEY, COUNTER, ints(1)]
        yield Case("StatelessRandomUniformFullIntV2", stream, attrs, RECORDED, name=dtype.name)
    for unique in (True, False):
        for op in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram", "FixedUnigram"):
            attrs = {**SAMPLE, "unique": unique}
            if op == "FixedUnigram":
                attrs |= {"unigrams": [float(i) for i in range(1, 11)], "distortion": 0.75}
            true_classes = longs([[1, 2], [3, 9]])
            yield Case(f"{op}CandidateSampler", [true_classes], attrs, RECORDED, name="unique" if unique else "")


CASES = [
    *seeded(),
    Case("RandomShuffle", [ints(range(9))], SEEDS, RECORDED, name="seeded"),
    Case("Multinomial", [LOGITS, ints(9)], SEEDS, RECORDED, name="seeded"),
    Case("RandomGamma", [ints([4]), np.float32([0.5, 1.0, 3.5])], SEEDS, RECORDED, name="seeded"),
    Case("StatelessMultinomial", [LOGITS, ints(9), longs([3, 4])], {}, RECORDED),
    Case("StatelessShuffle", [ints(range(9)), KEY, COUNTER, ints(1)], {}, RECORDED),
    Case("StatelessRandomGammaV2", [ints([4, 3]), longs([3, 4]), np.float32([0.5, 1.0, 3.5])], {}, RECORDED),
    Case("StatelessRandomGammaV3", [ints([4, 3]), KEY, COUNTER, ints(1), np.float32([0.5, 1.0, 3.5])], {}, RECORDED),
    Case(
        "RandomGammaGrad", [np.float64([0.3, 1.0, 50.0, 2.0]), np.float64([0.1, 0.8, 40.0, 1.5])], {}, RECORDED,
        vary=Vary(odd_values=False, shapes=False),
    ),
    Case("StatelessRandomGetKeyCounter", [longs([-1, 2**40])], {}, RECORDED),
    Case("StatelessRandomGetKeyCounterAlg", [ints([3, 4])], {}, RECORDED),
    Case("StatelessRandomGetAlg", [], {}, ints(1)),
    Case("StatelessRandomPoisson", run=stateless_counts),
    Case("StatelessRandomBinomial", run=stateless_trials),
    Case("ParameterizedTruncatedNormal", run=truncated_between),
    Case(
        "AllCandidateSampler",
        [longs([[1], [3]])],
        {"num_true": 1, "num_sampled": 4, "unique": True},
        [longs(range(4)), np.ones((2, 1), np.float32), np.ones(4, np.float32)],
    ),
    Case("ComputeAccidentalHits", [longs([[1, 2], [3, 9]]), longs([9, 5, 2])], {"num_true": 2}, RECORDED),
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
