"""How a function of torch tensors becomes a row of the kernel table.

    @computes("Relu", "Relu6")
    def _(node):
        return torch.relu                       # from tensors to a tensor, or to a list of them

Inputs in the device's memory arrive as tensors, those in the host's (`host_memory`) as numpy arrays, variables as
themselves. Results get the dtype that the op's contract promises. What a function does not want it refuses: with
`Unsuited`, or with any error of torch's. The CPU's kernel computes it then, between two copies, and raises the error
in TensorFlow's words where the arguments are wrong. So a function checks only what torch would accept and compute
differently, and it must not have changed a variable when it refuses.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, cast

import numpy as np
import torch

from dtf.run.devices.backends import storage_of
from dtf.run.devices.host_memory import DEVICE, argument_names, memories
from dtf.run.devices.pytorch.arrays import COMPUTED, TorchArray, torch_dtype
from dtf.run.devices.through_host import HostCopies, argument_types, row_through_host
from dtf.run.interfaces import Outputs, Value
from dtf.run.kernels import Function, Kernel, KernelNode
from dtf.wire import dtypes, errors
from dtf.wire.dtypes import DType

__all__ = ["FLOATS", "LOGGER", "Factory", "Unsuited", "computed_ops", "computes", "device_of", "in_wide", "rows_of"]

LOGGER = logging.getLogger("dtf")
FLOATS = frozenset((dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64))

TensorFunction: TypeAlias = Callable[..., "torch.Tensor | Sequence[object] | object"]
Factory: TypeAlias = Callable[[KernelNode], TensorFunction]

_FAMILIES = "elementwise products convolutions images norms reductions shapes indices variables training loops".split()
_DEVICE_TYPE = "GPU"


class Unsuited(Exception):
    """The arguments of one call are for the CPU's kernel: to compute, or to refuse."""


class Backend(HostCopies, Protocol):
    """What the rows need of `backend.TorchBackend`."""

    @property
    def counts_memory(self) -> bool: ...

    def device(self, number: int) -> torch.device: ...

    def array(self, tensor: torch.Tensor, number: int, dtype: np.dtype) -> TorchArray: ...

    def exhausted(self, number: int, error: torch.OutOfMemoryError) -> errors.OpError: ...


class _Entry:
    """One function of this room, and how its row is called."""

    def __init__(
        self, factory: Factory, stateful: bool, types: dict[str, frozenset[DType]] | None, takes_arrays: bool
    ) -> None:
        self.factory, self.stateful, self.types, self.takes_arrays = factory, stateful, types, takes_arrays


_entries: dict[str, _Entry] = {}


def computes(
    *ops: str,
    stateful: bool = False,
    types: Iterable[DType] = COMPUTED,
    attr: str = "T",
    takes_arrays: bool = False,
) -> Callable[[Factory], Factory]:
    """Registers the decorated factory (node -> function of tensors) for `ops`.

    Args:
      ops: the op types.
      stateful: its functions get the StepContext first.
      types: the dtypes that the attribute `attr` may have.
      takes_arrays: its functions get and give TorchArrays: they keep values, and do not compute.
    """

    def add(factory: Factory) -> Factory:
        for op in ops:
            if op in _entries:
                raise ValueError(f"second function for {op!r}")
            _entries[op] = _Entry(factory, stateful, {attr: frozenset(types)} if attr else None, takes_arrays)
        return factory

    return add


def rows_of(op: str, backend: Backend) -> list[Kernel]:
    """The rows of `op` in this room."""
    _load()
    entry = _entries.get(op)
    if entry is None:
        return []
    return [
        Kernel(
            functools.partial(_bound, entry, backend), stateful=entry.stateful, device_type=_DEVICE_TYPE,
            types=entry.types, priority=0,
        )  # fmt: skip
    ]


def computed_ops() -> frozenset[str]:
    """The ops that this room computes itself."""
    _load()
    return frozenset(_entries)


def device_of(node: KernelNode) -> torch.device:
    """torch's device of a node, for functions that make tensors of nothing."""
    storage = storage_of(node.device)
    assert storage is not None
    return cast(Backend, storage.backend).device(storage.number)


def in_wide(tensor: torch.Tensor) -> torch.Tensor:
    """16-bit floats of the CPU as float32: torch has few kernels for them there."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) and not tensor.is_cuda else tensor


@functools.cache
def _load() -> None:
    for family in _FAMILIES:
        importlib.import_module(f"dtf.run.devices.pytorch.rows_of_{family}")


def _bound(entry: _Entry, backend: Backend, node: KernelNode) -> Function:
    """The kernel's function of a node: from TorchArrays to TorchArrays."""
    function = entry.factory(node)
    storage = storage_of(node.device)
    assert storage is not None
    number, op_def = storage.number, node.op_def
    types = functools.partial(argument_types, node)
    names = argument_names(node.op)
    outputs = [enum for argument in op_def.outputs for enum in types(argument)]
    made = [
        (np.dtype(dtypes.as_dtype(enum % 100).as_numpy_dtype) if place == DEVICE else None)
        for enum, place in zip(outputs, memories(op_def.outputs, types, names), strict=True)
    ]
    wanted = [(None if dtype is None else torch_dtype(dtype)) for dtype in made]
    hosted = functools.cache(lambda: _hosted(node, backend))
    refused = False

    def wrapped(value: Value, at: int) -> Value:
        dtype = made[at]
        if dtype is None or not isinstance(value, torch.Tensor):
            return value
        if value.dtype is not wanted[at]:
            value = value.to(wanted[at])
        if backend.counts_memory:
            return backend.array(value, number, dtype)
        return TorchArray(value, number, dtype)

    def put_back(result: object) -> Outputs:
        if isinstance(result, (list, tuple)):
            return [wrapped(value, at) for at, value in enumerate(result)]
        return wrapped(result, 0) if made else None

    def taken(value: Value) -> object:
        if type(value) is not TorchArray:
            return value
        if value.number != number:
            raise errors.InternalError.of(f"Node {node.name} ({node.op}) on {node.device} got {value!r}.")
        return value.tensor

    if entry.takes_arrays:
        return cast(Function, function)

    def run(*inputs: Value) -> Outputs:
        nonlocal refused
        if not refused:
            try:
                return put_back(function(*map(taken, inputs)))
            except torch.OutOfMemoryError as error:
                raise backend.exhausted(number, error) from None
            except NotImplementedError:
                refused = True
            except (Unsuited, RuntimeError, IndexError, ValueError, TypeError, OverflowError) as error:
                if _is_of_the_device(error):
                    raise
        return hosted()(*inputs)

    if not entry.stateful:
        return run
    return lambda step, *inputs: run(step, *inputs)


def _is_of_the_device(error: Exception) -> bool:
    """Whether the device itself has failed, so that no other kernel would help."""
    return type(error).__name__ == "AcceleratorError" or "CUDA error" in str(error)


def _hosted(node: KernelNode, backend: Backend) -> Function:
    row = row_through_host(node.op, _DEVICE_TYPE, backend)
    function = row.factory(node) if row is not None else None
    if function is None:
        raise errors.UnimplementedError.of(f"{node.op} is not computed for these arguments on GPUs.")
    return function
