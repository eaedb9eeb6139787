"""Elementwise operations overwrite what nobody else wants, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.run.executor.executor import Executor, run_graph_def
from dtf.wire import dtypes
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
