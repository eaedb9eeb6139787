"""Descriptions of values: `TensorSpec` and `SparseTensorSpec`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/TensorSpec
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = ["IndexedSlicesSpec", "SparseTensorSpec", "TensorSpec", "TypeSpec", "type_spec_from_value"]


class TypeSpec:
    """Base of the specs of all kinds of values."""


@dataclass(frozen=True, init=False)
class TensorSpec(TypeSpec):
    """The dtype, the known part of the shape, and optionally the name of a tensor."""

    shape: TensorShape
    dtype: DType
    name: str | None

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The known dtype and shape of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor or another description fits."""
        return self.dtype.is_compatible_with(other.dtype) and self.shape.is_compatible_with(other.shape)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


@dataclass(frozen=True, init=False)
class SparseTensorSpec(TypeSpec):
    """The dtype and the known part of the dense shape of a SparseTensor."""

    shape: TensorShape
    dtype: DType

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape}, {self.dtype!r})"


@dataclass(frozen=True, init=False)
class IndexedSlicesSpec(TypeSpec):
    """The dtypes and the known part of the dense shape of IndexedSlices."""

    shape: TensorShape
    dtype: DType
    indices_dtype: DType

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32, indices_dtype: Any = dtypes.int64) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "indices_dtype", as_dtype(indices_dtype))

    def __repr__(self) -> str:
        return f"IndexedSlicesSpec(shape={self.shape}, dtype={self.dtype!r}, indices_dtype={self.indices_dtype!r})"


def type_spec_from_value(value: Any) -> TypeSpec:
    """The description of a tensor, a SparseTensor or IndexedSlices.

    Raises:
      TypeError: it is none of these.
    """
    if hasattr(value, "dense_shape") and hasattr(value, "indices"):
        if getattr(value, "dense_shape", None) is not None and value.indices.shape.ndims == 2:
            return SparseTensorSpec(value.shape, value.dtype)
        return IndexedSlicesSpec(value.shape, value.dtype, value.indices.dtype)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return TensorSpec(value.shape, value.dtype)
    raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}")
