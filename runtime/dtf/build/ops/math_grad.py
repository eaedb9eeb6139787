"""Gradients of arithmetic and casts.

Each function takes the operation and one gradient per output and gives one per input. Complex gradients follow
TensorFlow: the gradient of a real loss L with respect to z = x + iy is dL/dx + i dL/dy, so derivatives enter as
conjugates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops.math import (
    add,
    cast,
    cos,
    cosh,
    digamma,
    div_no_nan,
    divide,
    exp,
    floordiv,
    greater,
    greater_equal,
    less,
    less_equal,
    lgamma,
    log,
    logical_or,
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
from dtf.build.ops.reductions import reduce_sum
from dtf.build.tensor import Operation, Tensor

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


def conjugate(x: Tensor) -> Tensor:
    """`x` conjugated; real values stay as they are."""
    return apply_op("Conj", input=x) if x.dtype.is_complex else x


def zeros_of(x: Any) -> Tensor:
    """Zeros of the shape and dtype of `x`."""
    return apply_op("ZerosLike", x=x)


def select(condition: Tensor, if_true: Any, if_false: Any) -> Tensor:
    """The choice between two values by a mask."""
    return apply_op("Select", condition=condition, t=if_true, e=if_false)


def number_like(value: float, like: Tensor) -> Tensor:
    """A constant of the dtype of `like`."""
    return constant(value, dtype=like.dtype.base_dtype)


# -- one argument: the derivative, from the input x and the output y --


def derivative(*ops: str) -> Callable[[Callable[[Tensor, Tensor], Tensor]], Callable[[Tensor, Tensor], Tensor]]:
    """Registers dy/dx as a function of (x, y)."""

    def register(derivative: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        @gradient(*ops)
        def chain(op: Operation, grad: Any) -> Gradients:
            return [multiply(grad, conjugate(derivative(op.inputs[0], op.outputs[0])))]

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
derivative("Digamma")(lambda x, y: polygamma(number_like(1, x), x))
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
    return [zeros_of(op.inputs[0])]


@gradient("Sigmoid")
def _sigmoid(op: Operation, grad: Any) -> Gradients:
    return [apply_op("SigmoidGrad", y=conjugate(op.outputs[0]), dy=grad)]


@gradient("Tanh")
def _tanh(op: Operation, grad: Any) -> Gradients:
    return [apply_op("TanhGrad", y=conjugate(op.outputs[0]), dy=grad)]


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
    y, dy = conjugate(op.inputs[0]), conjugate(op.inputs[1])
    by_y = multiply(multiply(grad, dy), subtract(1.0, multiply(2.0, y)))
    return [by_y, apply_op("SigmoidGrad", y=y, dy=grad)]


@gradient("TanhGrad")
def _tanh_grad(op: Operation, grad: Any) -> Gradients:
    y, dy = conjugate(op.inputs[0]), conjugate(op.inputs[1])
    return [multiply(multiply(grad, -2.0), multiply(dy, y)), apply_op("TanhGrad", y=y, dy=grad)]


@gradient("SqrtGrad")
def _sqrt_grad(op: Operation, grad: Any) -> Gradients:
    by_y = divide(grad, op.inputs[0])
    return [multiply(negative(conjugate(by_y)), op.outputs[0]), multiply(0.5, by_y)]


@gradient("RsqrtGrad")
def _rsqrt_grad(op: Operation, grad: Any) -> Gradients:
    # -dy conj(y)^3 / 2 contains y conjugated, so the gradient with respect to y is the conjugate of the gradient with
    # respect to conj(y).
    y, dy = conjugate(op.inputs[0]), op.inputs[1]
    by_y = multiply(multiply(-1.5, multiply(conjugate(grad), dy)), square(y))
    return [by_y, apply_op("RsqrtGrad", y=y, dy=grad)]


@gradient("ReciprocalGrad", "InvGrad")
def _reciprocal_grad(op: Operation, grad: Any) -> Gradients:
    y, dy = conjugate(op.inputs[0]), op.inputs[1]
    return [multiply(multiply(multiply(-2.0, conjugate(grad)), dy), y), apply_op("ReciprocalGrad", y=y, dy=grad)]


# -- complex numbers --


@gradient("ComplexAbs")
def _complex_abs(op: Operation, grad: Any) -> Gradients:
    return [multiply(_complex_of(op, grad), sign(op.inputs[0]))]


@gradient("Real")
def _real(op: Operation, grad: Any) -> Gradients:
    return [_complex_of(op, grad)]


@gradient("Imag")
def _imag(op: Operation, grad: Any) -> Gradients:
    return [apply_op("Complex", real=number_like(0, grad), imag=grad, Tout=op.get_attr("T"))]


@gradient("Angle")
def _angle(op: Operation, grad: Any) -> Gradients:
    # d angle(z) = Im(dz / z) = Re(dz * conj(i / conj(z)))
    z = op.inputs[0]
    i = constant(1j, dtype=z.dtype.base_dtype)
    return [multiply(_complex_of(op, grad), divide(i, conjugate(z)))]


def _complex_of(op: Operation, grad: Any) -> Tensor:
    return apply_op("Complex", real=grad, imag=number_like(0, grad), Tout=op.get_attr("T"))


@gradient("Conj")
def _conj_grad(op: Operation, grad: Any) -> Gradients:
    return [conjugate(grad)]


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
    return multiply(grad, conjugate(y)), multiply(grad, conjugate(x))


@_partials("Div", "RealDiv")
def _div(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    x, y = conjugate(x), conjugate(y)
    return divide(grad, y), multiply(grad, divide(divide(negative(x), y), y))


@_partials("DivNoNan")
def _div_no_nan(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    x, y = conjugate(x), conjugate(y)
    return div_no_nan(grad, y), multiply(grad, div_no_nan(div_no_nan(negative(x), y), y))


@_partials("MulNoNan")
def _mul_no_nan(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return multiply_no_nan(grad, y), multiply_no_nan(x, grad)


def _not_zero(x: Tensor) -> Tensor:
    return cast(not_equal(x, number_like(0, x)), x.dtype.base_dtype)


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
    x, y, z = conjugate(x), conjugate(y), conjugate(op.outputs[0])
    one, zero = number_like(1, x), number_like(0, x)
    by_x = multiply(grad, multiply(y, pow(x, subtract(y, one))))
    # log x only where it exists: the function is constant in y at x = 0, and not real below.
    has_log = not_equal(x, zero) if x.dtype.is_complex else greater(x, zero)
    safe = select(has_log, x, apply_op("OnesLike", x=x))
    logarithm = select(has_log, log(safe), zeros_of(x))
    return by_x, multiply(grad, multiply(z, logarithm))


def _choose(grad: Any, mask: Tensor) -> tuple[Tensor, Tensor]:
    zeros = zeros_of(grad)
    return select(mask, grad, zeros), select(mask, zeros, grad)


@_partials("Maximum")
def _maximum(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return _choose(grad, greater_equal(x, y))


@_partials("Minimum")
def _minimum(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    return _choose(grad, less_equal(x, y))


@_partials("SquaredDifference")
def _squared_difference(op: Operation, grad: Any, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    by_x = multiply(multiply(number_like(2, x), grad), subtract(x, y))
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
    return grad, zeros_of(grad)


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
    zeros = zeros_of(grad)
    below, above = less(x, low), greater(x, high)
    return [
        select(logical_or(below, above), zeros, grad),
        unbroadcast(select(below, grad, zeros), low, x),
        unbroadcast(select(above, grad, zeros), high, x),
    ]


@gradient("AddN", "AccumulateNV2")
def _add_n(op: Operation, grad: Any) -> Gradients:
    return [grad] * len(op.inputs)


@gradient("Cast", "_HostCast")
def _cast(op: Operation, grad: Any) -> Gradients:
    source, target = op.inputs[0].dtype.base_dtype, op.outputs[0].dtype.base_dtype
    continuous = (source.is_floating or source.is_complex) and (target.is_floating or target.is_complex)
    return [cast(grad, source) if continuous else None]


not_differentiable(
    "All", "Any", "ApproximateEqual", "ArgMax", "ArgMin", "Bincount", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "Bucketize", "Ceil", "Equal", "Floor", "FloorDiv", "Greater", "GreaterEqual", "HistogramFixedWidth", "Invert",
    "IsFinite", "IsInf", "IsNan", "LeftShift", "Less", "LessEqual", "LinSpace", "LogicalAnd", "LogicalNot", "LogicalOr",
    "NotEqual", "PopulationCount", "Range", "RightShift", "Rint", "Round", "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad", "TruncateDiv", "DenseBincount", "RaggedBincount",
    "SparseBincount", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGradV2",
)
