"""TorchBackend: CUDA's devices, or devices of torch's CPU tensors, for tests on any machine.

Owns what a device is to the runtime (memory, copies, waiting) and the words of its errors. Its arithmetic is in
`rows_of_*`. On CUDA devices kernels start on the current stream and return at once; only `copy_out` and `synchronize`
wait. Memory comes from torch's caching allocator, within the fraction that the first session's options allow.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
import torch

from dtf.run import kernels
from dtf.run.devices.backends import DeviceArray, PhysicalDevice
from dtf.run.devices.pytorch import rows
from dtf.run.devices.pytorch.arrays import TorchArray, holds_its_memory, to_numpy, to_tensor, torch_dtype
from dtf.run.devices.pytorch.setting import INSTALL, VARIABLE, Setting, read
from dtf.run.devices.through_host import row_through_host
from dtf.run.interfaces import Value
from dtf.run.value_types import Array
from dtf.wire import errors
from dtf.wire.limits import text_of

__all__ = ["TorchBackend", "from_environment"]

DEVICE_TYPE = "GPU"
_CPU_MEMORY_BYTES = 1 << 30
_HOSTED_PRIORITY = -10
"""Rows that compute on the host come after those of this room."""


def from_environment() -> TorchBackend | None:
    """The backend that `setting` asks for; None: this process has no GPUs.

    Raises:
      FailedPreconditionError: GPUs are asked for, and cannot be used.
    """
    setting = read()
    if setting is None:
        return None
    if setting.cpu_devices is not None:
        return TorchBackend(setting)
    if not torch.cuda.is_available():
        if setting.is_wanted:
            raise errors.FailedPreconditionError.of(why_not_cuda())
        rows.LOGGER.warning("%s", why_not_cuda())
        return None
    return TorchBackend(setting)


def why_not_cuda() -> str:
    """Why CUDA's devices cannot be used, in one line."""
    if torch.version.cuda is None:
        return f"{VARIABLE}: the installed PyTorch {torch.__version__} is built for CPUs only; reinstall it: {INSTALL}"
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        first = str(error).strip().splitlines()[0]
        return f"{VARIABLE}: CUDA {torch.version.cuda} cannot be used here: {first}"
    return f"{VARIABLE}: no CUDA-capable device is detected"


