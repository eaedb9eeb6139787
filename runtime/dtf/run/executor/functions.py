"""Functions: the bodies that PartitionedCall, If, Case and While run.

Owns the compiled body; what its nodes are is `wire.functions`', and `executor` compiles them. Bodies are compiled when
they are first called, since a function may call itself; all calls of one function with the same attributes share one
body. Thirty functions that each call the next one twice are thirty bodies, not a thousand million.

Calls inside of each other, of a function that calls itself say, need no deep stack: every few levels another thread of
the pool goes on. `limits.FUNCTION_DEPTH` bounds them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from dtf.run.devices.backends import has_accelerators
from dtf.run.executor.step import SessionState, StepContext
from dtf.run.interfaces import Done, Value
from dtf.run.threads import growing_pool
from dtf.run.value_types import Array, Element, FunctionReference, Library
from dtf.wire import errors, limits
from dtf.wire.functions import argument_types, endless, instantiate, reachable, result_types
from dtf.wire.names import shown
from dtf.wire.pb import function_pb2, graph_pb2

__all__ = ["CompiledBody", "FunctionBody", "FunctionLibrary"]

_LEVELS_OF_A_STACK = 16
"""Calls inside of each other in one thread; each takes about twenty frames of Python's stack."""


class CompiledBody(Protocol):
    """The compiled nodes of a function."""

    def run_async(self, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        """Runs them within a step: done(None or the error)."""


class FunctionLibrary(dict[str, "function_pb2.FunctionDef"]):
    """FunctionDefs by name, and the bodies in use. Its lock guards what it found out.

    Attributes:
      compile_body: makes a body of the nodes of a function and the library that they call.
    """

    def __init__(
        self,
        functions: Mapping[str, function_pb2.FunctionDef],
        compile_body: Callable[[graph_pb2.GraphDef, FunctionLibrary], CompiledBody],
    ) -> None:
        super().__init__(functions)
        self.compile_body = compile_body
        self._lock = threading.Lock()
        # Weak, since a body's kernels know the library: what no graph calls any more goes at once.
        self._ending: set[str] = set()
        self._bodies: weakref.WeakValueDictionary[tuple[str, bytes, str], _Body] = weakref.WeakValueDictionary()

    def body(self, reference: FunctionReference, device: str) -> _Body:
        """The body of a function with the attributes of `reference`, a NameAttrList, on a device."""
        device = device if has_accelerators() else ""
        key = reference.name, reference.SerializeToString(deterministic=True), device
        with self._lock:
            found = self._bodies.get(key)
            if found is None:
                found = self._bodies[key] = _Body(reference, self, device)
            return found

    def is_endless(self, name: str) -> bool:
        """Whether a function calls itself whatever its arguments are, or another that does."""
        with self._lock:
            return name not in self._ending and endless(name, self, self._ending)


class _Body:
    """What is compiled of a function. Its lock guards the compilation."""

    def __init__(self, reference: FunctionReference, library: FunctionLibrary, device: str) -> None:
        self._reference = reference
        self._library = library
        self._device = device
        self._lock = threading.Lock()
        self._executor: CompiledBody | None = None
        self.result_count = 0

    def executor(self) -> CompiledBody:
        with self._lock:
            if self._executor is None:
                from dtf.run.passes.device_types import keep_in_host_memory, place_body  # for functions alone
                from dtf.run.passes.validate import check_edges

                function, attrs = self._library[self._reference.name], self._reference.attr
                if self._library.is_endless(self._reference.name):
                    raise _recursion(self._reference.name, "without a condition")
                self.result_count = len(result_types(function, attrs))
                graph_def = instantiate(function, attrs, self._library)
                check_edges(graph_def.node)
                if self._device:
                    place_body(graph_def, self._device)
                elif has_accelerators():
                    keep_in_host_memory(graph_def)
                self._executor = self._library.compile_body(graph_def, self._library)
            return self._executor


class FunctionBody:
    """A function with its attributes, ready to be called."""

    def __init__(self, reference: FunctionReference, library: Library, device: str = "", caller: str = "") -> None:
        """`reference` is the NameAttrList of a func attribute, `library` the functions of the graph, `device` where
        its nodes are that ask for none; "": the CPU. Arguments and results are in the host's memory. `caller` is the
        name of the node that calls it.

        Raises:
          NotFoundError: the library has no such function.
        """
        if reference.name not in library:
            raise errors.NotFoundError.of(f"Function {shown(reference.name)} is not defined.")
        self._reference = reference
        self._call = f"{caller}:{reference.name}"
        assert isinstance(library, FunctionLibrary)
        self._library = library
        self._body = self._library.body(reference, device)

    def check_signature(self, given: Sequence[int], wanted: Sequence[int]) -> None:
        """Checks a call that gives tensors of these DataTypes and wants others.

        Raises:
          InvalidArgumentError: the function takes or gives something else.
        """
        function, attrs = self._library[self._reference.name], self._reference.attr
        for what, theirs, ours in (
            ("takes", argument_types(function, attrs), given), ("gives", result_types(function, attrs), wanted),
        ):  # fmt: skip
            count = min(len(theirs), len(ours)) if what == "gives" else None
            if theirs[:count] != list(ours[:count]):
                raise errors.InvalidArgumentError.of(
                    f"Function {self._reference.name} {what} tensors of the types {theirs}, but its call is of "
                    f"{list(ours)}.",
                )

    def call(self, step: StepContext, arguments: tuple[Value, ...], done: Done[Element]) -> None:
        """Runs the body within a step: done(tuple of results), or done(error=OpError)."""
        if step.cancellation.is_cancelled:
            done(error=errors.CancelledError.of("Function call was cancelled"))
            return
        body = self._body
        is_deep = not (step.depth + 1) % _LEVELS_OF_A_STACK
        try:
            executor = body.executor()
            if is_deep:
                self._check_depth(step.depth + 1)
        except errors.OpError as error:
            done(error=error)
            return
        frame = step.call_frame(arguments, self._call)
        # Nodes of different functions may have one name; their generators are not one.
        frame.session = step.session.node_state(f"function {self._reference.name}", SessionState)
        token = step.cancellation.register(frame.cancellation.start_cancel)
        if token is None:
            done(error=errors.CancelledError.of("Function call was cancelled"))
            return

        def finish(error: errors.OpError | None) -> None:
            step.cancellation.deregister(token)
            if error is not None:
                done(error=error)
            else:
                results = cast("dict[int, Array]", frame.results)
                done(tuple(results[index] for index in range(body.result_count)))

        if is_deep:
            growing_pool.submit(executor.run_async, frame, lambda error: growing_pool.submit(finish, error))
        else:
            executor.run_async(frame, finish)

    def _check_depth(self, depth: int) -> None:
        name = self._reference.name
        if not limits.FUNCTION_DEPTH.allows(depth):
            if name in reachable(name, self._library):
                raise _recursion(name, f"more than {limits.FUNCTION_DEPTH.value} deep")
            limits.FUNCTION_DEPTH.check(depth, f"Calls of functions inside of each other, down to {name}")


def _recursion(name: str, how: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError.of(
        f"Function {name} calls itself, or one that does so, {how}. A recursive function must end by an If, a Case or "
        f"a Switch; its depth is limited by {limits.FUNCTION_DEPTH.variable}.",
    )
