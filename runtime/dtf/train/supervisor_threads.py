"""The standard services of a Supervisor as threads that a program starts itself.

Each is a `LooperThread` of one service: `supervisor_services` has the turns, the supervisor the intervals.
"""

from __future__ import annotations

from typing import Any

from dtf.train import supervisor_services as services
from dtf.train.coordinator import LooperThread

__all__ = ["SVStepCounterThread", "SVSummaryThread", "SVTimerCheckpointThread"]


class SVSummaryThread(LooperThread):
    """Saves summaries every `sv.save_summaries_secs` seconds.

    Args:
      sv: a Supervisor.
      sess: its session.
    """

    def __init__(self, sv: Any, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._supervisor, self._session = sv, sess

    def run_loop(self) -> None:
        services.save_summary(self._supervisor, self._session)


class SVStepCounterThread(LooperThread):
    """Writes the rate of global steps every `sv.save_summaries_secs` seconds.

    Args:
      sv: a Supervisor.
      sess: its session.
      step_counter: the tensor of the step; the supervisor's global step by default.
    """

    def __init__(self, sv: Any, sess: Any, step_counter: Any = None) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._rate = services.StepRate(sv, sess, step_counter=step_counter)

    def run_loop(self) -> None:
        self._rate.record()


class SVTimerCheckpointThread(LooperThread):
    """Saves checkpoints every `sv.save_model_secs` seconds.

    Args:
      sv: a Supervisor.
      sess: its session.
    """

    def __init__(self, sv: Any, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_model_secs)
        self._supervisor, self._session = sv, sess

    def run_loop(self) -> None:
        services.save_checkpoint(self._supervisor, self._session)
