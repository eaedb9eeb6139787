"""TorchArray: a value in a GPU's memory, and how values enter and leave it.

A TorchArray refuses to be numpy's, also where its tensor is one of the CPU: what misses a copy fails in tests, too.
Elements that torch does not know (8-bit floats, integers of 4 bits) are held as their bytes.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import torch

from dtf.run.value_types import Array
from dtf.wire import dtypes
from dtf.wire.dtypes import DType

__all__ = ["COMPUTED", "TorchArray", "dtype_of", "holds_its_memory", "to_numpy", "to_tensor", "torch_dtype"]

_TORCH = {
    "bool": torch.bool, "uint8": torch.uint8, "int8": torch.int8, "int16": torch.int16, "uint16": torch.uint16,
    "int32": torch.int32, "uint32": torch.uint32, "int64": torch.int64, "uint64": torch.uint64,
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
    "complex64": torch.complex64, "complex128": torch.complex128,
}  # fmt: skip
"""torch's dtypes by numpy's names."""
COMPUTED = frozenset(
    (
        dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
        dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
    )
)  # fmt: skip
"""The dtypes that torch computes with."""


class TorchArray:
    """An array on a device.

    Attributes:
      tensor: the values; only this room reads them.
      number: the backend's number of the device.
      dtype: numpy's dtype of the elements.
    """

    __slots__ = ("dtype", "number", "tensor")
    __array_ufunc__ = None

    def __init__(self, tensor: torch.Tensor, number: int, dtype: np.dtype) -> None:
        """Around a tensor, which is not copied."""
        self.tensor = tensor
        self.number = number
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        shape = tuple(self.tensor.shape)
        return shape if self.dtype.name in _TORCH else shape[:-1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.nbytes // self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return int(self.tensor.nbytes)

    def __repr__(self) -> str:
        return f"TorchArray(shape={self.shape}, dtype={self.dtype}, GPU:{self.number})"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"{self!r} is in a device's memory: nothing copied it to the host's, where this code reads it")

    __array__ = __bool__ = __len__ = __iter__ = __getitem__ = __float__ = __int__ = __index__ = _refuse
    __eq__ = _refuse
    __hash__ = object.__hash__


def torch_dtype(dtype: np.dtype) -> torch.dtype | None:
    """torch's dtype for numpy's; None: torch does not know the elements."""
    return _TORCH.get(dtype.name)


def dtype_of(dtype: DType) -> torch.dtype | None:
    """torch's dtype for a DType."""
    return torch_dtype(np.dtype(dtype.as_numpy_dtype))


def to_tensor(array: Array, device: torch.device) -> torch.Tensor:
    """A new tensor on a device, with the values of a numpy array or scalar."""
    is_cpu = device.type == "cpu"
    host = np.array(array, order="C", copy=True) if is_cpu else np.ascontiguousarray(array).reshape(np.shape(array))
    if host.dtype.name not in _TORCH:
        host = host[..., None].view(np.uint8)
    elif host.dtype.name == "bfloat16":
        return _moved(host.view(np.int16), device).view(torch.bfloat16)
    return _moved(host, device)


def _moved(host: np.ndarray, device: torch.device) -> torch.Tensor:
    if device.type == "cpu":
        return torch.from_numpy(host)
    if not host.flags.writeable:
        host = host.copy()  # torch warns of arrays that are not to be written to
    tensor = torch.from_numpy(host)
    return tensor.pin_memory().to(device, non_blocking=True) if host.nbytes >= _PINNED_FROM else tensor.to(device)


_PINNED_FROM = 1 << 16
"""Bytes, from which a copy from pinned memory, beside computation, is worth the copy into it."""


def to_numpy(array: TorchArray) -> np.ndarray:
    """A new numpy array with the values, when they have been computed."""
    tensor = array.tensor.detach()
    if array.dtype.name == "bfloat16":
        return _out(tensor.contiguous().view(torch.int16)).view(array.dtype)
    host = _out(tensor)
    return host if array.dtype.name in _TORCH else host.view(array.dtype)[..., 0]


def _out(tensor: torch.Tensor) -> np.ndarray:
    if tensor.is_cuda:
        return tensor.cpu().contiguous().numpy()
    host: np.ndarray = tensor.resolve_conj().numpy()
    return np.array(host, order="C", copy=True)


def holds_its_memory(tensor: torch.Tensor) -> bool:
    """Whether the tensor is all of its memory, and no other tensor shows it."""
    storage = tensor.untyped_storage()
    return (
        tensor.is_contiguous()
        and storage.nbytes() == tensor.nbytes
        and torch._C._storage_Use_Count(storage._cdata) == _ALONE
    )


_probe = torch.zeros(1)
_ALONE = torch._C._storage_Use_Count(_probe.untyped_storage()._cdata)
"""What the count is for memory of one tensor."""
del _probe
