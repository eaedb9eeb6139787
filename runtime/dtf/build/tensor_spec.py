"""Descriptions of values: `TensorSpec` and `SparseTensorSpec`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/TensorSpec
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = ["SparseTensorSpec", "TensorSpec"]


@dataclass(frozen=True, init=False)
class TensorSpec:
    """The shape (as far as it is known) and the dtype of a tensor, and a name if it has one."""

    shape: TensorShape
    dtype: DType
    name: str | None

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """What is known of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor or another description fits."""
        return self.dtype.is_compatible_with(other.dtype) and self.shape.is_compatible_with(other.shape)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


@dataclass(frozen=True, init=False)
class SparseTensorSpec:
    """The dense shape (as far as it is known) and the dtype of a SparseTensor."""

    shape: TensorShape
    dtype: DType

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape}, {self.dtype!r})"
