"""The functions of version_2.txt: those whose arguments have version 2's order.

Owns the way from the table to functions; each passes its arguments by name to the public function.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__: list[str] = []

_TABLE = Path(__file__).with_name("version_2.txt")


@functools.cache
def _lines() -> dict[str, list[str]]:
    found = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        name, colon, words = line.partition(": ")
        if colon and not line.startswith("#"):
            found[name] = words.split()
    return found


@functools.cache
def __getattr__(name: str) -> Callable[..., Any]:
    words = _lines().get(name)
    if words is None:
        raise AttributeError(f"no function of version 2 is named {name!r}")
    import dtf

    target: Any = dtf
    for part in words[0].split("."):
        target = getattr(target, part)
    fixed = {word.partition(":=")[0]: ast.literal_eval(word.partition(":=")[2]) for word in words[1:] if ":=" in word}
    pairs = [(word.partition("=")[0], word.partition("=")[2] or word) for word in words[1:] if ":=" not in word]
    names = dict(pairs)

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(pairs):
            raise TypeError(f"{name}() takes {len(pairs)} positional arguments but {len(args)} were given")
        given = {names[new]: value for (new, _), value in zip(pairs, args, strict=False)}
        for word, value in kwargs.items():
            given[names.get(word, word)] = value
        for word, value in fixed.items():
            given.pop(word, None)
            if value is not None:
                given[word] = value
        return target(**{word: value for word, value in given.items() if value is not None or word in _KEPT})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`tf.{words[0]}` with version 2's order of arguments."
    return function


_KEPT = frozenset(("x", "input", "tensor", "condition", "sp_weights", "sparse_weights"))
