"""The services of a Supervisor: threads that save, summarise and count steps at intervals.

Own one turn each; when the turns come is the LooperThread's matter, and their state the supervisor's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dtf import logging
from dtf.train.training_util import global_step as value_of_global_step
from dtf.wire.pb import event_pb2, summary_pb2


def save_summary(supervisor: Any, session: Any) -> None:
    """Runs the summary op and writes what it gives, at the global step if there is one."""
    if supervisor.global_step is None:
        supervisor.summary_writer.add_summary(session.run(supervisor.summary_op))
        return
    summary, step = session.run([supervisor.summary_op, supervisor.global_step])
    logging.info("Recording summary at step %s.", step)
    supervisor.summary_writer.add_summary(summary, step)


def save_checkpoint(supervisor: Any, session: Any) -> None:
    """Saves the model, and says so in the event file."""
    logging.info("Saving checkpoint to path %s", supervisor.save_path)
    supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    if supervisor.summary_writer is not None and supervisor.global_step is not None:
        log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=supervisor.save_path)
        supervisor.summary_writer.add_session_log(log, value_of_global_step(session, supervisor.global_step))


class StepRate:
    """Writes how many global steps were made per second since the turn before, as "<global step>/sec"."""

    def __init__(
        self, supervisor: Any, session: Any, clock: Callable[[], float] = time.monotonic, step_counter: Any = None
    ) -> None:
        self._supervisor = supervisor
        self._session = session
        self._clock = clock
        self._counter = supervisor.global_step if step_counter is None else step_counter
        self._tag = f"{self._counter.op.name}/sec"
        self._last: tuple[float, int] | None = None

    def record(self) -> None:
        """One turn; the first one, which comes at the start, only notes where the training begins."""
        last = self._last
        now, step = self._last = self._clock(), value_of_global_step(self._session, self._counter)
        if last is None or now <= last[0]:
            return
        rate = (step - last[1]) / (now - last[0])
        value = summary_pb2.Summary.Value(tag=self._tag, simple_value=rate)
        self._supervisor.summary_writer.add_summary(summary_pb2.Summary(value=[value]), step)
        logging.info("%s: %g", self._tag, rate)
