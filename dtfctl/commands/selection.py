"""How tasks are spelled by a user: `worker:1`, `worker:0-3`, `worker:0,2`, a job (`ps`), a pattern (`'w*'`)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from dtfctl.errors import UnknownTask


def choose_tasks(names: Sequence[str], patterns: Iterable[str]) -> list[str]:
    """The names that fit, in their own order; all when no pattern is given. Raises UnknownTask for one that fits
    nothing."""
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = [name for name in names if _fits(name, pattern)]
        if not fitting:
            raise UnknownTask(f'no task is called "{pattern}" (tasks: {in_short(names)})')
        chosen.update(fitting)
    return [name for name in names if name in chosen] if chosen else list(names)


def in_short(names: Iterable[str]) -> str:
    """`ps:0, worker:0-2`, as they may be typed."""
    indices: dict[str, list[int]] = {}
    for name in names:
        job, _, index = name.rpartition(":")
        indices.setdefault(job, []).append(int(index))
    return ", ".join(f"{job}:{_ranges(sorted(found))}" for job, found in indices.items())


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _fits(name: str, pattern: str) -> bool:
    job, _, index = name.rpartition(":")
    if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(job, pattern):
        return True
    wanted_job, _, wanted = pattern.rpartition(":")
    return bool(wanted_job) and fnmatch.fnmatchcase(job, wanted_job) and _is_within(int(index), wanted)


def _is_within(index: int, ranges: str) -> bool:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal() and int(first) <= index <= int(last or first):
            return True
    return False
