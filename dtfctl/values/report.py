"""What a dtf task reports of itself when it is asked: its counts since its start. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Traffic:
    """What went to (`direction` sent) or came from (received) a `peer`, a task's name or "callers", by a `way`: unix,
    tcp, memory, channel or grpc."""

    peer: str
    way: str
    direction: str
    messages: int
    bytes: int


@dataclass(frozen=True)
class Times:
    """How often something was done: `counts` by the report's bounds, the last beyond all; `total_s` seconds in all."""

    total_s: float = 0.0
    counts: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True)
class TaskReport:
    """`bounds_s` are the upper bounds of the classes of all Times. `calls` are calls by method, `runs` those of the
    process's sessions, `saves` its checkpoints, the last one at `saved_at` (wall clock, 0: none). `values` are present
    ones by kind and name: queue_elements, queue_waits_s (of the operation that waits longest for an element),
    calls_waiting, variable_bytes, rows_touched (by sparse updates so far). `answered_s` is how long the answer took."""

    bounds_s: tuple[float, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    calls: Mapping[str, Times] = field(default_factory=dict)
    runs: Times = Times()
    saves: Times = Times()
    saved_at: float = 0.0
    stale_updates: int = 0
    stale_sum: int = 0
    stale_max: int = 0
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    answered_s: float = 0.0
