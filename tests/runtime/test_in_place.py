"""Elementwise operations overwrite what nobody else wants, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.run.executor.executor import Executor, run_graph_def
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32
LARGE = np.linspace(-2, 2, 20_000, dtype=np.float32).reshape(100, 200)


def fed(builder):
    return builder.node("Placeholder", dtype=F32, name="x")


def overwritten(builder):
    """Names of the instructions that may overwrite an input."""
    program = Executor(builder.graph_def)._program
    return {program.instructions[index].name for index in program.overwritten}


def test_a_chain_is_computed_in_one_array_with_the_same_result():
    g = GraphBuilder()
    x = fed(g)
    first = g.node("Square", x, T=F32, name="first")
    second = g.node("AddV2", first, g.const(np.ones(200, np.float32)), T=F32, name="second")
    third = g.node("Tanh", second, T=F32, name="third")
    assert overwritten(g) == {"second", "third"}
    before = LARGE.copy()
    (result,) = run_graph_def(g.graph_def, [third], {"x:0": LARGE})
    np.testing.assert_array_equal(result, np.tanh(np.square(before) + np.float32(1)))
    np.testing.assert_array_equal(LARGE, before)


def test_what_is_fetched_or_used_again_is_left_alone():
    g = GraphBuilder()
    x = fed(g)
    first = g.node("Square", x, T=F32, name="first")
    second = g.node("Neg", first, T=F32, name="second")
    third = g.node("Mul", second, second, T=F32, name="third")
    values = run_graph_def(g.graph_def, [first, second, third], {"x:0": LARGE})
    np.testing.assert_array_equal(values[0], np.square(LARGE))
    np.testing.assert_array_equal(values[1], -np.square(LARGE))
    np.testing.assert_array_equal(values[2], np.square(-np.square(LARGE)))


@pytest.mark.parametrize("other", [np.ones((1, 100, 200)), np.ones((100, 1)), np.ones((3, 100, 200))])
def test_an_array_of_another_shape_is_made_anew(other):
    g = GraphBuilder()
    x = fed(g)
    y = g.node("Placeholder", dtype=F32, name="y")
    total = g.node("Add", g.node("Square", x, T=F32), y, T=F32)
    other = other.astype(np.float32)
    (result,) = run_graph_def(g.graph_def, [total], {"x:0": LARGE, "y:0": other})
    np.testing.assert_array_equal(result, np.square(LARGE) + other)


def test_a_variable_is_never_overwritten():
    g = GraphBuilder()
    read = g.node("Identity", g.variable("v", [100, 200]), T=F32)
    g.node("Neg", read, T=F32, name="negative")
    assert not overwritten(g)


def test_bias_relu_its_gradient_and_sums_are_computed_in_one_array_with_the_same_result():
    g = GraphBuilder()
    x = fed(g)
    first = g.node("Square", x, T=F32, name="first")
    biased = g.node("BiasAdd", first, g.const(np.full(200, -1, np.float32)), T=F32, name="biased")
    positive = g.node("Relu", biased, T=F32, name="positive")
    back = g.node("ReluGrad", positive, x, T=F32, name="back")
    total = g.node("AddN", back, x, x, T=F32, N=3, name="total")
    assert overwritten(g) == {"biased", "positive", "back", "total"}
    before = LARGE.copy()
    (result,) = run_graph_def(g.graph_def, [total], {"x:0": LARGE})
    kept = np.maximum(np.square(before) + np.float32(-1), 0) * (before > 0)
    np.testing.assert_array_equal(result, kept + before + before)
    np.testing.assert_array_equal(LARGE, before)


def test_copies_that_wait_for_others_hand_on_the_same_array():
    g = GraphBuilder()
    x = fed(g)
    first = g.node("Square", x, T=F32, name="first")
    other = g.node("Neg", x, T=F32)
    copy = g.node("Identity", first, f"^{other}", T=F32)
    g.node("Neg", copy, T=F32, name="second")
    assert overwritten(g) == {"second"}
    again = g.node("Identity", first, f"^{other}", T=F32)
    assert not overwritten(g)
    (second, kept) = run_graph_def(g.graph_def, ["second", again], {"x:0": LARGE})
    np.testing.assert_array_equal(kept, np.square(LARGE))
    np.testing.assert_array_equal(second, -kept)


def test_the_other_input_may_be_a_variable_which_stays():
    g = GraphBuilder()
    bias = g.variable("bias", [200])
    value = g.const(np.full(200, 0.5, np.float32))
    assigned = g.node("Assign", bias, value, T=F32, name="assigned")
    biased = g.node("BiasAdd", g.node("Square", fed(g), T=F32), bias, f"^{assigned}", T=F32, name="biased")
    read = g.node("Identity", bias, f"^{biased}", T=F32)
    assert overwritten(g) == {"biased"}
    results = run_graph_def(g.graph_def, [biased, read], {"x:0": LARGE})
    np.testing.assert_array_equal(results[0], np.square(LARGE) + np.float32(0.5))
    np.testing.assert_array_equal(results[1], np.full(200, 0.5, np.float32))


def test_a_sum_of_one_and_what_is_fed_are_nobodys_own():
    g = GraphBuilder()
    x = fed(g)
    g.node("Neg", g.node("AddN", x, T=F32, N=1), T=F32, name="negative")
    g.node("Relu", x, T=F32, name="positive")
    assert not overwritten(g)


@pytest.mark.parametrize("bias", [np.ones(100), np.ones((1, 200)), np.ones(())])
def test_a_bias_that_does_not_fit_is_the_same_error_and_a_sum_of_other_shapes_too(bias):
    g = GraphBuilder()
    x, y = fed(g), g.node("Placeholder", dtype=F32, name="y")
    made = g.node("BiasAdd", g.node("Square", x, T=F32), y, T=F32)
    total = g.node("AddN", g.node("Square", x, T=F32), y, T=F32, N=2)
    for node, words in ((made, "as many biases"), (total, "same size and shape")):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            run_graph_def(g.graph_def, [node], {"x:0": LARGE, "y:0": bias.astype(np.float32)})


@pytest.mark.parametrize("other", [np.ones((100, 1)), np.ones((1, 200)), np.ones((1, 1)), np.ones(())])
def test_what_is_broadcast_to_the_array_leaves_it_in_place(other):
    g = GraphBuilder()
    total = g.node("Mul", g.node("Square", fed(g), T=F32), g.node("Placeholder", dtype=F32, name="y"), T=F32)
    (result,) = run_graph_def(g.graph_def, [total], {"x:0": LARGE, "y:0": other.astype(np.float32)})
    np.testing.assert_array_equal(result, np.square(LARGE) * other.astype(np.float32))


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 8192, 10_001])
@pytest.mark.parametrize("op", ["Relu", "Softmax", "LogSoftmax"])
def test_activations_in_parts_are_those_of_the_whole(op, size):
    values = np.random.RandomState(0).randn(3, size).astype(np.float32)
    values.flat[:3] = np.nan, -np.inf, -0.0
    for given in (values, values[:, ::2], values.T):
        g = GraphBuilder()
        (result,) = run_graph_def(g.graph_def, [g.node(op, fed(g), T=F32)], {"x:0": given})
        wide = given.astype(np.float64)
        with np.errstate(all="ignore"):
            if op == "Relu":
                wanted = np.maximum(wide, 0)
            else:
                shifted = wide - (wide.max(-1, keepdims=True) if given.size else 0)
                wanted = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
                wanted = np.log(wanted) if op == "LogSoftmax" else wanted
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