class TorchBackend:
    """A `backends.DeviceBackend`. Its lock guards the table of kernels and the accounts of CPU tensors."""

    device_type = DEVICE_TYPE

    def __init__(self, setting: Setting) -> None:
        """CUDA's devices, or those of CPU tensors that the setting says."""
        self._is_cpu = setting.cpu_devices is not None
        self._lock = threading.RLock()
        count = setting.cpu_devices if setting.cpu_devices is not None else torch.cuda.device_count()
        self._devices = [torch.device("cpu" if self._is_cpu else f"cuda:{number}") for number in range(count)]
        self._limit = setting.memory_bytes
        self._used = [0] * count
        self._physical = [self._described(number) for number in range(count)]

    def _described(self, number: int) -> PhysicalDevice:
        if self._is_cpu:
            return PhysicalDevice(self._limit or _CPU_MEMORY_BYTES, f"device: {number}, name: PyTorch on the CPU")
        properties = torch.cuda.get_device_properties(number)
        parts = [getattr(properties, f"pci_{part}_id", 0) for part in ("domain", "bus", "device")]
        bus = "{:04x}:{:02x}:{:02x}.0".format(*parts)
        return PhysicalDevice(
            int(properties.total_memory),
            f"device: {number}, name: {properties.name}, pci bus id: {bus}, "
            f"compute capability: {properties.major}.{properties.minor}",
        )

    def list_devices(self) -> Sequence[PhysicalDevice]:
        """See `DeviceBackend`."""
        return self._physical

    def allocate(self, index: int, shape: Sequence[int], dtype: np.dtype) -> TorchArray:
        """See `DeviceBackend`."""
        kind = torch_dtype(dtype)
        sizes = tuple(shape) if kind is not None else (*shape, dtype.itemsize)
        with self.out_of_memory(index, shape, dtype):
            tensor = torch.zeros(sizes, dtype=kind or torch.uint8, device=self._devices[index])
        return self.array(tensor, index, dtype)

    def copy_in(self, index: int, array: Array | DeviceArray) -> TorchArray:
        """See `DeviceBackend`."""
        if isinstance(array, TorchArray):
            with self.out_of_memory(index, array.shape, array.dtype):
                moved = array.tensor.clone() if self._is_cpu or array.number == index else None
                tensor = moved if moved is not None else array.tensor.to(self._devices[index], non_blocking=True)
            return self.array(tensor, index, array.dtype)
        values = np.asarray(cast(Array, array))
        with self.out_of_memory(index, values.shape, values.dtype):
            return self.array(to_tensor(values, self._devices[index]), index, values.dtype)

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        """See `DeviceBackend`."""
        assert isinstance(array, TorchArray)
        return to_numpy(array)

    def synchronize(self, index: int) -> None:
        """See `DeviceBackend`."""
        if not self._is_cpu:
            torch.cuda.synchronize(index)

    def owns_memory(self, array: DeviceArray) -> bool:
        """See `DeviceBackend`."""
        return isinstance(array, TorchArray) and holds_its_memory(array.tensor)

    def limit_memory(self, index: int, fraction: float) -> None:
        """See `DeviceBackend`. torch's allocator grows as it needs to, `allow_growth` or not."""
        if not self._is_cpu:
            torch.cuda.set_per_process_memory_fraction(fraction, index)

    def load_kernels(self, op: str) -> None:
        """See `DeviceBackend`: the rows of this room, and the one through the host's memory."""
        found = rows.rows_of(op, self)
        hosted = row_through_host(op, DEVICE_TYPE, self, _HOSTED_PRIORITY)
        with self._lock:
            if not kernels.has_own_rows(op, DEVICE_TYPE):
                for row in [*found, *([hosted] if hosted is not None else [])]:
                    kernels.register(op, row)

    # -- HostCopies

    def number_of(self, value: Value) -> int | None:
        """See `through_host.HostCopies`."""
        return value.number if isinstance(value, TorchArray) else None

    def taken_out(self, value: DeviceArray) -> np.ndarray:
        """See `through_host.HostCopies`."""
        return self.copy_out(value)

    def put_in(self, values: Array, number: int) -> TorchArray:
        """See `through_host.HostCopies`."""
        return self.copy_in(number, values)

    # -- for the rows

    def device(self, number: int) -> torch.device:
        """torch's name of a device."""
        return self._devices[number]

    @property
    def counts_memory(self) -> bool:
        """Whether arrays of CPU tensors are counted against a limit."""
        return self._limit is not None

    def array(self, tensor: torch.Tensor, number: int, dtype: np.dtype) -> TorchArray:
        """Around a new tensor.

        Raises:
          ResourceExhaustedError: the limit of a device of CPU tensors is exceeded.
        """
        if self._limit is not None:
            self._count(tensor, number, dtype)
        return TorchArray(tensor, number, dtype)

    def _count(self, tensor: torch.Tensor, number: int, dtype: np.dtype) -> None:
        amount = tensor.nbytes
        with self._lock:
            if self._limit is not None and self._used[number] + amount > self._limit:
                raise self._exhausted(number, tuple(tensor.shape), dtype)
            self._used[number] += amount
        weakref.finalize(tensor, self._forget, number, amount)

    def _forget(self, number: int, amount: int) -> None:
        with self._lock:
            self._used[number] -= amount

    @contextmanager
    def out_of_memory(self, number: int, shape: Sequence[int], dtype: np.dtype) -> Iterator[None]:
        """Gives torch's error of a full device TensorFlow's words."""
        try:
            yield
        except torch.OutOfMemoryError:
            raise self._exhausted(number, shape, dtype) from None

    def exhausted(self, number: int, error: torch.OutOfMemoryError) -> errors.OpError:
        """The error of a kernel that finds no room. PyTorch says how much it wanted, but not the shape."""
        words = str(error).split(".")
        amount = next((word.strip() for word in words if "Tried to allocate" in word), "")
        return errors.ResourceExhaustedError.of(
            f"OOM when allocating tensor on {DEVICE_TYPE}:{number} by allocator {_allocator(number)}. "
            f"{amount + '. ' if amount else ''}{self._what_lies_there(number)}"
        )

    def _exhausted(self, number: int, shape: Sequence[int], dtype: np.dtype) -> errors.OpError:
        return errors.ResourceExhaustedError.of(
            f"OOM when allocating tensor with shape[{','.join(map(str, shape))}] and type {dtype} on "
            f"{DEVICE_TYPE}:{number} by allocator {_allocator(number)}. {self._what_lies_there(number)}"
        )

    def _what_lies_there(self, number: int) -> str:
        if self._is_cpu:
            return f"{text_of(self._used[number])} of {text_of(self._physical[number].memory_bytes)} bytes are in use."
        free, total = torch.cuda.mem_get_info(number)
        return (
            f"This process holds {text_of(torch.cuda.memory_allocated(number))} in tensors and "
            f"{text_of(torch.cuda.memory_reserved(number))} in all; {text_of(free)} of {text_of(total)} bytes are free."
        )


def _allocator(number: int) -> str:
    return f"{DEVICE_TYPE}_{number}_bfc"
