"""FlatProgram: a partition without loops, compiled to Python source and that to byte code.

Owns the variants of the code, and where arriving values go. A step of it is a `FlatRun`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence

from dtf.run.executor.in_place import overwritten
from dtf.run.executor.instructions import Instruction
from dtf.run.executor.joint_updates import with_joint_updates
from dtf.run.executor.segment_graph import SegmentGraph
from dtf.run.executor.segment_source import SegmentWriter, annotated, globals_of
from dtf.run.interfaces import Key
from dtf.run.lib.allocator import release_freed_memory
from dtf.run.threads import blas_threads
from dtf.run.value_types import Array

_LONG_NS = 1_000_000
_LONG_ON_ONE_CORE_NS = 10_000_000


_LARGE_PROGRAM = 4096
"""Instructions from which on the compiler's own memory, 4 kB for each, is given back to the system."""


class FlatProgram:
    """The segments of a partition without loops, and the code of their variants: (careful, traced) -> functions. A
    segment that took longer than `long_ns` is not run in a thread that others need. That is much where this process's
    part is one core, for handing over costs more than they would gain. `keeps` says whether it changes state that
    outlives the process.
    """

    def __init__(self, instructions: list[Instruction], constants: Mapping[int, Array] | None = None) -> None:
        instructions = with_joint_updates(instructions)
        graph = self._graph = SegmentGraph(instructions, constants)
        self.instructions = instructions
        self.segments = graph.segments
        self.predecessors = graph.predecessors
        self.roots = graph.roots
        self.waiters = graph.waiters
        self.slot_count = graph.slot_count
        self.slot_users = graph.slot_users
        self.output_slots = graph.output_slots
        self.group_sizes = graph.group_sizes
        self.has_asynchronous = any(segment.asynchronous for segment in self.segments)
        self.keeps = any(each.keeps for each in instructions)
        self.has_functions_of_user = any(segment.is_of_user for segment in self.segments)
        self.arrivals: list[dict[Key, tuple[int, int | None, int | None]]] = []
        self.long_ns = _LONG_NS if blas_threads.cores() > 1 else _LONG_ON_ONE_CORE_NS
        self.overwritten = overwritten(instructions, graph.alias, graph.segment_of, graph.slot_of)
        self._variants: dict[tuple[bool, bool], Variant] = {}
        self._lock = threading.Lock()
        self.plain = self.variant(False, False)

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

    def _compile(self, careful: bool, traced: bool) -> Variant:
        lines: list[str] = []
        owners: list[int] = [-1]
        calls: set[int] = set()
        for segment in self.segments:
            SegmentWriter(self._graph, segment, careful, traced, lines, owners, calls).write()
        names = globals_of(self.instructions, self._graph.constants, self.overwritten)
        source = "\n".join(lines)
        filename = f"<dtf program {next(_program_numbers)}>"
        exec(compile(source, filename, "exec"), names)
        # Taken out, or each program would be a cycle of its functions and their globals: its constants would stay until
        # the garbage collector comes.
        functions = [names.pop(f"segment_{segment.index}") for segment in self.segments]
        if len(self.instructions) > _LARGE_PROGRAM:
            release_freed_memory()
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
