"""The structures of datasets' elements, and the flat tensors that carry them.

An element is a tensor, a SparseTensor, a RaggedTensor, a dataset, or a tuple or dictionary of elements; a list is a
tensor. The *spec* of an element has the same structure, with a TensorSpec, SparseTensorSpec, RaggedTensorSpec or
DatasetSpec for each value. In a pipeline an element is a flat list of tensors: a SparseTensor is one variant vector of
three, a RaggedTensor and a dataset one variant scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dtf.build.apply import apply_op
from dtf.build.composite import Composite
from dtf.build.conversion import convert_to_tensor
from dtf.build.ragged_value import RaggedTensorValue
from dtf.build.sparse import SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dtf.wire import dtypes
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

_Kind = TypeVar("_Kind")

__all__ = [
    "DatasetSpec", "batched", "converted", "dataset_class", "flat_shapes", "flat_slices", "flat_tensors", "flat_types",
    "flatten_like", "has_composite", "legacy", "map_structure", "merged", "packed", "spec_of", "spec_of_legacy",
    "unbatched",
]  # fmt: skip


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset whose elements have this spec."""

    element_spec: Any
    shape: TensorShape = TensorShape([])
    dtype: DType = dtypes.variant


def dataset_class(kind: type[_Kind]) -> type[_Kind]:
    """Registers the decorated class as the class of datasets inside elements.

    It is called with a variant tensor and the spec of its elements.
    """
    global _dataset_class
    _dataset_class = kind
    return kind


def _dataset_class(tensor: Tensor, spec: Any) -> Any:
    raise AssertionError("no module that makes datasets is loaded")


# -- walking


def is_nested(structure: Any) -> bool:
    """Whether it is a tuple or dictionary; a list is a tensor."""
    return isinstance(structure, tuple | Mapping) and not isinstance(structure, SparseTensorValue)


def flatten(structure: Any) -> list[Any]:
    """The leaves in order; dictionaries by sorted keys."""
    if not is_nested(structure):
        return [structure]
    children = [structure[key] for key in sorted(structure)] if isinstance(structure, Mapping) else structure
    return [leaf for child in children for leaf in flatten(child)]


def pack(structure: Any, leaves: Sequence[Any]) -> Any:
    """The leaves in the form of `structure`."""
    given = iter(leaves)

    def build(part: Any) -> Any:
        if not is_nested(part):
            return next(given)
        if isinstance(part, Mapping):
            made = {key: build(part[key]) for key in sorted(part)}
            return type(part)((key, made[key]) for key in part)  # type: ignore[call-arg]
        children = [build(child) for child in part]
        return type(part)(*children) if hasattr(part, "_fields") else tuple(children)

    return build(structure)


def map_structure(function: Callable[..., Any], structure: Any) -> Any:
    """Applies `function` to each leaf; keeps the structure."""
    return pack(structure, [function(leaf) for leaf in flatten(structure)])


def same_structure(first: Any, second: Any) -> bool:
    """Whether two structures have one form, leaves aside."""
    if not is_nested(first) or not is_nested(second):
        return is_nested(first) == is_nested(second)
    if isinstance(first, Mapping) != isinstance(second, Mapping) or len(first) != len(second):
        return False
    if isinstance(first, Mapping):
        return set(first) == set(second) and all(same_structure(first[key], second[key]) for key in first)
    return all(map(same_structure, first, second))


# -- from values


def converted(value: Any) -> Any:
    """A structure of values as one of Tensors, SparseTensors and datasets."""
    return map_structure(_converted_leaf, value)


def _converted_leaf(value: Any) -> Any:
    if isinstance(value, SparseTensor) or _is_ragged(value) or _is_dataset(value):
        return value
    if isinstance(value, RaggedTensorValue):
        from dtf.build.ops.ragged_functions import RaggedTensor

        return RaggedTensor.from_nested_row_splits(value.flat_values, value.nested_row_splits, validate=False)
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return convert_to_tensor(value)


def _is_ragged(value: Any) -> bool:
    return isinstance(value, Composite) and hasattr(value, "nested_row_splits")


def _is_dataset(value: Any) -> bool:
    return hasattr(value, "_variant_tensor") and hasattr(value, "element_spec")


def spec_of(value: Any) -> Any:
    """The spec of a converted structure."""
    return map_structure(_leaf_spec, value)


