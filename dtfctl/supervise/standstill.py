"""Whether a task that runs, and whose server answers, still gets anywhere. Pure; probes/probing.py asks.

What counts is how many steps the sessions of its process have run, where it says so (task_notes), else the global step
in the event files and checkpoints. Of a task that has not begun to train nothing is concluded.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtfctl.values import state
from dtfctl.values.plan import ClusterPlan
from dtfctl.values.statuses import Statuses

PATIENCE_S = 60.0
VARIABLE = "DTFCTL_STALLED_AFTER"
"""Seconds without a step after which a task is said to be stalled, in the environment of `dtfctl up`."""

SERVER_ENDED_S = 10.0
PORT_CLOSED_S = 20.0
NO_SERVER = "does its program call tf.train.Server?"


@dataclass
class Standstill:
    """What is known of one process. Times are monotonic seconds."""

    runs: int | None = None
    step: int | None = None
    since: float = 0.0

    def look(self, runs: int | None, step: int | None, now: float) -> float:
        """For how many seconds nothing has moved; 0 where that is not known. None is what nobody said this time."""
        if (runs is not None and runs != self.runs) or (self.runs is None and step is not None and step != self.step):
            self.since = now
        self.runs = self.runs if runs is None else runs
        self.step = self.step if step is None else step
        return now - self.since if self.runs or self.step else 0.0

    @property
    def words(self) -> str:
        if self.runs:
            return "its sessions run no step, though its server answers"
        return f"the global step stays at {self.step}"


def ended_server(plan: ClusterPlan, statuses: Statuses, now: float) -> tuple[str, float] | None:
    """(why, since when) nobody can train: a parameter server has ended by itself, and not with the training. It is
    asked for each task that trains."""
    if not any(job.stops_last and statuses.number(job.name, state.SUCCEEDED) for job in plan.jobs):
        return None
    for task in plan.tasks():
        status = statuses.get(task.name)
        if not task.job.stops_last or status is None or status.state != state.SUCCEEDED or status.exit is None:
            continue
        if not status.stop_why and now - status.exit.at >= SERVER_ENDED_S:
            return f"{task.name} {status.exit}: does its program call server.join()?", status.exit.at
    return None
