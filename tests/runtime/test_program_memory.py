"""What a compiled program keeps for each node must not be made anew for each node."""

from __future__ import annotations

import numpy as np

from dtf.run.executor.executor import Executor
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.executor.segment_graph import SegmentGraph
from dtf.run.executor.segment_source import globals_of
from dtf.wire import dtypes
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32


def chain(length: int) -> FlatProgram:
    g = GraphBuilder()
    value, one = g.node("Placeholder", name="x", dtype=F32), g.const(np.float32(1))
    for _ in range(length):
        value = g.node("AddV2", g.node("Sin", value, T=F32), one, T=F32)
    return FlatProgram(Executor(g.graph_def)._instructions)


def test_nodes_of_one_kind_share_the_functions_that_are_made_of_theirs():
    def functions(program: FlatProgram) -> int:
        names = globals_of(program.instructions, {}, program.overwritten)
        return len({id(value) for name, value in names.items() if name.startswith(("function_", "checked_"))})

    assert functions(chain(300)) == functions(chain(30))


def test_nodes_outside_of_branches_share_one_guard():
    graph = SegmentGraph(chain(100).instructions)
    assert len({id(guard) for guard in graph.token_guards}) == 1
