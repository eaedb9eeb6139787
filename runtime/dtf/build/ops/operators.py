"""Python's operators on tensors and variables: `x + 1`, `x[:, 0]`, `-x`.

Owns the op for each operator. Names follow TensorFlow, so that both build graphs with the same nodes. `install` puts
the operators on a class.
"""

from __future__ import annotations

import functools
import numbers
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import dtf.build.packing  # noqa: F401 an index may be a list of tensors
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor, is_dense_tensor_like, is_foreign
from dtf.build.default_graph import name_scope
from dtf.build.ops import linalg, slicing
from dtf.build.ops import math as math_ops
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import Dimension

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike


def install(kind: type) -> None:
    """Gives the class `kind`, whose objects convert to tensors and have a dtype, all operators."""
    for name, function in _OPERATORS.items():
        setattr(kind, name, function)


Binary = Callable[[Any, Any, str], Any]


def _forward(scope: str, function: Binary) -> Callable[[Any, Any], Any]:
    def operator(x: Any, y: Any) -> Any:
        x = convert_to_tensor(x)
        with name_scope(None, scope, [x, y]) as name:
            if not isinstance(y, Tensor | SparseTensor):
                try:
                    y = convert_to_tensor(y, _operand_dtype(x, y), name="y")
                except (TypeError, ValueError):
                    is_array = isinstance(y, np.ndarray | np.generic)
                    if hasattr(type(y), "__array_priority__") and not is_array and not is_foreign(type(y)):
                        return NotImplemented
                    raise
            return function(x, y, name)

    return operator


def _reflected(scope: str, function: Binary) -> Callable[[Any, Any], Any]:
    def operator(y: Any, x: Any) -> Any:
        y = convert_to_tensor(y)
        with name_scope(None, scope, [x, y]) as name:
            x = convert_to_tensor(x, _operand_dtype(y, x), name="x")
            return function(x, y, name)

    return operator


def _operand_dtype(tensor: Any, other: Any) -> DType | None:
    """The dtype for a Python value next to `tensor`; tensors keep theirs, and the op raises on a mismatch."""
    return None if is_dense_tensor_like(other) else tensor.dtype.base_dtype


def _op(op_type: str) -> Binary:
    return lambda x, y, name: apply_op(op_type, name, x=x, y=y)


def _add(x: Tensor, y: Tensor, name: str) -> Tensor:
    return apply_op("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", name, x=x, y=y)


def _multiply(x: Tensor, y: Any, name: str) -> Any:
    if isinstance(y, SparseTensor):
        values = apply_op(
            "SparseDenseCwiseMul", name, sp_indices=y.indices, sp_values=y.values, sp_shape=y.dense_shape, dense=x
        )
        return SparseTensor(y.indices, values, y.dense_shape)
    return apply_op("Mul", name, x=x, y=y)


def _true_divide(x: Tensor, y: Tensor, name: str) -> Tensor:
    return math_ops.truediv(x, y, name)


def _matrix_multiply(x: Tensor, y: Tensor, name: str) -> Tensor:
    return linalg.matmul(x, y, name=name)


def _logical(boolean_op: str, integer_op: str) -> Binary:
    def function(x: Tensor, y: Tensor, name: str) -> Tensor:
        return apply_op(boolean_op if x.dtype.base_dtype == dtypes.bool else integer_op, name, x=x, y=y)

    return function


def _logical_xor(x: Tensor, y: Tensor, name: str) -> Tensor:
    if x.dtype.base_dtype != dtypes.bool:
        return apply_op("BitwiseXor", name, x=x, y=y)
    return math_ops.logical_xor(x, y, name)


