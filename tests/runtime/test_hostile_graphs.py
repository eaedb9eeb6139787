"""Graphs made to do harm: nothing that a graph says becomes program, and every bad name is refused by name.

The source that partitions are compiled to is checked against an allow-list (`generated_source`).
"""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import pytest

from dtf.run import kernels
from dtf.run.exchange.endpoint_binding import Push
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.executor.instructions import Instruction
from dtf.run.kernels import KernelNode
from dtf.wire import dtypes
from tests.runtime.generated_source import check_source

F32 = dtypes.float32
PROGRAM = "import builtins; builtins.dtf_was_here = 1"
HOSTILE = [
    f"a\n{PROGRAM}", f"a\n    {PROGRAM}\n    #", f"a\r{PROGRAM}", f"a\x0c\n{PROGRAM}", f"a\u2028{PROGRAM}",
    f"a\u2029{PROGRAM}", f"a\x85{PROGRAM}", f"a\x0b{PROGRAM}", f"a\x1c{PROGRAM}", "a\x00b", "a'b", 'a"b',
    f"a');{PROGRAM}#", f'a");{PROGRAM}#', "a\\", "a\\\nb", 'a"""b', "a{b}", "{0.__class__}", "%s%n", "$(id)", "`id`",
    "../../etc/passwd b", "a b", "a;b", "é", "٣", "a" * 5000 + "\n", "", " ", "\n", "^", ":", "a:0", "^a", "-a", "/a",
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_was_executed():
    yield
    assert not hasattr(builtins, "dtf_was_here")


def instruction(index: int, op: str, text: str, *inputs: tuple[int, int], **more: Any) -> Instruction:
    """A node with `text` wherever a text can stand, past all checks."""
    node = KernelNode(text, op, text, {"T": F32, "dtype": F32, "shape": None, text: text}, more.get("outputs", 1), {})
    row = more.get("kernel") or kernels.lookup(op)
    function = more.get("function") or row.function(node)
    return Instruction(index, node, row, function, inputs, (), (False,) * len(inputs), False)


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_the_source_says_nothing_that_a_graph_says_even_where_nobody_checks_names(text):
    pushing = kernels.lookup("NoOp")._replace(stateful=True)
    program = FlatProgram([
        instruction(0, "Placeholder", text),
        instruction(1, "Placeholder", text),
        instruction(2, "Switch", text, (0, 0), (1, 0), outputs=2),
        instruction(3, "Neg", text, (2, 1)),
        instruction(4, "_Send", text, (3, 0), kernel=pushing, function=Push(text, 3, "add")),
    ])  # fmt: skip
    for variant in itertools.product((False, True), repeat=2):
        check_source(program.variant(*variant).source)
    described = program.describe()
    assert described.replace("\n", "").isprintable()
    assert len(described.splitlines()) == len(program.plain.source.splitlines())
