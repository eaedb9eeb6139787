"""FakeBackend: accelerators made of numpy, which refuse to be numpy.

For tests on any machine. A `FakeArray` holds its values where nothing but this module reads them: whatever takes it for
a numpy array, because a copy is missing, fails at once. Copies are counted. The rows of the kernel table come from the
CPU's: each takes its arguments out of the device's memory, computes, and puts the results back. They check that every
argument is in the memory, and on the device, where the pass `copies` should have brought it.

    with fake_devices("GPU", 2) as gpus:
        ...
        assert gpus.copies_in == 1

`DTF_FAKE_DEVICES=GPU:2` in the environment does the same for all tasks of a process.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from dtf.run import kernels
from dtf.run.devices.backends import (
    FAKE_VARIABLE,
    DeviceArray,
    PhysicalDevice,
    register_backend,
    unregister_backend,
)  # fmt: skip
from dtf.run.devices.through_host import row_through_host
from dtf.run.interfaces import Value
from dtf.run.value_types import Array
from dtf.wire import errors

__all__ = ["FakeArray", "FakeBackend", "fake_devices"]

_MEMORY_BYTES = 1 << 30


class FakeArray:
    """An array in the memory of a fake device. Only this module looks inside; to all else it has a shape and a dtype.

    Attributes:
      device_type, index: the device.
    """

    __slots__ = ("_values", "device_type", "index")
    __array_ufunc__ = None

    def __init__(self, values: Array, device_type: str, index: int) -> None:
        """An array of `values`, a numpy array or scalar, which is not copied."""
        self._values: np.ndarray = values
        self.device_type = device_type
        self.index = index

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self._values.shape

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of the elements."""
        return self._values.dtype

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._values.nbytes

    def __repr__(self) -> str:
        return f"FakeArray(shape={self.shape}, dtype={self.dtype}, {self.device_type}:{self.index})"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"{self!r} is in a device's memory: nothing copied it to the host's, where this code reads it")

    __array__ = __bool__ = __len__ = __iter__ = __getitem__ = __float__ = __int__ = __index__ = _refuse
    __eq__ = _refuse
    __hash__ = object.__hash__


class FakeBackend:
    """A `backends.DeviceBackend` of fake devices. Its lock guards the counts.

    Attributes:
      copies_in: from the host's memory to a device's.
      copies_across: from one device's memory to another's.
      copies_out: to the host's.
      allocations: arrays of zeros.
    """

    def __init__(self, device_type: str = "GPU", count: int = 1) -> None:
        """A backend of `count` devices."""
        self.device_type = device_type
        self._count = count
        self._lock = threading.Lock()
        self.copies_in = self.copies_across = self.copies_out = self.allocations = 0

    @staticmethod
    def from_text(text: str) -> FakeBackend:
        """The backend that "GPU:2" stands for.

        Raises:
          InvalidArgumentError: the text is not a device type and a number.
        """
        device_type, _, count = text.partition(":")
        if not device_type.isidentifier() or not count.isdecimal() or device_type.upper() == "CPU":
            raise errors.InvalidArgumentError.of(f"{FAKE_VARIABLE} is {text!r}; it must be like GPU:2")
        return FakeBackend(device_type, int(count))

    @property
    def copies(self) -> tuple[int, int, int]:
        """How many copies went in, across and out so far."""
        with self._lock:
            return self.copies_in, self.copies_across, self.copies_out

    def list_devices(self) -> Sequence[PhysicalDevice]:
        """See `DeviceBackend`."""
        return [PhysicalDevice(_MEMORY_BYTES, f"device: {index}, name: Fake") for index in range(self._count)]

    def allocate(self, index: int, shape: Sequence[int], dtype: np.dtype) -> FakeArray:
        """See `DeviceBackend`."""
        with self._lock:
            self.allocations += 1
        return FakeArray(np.zeros(shape, dtype), self.device_type, index)

    def copy_in(self, index: int, array: Array | DeviceArray) -> FakeArray:
        """See `DeviceBackend`."""
        is_here = isinstance(array, FakeArray)
        with self._lock:
            self.copies_across += is_here
            self.copies_in += not is_here
        values = array._values if isinstance(array, FakeArray) else array
        return FakeArray(np.array(values), self.device_type, index)

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        """See `DeviceBackend`."""
        with self._lock:
            self.copies_out += 1
        assert isinstance(array, FakeArray)
        return np.array(array._values)

    def synchronize(self, index: int) -> None:
        """See `DeviceBackend`: everything is done when it is asked for."""

    def owns_memory(self, array: DeviceArray) -> bool:
        """See `DeviceBackend`: never, for the CPU's kernels return views."""
        return False

    def limit_memory(self, index: int, fraction: float) -> None:
        """See `DeviceBackend`: fake devices have no memory of their own."""

    def load_kernels(self, op: str) -> None:
        """See `DeviceBackend`: the row is made of the CPU's."""
        row = row_through_host(op, self.device_type, self)
        if row is not None:
            with self._lock:
                if not kernels.has_own_rows(op, self.device_type):
                    kernels.register(op, row)

    def number_of(self, value: Value) -> int | None:
        """See `through_host.HostCopies`."""
        return value.index if isinstance(value, FakeArray) else None

    def taken_out(self, value: DeviceArray) -> np.ndarray:
        """See `through_host.HostCopies`: the array itself, which is no copy."""
        assert isinstance(value, FakeArray)
        return value._values

    def put_in(self, values: Array, number: int) -> FakeArray:
        """See `through_host.HostCopies`: around the same values."""
        return FakeArray(values, self.device_type, number)


@contextlib.contextmanager
def fake_devices(device_type: str = "GPU", count: int = 1) -> Iterator[FakeBackend]:
    """A context in which new tasks and sessions of this process have fake devices; gives their backend."""
    backend = FakeBackend(device_type, count)
    register_backend(backend)
    try:
        yield backend
    finally:
        unregister_backend(device_type)
        kernels.forget(device_type)
