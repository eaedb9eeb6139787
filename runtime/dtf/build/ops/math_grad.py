"""Gradients of arithmetic, reductions, scans, segments and casts.

Each function takes the operation and one gradient per output and gives one per input. Complex gradients follow
TensorFlow: the gradient of a real loss L with respect to z = x + iy is dL/dx + i dL/dy, so derivatives enter as
conjugates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops.math import (
    add,
    cast,
    cos,
    cosh,
    digamma,
    div_no_nan,
    divide,
    equal,
    exp,
    floordiv,
    greater,
    greater_equal,
    less,
    less_equal,
    lgamma,
    log,
    logical_and,
    logical_or,
    maximum,
    multiply,
    multiply_no_nan,
    negative,
    not_equal,
    polygamma,
    pow,
    reciprocal,
    rsqrt,
    sign,
    sin,
    sinh,
    square,
    subtract,
    truncatediv,
    xdivy,
    xlog1py,
    xlogy,
    zeta,
)
from dtf.build.ops.reductions import cumprod, cumsum, cumulative_logsumexp, reduce_sum
from dtf.build.ops.segment import append_ones, segment_prod, segment_sum, unsorted_segment_prod, unsorted_segment_sum
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes

Gradients = list[Any]


def unbroadcast(grad: Any, x: Tensor, other: Tensor) -> Any:
    """Sums `grad`, of the broadcast shape of x and other, over the axes along which x was repeated.

    Where the static shapes tell, nothing is computed at run time but the sums that are needed.
    """
    axes = _repeated_axes(x, other)
    if axes is None:
        shape = apply_op("Shape", input=x)
        summed_axes = apply_op("BroadcastGradientArgs", s0=shape, s1=apply_op("Shape", input=other)).r0
        return apply_op("Reshape", tensor=reduce_sum(grad, summed_axes), shape=shape)
    leading, ones = axes
    if leading:
        grad = reduce_sum(grad, list(range(leading)))
    if ones:
        grad = reduce_sum(grad, ones, keepdims=True)
    return grad


def sum_to_shape_of(x: Tensor, grad: Tensor) -> Tensor:
    """Sums `grad` to the shape of x, which broadcasts to the shape of `grad`."""
    return unbroadcast(grad, x, grad)


def _repeated_axes(x: Tensor, other: Tensor) -> tuple[int, list[int]] | None:
    """How many dimensions x lacks in front, and which of its 1s are repeated; None if that is not known yet."""
    if x.shape == other.shape and x.shape.is_fully_defined():
        return 0, []
    if x.shape.ndims is None or other.shape.ndims is None:
        return None
    mine, theirs = x.shape.as_list(), other.shape.as_list()
    leading = max(0, len(theirs) - len(mine))
    others: list[int | None] = [1] * (len(mine) - len(theirs))
    others += theirs[leading:]
    ones = []
    for axis, (size, facing) in enumerate(zip(mine, others, strict=True)):
        if size == 1 and facing != 1:
            ones.append(axis)
        elif size is None and facing != 1:
            return None
    return leading, ones


def _conj(x: Tensor) -> Tensor:
    return apply_op("Conj", input=x) if x.dtype.is_complex else x


def _zeros_like(x: Any) -> Tensor:
    return apply_op("ZerosLike", x=x)


def _where(condition: Tensor, if_true: Any, if_false: Any) -> Tensor:
    return apply_op("Select", condition=condition, t=if_true, e=if_false)


def _number(value: float, like: Tensor) -> Tensor:
    return constant(value, dtype=like.dtype.base_dtype)


# -- one argument: the derivative, from the input x and the output y --


def derivative(*ops: str) -> Callable[[Callable[[Tensor, Tensor], Tensor]], Callable[[Tensor, Tensor], Tensor]]:
    """Registers dy/dx as a function of (x, y)."""

    def register(derivative: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        @gradient(*ops)
        def chain(op: Operation, grad: Any) -> Gradients:
            return [multiply(grad, _conj(derivative(op.inputs[0], op.outputs[0])))]

        return derivative

    return register


derivative("Abs")(lambda x, y: sign(x))
derivative("Acosh")(lambda x, y: reciprocal(sinh(y)))
derivative("Asin")(lambda x, y: rsqrt(subtract(1.0, square(x))))
derivative("Acos")(lambda x, y: negative(rsqrt(subtract(1.0, square(x)))))
derivative("Asinh")(lambda x, y: reciprocal(cosh(y)))
derivative("Atan")(lambda x, y: reciprocal(add(1.0, square(x))))
derivative("Atanh")(lambda x, y: reciprocal(subtract(1.0, square(x))))
derivative("Cos")(lambda x, y: negative(sin(x)))
derivative("Cosh")(lambda x, y: sinh(x))
derivative("Digamma")(lambda x, y: polygamma(_number(1, x), x))
derivative("Erf")(lambda x, y: multiply(2 / math.sqrt(math.pi), exp(negative(square(x)))))
derivative("Erfc")(lambda x, y: multiply(-2 / math.sqrt(math.pi), exp(negative(square(x)))))
derivative("Erfinv")(lambda x, y: multiply(math.sqrt(math.pi) / 2, exp(square(y))))
derivative("Exp")(lambda x, y: y)
derivative("Expm1")(lambda x, y: exp(x))
derivative("Lgamma")(lambda x, y: digamma(x))
derivative("Log")(lambda x, y: reciprocal(x))
derivative("Log1p")(lambda x, y: reciprocal(add(1.0, x)))
derivative("Ndtri")(lambda x, y: multiply(math.sqrt(2 * math.pi), exp(multiply(0.5, square(y)))))
derivative("Sin")(lambda x, y: cos(x))
derivative("Sinh")(lambda x, y: cosh(x))
derivative("Square")(lambda x, y: multiply(2.0, x) if not x.dtype.is_integer else multiply(2, x))
derivative("Tan")(lambda x, y: add(1.0, square(y)))


@gradient("Neg")
def _neg(op: Operation, grad: Any) -> Gradients:
    return [negative(grad)]


@gradient("Sign")
def _sign(op: Operation, grad: Any) -> Gradients:
    return [_zeros_like(op.inputs[0])]


@gradient("Sigmoid")
def _sigmoid(op: Operation, grad: Any) -> Gradients:
    return [apply_op("SigmoidGrad", y=_conj(op.outputs[0]), dy=grad)]


@gradient("Tanh")
def _tanh(op: Operation, grad: Any) -> Gradients:
    return [apply_op("TanhGrad", y=_conj(op.outputs[0]), dy=grad)]


@gradient("Sqrt")
def _sqrt(op: Operation, grad: Any) -> Gradients:
    return [apply_op("SqrtGrad", y=op.outputs[0], dy=grad)]


@gradient("Rsqrt")
def _rsqrt(op: Operation, grad: Any) -> Gradients:
    return [apply_op("RsqrtGrad", y=op.outputs[0], dy=grad)]


@gradient("Reciprocal", "Inv")
def _reciprocal(op: Operation, grad: Any) -> Gradients:
    return [apply_op("ReciprocalGrad", y=op.outputs[0], dy=grad)]


# -- gradients of those gradients: z(y, dy) --


@gradient("SigmoidGrad")
def _sigmoid_grad(op: Operation, grad: Any) -> Gradients:
    y, dy = _conj(op.inputs[0]), _conj(op.inputs[1])
    by_y = multiply(multiply(grad, dy), subtract(1.0, multiply(2.0, y)))
    return [by_y, apply_op("SigmoidGrad", y=y, dy=grad)]


@gradient("TanhGrad")
def _tanh_grad(op: Operation, grad: Any) -> Gradients:
    y, dy = _conj(op.inputs[0]), _conj(op.inputs[1])
    return [multiply(multiply(grad, -2.0), multiply(dy, y)), apply_op("TanhGrad", y=y, dy=grad)]


@gradient("SqrtGrad")
def _sqrt_grad(op: Operation, grad: Any) -> Gradients:
    by_y = divide(grad, op.inputs[0])
    return [multiply(negative(_conj(by_y)), op.outputs[0]), multiply(0.5, by_y)]


@gradient("RsqrtGrad")
def _rsqrt_grad(op: Operation, grad: Any) -> Gradients:
    # -dy conj(y)^3 / 2 contains y conjugated, so the gradient with respect to y is the conjugate of the gradient with
    # respect to conj(y).
    y, dy = _conj(op.inputs[0]), op.inputs[1]
    by_y = multiply(multiply(-1.5, multiply(_conj(grad), dy)), square(y))
    return [by_y, apply_op("RsqrtGrad", y=y, dy=grad)]


@gradient("ReciprocalGrad", "InvGrad")
def _reciprocal_grad(op: Operation, grad: Any) -> Gradients:
    y, dy = _conj(op.inputs[0]), op.inputs[1]
    return [multiply(multiply(multiply(-2.0, _conj(grad)), dy), y), apply_op("ReciprocalGrad", y=y, dy=grad)]


# -- complex numbers --


@gradient("ComplexAbs")
def _complex_abs(op: Operation, grad: Any) -> Gradients:
    return [multiply(_complex_of(op, grad), sign(op.inputs[0]))]


@gradient("Real")
def _real(op: Operation, grad: Any) -> Gradients:
    return [_complex_of(op, grad)]


@gradient("Imag")
def _imag(op: Operation, grad: Any) -> Gradients:
    return [apply_op("Complex", real=_number(0, grad), imag=grad, Tout=op.get_attr("T"))]


@gradient("Angle")
def _angle(op: Operation, grad: Any) -> Gradients:
    # d angle(z) = Im(dz / z) = Re(dz * conj(i / conj(z)))
    z = op.inputs[0]
    i = constant(1j, dtype=z.dtype.base_dtype)
    return [multiply(_complex_of(op, grad), divide(i, _conj(z)))]


def _complex_of(op: Operation, grad: Any) -> Tensor:
    return apply_op("Complex", real=grad, imag=_number(0, grad), Tout=op.get_attr("T"))


@gradient("Conj")
def _conj_grad(op: Operation, grad: Any) -> Gradients:
    return [_conj(grad)]


@gradient("Complex")
def _complex(op: Operation, grad: Any) -> Gradients:
    real, imag = op.inputs
    parts = [apply_op(part, input=grad, Tout=real.dtype.base_dtype) for part in ("Real", "Imag")]
    return [unbroadcast(parts[0], real, imag), unbroadcast(parts[1], imag, real)]


# -- two arguments --


def _partials(*ops: str) -> Callable[[Callable[..., tuple[Any, Any]]], Callable[..., tuple[Any, Any]]]:
    """Registers a function (op, grad, x, y) -> the gradients of x and y before the sums over repeated axes, or None."""

    def register(function: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        @gradient(*ops)
        def summed(op: Operation, grad: Any) -> Gradients:
            x, y = op.inputs
            by_x, by_y = function(op, grad, x, y)
            return [
                None if by_x is None else unbroadcast(by_x, x, y),
                None if by_y is None else unbroadcast(by_y, y, x),
            ]

        return function

    return register


@_partials("Add", "AddV2")
def _add(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return grad, grad


@_partials("Sub")
def _sub(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return grad, negative(grad)


@_partials("Mul")
def _mul(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return multiply(grad, _conj(y)), multiply(grad, _conj(x))


@_partials("Div", "RealDiv")
def _div(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    x, y = _conj(x), _conj(y)
    return divide(grad, y), multiply(grad, divide(divide(negative(x), y), y))


@_partials("DivNoNan")
def _div_no_nan(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    x, y = _conj(x), _conj(y)
    return div_no_nan(grad, y), multiply(grad, div_no_nan(div_no_nan(negative(x), y), y))


@_partials("MulNoNan")
def _mul_no_nan(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return multiply_no_nan(grad, y), multiply_no_nan(x, grad)


def _not_zero(x: Tensor) -> Tensor:
    return cast(not_equal(x, _number(0, x)), x.dtype.base_dtype)


@_partials("Xdivy")
def _xdivy(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return multiply(grad, xdivy(_not_zero(x), y)), multiply(grad, xdivy(negative(x), square(y)))


@_partials("Xlogy")
def _xlogy(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return multiply(grad, xlogy(_not_zero(x), y)), multiply(grad, xdivy(x, y))


@_partials("Xlog1py")
def _xlog1py(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return multiply(grad, xlog1py(_not_zero(x), y)), multiply(grad, xdivy(x, add(y, 1.0)))


@_partials("Pow")
def _pow(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    x, y, z = _conj(x), _conj(y), _conj(op.outputs[0])
    one, zero = _number(1, x), _number(0, x)
    by_x = multiply(grad, multiply(y, pow(x, subtract(y, one))))
    # log x only where it exists: the function is constant in y at x = 0, and not real below.
    has_log = not_equal(x, zero) if x.dtype.is_complex else greater(x, zero)
    safe = _where(has_log, x, apply_op("OnesLike", x=x))
    logarithm = _where(has_log, log(safe), _zeros_like(x))
    return by_x, multiply(grad, multiply(z, logarithm))


def _choose(grad: Any, mask: Tensor) -> tuple[Tensor, Tensor]:
    zeros = _zeros_like(grad)
    return _where(mask, grad, zeros), _where(mask, zeros, grad)


@_partials("Maximum")
def _maximum(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return _choose(grad, greater_equal(x, y))


@_partials("Minimum")
def _minimum(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return _choose(grad, less_equal(x, y))


@_partials("SquaredDifference")
def _squared_difference(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    by_x = multiply(multiply(_number(2, x), grad), subtract(x, y))
    return by_x, negative(by_x)


@_partials("Atan2")
def _atan2(op: Operation, grad: Any, y: Tensor, x: Tensor) -> tuple[Any, Any]:
    scaled = divide(grad, add(square(x), square(y)))
    return multiply(x, scaled), multiply(negative(y), scaled)


@_partials("FloorMod")
def _floor_mod(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return grad, multiply(grad, negative(floordiv(x, y)))


@_partials("TruncateMod", "Mod")
def _truncate_mod(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return grad, multiply(grad, negative(truncatediv(x, y)))


@_partials("Polygamma")
def _polygamma(op: Operation, grad: Any, order: Tensor, x: Tensor) -> tuple[Any, Any]:
    return None, multiply(grad, polygamma(add(order, 1.0), x))


@_partials("Zeta")
def _zeta(op: Operation, grad: Any, x: Tensor, q: Tensor) -> tuple[Any, Any]:
    return None, multiply(grad, multiply(negative(x), zeta(add(x, 1.0), q)))


@_partials("NextAfter")
def _next_after(op: Operation, grad: Any, x: Tensor, towards: Tensor) -> tuple[Any, Any]:
    return grad, _zeros_like(grad)


@_partials("Igamma")
def _igamma(op: Operation, grad: Any, a: Tensor, x: Tensor) -> tuple[Any, Any]:
    return multiply(grad, apply_op("IgammaGradA", a=a, x=x)), multiply(grad, _gamma_density(a, x))


@_partials("Igammac")
def _igammac(op: Operation, grad: Any, a: Tensor, x: Tensor) -> tuple[Any, Any]:
    by_a = negative(apply_op("IgammaGradA", a=a, x=x))
    return multiply(grad, by_a), multiply(grad, negative(_gamma_density(a, x)))


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    return exp(subtract(subtract(xlogy(subtract(a, 1.0), x), x), lgamma(a)))


@gradient("Betainc")
def _betainc(op: Operation, grad: Any) -> Gradients:
    a, b, x = op.inputs
    log_beta = subtract(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    log_density = subtract(add(xlog1py(subtract(b, 1.0), negative(x)), xlogy(subtract(a, 1.0), x)), log_beta)
    return [None, None, unbroadcast(multiply(grad, exp(log_density)), x, a)]


@gradient("ClipByValue")
def _clip_by_value(op: Operation, grad: Any) -> Gradients:
    x, low, high = op.inputs
    zeros = _zeros_like(grad)
    below, above = less(x, low), greater(x, high)
    return [
        _where(logical_or(below, above), zeros, grad),
        unbroadcast(_where(below, grad, zeros), low, x),
        unbroadcast(_where(above, grad, zeros), high, x),
    ]


@gradient("AddN", "AccumulateNV2")
def _add_n(op: Operation, grad: Any) -> Gradients:
    return [grad] * len(op.inputs)


@gradient("Cast", "_HostCast")
def _cast(op: Operation, grad: Any) -> Gradients:
    source, target = op.inputs[0].dtype.base_dtype, op.outputs[0].dtype.base_dtype
    continuous = (source.is_floating or source.is_complex) and (target.is_floating or target.is_complex)
    return [cast(grad, source) if continuous else None]


# -- reductions --


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
        count: Any = _number(max(sizes[0] // sizes[1], 1), y)
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
    others = apply_op("Reshape", tensor=_conj(others), shape=apply_op("Shape", input=moved))
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
    total = cumsum(multiply(_conj(op.outputs[0]), grad), axis, exclusive, not reverse)
    return [div_no_nan(total, _conj(x)), None]


@gradient("CumulativeLogsumexp")
def _cumulative_logsumexp(op: Operation, grad: Any) -> Gradients:
    # exp(x_i) times the sum of grad_j exp(-y_j): in logarithms, positive and negative gradients apart.
    x, axis = op.inputs
    y = op.outputs[0]
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    lowest = apply_op("Fill", dims=apply_op("Shape", input=grad), value=_number(x.dtype.min, x))

    def part(selected: Tensor, size: Tensor) -> Tensor:
        logs = _where(selected, log(size), lowest)
        return exp(add(cumulative_logsumexp(subtract(logs, y), axis, exclusive, not reverse), x))

    zero = _number(0, grad)
    return [
        subtract(part(greater(grad, zero), grad), part(less(grad, zero), negative(grad))),
        None,
    ]


# -- segments --


def _rows(params: Any, ids: Tensor) -> Tensor:
    return apply_op("GatherV2", params=params, indices=ids, axis=0)


@gradient("SegmentSum")
def _segment_sum(op: Operation, grad: Any) -> Gradients:
    return [_rows(grad, op.inputs[1]), None]


@gradient("SegmentMean")
def _segment_mean(op: Operation, grad: Any) -> Gradients:
    data, ids = op.inputs
    ones = apply_op("OnesLike", x=cast(ids, data.dtype.real_dtype.base_dtype))
    counts = cast(maximum(segment_sum(ones, ids), _number(1, ones)), data.dtype.base_dtype)
    return [_rows(divide(grad, append_ones(counts, data, ids)), ids), None]


@gradient("SegmentMax", "SegmentMin")
def _segment_extreme(op: Operation, grad: Any) -> Gradients:
    data, ids = op.inputs
    selected = equal(data, _rows(op.outputs[0], ids))
    counts = segment_sum(cast(selected, grad.dtype.base_dtype), ids)
    shared = _rows(div_no_nan(grad, counts), ids)
    return [_where(selected, shared, _zeros_like(shared)), None]


@gradient("SegmentProd")
def _segment_prod(op: Operation, grad: Any) -> Gradients:
    data, ids = op.inputs
    return [_prod_of_others(op, data, grad, lambda x: segment_sum(x, ids), lambda x: segment_prod(x, ids), ids), None]


@gradient("UnsortedSegmentSum")
def _unsorted_segment_sum(op: Operation, grad: Any) -> Gradients:
    return [_rows_or_zeros(grad, op.inputs[1])[0], None, None]


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted_segment_extreme(op: Operation, grad: Any) -> Gradients:
    data, ids, count = op.inputs
    outputs, safe_ids, kept = _rows_or_zeros(op.outputs[0], ids)
    selected = logical_and(equal(data, outputs), kept)
    sharing = unsorted_segment_sum(cast(selected, grad.dtype.base_dtype), ids, count)
    shared = _rows(div_no_nan(grad, sharing), safe_ids)
    return [_where(selected, shared, _zeros_like(shared)), None, None]


@gradient("UnsortedSegmentProd")
def _unsorted_segment_prod(op: Operation, grad: Any) -> Gradients:
    data, ids, count = op.inputs

    def total(x: Tensor) -> Tensor:
        return unsorted_segment_sum(x, ids, count)

    def product(x: Tensor) -> Tensor:
        return unsorted_segment_prod(x, ids, count)

    _, safe_ids, kept = _rows_or_zeros(grad, ids)
    result = _prod_of_others(op, data, grad, total, product, safe_ids)
    return [_where(kept, result, _zeros_like(result)), None, None]


def _prod_of_others(
    op: Operation,
    data: Tensor,
    grad: Any,
    total: Callable[[Tensor], Tensor],
    product: Callable[[Tensor], Tensor],
    ids: Tensor,
) -> Tensor:
    """The gradient of products of segments: the product of the other elements, correct also for zeros."""
    is_zero = equal(data, _number(0, data))
    zeros_in_segment = total(cast(is_zero, dtypes.int32))
    grad = _where(greater(zeros_in_segment, constant(1)), _zeros_like(grad), grad)
    product_of_nonzeros = product(_where(is_zero, apply_op("OnesLike", x=data), data))
    others = _where(is_zero, _rows(product_of_nonzeros, ids), divide(_rows(op.outputs[0], ids), data))
    return multiply(_rows(grad, ids), others)


def _rows_or_zeros(params: Any, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """params[ids] with zeros where an id is negative; the ids with 0 in place of those; and where they are kept."""
    zero = _number(0, ids)
    safe_ids = maximum(ids, zero)
    rows = _rows(params, safe_ids)
    kept = append_ones(greater_equal(ids, zero), rows, ids)
    kept = logical_and(kept, cast(apply_op("OnesLike", x=rows), dtypes.bool))
    return _where(kept, rows, _zeros_like(rows)), safe_ids, kept


@gradient("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def _sparse_segment_sum(op: Operation, grad: Any) -> Gradients:
    data, indices, ids = op.inputs[:3]
    if op.get_attr("sparse_gradient"):
        return _by_rows(op, grad)
    by_data = unsorted_segment_sum(_rows(grad, ids), indices, _first_size(data))
    return [by_data] + [None] * (len(op.inputs) - 1)


def _by_rows(op: Operation, grad: Any) -> Gradients:
    """The gradient of those rows only that the segments read."""
    data, indices, ids = op.inputs[:3]
    rows, numbers = apply_op(
        f"{op.type.removesuffix('WithNumSegments')}GradV2", grad=grad, indices=indices, segment_ids=ids,
        dense_output_dim0=_first_size(data),
    )  # fmt: skip
    return [IndexedSlices(rows, numbers, apply_op("Shape", input=data))] + [None] * (len(op.inputs) - 1)


@gradient(
    "SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"
)
def _sparse_segment_mean(op: Operation, grad: Any) -> Gradients:
    data, indices, ids = op.inputs[:3]
    if op.get_attr("sparse_gradient"):
        return _by_rows(op, grad)
    op_type = "SparseSegmentMeanGrad" if "Mean" in op.type else "SparseSegmentSqrtNGrad"
    by_data = apply_op(op_type, grad=grad, indices=indices, segment_ids=ids, output_dim0=_first_size(data))
    return [by_data] + [None] * (len(op.inputs) - 1)


def _first_size(data: Tensor) -> Tensor:
    return apply_op(
        "StridedSlice", input=apply_op("Shape", input=data), begin=[0], end=[1], strides=[1], shrink_axis_mask=1
    )


not_differentiable(
    "All", "Any", "ApproximateEqual", "ArgMax", "ArgMin", "Bincount", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "Bucketize", "Ceil", "Equal", "Floor", "FloorDiv", "Greater", "GreaterEqual", "HistogramFixedWidth", "Invert",
    "IsFinite", "IsInf", "IsNan", "LeftShift", "Less", "LessEqual", "LinSpace", "LogicalAnd", "LogicalNot", "LogicalOr",
    "NotEqual", "PopulationCount", "Range", "RightShift", "Rint", "Round", "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad", "TruncateDiv", "DenseBincount", "RaggedBincount",
    "SparseBincount", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGradV2",
)  # fmt: skip
