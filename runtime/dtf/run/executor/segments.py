"""Segments: what of a partition runs straight through, and what is known about it before it runs.

Owns the analysis of a list of instructions: constants, other names of values, when a value may be dead, and the
grouping by asynchronous ancestors. Makes no code (`segment_source`), runs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import cast

import numpy as np

from dtf.run.executor.atomic_updates import has_update, held_together
from dtf.run.executor.constant_folding import folded
from dtf.run.executor.instructions import ALIASES, CALLS_USERS, MERGES, Instruction, with_node
from dtf.run.interfaces import Value
from dtf.run.value_types import Array

__all__ = ["TOKEN", "Guard", "Segment", "aliases_of", "asynchronous_ancestors", "constants_of", "group_node"]
__all__ += ["guards_of", "segments_of"]

TOKEN = -1
"""The output number that stands for "this node has run" where deadness of a control edge is checked."""


class Segment:
    """Instructions that run straight through. `cost_ns` is what it took lately; at first, a guess by its length. One
    that `is_update` runs while no other such one of its task does (see `atomic_updates`); one that `is_of_user` calls
    functions of the user's.
    """

    __slots__ = (
        "asynchronous", "cost_ns", "index", "instructions", "is_of_user", "is_update", "predecessors", "shared_slots",
        "successors",
    )  # fmt: skip

    def __init__(self, index: int) -> None:
        self.index = index
        self.instructions: list[int] = []
        self.asynchronous: list[int] = []
        self.predecessors = 0
        self.successors: tuple[int, ...] = ()
        self.shared_slots: tuple[int, ...] = ()
        self.cost_ns = 0
        self.is_update = False
        self.is_of_user = False


def group_node(group: int) -> int:
    """What stands for the values of a group among the nodes that segments wait for."""
    return -1 - group


def constants_of(instructions: list[Instruction], order: list[int]) -> dict[int, Array]:
    """The values of constants, and of what is made of them alone, computed now. One with control inputs stays an
    instruction: it may be in a branch not taken.
    """
    constants: dict[int, Array] = {}
    for index in order:
        instruction = instructions[index]
        if instruction.op == "Const" and not instruction.controls:
            try:
                value = cast(Array, instruction.function())
            except Exception as error:
                raise with_node(error, instruction.node) from error
        else:
            known = folded(instruction, constants)
            if known is None:
                continue
            value = cast(Array, known)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
        constants[index] = value
    return constants


def aliases_of(instructions: list[Instruction], order: list[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Outputs that are only another name of an input, with the value that they name."""
    alias: dict[tuple[int, int], tuple[int, int]] = {}
    for index in order:
        instruction = instructions[index]
        if instruction.op in ALIASES and not instruction.controls and not instruction.dereferences[0]:
            source = instruction.inputs[0]
            alias[index, 0] = alias.get(source, source)
    return alias


Guard = frozenset[tuple[Value, bool]]
_PAIRS_MAX = 64
_MERGED_MAX = 64


def guards_of(
    instructions: list[Instruction], order: list[int], alias: dict[tuple[int, int], tuple[int, int]]
) -> tuple[dict[tuple[int, int], Guard], list[Guard]]:
    """Per value, and per node, the (predicate, branch) pairs that must hold for it to be alive. Empty sets are
    left out of the first. One of very many pairs is a predicate of its own: its merge is looked at more carefully then,
    but a chain of conditions does not take memory by the square of its length.
    """
    nothing: Guard = frozenset()
    values: dict[tuple[int, int], Guard] = {}
    tokens: list[Guard] = [nothing] * len(instructions)
    for index in order:
        instruction = instructions[index]
        inputs = [values.get(value, nothing) for value in instruction.inputs]
        controls = [tokens[source] for source in instruction.controls]
        if instruction.op in MERGES:
            guard = _merged(inputs, index)
        elif instruction.op == "ControlTrigger":
            guard = nothing
        else:
            known = [each for each in (*inputs, *controls) if each]
            guard = known[0].union(*known[1:]) if known else nothing
        if len(guard) > _PAIRS_MAX:
            guard = frozenset({(("deep", index), True)})
        tokens[index] = guard
        for output in range(instruction.node.num_outputs):
            own = guard
            if instruction.op in ("Switch", "RefSwitch"):
                predicate = alias.get(instruction.inputs[1], instruction.inputs[1])
                own = guard | {(predicate, bool(output))}
            if own:
                values[index, output] = own
    return values, tokens


