"""The GPUs of this machine: which there are, how busy they are, and what the driver says against them.

NVIDIA's library (NVML) is asked where its Python package is installed, else the driver's program nvidia-smi. A machine
without a driver has none.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from dtfctl.values.snapshot import GpuUse

__all__ = ["Card", "Gpu", "cards", "measure", "uses"]

TIMEOUT_S = 3.0
_PROGRAM = "nvidia-smi"
_FIGURES = "index,utilization.gpu,memory.used,memory.total"
_INVENTORY = "index,name,uuid,driver_version,memory.total,mig.mode.current,ecc.errors.uncorrected.volatile.total"
_MIB = 1 << 20
_NVML = "pynvml"


@dataclass(frozen=True)
class Gpu:
    """`busy` is the part of the last second in which the GPU computed, None where the card does not report it."""

    number: int
    busy: float | None
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Card:
    """`is_split`: by MIG, into instances that programs name by their UUID. `memory_errors` are those of its memory that
    ECC could not correct since the driver was loaded; None where the card does not count them."""

    number: int
    name: str
    uuid: str
    driver: str
    total_bytes: int
    is_split: bool
    memory_errors: int | None


def measure() -> dict[int, Gpu]:
    """By number, as the driver counts them. Takes tens of milliseconds; at most TIMEOUT_S."""
    library = _library()
    if library is not None:
        return _measured_by(library)
    found = (_gpu(line) for line in _asked(_FIGURES)[0])
    return {gpu.number: gpu for gpu in found if gpu is not None}


def uses(own: Mapping[str, Sequence[int]]) -> dict[str, GpuUse]:
    """By task: how busy its GPUs are, and their memory.

    Args:
      own: the numbers of each task's GPUs on this machine.
    """
    there = measure() if own else {}
    found = {}
    for name, numbers in own.items():
        chosen = [there[number] for number in numbers if number in there]
        known = [gpu.busy for gpu in chosen if gpu.busy is not None]
        if chosen:
            found[name] = GpuUse(
                tuple(gpu.number for gpu in chosen),
                sum(known) / len(known) if known else None,
                sum(gpu.used_bytes for gpu in chosen),
                sum(gpu.total_bytes for gpu in chosen),
            )
    return found


def cards() -> tuple[list[Card], str]:
    """The cards, and why they cannot be asked ("" where they can, or where there is no driver)."""
    lines, complaint = _asked(_INVENTORY)
    return [card for card in map(_card, lines) if card is not None], complaint


def _asked(fields: str) -> tuple[list[str], str]:
    """The lines of nvidia-smi, and its complaint."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return [], ""
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return [], f"{_PROGRAM} did not answer within {TIMEOUT_S:g} s"
    except (OSError, UnicodeDecodeError) as error:
        return [], f"{_PROGRAM} cannot be run: {error}"
    lines = done.stdout.splitlines()
    words = [line.strip() for line in (*done.stderr.splitlines(), *lines) if line.strip()]
    return lines, (words[0] if words else f"{_PROGRAM} ended with {done.returncode}") if done.returncode else ""


def _gpu(line: str) -> Gpu | None:
    """From "0, 37, 1024, 81559"; a value that the card does not report is "[N/A]"."""
    number, *values = [part.strip() for part in line.split(",")]
    if not number.isdigit() or len(values) != 3:
        return None
    busy, used, total = (int(value) if value.isdigit() else None for value in values)
    return Gpu(int(number), None if busy is None else busy / 100, (used or 0) * _MIB, (total or 0) * _MIB)


def _card(line: str) -> Card | None:
    """From "0, NVIDIA H100, GPU-..., 550.54, 81559, Disabled, 0"."""
    number, *values = [part.strip() for part in line.split(",")]
    if not number.isdigit() or len(values) != 6:
        return None
    name, uuid, driver, total, mig, errors = values
    memory = int(total) * _MIB if total.isdigit() else 0
    return Card(
        int(number), name, uuid, driver, memory, mig == "Enabled", int(errors) if errors.isdigit() else None
    )


def _library() -> ModuleType | None:
    """NVML, ready to be asked; None: its package or the driver's library is not there."""
    if importlib.util.find_spec(_NVML) is None:
        return None
    library = importlib.import_module(_NVML)
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    return library


def _measured_by(library: ModuleType) -> dict[int, Gpu]:
    found: dict[int, Gpu] = {}
    for number in range(library.nvmlDeviceGetCount()):
        try:
            handle = library.nvmlDeviceGetHandleByIndex(number)
            memory = library.nvmlDeviceGetMemoryInfo(handle)
        except library.NVMLError:  # it has fallen off the bus
            continue
        try:
            busy = library.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        except library.NVMLError:  # a card that is split by MIG does not report it
            busy = None
        found[number] = Gpu(number, busy, int(memory.used), int(memory.total))
    return found
