"""What is made of constants alone is computed when a partition is compiled."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.run.executor.executor import Executor, run_graph_def
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32
I32 = dtypes.int32


def described(builder):
    return Executor(builder.graph_def).describe()


def test_a_chain_of_constants_leaves_only_its_end():
    g = GraphBuilder()
    shape = g.node("Pack", g.const(np.int32(2)), g.const(np.int32(3)), N=2, T=I32)
    filled = g.node("Fill", shape, g.const(np.float32(4)), T=F32, index_type=I32)
    total = g.node("Mul", filled, g.const(np.float32(0.5)), T=F32)
    np.testing.assert_array_equal(run_graph_def(g.graph_def, [total])[0], np.full((2, 3), 2, np.float32))
    assert all(op not in described(g) for op in ("Pack", "Fill", "Mul"))


def test_what_would_be_large_is_made_when_it_is_wanted():
    g = GraphBuilder()
    g.node("Fill", g.const(np.array([1000, 1000], np.int32)), g.const(np.float32(0)), T=F32, index_type=I32)
    assert "Fill" in described(g)


def test_an_error_is_the_steps_not_the_graphs():
    g = GraphBuilder()
    wrong = g.node("FloorDiv", g.const(np.int32(1)), g.const(np.int32(0)), T=I32)
    right = g.node("Neg", g.const(np.int32(1)), T=I32)
    assert run_graph_def(g.graph_def, [right]) == [-1]
    with pytest.raises(errors.InvalidArgumentError, match="division by zero"):
        run_graph_def(g.graph_def, [wrong])


def test_what_waits_for_something_else_is_not_folded():
    g = GraphBuilder()
    first = g.node("NoOp")
    g.node("Neg", g.const(np.float32(1)), f"^{first}", T=F32)
    assert "Neg" in described(g)