def _merged(guards: list[Guard], index: int) -> Guard:
    """When a Merge is alive: two branches of one predicate cancel out; what cannot be told is a predicate of its
    own.
    """
    remaining = set(guards)
    changed = True
    while changed and 1 < len(remaining) <= _MERGED_MAX:
        changed = False
        for left, right in itertools.combinations(remaining, 2):
            difference = left ^ right
            if len(difference) == 2 and len({predicate for predicate, _ in difference}) == 1:
                remaining = (remaining - {left, right}) | {left & right}
                changed = True
                break
    if len(remaining) == 1:
        return next(iter(remaining))
    if frozenset() in remaining:
        return frozenset()
    return frozenset.intersection(*remaining) | {(("merge", index), True)}


def segments_of(
    instructions: list[Instruction], order: list[int], constants: Mapping[int, Array]
) -> tuple[list[Segment], dict[int, int]]:
    """Groups instructions by their asynchronous ancestors. Values that come together count as one of these, and what
    brings them is in no segment. What is held together (see `atomic_updates`) shares the ancestors of the last of it.
    """
    numbers = _numbers_of_asynchronous(instructions, order)
    ancestors = _ancestors(instructions, order, numbers, {})
    held = held_together(instructions, order)
    if held:
        more = {index: [ancestors[final] for final in finals] for index, finals in held.items()}
        ancestors = _ancestors(instructions, order, numbers, more)
    by_ancestors: dict[int, Segment] = {}
    segments: list[Segment] = []
    segment_of: dict[int, int] = {}
    for index in order:
        if index in constants or instructions[index].group is not None:
            continue
        mask = ancestors[index]
        segment = by_ancestors.get(mask)
        if segment is None:
            segment = by_ancestors[mask] = Segment(len(segments))
            segments.append(segment)
        segment.instructions.append(index)
        if index in numbers:
            segment.asynchronous.append(index)
        segment_of[index] = segment.index
    for segment in segments:
        segment.cost_ns = 1000 * len(segment.instructions)
        segment.is_update = has_update(segment.instructions, instructions)
        segment.is_of_user = any(instructions[index].op in CALLS_USERS for index in segment.instructions)
    return segments, segment_of


def asynchronous_ancestors(instructions: list[Instruction], order: list[int]) -> dict[int, int]:
    """What each instruction waits for, as a set of bits. Instructions of equal sets are in one segment, unless they are
    held together with others.
    """
    return _ancestors(instructions, order, _numbers_of_asynchronous(instructions, order), {})


def _numbers_of_asynchronous(instructions: list[Instruction], order: list[int]) -> dict[int, int]:
    """A number for each asynchronous instruction; values that come together have one."""
    numbers: dict[int, int] = {}
    number_of: dict[int, int] = {}
    for index in order:
        if instructions[index].kernel.asynchronous:
            group = instructions[index].group
            node = index if group is None else group_node(group)
            numbers[index] = number_of.setdefault(node, len(number_of))
    return numbers


def _ancestors(
    instructions: list[Instruction], order: list[int], numbers: Mapping[int, int], more: Mapping[int, list[int]]
) -> dict[int, int]:
    """The asynchronous ancestors of each instruction as a set of bits: one for each of `numbers`."""
    found: dict[int, int] = {}
    for index in order:
        mask = 0
        for source in instructions[index].sources():
            mask |= found[source]
            if source in numbers:
                mask |= 1 << numbers[source]
        for others in more.get(index, ()):
            mask |= others
        found[index] = mask
    return found
