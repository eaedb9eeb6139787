"""Descriptions of values: `TensorSpec` and its neighbours, one for each kind of value.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/TensorSpec
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dtf.build.sparse import IndexedSlices, IndexedSlicesValue, SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = [
    "IndexedSlicesSpec", "NoneTensorSpec", "OptionalSpec", "RaggedTensorSpec", "SparseTensorSpec", "TensorArraySpec",
    "TensorSpec", "TypeSpec", "type_spec_from_value",
]  # fmt: skip


class TypeSpec:
    """Base of the specs of all kinds of values: a description that values and other descriptions can fit."""

    @property
    def value_type(self) -> type:
        """The class of the described values."""
        raise NotImplementedError

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or a description of the same kind, fits this description."""
        spec = spec_or_value if isinstance(spec_or_value, TypeSpec) else _spec_or_none(spec_or_value)
        if type(spec) is not type(self):
            return False
        return all(
            _compatible(mine, getattr(spec, name)) for name, mine in vars(self).items() if name not in {"name"}
        )

    def is_subtype_of(self, other: TypeSpec) -> bool:
        """Whether each value that fits this description fits `other`."""
        if type(other) is not type(self):
            return False
        return all(
            _narrower(mine, getattr(other, name)) for name, mine in vars(self).items() if name not in {"name"}
        )

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """The narrowest description that values of both fit.

        Raises:
          ValueError: the two are of different kinds or dtypes.
        """
        if type(other) is not type(self):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        merged = copy.copy(self)
        for name, mine in vars(self).items():
            its = getattr(other, name)
            if isinstance(mine, TensorShape):
                object.__setattr__(merged, name, mine.most_specific_compatible_shape(its))
            elif mine != its and name != "name":
                raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return merged

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TypeSpec | None:
        """The narrowest description that this one and all others are subtypes of; None if there is no such."""
        merged: TypeSpec = self
        for other in others:
            try:
                merged = merged.most_specific_compatible_type(other)
            except ValueError:
                return None
        return merged


def _compatible(mine: Any, its: Any) -> bool:
    if isinstance(mine, (TensorShape, DType)):
        return mine.is_compatible_with(its)
    if isinstance(mine, TypeSpec):
        return mine.is_compatible_with(its)
    return bool(mine == its)


def _narrower(mine: Any, its: Any) -> bool:
    if isinstance(mine, TensorShape) and isinstance(its, TensorShape):
        if its.ndims is None:
            return True
        return mine.ndims == its.ndims and all(
            wide is None or wide == narrow for wide, narrow in zip(its.as_list(), mine.as_list(), strict=True)
        )
    return bool(mine == its)


