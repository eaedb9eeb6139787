"""Caches by texts that a peer chooses must not keep long texts."""

from __future__ import annotations

import ast
from pathlib import Path

import dtf
from dtf.wire.text_cache import LONGEST, cached_by_text

PACKAGE = Path(dtf.__file__).parent
BOUNDED_OTHERWISE = {
    "_plain_tensor",  # a pattern has found at most some hundred bytes
    "file_system",  # schemes in front of "://" of the program's own paths
    "_output_tuple", "get", "_expected", "_default", "_required_attrs",  # fail, and keep nothing, but for known ops
    "__getattr__", "_signature",  # names in a program
}  # fmt: skip


def test_short_texts_are_kept_and_long_ones_computed_anew():
    seen = []

    @cached_by_text(2)
    def size(text, number=0):
        seen.append(text)
        return len(text) + number

    assert [size("a"), size("a"), size(b"a", 3), size(b"a", 3)] == [1, 1, 4, 4]
    assert seen == ["a", b"a"]
    assert [size("x" * (LONGEST + 1)) for _ in range(2)] == [LONGEST + 1] * 2
    assert size("y" * LONGEST) == size("y" * LONGEST) == LONGEST
    assert len(seen) == 5
    size.cache_clear()
    size("a")
    assert len(seen) == 6


def test_no_other_cache_has_texts_as_keys():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            taken = " ".join(ast.unparse(each.annotation) for each in node.args.args if each.annotation)
            if "functools." in decorators and "cache" in decorators and ("str" in taken or "bytes" in taken):
                found.add(node.name)
    assert found - BOUNDED_OTHERWISE == set()
