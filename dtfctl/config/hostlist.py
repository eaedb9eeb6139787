"""Ranges in brackets, as Slurm writes them, and lists of numbers. Pure; errors are ValueErrors in words.

node[0-2,7] -> node0 node1 node2 node7      r[1-2]n[08-10] -> r1n08 r1n09 ...      0-3,6 -> 0 1 2 3 6
"""

from __future__ import annotations

import re

MANY = 10_000
BRACKETS_MAX = 8


def expand_names(text: str) -> list[str]:
    """The names that a text with ranges and commas stands for, in its order."""
    names = []
    for part in _split(text):
        if not part:
            raise ValueError(f'"{text}" has an empty name')
        names += _expand(part)
        if len(names) > MANY:
            raise ValueError(f'"{text}" stands for more than {MANY} names')
    return names


def numbers(text: str, most: int) -> list[int]:
    """The numbers of `0-3,6`, each from 0 to `most`."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
        if match is None:
            raise ValueError(f'"{text}" is not a list of numbers such as 0-3,6')
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f'the range "{part.strip()}" runs backwards')
        if last > most:
            raise ValueError(f'"{text}" exceeds {most}')
        if last - first >= MANY:
            raise ValueError(f'"{text}" stands for more than {MANY} numbers')
        found += range(first, last + 1)
    if len(set(found)) != len(found):
        raise ValueError(f'"{text}" names a number twice')
    return found


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    if text.count("[") != text.count("]") or re.search(r"\[[^\]]*\[|\][^\[]*\]|^[^\[]*\]", text):
        raise ValueError(f'the brackets of "{text}" do not match')
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text)]


def _expand(text: str) -> list[str]:
    if text.count("[") > BRACKETS_MAX:
        raise ValueError(f'"{text[:40]}..." has more than {BRACKETS_MAX} ranges')
    before, bracket, rest = text.partition("[")
    if not bracket:
        return [text]
    inside, _, after = rest.partition("]")
    names = []
    for part in inside.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        if match is None:
            raise ValueError(f'"[{inside}]" is not a range such as [0-3,7]')
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f'the range "{part.strip()}" runs backwards')
        if last - first >= MANY:
            raise ValueError(f'"{text}" stands for more than {MANY} names')
        width = len(match[1]) if match[1].startswith("0") else 0
        names += [f"{before}{number:0{width}d}" for number in range(first, last + 1)]
    tails = _expand(after)
    if len(names) * len(tails) > MANY:
        raise ValueError(f'"{text}" stands for more than {MANY} names')
    return [name + tail for name in names for tail in tails]
