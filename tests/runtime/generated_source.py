"""What the source of a compiled partition may consist of, for tests: an allow-list of Python's syntax, and of names.

    with checked_programs() as programs:
        run_graph_def(...)
    assert programs            # each was checked
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator

import pytest

from dtf.run.exchange.piggyback import SEND_METHODS
from dtf.run.executor.flat_program import FlatProgram

NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Pass, ast.If, ast.Assign, ast.Delete, ast.Expr, ast.Call,
    ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.Constant, ast.IfExp, ast.Compare, ast.BoolOp, ast.UnaryOp,
    ast.Load, ast.Store, ast.Del, ast.Is, ast.IsNot, ast.And, ast.Not, ast.BinOp, ast.Mult, ast.LtE,
)  # fmt: skip
NAMES = re.compile(
    r"step|shared|run|started|now|partial|single|DEAD|_|segment_\d+|(function|checked|task)_\d+|[ck]\d+|s\d+(_\d+)?",
    re.ASCII,
)
ATTRIBUTES = {"check", "finish", "skip", "record", "read", "is_initialized", "exchange", "size", *SEND_METHODS}
CHARACTERS = re.compile(r"[A-Za-z0-9_ \n.,:;=()\[\]*<]*")


def check_source(source: str) -> None:
    """Raises AssertionError for whatever is not in the lists, comments and strings included."""
    assert CHARACTERS.fullmatch(source), source
    for node in ast.walk(ast.parse(source)):
        assert isinstance(node, NODES), (node, source)
        if isinstance(node, ast.Name):
            assert NAMES.fullmatch(node.id), node.id
        elif isinstance(node, ast.FunctionDef):
            assert NAMES.fullmatch(node.name) and not node.decorator_list, node.name
        elif isinstance(node, ast.Attribute):
            assert node.attr in ATTRIBUTES, node.attr
        elif isinstance(node, ast.Constant):
            assert node.value is None or type(node.value) is int, node.value


@contextlib.contextmanager
def checked_programs(
    variants: Iterable[tuple[bool, bool]] = ((False, False), (True, True)),
) -> Iterator[list[FlatProgram]]:
    """While it lasts, the source of each program that is compiled in this process is checked: `variants` of it, each
    (careful, traced).
    """
    found: list[FlatProgram] = []
    plain = FlatProgram.__init__

    def checked(self, *arguments):
        plain(self, *arguments)
        for variant in variants:
            check_source(self.variant(*variant).source)
        found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlatProgram, "__init__", checked)
        yield found
