"""Executor: runs one partition of a graph, once per step, with as little as possible between the kernels.

Owns the *flat program*. A partition is compiled once to Python source, one line per node, and that source to byte
code::

    def segment_0(step, shared, run):
        function_7(step, partial(run.finish, 7))      # x_S1: _Recv
        s3 = function_3(step)                         # w: VariableV2
    def segment_1(step, shared, run):
        s7 = shared[0]
        s8 = function_8(s7, s3.read()); del s7        # MatMul: MatMul

so that a step costs one interpreted call per node: values are local variables, constants and kernels are globals of
the byte code, Identity is only another name, and a value is dropped right after its last use (memory is freed early,
and a variable whose value nobody holds is updated in place). `Executor.describe()` prints the source.

Nodes with the same set of asynchronous ancestors (a _Recv, a dequeue) form a *segment*, which runs straight through.
The segments form a graph with counts of what each still waits for; the thread that completes an asynchronous node
goes on with the segments that this makes ready (the pool does, when they are known to take long). So waiting kernels
hold no thread.

Dead values (what `Switch` did not choose) are found when the program is made: each value has the set of (predicate,
branch) that it depends on, and only instructions that depend on any are compiled with checks. A dead value from
another task cannot be foreseen; when one arrives the step goes on with *careful* twins of the segments, which check
everything. Partitions with loops go to `frames`.

The first error stops the step: it cancels what waits and aborts the rendezvous; the step is over, and `done` called,
when all that had been started has ended. An error that only follows from another (cancelled, aborted) never hides the
one it follows from.
"""

from __future__ import annotations

import itertools
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dtf.run import borrowed, thread_pool
from dtf.run.cancellation import CancellationManager
from dtf.run.instructions import ALIASES, Instruction, in_running_order, is_loop, read_graph, with_node
from dtf.run.kernels import DEAD
from dtf.run.outcome import Outcome
from dtf.run.rendezvous import StepRendezvous
from dtf.run.resources import ResourceManager
from dtf.run.step import Device, SessionState, StepContext
from dtf.wire import errors
from dtf.wire.pb import graph_pb2, types_pb2

__all__ = ["Executor", "local_step", "run_graph_def", "together"]

_LONG_NS = 100_000
"""A segment that took longer than this is not run in a thread that somebody else needs."""

_SEND_OPS = frozenset({"_Send", "_HostSend", "_Retval"})
_TOKEN = -1
"""The output number that stands for "this node has run" where deadness of a control edge is checked."""


