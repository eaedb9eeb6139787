"""FlatProgram: a partition without loops, compiled to Python source and that to byte code.

Owns the segments' edges, the slots of values that cross them, and the variants of the code. A step of it is a
`FlatRun`.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from dtf.run.executor.flat_run import FlatRun
from dtf.run.executor.in_place import overwritten
from dtf.run.executor.instructions import Instruction, in_running_order
from dtf.run.executor.segment_source import SegmentWriter, annotated, globals_of
from dtf.run.executor.segments import TOKEN, aliases_of, constants_of, group_node, guards_of, segments_of
from dtf.run.executor.step import StepContext
from dtf.run.threads import blas_threads
from dtf.wire import errors

_LONG_NS = 1_000_000
_LONG_ON_ONE_CORE_NS = 10_000_000


class FlatProgram:
    """The segments of a partition without loops, and the code of their variants: (careful, traced) -> functions. A
    segment that took longer than `long_ns` is not run in a thread that others need. That is much where this process's
    part is one core, for handing over costs more than they would gain.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        order = in_running_order(instructions)
        self._constants = constants_of(instructions, order)
        self._alias = aliases_of(instructions, order)
        self._guards, self._token_guards = guards_of(instructions, order, self._alias)
        self.has_guards = any(self._token_guards)
        self.control_sources = {source for each in instructions for source in each.controls}
        self.waiters: dict[int, tuple[int, ...]] = {}
        self.arrivals: list[dict[int, tuple[int, int | None, int | None]]] = []
        self.segments, self._segment_of = segments_of(instructions, order, self._constants)
        self.has_functions_of_user = any(segment.is_of_user for segment in self.segments)
        self.long_ns = _LONG_NS if blas_threads.cores() > 1 else _LONG_ON_ONE_CORE_NS
        self.has_asynchronous = any(segment.asynchronous for segment in self.segments)
        self._add_edges(order)
        self.overwritten = overwritten(instructions, self._alias, self._segment_of, self._slot_of)
        self._variants: dict[tuple[bool, bool], Variant] = {}
        self._lock = threading.Lock()
        self.plain = self.variant(False, False)

    def start(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        FlatRun(self, step, done).start()

    def expect(self, arrivals: Sequence[Mapping[int, int]]) -> None:
        """Makes the table of where values go that arrive: for each source, by number, the index of the _Recv."""
        self.arrivals = [
            {number: self._place(index) for number, index in from_source.items()} for from_source in arrivals
        ]

    def _place(self, index: int) -> tuple[int, int | None, int | None]:
        """(group, slot of the value, slot of its token)."""
        slots, token = self.output_slots[index]
        group = self.instructions[index].group
        assert group is not None
        return group, slots[0][1] if slots else None, token

    def describe(self) -> str:
        return self.plain.annotated(self.instructions)

    def variant(self, careful: bool, traced: bool) -> Variant:
        """The functions of all segments. Only the plain ones are made in advance."""
        found = self._variants.get((careful, traced))
        if found is None:
            with self._lock:
                found = self._variants.get((careful, traced))
                if found is None:
                    found = self._variants[careful, traced] = self._compile(careful, traced)
        return found

    def _add_edges(self, order: list[int]) -> None:
        """Which values cross segments (they get a slot), and what each segment and asynchronous node makes ready."""
        users: dict[tuple[int, int], set[int]] = {}
        successors: list[set[int]] = [set() for _ in self.segments]
        waiters: dict[int, set[int]] = {}
        predecessors: list[set[tuple[str, int]]] = [set() for _ in self.segments]
        for index in order:
            if index in self._constants or self.instructions[index].group is not None:
                continue
            here = self._segment_of[index]
            values = [self._resolve(value) for value in self.instructions[index].inputs]
            values += [(source, TOKEN) for source in self.instructions[index].controls]
            for source, output in values:
                if source in self._constants:
                    continue
                if self.instructions[source].kernel.asynchronous:
                    group = self.instructions[source].group
                    waited = source if group is None else group_node(group)
                    waiters.setdefault(waited, set()).add(here)
                    predecessors[here].add(("node", waited))
                elif (there := self._segment_of[source]) != here:
                    successors[there].add(here)
                    predecessors[here].add(("segment", there))
                else:
                    continue
                users.setdefault((source, output), set()).add(here)
        self._slot_of = {value: slot for slot, value in enumerate(users)}
        self.slot_count = len(users)
        self.slot_users = [len(segments) for segments in users.values()]
        self.waiters = {node: tuple(sorted(segments)) for node, segments in waiters.items()}
        shared: list[list[int]] = [[] for _ in self.segments]
        for value, segments in users.items():
            for index in segments:
                shared[index].append(self._slot_of[value])
        for segment in self.segments:
            segment.successors = tuple(sorted(successors[segment.index]))
            segment.predecessors = len(predecessors[segment.index])
            segment.shared_slots = tuple(shared[segment.index])
        self.predecessors = [segment.predecessors for segment in self.segments]
        self.roots = [segment for segment in self.segments if not segment.predecessors]
        self.output_slots: dict[int, tuple[list[tuple[int, int]], int | None]] = {}
        for instruction in self.instructions:
            if instruction.kernel.asynchronous:
                index = instruction.index
                outputs = [number for number in range(instruction.node.num_outputs) if (index, number) in self._slot_of]
                slots = [(number, self._slot_of[index, number]) for number in outputs]
                self.output_slots[index] = slots, self._slot_of.get((index, TOKEN))
        groups = Counter(each.group for each in self.instructions if each.group is not None)
        self.group_sizes = [groups[number] for number in range(len(groups))]

    def _resolve(self, value: tuple[int, int]) -> tuple[int, int]:
        return self._alias.get(value, value)

    def _compile(self, careful: bool, traced: bool) -> Variant:
        lines: list[str] = []
        owners: list[int] = [-1]
        calls: set[int] = set()
        for segment in self.segments:
            SegmentWriter(self, segment, careful, traced, lines, owners, calls).write()
        names = globals_of(self.instructions, self._constants, self.overwritten)
        source = "\n".join(lines)
        filename = f"<dtf program {next(_program_numbers)}>"
        exec(compile(source, filename, "exec"), names)
        # Taken out, or each program would be a cycle of its functions and their globals: its constants would stay until
        # the garbage collector comes.
        functions = [names.pop(f"segment_{segment.index}") for segment in self.segments]
        return Variant(source, filename, owners, calls, functions)


class Variant:
    """Byte code of all segments. `owners[line]` is the instruction that a line of the source belongs to,
    `calls` are the lines that call a kernel.
    """

    __slots__ = ("calls", "filename", "functions", "owners", "source")

    def __init__(
        self, source: str, filename: str, owners: list[int], calls: set[int], functions: list[Callable[..., None]]
    ) -> None:
        self.source = source
        self.filename = filename
        self.owners = owners
        self.calls = calls
        self.functions = functions

    def annotated(self, instructions: Sequence[Instruction]) -> str:
        """The source with the names of nodes, for people to read."""
        return annotated(self.source, self.owners, self.calls, instructions)

    def culprit(self, error: BaseException) -> int:
        """The instruction during which the error was raised, or -1."""
        frame = error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename == self.filename:
                return self.owners[frame.tb_lineno]
            frame = frame.tb_next
        return -1


_program_numbers = itertools.count()
