"""SegmentWriter: one segment of a flat program as Python source.

Owns the text: one line a node, local variables for values, checks only where a value may be dead. Does not compile it.

The text consists of words from this module and of numbers only. A graph may come from a stranger, so nothing that it
says (names, devices, attributes) is written into the source: an instruction goes by its index, and values are globals
of the program (see `globals_of`). What people read beside a line is added when the program is printed (`annotated`),
which is never compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from dtf.run.exchange.endpoint_binding import Push
from dtf.run.executor.atomic_updates import CONFIRM
from dtf.run.executor.broadcasts import UNCHECKED_SIZE_MAX, checked, is_broadcast
from dtf.run.executor.in_place import into
from dtf.run.executor.instructions import ALIASES, HEAVY, MERGES, SENDS, Instruction, single
from dtf.run.executor.segment_graph import SegmentGraph
from dtf.run.executor.segments import TOKEN, Segment
from dtf.run.kernels import DEAD, Function
from dtf.run.value_types import Array
from dtf.wire.names import printable

_NODES_UNCHECKED = 16
"""A step that has been cancelled goes on for so many nodes at most, none of them heavy."""
_SEND_OPS = SENDS | {"_Retval"}


class SegmentWriter:
    """Writes the source of one segment."""

    def __init__(
        self, graph: SegmentGraph, segment: Segment, careful: bool, traced: bool, lines: list[str], owners: list[int],
        calls: set[int],
    ) -> None:  # fmt: skip
        self._graph = graph
        self._segment = segment
        self._careful = careful
        self._traced = traced
        self._lines = lines
        self._owners = owners
        self._calls = calls
        self._token_sources = graph.control_sources if careful or graph.has_guards else set()
        self._last_use = self._find_last_uses()
        self._defined: set[tuple[int, int]] = set()
        self._touched: list[tuple[int, int]] = []

    def write(self) -> None:
        self._line(-1, f"def segment_{self._segment.index}(step, shared, run):")
        before = len(self._lines)
        is_confirmed = False  # a step that is cancelled between its confirmation and its update would lose records
        for position, index in enumerate(self._segment.instructions):
            instruction = self._graph.instructions[index]
            if self._is_left_out(instruction):
                continue
            is_confirmed = is_confirmed or instruction.op == CONFIRM
            is_heavy = instruction.op in HEAVY or bool(instruction.absorbed)
            if position and not is_confirmed and (position % _NODES_UNCHECKED == 0 or is_heavy):
                self._line(index, "    run.check()")
            self._write_instruction(instruction)
        if len(self._lines) == before:
            self._line(-1, "    pass")

    def _is_left_out(self, instruction: Instruction) -> bool:
        """Whether a joint update does the work of this one; where values may be dead, this one of a joint update's."""
        return instruction.joins if self._careful else instruction.joined_to is not None

    def _write_instruction(self, instruction: Instruction) -> None:
        index = instruction.index
        tokens = [(source, TOKEN) for source in instruction.controls if self._may_be_dead((source, TOKEN))]
        if (index, 0) in self._graph.alias:
            self._load_all(index, tokens)
            self._write_alias(instruction)
        else:
            values = [self._graph.resolve(value) for value in instruction.inputs]
            self._load_all(index, [*values, *tokens])
            self._write_call(instruction, values, tokens)
        self._drop(index)

    def _write_alias(self, instruction: Instruction) -> None:
        """An instruction whose output is its input: consumers use that, and only its token is left to write."""
        index = instruction.index
        source = self._graph.alias[index, 0]
        if instruction.passes_reference and not self._may_be_dead(source):
            # Its consumers read the value; this check reports a variable without a value under this name.
            self._load(index, source)
            self._line(index, f"    if not {self._name(source)}.is_initialized: {self._name(source)}.read()")
        if self._gives_token(index):
            self._load(index, source)
            self._line(index, f"    {self._name((index, TOKEN))} = DEAD if {self._name(source)} is DEAD else None")
            self._define(index, (index, TOKEN))

    def _write_call(
        self, instruction: Instruction, values: Sequence[tuple[int, int]], tokens: Sequence[tuple[int, int]]
    ) -> None:
        """The call of the kernel, behind the checks of its inputs, and the token of its having run."""
        index, is_asynchronous = instruction.index, instruction.kernel.asynchronous
        names, checks = self._arguments(instruction, values), self._checks(instruction, values, tokens)
        if instruction.op in _SEND_OPS and checks:
            condition = " and ".join(f"{name} is not DEAD" for name in checks)
            names = [f"({name} if {condition} else DEAD)" for name in names]
            checks = []
        indent = "    "
        if checks:
            self._line(index, f"    if {' and '.join(f'{name} is not DEAD' for name in checks)}:")
            indent = "        "
        outputs = self._live_outputs(instruction)
        is_merge, gives_token = instruction.op in MERGES, self._gives_token(index)
        if is_merge and gives_token and (index, 0) not in outputs:
            outputs.insert(0, (index, 0))
        self._write_timed(instruction, indent, self._call(instruction, names, outputs), outputs)
        written = list(outputs)
        if gives_token and not is_asynchronous:
            alive = f"DEAD if {self._name((index, 0))} is DEAD else None" if is_merge else "None"
            self._line(index, f"{indent}{self._name((index, TOKEN))} = {alive}")
            written.append((index, TOKEN))
        if checks:
            skip = f"run.skip({index})" if is_asynchronous else self._all_dead(written)
            self._line(index, "    else:")
            self._line(index, f"        {skip}")
        for value in written:
            self._define(index, value)

    def _gives_token(self, index: int) -> bool:
        """Whether others ask if this instruction has run, and it may not have."""
        return index in self._token_sources and self._may_be_dead((index, TOKEN))

    def _checks(
        self, instruction: Instruction, values: Sequence[tuple[int, int]], tokens: Sequence[tuple[int, int]]
    ) -> list[str]:
        """The names of all that must not be dead for the kernel to be called."""
        if instruction.op in MERGES or instruction.op == "ControlTrigger":
            return []
        if instruction.op in _SEND_OPS:
            return [self._name(token) for token in tokens]
        return [self._name(value) for value in dict.fromkeys([*values, *tokens]) if self._may_be_dead(value)]

    def _arguments(self, instruction: Instruction, values: Sequence[tuple[int, int]]) -> list[str]:
        """The inputs as the call has them: variables are read where the kernel wants their values."""
        names = []
        for value, dereference in zip(values, instruction.dereferences, strict=True):
            name = self._name(value)
            read = f"{name}.read()" if dereference else name
            guarded = instruction.kernel.accepts_dead and dereference and self._may_be_dead(value)
            names.append(f"({name} if {name} is DEAD else {read})" if guarded else read)
        return names

    def _write_timed(
        self, instruction: Instruction, indent: str, call: str, outputs: Sequence[tuple[int, int]]
    ) -> None:
        """The call; in traced code, what it took is recorded, unless it ends later."""
        index = instruction.index
        is_timed = self._traced and not instruction.kernel.asynchronous
        if is_timed:
            self._line(index, f"{indent}started = now()")
        self._calls.add(len(self._owners))
        self._line(index, f"{indent}{call}")
        if is_timed:
            recorded = ", ".join(self._name(value) for value in outputs)
            self._line(index, f"{indent}run.record({index}, started, now(), ({recorded}{',' if outputs else ''}))")

    def _all_dead(self, values: Sequence[tuple[int, int]]) -> str:
        return " = ".join([*(self._name(value) for value in values), "DEAD"]) if values else "pass"

    def _call(self, instruction: Instruction, names: list[str], outputs: list[tuple[int, int]]) -> str:
        index = instruction.index
        if instruction.op in ALIASES:
            call = names[0]
            if not outputs:
                return call
        elif isinstance(instruction.function, Push):
            call = instruction.function.source(f"task_{index}", names[0])
        else:
            arguments = list(names)
            if instruction.kernel.asynchronous:
                arguments = ["step", f"partial(run.finish, {index})", *names]
            elif instruction.kernel.stateful:
                arguments = ["step", *names]
            call = self._checked_call(instruction, arguments)
        if instruction.kernel.asynchronous or not outputs:
            return call
        count = instruction.node.num_outputs
        if count == 1:
            return f"{self._name(outputs[0])} = {f'single({call})' if instruction.has_list_output else call}"
        if len(outputs) == 1:
            return f"{self._name(outputs[0])} = {call}[{outputs[0][1]}]"
        targets = [self._name((index, number)) if (index, number) in outputs else "_" for number in range(count)]
        return f"{', '.join(targets)} = {call}{'; del _' if '_' in targets else ''}"

    def _checked_call(self, instruction: Instruction, arguments: list[str]) -> str:
        """The call of a kernel's function. Where two inputs are broadcast to one shape, the step looks at the room for
        the result first, if both are large: see `broadcasts`.
        """
        index = instruction.index
        call = f"function_{index}({', '.join(arguments)})"
        if not is_broadcast(instruction):
            return call
        if len(set(arguments)) == 1:
            return call
        with_check = f"checked_{index}({', '.join(arguments)})"
        if len(arguments) > 2 or any(instruction.dereferences):
            return with_check
        sources = [self._graph.resolve(value)[0] for value in instruction.inputs]
        if any(self._graph.constants[source].ndim == 0 for source in sources if source in self._graph.constants):
            return call
        size = " * ".join(f"{argument}.size" for argument in arguments)
        return f"{call} if {size} <= {UNCHECKED_SIZE_MAX} else {with_check}"

    def _live_outputs(self, instruction: Instruction) -> list[tuple[int, int]]:
        """The outputs that are used, here or in another segment."""
        if instruction.kernel.asynchronous:
            return []
        values = [(instruction.index, number) for number in range(instruction.node.num_outputs)]
        return [value for value in values if value in self._last_use or value in self._graph.slot_of]

    def _may_be_dead(self, value: tuple[int, int]) -> bool:
        if value[0] in self._graph.constants:
            return False
        if self._careful:
            return True
        source, output = value
        return bool(self._graph.token_guards[source] if output == TOKEN else self._graph.guards.get(value))

    def _load_all(self, index: int, values: Sequence[tuple[int, int]]) -> None:
        for value in dict.fromkeys(values):
            self._load(index, value)

    def _load(self, index: int, value: tuple[int, int]) -> None:
        if value[0] in self._graph.constants:
            return
        self._touched.append(value)
        if value not in self._defined:
            self._line(index, f"    {self._name(value)} = shared[{self._graph.slot_of[value]}]")
            self._defined.add(value)

    def _define(self, index: int, value: tuple[int, int]) -> None:
        self._touched.append(value)
        self._defined.add(value)
        slot = self._graph.slot_of.get(value)
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
            instruction = self._graph.instructions[index]
            if self._is_left_out(instruction):
                continue
            values = [self._graph.resolve(value) for value in instruction.inputs]
            if (index, 0) in self._graph.alias:
                is_read = instruction.passes_reference and not self._may_be_dead(self._graph.alias[index, 0])
                values = values if is_read or index in self._token_sources else []
            values += [(source, TOKEN) for source in instruction.controls]
            last_use.update({value: index for value in values if value[0] not in self._graph.constants})
        return last_use

    def _name(self, value: tuple[int, int]) -> str:
        """The variable that holds a value: k for a constant, c for "has run", s for the rest."""
        source, output = value
        if source in self._graph.constants:
            return f"k{source}"
        if output == TOKEN:
            return f"c{source}"
        return f"s{source}" if output == 0 else f"s{source}_{output}"

    def _line(self, index: int, text: str) -> None:
        self._lines.append(text)
        self._owners.append(index)


def globals_of(
    instructions: Sequence[Instruction], constants: Mapping[int, Array], overwritten: Mapping[int, int]
) -> dict[str, Any]:
    """What the names in the source of segments stand for. There are no others, Python's own functions included."""
    names: dict[str, Any] = {
        "__builtins__": {}, "DEAD": DEAD, "partial": partial, "single": single, "now": time.time_ns,
    }  # fmt: skip
    shared = _Shared()
    for instruction in instructions:
        index, function = instruction.index, instruction.function
        if index in constants:
            names[f"k{index}"] = constants[index]
        elif isinstance(function, Push):
            names[f"task_{index}"] = function.task
        elif index in overwritten:
            names[f"function_{index}"] = shared.get(into, function, overwritten[index])
        else:
            names[f"function_{index}"] = function
        if is_broadcast(instruction) and index not in constants:
            names[f"checked_{index}"] = shared.get(checked, names[f"function_{index}"])
    return names


class _Shared:
    """Functions made of others: one for all instructions that have the same one. Keeps those that they are made of."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[Function, Function]] = {}

    def get(self, make: Callable[..., Function], function: Function, *more: int) -> Function:
        key = id(make), id(function), *more
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = function, make(function, *more)
        return found[1]


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