def _comparison(op_type: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: apply_op(op_type, None, x=convert_to_tensor(x), y=y)


def _negative(x: Any) -> Tensor:
    return apply_op("Neg", None, x=convert_to_tensor(x))


def _absolute(x: Any) -> Tensor:
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return apply_op("ComplexAbs", "Abs", x=x, Tout=x.dtype.base_dtype.real_dtype)
    return apply_op("Abs", None, x=x)


def _invert(x: Any) -> Tensor:
    x = convert_to_tensor(x)
    return apply_op("LogicalNot" if x.dtype.base_dtype == dtypes.bool else "Invert", None, x=x)


def get_item(tensor: TensorLike, index: Any) -> Tensor:
    """`tensor[index]`: integers, slices, `...`, None for a new axis, scalar integer tensors, or a boolean mask.

    Raises:
      TypeError: an entry of the index is nothing of these.
    """
    if isinstance(index, bool) or is_dense_tensor_like(index) and index.dtype == dtypes.bool or (
        _is_boolean_array(index)
    ):
        return slicing.boolean_mask(tensor, index)
    variable = None if isinstance(tensor, Tensor) or not hasattr(tensor, "_storage") else tensor
    tensor = convert_to_tensor(tensor)
    entries = index if isinstance(index, (tuple, list)) else (index,)
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for position, entry in enumerate(entries):
        bit = 1 << position
        bounds: tuple[Any, Any, Any] = (0, 0, 1)
        if isinstance(entry, slice):
            entry = slice(*(None if _is_unknown(each) else each for each in (entry.start, entry.stop, entry.step)))
            for bound in (entry.start, entry.stop, entry.step):
                if bound is not None:
                    _check_index(bound)
            if _is_open(entry.start):
                masks["begin_mask"] |= bit
            if _is_open(entry.stop):
                masks["end_mask"] |= bit
            bounds = (
                0 if _is_open(entry.start) else entry.start,
                0 if _is_open(entry.stop) else entry.stop,
                1 if entry.step is None else entry.step,
            )
        elif entry is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif entry is None:
            masks["new_axis_mask"] |= bit
        else:
            _check_index(entry)
            masks["shrink_axis_mask"] |= bit
            bounds = (entry, entry + 1, 1)
        for values, bound in zip((begin, end, strides), bounds, strict=True):
            values.append(bound)
    with name_scope(None, "strided_slice", [tensor, *begin, *end, *strides]) as name:
        packed = [_index_vector(values) for values in (begin, end, strides)]
        if any(vector.dtype == dtypes.int64 for vector in packed):
            packed = [
                vector if vector.dtype == dtypes.int64 else apply_op("Cast", None, x=vector, DstT=dtypes.int64)
                for vector in packed
            ]
        place = dict(zip(("begin", "end", "strides"), packed, strict=True))
        sliced = apply_op("StridedSlice", name, input=tensor, **place, **masks)
        assign = _refuse_assignment
        if variable is not None:
            assign = functools.partial(slicing.assign_slice, variable, place, masks)
        sliced.assign = assign
        return sliced


def _refuse_assignment(value: Any, name: str | None = None) -> Tensor:
    """The `assign` of a slice of a tensor.

    Raises:
      ValueError: always.
    """
    raise ValueError("Sliced assignment is only supported for variables")


def _is_boolean_array(index: Any) -> bool:
    return isinstance(index, np.ndarray) and index.dtype == np.bool_


def _is_open(bound: Any) -> bool:
    return bound is None or isinstance(bound, int) and bound == sys.maxsize


def _is_unknown(bound: Any) -> bool:
    return isinstance(bound, Dimension) and bound.value is None


def _check_index(entry: Any) -> None:
    if isinstance(entry, numbers.Integral) and not isinstance(entry, bool):
        return
    if is_dense_tensor_like(entry) and entry.dtype.base_dtype.is_integer and entry.shape.ndims in (None, 0):
        return
    if hasattr(entry, "__index__") and not isinstance(entry, bool) and np.ndim(entry) == 0:
        return
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
        f"valid indices, got {entry!r}"
    )


def _index_vector(values: list[Any]) -> Tensor:
    if not values:
        return convert_to_tensor(np.zeros([0], np.int32), name="stack")
    tensors = [value for value in values if is_dense_tensor_like(value)]
    if tensors:
        if len({value.dtype.base_dtype for value in tensors}) > 1:
            values = [
                apply_op("Cast", None, x=value, DstT=dtypes.int64) if is_dense_tensor_like(value) else value
                for value in values
            ]
        return convert_to_tensor(values, name="stack")
    return convert_to_tensor([int(value) for value in values], name="stack")


_BINARY: dict[str, tuple[str, Binary]] = {
    "add": ("add", _add),
    "sub": ("sub", _op("Sub")),
    "mul": ("mul", _multiply),
    "truediv": ("truediv", _true_divide),
    "floordiv": ("floordiv", _op("FloorDiv")),
    "mod": ("mod", _op("FloorMod")),
    "pow": ("pow", _op("Pow")),
    "matmul": ("matmul", _matrix_multiply),
    "and": ("and", _logical("LogicalAnd", "BitwiseAnd")),
    "or": ("or", _logical("LogicalOr", "BitwiseOr")),
    "xor": ("xor", _logical_xor),
}

_OPERATORS: dict[str, Callable[..., Any]] = {
    **{f"__{python}__": _forward(scope, function) for python, (scope, function) in _BINARY.items()},
    **{f"__r{python}__": _reflected(scope, function) for python, (scope, function) in _BINARY.items()},
    "__lt__": _comparison("Less"),
    "__le__": _comparison("LessEqual"),
    "__gt__": _comparison("Greater"),
    "__ge__": _comparison("GreaterEqual"),
    "__neg__": _negative,
    "__abs__": _absolute,
    "__invert__": _invert,
    "__getitem__": get_item,
}

install(Tensor)
