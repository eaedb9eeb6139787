"""The CPU's kernels for nodes of another device: arguments are copied to the host's memory, results back.

Backends register such a row for an op that they do not compute themselves. Owns which families of ops have no kernel
for accelerators at all, how arguments and results cross, and how the CPU's kernels see variables of a device: an update
in place is one of a copy, which goes back to the device when the variable's lock is released.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, TypeVar, cast

import numpy as np

from dtf.run import kernels
from dtf.run.devices.backends import DeviceArray, Storage, storage_of
from dtf.run.devices.host_memory import DEVICE, HOST, argument_names, memories
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs, Value
from dtf.run.kernels import DEAD, DEFAULT, Function, Kernel, KernelNode
from dtf.run.state.resources import ResourceHandle, ResourceManager, Variable
from dtf.run.value_types import Array
from dtf.wire import errors, opdef

__all__ = ["HostCopies", "argument_types", "row_through_host"]

_Resource = TypeVar("_Resource")

_ONLY_ON_CPUS = frozenset(
    "audio candidate_sampling ctc data data_flow data_iterators image_files io logging lookup_table parsing "
    "ragged readers sets sparse_components sparse_cross sparse_messages staging string string_hashing string_pieces "
    "summary unicode".split()
)
"""Families whose ops have no kernels for accelerators in TensorFlow."""


class HostCopies(Protocol):
    """How arrays of a backend reach the CPU's kernels, and how their results become arrays of the backend."""

    def number_of(self, value: Value) -> int | None:
        """The device of an array of this backend; None: the value is something else."""

    def taken_out(self, value: DeviceArray) -> np.ndarray:
        """The values in the host's memory, which nobody modifies."""

    def put_in(self, values: Array, number: int) -> DeviceArray:
        """An array on a device, of values that nobody modifies from now on."""


def row_through_host(op: str, device_type: str, copies: HostCopies, priority: int = 0) -> Kernel | None:
    """The row that computes `op` on the host for nodes of a device type.

    Returns:
      None where TensorFlow has no kernel of `op` for accelerators, or where a row of DEFAULT serves all devices.
    """
    found = kernels.rows(op)
    if not found or found[-1].device_type == DEFAULT or _family(found[-1]) in _ONLY_ON_CPUS:
        return None
    factory = functools.partial(_through_host, copies)
    return found[-1]._replace(factory=factory, device_type=device_type, priority=priority, types=None)


def argument_types(node: KernelNode, argument: opdef.ArgDef) -> list[int]:
    """The DataTypes of the tensors of an argument."""
    if argument.type_list_attr is not None:
        return [dtype.as_datatype_enum for dtype in node.attrs[argument.type_list_attr]]
    dtype = argument.type if argument.type is not None else node.attrs[argument.type_attr or ""]
    count = 1 if argument.number_attr is None else node.attrs[argument.number_attr]
    return [dtype.as_datatype_enum] * count


def _family(row: Kernel) -> str:
    return row.factory.__module__.rpartition(".")[2]


def _through_host(copies: HostCopies, node: KernelNode) -> Function:
    """The CPU's function of a node, for arguments in the memory of the node's device."""
    row, function = kernels.bind(node)
    storage = storage_of(node.device)
    assert storage is not None
    op_def = node.op_def
    names = argument_names(node.op) if row.host is None else row.host
    inside = functools.partial(_inside, node, copies, storage)
    wanted = memories(op_def.inputs, functools.partial(argument_types, node), names)
    given = memories(op_def.outputs, functools.partial(argument_types, node), names)

    def put_back(result: Outputs) -> Outputs:
        if isinstance(result, (tuple, list)):
            return [_outside(value, place, copies, storage) for value, place in zip(result, given, strict=True)]
        return _outside(result, given[0], copies, storage) if given else result

    def taken_out(inputs: Sequence[Value]) -> list[Value]:
        return [inside(value, place) for value, place in zip(inputs, wanted, strict=True)]

    if row.asynchronous:

        def begin(step: StepContext, done: Done[Outputs], *inputs: Value) -> None:
            def finish(value: Outputs = None, error: errors.OpError | None = None) -> None:
                done(error=error) if error is not None else done(put_back(value))

            function(_step_inside(step, copies, storage), finish, *taken_out(inputs))

        return begin
    if row.stateful:
        return lambda step, *inputs: put_back(function(_step_inside(step, copies, storage), *taken_out(inputs)))
    return lambda *inputs: put_back(function(*taken_out(inputs)))


