"""The values of tensors that are known before anything runs.

Static shape inference uses `constant_value` for the shape argument of a Reshape or the axis of a Concat. It follows a
few ops (a table in this module) from constants and static shapes; it does not run kernels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from dtf.build.tensor import Operation, Tensor
from dtf.wire.registry import Table
from dtf.wire.strings import string_scalar
from dtf.wire.tensor_shape import TensorShape, unknown_shape

Evaluator = Callable[[Operation, int], Any]

_evaluators: Table[Evaluator] = Table("static value")


class _Inference(threading.local):
    is_running = False


inference = _Inference()
"""Whether this thread runs a shape rule: values that only shapes depend on may still be fed, as in TensorFlow."""


def constant_value(tensor: Any, partial: bool = False) -> np.ndarray | None:
    """The value of `tensor` if it is known without running anything, as an array that must not be modified.

    Args:
      tensor: a Tensor; an array is returned unchanged.
      partial: accepted for TensorFlow's sake; partly known values count as unknown.
    """
    if isinstance(tensor, np.ndarray):
        return tensor
    if not isinstance(tensor, Tensor):
        return None
    evaluate = _evaluators.get(tensor.op.type)
    if evaluate is None:
        return None
    value = evaluate(tensor.op, tensor.value_index)
    if value is None:
        return None
    value = string_scalar(value) if isinstance(value, bytes) else np.asarray(value)
    if tensor.dtype.is_numpy_compatible and value.dtype != tensor.dtype.as_numpy_dtype:
        value = value.astype(tensor.dtype.as_numpy_dtype)
    if not inference.is_running:  # a graph that has been built on a value must not be fed another
        tensor.graph.prevent_feeding(tensor)
    return value


def constant_scalar(tensor: Tensor) -> int | None:
    """The value of a constant scalar tensor as an int; None: it is not known."""
    value = constant_value(tensor)
    return None if value is None else int(np.reshape(value, ()))


def constant_value_as_shape(tensor: Any) -> TensorShape:
    """The known part of the static shape that the integer vector `tensor` holds; -1 means unknown.

    Raises:
      ValueError: `tensor` is not a vector, or holds sizes below -1.
    """
    if not isinstance(tensor, Tensor):
        return TensorShape(None if tensor is None else [None if size == -1 else int(size) for size in tensor])
    if tensor.shape.ndims == 0:
        value = constant_value(tensor)
        if value is None or value != -1:
            raise ValueError("Received a scalar as a shape that is not the unknown shape -1.")
        return TensorShape(None)
    tensor.shape.with_rank(1)
    op = tensor.op
    if op.type == "Shape":
        return op.inputs[0].shape
    if op.type == "Pack" and op.get_attr("axis") == 0:
        return TensorShape([_as_size(each) for each in op.inputs])
    if op.type in ("ConcatV2", "Concat"):
        parts = op.inputs[:-1] if op.type == "ConcatV2" else op.inputs[1:]
        shape = TensorShape([])
        for part in parts:
            shape = shape.concatenate(constant_value_as_shape(part))
        return shape
    if op.type == "StridedSlice":
        sliced = _sliced_shape(op)
        if sliced is not None:
            return sliced
    if op.type in ("Identity", "Cast") and op.inputs[0].dtype.is_integer:
        return constant_value_as_shape(op.inputs[0])
    value = constant_value(tensor)
    if value is not None:
        if (value < -1).any():
            raise ValueError(f"A shape cannot have the sizes {value.tolist()}.")
        return TensorShape([None if size == -1 else int(size) for size in value])
    length = tensor.shape.with_rank(1).as_list()[0]
    return unknown_shape(length)


def _as_size(tensor: Tensor) -> int | None:
    value = constant_value(tensor)
    if value is not None:
        return None if value < 0 else int(value)
    op = tensor.op
    if op.type == "StridedSlice" and op.get_attr("shrink_axis_mask") == 1:
        # shape(x)[i]: known if that one dimension is.
        begin = constant_value(op.inputs[1])
        shape = constant_value_as_shape(op.inputs[0]) if op.inputs[0].op.type == "Shape" else None
        if begin is not None and shape is not None and shape.ndims is not None:
            return shape.as_list()[int(begin[0])]
    return None


def _sliced_shape(op: Operation) -> TensorShape | None:
    """shape[begin:end:stride] of a vector that is itself a shape, where only plain bounds are used."""
    index = _vector_slice(op)
    if index is None or isinstance(index, int):
        return None
    whole = constant_value_as_shape(op.inputs[0])
    return None if whole.ndims is None else TensorShape(whole.as_list()[index])


def _vector_slice(op: Operation) -> slice | int | None:
    """The Python index that a StridedSlice of a vector means; None if it is not a constant one of one dimension."""
    bounds = [constant_value(tensor) for tensor in op.inputs[1:4]]
    if any(bound is None or bound.shape != (1,) for bound in bounds):
        return None
    if op.get_attr("ellipsis_mask") or op.get_attr("new_axis_mask"):
        return None
    begin, end, stride = (int(bound[0]) for bound in bounds if bound is not None)
    if op.get_attr("shrink_axis_mask"):
        return begin
    return slice(None if op.get_attr("begin_mask") else begin, None if op.get_attr("end_mask") else end, stride)


@_evaluators("Const")
def _const(op: Operation, index: int) -> Any:
    value = op.get_attr("value")
    return value if isinstance(value, np.ndarray) else None


@_evaluators("Shape")
def _shape(op: Operation, index: int) -> Any:
    shape = op.inputs[0].shape
    return np.array(shape.as_list(), op.outputs[0].dtype.as_numpy_dtype) if shape.is_fully_defined() else None


@_evaluators("ShapeN")
def _shape_n(op: Operation, index: int) -> Any:
    shape = op.inputs[index].shape
    return np.array(shape.as_list(), op.outputs[0].dtype.as_numpy_dtype) if shape.is_fully_defined() else None


@_evaluators("Size")
def _size(op: Operation, index: int) -> Any:
    return op.inputs[0].shape.num_elements()


@_evaluators("Rank")
def _rank(op: Operation, index: int) -> Any:
    return op.inputs[0].shape.ndims


@_evaluators("Range")
def _range(op: Operation, index: int) -> Any:
    return _of_values(op, np.arange)


@_evaluators("Cast")
def _cast(op: Operation, index: int) -> Any:
    dtype = op.outputs[0].dtype
    return _of_values(op, lambda x: x.astype(dtype.as_numpy_dtype)) if dtype.is_numpy_compatible else None


@_evaluators("Identity")
def _identity(op: Operation, index: int) -> Any:
    # Through references the value may change: those are not looked through.
    return None if op.inputs[0].dtype._is_ref_dtype else constant_value(op.inputs[0])


@_evaluators("Concat")
def _concat(op: Operation, index: int) -> Any:
    return _of_values(op, lambda axis, *parts: np.concatenate(parts, int(axis)))


@_evaluators("ConcatV2")
def _concat_v2(op: Operation, index: int) -> Any:
    return _of_values(op, lambda *inputs: np.concatenate(inputs[:-1], int(inputs[-1])))


@_evaluators("Pack")
def _pack(op: Operation, index: int) -> Any:
    return _of_values(op, lambda *parts: np.stack(parts, op.get_attr("axis")))


@_evaluators("Fill")
def _fill(op: Operation, index: int) -> Any:
    shape = op.outputs[0].shape
    value = constant_value(op.inputs[1])
    return np.full(shape.as_list(), value) if shape.is_fully_defined() and value is not None else None


@_evaluators("StridedSlice")
def _strided_slice(op: Operation, index: int) -> Any:
    if op.inputs[0].op.type == "Shape":
        where = _vector_slice(op)
        shape = op.inputs[0].op.inputs[0].shape
        if where is None or shape.ndims is None:
            return None
        sizes = shape.as_list()
        part = sizes[where] if isinstance(where, slice) else [sizes[where] if where < len(sizes) else None]
        if any(size is None for size in part):
            return None
        return np.array(part if isinstance(where, slice) else part[0], op.outputs[0].dtype.as_numpy_dtype)
    where = _vector_slice(op)
    return None if where is None else _of_values(op, lambda vector, *_: vector[where])


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Neg": np.negative,
}


@_evaluators(*_ELEMENTWISE)
def _elementwise(op: Operation, index: int) -> Any:
    # Arithmetic on shapes; longer arrays are left to the runtime.
    if any((tensor.shape.num_elements() or 0) > 64 for tensor in op.inputs) or not op.inputs[0].dtype.is_integer:
        return None
    with np.errstate(all="ignore"):
        return _of_values(op, _ELEMENTWISE[op.type])


@_evaluators("Prod")
def _prod(op: Operation, index: int) -> Any:
    if not op.inputs[0].dtype.is_integer:
        return None
    keep = op.get_attr("keep_dims")
    return _of_values(op, lambda x, axis: np.prod(x, axis=tuple(np.atleast_1d(axis)), keepdims=keep))


def _of_values(op: Operation, function: Callable[..., Any]) -> Any:
    values = []
    for tensor in op.inputs:
        value = constant_value(tensor)
        if value is None:
            return None
        values.append(value)
    return function(*values)
