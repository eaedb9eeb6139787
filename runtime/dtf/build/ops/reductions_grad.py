"""Gradients of reductions and scans.

`math_grad` has the conventions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.gradients import gradient
from dtf.build.ops.math import (
    add,
    cast,
    div_no_nan,
    divide,
    equal,
    exp,
    floordiv,
    greater,
    less,
    log,
    maximum,
    multiply,
    negative,
    subtract,
)
from dtf.build.ops.math_grad import Gradients, conjugate, number_like, select
from dtf.build.ops.reductions import cumprod, cumsum, cumulative_logsumexp, reduce_sum
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes


def _kept_shape(op: Operation) -> Any:
    """The shape of the input with the reduced axes as 1: a list if known, else a tensor."""
    x, axes = op.inputs[0], constant_value(op.inputs[1])
    if axes is not None and x.shape.is_fully_defined():
        sizes = x.shape.as_list()
        for axis in np.reshape(axes, -1).tolist():
            sizes[axis] = 1
        return sizes
    if axes is not None and x.shape.ndims is not None:
        kept = np.ones(x.shape.ndims, np.int32)
        kept[np.reshape(axes, -1)] = 0
        if not kept.any():
            return [1] * x.shape.ndims
        return add(multiply(apply_op("Shape", input=x), constant(kept)), constant(1 - kept))
    rank = apply_op("Rank", input=x)
    axes = apply_op("Reshape", tensor=cast(op.inputs[1], dtypes.int32), shape=[-1])
    positive = apply_op("FloorMod", x=add(axes, rank), y=rank)
    every = apply_op("Range", start=0, limit=rank, delta=1)
    return apply_op(
        "DynamicStitch",
        indices=[every, positive],
        data=[apply_op("Shape", input=x), apply_op("OnesLike", x=positive)],
    )


def _with_kept_axes(op: Operation, value: Any) -> Any:
    """`value`, of the shape of the reduction's output, with the reduced axes put back as 1."""
    return value if op.get_attr("keep_dims") else apply_op("Reshape", tensor=value, shape=_kept_shape(op))


def _repeat_to(x: Tensor, value: Any) -> Tensor:
    """`value` repeated to the shape of x."""
    known = x.shape.is_fully_defined()
    shape = constant(x.shape.as_list(), dtypes.int32) if known else apply_op("Shape", input=x)
    return apply_op("BroadcastTo", input=value, shape=shape)


@gradient("Sum")
def _sum(op: Operation, grad: Any) -> Gradients:
    return [_repeat_to(op.inputs[0], _with_kept_axes(op, grad)), None]


@gradient("Mean")
def _mean(op: Operation, grad: Any) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    sizes = x.shape.num_elements(), y.shape.num_elements()
    if sizes[0] is not None and sizes[1]:
        count: Any = number_like(max(sizes[0] // sizes[1], 1), y)
    elif sizes[1] == 1:
        count = cast(apply_op("Size", input=x), y.dtype.base_dtype)
    else:
        elements = [cast(apply_op("Size", input=each), dtypes.int64) for each in (x, y)]
        whole = floordiv(elements[0], maximum(elements[1], constant(1, dtypes.int64)))
        count = cast(whole, y.dtype.base_dtype)
    return [_repeat_to(x, _with_kept_axes(op, divide(grad, count))), None]


@gradient("Max", "Min")
def _extreme(op: Operation, grad: Any) -> Gradients:
    # Equal extremes share the gradient.
    x = op.inputs[0]
    chosen = cast(equal(x, _with_kept_axes(op, op.outputs[0])), grad.dtype.base_dtype)
    count = reduce_sum(chosen, op.inputs[1], keepdims=True)
    return [multiply(divide(chosen, count), _with_kept_axes(op, grad)), None]


@gradient("EuclideanNorm")
def _euclidean_norm(op: Operation, grad: Any) -> Gradients:
    x, norm = op.inputs[0], _with_kept_axes(op, op.outputs[0])
    return [multiply(x, div_no_nan(_with_kept_axes(op, grad), norm)), None]


@gradient("Prod")
def _prod(op: Operation, grad: Any) -> Gradients:
    # The product of all other elements is the product before times the product after: without division, zeros do no
    # harm. Both are running products once the reduced axes are one axis, at the front.
    x = op.inputs[0]
    rank = apply_op("Rank", input=x)
    axes = apply_op("Reshape", tensor=cast(op.inputs[1], dtypes.int32), shape=[-1])
    reduced = apply_op("FloorMod", x=add(axes, rank), y=rank)
    kept = apply_op("ListDiff", x=apply_op("Range", start=0, limit=rank, delta=1), y=reduced, out_idx=dtypes.int32).out
    order = apply_op("ConcatV2", values=[reduced, kept], axis=0)
    shape = apply_op("Shape", input=x)
    sizes = [
        apply_op("Prod", input=apply_op("GatherV2", params=shape, indices=which, axis=0), reduction_indices=0)
        for which in (reduced, kept)
    ]
    moved = apply_op("Transpose", x=x, perm=order)
    flat = apply_op("Reshape", tensor=moved, shape=apply_op("Pack", values=sizes))
    others = multiply(cumprod(flat, 0, exclusive=True), cumprod(flat, 0, exclusive=True, reverse=True))
    others = apply_op("Reshape", tensor=conjugate(others), shape=apply_op("Shape", input=moved))
    others = apply_op("Transpose", x=others, perm=apply_op("InvertPermutation", x=order))
    result = multiply(_with_kept_axes(op, grad), others)
    return [apply_op("Reshape", tensor=result, shape=shape), None]


# -- scans --


@gradient("Cumsum")
def _cumsum(op: Operation, grad: Any) -> Gradients:
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    return [cumsum(grad, op.inputs[1], exclusive, not reverse), None]


@gradient("Cumprod")
def _cumprod(op: Operation, grad: Any) -> Gradients:
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    total = cumsum(multiply(conjugate(op.outputs[0]), grad), axis, exclusive, not reverse)
    return [div_no_nan(total, conjugate(x)), None]


@gradient("CumulativeLogsumexp")
def _cumulative_logsumexp(op: Operation, grad: Any) -> Gradients:
    # exp(x_i) times the sum of grad_j exp(-y_j): in logarithms, positive and negative gradients apart.
    x, axis = op.inputs
    y = op.outputs[0]
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    lowest = apply_op("Fill", dims=apply_op("Shape", input=grad), value=number_like(x.dtype.min, x))

    def part(selected: Tensor, size: Tensor) -> Tensor:
        logs = select(selected, log(size), lowest)
        return exp(add(cumulative_logsumexp(subtract(logs, y), axis, exclusive, not reverse), x))

    zero = number_like(0, grad)
    return [
        subtract(part(greater(grad, zero), grad), part(less(grad, zero), negative(grad))),
        None,
    ]
