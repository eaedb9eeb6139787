"""Element-wise arithmetic, comparisons, activations and their gradients, casts."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from dtf.run.devices.pytorch.arrays import COMPUTED, dtype_of
from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.wire import dtypes

# Klambauer et al., "Self-Normalizing Neural Networks", arXiv 1706.02515.
_SELU_SCALE = 1.0507009873554805
_SELU_SCALED_ALPHA = _SELU_SCALE * 1.6732632423543772


def _direct(table: dict[str, TensorFunction]) -> None:
    """Registers functions that do not depend on their node's attributes."""
    for op, function in table.items():
        computes(op)(_constant(function))


def _constant(function: TensorFunction) -> Callable[[KernelNode], TensorFunction]:
    return lambda node: function


def _rows_without_type(table: dict[str, TensorFunction]) -> None:
    """As `_direct`, of ops that have no attribute T."""
    for op, function in table.items():
        computes(op, attr="")(_constant(function))


# -- one argument

_direct(
    {
        "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh,
        "Atan": torch.atan, "Atanh": torch.atanh, "Ceil": torch.ceil, "ComplexAbs": torch.abs,
        "Conj": torch.conj_physical, "Cos": torch.cos, "Cosh": torch.cosh, "Digamma": torch.digamma,
        "Erf": torch.erf, "Erfc": torch.erfc, "Erfinv": torch.erfinv, "Exp": torch.exp, "Expm1": torch.expm1,
        "Floor": torch.floor, "Imag": torch.imag, "Inv": torch.reciprocal, "Invert": torch.bitwise_not,
        "IsFinite": torch.isfinite, "IsInf": torch.isinf, "IsNan": torch.isnan, "Lgamma": torch.lgamma,
        "Log": torch.log, "Log1p": torch.log1p, "Ndtri": torch.special.ndtri, "Neg": torch.neg, "Real": torch.real,
        "Reciprocal": torch.reciprocal, "Rint": torch.round, "Round": torch.round, "Rsqrt": torch.rsqrt,
        "Sigmoid": torch.sigmoid, "Sin": torch.sin, "Sinh": torch.sinh, "Sqrt": torch.sqrt, "Square": torch.square,
        "Tan": torch.tan, "Tanh": torch.tanh, "Sign": torch.sgn,
        "Relu": torch.relu, "Relu6": functional.relu6, "Softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
        "Softsign": functional.softsign, "Elu": lambda x: torch.where(x < 0, torch.expm1(torch.clamp(x, max=0)), x),
        "OnesLike": torch.ones_like, "ZerosLike": torch.zeros_like,
    }
)  # fmt: skip
_rows_without_type({"LogicalNot": torch.logical_not})


