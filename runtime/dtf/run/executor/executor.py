"""Executor: runs one partition of a graph, once per step, with as little as possible between the kernels.

Knows which kind of program a partition becomes: a flat one (`segments`, `segment_source`, `flat_program`,
`flat_run`), or, with loops, one of `frames`. A flat one is compiled once to Python source, one line per node, and that
source to byte code::

    def segment_0(step, shared, run):
        function_7(step, partial(run.finish, 7))  # x_R1: _Recv
        s3 = function_3(step)  # w: VariableV2
    def segment_1(step, shared, run):
        s7 = shared[0]
        s8 = function_8(s7, s3.read())  # MatMul: MatMul
        del s7

so that a step costs one interpreted call per node: values are local variables, constants and kernels are globals of
the byte code, Identity is only another name, and a value is dropped right after its last use (memory is freed early,
and a variable whose value nobody holds is updated in place). `Executor.describe()` prints the source, with the
nodes' names behind the calls; the source itself says nothing of what the graph says.

Nodes with the same set of asynchronous ancestors (a _Recv, a dequeue) form a *segment*, which runs straight through.
The segments form a graph with counts of what each still waits for; the thread that completes an asynchronous node
goes on with the segments that this makes ready (the pool does, when they are known to take long). So waiting kernels
hold no thread.

Dead values (what `Switch` did not choose) are found when the program is made: each value has the set of (predicate,
branch) that it depends on, and only instructions that depend on any are compiled with checks. A dead value from
another task cannot be foreseen; when one arrives the step goes on with *careful* twins of the segments, which check
everything.

The first error stops the step: it cancels what waits and aborts the exchange; the step is over, and `done` called,
when all that had been started has ended. An error that only follows from another (cancelled, aborted) never hides the
one it follows from.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from dtf.run.durability.kept import MARK
from dtf.run.exchange.endpoint_binding import EndpointBinding, arrivals_of, bind, bind_loops
from dtf.run.exchange.piggyback import Marks
from dtf.run.exchange.rendezvous import StepRendezvous
from dtf.run.executor.broadcasts import with_check
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.executor.flat_run import FlatRun
from dtf.run.executor.functions import FunctionLibrary
from dtf.run.executor.instructions import Instruction, in_running_order, is_loop, read_graph
from dtf.run.executor.segments import constants_of
from dtf.run.executor.step import SessionState, StepContext
from dtf.run.executor.sums_of_products import with_sums_of_products
from dtf.run.interfaces import Device, Value
from dtf.run.kernels import DEAD
from dtf.run.passes.copies import with_copies
from dtf.run.state.resources import ResourceManager
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Array, Library
from dtf.wire import errors
from dtf.wire.pb import graph_pb2, types_pb2

if TYPE_CHECKING:
    from dtf.run.executor.frames import FrameProgram

__all__ = ["Executor", "local_step", "run_graph_def"]


class Run(Protocol):
    """One step of a partition."""

    def start(self) -> None:
        """Runs all that is ready; returns when nothing is left to do in this thread."""


class Executor:
    """One compiled partition. Any number of steps may run at the same time; the first one may compile it.

    Attributes:
      has_loops: whether the partition has loop frames, so that a node may run many times in a step.
      may_repeat: whether its steps may be sent again, so that some of its operations must run once (see `durability`).
    """

    def __init__(
        self,
        graph_def: graph_pb2.GraphDef,
        session_state: SessionState | None = None,
        device: Device | None = None,
        library: Library | None = None,
        is_deferred: bool = False,
        is_durable: bool = False,
    ) -> None:
        """Compiles `graph_def`.

        Args:
          session_state: the state of the session that the graph is of.
          device: the device that the nodes are on.
          library: holds the functions that it may call, if it does not bring them itself.
          is_deferred: a graph without loops is checked now, and compiled by the first step that runs it unbound.
          is_durable: what it changes outlives the process (see `durability`).

        Raises:
          InvalidArgumentError, NotFoundError: the graph cannot be run here (see `instructions.read_graph`).
        """
        self.session_state = session_state or SessionState()
        self.device = device
        if library is None:
            functions = {function.signature.name: function for function in graph_def.library.function}
            library = FunctionLibrary(functions, _compile_durable_body if is_durable else _compile_body)
        self._instructions = read_graph(with_copies(graph_def, library), library)
        self.may_repeat = is_durable or any(MARK in node.attr for node in graph_def.node)
        if self.may_repeat:
            from dtf.run.durability.once import once_each  # which most processes do without

            self._instructions, self.may_repeat = once_each(self._instructions, graph_def, is_durable)
        self._is_durable = is_durable
        self._marks = Marks.of(graph_def)
        self.has_loops = is_loop(self._instructions)
        self._lock = threading.Lock()
        self._compiled: FlatProgram | FrameProgram | None = None
        self._constants: Mapping[int, Array] | None = None
        if not self.has_loops:
            self._instructions = with_sums_of_products(self._instructions)
            self._constants = constants_of(self._instructions, in_running_order(self._instructions))
        if self.has_loops or not is_deferred:
            self._compiled = self._compile()

    @property
    def _program(self) -> FlatProgram | FrameProgram:
        if self._compiled is None:
            with self._lock:
                if self._compiled is None:
                    self._compiled = self._compile()
        return self._compiled

    def _compile(self) -> FlatProgram | FrameProgram:
        if self.has_loops:
            from dtf.run.executor.frames import FrameProgram  # which most processes do without

            return FrameProgram([with_check(each) for each in self._with_answers()])
        return FlatProgram(self._with_answers(), self._constants)

    def _with_answers(self) -> list[Instruction]:
        if not self._is_durable:
            return self._instructions
        from dtf.run.durability.once import answers_once  # which most processes do without

        return answers_once(self._instructions)

    def bound(self, binding: EndpointBinding) -> Executor:
        """The same partition with its endpoints tied to a pushed step.

        Raises:
          UnimplementedError: an endpoint that the binding does not know.
        """
        bound = copy.copy(self)
        if self.has_loops:
            bound._instructions = bind_loops(self._instructions, binding)
        else:
            bound._instructions = bind(self._instructions, binding, self._marks)
        bound._compiled = program = bound._compile()
        if isinstance(program, FlatProgram):
            program.expect(arrivals_of(bound._instructions, binding))
        return bound

    def begin(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> Run:
        """A run of the step that has not started; see `run_async`."""
        program = self._compiled or self._program
        if isinstance(program, FlatProgram):
            return FlatRun(program, step, done)
        return program.begin(step, done)

    def run_async(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        """Starts a step; returns when nothing is left to do in this thread. `done(None or the error)` is called
        exactly once,
        from any thread, after everything of the step has stopped."""
        self.begin(step, done).start()

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


def _compile_body(graph_def: graph_pb2.GraphDef, library: FunctionLibrary) -> Executor:
    return Executor(graph_def, library=library)


def _compile_durable_body(graph_def: graph_pb2.GraphDef, library: FunctionLibrary) -> Executor:
    return Executor(graph_def, library=library, is_durable=True)


def local_step(resources: ResourceManager | None = None, session: SessionState | None = None) -> StepContext:
    """A step for code that runs a graph without a worker. `resources` and `session` keep state from step to step."""
    step_id = next(_local_step_ids)
    return StepContext(
        step_id,
        resources or ResourceManager(),
        session or SessionState(),
        StepRendezvous(step_id),
        CancellationManager(),
    )


def run_graph_def(
    graph_def: graph_pb2.GraphDef,
    fetches: Sequence[str],
    feeds: Mapping[str, Value] | None = None,
    targets: Sequence[str] = (),
    *,
    resources: ResourceManager | None = None,
    session: SessionState | None = None,
) -> list[Value]:
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
            raise errors.InvalidArgumentError.of(f"The tensor returned for {name} was not valid.")
    return [step.results[index] for index in range(len(fetches))]


def _with_arguments(
    graph_def: graph_pb2.GraphDef, fetches: Sequence[str], feeds: Sequence[str], targets: Sequence[str]
) -> graph_pb2.GraphDef:
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
            raise errors.NotFoundError.of(f"The graph has no node '{name}'")
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


_local_step_ids = itertools.count(1)
