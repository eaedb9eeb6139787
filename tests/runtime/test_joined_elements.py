"""Neighbouring elementwise operations are computed by one loop, with the results of the single ones."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor import element_loops
from dtf.run.executor.executor import Executor, _with_arguments, run_graph_def
from dtf.run.lib import onednn
from dtf.run.lib.vector_code import loops
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder

pytestmark = pytest.mark.skipif(not loops._can_run(), reason="this processor or system runs no such code")
F32 = dtypes.float32
RANDOM = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def by_default(monkeypatch):
    monkeypatch.delenv(onednn.SWITCH, raising=False)


@pytest.fixture
def planned(monkeypatch):
    """For each attempt to compute a group by a loop, whether one did."""
    found: list[bool] = []
    run = element_loops.Planner.run

    def noted(self, values):
        result = run(self, values)
        found.append(result is not None)
        return result

    monkeypatch.setattr(element_loops.Planner, "run", noted)
    return found


def joined(builder, *fetches):
    """For each joined instruction, the names of its operations."""
    instructions = Executor(_with_arguments(builder.graph_def, fetches, [], []))._instructions
    return [{each.name, *(node.name for node in each.absorbed)} for each in instructions if each.absorbed]


def fed(g, *names):
    return [g.node("Placeholder", dtype=F32, name=name) for name in names]


def test_connected_operations_are_joined_and_their_results_are_the_same(planned):
    g = GraphBuilder()
    x, y = fed(g, "x", "y")
    total = g.node("AddV2", x, y, T=F32, name="total")
    rectified = g.node("Relu", total, T=F32, name="rectified")
    product = g.node("Mul", rectified, y, T=F32, name="product")
    assert joined(g, product) == [{"total", "rectified", "product"}]
    a, b = RANDOM.randn(2, 70, 100).astype("f")
    results = run_graph_def(g.graph_def, [product, rectified], {"x:0": a, "y:0": b})
    np.testing.assert_array_equal(results[1], np.maximum(a + b, 0))
    np.testing.assert_array_equal(results[0], np.maximum(a + b, 0) * b)
    assert planned == [True]


def test_operations_with_another_one_between_them_are_not_joined():
    g = GraphBuilder()
    (x,) = fed(g, "x")
    first = g.node("Square", x, T=F32, name="first")
    turned = g.node("MatMul", first, first, T=F32, transpose_a=False, transpose_b=False, name="turned")
    last = g.node("AddV2", first, turned, T=F32, name="last")
    assert joined(g, last) == []


def test_what_reads_the_end_of_a_sum_over_rows_is_not_in_its_loop(planned):
    g = GraphBuilder()
    (x,) = fed(g, "x")
    square = g.node("Square", x, T=F32, name="square")
    total = g.node("Sum", square, g.const(np.int32([0])), T=F32, Tidx=dtypes.int32, keep_dims=False, name="total")
    last = g.node("Mul", square, total, T=F32, name="last")
    assert joined(g, last) == [{"square", "total"}]
    values = RANDOM.randn(50, 200).astype("f")
    (result,) = run_graph_def(g.graph_def, [last], {"x:0": values})
    np.testing.assert_allclose(result, values**2 * (values**2).sum(0), rtol=1e-5)
    assert planned == [True]


def test_small_arrays_are_computed_one_by_one(planned):
    g = GraphBuilder()
    x, y = fed(g, "x", "y")
    total = g.node("AddV2", g.node("Square", x, T=F32), y, T=F32)
    (result,) = run_graph_def(g.graph_def, [total], {"x:0": np.float32([1, 2]), "y:0": np.float32([3, 4])})
    np.testing.assert_array_equal(result, [4, 8])
    assert planned == []


@pytest.mark.parametrize(
    ("shape", "other", "fits"),
    [((100, 64), (64,), True), ((100, 64), (100, 1), True), ((100, 64), (), True), ((100, 64), (1, 1), True),
     ((100, 64), (1, 64), True), ((4, 25, 64), (25, 64), True), ((4, 25, 64), (4, 1, 1), True),
     ((4, 25, 64), (4, 25, 1), True), ((4, 25, 64), (4, 1, 64), False), ((4, 25, 64), (1, 25, 1), False),
     ((80, 80), (80,), True), ((80, 80), (80, 1), True), ((6400,), (1, 6400), True), ((80, 1, 80), (1, 80, 1), False)],
)  # fmt: skip
def test_broadcasts_are_numpys(planned, shape, other, fits):
    g = GraphBuilder()
    x, y = fed(g, "x", "y")
    result = g.node("Sub", g.node("Mul", x, x, T=F32), y, T=F32)
    a, b = RANDOM.randn(*shape).astype("f"), np.float32(RANDOM.randn(*other))
    (made,) = run_graph_def(g.graph_def, [result], {"x:0": a, "y:0": b})
    np.testing.assert_array_equal(made, a * a - b)
    assert planned == [fits]


def test_rows_with_gaps_and_transposed_arrays(planned):
    g = GraphBuilder()
    x, y = fed(g, "x", "y")
    result = g.node("Sub", g.node("Mul", x, x, T=F32), y, T=F32)
    a = RANDOM.randn(100, 300).astype("f")[:, 50:250]
    b = RANDOM.randn(200, 100).astype("f").T
    (made,) = run_graph_def(g.graph_def, [result], {"x:0": a, "y:0": b})
    np.testing.assert_array_equal(made, a * a - b)
    assert planned == [True]


def test_shapes_that_do_not_fit_name_the_operation():
    g = GraphBuilder()
    x, y = fed(g, "x", "y")
    result = g.node("Sub", g.node("Mul", x, x, T=F32), y, T=F32, name="difference")
    with pytest.raises(errors.InvalidArgumentError, match=r"\[100,64\] vs. \[63\].*\n.*difference"):
        run_graph_def(g.graph_def, [result], {"x:0": np.ones((100, 64), "f"), "y:0": np.ones(63, "f")})


def test_a_value_is_read_before_the_update_that_waits_for_it():
    with tf.Graph().as_default():
        variable = tf.get_variable("v", [100, 64], initializer=tf.ones_initializer(), use_resource=False)
        x = tf.placeholder(tf.float32, [100, 64])
        result = tf.nn.relu(x * variable + 1.0)
        with tf.control_dependencies([result]):
            update = variable.assign_add(tf.ones([100, 64]))
        with tf.control_dependencies([update]):
            later = tf.nn.relu(tf.square(x) * variable.read_value())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            first, second = session.run([result, later], {x: np.full((100, 64), 2, "f")})
    assert np.all(first == 3) and np.all(second == 8)


def _normalised(net, scale, shift):
    mean, variance = tf.nn.moments(net, [-1], keep_dims=True)
    return (net - mean) * tf.rsqrt(variance + 1e-6) * scale + shift


def _gated(net, scale, shift):
    enter, new, forget, leave = tf.split(net * scale + shift, 4, axis=1)
    cell = enter * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
    return tf.tanh(cell) * tf.sigmoid(leave)


def _attended(net, scale, shift):
    weights = tf.nn.softmax(net * 0.25)
    return tf.nn.relu(tf.nn.bias_add(weights * tf.exp(-tf.abs(net)), shift)) / tf.sqrt(1.0 + tf.square(scale))


@pytest.mark.parametrize("layer", [_normalised, _gated, _attended])
def test_layers_and_their_gradients_are_those_of_numpys_kernels(layer, planned, monkeypatch):
    values = RANDOM.randn(96, 128).astype("f")

    def results():
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [96, 128])
            scale = tf.get_variable("scale", initializer=np.linspace(0.5, 2, 128, dtype="f"))
            shift = tf.get_variable("shift", initializer=np.linspace(-1, 1, 128, dtype="f"))
            weights = tf.get_variable("weights", initializer=np.eye(128, dtype="f"))
            loss = tf.reduce_sum(tf.square(layer(tf.matmul(x, weights), scale, shift)))
            gradients = tf.gradients(loss, [x, scale, shift])
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                return session.run([loss, *gradients], {x: values})

    made = results()
    assert planned and all(planned)
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for one, other in zip(made, results(), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "optimizer",
    [tf.train.AdamOptimizer, tf.train.GradientDescentOptimizer, lambda rate: tf.train.MomentumOptimizer(rate, 0.9)],
)
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_updates_are_numpys_to_the_last_bit(optimizer, use_resource, threads, monkeypatch):
    from dtf.run.kernels import vector_kernels

    monkeypatch.setattr(vector_kernels, "threads_taken", lambda: threads)
    monkeypatch.setattr(vector_kernels, "_OF_THREAD_MIN", 2000)
    values = RANDOM.randn(5003).astype("f")

    def results():
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [5003])
            variable = tf.get_variable("v", initializer=np.ones(5003, "f"), use_resource=use_resource)
            train = optimizer(0.1).minimize(tf.reduce_sum(x * variable))
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                for _ in range(3):
                    session.run(train, {x: values})
                return session.run(variable)

    made = results()
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    np.testing.assert_array_equal(made, results())
