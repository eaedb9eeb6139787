"""Updates of variables that take several operations, such as those of a sparse Adam: what of them runs together.

Two workers' updates of the same variables must not mix. One that reads a slot, has it multiplied, and assigns the
product loses what another added to it meanwhile; one that sees another's new mean beside its old square takes a step of
any size. So what belongs together is in one segment, and such a segment runs while no other of its task does
(`FlatRun`). What a single operation does is done under the variable's own lock already.

Owns the analysis. TensorFlow lets such updates mix, seldom enough, since they take it less of a step.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from dtf.run.executor.instructions import ALIASES, Instruction

__all__ = ["has_update", "held_together"]

_WRITE = re.compile(r"(Resource)?(Sparse)?(Assign|Scatter|Apply|StridedSliceAssign)")
_WHOLE = frozenset({"Assign", "AssignVariableOp"})
_READS = frozenset({"ReadVariableOp", "_ReadVariablesOp"})

_Value = tuple[int, int]


def held_together(instructions: Sequence[Instruction], order: Sequence[int]) -> dict[int, list[int]]:
    """Which instructions wait until others can run, so as to run with them: index -> those others.

    They are the way from one change of a variable to another that is made of it. None whose value is wanted elsewhere
    too, perhaps by a task that the others wait for, has to wait.
    """
    of_writes = _of_writes(instructions, order)
    finals = [index for index in order if _is_write(instructions[index]) and of_writes.get(index)]
    if not finals:
        return {}
    consumers: dict[int, set[int]] = defaultdict(set)
    for index in order:
        for source in instructions[index].sources():
            consumers[source].add(index)
    found: dict[int, list[int]] = defaultdict(list)
    for final in finals:
        chain = _closure(of_writes[final], lambda index: of_writes.get(index, ()))
        later = _closure([final], lambda index: consumers[index])
        may_wait = all(instructions[index].op not in _WHOLE for index in chain)  # what is assigned was read before
        if may_wait and all(consumers[index] <= chain | later for index in chain):
            for index in chain:
                found[index].append(final)
    return found


def has_update(segment: Sequence[int], instructions: Sequence[Instruction]) -> bool:
    """Whether, of these instructions, in order, one assigns what was made of the variable's own value, or one changes
    a variable by what another has made of a variable.
    """
    of_writes = _of_writes(instructions, segment)
    reads: dict[int, frozenset[_Value]] = {}
    for index in segment:
        instruction = instructions[index]
        is_write = _is_write(instruction)
        if is_write and of_writes.get(index):
            return True
        values = list(zip(instruction.inputs, instruction.dereferences, strict=True))[is_write:]
        read = frozenset[_Value]().union(*(reads.get(source, ()) for (source, _), _ in values))
        is_read = instruction.op in _READS
        read |= {_variable(value, instructions) for value, dereferenced in values if dereferenced or is_read}
        if is_write and instruction.op in _WHOLE and _variable(instruction.inputs[0], instructions) in read:
            return True
        reads[index] = read
    return False


def _of_writes(instructions: Sequence[Instruction], order: Iterable[int]) -> dict[int, list[int]]:
    """For each instruction that has something to do with a change of a variable by one of `order`: which of those that
    it is made of have, too. A change that is made of none has an empty list.
    """
    found: dict[int, list[int]] = {}
    for index in order:
        instruction = instructions[index]
        is_write = _is_write(instruction)
        sources = [source for source, _ in instruction.inputs[is_write:]]
        if instruction.op in _READS:
            sources += (source for source in instruction.controls if _is_write(instructions[source]))
        before = [source for source in sources if source in found]
        if before or is_write:
            found[index] = before
    return found


def _closure(start: Iterable[int], following: Callable[[int], Iterable[int]]) -> set[int]:
    found = set(start)
    left = list(found)
    while left:
        for index in following(left.pop()):
            if index not in found:
                found.add(index)
                left.append(index)
    return found


def _is_write(instruction: Instruction) -> bool:
    if not _WRITE.match(instruction.op) or not instruction.node.op_def.inputs:
        return False
    return instruction.node.op_def.inputs[0].is_ref or "Resource" in instruction.op or "Variable" in instruction.op


def _variable(value: _Value, instructions: Sequence[Instruction]) -> _Value:
    """What stands for the variable that a reference or handle names."""
    instruction = instructions[value[0]]
    while instruction.inputs and (instruction.op in ALIASES or _is_write(instruction)):
        value = instruction.inputs[0]
        instruction = instructions[value[0]]
    return value
