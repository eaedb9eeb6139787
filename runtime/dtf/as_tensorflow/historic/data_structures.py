"""tensorflow.python.data.util.structure: the tensors that stand for elements of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import data_structure as _structure
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import NoneTensorSpec, TypeSpec, type_spec_from_value
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "NoneTensorSpec", "are_compatible", "convert_legacy_structure", "from_compatible_tensor_list", "from_tensor_list",
    "get_flat_tensor_shapes", "get_flat_tensor_specs", "get_flat_tensor_types", "normalize_element",
    "normalize_tensors", "to_batched_tensor_list", "to_tensor_list", "type_spec_from_value",
]  # fmt: skip

get_flat_tensor_types = _structure.flat_types
get_flat_tensor_shapes = _structure.flat_shapes


def get_flat_tensor_specs(element_spec: Any) -> list[Any]:
    """One TensorSpec for each tensor that stands for an element."""
    from dtf.build.tensor_spec import TensorSpec

    pairs = zip(get_flat_tensor_shapes(element_spec), get_flat_tensor_types(element_spec), strict=True)
    return [TensorSpec(shape, dtype) for shape, dtype in pairs]


def convert_legacy_structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    """The spec of elements from their types, shapes and classes.

    Raises:
      TypeError: a class is not one of an element's parts.
    """
    return _structure.spec_of_legacy(output_types, output_shapes, output_classes)


def are_compatible(spec1: Any, spec2: Any) -> bool:
    """Whether elements of the first spec are elements of the second."""
    if not _structure.same_structure(spec1, spec2):
        return False
    pairs = zip(_structure.flatten(spec1), _structure.flatten(spec2), strict=True)
    return all(one.is_compatible_with(other) for one, other in pairs)


def normalize_element(element: Any) -> Any:
    """The element with tensors in place of values."""
    return _structure.converted(element)


normalize_tensors = normalize_element


def to_tensor_list(element_spec: Any, element: Any) -> list[Tensor]:
    """The tensors that stand for one element.

    Raises:
      ValueError: the element nests differently, or a part does not fit its spec.
    """
    _check(element_spec, element)
    return _structure.flat_tensors(_structure.converted(element))


def to_batched_tensor_list(element_spec: Any, element: Any) -> list[Tensor]:
    """The tensors that stand for many elements, one row for each.

    Raises:
      ValueError: a part is a scalar, or does not fit its spec.
    """
    _check(element_spec, element)
    tensors = _structure.flat_slices(_structure.converted(element))
    if any(tensor.shape.ndims == 0 for tensor in tensors):
        raise ValueError("Unbatching a tensor is only supported for rank >= 1")
    return tensors


def from_tensor_list(element_spec: Any, tensor_list: Sequence[Tensor]) -> Any:
    """The element that tensors stand for.

    Raises:
      ValueError: their number, a dtype or a shape does not fit the spec.
    """
    types, shapes = get_flat_tensor_types(element_spec), get_flat_tensor_shapes(element_spec)
    if len(tensor_list) != len(types):
        raise ValueError(f"Expected {len(types)} tensors but got {len(tensor_list)}.")
    for tensor, dtype, shape in zip(tensor_list, types, shapes, strict=True):
        _check_tensor(tensor, dtype, shape)
    return from_compatible_tensor_list(element_spec, tensor_list)


def from_compatible_tensor_list(element_spec: Any, tensor_list: Sequence[Tensor]) -> Any:
    """As `from_tensor_list`, for tensors that are known to fit."""
    return _structure.packed(element_spec, [convert_to_tensor(each) for each in tensor_list])


def _check_tensor(tensor: Tensor, dtype: DType, shape: TensorShape) -> None:
    if tensor.dtype.base_dtype != dtype or not tensor.shape.is_compatible_with(shape):
        raise ValueError(
            f"Tensor {tensor.name} of type {tensor.dtype.name} and shape {tensor.shape} is not convertible to a "
            f"tensor of type {dtype.name} and shape {shape}."
        )


def _check(element_spec: Any, element: Any) -> None:
    given = _structure.spec_of(_structure.converted(element))
    if not _structure.same_structure(element_spec, given):
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {element_spec}\n\nSecond structure: {element}"
        )
    for want, have in zip(_structure.flatten(element_spec), _structure.flatten(given), strict=True):
        if isinstance(want, TypeSpec) and not want.is_compatible_with(have):
            raise ValueError(f"{have} is not compatible with the structure {want}")
