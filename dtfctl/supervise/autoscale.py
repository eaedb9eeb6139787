"""How many tasks a job with `autoscale` shall have: limits, hosts and measured steps in, a decision out. Pure.

A job grows by half as long as there is room on the hosts and each growth has paid: the steps per second of all its
tasks together have grown by at least a third of what as many more tasks could give. Growth that has not paid is taken
back, and tried again after a while, or when the room on the hosts has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dtfctl.values.plan import Autoscale

GAIN = 1 / 3
"""What growth must give at least: this part of a growth in proportion to the tasks."""

HOLD_S = 900.0
"""For how long growth that has not paid is not tried again."""

UNLIMITED = 1_000_000
"""Places on hosts without `slots`."""


@dataclass(frozen=True)
class Look:
    """What there is now: tasks of the job, how many the hosts that answer could have, and the steps per second of all
    its tasks together, None while that is not measured with this number of tasks."""

    replicas: int
    places: int
    steps_per_s: float | None
    now: float


@dataclass(frozen=True)
class Memory:
    """What was measured, by numbers of tasks, and what was decided for it. `ceiling` is the number beyond which growth
    has not paid (0: none yet), found out at `ceiling_at` when there were `ceiling_places`."""

    measured: Mapping[int, float] = field(default_factory=dict)
    grown_from: int = 0
    ceiling: int = 0
    ceiling_at: float = 0.0
    ceiling_places: int = 0


@dataclass(frozen=True)
class Decision:
    """The number of tasks from now on, and why."""

    replicas: int
    why: str


def decide(limits: Autoscale, look: Look, memory: Memory) -> tuple[Memory, Decision | None]:
    """The decision, None to leave the job as it is, and the memory for the next one."""
    has = f"{limits.job} has {_tasks(look.replicas)}"
    if look.replicas < limits.least:
        return Memory(), Decision(limits.least, f"{has}, at least {limits.least} are wanted")
    if look.replicas > limits.most:
        return Memory(), Decision(limits.most, f"{has}, at most {limits.most} are wanted")
    if look.steps_per_s is None:
        return memory, None
    memory = replace(memory, measured={**memory.measured, look.replicas: look.steps_per_s})
    rate = f"{look.steps_per_s:.3g} steps/s with {_tasks(look.replicas)}"
    before = memory.measured.get(memory.grown_from)
    if before is not None and memory.grown_from < look.replicas:
        fewer, growth = memory.grown_from, look.replicas / memory.grown_from
        if look.steps_per_s < before * (1 + GAIN * (growth - 1)):
            memory = Memory(ceiling=fewer, ceiling_at=look.now, ceiling_places=look.places)
            return memory, Decision(fewer, f"{rate}, {before:.3g} with {fewer}: more do not help")
    memory = replace(memory, grown_from=0)
    room = min(look.places, limits.most) - look.replicas
    is_known = look.now - memory.ceiling_at < HOLD_S and look.places == memory.ceiling_places
    if room <= 0 or (memory.ceiling and look.replicas >= memory.ceiling and is_known):
        return memory, None
    more = min(max(1, look.replicas // 2), room)
    if memory.ceiling and look.replicas < memory.ceiling and is_known:
        more = min(more, memory.ceiling - look.replicas)
    why = f"{rate}, and there is room for {room} more"
    return replace(memory, grown_from=look.replicas), Decision(look.replicas + more, why)


def _tasks(number: int) -> str:
    return f"{number} task{'' if number == 1 else 's'}"
