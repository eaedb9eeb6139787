"""Checks that all tasks of a training build the same graph. Different graphs would make them wait for each other
without end.

Owns the two signs that a worker's graph differs from the chief's, and the error messages. A variable of another
shape or type is refused where it is (`run.kernels.state`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from dtf.build.default_graph import device
from dtf.build.graph import Graph
from dtf.build.variables import Variable
from dtf.train.training_util import find_global_step, step_number
from dtf.wire import errors

__all__ = ["GradientsOfChief", "Waiting"]

_PATIENCE_S = 120.0
_CHIEF_SAYS_WITHIN_S = 1.0


class Waiting:
    """A worker that waits for its variables until the chief has made them.

    It waits in vain when the chief trains without them, or has been ready without them for long.
    """

    def __init__(self, graph: Graph, clock: Callable[[], float]) -> None:
        self._global_step = _counting_step(graph)
        self._clock = clock
        self._missing = ""
        self._first: tuple[int, float] | None = None

    def look(self, session: Any, missing: str) -> None:
        """Notes what is missing now.

        Raises:
          FailedPreconditionError: it will not come.
        """
        if self._global_step is None:
            return
        try:
            step = step_number(session.run(self._global_step))
        except errors.FailedPreconditionError:
            self._first = None
            return
        if self._first is None or missing != self._missing or step < self._first[0]:
            self._missing, self._first = missing, (step, self._clock())
            return
        before, since = self._first
        if step == before and self._clock() < since + _PATIENCE_S:
            return
        sign = f"trains without them, from step {before} to {step}" if step > before else "has been ready for long"
        raise errors.FailedPreconditionError(
            None,
            None,
            f"{missing}. The chief {sign}: its graph does not have them. All tasks must build the same graph.",
        )


def _counting_step(graph: Graph) -> Any:
    """The graph's global step if it is a scalar of any numeric type, else None."""
    try:
        step = find_global_step(graph)
    except ValueError:
        return None
    if step is None or not (step.dtype.base_dtype.is_integer or step.dtype.base_dtype.is_floating):
        return None
    return step if step.get_shape().num_elements() == 1 else None


class GradientsOfChief:
    """Publishes the variables that a chief of synchronous replicas averages, in a variable stored with the global
    step.

    Make it before the graph is finalized. A TensorFlow chief has no such variable; then nothing is compared.
    """

    def __init__(self, name: str, where: str, gradients: Iterable[str]) -> None:
        """gradients: a line for each. where: the device of the variable called `name`."""
        self._gradients = list(gradients)
        with device(where):
            self._told = Variable(
                "\n".join(self._gradients), trainable=False, collections=[], use_resource=False, name=name
            )
        self.tell_op = self._told.initializer

    def are_told(self, session: Any) -> bool:
        """Whether a chief has published them since the variable's task began."""
        try:
            session.run(self._told)
        except errors.FailedPreconditionError:
            return False
        return True

    def compare(self, session: Any, sleep: Callable[[float], Any] = time.sleep) -> None:
        """Compares, once the chief has published.

        Raises:
          FailedPreconditionError: the worker's are others.
        """
        for _ in range(round(_CHIEF_SAYS_WITHIN_S / 0.05)):
            try:
                chiefs = session.run(self._told).decode().splitlines()
            except errors.FailedPreconditionError:
                sleep(0.05)
                continue
            only_here = ", ".join(sorted(set(self._gradients) - set(chiefs))) or "nothing"
            only_there = ", ".join(sorted(set(chiefs) - set(self._gradients))) or "nothing"
            if chiefs != self._gradients:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    f"This worker's gradients differ from the chief's. Only the worker has {only_here}; "
                    f"only the chief has {only_there}. All tasks must build the same graph.",
                )
            return
