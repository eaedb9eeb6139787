"""The history of a run: one value for each thing that happened. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Happening:
    """A line of the history: what happened to `task` ("" for the cluster), and why. `time` is the wall clock's. The
    store gives each an `id`, greater than that of all before."""

    time: float
    task: str
    what: str
    cause: str
    id: int = 0
