"""Kernels of element-wise arithmetic, comparison, sequences and casts.

Wherever numpy's ufunc means what TensorFlow means, the kernel is that ufunc itself. The rest differs in a way that
the comment beside it names: integer division by zero is an error, and so on. numpy's floating-point warnings are
switched off by the executor. Reductions live in `reductions`, formulas of special functions in `special`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel, special, with_into
from dtf.run.kernels.arguments import invalid, room
from dtf.run.kernels.tensor_list import add_variants
from dtf.run.value_types import Array, ArrayFunction
from dtf.wire import dtypes, errors


def direct(function: Function, *ops: str) -> None:
    """Registers `function` itself as the kernel of `ops`, whatever the attributes are."""

    @kernel(*ops)
    def factory(node: KernelNode) -> Function:
        return function


def _reusable(temporary: Array) -> np.ndarray | None:
    """The `out=` of an operation that may overwrite its own `temporary`; numpy scalars cannot be overwritten."""
    return temporary if isinstance(temporary, np.ndarray) else None


# -- one argument --

_OF_ONE: dict[str, Function] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Angle": np.angle,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Ceil": np.ceil,
    "ComplexAbs": np.abs,
    "Conj": np.conjugate,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Digamma": special.digamma,
    "Erf": special.erf,
    "Erfc": special.erfc,
    "Erfinv": special.erfinv,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Floor": np.floor,
    "Imag": np.imag,
    "Inv": np.reciprocal,
    "Invert": np.invert,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Lgamma": special.lgamma,
    "Log": np.log,
    "Log1p": np.log1p,
    "LogicalNot": np.logical_not,
    "Ndtri": special.ndtri,
    "Neg": np.negative,
    "Real": np.real,
    "Reciprocal": np.reciprocal,
    "Rint": np.rint,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
for _op, _function in _OF_ONE.items():
    direct(_function, _op)


@kernel("Round")
def _round(node: KernelNode) -> Function:
    if node.attr("T").is_integer:
        return lambda x: x
    return np.rint  # half to even, as TensorFlow


@kernel("Sign")
def _sign(node: KernelNode) -> Function:
    if not node.attr("T").is_complex:
        return np.sign

    def direction(x: Array) -> Array:
        size = np.abs(x)
        return np.where(size == 0, x, x / np.where(size == 0, 1, size)).astype(x.dtype)

    return direction


def _rsqrt(x: Array) -> Array:
    root = np.sqrt(x)
    return np.reciprocal(root, out=_reusable(root))


def _sigmoid(x: Array) -> Array:
    # exp overflows to infinity for very negative x, and 1/inf is the wanted 0.
    result = np.exp(np.negative(x))
    result += 1
    return np.reciprocal(result, out=_reusable(result))


direct(_rsqrt, "Rsqrt")
direct(_sigmoid, "Sigmoid")


@kernel("PopulationCount")
def _population_count(node: KernelNode) -> Function:
    unsigned = np.dtype(f"u{np.dtype(node.attr('T').as_numpy_dtype).itemsize}")
    return lambda x: np.bitwise_count(x.view(unsigned))


# -- gradients of one argument, from the output y and its gradient --


def _sigmoid_grad(y: Array, dy: Array) -> Array:
    result = 1 - y
    result *= y
    result *= dy
    return result


def _tanh_grad(y: Array, dy: Array) -> Array:
    result = np.square(y)
    result = np.subtract(1, result, out=_reusable(result))
    result *= dy
    return result


def _sqrt_grad(y: Array, dy: Array) -> Array:
    result = np.divide(dy, np.conjugate(y))
    result *= result.dtype.type(0.5)
    return _where_not_zero(dy, result)


def _rsqrt_grad(y: Array, dy: Array) -> Array:
    result = np.square(y)
    result *= y
    result = np.conjugate(result)
    result *= dy
    result *= result.dtype.type(-0.5)
    return _where_not_zero(dy, result)


def _reciprocal_grad(y: Array, dy: Array) -> Array:
    result = np.negative(y)
    result *= y
    result = np.conjugate(result)
    result *= dy
    return _where_not_zero(dy, result)


def _where_not_zero(decisive: Array, result: Array) -> Array:
    """`result`, but 0 where `decisive` is 0, even where `result` is infinite or NaN there."""
    zero = np.equal(decisive, 0)
    return np.where(zero, result.dtype.type(0), result) if np.any(zero) else result


direct(_sigmoid_grad, "SigmoidGrad")
direct(_tanh_grad, "TanhGrad")
direct(_sqrt_grad, "SqrtGrad")
direct(_rsqrt_grad, "RsqrtGrad")
direct(_reciprocal_grad, "ReciprocalGrad", "InvGrad")


# -- two arguments --

_OF_TWO: dict[str, Function] = {
    "Atan2": np.arctan2,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Igamma": special.igamma,
    "Igammac": special.igammac,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "NextAfter": np.nextafter,
    "NotEqual": np.not_equal,
    "Polygamma": special.polygamma,
    "Sub": np.subtract,
    "Zeta": special.zeta,
}
for _op, _function in _OF_TWO.items():
    direct(_function, _op)

direct(special.betainc, "Betainc")


@kernel("Add", "AddV2")
def _add(node: KernelNode) -> Function:
    if node.attr("T").name == "string":
        return lambda x, y: np.asarray(np.add(x, y), object)  # 0-d object arrays would come out as bare bytes
    return np.add


def _division(*ops: str, of_floats: ArrayFunction, of_integers: ArrayFunction) -> None:
    """Registers division-like ops: on integers a divisor of zero is an error."""

    def checked(x: Array, y: Array) -> Array:
        if not np.all(y) and np.size(x):
            raise invalid("Integer division by zero")
        return of_integers(x, y)

    @kernel(*ops)
    def factory(node: KernelNode) -> Function:
        return checked if node.attr("T").is_integer else of_floats


def truncated_quotient(x: Array, y: Array) -> Array:
    # The exact multiple of y nearest to x on the side of zero; floor_divide is then exact.
    return np.floor_divide(np.subtract(x, np.fmod(x, y)), y)


def _floored_quotient(x: Array, y: Array) -> Array:
    # TensorFlow floors the rounded quotient (1 // 0.1 is 10); numpy's floor_divide goes by the remainder (and gives 9).
    result = np.true_divide(x, y)
    return np.floor(result, out=_reusable(result))


def _floattruncated_quotient(x: Array, y: Array) -> Array:
    result = np.true_divide(x, y)
    return np.trunc(result, out=_reusable(result))


_division("RealDiv", "Div", of_floats=np.true_divide, of_integers=truncated_quotient)
_division("TruncateDiv", of_floats=_floattruncated_quotient, of_integers=truncated_quotient)
_division("FloorDiv", of_floats=_floored_quotient, of_integers=np.floor_divide)
_division("FloorMod", of_floats=np.mod, of_integers=np.mod)
_division("TruncateMod", "Mod", of_floats=np.fmod, of_integers=np.fmod)


direct(lambda x, y: _where_not_zero(y, np.divide(x, y)), "DivNoNan")
direct(lambda x, y: _where_not_zero(y, np.multiply(x, y)), "MulNoNan")
direct(lambda x, y: _where_not_zero(x, np.divide(x, y)), "Xdivy")
direct(lambda x, y: _where_not_zero(x, np.multiply(x, np.log(y))), "Xlogy")
direct(lambda x, y: _where_not_zero(x, np.multiply(x, np.log1p(y))), "Xlog1py")


@kernel("Pow")
def _pow(node: KernelNode) -> Function:
    if not node.attr("T").is_integer:
        return np.power

    def integer_power(x: Array, y: Array) -> Array:
        if np.any(np.less(y, 0)):
            raise invalid("Integers to negative integer powers are not allowed")
        return np.power(x, y)

    return integer_power


@kernel("SquaredDifference")
def _squared_difference(node: KernelNode) -> Function:
    if node.attr("T").is_complex:
        return lambda x, y: np.multiply(np.conjugate(x - y), x - y)

    def run(x: Array, y: Array) -> Array:
        difference = np.subtract(x, y)
        return np.square(difference, out=_reusable(difference))

    return run


@kernel("ApproximateEqual")
def _approximate_equal(node: KernelNode) -> Function:
    tolerance = node.attr("tolerance")

    def approximate_equal(x: Array, y: Array) -> Array:
        if np.shape(x) != np.shape(y):
            raise invalid(f"x and y must be of the same shape. x shape: {_shape_text(x)}. y shape: {_shape_text(y)}")
        return np.less(np.abs(np.subtract(x, y)), tolerance)

    return approximate_equal


def _shift(shift: Function) -> Callable[[KernelNode], Function]:
    def factory(node: KernelNode) -> Function:
        # Shifts outside of the word are clamped to it, as TensorFlow does; C leaves them undefined.
        last_bit = 8 * np.dtype(node.attr("T").as_numpy_dtype).itemsize - 1
        return lambda x, y: shift(x, np.clip(y, 0, last_bit))

    return factory


kernel("LeftShift")(_shift(np.left_shift))
kernel("RightShift")(_shift(np.right_shift))


@kernel("Complex")
def _complex(node: KernelNode) -> Function:
    dtype = node.attr("Tout").as_numpy_dtype

    def run(real: Array, imag: Array) -> np.ndarray:
        result = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), dtype)
        result.real = real  # not real + 1j * imag: an infinity there would make a NaN
        result.imag = imag
        return result

    return run


def _clip_by_value(t: Array, low: Array, high: Array) -> Array:
    result = np.minimum(t, high)  # the lower bound comes last: it wins over an upper bound below it
    return np.maximum(result, low, out=_reusable(result) if np.shape(low) in ((), np.shape(result)) else None)


direct(_clip_by_value, "ClipByValue")


@kernel("AddN", "AccumulateNV2")
def _add_n(node: KernelNode) -> Function:
    if node.attr("T") == dtypes.variant:
        return lambda *values: add_variants(values)

    def run(*values: Array) -> Array:
        first = values[0]
        for index, value in enumerate(values):
            if value.shape != first.shape:
                raise invalid(
                    f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                    f"Input 0: {_shape_text(first)} != input {index}: {_shape_text(value)}"
                )
        if len(values) == 1:
            return first
        total = np.add(first, values[1])
        for value in values[2:]:
            total += value
        return total

    def into(out: Array, *values: Array) -> Array | None:
        if not (out is values[0] or out is values[1]):  # the order of the sum counts
            return None
        if any(value.shape != out.shape or value.dtype != out.dtype for value in values):
            return None
        np.add(values[0], values[1], out=out)
        for value in values[2:]:
            out += value
        return out

    return with_into(run, into) if node.attr("N") > 1 else run


# -- sequences --


@kernel("Range")
def _range(node: KernelNode) -> Function:
    dtype = np.dtype(node.attr("Tidx").as_numpy_dtype)

    def run(start: Array, limit: Array, delta: Array) -> np.ndarray:
        for name, value in (("start", start), ("limit", limit), ("delta", delta)):
            if value.size != 1:
                raise invalid(f"{name} must be a scalar, not shape {_shape_text(value)}")
        first, last, step = start.item(), limit.item(), delta.item()
        if step == 0:
            raise invalid(f"Requires delta != 0: {step:g}")
        if (last - first) * step < 0:
            needed = "start <= limit when delta > 0" if step > 0 else "start >= limit when delta < 0"
            raise invalid(f"Requires {needed}: {first:g}/{last:g}")
        if dtype.kind in "iu":
            room((len(range(first, last, step)),), dtype)
            return np.arange(first, last, step, dtype=dtype)
        count = math.ceil(abs((last - first) / step))
        room((count,), np.float64)
        return (first + step * np.arange(count, dtype=np.float64)).astype(dtype)

    return run


@kernel("LinSpace")
def _lin_space(node: KernelNode) -> Function:
    dtype = node.attr("T").as_numpy_dtype

    def run(start: Array, stop: Array, num: Array) -> np.ndarray:
        if num <= 0:
            raise invalid(f"Requires num > 0: {int(num)}")
        room((int(num),), np.float64)
        return np.linspace(float(start), float(stop), int(num)).astype(dtype)

    return run


# -- casts --


@kernel("Cast", "_HostCast")
def _cast(node: KernelNode) -> Function:
    source, target = node.attr("SrcT").base_dtype, node.attr("DstT").base_dtype
    if source == target:
        return lambda x: x
    if not (source.size and target.size):  # strings, resources, variants
        raise errors.UnimplementedError.of(f"Cast {source.name} to {target.name} is not supported")
    dtype = target.as_numpy_dtype
    if source.is_complex and not target.is_complex:
        return lambda x: x.real.astype(dtype)
    return lambda x: x.astype(dtype)


def _shape_text(array: Array) -> str:
    return "[" + ",".join(str(size) for size in np.shape(array)) + "]"
