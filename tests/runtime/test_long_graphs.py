"""Long chains: no pass goes down a graph by Python's stack, and none takes memory by the square of a graph's length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import Executor
from dtf.run.executor.segments import guards_of
from dtf.run.master.client_graph import ClientGraph
from dtf.run.passes.optimize import optimize
from dtf.wire import dtypes
from dtf.wire.pb import graph_pb2
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32


def of_data(g: GraphBuilder, length: int) -> str:
    last = g.node("Placeholder", name="x", dtype=F32)
    for _ in range(length):
        last = g.node("Neg", last, T=F32)
    return last


def of_control(g: GraphBuilder, length: int) -> str:
    last = g.node("Placeholder", name="x", dtype=F32)
    for _ in range(length):
        last = g.node("NoOp", f"^{last}")
    return g.node("Identity", "x", f"^{last}", T=F32)


def of_branches(g: GraphBuilder, length: int) -> str:
    last, yes = g.node("Placeholder", name="x", dtype=F32), g.const(True)
    for _ in range(length):
        last = f"{g.node('Switch', last, yes, T=F32)}:1"
    return last


def of_merges(g: GraphBuilder, length: int) -> str:
    last = g.node("Placeholder", name="x", dtype=F32)
    for _ in range(length):
        last = g.node("Merge", last, N=1, T=F32)
    return last


def of_colocations(g: GraphBuilder, length: int) -> str:
    last = g.node("Placeholder", name="x", dtype=F32)
    for number in range(length):
        last = g.node("Neg", last, name=f"n{number}", T=F32)
        g.graph_def.node[-1].attr["_class"].list.s.append(f"loc:@n{(number + 1) % length}".encode())
    return last


CHAINS = [of_data, of_control, of_branches, of_merges, of_colocations]


def check(chain: Callable[[GraphBuilder, int], str], length: int) -> None:
    """Imports the chain, consumers first, and runs it in a session."""
    g = GraphBuilder()
    last = chain(g, length)
    graph_def = graph_pb2.GraphDef(node=reversed(g.graph_def.node))
    fetch = last if ":" in last else f"{last}:0"
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        assert abs(session.run(fetch, {"x:0": np.float32(3)})) == 3


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.__name__)
def test_a_chain_that_is_longer_than_pythons_stack_runs(chain):
    check(chain, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.__name__)
def test_a_chain_of_twenty_thousand_nodes_runs(chain):
    check(chain, 20_000)


@pytest.mark.slow
def test_a_chain_of_a_hundred_thousand_nodes_is_taken():
    g = GraphBuilder()
    last = of_data(g, 100_000)
    client = ClientGraph()
    client.extend(g.graph_def, 0)
    assert len(client.needed(["x:0"], [f"{last}:0"], [])[0]) == 100_002


def test_conditions_inside_of_each_other_are_not_all_kept_for_each():
    g = GraphBuilder()
    of_branches(g, 1000)
    instructions = Executor(g.graph_def)._instructions
    values, tokens = guards_of(instructions, range(len(instructions)), {})
    assert max(map(len, [*values.values(), *tokens])) < 100


def test_joints_that_wait_for_joints_do_not_all_wait_for_everything():
    g = GraphBuilder()
    last = g.node("NoOp")
    for _ in range(1000):
        last = g.node("NoOp", f"^{last}", f"^{g.const(np.float32(1))}")
    nodes = {node.name: node for node in g.graph_def.node}
    made = optimize(nodes)
    assert sum(len(node.input) for node in made.values()) < 3000


@pytest.mark.parametrize("length", [1, 1500])
def test_a_reference_goes_through_a_chain_of_identities_in_any_order(length):
    g = GraphBuilder()
    g.variable("v", [])
    for number in range(length):
        g.node("Identity", f"i{number - 1}" if number else "v", name=f"i{number}", T=F32)
    forth = Executor(g.graph_def)
    back = Executor(graph_pb2.GraphDef(node=reversed(g.graph_def.node)))
    for executor in (forth, back):
        assert all(each.passes_reference for each in executor._instructions if each.op == "Identity")