def _spec_or_none(value: Any) -> TypeSpec | None:
    try:
        return type_spec_from_value(value)
    except TypeError:
        return None


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

    @property
    def value_type(self) -> type:
        """Tensor."""
        return Tensor

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The same description, of another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The known dtype and shape of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor or another description fits."""
        other = spec_or_tensor
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

    @property
    def value_type(self) -> type:
        """SparseTensor."""
        return SparseTensor

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """The known dtype and dense shape of a SparseTensor."""
        return cls(value.get_shape(), value.dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape}, {self.dtype!r})"


@dataclass(frozen=True, init=False)
class IndexedSlicesSpec(TypeSpec):
    """The dtypes and the known part of the dense shape of IndexedSlices."""

    shape: TensorShape
    dtype: DType
    indices_dtype: DType
    dense_shape_dtype: DType | None
    indices_shape: TensorShape

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None, indices_shape: Any = None,
    ) -> None:  # fmt: skip
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "indices_dtype", as_dtype(indices_dtype))
        kind = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        object.__setattr__(self, "dense_shape_dtype", kind)
        object.__setattr__(self, "indices_shape", as_shape(indices_shape).with_rank(1))

    @property
    def value_type(self) -> type:
        """IndexedSlices."""
        return IndexedSlices

    # TensorFlow's names of the parts, for its own unit tests.

    _shape = property(lambda self: self.shape)
    _values_dtype = property(lambda self: self.dtype)
    _indices_dtype = property(lambda self: self.indices_dtype)
    _dense_shape_dtype = property(lambda self: self.dense_shape_dtype)
    _indices_shape = property(lambda self: self.indices_shape)

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.indices_dtype, self.dense_shape_dtype, self.indices_shape

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        values = self.indices_shape.concatenate(self.shape[1:])
        specs = TensorSpec(values, self.dtype), TensorSpec(self.indices_shape, self.indices_dtype)
        if self.dense_shape_dtype is None:
            return specs
        return (*specs, TensorSpec([self.shape.ndims], self.dense_shape_dtype))

    def _to_components(self, value: IndexedSlices) -> tuple[Any, ...]:
        parts = value.values, value.indices
        return parts if value.dense_shape is None else (*parts, value.dense_shape)

    def _from_components(self, parts: Sequence[Any]) -> Any:
        kind = IndexedSlicesValue if all(isinstance(part, np.ndarray) for part in parts) else IndexedSlices
        return kind(parts[0], parts[1], parts[2] if len(parts) > 2 else None)

    def __repr__(self) -> str:
        return f"IndexedSlicesSpec(shape={self.shape}, dtype={self.dtype!r}, indices_dtype={self.indices_dtype!r})"


@dataclass(frozen=True, init=False)
class RaggedTensorSpec(TypeSpec):
    """The dtype, the known part of the shape and the number of ragged dimensions of a RaggedTensor."""

    shape: TensorShape
    dtype: DType
    ragged_rank: int
    row_splits_dtype: DType
    flat_values_spec: TypeSpec | None

    #: RaggedTensor; its module sets it, since this one is loaded without it.
    ragged_type: ClassVar[type] = object

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64, flat_values_spec: TypeSpec | None = None,
    ) -> None:  # fmt: skip
        shape = as_shape(shape)
        if as_dtype(row_splits_dtype) not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"row_splits_dtype must be int32 or int64, got {row_splits_dtype!r}")
        if ragged_rank is None:
            if shape.ndims is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = shape.ndims - 1
        elif not isinstance(ragged_rank, int):
            raise TypeError(f"ragged_rank must be an int. Received {ragged_rank}.")
        if shape.ndims is not None and ragged_rank >= shape.ndims:
            raise ValueError(f"ragged_rank must be less than rank. ragged_rank is {ragged_rank}, rank is {shape.ndims}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "ragged_rank", ragged_rank)
        object.__setattr__(self, "row_splits_dtype", as_dtype(row_splits_dtype))
        object.__setattr__(self, "flat_values_spec", flat_values_spec)

    @property
    def value_type(self) -> type:
        """RaggedTensor; Tensor without ragged dimensions."""
        return self.ragged_type if self.ragged_rank else Tensor

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The known dtype and shape of a RaggedTensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self.shape}, {self.dtype!r}, {self.ragged_rank}, {self.row_splits_dtype!r})"
        )


@dataclass(frozen=True, init=False)
class TensorArraySpec(TypeSpec):
    """The dtype and the known part of the elements' shape of a TensorArray."""

    element_shape: TensorShape
    dtype: DType
    dynamic_size: bool
    infer_shape: bool

    def __init__(
        self, element_shape: Any = None, dtype: Any = dtypes.float32, dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:  # fmt: skip
        object.__setattr__(self, "element_shape", as_shape(element_shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "dynamic_size", dynamic_size)
        object.__setattr__(self, "infer_shape", infer_shape)

    def __repr__(self) -> str:
        return (
            f"TensorArraySpec({self.element_shape}, {self.dtype!r}, {self.dynamic_size}, {self.infer_shape})"
        )


@dataclass(frozen=True)
class OptionalSpec(TypeSpec):
    """The description of a `tf.data.experimental.Optional` of elements of a description."""

    element_spec: Any


@dataclass(frozen=True)
class NoneTensorSpec(TypeSpec):
    """The description of None."""

    @property
    def value_type(self) -> type:
        """The type of None."""
        return type(None)


def type_spec_from_value(value: Any) -> TypeSpec:
    """The description of a tensor, a SparseTensor, IndexedSlices or a RaggedTensor.

    Raises:
      TypeError: it is none of these.
    """
    if value is None:
        return NoneTensorSpec()
    if hasattr(value, "nested_row_splits"):
        return RaggedTensorSpec.from_value(value)
    if hasattr(value, "dense_shape") and hasattr(value, "indices"):
        if getattr(value, "dense_shape", None) is not None and value.indices.shape.ndims == 2:
            return SparseTensorSpec(value.shape, value.dtype)
        return IndexedSlicesSpec(value.shape, value.dtype, value.indices.dtype)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return TensorSpec(value.shape, value.dtype)
    raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}")


@dataclass(frozen=True, init=False, eq=False)
class BoundedTensorSpec(TensorSpec):
    """A TensorSpec whose values have bounds.

    Args:
      shape, dtype, name: as of a TensorSpec.
      minimum, maximum: the bounds, inclusive; numbers or arrays that broadcast to the shape.

    Raises:
      ValueError: a bound does not broadcast to the shape.
    """

    minimum: np.ndarray
    maximum: np.ndarray

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None) -> None:
        super().__init__(shape, dtype, name)
        for word, value in (("minimum", minimum), ("maximum", maximum)):
            bound = np.array(value, dtype=self.dtype.as_numpy_dtype)
            if self.shape.is_fully_defined():
                try:
                    np.broadcast_to(bound, [size or 0 for size in self.shape.as_list()])
                except ValueError as error:
                    raise ValueError(
                        f"{word} is not compatible with shape. {word.capitalize()}: {bound}, shape: {self.shape}. "
                        f"Broadcasting error: {error}"
                    ) from None
            bound.setflags(write=False)
            object.__setattr__(self, word, bound)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """The same description; the whole range of the dtype where `spec` has no bounds."""
        minimum, maximum = getattr(spec, "minimum", spec.dtype.min), getattr(spec, "maximum", spec.dtype.max)
        return cls(spec.shape, spec.dtype, minimum, maximum, name or spec.name)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedTensorSpec)
            and (self.shape, self.dtype) == (other.shape, other.dtype)
            and np.allclose(self.minimum, other.minimum)
            and np.allclose(self.maximum, other.maximum)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedTensorSpec, (self.shape, self.dtype, self.minimum, self.maximum, self.name)

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r}, "
            f"minimum={self.minimum!r}, maximum={self.maximum!r})"
        )
