"""What is allowed in a cluster file and hardly ever meant. Pure; each is one line with its position."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtfctl.config.source import Mapping, Node, Scalar, Sequence
from dtfctl.plan.expand import known_placeholders

USUAL_JOBS = ("ps", "worker", "chief", "master", "evaluator", "tensorboard")

_DOUBLE = re.compile(r"\{\{\s*([A-Za-z][\w-]*)\s*\}\}")


def doubts(root: Node, jobs: tuple[str, ...]) -> Iterator[str]:
    """`root` is the whole file, `jobs` the names of its jobs."""
    found = root.get("jobs") if isinstance(root, Mapping) else None
    for name, entry in found.entries.items() if isinstance(found, Mapping) else ():
        usual = meant(name, USUAL_JOBS)
        if usual:
            yield (
                f'{entry.at}: the job "{name}" is not the same as "{usual}": TensorFlow knows {usual} only by '
                f'this name; write "{usual}" if you mean that job'
            )
    for scalar in _scalars(root):
        for match in _DOUBLE.finditer(scalar.text):
            if match[1] in known_placeholders(jobs):
                yield (
                    f"{scalar.at}: {{{{{match[1]}}}}} stands for the text {{{match[1]}}}; "
                    f"the placeholder has one brace: {{{match[1]}}}"
                )


def meant(name: str, usual: tuple[str, ...]) -> str:
    """The usual name that differs from this one by a single slip of the keyboard, "" for none. A number at the end is
    none: worker2 may stand beside worker."""
    for known in usual:
        if name == known:
            return ""
    for known in usual:
        is_numbered = name[:-1] == known and name[-1:].isdigit()
        is_long_enough = len(known) > 2 or name.lower() == known or sorted(name) == sorted(known)
        if is_long_enough and not is_numbered and slips(name, known) <= 1:
            return known
    return ""


def slips(one: str, other: str) -> int:
    """How many letters are missing, added, replaced or swapped with their neighbour; the letters' case is one slip."""
    if one != other and one.lower() == other.lower():
        return 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _scalars(item)
    else:
        for key, entry in node.entries.items():
            if not key.startswith("x-"):
                yield from _scalars(entry.value)
