"""SegmentWriter: one segment of a flat program as Python source.

Owns the text: one line a node, local variables for values, checks only where a value may be dead. Does not compile it.

The text consists of words from this module and of numbers only. A graph may come from a stranger, so nothing that it
says (names, devices, attributes) is written into the source: an instruction goes by its index, and values are globals
of the program (see `globals_of`). What people read beside a line is added when the program is printed (`annotated`),
which is never compiled.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dtf.run.exchange.endpoint_binding import WAYS, Push
from dtf.run.executor.flat_run import single
from dtf.run.executor.in_place import into
from dtf.run.executor.instructions import ALIASES, HEAVY, MERGES, SENDS, Instruction
from dtf.run.executor.segments import TOKEN, Segment
from dtf.run.kernels import DEAD
from dtf.wire.names import printable

if TYPE_CHECKING:
    from dtf.run.executor.flat_program import FlatProgram

_NODES_UNCHECKED = 16
"""A step that has been cancelled goes on for so many nodes at most, none of them heavy."""
_SEND_OPS = SENDS | {"_Retval"}


class SegmentWriter:
    """Writes the source of one segment."""

    def __init__(
        self, program: FlatProgram, segment: Segment, careful: bool, traced: bool, lines: list[str], owners: list[int],
        calls: set[int],
    ) -> None:  # fmt: skip
        self._program = program
        self._segment = segment
        self._careful = careful
        self._traced = traced
        self._lines = lines
        self._owners = owners
        self._calls = calls
        self._token_sources = program.control_sources if careful or program.has_guards else set()
        self._last_use = self._find_last_uses()
        self._defined: set[tuple[int, int]] = set()
        self._touched: list[tuple[int, int]] = []

    def write(self) -> None:
        self._line(-1, f"def segment_{self._segment.index}(step, shared, run):")
        before = len(self._lines)
        for position, index in enumerate(self._segment.instructions):
            instruction = self._program.instructions[index]
            if position and (position % _NODES_UNCHECKED == 0 or instruction.op in HEAVY):
                self._line(index, "    run.check()")
            self._write_instruction(instruction)
        if len(self._lines) == before:
            self._line(-1, "    pass")

    def _write_instruction(self, instruction: Instruction) -> None:
        index = instruction.index
        is_alias = (index, 0) in self._program._alias
        values = [] if is_alias else [self._program._resolve(value) for value in instruction.inputs]
        tokens = [(source, TOKEN) for source in instruction.controls if self._may_be_dead((source, TOKEN))]
        for value in dict.fromkeys([*values, *tokens]):
            self._load(index, value)
        gives_token = index in self._token_sources and self._may_be_dead((index, TOKEN))
        if is_alias:
            source = self._program._alias[index, 0]
            if instruction.passes_reference and not self._may_be_dead(source):
                # Its consumers read; this one looks, so that a variable without a value is told of under this name.
                self._load(index, source)
                self._line(index, f"    if not {self._name(source)}.is_initialized: {self._name(source)}.read()")
            if gives_token:
                self._load(index, source)
                self._line(index, f"    {self._name((index, TOKEN))} = DEAD if {self._name(source)} is DEAD else None")
                self._define(index, (index, TOKEN))
            self._drop(index)
            return
        if instruction.op in MERGES or instruction.op == "ControlTrigger":
            checks = []
        elif instruction.op in _SEND_OPS:
            checks = [self._name(token) for token in tokens]
        else:
            checks = [self._name(value) for value in dict.fromkeys([*values, *tokens]) if self._may_be_dead(value)]
        names = [
            f"{self._name(value)}.read()" if dereference else self._name(value)
            for value, dereference in zip(values, instruction.dereferences, strict=True)
        ]
        if instruction.kernel.accepts_dead:
            names = [
                f"({self._name(value)} if {self._name(value)} is DEAD else {name})"
                if dereference and self._may_be_dead(value)
                else name
                for value, name, dereference in zip(values, names, instruction.dereferences, strict=True)
            ]
        if instruction.op in _SEND_OPS and checks:
            condition = " and ".join(f"{name} is not DEAD" for name in checks)
            names = [f"({name} if {condition} else DEAD)" for name in names]
            checks = []
        indent = "    "
        if checks:
            self._line(index, f"    if {' and '.join(f'{name} is not DEAD' for name in checks)}:")
            indent = "        "
        outputs = self._live_outputs(instruction)
        is_merge = instruction.op in MERGES
        if is_merge and gives_token and (index, 0) not in outputs:
            outputs.insert(0, (index, 0))
        if self._traced and not instruction.kernel.asynchronous:
            self._line(index, f"{indent}started = now()")
        self._calls.add(len(self._owners))
        self._line(index, f"{indent}{self._call(instruction, names, outputs)}")
        if self._traced and not instruction.kernel.asynchronous:
            recorded = ", ".join(self._name(value) for value in outputs)
            self._line(index, f"{indent}run.record({index}, started, now(), ({recorded}{',' if outputs else ''}))")
        writes_token = gives_token and not instruction.kernel.asynchronous
        if writes_token:
            alive = f"DEAD if {self._name((index, 0))} is DEAD else None" if is_merge else "None"
            self._line(index, f"{indent}{self._name((index, TOKEN))} = {alive}")
        if checks:
            self._line(index, "    else:")
            if instruction.kernel.asynchronous:
                self._line(index, f"        run.skip({index})")
            else:
                dead = [*outputs, *([(index, TOKEN)] if writes_token else [])]
                self._line(
                    index, f"        {' = '.join([*(self._name(value) for value in dead), 'DEAD']) if dead else 'pass'}"
                )
        for value in [*outputs, *([(index, TOKEN)] if writes_token else [])]:
            self._define(index, value)
        self._drop(index)

    def _call(self, instruction: Instruction, names: list[str], outputs: list[tuple[int, int]]) -> str:
        index = instruction.index
        if instruction.op in ALIASES:
            call = names[0]
            if not outputs:
                return call
        elif isinstance(instruction.function, Push):
            push = instruction.function
            assert push.way in WAYS
            call = f"step.rendezvous.{push.way}(task_{index}, {int(push.number)}, {names[0]})"
        else:
            arguments = list(names)
            if instruction.kernel.asynchronous:
                arguments = ["step", f"partial(run.finish, {index})", *names]
            elif instruction.kernel.stateful:
                arguments = ["step", *names]
            call = f"function_{index}({', '.join(arguments)})"
        if instruction.kernel.asynchronous or not outputs:
            return call
        count = instruction.node.num_outputs
        if count == 1:
            return f"{self._name(outputs[0])} = {f'single({call})' if instruction.has_list_output else call}"
        if len(outputs) == 1:
            return f"{self._name(outputs[0])} = {call}[{outputs[0][1]}]"
        targets = [self._name((index, number)) if (index, number) in outputs else "_" for number in range(count)]
        return f"{', '.join(targets)} = {call}{'; del _' if '_' in targets else ''}"

    def _live_outputs(self, instruction: Instruction) -> list[tuple[int, int]]:
        """The outputs that somebody uses, here or in another segment."""
        if instruction.kernel.asynchronous:
            return []
        values = [(instruction.index, number) for number in range(instruction.node.num_outputs)]
        return [value for value in values if value in self._last_use or value in self._program._slot_of]

    def _may_be_dead(self, value: tuple[int, int]) -> bool:
        if value[0] in self._program._constants:
            return False
        if self._careful:
            return True
        source, output = value
        return bool(self._program._token_guards[source] if output == TOKEN else self._program._guards.get(value))

    def _load(self, index: int, value: tuple[int, int]) -> None:
        if value[0] in self._program._constants:
            return
        self._touched.append(value)
        if value not in self._defined:
            self._line(index, f"    {self._name(value)} = shared[{self._program._slot_of[value]}]")
            self._defined.add(value)

    def _define(self, index: int, value: tuple[int, int]) -> None:
        self._touched.append(value)
        self._defined.add(value)
        slot = self._program._slot_of.get(value)
        if slot is not None:
            self._line(index, f"    shared[{slot}] = {self._name(value)}")
        self._last_use.setdefault(value, index)

    def _drop(self, index: int) -> None:
        """Forgets what was used for the last time by this instruction."""
        finished = {value for value in self._touched if self._last_use[value] == index}
        self._touched.clear()
        if finished:
            self._line(index, f"    del {', '.join(sorted(self._name(value) for value in finished))}")
            self._defined -= finished

    def _find_last_uses(self) -> dict[tuple[int, int], int]:
        last_use: dict[tuple[int, int], int] = {}
        for index in self._segment.instructions:
            instruction = self._program.instructions[index]
            values = [self._program._resolve(value) for value in instruction.inputs]
            if (index, 0) in self._program._alias:
                is_read = instruction.passes_reference and not self._may_be_dead(self._program._alias[index, 0])
                values = values if is_read or index in self._token_sources else []
            values += [(source, TOKEN) for source in instruction.controls]
            last_use.update({value: index for value in values if value[0] not in self._program._constants})
        return last_use

    def _name(self, value: tuple[int, int]) -> str:
        """The variable that holds a value: k for a constant, c for "has run", s for the rest."""
        source, output = value
        if source in self._program._constants:
            return f"k{source}"
        if output == TOKEN:
            return f"c{source}"
        return f"s{source}" if output == 0 else f"s{source}_{output}"

    def _line(self, index: int, text: str) -> None:
        self._lines.append(text)
        self._owners.append(index)


def globals_of(
    instructions: Sequence[Instruction], constants: Mapping[int, Any], overwritten: Mapping[int, int]
) -> dict[str, Any]:
    """What the names in the source of segments stand for. There are no others, Python's own functions included."""
    names: dict[str, Any] = {
        "__builtins__": {}, "DEAD": DEAD, "partial": partial, "single": single, "now": time.time_ns,
    }  # fmt: skip
    for instruction in instructions:
        index, function = instruction.index, instruction.function
        if index in constants:
            names[f"k{index}"] = constants[index]
        elif isinstance(function, Push):
            names[f"task_{index}"] = function.task
        elif index in overwritten:
            names[f"function_{index}"] = into(function, overwritten[index])
        else:
            names[f"function_{index}"] = function
    return names


def annotated(
    source: str, owners: Sequence[int], calls: Container[int], instructions: Sequence[Instruction]
) -> str:
    """The source for people to read: behind each call (the lines `calls`, from 1), the name and the op of
    its node. It is not to be compiled."""
    lines = []
    for number, line in enumerate(source.split("\n"), start=1):
        if number in calls:
            instruction = instructions[owners[number]]
            line = f"{line}  # {printable(instruction.name)}: {printable(instruction.op)}"
        lines.append(line)
    return "\n".join(lines)
