"""What tasks take of this machine: CPU and memory of all processes of each task's session, in one pass over /proc."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    """`cpu_s` is what the living processes have used so far; `memory_bytes` counts shared pages for each of them."""

    cpu_s: float = 0.0
    memory_bytes: int = 0
    processes: int = 0
    threads: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.cpu_s + other.cpu_s,
            self.memory_bytes + other.memory_bytes,
            self.processes + other.processes,
            self.threads + other.threads,
        )


def measure(pids: Collection[int]) -> dict[int, Usage]:
    """By the pid of the task's first process, which leads its session."""
    found: dict[int, Usage] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                # The command's name may contain anything.
                values = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        session = int(values[3])
        if session in pids:
            cpu_s = sum(map(int, values[11:15])) / _TICKS_PER_S
            usage = Usage(cpu_s, int(values[21]) * _PAGE_BYTES, 1, int(values[17]))
            found[session] = found.get(session, Usage()) + usage
    return found
