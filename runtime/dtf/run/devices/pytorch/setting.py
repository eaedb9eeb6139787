"""Which GPUs this process has: the environment's choice, or what the machine shows. Loads nothing heavy.

    DTF_GPU_BACKEND=torch-cpu:2          two GPUs whose arrays are torch's CPU tensors, for tests
    DTF_GPU_BACKEND=torch-cpu:2:64       the same, of 64 MiB each
    DTF_GPU_BACKEND=none                 no GPUs
    DTF_GPU_BACKEND=torch                CUDA's devices; an error where they cannot be used

Without the variable CUDA's devices are used where an NVIDIA driver and PyTorch are there.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import NamedTuple

from dtf.wire import errors

__all__ = ["INSTALL", "Setting", "VARIABLE", "driver_is_there", "read", "why_none"]

VARIABLE = "DTF_GPU_BACKEND"
INSTALL = "pip install 'dtf[gpu]'"

_DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""What Linux, containers and Windows' Linux show of a driver."""
_MIB = 1 << 20


class Setting(NamedTuple):
    """What the environment says.

    Attributes:
      cpu_devices: how many devices of CPU tensors; None: CUDA's devices.
      memory_bytes: of each device of CPU tensors.
      is_wanted: whether devices that cannot be used are an error.
    """

    cpu_devices: int | None = None
    memory_bytes: int | None = None
    is_wanted: bool = False


def read() -> Setting | None:
    """The setting of this process; None: no GPUs.

    Raises:
      InvalidArgumentError: the environment's words are not understood.
      FailedPreconditionError: GPUs are asked for, but PyTorch is not installed.
    """
    text = os.environ.get(VARIABLE, "")
    if text == "none":
        return None
    if text == "":
        return Setting() if _shows_devices() and _has_torch() else None
    kind, *numbers = text.split(":")
    is_cpu = kind == "torch-cpu" and 1 <= len(numbers) <= 2
    if not (is_cpu and all(number.isdecimal() for number in numbers)) and text != "torch":
        raise errors.InvalidArgumentError.of(f"{VARIABLE} is {text!r}; it must be torch, torch-cpu:2 or none")
    if not _has_torch():
        raise errors.FailedPreconditionError.of(
            f"{VARIABLE} is {text!r}, but PyTorch is not installed: {INSTALL}"
        )
    if text == "torch":
        return Setting(is_wanted=True)
    return Setting(int(numbers[0]), int(numbers[1]) * _MIB if len(numbers) > 1 else None, True)


def why_none() -> str:
    """Why this process has no GPUs, and what to do, where the machine has an NVIDIA driver; else ""."""
    if not driver_is_there() or os.environ.get(VARIABLE) == "none":
        return ""
    if not _shows_devices():
        return f"CUDA_VISIBLE_DEVICES is {os.environ['CUDA_VISIBLE_DEVICES']!r}, which hides the GPUs of this machine."
    if not _has_torch():
        return f"This machine has an NVIDIA driver, but GPUs need PyTorch: {INSTALL}"
    return f"{VARIABLE}=torch says why the GPUs of this machine cannot be used."


def driver_is_there() -> bool:
    """Whether this machine has an NVIDIA driver."""
    return any(path.exists() for path in _DRIVER)


def _shows_devices() -> bool:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() not in ("", "-1", "NoDevFiles") and driver_is_there()


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None