def _leaf_spec(value: Any) -> Any:
    if isinstance(value, SparseTensor):
        return SparseTensorSpec(value.get_shape(), value.dtype)
    if _is_dataset(value):
        return DatasetSpec(value.element_spec)
    if _is_ragged(value):
        return RaggedTensorSpec(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)
    return TensorSpec(value.shape, value.dtype.base_dtype)


def flat_tensors(value: Any) -> list[Tensor]:
    """The flat tensors of a converted structure."""
    return [_flat_leaf(leaf, "SerializeSparse") for leaf in flatten(value)]


def flat_slices(value: Any) -> list[Tensor]:
    """The flat tensors whose rows are the flat tensors of the structure's rows."""
    return [_flat_leaf(leaf, "SerializeManySparse") for leaf in flatten(value)]


def _flat_leaf(leaf: Any, serialize: str) -> Tensor:
    if isinstance(leaf, SparseTensor):
        return apply_op(
            serialize,
            None,
            sparse_indices=leaf.indices,
            sparse_values=leaf.values,
            sparse_shape=leaf.dense_shape,
            out_type=dtypes.variant,
        )
    if _is_ragged(leaf):
        return apply_op(
            "RaggedTensorToVariant",
            None,
            rt_nested_splits=list(leaf.nested_row_splits),
            rt_dense_values=leaf.flat_values,
            batched_input=serialize == "SerializeManySparse",
        )
    return leaf._variant_tensor if _is_dataset(leaf) else leaf


# -- from specs

_IN_VARIANTS = (SparseTensorSpec, RaggedTensorSpec)


def flat_types(spec: Any) -> list[DType]:
    """The dtypes of the flat tensors."""
    return [dtypes.variant if isinstance(leaf, _IN_VARIANTS) else leaf.dtype for leaf in flatten(spec)]


def flat_shapes(spec: Any) -> list[TensorShape]:
    """Their static shapes."""
    return [TensorShape(None) if isinstance(leaf, _IN_VARIANTS) else leaf.shape for leaf in flatten(spec)]


def packed(spec: Any, tensors: Sequence[Tensor]) -> Any:
    """The structure of flat tensors."""
    leaves: list[Any] = []
    for leaf, tensor in zip(flatten(spec), tensors, strict=True):
        if isinstance(leaf, SparseTensorSpec):
            indices, values, shape = apply_op("DeserializeSparse", None, serialized_sparse=tensor, dtype=leaf.dtype)
            indices.set_shape([None, leaf.shape.ndims])
            shape.set_shape([leaf.shape.ndims])
            made = SparseTensor(indices, values, shape)
            made._partial_shape = leaf.shape
            leaves.append(made)
        elif isinstance(leaf, RaggedTensorSpec):
            leaves.append(_ragged(leaf, tensor))
        elif isinstance(leaf, DatasetSpec):
            leaves.append(_dataset_class(tensor, leaf.element_spec))
        else:
            tensor.set_shape(leaf.shape)
            leaves.append(tensor)
    return pack(spec, leaves)


def _ragged(spec: RaggedTensorSpec, tensor: Tensor) -> Any:
    """The RaggedTensor in a variant tensor, or in the rows of one; a Tensor without ragged dimensions."""
    from dtf.build.ops.ragged_functions import RaggedTensor

    splits, values = apply_op(
        "RaggedTensorFromVariant",
        None,
        encoded_ragged=tensor,
        input_ragged_rank=-1,
        output_ragged_rank=spec.ragged_rank,
        Tvalues=spec.dtype,
        Tsplits=spec.row_splits_dtype,
    )
    if spec.shape.ndims is not None:
        values.set_shape(TensorShape([None]).concatenate(spec.shape[spec.ragged_rank + 1 :]))
        if not spec.ragged_rank:
            values.set_shape(spec.shape)
    if not spec.ragged_rank:
        return values
    splits = splits if isinstance(splits, list) else [splits]
    rows = spec.shape.as_list()[0] if spec.shape.ndims is not None else None
    if rows is not None:
        splits[0].set_shape([rows + 1])
    return RaggedTensor.from_nested_row_splits(values, splits, validate=False)


