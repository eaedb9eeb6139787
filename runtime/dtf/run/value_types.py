"""Names for the types of values inside the runtime. For annotations only: it owns no value and no function.

The dtype of an array is known to its node, not to a type checker. So `Array` says "an array" and no more. Three
types are open, because data has the rest of their contract: `Scalar`, `AttrValue` and `Position`. Everything else in
`dtf.run` has a type; `tests/test_architecture.py` counts the exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dtf.wire.pb import attr_value_pb2, function_pb2

__all__ = [
    "Array", "ArrayFunction", "AttrValue", "Element", "FunctionReference", "Index", "Library", "NumpyType", "Position",
    "Scalar", "Shape",
]  # fmt: skip

Array: TypeAlias = np.ndarray
"""A tensor's value: an array, or a numpy scalar or a variant, which have its attributes."""

ArrayFunction: TypeAlias = Callable[..., Array]
"""What computes one tensor from others: a ufunc, or the function of a kernel with one output."""

NumpyType: TypeAlias = npt.DTypeLike
"""The numpy type of an element: `np.float32`, `np.dtype("float32")` or, for strings, `object`."""

Index: TypeAlias = tuple["int | slice | EllipsisType | Array | None", ...]
"""What stands in the brackets behind an array."""

Shape: TypeAlias = tuple[int | None, ...]
"""The sizes of the dimensions; None: unknown."""

Scalar: TypeAlias = Any
"""One element as a Python value, as `tolist` gives it: bool, int, float, complex or bytes, as the dtype says."""

Element: TypeAlias = tuple[Array, ...]
"""The flat components of an element of a dataset, a queue or a staging area."""

AttrValue: TypeAlias = Any
"""The Python value of a node's attribute; the OpDef of the node's op has its type (`codec.attr_to_python`)."""

Position: TypeAlias = Any
"""Where one pass over a dataset stands: a tree that only the `Elements` that saved it reads."""

FunctionReference: TypeAlias = "attr_value_pb2.NameAttrList"
"""An attribute that names a function, and the values of the function's own attributes."""

Library: TypeAlias = "Mapping[str, function_pb2.FunctionDef]"
"""The functions of a graph by name."""
