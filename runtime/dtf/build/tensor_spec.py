"""Descriptions of values: `TensorSpec` and its neighbours, one for each kind of value.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/TensorSpec
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from dtf.build import nest
from dtf.build.sparse import IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import Dimension, TensorShape, as_shape

__all__ = [
    "BatchableTypeSpec", "IndexedSlicesSpec", "NoneTensorSpec", "OptionalSpec", "RaggedTensorSpec",
    "SparseTensorSpec", "TensorArraySpec", "TensorSpec", "TypeSpec", "register_type_spec_from_value_converter",
    "type_spec_from_value",
]  # fmt: skip


class TypeSpec:
    """Base of the specs of all kinds of values: a description that values and other descriptions can fit.

    A program's own kind of values has a subclass that gives `value_type`, `_serialize` (what makes the spec again),
    `_component_specs`, `_to_components` and `_from_components`.
    """

    @property
    def value_type(self) -> type:
        """The class of the described values."""
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or a description of the same kind, fits this description."""
        spec = spec_or_value if isinstance(spec_or_value, TypeSpec) else _spec_or_none(spec_or_value)
        return type(spec) is type(self) and _compatible(self._compared(), spec._compared())

    def is_subtype_of(self, other: TypeSpec) -> bool:
        """Whether each value that fits this description fits `other`."""
        return type(other) is type(self) and _narrower(self._compared(), other._compared())

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """The narrowest description that values of both fit.

        Raises:
          ValueError: the two are of different kinds or dtypes.
        """
        try:
            if type(other) is not type(self):
                raise ValueError
            merged = _merged(self._compared(), other._compared())
        except ValueError:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}") from None
        return self._of_compared(merged)

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TypeSpec | None:
        """The narrowest description that this one and all others are subtypes of; None if there is no such."""
        merged: TypeSpec = self
        for other in others:
            try:
                merged = merged.most_specific_compatible_type(other)
            except ValueError:
                return None
        return merged

    def _compared(self) -> Any:
        """What tells this description from others of its kind."""
        return self._serialize()

    def _of_compared(self, parts: Any) -> TypeSpec:
        return self._deserialize(parts)

    # TensorFlow's names of the parts: for programs with kinds of values of their own, and for its own unit tests.

    def _serialize(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._serialize()")

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        return cls(*serialization)

    @property
    def _component_specs(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._component_specs()")

    def _to_components(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_components()")

    def _from_components(self, components: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._from_components()")

    @property
    def _flat_tensor_specs(self) -> list[TypeSpec]:
        return _flat_specs(self._component_specs)

    def _to_tensor_list(self, value: Any) -> list[Any]:
        parts = self._to_components(value)
        flat: list[Any] = []
        for spec, part in zip(nest.flatten(self._component_specs), nest.flatten(parts), strict=True):
            flat += [part] if isinstance(spec, TensorSpec) else spec._to_tensor_list(part)
        return flat

    def _from_compatible_tensor_list(self, tensors: Sequence[Any]) -> Any:
        left = list(tensors)
        parts = []
        for spec in nest.flatten(self._component_specs):
            count = len(spec._flat_tensor_specs)
            own, left = left[:count], left[count:]
            parts.append(own[0] if isinstance(spec, TensorSpec) else spec._from_compatible_tensor_list(own))
        return self._from_components(nest.pack_sequence_as(self._component_specs, parts))

    def _from_tensor_list(self, tensors: Sequence[Any]) -> Any:
        specs = self._flat_tensor_specs
        if len(specs) != len(tensors):
            raise ValueError(f"Incompatible input: expected {len(specs)} tensors, got {len(tensors)}")
        for spec, tensor in zip(specs, tensors, strict=True):
            if not spec.is_compatible_with(tensor):
                raise ValueError(f"Incompatible input: {tensor} is not compatible with {spec}")
        return self._from_compatible_tensor_list(tensors)

    def _to_legacy_output_types(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_types()")

    def _to_legacy_output_shapes(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_shapes()")

    def _to_legacy_output_classes(self) -> Any:
        return self.value_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _key(self._compared()) == _key(other._compared())

    def __hash__(self) -> int:
        return hash((type(self).__name__, _key(self._compared())))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._deserialize, (self._serialize(),)


class BatchableTypeSpec(TypeSpec):
    """Base of the specs of values that can be stacked."""

    def _batch(self, batch_size: int | None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._batch")

    def _unbatch(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._unbatch")


class _Fields(BatchableTypeSpec):
    """A spec that is a frozen dataclass: its fields are compared, but for its name."""

    def _compared(self) -> Any:
        return {name: value for name, value in vars(self).items() if name != "name"}

    def _of_compared(self, parts: Any) -> TypeSpec:
        merged = copy.copy(self)
        for name, value in parts.items():
            object.__setattr__(merged, name, value)
        return merged

    def _serialize(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())

    def _with_shape(self, shape: TensorShape) -> Any:
        return self._of_compared({"shape": shape})

    def _batch(self, batch_size: int | None) -> Any:
        return self._with_shape(TensorShape([batch_size]).concatenate(self.__dict__["shape"]))

    def _unbatch(self) -> Any:
        return self._with_shape(self.__dict__["shape"][1:])

    def _to_legacy_output_types(self) -> Any:
        return self.__dict__["dtype"]

    def _to_legacy_output_shapes(self) -> Any:
        return self.__dict__["shape"]


def _flat_specs(specs: Any) -> list[TypeSpec]:
    flat: list[TypeSpec] = []
    for spec in nest.flatten(specs):
        flat += [spec] if isinstance(spec, TensorSpec) else spec._flat_tensor_specs
    return flat


def _compatible(mine: Any, its: Any) -> bool:
    if isinstance(mine, TensorShape | DType | TypeSpec):
        return bool(mine.is_compatible_with(its))
    return _all_of(_compatible, mine, its)


def _narrower(mine: Any, its: Any) -> bool:
    if isinstance(mine, TensorShape) and isinstance(its, TensorShape):
        if its.ndims is None:
            return True
        return mine.ndims == its.ndims and all(
            wide is None or wide == narrow for wide, narrow in zip(its.as_list(), mine.as_list(), strict=True)
        )
    if isinstance(mine, TypeSpec) and isinstance(its, TypeSpec):
        return mine.is_subtype_of(its)
    return _all_of(_narrower, mine, its)


def _all_of(relation: Callable[[Any, Any], bool], mine: Any, its: Any) -> bool:
    """Whether the relation holds of all parts."""
    if type(mine) is not type(its):
        return bool(mine == its)
    if isinstance(mine, list | tuple):
        return len(mine) == len(its) and all(map(relation, mine, its))
    if isinstance(mine, dict):
        return mine.keys() == its.keys() and all(relation(mine[name], its[name]) for name in mine)
    return bool(np.all(mine == its))


def _merged(mine: Any, its: Any) -> Any:
    """The narrowest parts that both are. Raises ValueError when there are none."""
    if type(mine) is not type(its):
        raise ValueError
    if isinstance(mine, TensorShape):
        return mine.most_specific_compatible_shape(its)
    if isinstance(mine, TypeSpec):
        return mine.most_specific_compatible_type(its)
    if isinstance(mine, list | tuple) and len(mine) == len(its):
        return type(mine)([_merged(*pair) for pair in zip(mine, its, strict=True)])
    if isinstance(mine, dict) and mine.keys() == its.keys():
        return {name: _merged(mine[name], its[name]) for name in mine}
    if not np.all(mine == its):
        raise ValueError
    return mine


def _key(parts: Any) -> Any:
    """Parts as what can be hashed."""
    if isinstance(parts, list | tuple):
        return (type(parts).__name__, *map(_key, parts))
    if isinstance(parts, dict):
        return ("dict", *((name, _key(parts[name])) for name in sorted(parts)))
    if isinstance(parts, TensorShape):
        return ("shape", None if parts.ndims is None else tuple(parts.as_list()))
    if isinstance(parts, np.ndarray):
        return ("array", parts.shape, tuple(parts.ravel().tolist()))
    return parts


def _spec_or_none(value: Any) -> TypeSpec | None:
    try:
        return type_spec_from_value(value)
    except TypeError:
        return None


@dataclass(frozen=True, init=False)
class TensorSpec(_Fields):
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

    def _with_shape(self, shape: TensorShape) -> TensorSpec:
        return TensorSpec(shape, self.dtype)

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> Any:
        return value

    def _from_components(self, components: Any) -> Any:
        return components

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


@dataclass(frozen=True, init=False)
class SparseTensorSpec(_Fields):
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

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rank = self.shape.ndims
        return [
            TensorSpec([None, rank], dtypes.int64), TensorSpec([None], self.dtype), TensorSpec([rank], dtypes.int64)
        ]  # fmt: skip

    def _to_components(self, value: SparseTensor) -> list[Any]:
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: Sequence[Any]) -> Any:
        kind = SparseTensorValue if all(isinstance(part, np.ndarray) for part in components) else SparseTensor
        return kind(*components)

    @property
    def _flat_tensor_specs(self) -> list[TypeSpec]:
        return [TensorSpec(None, dtypes.variant)]

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"


@dataclass(frozen=True, init=False)
class IndexedSlicesSpec(_Fields):
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
        return f"IndexedSlicesSpec{self._serialize()!r}"


@dataclass(frozen=True, init=False)
class RaggedTensorSpec(_Fields):
    """The dtype, the known part of the shape and the number of ragged dimensions of a RaggedTensor."""

    shape: TensorShape
    dtype: DType
    ragged_rank: int
    row_splits_dtype: DType
    flat_values_spec: TypeSpec | None

    #: RaggedTensor; its module sets it, since this one is loaded without it.
    ragged_type: ClassVar[Any] = object

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
        return cast(type, self.ragged_type) if self.ragged_rank else Tensor

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The known dtype and shape of a RaggedTensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype

    def _batch(self, batch_size: int | None) -> RaggedTensorSpec:
        shape = TensorShape([batch_size]).concatenate(self.shape)
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank + 1, self.row_splits_dtype)

    def _unbatch(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape[1:], self.dtype, self.ragged_rank - 1, self.row_splits_dtype)

    def _to_legacy_output_classes(self) -> Any:
        return self

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rows = self.shape[0] if self.shape.ndims else Dimension(None)
        inner = self.shape[self.ragged_rank + 1 :]
        flat = self.shape if not self.ragged_rank else TensorShape([None]).concatenate(inner)
        outer = [TensorSpec([rows + 1], self.row_splits_dtype)] if self.ragged_rank else []
        others = [TensorSpec([None], self.row_splits_dtype)] * (self.ragged_rank - 1)
        return [TensorSpec(flat, self.dtype), *outer, *others]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.flat_values, *value.nested_row_splits] if self.ragged_rank else [value]

    def _from_components(self, components: Sequence[Any]) -> Any:
        flat, *splits = components
        return self.ragged_type.from_nested_row_splits(flat, splits, validate=False) if splits else flat

    @property
    def _flat_tensor_specs(self) -> list[TypeSpec]:
        return [TensorSpec(None, dtypes.variant)]

    def __repr__(self) -> str:
        return f"RaggedTensorSpec{self._serialize()!r}"


@dataclass(frozen=True, init=False)
class TensorArraySpec(_Fields):
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
class OptionalSpec(_Fields):
    """The description of a `tf.data.experimental.Optional` of elements of a description."""

    element_spec: Any


@dataclass(frozen=True)
class NoneTensorSpec(_Fields):
    """The description of None."""

    @property
    def value_type(self) -> type:
        """The type of None."""
        return type(None)


_converters: dict[type, Callable[[Any], TypeSpec]] = {}


def register_type_spec_from_value_converter(
    type_object: type, converter_fn: Callable[[Any], TypeSpec], allow_subclass: bool = False
) -> None:
    """Gives the values of a class a description.

    Args:
      type_object: the class.
      converter_fn: makes the description of a value.
      allow_subclass: whether it describes values of subclasses, too.
    """
    if allow_subclass:
        _converters[type_object] = converter_fn
        return

    def of_the_class(value: Any) -> TypeSpec:
        if type(value) is not type_object:
            raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}")
        return converter_fn(value)

    _converters[type_object] = of_the_class


def type_spec_from_value(value: Any) -> TypeSpec:
    """The description of a tensor, a SparseTensor, IndexedSlices or a RaggedTensor.

    Raises:
      TypeError: it is none of these.
    """
    for kind in type(value).__mro__:
        convert = _converters.get(kind)
        if convert is not None:
            return convert(value)
    if value is None:
        return NoneTensorSpec()
    spec = getattr(value, "_type_spec", None)
    if isinstance(spec, TypeSpec):
        return spec
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
