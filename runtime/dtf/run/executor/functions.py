"""Functions: the bodies that PartitionedCall, If, Case and While run.

Owns the compiled body; what its nodes are is `wire.functions`'. Bodies are compiled when they are first called, since a
function may call itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dtf.run.executor.step import SessionState, StepContext
from dtf.wire import errors
from dtf.wire.functions import instantiate, result_count

if TYPE_CHECKING:
    from dtf.run.executor.executor import Executor

__all__ = ["FunctionBody"]


class FunctionBody:
    """A function with its attributes, ready to be called. Its lock guards the compilation."""

    def __init__(self, reference: Any, library: Mapping[str, Any]) -> None:
        """`reference` is the NameAttrList of a func attribute, `library` the functions of the graph.

        Raises:
          NotFoundError: the library has no such function.
        """
        if reference.name not in library:
            raise errors.NotFoundError(None, None, f"Function {reference.name} is not defined.")
        self._reference = reference
        self._library = library
        self._lock = threading.Lock()
        self._executor: Executor | None = None
        self._result_count = 0

    def call(self, step: StepContext, arguments: tuple[Any, ...], done: Callable[..., None]) -> None:
        """Runs the body within a step: done(tuple of results), or done(error=OpError)."""
        if step.cancellation.is_cancelled:
            done(error=errors.CancelledError(None, None, "Function call was cancelled"))
            return
        try:
            executor = self._compiled()
        except errors.OpError as error:
            done(error=error)
            return
        frame = step.call_frame(arguments)
        # Nodes of different functions may have one name; their generators are not one.
        frame.session = step.session.node_state(f"function {self._reference.name}", SessionState)
        token = step.cancellation.register(frame.cancellation.start_cancel)
        if token is None:
            done(error=errors.CancelledError(None, None, "Function call was cancelled"))
            return

        def finish(error: errors.OpError | None) -> None:
            step.cancellation.deregister(token)
            if error is not None:
                done(error=error)
            else:
                assert frame.results is not None
                done(tuple(frame.results[index] for index in range(self._result_count)))

        executor.run_async(frame, finish)

    def _compiled(self) -> Executor:
        with self._lock:
            if self._executor is None:
                from dtf.run.executor.executor import Executor

                function, attrs = self._library[self._reference.name], self._reference.attr
                self._result_count = result_count(function, attrs)
                graph_def = instantiate(function, attrs, self._library)
                self._executor = Executor(graph_def, library=self._library)
            return self._executor

