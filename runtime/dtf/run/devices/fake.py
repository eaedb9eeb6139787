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
import copy
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeVar, cast

import numpy as np

from dtf.run import kernels
from dtf.run.devices.backends import (
    FAKE_VARIABLE,
    DeviceArray,
    PhysicalDevice,
    Storage,
    register_backend,
    storage_of,
    unregister_backend,
)  # fmt: skip
from dtf.run.devices.host_memory import DEVICE, HOST, argument_names, memories
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs, Value
from dtf.run.kernels import DEAD, DEFAULT, Function, Kernel, KernelNode
from dtf.run.state.resources import ResourceHandle, ResourceManager, Variable
from dtf.run.value_types import Array
from dtf.wire import errors, opdef

__all__ = ["FakeArray", "FakeBackend", "fake_devices"]

_Resource = TypeVar("_Resource")

_MEMORY_BYTES = 1 << 30
_ONLY_ON_CPUS = frozenset(
    "audio candidate_sampling collective ctc data data_flow data_iterators image_files io logging lookup_table parsing "
    "ragged readers sets sparse_components sparse_cross sparse_messages staging string string_hashing string_pieces "
    "summary unicode".split()
)
"""Families whose ops have no kernels for accelerators in TensorFlow."""


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

    def load_kernels(self, op: str) -> None:
        """See `DeviceBackend`: the row is made of the CPU's."""
        found = kernels.rows(op)
        if found and found[-1].device_type != DEFAULT and _family(found[-1]) not in _ONLY_ON_CPUS:
            with self._lock:
                if not kernels.has_own_rows(op, self.device_type):
                    row = found[-1]._replace(factory=_on_device, device_type=self.device_type, priority=0, types=None)
                    kernels.register(op, row)


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


def _family(row: Kernel) -> str:
    return row.factory.__module__.rpartition(".")[2]


def _on_device(node: KernelNode) -> Function:
    """The CPU's function of a node, for arguments in the memory of the node's device."""
    row, function = kernels.bind(node)
    storage = storage_of(node.device)
    assert storage is not None
    op_def = node.op_def
    names = argument_names(node.op) if row.host is None else row.host
    inside = functools.partial(_inside, node, storage)
    wanted = memories(op_def.inputs, functools.partial(_types, node), names)
    given = memories(op_def.outputs, functools.partial(_types, node), names)

    def put_back(result: Outputs) -> Outputs:
        if isinstance(result, (tuple, list)):
            return [_outside(value, place, storage) for value, place in zip(result, given, strict=True)]
        return _outside(result, given[0], storage) if given else result

    def taken_out(inputs: Sequence[Value]) -> list[Value]:
        return [inside(value, place) for value, place in zip(inputs, wanted, strict=True)]

    if row.asynchronous:

        def begin(step: StepContext, done: Done[Outputs], *inputs: Value) -> None:
            def finish(value: Outputs = None, error: errors.OpError | None = None) -> None:
                done(error=error) if error is not None else done(put_back(value))

            function(_step_inside(step, storage), finish, *taken_out(inputs))

        return begin
    if row.stateful:
        return lambda step, *inputs: put_back(function(_step_inside(step, storage), *taken_out(inputs)))
    return lambda *inputs: put_back(function(*taken_out(inputs)))


def _types(node: KernelNode, argument: opdef.ArgDef) -> list[int]:
    """The DataTypes of the tensors of an argument."""
    if argument.type_list_attr is not None:
        return [dtype.as_datatype_enum for dtype in node.attrs[argument.type_list_attr]]
    dtype = argument.type if argument.type is not None else node.attrs[argument.type_attr or ""]
    count = 1 if argument.number_attr is None else node.attrs[argument.number_attr]
    return [dtype.as_datatype_enum] * count


def _inside(node: KernelNode, storage: Storage, value: Value, place: str) -> Value:
    """An argument as the CPU's function wants it.

    Raises:
      InternalError: the argument is not in the memory where the node wants it.
    """
    if isinstance(value, Variable):
        return _VariableInside(value, storage)
    if value is DEAD or place not in (HOST, DEVICE):
        return value
    held = value if isinstance(value, FakeArray) else None
    is_right = (held is None) == (place == HOST) and (held is None or held.index == storage.number)
    if not is_right:
        raise errors.InternalError.of(
            f"Node {node.name} ({node.op}) on {node.device} got {value!r}, which must be in the {place}'s memory."
        )
    return value if held is None else held._values


def _outside(value: Value, place: str, storage: Storage) -> Value:
    """A result of the CPU's function as others get it."""
    if isinstance(value, _VariableInside):
        return value.outside
    if value is DEAD or place != DEVICE or isinstance(value, Variable):
        return value
    return FakeArray(cast(Array, value), storage.backend.device_type, storage.number)


class _VariableInside(Variable):
    """A variable of a fake device as the CPU's kernels see it. An update in place is one of a copy."""

    __slots__ = ("_index", "_type", "outside")

    def __init__(self, outside: Variable, storage: Storage) -> None:
        self.outside = outside
        self.name, self.dtype, self.lock = outside.name, outside.dtype, outside.lock
        self.declared_shape, self.storage, self._watchers = outside.declared_shape, None, ()  # snapshots are the host's
        self._type, self._index = storage.backend.device_type, storage.number

    @property
    def _array(self) -> Array | None:
        held = self.outside._array
        return held._values if isinstance(held, FakeArray) else held

    @_array.setter
    def _array(self, values: Array | None) -> None:
        self.outside._array = None if values is None else FakeArray(values, self._type, self._index)

    @property
    def rows_touched(self) -> int:  # the host's variable counts
        return self.outside.rows_touched

    @rows_touched.setter
    def rows_touched(self, count: int) -> None:
        self.outside.rows_touched = count

    def _is_exclusive(self) -> bool:
        return False


class _ResourcesInside:
    """The resources of a task with their variables as the CPU's kernels see them."""

    def __init__(self, resources: ResourceManager, storage: Storage) -> None:
        self._resources = resources
        self._storage = storage

    def lookup(self, container: str, name: str, kind: type[_Resource]) -> _Resource | None:
        return self._shown(self._resources.lookup(container, name, kind))

    def get(self, handle: ResourceHandle, kind: type[_Resource]) -> _Resource:
        return self._shown(self._resources.get(handle, kind))

    def lookup_or_create(
        self, container: str, name: str, kind: type[_Resource], factory: Callable[[], _Resource]
    ) -> _Resource:
        return self._shown(self._resources.lookup_or_create(container, name, kind, factory))

    def __getattr__(self, name: str) -> object:
        return getattr(self._resources, name)

    def _shown(self, resource: _Resource) -> _Resource:
        if type(resource) is not Variable:
            return resource
        return cast(_Resource, _VariableInside(cast(Variable, resource), self._storage))


def _step_inside(step: StepContext, storage: Storage) -> StepContext:
    """The step as the CPU's kernels see it."""
    its_own = step.step_resources
    inside = copy.copy(step)
    inside._step_resources = its_own
    inside.resources = cast(ResourceManager, _ResourcesInside(step.resources, storage))
    return inside
