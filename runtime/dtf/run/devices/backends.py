"""DeviceBackend: what a kind of device is to the runtime, and the backends that this process has.

Owns the Protocol, the table of backends by device type, and what a device's name says of its type. The CPU has no
backend: its arrays are numpy's, and nothing is looked up for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dtf.run.value_types import Array
from dtf.wire import errors, forks
from dtf.wire.device import DeviceSpec
from dtf.wire.text_cache import cached_by_text

__all__ = [
    "CPU", "FAKE_VARIABLE", "DeviceArray", "DeviceBackend", "PhysicalDevice", "Storage", "backend_of", "backends",
    "device_type_of", "has_accelerators", "number_devices", "register_backend", "storage_of", "unregister_backend",
    "why_none",
]  # fmt: skip

CPU = "CPU"
FAKE_VARIABLE = "DTF_FAKE_DEVICES"
"""The environment variable that gives every task fake devices: "GPU:2" for two of the type GPU (see `fake`)."""


class DeviceArray(Protocol):
    """A value in a device's memory. Nothing outside its backend looks into it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""


class PhysicalDevice(NamedTuple):
    """One device that a backend has found.

    Attributes:
      memory_bytes: how much memory it has.
      description: what `list_local_devices` says of it, such as "device: 0, name: Fake".
    """

    memory_bytes: int
    description: str = ""


class DeviceBackend(Protocol):
    """One type of device. Arrays are immutable once passed on, as numpy's are in this runtime. Thread-safe."""

    @property
    def device_type(self) -> str:
        """The type in device names, such as "GPU"."""

    def list_devices(self) -> Sequence[PhysicalDevice]:
        """The devices, in the order of their indices. The same at every call."""

    def allocate(self, index: int, shape: Sequence[int], dtype: np.dtype) -> DeviceArray:
        """An array of zeros on device `index`.

        Raises:
          ResourceExhaustedError: the device has no room for it.
        """

    def copy_in(self, index: int, array: Array | DeviceArray) -> DeviceArray:
        """A new array on device `index`.

        Args:
          index: of a device of this backend.
          array: a numpy array or scalar, or an array on any device of this backend. Its dtype is not a string's.

        Raises:
          ResourceExhaustedError: the device has no room for it.
        """

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        """A new numpy array with the values of an array of this backend, when they have been computed."""

    def synchronize(self, index: int) -> None:
        """Returns when all that was asked of device `index` has been done."""

    def owns_memory(self, array: DeviceArray) -> bool:
        """Whether no other array shows the memory of this one, so that who alone holds it may change it."""

    def limit_memory(self, index: int, fraction: float) -> None:
        """Lets this process take that part of the memory of device `index` only; 1 lifts the limit."""

    def load_kernels(self, op: str) -> None:
        """Registers the rows of `op` for this device type, if there are any: `kernels.register`. Called once or
        again, at the first node of that op on a device of this type.
        """


class Storage(NamedTuple):
    """Where a variable's value lies: the device `number` of a backend."""

    backend: DeviceBackend
    number: int


def register_backend(backend: DeviceBackend) -> None:
    """Adds a backend to this process. Tasks that are made from now on have its devices.

    Raises:
      ValueError: there is one of its device type, or it is the CPU's.
    """
    with _lock:
        found = _found()
        if backend.device_type == CPU or backend.device_type in found:
            raise ValueError(f"There is a backend of the device type {backend.device_type} already.")
        found[backend.device_type] = backend
    _forget_names()


def unregister_backend(device_type: str) -> None:
    """Removes a backend from this process, when its devices have done what they were asked for; sessions that use them
    must have been closed.
    """
    with _lock:
        backend = _found().pop(device_type, None)
        _numbers.pop(device_type, None)
    _forget_names()
    if backend is not None:
        for index in range(len(backend.list_devices())):
            backend.synchronize(index)


def number_devices(device_type: str, numbers: Sequence[int]) -> None:
    """Says which of a backend's devices are called 0, 1 ... in this process.

    Raises:
      AlreadyExistsError: one of these names stands for another device already: the runtime holds values by name.
    """
    with _lock:
        known = _numbers.setdefault(device_type, {})
        for index, number in enumerate(numbers):
            if known.get(index, number) != number:
                raise errors.AlreadyExistsError.of(
                    f"{device_type}:{index} is device {known[index]} in this process already and cannot be device "
                    f"{number}: give all sessions and servers of a process the same visible_device_list"
                )
        known.update(enumerate(numbers))
    _forget_names()


def backends() -> list[DeviceBackend]:
    """The backends of this process, in the order in which they were registered."""
    with _lock:
        return list(_found().values())


def backend_of(device_type: str) -> DeviceBackend | None:
    """The backend of a device type; None: this process has none, or it is the CPU."""
    return _found().get(device_type)


def has_accelerators() -> bool:
    """Whether this process has devices beside CPUs."""
    return bool(_found())


@cached_by_text(4096)
def device_type_of(device: str) -> str:
    """The type of a device, full, partial or "": that of its backend in this process, else CPU."""
    if not device:
        return CPU
    try:
        device_type = DeviceSpec.from_string(device).device_type
    except ValueError:  # a peer's; who places nodes refuses it
        return CPU
    return device_type if device_type is not None and backend_of(device_type) is not None else CPU


@cached_by_text(4096)
def storage_of(device: str) -> Storage | None:
    """Where variables on a device have their values; None: in the host's memory."""
    backend = backend_of(device_type_of(device))
    if backend is None:
        return None
    index = DeviceSpec.from_string(device).device_index or 0
    return Storage(backend, _numbers.get(backend.device_type, {}).get(index, index))


def _found() -> dict[str, DeviceBackend]:
    """By device type. What the environment names is looked up when the first one is asked for."""
    global _backends
    if _backends is None:
        made: dict[str, DeviceBackend] = {}
        for make in _FROM_ENVIRONMENT:
            backend = make()
            if backend is not None and backend.device_type not in made:
                made[backend.device_type] = backend
        _backends = made
    return _backends


def _fake() -> DeviceBackend | None:
    wanted = os.environ.get(FAKE_VARIABLE)
    if not wanted:
        return None
    from dtf.run.devices.fake import FakeBackend

    return FakeBackend.from_text(wanted)


def _torch() -> DeviceBackend | None:
    from dtf.run.devices.pytorch import setting

    if setting.read() is None:
        return None
    from dtf.run.devices.pytorch.backend import from_environment

    return from_environment()


def why_none(device_type: str) -> str:
    """Why this process has no devices of a type, and what to do; "" where the machine shows none."""
    if device_type != "GPU" or backend_of(device_type) is not None:
        return ""
    from dtf.run.devices.pytorch import setting

    return setting.why_none()


def _forget_names() -> None:
    device_type_of.cache_clear()
    storage_of.cache_clear()


_FROM_ENVIRONMENT: tuple[Callable[[], DeviceBackend | None], ...] = (_fake, _torch)
"""How the backends of a process are found; each gives None where it has no devices."""
_backends: dict[str, DeviceBackend] | None = None
_numbers: dict[str, dict[int, int]] = {}
"""By device type: the backend's number of each device that has a name."""
_lock = threading.RLock()


def _begin_anew() -> None:
    global _lock
    _lock = threading.RLock()


forks.in_child(_begin_anew)
