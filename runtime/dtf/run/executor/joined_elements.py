"""Joined elements: neighbouring operations of each element, and sums of them, as one instruction.

Each elementwise operation of numpy's reads and writes whole arrays. Where such operations use each other's results, as
in a layer normalisation or a gradient of Relu and the bias before it, one loop computes all of them and leaves what
nothing else wants in registers (`element_loops`). It runs for the shapes of a step where they fit; else, and for small
arrays, the operations run one after another as in the graph.

Owns which instructions are joined, and the function of a joined one. Operations are joined where they are connected and
no path between them leaves them: all of one *rank*, the number of changes between such and other operations on the way
to them. They wait for the same asynchronous operations, and for no change of a variable. A joined instruction stands
for the first of its operations; the others are absorbed. `DTF_KERNELS=numpy` joins nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from dtf.run.executor.broadcasts import UNCHECKED_SIZE_MAX, checked, is_broadcast
from dtf.run.executor.element_loops import Member, Planner, ends_loop, is_alias, takes
from dtf.run.executor.in_place import into, overwritten
from dtf.run.executor.instructions import ALIASES, MERGES, Instruction, in_running_order, with_node
from dtf.run.executor.segments import asynchronous_ancestors
from dtf.run.interfaces import Value
from dtf.run.kernels import CPU, DEFAULT
from dtf.run.lib.vector_code import loops
from dtf.run.value_types import Array
from dtf.wire import dtypes

__all__ = ["with_joined_elements"]

_MEMBERS_MIN, _MEMBERS_MAX = 2, 64
_DEPTH_MAX = 24
_SWITCHES = MERGES | {"Switch", "RefSwitch"}

_Value = tuple[int, int]


def with_joined_elements(
    instructions: list[Instruction], constants: Mapping[int, Array]
) -> tuple[list[Instruction], Mapping[int, Array]]:
    """The instructions, numbered anew, with elementwise ones joined, and their constants; both as they are where
    nothing is joined.
    """
    is_candidate = [each.index not in constants and _is_elementwise(each, constants) for each in instructions]
    if not _has_neighbours(instructions, is_candidate) or any(each.op in _SWITCHES for each in instructions):
        return instructions, constants
    if not loops.is_there():
        return instructions, constants
    groups = _groups(instructions, is_candidate, constants)
    groups = [group for group in groups if _pays(group, instructions)]
    if not groups:
        return instructions, constants
    return _numbered_anew(instructions, groups, constants)


def _is_elementwise(instruction: Instruction, constants: Mapping[int, Array]) -> bool:
    if instruction.node.attrs.get("T") != dtypes.float32 or instruction.kernel.device_type not in (CPU, DEFAULT):
        return False
    if instruction.kernel.stateful or instruction.absorbed or instruction.passes_reference or instruction.keeps:
        return False
    if instruction.op in ALIASES and any(instruction.dereferences):
        return False
    return takes(instruction.node, [constants.get(source) for source, _ in instruction.inputs])


def _has_neighbours(instructions: Sequence[Instruction], is_candidate: Sequence[bool]) -> bool:
    return any(
        is_candidate[source]
        for each in instructions
        if is_candidate[each.index]
        for source, _ in each.inputs
        if not is_alias(instructions[source].node)
    )


def _groups(
    instructions: list[Instruction], is_candidate: list[bool], constants: Mapping[int, Array]
) -> list[list[int]]:
    """Connected candidates of one rank, in running order."""
    order = in_running_order(instructions)
    ancestors = asynchronous_ancestors(instructions, order)
    count = len(instructions)
    rank, depth = [0] * count, [0] * count
    is_after_change = [False] * count
    near: list[list[int]] = [[] for _ in instructions]
    for index in order:
        each = instructions[index]
        sources = each.sources()
        is_after_change[index] = _changes(each) or any(is_after_change[source] for source in sources)
        is_candidate[index] = is_candidate[index] and not is_after_change[index]
        if is_candidate[index]:
            data = {source for source, _ in each.inputs}
            near[index] = [
                source
                for source in sources
                if is_candidate[source]
                and ancestors[source] == ancestors[index]
                and not (source in data and _ends_loop(instructions[source], constants))
            ]
        rank[index] = max((rank[source] + (source not in near[index]) for source in sources), default=0)
        depth[index] = 1 + max((depth[source] for source in near[index] if rank[source] == rank[index]), default=0)
        if depth[index] > _DEPTH_MAX:
            rank[index] += 1
            depth[index] = 1
    _move_to_users(instructions, order, near, is_candidate, rank)
    leader = list(range(count))

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    for index in order:
        for source in near[index]:
            if rank[source] == rank[index]:
                leader[find(source)] = find(index)
    groups: dict[int, list[int]] = {}
    for index in order:
        if is_candidate[index]:
            groups.setdefault(find(index), []).append(index)
    # A part of a running order cannot wait for a later one, so large groups are cut there.
    return [
        group[start : start + _MEMBERS_MAX]
        for group in groups.values()
        for start in range(0, len(group), _MEMBERS_MAX)
    ]


def _move_to_users(
    instructions: Sequence[Instruction],
    order: Sequence[int],
    near: Sequence[Sequence[int]],
    is_candidate: Sequence[bool],
    rank: list[int],
) -> None:
    """Raises the rank of candidates to that of their first users, where these are joined with them."""
    limit: dict[int, tuple[int, bool]] = {}
    for index in reversed(order):
        if is_candidate[index] and index in limit and limit[index][1]:
            rank[index] = max(rank[index], limit[index][0])
        for source in instructions[index].sources():
            found = rank[index], True
            if source not in near[index]:
                found = rank[index] - 1, False
            limit[source] = min(limit.get(source, found), found)


def _ends_loop(instruction: Instruction, constants: Mapping[int, Array]) -> bool:
    return ends_loop(instruction.node, [constants.get(source) for source, _ in instruction.inputs])


def _changes(instruction: Instruction) -> bool:
    """Whether this may change a variable: it gets one as such, and does not only read it."""
    if instruction.op in ALIASES or not instruction.kernel.stateful and not instruction.kernel.takes_variable:
        return any(argument.is_ref for argument in instruction.node.op_def.inputs)
    return instruction.op.startswith(("Resource", "Assign", "Scatter", "Apply", "SparseApply"))


def _pays(group: Sequence[int], instructions: Sequence[Instruction]) -> bool:
    return sum(not is_alias(instructions[index].node) for index in group) >= _MEMBERS_MIN


def _numbered_anew(
    instructions: list[Instruction], groups: list[list[int]], constants: Mapping[int, Array]
) -> tuple[list[Instruction], Mapping[int, Array]]:
    """The list with each group at the place of its leader; what came after a member comes after the joined one."""
    users: dict[_Value, list[int]] = {}
    for each in instructions:
        for value in each.inputs:
            users.setdefault(value, []).append(each.index)
    joined: dict[int, Instruction] = {}
    moved: dict[int, int] = {}  # members and the leaders that stand for them
    output_of: dict[_Value, _Value] = {}
    for group in groups:
        made = _joined(instructions, group, users, constants)
        if made is None:
            continue
        instruction, outputs = made
        joined[instruction.index] = instruction
        moved.update(dict.fromkeys(group, instruction.index))
        output_of.update({value: (instruction.index, number) for number, value in enumerate(outputs)})
    kept = [each for each in instructions if moved.get(each.index, each.index) == each.index]
    place = {each.index: number for number, each in enumerate(kept)}
    place.update({member: place[leader] for member, leader in moved.items()})
    result = []
    for number, each in enumerate(kept):
        each = joined.get(each.index, each)
        sources = [output_of.get(value, value) for value in each.inputs]
        inputs = tuple((place[source], output) for source, output in sources)
        controls = dict.fromkeys(place[source] for source in each.controls)
        controls.pop(number, None)
        result.append(dataclasses.replace(each, index=number, inputs=inputs, controls=tuple(controls)))
    return result, {place[index]: value for index, value in constants.items()}


def _joined(
    instructions: Sequence[Instruction],
    group: Sequence[int],
    users: Mapping[_Value, Sequence[int]],
    constants: Mapping[int, Array],
) -> tuple[Instruction, list[_Value]] | None:
    """The instruction of a group, in the old numbers, and the values that it gives; None where nothing uses one."""
    members = set(group)
    outputs = [
        (index, 0) for index in group if any(user not in members for user in users.get((index, 0), ()))
    ]
    leader = next(instructions[index] for index in group if not is_alias(instructions[index].node))
    inputs: dict[tuple[_Value, bool], int] = {}
    plan: list[Member] = []
    number_of = {index: number for number, index in enumerate(group)}
    for index in group:
        each = instructions[index]
        sources = []
        for value, dereference in zip(each.inputs, each.dereferences, strict=True):
            inner = number_of.get(value[0])
            # Inputs come first in the numbering of values: negative numbers, from -1 downwards.
            sources.append(inner if inner is not None else -1 - inputs.setdefault((value, dereference), len(inputs)))
        known = tuple(constants.get(source) for source, _ in each.inputs)
        plan.append(Member(each.node, tuple(sources), known))
    if not outputs or not inputs:
        return None
    functions = [instructions[index] for index in group]
    one_by_one = _OneByOne(instructions, functions, plan, list(inputs), [number_of[i] for i, _ in outputs], users)
    decisive = _decisive(instructions, list(inputs), constants)
    given = [number_of[index] for index, _ in outputs]
    controls = dict.fromkeys(source for each in functions for source in each.controls if source not in members)
    return dataclasses.replace(
        leader,
        node=leader.node._replace(num_outputs=len(outputs)),
        function=_function(Planner(plan, len(inputs), given), one_by_one, decisive),
        inputs=tuple(value for value, _ in inputs),
        controls=tuple(controls),
        dereferences=tuple(dereference for _, dereference in inputs),
        absorbed=tuple(each.node for each in functions if each is not leader),
    ), outputs


def _decisive(
    instructions: Sequence[Instruction], inputs: Sequence[tuple[_Value, bool]], constants: Mapping[int, Array]
) -> int:
    """The input whose size decides whether a loop pays: most likely a large one."""
    for number, ((source, _), dereference) in enumerate(inputs):
        if not dereference and source not in constants and not instructions[source].op.startswith("Variable"):
            return number
    return 0


_SIZE_MIN = 1 << 12


def _function(planner: Planner, one_by_one: _OneByOne, decisive: int) -> Callable[..., Value]:
    def compute(*values: Array) -> Value:
        if values[decisive].size >= _SIZE_MIN:
            result = planner.run(values)
            if result is not None:
                return result
        return one_by_one(*values)

    return compute


class _OneByOne:
    """The operations of a group one after another, each as it would be without the others. Made when first needed."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        members: Sequence[Instruction],
        plan: Sequence[Member],
        inputs: Sequence[tuple[_Value, bool]],
        outputs: Sequence[int],
        users: Mapping[_Value, Sequence[int]],
    ) -> None:
        self._members = members
        self._plan = plan
        self._outputs = outputs
        self._function: Callable[..., Value] | None = None
        # Makers of the inputs that only one member uses, whose arrays may be overwritten.
        self._makers = [
            instructions[value[0]]
            if len(users[value]) == 1 and not dereference and instructions[value[0]].op not in ALIASES
            else None
            for value, dereference in inputs
        ]
        self._numbers = [value[1] for value, _ in inputs]

    def __call__(self, *values: Array) -> Value:
        function = self._function
        if function is None:
            function = self._function = self._compiled()
        try:
            return function(*values)
        except Exception:
            return self._in_steps(values)

    def _in_steps(self, values: Sequence[Array]) -> Value:
        """The same, so that an error names its operation."""
        made: list[Array] = []
        for member, each in zip(self._members, self._plan, strict=True):
            arguments = [made[source] if source >= 0 else values[-1 - source] for source in each.sources]
            function = checked(member.function) if is_broadcast(member) else member.function
            try:
                made.append(cast(Array, function(*arguments)))
            except Exception as error:
                raise with_node(error, member.node) from error
        results = tuple(made[number] for number in self._outputs)
        return results[0] if len(results) == 1 else results

    def _compiled(self) -> Callable[..., Value]:
        """The operations as one function. Its text consists of numbers and words of this module only."""
        count = len(self._makers)
        local = [self._local(number, maker) for number, maker in enumerate(self._makers)]
        for number, (member, each) in enumerate(zip(self._members, self._plan, strict=True)):
            inputs = tuple(
                (count + source, 0) if source >= 0 else (-1 - source, self._numbers[-1 - source])
                for source in each.sources
            )
            local.append(dataclasses.replace(member, index=count + number, inputs=inputs, controls=()))
        crossing = {(count + number, 0) for number in self._outputs}
        free = overwritten(local, {}, dict.fromkeys(range(len(local)), 0), crossing)
        names: dict[str, object] = {"__builtins__": {}}
        last_use = {source: number for number, each in enumerate(self._plan) for source in each.sources if source >= 0}
        lines = [f"def run({', '.join(f'i{number}' for number in range(count))}):"]
        for number, (member, each) in enumerate(zip(self._members, self._plan, strict=True)):
            arguments = [f"m{source}" if source >= 0 else f"i{-1 - source}" for source in each.sources]
            text = ", ".join(arguments)
            if member.op in ALIASES:
                lines.append(f"    m{number} = {arguments[0]}")
            else:
                function = member.function
                position = free.get(count + number)
                names[f"f{number}"] = function = function if position is None else into(function, position)
                call = f"f{number}({text})"
                if is_broadcast(member) and len(set(arguments)) > 1:
                    names[f"c{number}"] = checked(function)
                    size = " * ".join(f"{argument}.size" for argument in arguments)
                    call = f"{call} if {size} <= {UNCHECKED_SIZE_MAX} else c{number}({text})"
                lines.append(f"    m{number} = {call}")
            gone = sorted(s for s in set(each.sources) if s >= 0 and last_use[s] == number and s not in self._outputs)
            if gone:
                lines.append(f"    del {', '.join(f'm{source}' for source in gone)}")
        lines.append(f"    return {', '.join(f'm{number}' for number in self._outputs)}")
        exec(compile("\n".join(lines), "<dtf joined elements>", "exec"), names)
        return cast("Callable[..., Value]", names.pop("run"))

    def _local(self, number: int, maker: Instruction | None) -> Instruction:
        """An instruction that stands for an input."""
        member = maker or self._members[0]
        node = member.node if maker is not None else member.node._replace(op="_Arg")
        function = member.function if maker is not None else np.positive
        return dataclasses.replace(
            member, index=number, node=node, function=function, inputs=(), controls=(), dereferences=()
        )
