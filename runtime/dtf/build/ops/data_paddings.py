"""Shapes and values of padded batches: an argument of `Dataset.padded_batch` at the place of each component."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import data_structure as structure
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, as_shape, unknown_shape

__all__ = ["fits", "like", "padded_shape", "padding", "shape_tensor", "sizes"]


def like(spec: Any, values: Any) -> list[Any]:
    """A value for each leaf of `spec`; a value alone goes to all of them if they are several."""
    if structure.is_nested(spec) and not structure.is_nested(values) and not isinstance(values, list):
        return [values] * len(structure.flatten(spec))
    return structure.flatten_like(spec, values, "padded_shapes and padding_values")


def padded_shape(shape: Any) -> Any:
    """A tensor as it is, anything else as a TensorShape, in which -1 is a size that is not known."""
    if isinstance(shape, Tensor):
        return shape
    if isinstance(shape, (list, tuple, np.ndarray)):
        shape = [None if isinstance(size, (int, np.integer)) and size == -1 else size for size in shape]
    return as_shape(shape)


def fits(shape: Any, component: TensorShape) -> bool:
    """Whether components of a static shape can be padded to `shape`, from `padded_shape`."""
    known = sizes(shape)
    if known.ndims is None or component.ndims is None:
        return True
    if known.ndims != component.ndims:
        return False
    pairs = zip(known.as_list(), component.as_list(), strict=True)
    return not any(size is not None and least is not None and size < least for size, least in pairs)


def sizes(shape: Any) -> TensorShape:
    if isinstance(shape, TensorShape):
        return shape
    return unknown_shape((shape.shape.as_list() or [0])[0])


def shape_tensor(shape: Any) -> Tensor:
    if isinstance(shape, TensorShape):
        return convert_to_tensor([-1 if size is None else size for size in shape.as_list()], dtypes.int64)
    return shape


def padding(value: Any, leaf: Any) -> Tensor:
    if value is None:
        value = "" if leaf.dtype == dtypes.string else np.zeros((), leaf.dtype.as_numpy_dtype)
    converted = convert_to_tensor(value, None if isinstance(value, Tensor) else leaf.dtype)
    if converted.dtype.base_dtype != leaf.dtype:
        raise TypeError(
            f"Padding value tensor ({converted}) must have type {leaf.dtype.name}: it does not match the type of the "
            f"component, {leaf}."
        )
    return converted

