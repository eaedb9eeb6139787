"""Frames: runs a partition that has loops, with tagged tokens.

Owns the frames and iterations of a step. In the graph of a `while_loop`, an Enter sends a value into a frame,
NextIteration into the frame's next iteration, Exit back to the frame outside. The same node runs once per iteration,
so what arrives at it is kept per (frame, iteration). Up to `parallel_iterations` iterations of a frame may be under
way at once (one may wait for a queue while the next one computes). Partitions without loops go to `executor`'s flat
program, which is faster.

The rules, after "Dynamic Control Flow in Large-Scale Machine Learning" (Yu et al., EuroSys 2018), section 4:

- A node is ready when all its inputs have arrived. It is dead when one of them is, and then only passes that on.
- A Merge is ready at its first live input, and dead when all are (a dead Enter alone decides: nothing will come round
  the loop).
- A dead NextIteration ends there. A dead Exit is remembered; only if its iteration was the frame's last does it reach
  the outside.
- An iteration is over when nothing of it is under way and the iterations before it are over; a frame, when all its
  Enters have come and all its iterations are over.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from dtf.run.executor.frame_numbers import frame_number
from dtf.run.executor.instructions import CALLS_USERS, Instruction, with_node
from dtf.run.executor.step import StepContext
from dtf.run.executor.step_status import Outcome
from dtf.run.interfaces import Outputs, Value
from dtf.run.kernels import DEAD
from dtf.run.state.resources import Variable
from dtf.run.threads import growing_pool, reader_thread
from dtf.wire import errors

__all__ = ["FrameProgram"]

_PLAIN, _ENTER, _EXIT, _NEXT, _MERGE, _TAKES_DEAD, _TRIGGER = range(7)
_KIND_OF_OP = {
    "Enter": _ENTER,
    "RefEnter": _ENTER,
    "Exit": _EXIT,
    "RefExit": _EXIT,
    "NextIteration": _NEXT,
    "RefNextIteration": _NEXT,
    "Merge": _MERGE,
    "RefMerge": _MERGE,
    "ControlTrigger": _TRIGGER,
}


class FrameProgram:
    """The edges of a partition as tables. Immutable; any number of steps may run at the same time.

    Attributes:
      instructions: the nodes.
      has_functions_of_user: whether one of them calls the user's functions.
      keeps: whether one of them changes state that outlives the process (see `durability`).
      kinds: per node, which of the rules above apply to it.
      data_edges: per node, (output number, consumer, its input number, its kind) of each data edge that leaves it.
      control_edges: per node, (consumer, its kind) of each control edge that leaves it.
      input_counts: per node, how many data inputs it has.
      waiting_for: per node, how many edges must arrive.
      enters: per frame name, how many Enter nodes lead into it.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.has_functions_of_user = any(each.op in CALLS_USERS for each in instructions)
        self.keeps = any(each.keeps for each in instructions)
        self.kinds = [_kind(each) for each in instructions]
        self.data_edges: list[list[tuple[int, int, int, int]]] = [[] for _ in instructions]
        self.control_edges: list[list[tuple[int, int]]] = [[] for _ in instructions]
        self.enters: dict[bytes, int] = {}
        for each in instructions:
            for number, (source, output) in enumerate(each.inputs):
                self.data_edges[source].append((output, each.index, number, self.kinds[each.index]))
            for source in each.controls:
                self.control_edges[source].append((each.index, self.kinds[each.index]))
            if self.kinds[each.index] == _ENTER:
                name = each.node.attr("frame_name")
                self.enters[name] = self.enters.get(name, 0) + 1
        self.input_counts = [len(each.inputs) for each in instructions]
        self.waiting_for = [len(each.inputs) + len(each.controls) for each in instructions]
        self.roots = [index for index, count in enumerate(self.waiting_for) if count == 0]
        self._check_frames()

    def begin(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> _FrameRun:
        return _FrameRun(self, step, done)

    def describe(self) -> str:
        lines = []
        for each in self.instructions:
            inputs = [f"{self.instructions[source].name}:{output}" for source, output in each.inputs]
            inputs += [f"^{self.instructions[source].name}" for source in each.controls]
            lines.append(f"{each.name} = {each.op}({', '.join(inputs)})")
        return "\n".join(lines)


    def _check_frames(self) -> None:
        """Walks from the roots along all edges. A node whose inputs are in different frames would never be ready.

        Raises:
          InvalidArgumentError: there is such a node, an Exit outside of all loops, or an Enter without a frame.
        """
        outermost = _StaticFrame("", None)
        frames = dict.fromkeys(self.roots, outermost)
        pending = list(self.roots)
        while pending:
            source = pending.pop()
            frame = self._frame_behind(source, frames[source])
            consumers = [each[1] for each in self.data_edges[source]] + [each[0] for each in self.control_edges[source]]
            for consumer in consumers:
                known = frames.get(consumer)
                if known is None:
                    frames[consumer] = frame
                    pending.append(consumer)
                elif known is not frame:
                    node = self.instructions[consumer]
                    message = (
                        f"{node.name} has inputs from different frames: {self.instructions[source].name} is in "
                        f"{frame}, another input is in {known}"
                    )
                    raise with_node(errors.InvalidArgumentError.of(message), node.node)

    def _frame_behind(self, index: int, frame: _StaticFrame) -> _StaticFrame:
        """The frame of the consumers of a node."""
        node = self.instructions[index].node
        if self.kinds[index] == _ENTER:
            name = node.attr("frame_name").decode(errors="replace")
            if not name:
                raise with_node(errors.InvalidArgumentError.of("The frame of an Enter must have a name"), node)
            return frame.inner.setdefault(name, _StaticFrame(name, frame))
        if self.kinds[index] == _EXIT:
            if frame.outer is None:
                raise with_node(errors.InvalidArgumentError.of("An Exit is in no loop: no Enter leads to it"), node)
            return frame.outer
        return frame


class _StaticFrame:
    """A frame as the graph has it: a loop in a loop, however often it runs."""

    def __init__(self, name: str, outer: _StaticFrame | None) -> None:
        self.name = name
        self.outer = outer
        self.inner: dict[str, _StaticFrame] = {}

    def __str__(self) -> str:
        return f"the frame {self.name!r}" if self.name else "no frame"


@dataclass(slots=True)
class _Arrivals:
    """What has arrived at a node that is no Merge."""

    edges_missing: int
    inputs: list[Value]
    is_dead: bool = False


@dataclass(slots=True)
class _MergeState:
    """What has arrived at a Merge. `inputs` is there from the first live one on."""

    controls_missing: int
    dead_inputs: int = 0
    inputs: list[Value] | None = None
    has_fired: bool = False


class _Iteration:
    """What has arrived in one iteration of a frame.

    arrivals: of each node that is not ready yet.
    merges: the same for Merge nodes.
    under_way: nodes that are ready or running, and frames entered from here that are not over.
    """

    __slots__ = ("arrivals", "children", "frame", "merges", "number", "step", "under_way")

    def __init__(self, number: int, frame: _Frame) -> None:
        self.number = number
        self.frame = frame
        self.step: StepContext | None = None
        self.arrivals: dict[int, _Arrivals] = {}
        self.merges: dict[int, _MergeState] = {}
        self.children: dict[bytes, _Frame] = {}
        self.under_way = 0


class _Frame:
    """One execution of a loop: entered from `parent` during its iteration `parent_iteration`."""

    __slots__ = (
        "dead_exits",
        "deferred",
        "enters_missing",
        "invariants",
        "iterations",
        "latest",
        "name",
        "number",
        "parallel_iterations",
        "parent",
        "parent_iteration",
    )

    def __init__(
        self,
        name: bytes,
        enters_missing: int,
        parallel_iterations: int,
        parent: _Frame | None,
        parent_iteration: _Iteration | None,
    ) -> None:
        self.name = name
        # What rendezvous keys call it.
        self.number = 0
        if parent is not None and parent_iteration is not None:
            self.number = frame_number(parent.number, parent_iteration.number, name)
        self.enters_missing = enters_missing
        self.parallel_iterations = parallel_iterations
        self.parent = parent
        self.parent_iteration = parent_iteration
        self.iterations: dict[int, _Iteration] = {}
        self.latest = 0
        self.invariants: list[tuple[int, Value]] = []
        self.deferred: list[tuple[int, Value]] = []
        self.dead_exits: list[int] = []


class _FrameRun:
    """One step. One thread at a time works off `_ready`; its lock guards who does, what asynchronous kernels add,
    and their count.
    """

    def __init__(self, program: FrameProgram, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        self._program = program
        self._step = step
        self._done = done
        self._outcome = Outcome(step)
        self._lock = threading.Lock()
        self._is_draining = False
        self._interrupt: BaseException | None = None
        self._waiting = 0
        self._completed: deque[tuple[int, _Frame, _Iteration, Value, BaseException | None]] = deque()
        self._ready: deque[tuple[int, _Frame, _Iteration, list[Value] | None]] = deque()

    def start(self) -> None:
        root = _Frame(b"", 0, 1, None, None)
        iteration = self._add_iteration(root, 0)
        for index in self._program.roots:
            self._schedule(index, root, iteration, [])
        self._is_draining = True
        self._go_on()

    def _go_on(self) -> None:
        if self._program.has_functions_of_user and reader_thread.is_waiting():
            growing_pool.submit(self._drain)
            return
        reader_thread.yield_reader()
        self._drain()

    def _drain(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                try:
                    if self._program.keeps:  # all that runs without a wait is one transaction
                        with self._step.resources.update_lock:
                            self._run_ready()
                    else:
                        self._run_ready()
                except BaseException as error:  # Ctrl-C between two nodes
                    self._stop(error)
                self._outcome.flush()
                with self._lock:
                    if not self._completed:
                        self._is_draining = False
                        over = self._waiting == 0
                        break
                    completed = list(self._completed)
                    self._completed.clear()
                for each in completed:
                    self._complete(*each)
        if over:
            self._done(self._outcome.error)
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _run_ready(self) -> None:
        cancellation, outcome, ready = self._step.cancellation, self._outcome, self._ready
        while ready:
            if cancellation.is_cancelled:
                outcome.fail(errors.CancelledError.of("Step was cancelled"))
            if outcome.error is not None:
                ready.clear()
                return
            self._run(*ready.popleft())

    def _stop(self, error: BaseException) -> None:
        """Ends the step because of what happened between two of its nodes."""
        if isinstance(error, KeyboardInterrupt):
            self._interrupt = error
        self._ready.clear()
        if isinstance(error, errors.OpError):
            self._outcome.fail(error)
        else:
            self._outcome.fail(errors.InternalError.of(f"The step was interrupted: {error!r}"))

    def _run(self, index: int, frame: _Frame, iteration: _Iteration, inputs: list[Value] | None) -> None:
        """Runs one ready node; `inputs` is None for a dead one."""
        instruction = self._program.instructions[index]
        if inputs is None:
            self._propagate(index, frame, iteration, (DEAD,) * instruction.node.num_outputs, True)
            return
        started = time.time_ns() if self._step.collector is not None else 0
        try:
            values = inputs
            if True in instruction.dereferences:
                values = [
                    cast(Variable, value).read() if wanted and value is not DEAD else value
                    for value, wanted in zip(inputs, instruction.dereferences, strict=True)
                ]
            if instruction.kernel.asynchronous:
                self._start_waiting(instruction, frame, iteration, values)
                return
            if instruction.kernel.stateful:
                result = instruction.function(self._step_of(iteration), *values)
            else:
                result = instruction.function(*values)
        except BaseException as error:
            self._fail(instruction, error)
            return
        outputs = _as_outputs(instruction, result)
        if self._step.collector is not None:
            self._step.collector.record(instruction.name, instruction.op, started, time.time_ns(), outputs)
        self._propagate(index, frame, iteration, outputs, False)

    def _start_waiting(
        self, instruction: Instruction, frame: _Frame, iteration: _Iteration, values: list[Value]
    ) -> None:
        with self._lock:
            self._waiting += 1
        done = _Once(partial(self._finish, instruction.index, frame, iteration))
        try:
            instruction.function(self._step_of(iteration), done, *values)
        except BaseException as error:
            done(error=error)

    def _finish(
        self, index: int, frame: _Frame, iteration: _Iteration, value: Value = None, error: BaseException | None = None
    ) -> None:
        """An asynchronous node is over, in any thread."""
        with self._lock:
            self._waiting -= 1
            self._completed.append((index, frame, iteration, value, error))
            if self._is_draining:
                return
            self._is_draining = True
        self._go_on()

    def _complete(
        self, index: int, frame: _Frame, iteration: _Iteration, value: Value, error: BaseException | None
    ) -> None:
        instruction = self._program.instructions[index]
        if error is not None:
            self._fail(instruction, error)
        elif value is DEAD:
            self._propagate(index, frame, iteration, (DEAD,) * instruction.node.num_outputs, True)
        else:
            self._propagate(index, frame, iteration, _as_outputs(instruction, value), False)

    def _fail(self, instruction: Instruction, error: BaseException) -> None:
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            self._interrupt = error
        self._outcome.fail(with_node(error, instruction.node))

    # -- tokens

    def _schedule(self, index: int, frame: _Frame, iteration: _Iteration, inputs: list[Value] | None) -> None:
        iteration.under_way += 1
        self._ready.append((index, frame, iteration, inputs))

    def _propagate(
        self, index: int, frame: _Frame, iteration: _Iteration, outputs: tuple[Value, ...], is_dead: bool
    ) -> None:
        """Sends what a node made to its consumers, in the frame and iteration where they are."""
        kind = self._program.kinds[index]
        if kind == _ENTER:
            self._enter(index, frame, iteration, outputs[0])
        elif kind == _EXIT:
            if not is_dead:
                assert frame.parent is not None and frame.parent_iteration is not None
                self._deliver(index, frame.parent, frame.parent_iteration, outputs, False)
            elif iteration.number == frame.latest:
                frame.dead_exits.append(index)
        elif kind == _NEXT:
            if not is_dead:
                self._next(index, frame, iteration, outputs[0])
        else:
            self._deliver(index, frame, iteration, outputs, is_dead)
        iteration.under_way -= 1
        if iteration.under_way == 0:
            self._clean_up(frame, iteration)

    def _deliver(
        self, index: int, frame: _Frame, iteration: _Iteration, outputs: tuple[Value, ...], is_dead: bool
    ) -> None:
        for output, consumer, number, kind in self._program.data_edges[index]:
            value = outputs[output]
            if kind == _MERGE:
                self._arrive_at_merge(consumer, frame, iteration, number, value, self._program.kinds[index] == _ENTER)
            else:
                self._arrive(consumer, kind, frame, iteration, number, value, value is DEAD)
        for consumer, kind in self._program.control_edges[index]:
            if kind == _MERGE:
                self._arrive_at_merge(consumer, frame, iteration, None, None, False)
            else:
                self._arrive(consumer, kind, frame, iteration, None, None, is_dead)

    def _arrive(
        self,
        index: int,
        kind: int,
        frame: _Frame,
        iteration: _Iteration,
        number: int | None,
        value: Value,
        is_dead: bool,
    ) -> None:
        state = iteration.arrivals.get(index)
        if state is None:
            state = iteration.arrivals[index] = _Arrivals(
                self._program.waiting_for[index], [None] * self._program.input_counts[index]
            )
        if number is not None:
            state.inputs[number] = value
        if is_dead and kind != _TRIGGER and (kind != _TAKES_DEAD or number is None):
            state.is_dead = True
        state.edges_missing -= 1
        if state.edges_missing == 0:
            del iteration.arrivals[index]
            inputs = None if state.is_dead else state.inputs
            if inputs is None and kind == _TAKES_DEAD:
                # A send in a branch that was not taken tells its receiver so.
                inputs = [DEAD] * len(state.inputs)
            self._schedule(index, frame, iteration, inputs)

    def _arrive_at_merge(
        self, index: int, frame: _Frame, iteration: _Iteration, number: int | None, value: Value, from_enter: bool
    ) -> None:
        instruction = self._program.instructions[index]
        count = len(instruction.inputs)
        state = iteration.merges.get(index)
        if state is None:
            state = iteration.merges[index] = _MergeState(len(instruction.controls))
        if number is None:
            state.controls_missing -= 1
        elif value is DEAD:
            state.dead_inputs = count if from_enter else state.dead_inputs + 1
        elif state.inputs is None:
            state.inputs = [DEAD] * count
            state.inputs[number] = value
        is_decided = state.inputs is not None or state.dead_inputs == count
        if is_decided and not state.has_fired and state.controls_missing == 0:
            state.has_fired = True
            self._schedule(index, frame, iteration, state.inputs)

    def _enter(self, index: int, frame: _Frame, iteration: _Iteration, value: Value) -> None:
        node = self._program.instructions[index].node
        name = node.attr("frame_name")
        child = iteration.children.get(name)
        if child is None:
            child = _Frame(name, self._program.enters[name], max(1, node.attr("parallel_iterations")), frame, iteration)
            iteration.children[name] = child
            iteration.under_way += 1
            self._add_iteration(child, 0)
        child.enters_missing -= 1
        if node.attr("is_constant"):
            child.invariants.append((index, value))
            for inside in list(child.iterations.values()):
                self._deliver(index, child, inside, (value,), value is DEAD)
        else:
            self._deliver(index, child, child.iterations[0], (value,), value is DEAD)
        if 0 in child.iterations:
            self._clean_up(child, child.iterations[0])

    def _next(self, index: int, frame: _Frame, iteration: _Iteration, value: Value) -> None:
        if iteration.number == frame.latest:
            if len(frame.iterations) >= frame.parallel_iterations:
                frame.deferred.append((index, value))
                return
            self._advance(frame)
        self._deliver(index, frame, frame.iterations[iteration.number + 1], (value,), False)

    def _advance(self, frame: _Frame) -> None:
        """Starts the frame's next iteration."""
        frame.latest += 1
        frame.dead_exits.clear()
        iteration = self._add_iteration(frame, frame.latest)
        for index, value in frame.deferred:
            self._deliver(index, frame, iteration, (value,), False)
        frame.deferred.clear()
        for index, value in frame.invariants:
            self._deliver(index, frame, iteration, (value,), value is DEAD)

    def _add_iteration(self, frame: _Frame, number: int) -> _Iteration:
        iteration = frame.iterations[number] = _Iteration(number, frame)
        return iteration

    def _step_of(self, iteration: _Iteration) -> StepContext:
        """The step as kernels of an iteration see it: only the rendezvous keys differ."""
        if iteration.step is None:
            frame, outside = iteration.frame, iteration.frame.parent_iteration
            if outside is None:
                iteration.step = self._step
            else:
                iteration.step = self._step.in_iteration(f"{frame.number}:{iteration.number}")
        return iteration.step

    def _clean_up(self, frame: _Frame, iteration: _Iteration) -> None:
        """Forgets iterations, and then the frame, that are over."""
        while iteration.under_way == 0 and self._may_end(frame, iteration):
            del frame.iterations[iteration.number]
            if frame.deferred:
                self._advance(frame)
            following = frame.iterations.get(iteration.number + 1)
            if following is None:
                break
            iteration = following
        if frame.parent is None or frame.iterations or frame.enters_missing:
            return
        parent, outside = frame.parent, frame.parent_iteration
        assert outside is not None
        if outside.children.get(frame.name) is not frame:
            return
        del outside.children[frame.name]
        for index in frame.dead_exits:
            self._deliver(index, parent, outside, (DEAD,), True)
        outside.under_way -= 1
        self._clean_up(parent, outside)

    def _may_end(self, frame: _Frame, iteration: _Iteration) -> bool:
        if frame.iterations.get(iteration.number) is not iteration:
            return False
        if iteration.number == 0:
            return frame.enters_missing == 0
        return iteration.number - 1 not in frame.iterations and frame.enters_missing == 0


class _Once:
    """Lets a callback through once."""

    __slots__ = ("_callback", "_lock")

    def __init__(self, callback: Callable[..., None]) -> None:
        self._callback: Callable[..., None] | None = callback
        self._lock = threading.Lock()

    def __call__(self, value: Value = None, error: BaseException | None = None) -> None:
        with self._lock:
            callback, self._callback = self._callback, None
        if callback is not None:
            callback(value, error)


def _as_outputs(instruction: Instruction, result: Outputs) -> tuple[Value, ...]:
    count = instruction.node.num_outputs
    if count == 1:
        if instruction.has_list_output and isinstance(result, (tuple, list)):
            return (result[0],)
        return (result,)
    return tuple(cast(Sequence[Value], result)) if count else ()


def _kind(instruction: Instruction) -> int:
    kind = _KIND_OF_OP.get(instruction.op)
    if kind is not None:
        return kind
    return _TAKES_DEAD if instruction.kernel.accepts_dead else _PLAIN