def has_composite(spec: Any) -> bool:
    """Whether there is a SparseTensor or a RaggedTensor in it."""
    return any(isinstance(leaf, _IN_VARIANTS) for leaf in flatten(spec))


def _of_shape(leaf: Any, shape: TensorShape, more_dimensions: int = 0) -> Any:
    """The spec of a leaf, with another shape and as many ragged dimensions more."""
    if isinstance(leaf, RaggedTensorSpec):
        rank = leaf.ragged_rank + more_dimensions
        return RaggedTensorSpec(shape, leaf.dtype, max(0, rank), leaf.row_splits_dtype)
    return type(leaf)(shape, leaf.dtype)


def batched(spec: Any, size: int | None) -> Any:
    """The spec of batches."""

    def leaf(each: Any) -> Any:
        shape = TensorShape([size]).concatenate(each.shape)
        return _of_shape(each, shape, 1) if isinstance(each, _IN_VARIANTS) else TensorSpec(shape, each.dtype)

    return map_structure(leaf, spec)


def unbatched(spec: Any) -> Any:
    """The spec of the rows.

    Raises:
      ValueError: something has no rows.
    """

    def leaf(each: Any) -> Any:
        if each.shape.ndims == 0:
            raise ValueError("Cannot unbatch an input with scalar components.")
        shape = each.shape[1:] if each.shape.ndims is not None else TensorShape(None)
        return _of_shape(each, shape, -1)

    return map_structure(leaf, spec)


def merged(first: Any, second: Any) -> Any:
    """The spec of elements of either kind.

    Raises:
      TypeError: their structures or dtypes differ.
    """
    if not same_structure(first, second):
        raise TypeError(f"Incompatible dataset elements:\n  {first} vs.   {second}")
    leaves = []
    for one, other in zip(flatten(first), flatten(second), strict=True):
        if type(one) is not type(other) or one.dtype != other.dtype:
            raise TypeError(f"Incompatible dataset elements:\n  {one} vs.   {other}")
        if isinstance(one, DatasetSpec):
            leaves.append(one)
        else:
            leaves.append(_of_shape(one, one.shape.most_specific_compatible_shape(other.shape)))
    return pack(first, leaves)


# -- TensorFlow 1's three structures


def legacy(spec: Any) -> tuple[Any, Any, Any]:
    """output_types, output_shapes and output_classes of a spec."""

    def kind(leaf: Any) -> Any:
        return {TensorSpec: Tensor, SparseTensorSpec: SparseTensor}.get(type(leaf), leaf)

    return (
        map_structure(lambda leaf: leaf.dtype, spec),
        map_structure(lambda leaf: leaf.shape, spec),
        map_structure(kind, spec),
    )


def spec_of_legacy(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """The spec of these structures; shapes are unknown and all are Tensors where nothing is given.

    Raises:
      TypeError: the structures differ.
    """
    leaves = flatten(types)
    flat_shape: list[Any] = [None] * len(leaves)
    flat_class: list[Any] = [Tensor] * len(leaves)
    if shapes is not None:
        flat_shape = flatten_like(types, shapes, "output_shapes")
    if classes is not None:
        flat_class = flatten_like(types, classes, "output_classes")
    specs = [
        kind
        if isinstance(kind, DatasetSpec | RaggedTensorSpec)
        else SparseTensorSpec(shape, dtype)
        if kind is SparseTensor
        else TensorSpec(shape, dtype)
        for dtype, shape, kind in zip(leaves, flat_shape, flat_class, strict=True)
    ]
    return pack(types, specs)


def flatten_like(structure: Any, values: Any, name: str) -> list[Any]:
    """The leaves of `values` at the places of the leaves of `structure`; shapes may be tuples themselves."""
    if not is_nested(structure):
        return [values]
    if isinstance(structure, Mapping):
        if not isinstance(values, Mapping) or set(values) != set(structure):
            raise TypeError(f"`{name}` must have the structure of `output_types`: {values} and {structure}")
        pairs = [(structure[key], values[key]) for key in sorted(structure)]
    else:
        if not isinstance(values, tuple | list) or len(values) != len(structure):
            raise TypeError(f"`{name}` must have the structure of `output_types`: {values} and {structure}")
        pairs = list(zip(structure, values, strict=True))
    return [leaf for child, value in pairs for leaf in flatten_like(child, value, name)]