def _inside(node: KernelNode, copies: HostCopies, storage: Storage, value: Value, place: str) -> Value:
    """An argument as the CPU's function wants it.

    Raises:
      InternalError: the argument is not in the memory where the node wants it.
    """
    if isinstance(value, Variable):
        return _VariableInside(value, copies, storage)
    if value is DEAD or place not in (HOST, DEVICE):
        return value
    number = copies.number_of(value)
    if (number is None) != (place == HOST) or number not in (None, storage.number):
        raise errors.InternalError.of(
            f"Node {node.name} ({node.op}) on {node.device} got {value!r}, which must be in the {place}'s memory."
        )
    return value if number is None else copies.taken_out(cast(DeviceArray, value))


def _outside(value: Value, place: str, copies: HostCopies, storage: Storage) -> Value:
    """A result of the CPU's function as others get it."""
    if isinstance(value, _VariableInside):
        return value.outside
    if value is DEAD or place != DEVICE or isinstance(value, Variable):
        return value
    return copies.put_in(cast(Array, value), storage.number)


class _WritingLock:
    """A variable's lock, whose last release brings the changed value to the device."""

    def __init__(self, variable: _VariableInside) -> None:
        self._variable = variable
        self._depth = 0

    def acquire(self, blocking: bool = True) -> bool:
        taken = self._variable.outside.lock.acquire(blocking)
        self._depth += taken
        return taken

    def release(self) -> None:
        self._depth -= 1
        try:
            if not self._depth:
                self._variable.write_back()
        finally:
            self._variable.outside.lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class _VariableInside(Variable):
    """A variable of a device as the CPU's kernels see it."""

    __slots__ = ("_copies", "_held", "_is_changed", "_number", "outside")

    def __init__(self, outside: Variable, copies: HostCopies, storage: Storage) -> None:
        self.outside = outside
        self._copies, self._number = copies, storage.number
        self._held: Array | None = None
        self._is_changed = False
        self.name, self.dtype = outside.name, outside.dtype
        self.lock = _WritingLock(self)  # type: ignore[assignment]
        self.declared_shape, self.storage, self._watchers = outside.declared_shape, None, ()  # snapshots are the host's

    @property
    def is_initialized(self) -> bool:
        return self.outside.is_initialized

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        return self.outside.shape

    @property
    def _array(self) -> Array | None:
        if self._held is None and self.outside._array is not None:
            held = self.outside._array
            self._held = held if self._copies.number_of(held) is None else self._copies.taken_out(held)
        return self._held

    @_array.setter
    def _array(self, values: Array | None) -> None:
        self._held, self._is_changed = values, True

    def write_back(self) -> None:
        """Brings a changed value to the device, and forgets the copy. The lock is held."""
        if self._is_changed:
            held = self._held
            self.outside._array = None if held is None else self._copies.put_in(held, self._number)
        self._held, self._is_changed = None, False

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

    def __init__(self, resources: ResourceManager, copies: HostCopies, storage: Storage) -> None:
        self._resources = resources
        self._copies = copies
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
        return cast(_Resource, _VariableInside(cast(Variable, resource), self._copies, self._storage))


def _step_inside(step: StepContext, copies: HostCopies, storage: Storage) -> StepContext:
    """The step as the CPU's kernels see it."""
    its_own = step.step_resources
    inside = copy.copy(step)
    inside._step_resources = its_own
    inside.resources = cast(ResourceManager, _ResourcesInside(step.resources, copies, storage))
    return inside
