"""How a dtf task gets on, from its reports of the last minutes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TaskPace:
    """`runs` is the number of runs of its sessions so far, `idle_s` the time since that last changed, as far as it was
    watched. `runs_per_s` and `run_s`, the mean time of a run in seconds, are of the last half minute; None where none
    has ended in it. `saves` checkpoints of the last minutes took `save_s` seconds each, `save_part` of the time.
    `answer_s` is the shortest of its last answers to a question that needs no work, None before enough of them.
    `waits_s` has, by queue of this task, how long the operation that waits longest for an element has waited."""

    runs: int = 0
    idle_s: float = 0.0
    runs_per_s: float | None = None
    run_s: float | None = None
    saves: int = 0
    save_s: float = 0.0
    save_part: float = 0.0
    answer_s: float | None = None
    waits_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def outside_s(self) -> float | None:
        """Between two runs, outside of the session."""
        if not self.runs_per_s or self.run_s is None:
            return None
        return max(0.0, 1 / self.runs_per_s - self.run_s)