@computes("Selu", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    def selu(x: Tensor) -> Tensor:
        return torch.where(x < 0, torch.expm1(torch.clamp(x, max=0)) * _SELU_SCALED_ALPHA, x * _SELU_SCALE)

    return selu


@computes("LeakyRelu", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    alpha = node.attr("alpha")
    return lambda x: functional.leaky_relu(x, alpha)


# -- gradients of one argument


def _zero_where_zero(decisive: Tensor, result: Tensor) -> Tensor:
    """The result, but 0 where `decisive` is 0, even where it is infinite or NaN there."""
    return torch.where(decisive == 0, torch.zeros_like(result), result)


def _same_shape(function: Callable[[Tensor, Tensor], Tensor]) -> TensorFunction:
    """A function of two tensors that does not broadcast."""

    def run(first: Tensor, second: Tensor) -> Tensor:
        if first.shape != second.shape:
            raise Unsuited
        return function(first, second)

    return run


def _selu_grad(dy: Tensor, y: Tensor) -> Tensor:
    return dy * torch.where(y < 0, y + _SELU_SCALED_ALPHA, torch.full_like(y, _SELU_SCALE))


_direct(
    {
        "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
        "TanhGrad": lambda y, dy: dy * (1 - y * y),
        "SqrtGrad": lambda y, dy: _zero_where_zero(dy, dy / torch.conj_physical(y) * 0.5),
        "RsqrtGrad": lambda y, dy: _zero_where_zero(dy, torch.conj_physical(y * y * y) * dy * -0.5),
        "ReciprocalGrad": lambda y, dy: _zero_where_zero(dy, torch.conj_physical(-y * y) * dy),
        "InvGrad": lambda y, dy: _zero_where_zero(dy, torch.conj_physical(-y * y) * dy),
        "ReluGrad": _same_shape(lambda dy, x: dy * (x > 0)),
        "Relu6Grad": _same_shape(lambda dy, x: dy * ((x > 0) & (x < 6))),
        "EluGrad": _same_shape(lambda dy, y: torch.where(y < 0, dy * (y + 1), dy)),
        "SeluGrad": _same_shape(_selu_grad),
        "SoftplusGrad": _same_shape(lambda dy, x: dy / (torch.exp(-x) + 1)),
        "SoftsignGrad": _same_shape(lambda dy, x: dy / torch.square(1 + torch.abs(x))),
    }
)


@computes("LeakyReluGrad", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    alpha = node.attr("alpha")
    return _same_shape(lambda dy, x: torch.where(x > 0, dy, dy * alpha))


# -- two arguments


def _shifted(shift: Callable[[Tensor, Tensor], Tensor]) -> TensorFunction:
    def run(x: Tensor, y: Tensor) -> Tensor:
        return shift(x, torch.clamp(y, 0, 8 * x.element_size() - 1))

    return run


_direct(
    {
        "Add": torch.add, "AddV2": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Atan2": torch.atan2,
        "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor,
        "Greater": torch.gt, "GreaterEqual": torch.ge, "Less": torch.lt, "LessEqual": torch.le,
        "Equal": torch.eq, "NotEqual": torch.ne, "Maximum": torch.maximum, "Minimum": torch.minimum,
        "NextAfter": torch.nextafter,
        "LeftShift": _shifted(torch.bitwise_left_shift), "RightShift": _shifted(torch.bitwise_right_shift),
        "DivNoNan": lambda x, y: _zero_where_zero(y, x / y),
        "MulNoNan": lambda x, y: _zero_where_zero(y.expand(torch.broadcast_shapes(x.shape, y.shape)), x * y),
        "Xdivy": lambda x, y: _zero_where_zero(x.expand(torch.broadcast_shapes(x.shape, y.shape)), x / y),
        "Xlogy": lambda x, y: _zero_where_zero(x.expand(torch.broadcast_shapes(x.shape, y.shape)), x * torch.log(y)),
        "Xlog1py": lambda x, y: _zero_where_zero(
            x.expand(torch.broadcast_shapes(x.shape, y.shape)), x * torch.log1p(y)
        ),
        "ClipByValue": lambda x, low, high: torch.maximum(torch.minimum(x, high), low),
    }
)  # fmt: skip
_rows_without_type({"LogicalAnd": torch.logical_and, "LogicalOr": torch.logical_or})


def _quotient(of_floats: Callable[[Tensor, Tensor], Tensor], rounding: str) -> Callable[[KernelNode], TensorFunction]:
    def of_integers(x: Tensor, y: Tensor) -> Tensor:
        if not y.is_cuda and not bool(torch.all(y != 0)):
            raise Unsuited  # an error
        return torch.div(x, y, rounding_mode=rounding)

    return lambda node: of_integers if node.attr("T").is_integer else of_floats


def _remainder(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[KernelNode], TensorFunction]:
    def of_integers(x: Tensor, y: Tensor) -> Tensor:
        if not y.is_cuda and not bool(torch.all(y != 0)):
            raise Unsuited
        return function(x, y)

    return lambda node: of_integers if node.attr("T").is_integer else function


computes("RealDiv", "Div")(_quotient(torch.true_divide, "trunc"))
computes("TruncateDiv")(_quotient(lambda x, y: torch.trunc(x / y), "trunc"))
computes("FloorDiv")(_quotient(lambda x, y: torch.floor(x / y), "floor"))
computes("FloorMod", types=COMPUTED - FLOATS)(_remainder(torch.remainder))
computes("TruncateMod", "Mod")(_remainder(torch.fmod))


@computes("Pow", types=FLOATS | {dtypes.complex64, dtypes.complex128})
def _(node: KernelNode) -> TensorFunction:
    return torch.pow


@computes("SquaredDifference", types=COMPUTED - {dtypes.complex64, dtypes.complex128})
def _(node: KernelNode) -> TensorFunction:
    return lambda x, y: torch.square(x - y)


@computes("AddN", "AccumulateNV2")
def _(node: KernelNode) -> TensorFunction:
    def add_n(*values: Tensor) -> Tensor:
        first = values[0]
        if any(value.shape != first.shape for value in values):
            raise Unsuited
        if len(values) == 1:
            return first
        total = first + values[1]
        for value in values[2:]:
            total.add_(value)
        return total

    return add_n


@computes("L2Loss", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    def l2_loss(x: Tensor) -> Tensor:
        flat = in_wide(x).reshape(-1)
        return torch.dot(flat, flat) * 0.5

    return l2_loss


@computes("Cast", attr="SrcT")
def _(node: KernelNode) -> TensorFunction:
    source, target = node.attr("SrcT").base_dtype, node.attr("DstT").base_dtype
    wanted = dtype_of(target)
    is_narrowing = source.is_floating and target.is_integer  # what is out of range differs by processor

    def cast(x: Tensor) -> Tensor:
        if wanted is None or (is_narrowing and not x.is_cuda):
            raise Unsuited
        if x.is_complex() and not wanted.is_complex:
            x = torch.real(x)
        return x.to(wanted)

    return cast if source != target else lambda x: x


@computes("CheckNumerics", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    def check(x: Tensor) -> Tensor:
        if not math.isfinite(float(x.abs().max())) if x.numel() else False:
            raise Unsuited  # the CPU's kernel has the words
        return x

    return check
