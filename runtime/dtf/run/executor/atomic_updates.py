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
from collections.abc import Callable, Iterable, Mapping, Sequence

from dtf.run.executor.instructions import ALIASES, SENDS, Instruction

__all__ = ["CONFIRM", "has_update", "held_together"]

_WRITE = re.compile(r"(Resource)?(Sparse)?(Assign|Scatter|Apply|StridedSliceAssign)")
_WHOLE = frozenset({"Assign", "AssignVariableOp"})
_READS = frozenset({"ReadVariableOp", "_ReadVariablesOp"})
CONFIRM, _EXPORT = "WorkQueueConfirm", "WorkQueueExport"
_SAVES = frozenset({"Save", "SaveIncrement", "SaveSlices", "SaveV2"})
_READ_FOR_SAVING = _READS | {"Identity", _EXPORT}
_WITH_UPDATES = frozenset({CONFIRM, _EXPORT, "SaveIncrement", "SaveV2"})
"""A confirmation goes with the update that it stands before; a saved state with the variables that are saved. A save
takes its snapshot between two updates; it is written later, without the lock."""

_Value = tuple[int, int]


def held_together(instructions: Sequence[Instruction], order: Sequence[int]) -> dict[int, list[int]]:
    """Which instructions wait until others can run, so as to run with them: index -> those others.

    They are the way from one change of a variable to another that is made of it. None whose value is wanted elsewhere
    too, perhaps by a task that the others wait for, has to wait.
    """
    of_writes = _of_writes(instructions, order)
    finals = [index for index in order if _is_write(instructions[index]) and of_writes.get(index)]
    saves = [index for index in order if instructions[index].op in _SAVES]
    confirms = [index for index in order if instructions[index].op == CONFIRM]
    if not finals and not confirms and not saves:
        return {}
    consumers: dict[int, set[int]] = defaultdict(set)
    for index in order:
        for source in instructions[index].sources():
            consumers[source].add(index)
    found = _held_for_saving(instructions, saves, consumers)
    for index in confirms:
        found[index].extend(_updates_after(index, instructions, consumers))
    for final in finals:
        chain = _closure(of_writes[final], lambda index: of_writes.get(index, ()))
        later = _closure([final], lambda index: consumers[index])
        # What is assigned was read before, so an assignment does not wait, nor does what it is made of.
        assigned = [index for index in chain if instructions[index].op in _WHOLE]
        chain -= _closure(assigned, lambda index: of_writes.get(index, ()))
        if all(consumers[index] <= chain | later for index in chain):
            for index in chain:
                found[index].append(final)
    return found


def _held_for_saving(
    instructions: Sequence[Instruction], saves: Sequence[int], consumers: Mapping[int, set[int]]
) -> dict[int, list[int]]:
    """The variables of a save are read when it can begin: from then on its snapshot has them, but a value that waits
    for a name from another task would make the updates meanwhile copy all of it.

    The state of a work queue is read together with the variables that go into the same file, so that the records
    that count as confirmed are those that the variables have seen.
    """
    found: dict[int, list[int]] = defaultdict(list)

    def reads(index: int) -> list[int]:
        return [source for source, _ in instructions[index].inputs if instructions[source].op in _READ_FOR_SAVING]

    for save in saves:
        sources = _closure(reads(save), reads)
        has_export = any(instructions[source].op == _EXPORT for source in sources)
        for source in sources:
            if has_export or consumers[source] <= sources | {save}:
                found[source].append(save)
    return found


def _updates_after(confirm: int, instructions: Sequence[Instruction], consumers: Mapping[int, set[int]]) -> list[int]:
    """The updates that a confirmation waits for, so as to run with them: a step that is cancelled in between would lose
    its records. Empty where an update may need something that is made elsewhere, or later, after the confirmation.
    """
    later = _closure([confirm], lambda index: consumers[index])
    if any(_leaves(instructions[index]) or instructions[index].kernel.asynchronous for index in later):
        return []
    return sorted(index for index in later if _is_write(instructions[index]))


def _leaves(instruction: Instruction) -> bool:
    return instruction.op in SENDS and not instruction.node.attrs.get("client_terminated", False)


def has_update(segment: Sequence[int], instructions: Sequence[Instruction]) -> bool:
    """Whether, of these instructions, in order, one assigns what was made of the variable's own value, or one changes
    a variable by what another has made of a variable. So does one that confirms an update or saves what is confirmed,
    and one that changes durable state: its segment is a transaction.
    """
    if any(instructions[index].keeps or instructions[index].op in _WITH_UPDATES for index in segment):
        return True
    of_writes = _of_writes(instructions, segment)
    if any(of_writes.get(index) and _is_write(instructions[index]) for index in segment):
        return True
    variables = _Variables(instructions)
    whole = [index for index in segment if instructions[index].op in _WHOLE and _is_write(instructions[index])]
    # One bit for each variable that is assigned: sets of all variables read would grow with nodes times variables.
    bits: dict[_Value, int] = {}
    for index in whole:
        bits.setdefault(variables.of(instructions[index].inputs[0]), 1 << len(bits))
    if not bits:
        return False
    reads: dict[int, int] = {}
    for index in segment:
        instruction = instructions[index]
        is_write, is_read = _is_write(instruction), instruction.op in _READS
        read = 0
        for position, (value, dereferenced) in enumerate(
            zip(instruction.inputs, instruction.dereferences, strict=True)
        ):
            if is_write and position == 0:
                continue
            read |= reads.get(value[0], 0)
            if dereferenced or is_read:
                read |= bits.get(variables.of(value), 0)
        if is_write and instruction.op in _WHOLE and read & bits[variables.of(instruction.inputs[0])]:
            return True
        if read:
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


class _Variables:
    """What stands for the variable that a reference or handle names. Each is followed to its variable once."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self._instructions = instructions
        self._known: dict[_Value, _Value] = {}

    def of(self, value: _Value) -> _Value:
        passed = []
        while value not in self._known:
            instruction = self._instructions[value[0]]
            if not instruction.inputs or not (instruction.op in ALIASES or _is_write(instruction)):
                self._known[value] = value
                break
            passed.append(value)
            value = instruction.inputs[0]
        found = self._known[value]
        for each in passed:
            self._known[each] = found
        return found