class Executor:
    """One compiled partition. Immutable after construction; any number of steps may run at the same time."""

    def __init__(
        self,
        graph_def: Any,
        session_state: SessionState | None = None,
        device: Device | None = None,
        library: Mapping[str, Any] | None = None,
    ) -> None:
        """Compiles `graph_def`. `library` holds the functions that it may call, if it does not bring them itself.

        Raises:
          InvalidArgumentError, NotFoundError: the graph cannot be run here (see `instructions.read_graph`).
        """
        self.session_state = session_state or SessionState()
        self.device = device
        instructions = read_graph(graph_def, library)
        self._program: Any
        if is_loop(instructions):
            from dtf.run.frames import FrameProgram

            self._program = FrameProgram(instructions)
        else:
            self._program = _FlatProgram(instructions)

    def run_async(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        """Starts a step; returns when nothing is left to do in this thread. `done(None or the error)` is called
        exactly once,
        from any thread, after everything of the step has stopped."""
        self._program.start(step, done)

    def run(self, step: StepContext) -> None:
        """Runs a step to its end. Raises the step's error."""
        finished = threading.Event()
        errors_seen: list[errors.OpError | None] = []

        def done(error: errors.OpError | None) -> None:
            errors_seen.append(error)
            finished.set()

        self.run_async(step, done)
        finished.wait()
        if errors_seen[0] is not None:
            raise errors_seen[0]

    def describe(self) -> str:
        """The compiled program as text."""
        return self._program.describe()


def together(completed: Sequence[tuple[Callable[[Any], None], Any]]) -> None:
    """Calls done(value) of each pair, which completes asynchronous nodes; what they make ready runs after the last, in
    this thread.

    So the values of one message are all there before the first of them is used, and cost little more than one.
    """
    by_run: dict[_FlatRun, list[tuple[int, Any]]] = {}
    for done, value in completed:
        target = getattr(done, "func", None)
        run = getattr(target, "__self__", None)
        if type(run) is _FlatRun and target == run.finish:
            by_run.setdefault(run, []).append((done.args[0], value))  # type: ignore[attr-defined]
        else:
            done(value)
    for run, values in by_run.items():
        run.finish_all(values)


def local_step(resources: ResourceManager | None = None, session: SessionState | None = None) -> StepContext:
    """A step for code that runs a graph without a worker. `resources` and `session` keep state from step to step."""
    step_id = next(_local_step_ids)
    return StepContext(
        step_id,
        resources or ResourceManager(),
        session or SessionState(),
        StepRendezvous(step_id),
        CancellationManager(),
        ResourceManager(),
    )


def run_graph_def(
    graph_def: Any,
    fetches: Sequence[str],
    feeds: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
    *,
    resources: ResourceManager | None = None,
    session: SessionState | None = None,
) -> list[Any]:
    """Runs what `fetches` ("node:0") and `targets` (node names) need of a GraphDef, in this process and without a
    master.

    For tests of kernels, and for constant folding. A feed ("node:0" -> array) replaces that output.

    Raises:
      OpError: what the step failed with; NotFoundError for a name that the graph does not have.
    """
    feeds = feeds or {}
    step = local_step(resources, session)
    step.arguments = tuple(feeds.values())
    step.results = {}
    Executor(_with_arguments(graph_def, fetches, list(feeds), targets), step.session).run(step)
    for index, name in enumerate(fetches):
        if step.results[index] is DEAD:
            raise errors.InvalidArgumentError(None, None, f"The tensor returned for {name} was not valid.")
    return [step.results[index] for index in range(len(fetches))]


def _with_arguments(graph_def: Any, fetches: Sequence[str], feeds: Sequence[str], targets: Sequence[str]) -> Any:
    """The part of the graph that is needed, with _Arg nodes for the feeds and _Retval nodes for the fetches."""
    by_name = {node.name: node for node in graph_def.node}
    argument_of = {_canonical(name): f"_arg_{index}" for index, name in enumerate(feeds)}
    result = graph_pb2.GraphDef()
    result.library.CopyFrom(graph_def.library)
    for index, name in enumerate(argument_of.values()):
        result.node.add(name=name, op="_Arg").attr["index"].i = index
    for index, name in enumerate(fetches):
        key = _canonical(name)
        result.node.add(name=f"_retval_{index}", op="_Retval", input=[argument_of.get(key, key)]).attr[
            "index"
        ].i = index
    wanted = [_canonical(name) for name in fetches if _canonical(name) not in argument_of] + list(targets)
    seen: set[str] = set()
    while wanted:
        name = wanted.pop().lstrip("^").partition(":")[0]
        if name in seen:
            continue
        seen.add(name)
        if name not in by_name:
            raise errors.NotFoundError(None, None, f"The graph has no node '{name}'")
        node = result.node.add()
        node.CopyFrom(by_name[name])
        for position, text in enumerate(node.input):
            node.input[position] = argument_of.get(text if text.startswith("^") else _canonical(text), text)
        wanted.extend(text for text in node.input if text not in argument_of.values())
    for node in result.node:
        if node.op in ("_Arg", "_Retval"):
            node.attr["T"].type = types_pb2.DT_FLOAT
    return result


def _canonical(name: str) -> str:
    return name if ":" in name or name.startswith("^") else f"{name}:0"


class _Segment:
    """Instructions that run straight through. `cost_ns` is what it took lately; at first, a guess by its length."""

    __slots__ = ("asynchronous", "cost_ns", "index", "instructions", "predecessors", "shared_slots", "successors")

    def __init__(self, index: int) -> None:
        self.index = index
        self.instructions: list[int] = []
        self.asynchronous: list[int] = []
        self.predecessors = 0
        self.successors: tuple[int, ...] = ()
        self.shared_slots: tuple[int, ...] = ()
        self.cost_ns = 0


class _FlatProgram:
    """The segments of a partition without loops, and the code of their variants: (careful, traced) -> functions."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        order = in_running_order(instructions)
        self._constants = _constants(instructions)
        self._alias = _aliases(instructions, order)
        self._guards, self._token_guards = _guards(instructions, order, self._alias)
        self.has_guards = any(self._token_guards)
        self.control_sources = {source for each in instructions for source in each.controls}
        self.segments, self._segment_of = _segments(instructions, order, self._constants)
        self._add_edges(order)
        self._variants: dict[tuple[bool, bool], _Variant] = {}
        self._lock = threading.Lock()
        self.variant(False, False)

    def start(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        _FlatRun(self, step, done).start()

    def describe(self) -> str:
        return self.variant(False, False).source

    def variant(self, careful: bool, traced: bool) -> _Variant:
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
        self.waiters: dict[int, tuple[int, ...]] = {}
        successors: list[set[int]] = [set() for _ in self.segments]
        waiters: dict[int, set[int]] = {}
        predecessors: list[set[tuple[str, int]]] = [set() for _ in self.segments]
        for index in order:
            if index in self._constants:
                continue
            here = self._segment_of[index]
            values = [self._resolve(value) for value in self.instructions[index].inputs]
            values += [(source, _TOKEN) for source in self.instructions[index].controls]
            for source, output in values:
                if source in self._constants:
                    continue
                there = self._segment_of[source]
                if self.instructions[source].kernel.asynchronous:
                    waiters.setdefault(source, set()).add(here)
                    predecessors[here].add(("node", source))
                elif there != here:
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
        self.roots = [segment.index for segment in self.segments if not segment.predecessors]
        self.output_slots: dict[int, tuple[list[tuple[int, int]], int | None]] = {}
        for instruction in self.instructions:
            if instruction.kernel.asynchronous:
                index = instruction.index
                outputs = [number for number in range(instruction.node.num_outputs) if (index, number) in self._slot_of]
                slots = [(number, self._slot_of[index, number]) for number in outputs]
                self.output_slots[index] = slots, self._slot_of.get((index, _TOKEN))

    def _resolve(self, value: tuple[int, int]) -> tuple[int, int]:
        return self._alias.get(value, value)

    def _compile(self, careful: bool, traced: bool) -> _Variant:
        lines: list[str] = []
        owners: list[int] = [-1]
        for segment in self.segments:
            _SegmentWriter(self, segment, careful, traced, lines, owners).write()
        names: dict[str, Any] = {"DEAD": DEAD, "partial": partial, "single": _single, "now": time.time_ns}
        for instruction in self.instructions:
            if instruction.index in self._constants:
                names[f"k{instruction.index}"] = self._constants[instruction.index]
            else:
                names[f"function_{instruction.index}"] = instruction.function
        source = "\n".join(lines)
        filename = f"<dtf program {next(_program_numbers)}>"
        exec(compile(source, filename, "exec"), names)
        return _Variant(source, filename, owners, [names[f"segment_{segment.index}"] for segment in self.segments])


class _Variant:
    """Byte code of all segments. `owners[line]` is the instruction that a line of the source belongs to."""

    __slots__ = ("filename", "functions", "owners", "source")

    def __init__(self, source: str, filename: str, owners: list[int], functions: list[Callable[..., None]]) -> None:
        self.source = source
        self.filename = filename
        self.owners = owners
        self.functions = functions

    def culprit(self, error: BaseException) -> int:
        """The instruction during which the error was raised, or -1."""
        frame = error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename == self.filename:
                return self.owners[frame.tb_lineno]
            frame = frame.tb_next
        return -1


class _SegmentWriter:
    """Writes the source of one segment."""

    def __init__(
        self, program: _FlatProgram, segment: _Segment, careful: bool, traced: bool, lines: list[str], owners: list[int]
    ) -> None:
        self._program = program
        self._segment = segment
        self._careful = careful
        self._traced = traced
        self._lines = lines
        self._owners = owners
        self._token_sources = program.control_sources if careful or program.has_guards else set()
        self._last_use = self._find_last_uses()
        self._defined: set[tuple[int, int]] = set()
        self._touched: list[tuple[int, int]] = []

    def write(self) -> None:
        self._line(-1, f"def segment_{self._segment.index}(step, shared, run):")
        before = len(self._lines)
        for index in self._segment.instructions:
            self._write_instruction(self._program.instructions[index])
        if len(self._lines) == before:
            self._line(-1, "    pass")

    def _write_instruction(self, instruction: Instruction) -> None:
        index = instruction.index
        is_alias = (index, 0) in self._program._alias
        values = [] if is_alias else [self._program._resolve(value) for value in instruction.inputs]
        tokens = [(source, _TOKEN) for source in instruction.controls if self._may_be_dead((source, _TOKEN))]
        for value in dict.fromkeys([*values, *tokens]):
            self._load(index, value)
        gives_token = index in self._token_sources and self._may_be_dead((index, _TOKEN))
        if is_alias:
            source = self._program._alias[index, 0]
            if instruction.passes_reference and not self._may_be_dead(source):
                # Its consumers read; this one looks, so that a variable without a value is told of under this name.
                self._load(index, source)
                self._line(index, f"    {self._name(source)}.read()")
            if gives_token:
                self._load(index, source)
                self._line(index, f"    {self._name((index, _TOKEN))} = DEAD if {self._name(source)} is DEAD else None")
                self._define(index, (index, _TOKEN))
            self._drop(index)
            return
        if instruction.op in ("Merge", "RefMerge", "ControlTrigger"):
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
        is_merge = instruction.op in ("Merge", "RefMerge")
        if is_merge and gives_token and (index, 0) not in outputs:
            outputs.insert(0, (index, 0))
        if self._traced and not instruction.kernel.asynchronous:
            self._line(index, f"{indent}started = now()")
        self._line(index, f"{indent}{self._call(instruction, names, outputs)}  # {_comment(instruction)}")
        if self._traced and not instruction.kernel.asynchronous:
            recorded = ", ".join(self._name(value) for value in outputs)
            self._line(index, f"{indent}run.record({index}, started, now(), ({recorded}{',' if outputs else ''}))")
        writes_token = gives_token and not instruction.kernel.asynchronous
        if writes_token:
            alive = f"DEAD if {self._name((index, 0))} is DEAD else None" if is_merge else "None"
            self._line(index, f"{indent}{self._name((index, _TOKEN))} = {alive}")
        if checks:
            self._line(index, "    else:")
            if instruction.kernel.asynchronous:
                self._line(index, f"        run.skip({index})")
            else:
                dead = [*outputs, *([(index, _TOKEN)] if writes_token else [])]
                self._line(
                    index, f"        {' = '.join([*(self._name(value) for value in dead), 'DEAD']) if dead else 'pass'}"
                )
        for value in [*outputs, *([(index, _TOKEN)] if writes_token else [])]:
            self._define(index, value)
        self._drop(index)

    def _call(self, instruction: Instruction, names: list[str], outputs: list[tuple[int, int]]) -> str:
        index = instruction.index
        if instruction.op in ALIASES:
            call = names[0]
            if not outputs:
                return call
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
        return bool(self._program._token_guards[source] if output == _TOKEN else self._program._guards.get(value))

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
                values = values if index in self._token_sources else []
            values += [(source, _TOKEN) for source in instruction.controls]
            last_use.update({value: index for value in values if value[0] not in self._program._constants})
        return last_use

    def _name(self, value: tuple[int, int]) -> str:
        """The variable that holds a value: k for a constant, c for "has run", s for the rest."""
        source, output = value
        if source in self._program._constants:
            return f"k{source}"
        if output == _TOKEN:
            return f"c{source}"
        return f"s{source}" if output == 0 else f"s{source}_{output}"

    def _line(self, index: int, text: str) -> None:
        self._lines.append(text)
        self._owners.append(index)


class _FlatRun:
    """One step of a flat program. Its lock guards the counts; `live` is how many segments and asynchronous nodes
    are not over.
    """

    __slots__ = (
        "_done",
        "_interrupt",
        "_live",
        "_lock",
        "_pending",
        "_program",
        "_started_async",
        "_users",
        "_variant",
        "careful",
        "outcome",
        "shared",
        "step",
    )

    def __init__(self, program: _FlatProgram, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        self._program = program
        self._done = done
        self._lock = threading.Lock()
        self._pending = [segment.predecessors for segment in program.segments]
        self._users = list(program.slot_users)
        self._live = len(program.roots)
        self._interrupt: BaseException | None = None
        self._started_async: dict[int, int] = {}
        self._variant = program.variant(False, step.collector is not None)
        self.careful = False
        self.outcome = Outcome(step)
        self.shared: list[Any] = [None] * program.slot_count
        self.step = step

    def start(self) -> None:
        if not self._live:
            self._done(None)
            return
        self._drain([self._program.segments[index] for index in self._program.roots], False)
        if self._interrupt is not None:
            raise self._interrupt

    def finish(self, index: int, value: Any = None, error: BaseException | None = None) -> None:
        """An asynchronous node has its value or error."""
        if error is None:
            self.finish_all([(index, value)])
        elif self._take([index]):
            self.outcome.fail(with_node(error, self._program.instructions[index].node))
            self._advance([index])

    def finish_all(self, values: Sequence[tuple[int, Any]]) -> None:
        """Asynchronous nodes have their values."""
        started = self._take([index for index, _ in values])
        for index, value in values:
            if index not in started:
                continue
            try:
                self._store(index, value)
            except Exception as broken:
                self.outcome.fail(with_node(broken, self._program.instructions[index].node))
            if self.step.collector is not None:
                outputs = tuple(value) if isinstance(value, (tuple, list)) else (value,)
                self.record(index, started[index], time.time_ns(), outputs)
        if started:
            self._advance(started)

    def skip(self, index: int) -> None:
        """An asynchronous node in a branch that was not taken."""
        if self._take([index]):
            slots, token = self._program.output_slots[index]
            for _, slot in slots:
                self.shared[slot] = DEAD
            if token is not None:
                self.shared[token] = DEAD
            self._advance([index])

    def record(self, index: int, start_ns: int, end_ns: int, outputs: tuple[Any, ...]) -> None:
        node = self._program.instructions[index].node
        assert self.step.collector is not None
        self.step.collector.record(node.name, node.op, start_ns, end_ns, outputs)

    def _take(self, indices: Sequence[int]) -> dict[int, int]:
        """The start times of those nodes that were waiting, which they no longer are."""
        with self._lock:
            waiting = self._started_async
            return {index: waiting.pop(index) for index in indices if index in waiting}

    def _store(self, index: int, value: Any) -> None:
        slots, token = self._program.output_slots[index]
        if value is DEAD:
            self.careful = True
            for _, slot in slots:
                self.shared[slot] = DEAD
            if token is not None:
                self.shared[token] = DEAD
            return
        instruction = self._program.instructions[index]
        if instruction.node.num_outputs == 1:
            value = (_single(value) if instruction.has_list_output else value,)
        for number, slot in slots:
            self.shared[slot] = value[number]

    def _advance(self, nodes: Collection[int]) -> None:
        """Asynchronous nodes are over: goes on with the segments that only they were missing for."""
        ready = []
        program, pending = self._program, self._pending
        with self._lock:
            self._live -= len(nodes)
            if self.outcome.error is None:
                for node in nodes:
                    for waiter in program.waiters.get(node, ()):
                        pending[waiter] -= 1
                        if pending[waiter] == 0:
                            ready.append(program.segments[waiter])
                self._live += len(ready)
            over = self._live == 0
        if over:
            self._end()
        elif ready:
            mine = getattr(_thread, "drains", None)
            if mine and mine[-1][0] is self:
                mine[-1][1].extend(ready)
            elif mine and len(mine) > _NESTED_DRAINS_MAX:
                thread_pool.submit(self._drain, ready, False)
            else:
                self._drain(ready, True)

    def _drain(self, ready: list[_Segment], is_borrowed: bool) -> None:
        """Runs segments until none is ready. A borrowed thread hands long ones over to the pool."""
        drains = _thread.__dict__.setdefault("drains", [])
        drains.append((self, ready))
        over = False
        try:
            with np.errstate(all="ignore"):
                while ready:
                    now, ready[:] = ready[:], []
                    if any(segment.cost_ns > _LONG_NS for segment in now):
                        if borrowed.is_lent():
                            borrowed.before_long()
                        elif is_borrowed:
                            thread_pool.submit(self._drain, now, False)
                            break
                        if len(now) > 1:
                            ready.extend(now[:-1])
                            now = now[-1:]
                    over = self._run_segments(now, ready)
        finally:
            drains.pop()
        self._flush()
        if over:
            self._end()

    def _flush(self) -> None:
        """Sends what the segments have made for other tasks."""
        try:
            self.step.rendezvous.flush()
        except errors.OpError as error:
            self.outcome.fail(error)

    def _run_segments(self, segments: Sequence[_Segment], ready: list[_Segment]) -> bool:
        """Runs segments and adds what they make ready. True when the step is over."""
        waiting = [index for segment in segments for index in segment.asynchronous]
        if waiting:
            now = time.time_ns()
            with self._lock:
                self._live += len(waiting)
                self._started_async.update(dict.fromkeys(waiting, now))
        if self.step.cancellation.is_cancelled:
            self.outcome.fail(_cancelled())
        for segment in segments:
            self._run_segment(segment)
        program, pending, users = self._program, self._pending, self._users
        with self._lock:
            self._live -= len(segments)
            if self.outcome.error is None:
                for segment in segments:
                    for slot in segment.shared_slots:
                        users[slot] -= 1
                        if users[slot] == 0:
                            self.shared[slot] = None
                    for successor in segment.successors:
                        pending[successor] -= 1
                        if pending[successor] == 0:
                            self._live += 1
                            ready.append(program.segments[successor])
            return self._live == 0

    def _run_segment(self, segment: _Segment) -> None:
        if self.outcome.error is not None:
            self._abandon(segment.asynchronous)
            return
        variant = self._variant
        if self.careful:
            variant = self._program.variant(True, self.step.collector is not None)
        started = time.perf_counter_ns()
        try:
            variant.functions[segment.index](self.step, self.shared, self)
        except BaseException as error:
            self._segment_failed(segment, variant, error)
        segment.cost_ns = (segment.cost_ns + time.perf_counter_ns() - started) // 2

    def _segment_failed(self, segment: _Segment, variant: _Variant, error: BaseException) -> None:
        index = variant.culprit(error)
        node = self._program.instructions[index if index >= 0 else segment.instructions[0]].node
        position = segment.instructions.index(index) if index in segment.instructions else 0
        # The frames would keep every value of the segment alive for as long as somebody holds the error.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            self._interrupt = error
        never_started = set(segment.instructions[position:])
        self._abandon([number for number in segment.asynchronous if number in never_started])
        self.outcome.fail(with_node(error, node))

    def _abandon(self, nodes: list[int]) -> None:
        """Asynchronous nodes that will not be started after all."""
        with self._lock:
            for index in nodes:
                if self._started_async.pop(index, None) is not None:
                    self._live -= 1

    def _end(self) -> None:
        self.shared.clear()
        self._done(self.outcome.error)


def _constants(instructions: list[Instruction]) -> dict[int, Any]:
    """The values of constants, computed now. One with control inputs stays an instruction: it may be in a branch
    not taken.
    """
    constants = {}
    for instruction in instructions:
        if instruction.op == "Const" and not instruction.controls:
            try:
                value = instruction.function()
            except Exception as error:
                raise with_node(error, instruction.node) from error
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value = value.view()
                value.flags.writeable = False
            constants[instruction.index] = value
    return constants


def _aliases(instructions: list[Instruction], order: list[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Outputs that are only another name of an input, with the value that they name."""
    alias: dict[tuple[int, int], tuple[int, int]] = {}
    for index in order:
        instruction = instructions[index]
        if instruction.op in ALIASES and not instruction.controls and not instruction.dereferences[0]:
            source = instruction.inputs[0]
            alias[index, 0] = alias.get(source, source)
    return alias


_Guard = frozenset[tuple[Any, bool]]


def _guards(
    instructions: list[Instruction], order: list[int], alias: dict[tuple[int, int], tuple[int, int]]
) -> tuple[dict[tuple[int, int], _Guard], list[_Guard]]:
    """Per value, and per node, the (predicate, branch) pairs that must hold for it to be alive. Empty sets are
    left out of the first.
    """
    nothing: _Guard = frozenset()
    values: dict[tuple[int, int], _Guard] = {}
    tokens: list[_Guard] = [nothing] * len(instructions)
    for index in order:
        instruction = instructions[index]
        inputs = [values.get(value, nothing) for value in instruction.inputs]
        controls = [tokens[source] for source in instruction.controls]
        if instruction.op in ("Merge", "RefMerge"):
            guard = _merged(inputs, index)
        elif instruction.op == "ControlTrigger":
            guard = nothing
        else:
            guard = nothing.union(*inputs, *controls)
        tokens[index] = guard
        for output in range(instruction.node.num_outputs):
            own = guard
            if instruction.op in ("Switch", "RefSwitch"):
                predicate = alias.get(instruction.inputs[1], instruction.inputs[1])
                own = guard | {(predicate, bool(output))}
            if own:
                values[index, output] = own
    return values, tokens


def _merged(guards: list[_Guard], index: int) -> _Guard:
    """When a Merge is alive: two branches of one predicate cancel out; what cannot be told is a predicate of its
    own.
    """
    remaining = set(guards)
    changed = True
    while changed and len(remaining) > 1:
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


def _segments(
    instructions: list[Instruction], order: list[int], constants: Mapping[int, Any]
) -> tuple[list[_Segment], dict[int, int]]:
    """Groups instructions by their asynchronous ancestors."""
    ancestors: dict[int, int] = {}
    numbers = {index: number for number, index in enumerate(i for i in order if instructions[i].kernel.asynchronous)}
    by_ancestors: dict[int, _Segment] = {}
    segments: list[_Segment] = []
    segment_of: dict[int, int] = {}
    for index in order:
        mask = 0
        for source in instructions[index].sources():
            mask |= ancestors[source]
            if source in numbers:
                mask |= 1 << numbers[source]
        ancestors[index] = mask
        if index in constants:
            continue
        segment = by_ancestors.get(mask)
        if segment is None:
            segment = by_ancestors[mask] = _Segment(len(segments))
            segments.append(segment)
        segment.instructions.append(index)
        if index in numbers:
            segment.asynchronous.append(index)
        segment_of[index] = segment.index
    for segment in segments:
        segment.cost_ns = 1000 * len(segment.instructions)
    return segments, segment_of


def _single(value: Any) -> Any:
    """The only value of a list output of length one."""
    return value[0] if isinstance(value, (tuple, list)) else value


def _comment(instruction: Instruction) -> str:
    return f"{instruction.name}: {instruction.op}"


def _cancelled() -> errors.OpError:
    return errors.CancelledError(None, None, "Step was cancelled")


_NESTED_DRAINS_MAX = 8
_thread = threading.local()
_program_numbers = itertools.count()
_local_step_ids = itertools.count(1)
