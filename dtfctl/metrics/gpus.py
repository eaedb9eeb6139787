"""How busy the GPUs of this machine are, by NVIDIA's own program. A machine without it has none to measure."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

TIMEOUT_S = 3.0
_COMMAND = ("nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
_MIB = 1 << 20


@dataclass(frozen=True)
class Gpu:
    """`busy` is the part of the last second in which the GPU computed, None where the card does not report it."""

    number: int
    busy: float | None
    used_bytes: int
    total_bytes: int


def measure() -> dict[int, Gpu]:
    """By number, as the driver counts them. Takes tens of milliseconds; at most TIMEOUT_S."""
    program = shutil.which(_COMMAND[0])
    if program is None:
        return {}
    try:
        done = subprocess.run(
            [program, *_COMMAND[1:]], capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return {}
    return {gpu.number: gpu for gpu in map(_gpu, done.stdout.splitlines()) if gpu is not None}


def _gpu(line: str) -> Gpu | None:
    """From "0, 37, 1024, 81559"; a value that the card does not report is "[N/A]"."""
    number, *values = [part.strip() for part in line.split(",")]
    if not number.isdigit() or len(values) != 3:
        return None
    busy, used, total = (int(value) if value.isdigit() else None for value in values)
    return Gpu(int(number), None if busy is None else busy / 100, (used or 0) * _MIB, (total or 0) * _MIB)
