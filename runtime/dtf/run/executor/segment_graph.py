"""SegmentGraph: the segments of a partition without loops, what each waits for, and which values cross them.

Owns the segments' edges, and the slots of the values that cross them. Makes no code (`segment_source`), runs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dtf.run.executor.instructions import Instruction, in_running_order
from dtf.run.executor.segments import TOKEN, aliases_of, constants_of, group_node, guards_of, segments_of
from dtf.run.value_types import Array

__all__ = ["SegmentGraph"]


class SegmentGraph:
    """A partition as segments. A value is (index of its instruction, output number). Immutable after construction.
    `constants` are known from an earlier graph of the same instructions, if given.

    Attributes:
      instructions: the nodes.
      constants: the values that are known now, by instruction.
      alias: outputs that are only another name of a value.
      guards, token_guards: when a value, or the end of a node, is alive; `has_guards`: whether any may be dead.
      control_sources: the instructions that others come after without a value of theirs.
      segments, segment_of: the segments, and the one of each instruction that is in one.
      slot_of: the values that cross segments, each with its slot; `slot_count` of them, used by `slot_users` segments.
      waiters: for each asynchronous node or group, the segments that wait for it.
      predecessors: how much each segment waits for; `roots`: the segments that wait for nothing.
      output_slots: for each asynchronous node, its (output number, slot) and the slot of its token.
      group_sizes: how many values come together in each group.
    """

    def __init__(self, instructions: list[Instruction], constants: Mapping[int, Array] | None = None) -> None:
        self.instructions = instructions
        order = in_running_order(instructions)
        self.constants = constants_of(instructions, order) if constants is None else constants
        self.alias = aliases_of(instructions, order)
        self.guards, self.token_guards = guards_of(instructions, order, self.alias)
        self.has_guards = any(self.token_guards)
        self.control_sources = {source for each in instructions for source in each.controls}
        self.segments, self.segment_of = segments_of(instructions, order, self.constants)
        self._add_edges(order)

    def resolve(self, value: tuple[int, int]) -> tuple[int, int]:
        """The value that a name stands for."""
        return self.alias.get(value, value)

    def _add_edges(self, order: list[int]) -> None:
        """Which values cross segments (they get a slot), and what each segment and asynchronous node makes ready."""
        users: dict[tuple[int, int], set[int]] = {}
        successors: list[set[int]] = [set() for _ in self.segments]
        waiters: dict[int, set[int]] = {}
        predecessors: list[set[tuple[str, int]]] = [set() for _ in self.segments]
        for here, value in self._uses(order):
            source = value[0]
            if self.instructions[source].kernel.asynchronous:
                group = self.instructions[source].group
                waited = source if group is None else group_node(group)
                waiters.setdefault(waited, set()).add(here)
                predecessors[here].add(("node", waited))
            elif (there := self.segment_of[source]) != here:
                successors[there].add(here)
                predecessors[here].add(("segment", there))
            else:
                continue
            users.setdefault(value, set()).add(here)
        self.waiters = {node: tuple(sorted(segments)) for node, segments in waiters.items()}
        for segment in self.segments:
            segment.successors = tuple(sorted(successors[segment.index]))
            segment.predecessors = len(predecessors[segment.index])
        self.predecessors = [segment.predecessors for segment in self.segments]
        self.roots = [segment for segment in self.segments if not segment.predecessors]
        self._add_slots(users)
        groups = Counter(each.group for each in self.instructions if each.group is not None)
        self.group_sizes = [groups[number] for number in range(len(groups))]

    def _uses(self, order: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
        """(segment, value or token that an instruction of it uses), constants aside."""
        for index in order:
            instruction = self.instructions[index]
            if index in self.constants or instruction.group is not None:
                continue
            here = self.segment_of[index]
            values = [self.resolve(value) for value in instruction.inputs]
            for value in [*values, *((source, TOKEN) for source in instruction.controls)]:
                if value[0] not in self.constants:
                    yield here, value

    def _add_slots(self, users: Mapping[tuple[int, int], set[int]]) -> None:
        """Gives each value that crosses segments its slot; `users` are the segments that take it."""
        self.slot_of = {value: slot for slot, value in enumerate(users)}
        self.slot_count = len(users)
        self.slot_users = [len(segments) for segments in users.values()]
        shared: list[list[int]] = [[] for _ in self.segments]
        for value, segments in users.items():
            for index in segments:
                shared[index].append(self.slot_of[value])
        for segment in self.segments:
            segment.shared_slots = tuple(shared[segment.index])
        self.output_slots: dict[int, tuple[list[tuple[int, int]], int | None]] = {}
        for instruction in self.instructions:
            if instruction.kernel.asynchronous:
                index = instruction.index
                outputs = [number for number in range(instruction.node.num_outputs) if (index, number) in self.slot_of]
                slots = [(number, self.slot_of[index, number]) for number in outputs]
                self.output_slots[index] = slots, self.slot_of.get((index, TOKEN))
