"""WorkerSteps: the steps that run at one task, where a cancel finds one of them, or all of a session.

Owns the table and what a step is given when it begins. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dtf.run.durability.once import StepRecords
from dtf.run.executor.step import Collector, StepContext
from dtf.run.interfaces import StepExchange, Value
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.worker_session import WorkerSession, WorkerStep
from dtf.wire import errors

__all__ = ["WorkerSteps", "shown"]


class WorkerSteps:
    """The table is changed by single operations only."""

    def __init__(self, records: StepRecords) -> None:
        self._records = records
        self._steps: dict[int, WorkerStep] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def enter(
        self,
        session: WorkerSession,
        step_id: int,
        exchange: StepExchange,
        collector: Collector | None = None,
        arguments: Sequence[Value] = (),
        results: list[Value] | None = None,
        cancellation: CancellationManager | None = None,
        may_repeat: bool = False,
    ) -> WorkerStep:
        """Begins a step; the other arguments are as in `StepContext`. `cancellation` is the caller's, if any.
        `may_repeat`: its id bears an identity, for it may be sent again.

        Raises:
          AbortedError: one of this number runs already, or it is over or a later attempt of it has begun.
        """
        device = session.devices[0]
        step = StepContext(
            step_id,
            session.resources,
            session.state,
            exchange,
            cancellation or CancellationManager(),
            device.name,
            device.incarnation,
            collector,
            arguments,
            results,
            collectives=session.collectives,
        )
        if may_repeat:
            step.attempt = self._records.begin(session.handle, step_id)
        if session.is_durable:
            exchange.hold_back(session.resources.is_in_transaction)
        running = WorkerStep(step, session)
        if self._steps.setdefault(step_id, running) is not running:
            raise errors.AbortedError.of(f"Step {step_id} is running already")
        if step.attempt is not None:
            step.attempt.runs(step.cancel)
        return running

    def leave(self, running: WorkerStep) -> None:
        """Forgets a step that has ended, and releases its resources."""
        self._steps.pop(running.step.step_id, None)
        if running.step.attempt is not None:
            running.step.attempt.end()
        running.step.forget_resources()

    def find(self, step_id: int) -> WorkerStep | None:
        """The step of that number, if it runs here."""
        return self._steps.get(step_id)

    def of(self, session: WorkerSession | None = None) -> list[WorkerStep]:
        """The steps of a session; None: all."""
        return [running for running in list(self._steps.values()) if session is None or running.session is session]


def shown(value: Value) -> Value:
    """The value of a fetch. A reference shows its contents now that the step has ended; that of a queue, table, reader
    or the like the container and name, as TensorFlow's string handles do.
    """
    read: Callable[[], Value] | None = getattr(value, "read", None)
    return value if read is None else read()
