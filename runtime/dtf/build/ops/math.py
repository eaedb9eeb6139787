"""Public functions and shape rules of arithmetic, comparison, reductions, scans, sequences and casts.

Names, arguments and defaults are TensorFlow 1.x's (https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math).
Segments are in `segment`, matrix products and decompositions in `linalg`, gradients in `math_grad`, kernels in
`run.kernels.math`. Functions that are one op, with no choice to make, are rows of a table at the end of the public
part.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.shape_rules import broadcast, shape_rule, unchanged
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "asin", "asinh", "atan", "atan2", "atanh",
    "betainc", "bitwise_and", "bitwise_or", "bitwise_xor", "cast", "ceil", "complex", "conj", "cos", "cosh",
    "digamma", "div", "div_no_nan", "divide", "divide_no_nan", "equal", "erf", "erfc", "erfinv", "exp", "expm1",
    "floor", "floor_div", "floordiv", "floormod", "greater", "greater_equal", "igamma", "igammac", "imag", "invert",
    "is_finite", "is_inf", "is_nan", "left_shift", "less", "less_equal", "lgamma", "lin_space", "linspace", "log",
    "log1p", "log_sigmoid", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod",
    "multiply", "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal", "polygamma", "polyval", "pow",
    "range", "real", "realdiv", "reciprocal", "reciprocal_no_nan", "right_shift", "rint", "round", "rsqrt",
    "saturate_cast", "scalar_mul", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "squared_difference",
    "subtract", "tan", "tanh", "to_bfloat16", "to_complex128", "to_complex64", "to_double", "to_float", "to_int32",
    "to_int64", "truediv", "truncatediv", "truncatemod", "xdivy", "xlog1py", "xlogy", "zeta",
]  # fmt: skip


OneArgument = Callable[..., Tensor]

# -- division, powers, signs: where the op depends on the dtype --


@dispatched
def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y with Python 2's division: integers are floored, other types are divided exactly. Shapes broadcast."""
    with name_scope(name, "div", [x, y]) as name:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        if x.dtype.is_integer:
            return apply_op("FloorDiv", name, x=x, y=y)
        return apply_op("RealDiv", name, x=x, y=y)


@dispatched
def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, as Python 3 divides.

    Args:
      x: a tensor or value; integers become floating-point numbers.
      y: a tensor or value of the dtype of `x`.
      name: the name of the operation.

    Returns:
      A Tensor of the broadcast shape.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/divide
    """
    if name is None and isinstance(y, Tensor) and not isinstance(x, Tensor):
        x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
    return truediv(x, y, name or "truediv")


# The floating-point type for the quotient of integers of a type; None: the type is already floating-point.
_TRUE_DIVISION_TYPES: dict[dtypes.DType, dtypes.DType] = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.uint32: dtypes.float64,
    dtypes.int64: dtypes.float64,
    dtypes.uint64: dtypes.float64,
}


@dispatched
def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y; integers are divided as floating-point numbers.

    8- and 16-bit integers give float32, wider ones float64.

    Raises:
      TypeError: x and y are of different types.
    """
    with name_scope(name, "truediv", [x, y]) as name:
        x, y = _same_type(x, y)
        wider = _TRUE_DIVISION_TYPES.get(x.dtype.base_dtype)
        if wider is not None:
            x, y = cast(x, wider), cast(y, wider)
        return apply_op("RealDiv", name, x=x, y=y)


@dispatched
def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0; integers are divided as floating-point numbers.

    Raises:
      TypeError: x and y are of different types.
    """
    with name_scope(name, "div_no_nan", [x, y]) as name:
        if isinstance(y, Tensor) and not isinstance(x, Tensor):
            x = convert_to_tensor(x, dtype=y.dtype.base_dtype, name="x")
        x, y = _same_type(x, y)
        wider = _TRUE_DIVISION_TYPES.get(x.dtype.base_dtype)
        if wider is not None:
            x, y = cast(x, wider), cast(y, wider)
        return apply_op("DivNoNan", name, x=x, y=y)


@dispatched
def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The greatest integer not above x / y, in the type of x. Shapes broadcast."""
    with name_scope(name, "floordiv", [x, y]) as name:
        return apply_op("FloorDiv", name, x=x, y=y)


def _same_type(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x = convert_to_tensor(x, name="x")
    y = convert_to_tensor(y, name="y", dtype=None if isinstance(y, Tensor) else x.dtype.base_dtype)
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise TypeError(f"x and y must have the same dtype, got {x.dtype!r} != {y.dtype!r}")
    return x, y


@dispatched
def abs(x: TensorLike, name: str | None = None) -> Any:
    """The absolute value; of complex numbers the modulus. A SparseTensor remains sparse.

    Args:
      x: a tensor or SparseTensor of numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the same shape and dtype; for complex numbers, of the dtype of their parts.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/abs
    """
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, abs(x.values, name), x.dense_shape)
    with name_scope(name, "Abs", [x]) as name:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return apply_op("ComplexAbs", name, x=x, Tout=x.dtype.real_dtype)
        return apply_op("Abs", name, x=x)


@dispatched
def round(x: TensorLike, name: str | None = None) -> Tensor:
    """x rounded to the nearest integer, halves to the even one. Integers are returned as they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else apply_op("Round", name, x=x)


@dispatched
def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x))), computed so that it does not overflow."""
    with name_scope(name, "LogSigmoid", [x]) as name:
        x = convert_to_tensor(x, name="x")
        return negative(apply_op("Softplus", features=negative(x)), name=name)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return div_no_nan(constant(1, dtype=x.dtype.base_dtype, name="one"), x, name=scope)


@dispatched
def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """True where exactly one of x and y is."""
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name=name)


def polyval(coeffs: Sequence[Any], x: TensorLike, name: str | None = None) -> Tensor:
    """coeffs[0] x^(n-1) + ... + coeffs[n-1] by Horner's rule; zeros when there are no coefficients."""
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    with name_scope(name, "polyval", [*coeffs, x]) as name:
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return apply_op("ZerosLike", name, x=x)
        result = convert_to_tensor(coeffs[0], name="coeff")
        for coefficient in coeffs[1:]:
            result = add(coefficient, multiply(result, x))
        return result


# -- complex numbers --


@dispatched
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + imag * i. float32 gives complex64, float64 complex128. Shapes broadcast.

    Raises:
      TypeError: the parts are of different types, or not floating-point.
    """
    with name_scope(name, "Complex", [real, imag]) as name:
        real = convert_to_tensor(real, name="real")
        imag = convert_to_tensor(imag, name="imag")
        types = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if types not in ((dtypes.float32, dtypes.float32), (dtypes.float64, dtypes.float64)):
            raise TypeError(f"real and imag have incorrect types: {types[0].name} {types[1].name}")
        wide = dtypes.complex64 if types[0] == dtypes.float32 else dtypes.complex128
        return apply_op("Complex", name, real=real, imag=imag, Tout=wide)


@dispatched
def real(input: TensorLike, name: str | None = None) -> Tensor:
    """The real part; a tensor that is not complex is returned unchanged."""
    with name_scope(name, "Real", [input]) as name:
        input = convert_to_tensor(input, name="input")
        return apply_op("Real", name, input=input, Tout=input.dtype.real_dtype) if input.dtype.is_complex else input


@dispatched
def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """The imaginary part; zeros for a tensor that is not complex."""
    with name_scope(name, "Imag", [input]) as name:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Imag", name, input=input, Tout=input.dtype.real_dtype)
        return apply_op("ZerosLike", name, x=input)


@dispatched
def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """The argument of numbers, in radians: 0 or pi for real ones; zeros for a tensor of integers."""
    with name_scope(name, "Angle", [input]) as name:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Angle", name, input=input, Tout=input.dtype.real_dtype)
        if input.dtype.is_floating:  # the argument of a negative number is pi
            is_negative = cast(apply_op("Less", x=input, y=constant(0, input.dtype)), input.dtype)
            return apply_op("Mul", name, x=is_negative, y=constant(np.pi, input.dtype))
        return apply_op("ZerosLike", name, x=input)


@dispatched
def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """The complex conjugate; numbers that are not complex are returned as they are.

    Raises:
      TypeError: x is not numeric.
    """
    with name_scope(name, "Conj", [x]) as name:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype.base_dtype == dtypes.variant:
            return apply_op("Conj", name, input=x)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")


# -- sums of several tensors --


@dispatched
def add_n(inputs: TensorLike, name: str | None = None) -> Tensor:
    """The element-wise sum of tensors of one shape and dtype.

    Args:
      inputs: a list of tensors or IndexedSlices, which are made dense first.
      name: the name of the operation.

    Returns:
      A Tensor of that shape and dtype.

    Raises:
      ValueError: `inputs` is empty or not a sequence, or the shapes differ.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/add_n
    """
    tensors = _list_of_tensors(inputs)
    if len(tensors) == 1:
        return apply_op("Identity", name, input=tensors[0]) if name else tensors[0]
    return apply_op("AddN", name, inputs=tensors)


def accumulate_n(inputs: TensorLike, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """As `add_n`; `shape` and `tensor_dtype` state the inputs' common shape and dtype.

    Raises:
      TypeError: a tensor is not of type `tensor_dtype`.
      ValueError: `inputs` is empty or not a sequence, or the shapes differ.
    """
    tensors = _list_of_tensors(inputs)
    for tensor in tensors:
        if tensor_dtype is not None and tensor.dtype.base_dtype != dtypes.as_dtype(tensor_dtype):
            raise TypeError(f"tensor_dtype is {tensor_dtype}, but input is of type {tensor.dtype!r}")
    result = add_n(tensors, name)
    result.set_shape(shape)
    return result


def _list_of_tensors(inputs: Any) -> list[Tensor]:
    if isinstance(inputs, Tensor):
        iter(inputs)  # raises the error of a tensor that is taken for a list
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape")
    return [convert_to_tensor(each) for each in inputs]


def scalar_mul(scalar: Any, x: TensorLike, name: str | None = None) -> Any:
    """scalar * x; if x is IndexedSlices, so is the result.

    Raises:
      ValueError: `scalar` is not 0-d.
    """
    base = x.dtype.base_dtype if isinstance(x, Tensor | IndexedSlices) else None
    scalar = convert_to_tensor(scalar, dtype=None if isinstance(scalar, Tensor) else base, name="scalar")
    if scalar.shape.ndims not in (0, None):
        raise ValueError(f"Only scalar multiply works, got shape {scalar.shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(scalar, x.values, name), x.indices, x.dense_shape)
    return multiply(scalar, x, name)


# -- casts --


@dispatched
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """Converts to another dtype.

    Casting to integers truncates floating-point numbers towards zero. The real part of complex numbers is kept.
    Nonzero numbers become True.

    Args:
      x: a Tensor, SparseTensor or IndexedSlices of numbers or bool.
      dtype: the element type to convert to.
      name: the name of the operation.

    Returns:
      A Tensor of the same shape; `x` itself if it already has the dtype.

    Raises:
      TypeError: `x` cannot be cast to `dtype`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/cast
    """
    base = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype == base:
        return x
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, cast(x.values, base, name), x.dense_shape)
    with name_scope(name, "Cast", [x]) as name:
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, base, name), x.indices, x.dense_shape)
        x = convert_to_tensor(x, name="x")
        if x.dtype.base_dtype == base:
            return x
        return apply_op("Cast", name, x=x, DstT=base)


@dispatched
def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """x in another type, clamped to the range of that type first so that nothing wraps around."""
    with name_scope(name, "saturate_cast", [value]) as name:
        value = convert_to_tensor(value, name="value")
        target = dtypes.as_dtype(dtype).base_dtype
        source = value.dtype.base_dtype
        low, high = _range_in(source, target)
        if source.min < target.min:
            value = maximum(value, constant(low, dtype=source, name="min"))
        if source.max > target.max:
            value = minimum(value, constant(high, dtype=source, name="max"))
        return cast(value, target, name=name)


def _range_in(source: dtypes.DType, target: dtypes.DType) -> tuple[Any, Any]:
    """The least and greatest numbers of type `source` that are in the range of `target`."""
    low, high = np.array([target.min, target.max], dtype=object)
    if not (source.is_floating and target.is_integer):
        return low, high
    # The limit of a wide integer type is no floating-point number; rounding it could leave the range.
    kind = source.as_numpy_dtype
    low, high = kind(low), kind(high)
    if int(low) < target.min:
        low = np.nextafter(low, kind(0))
    if int(high) > target.max:
        high = np.nextafter(high, kind(0))
    return low, high


def to_float(x: TensorLike, name: str = "ToFloat") -> Tensor:
    """Converts to float32.

    Args:
      x: a Tensor, SparseTensor or IndexedSlices.
      name: the name of the operation.

    Returns:
      A Tensor of the same shape and dtype.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/to_float
    """
    return cast(x, dtypes.float32, name)


def to_double(x: TensorLike, name: str = "ToDouble") -> Tensor:
    """x as float64."""
    return cast(x, dtypes.float64, name)


def to_int32(x: TensorLike, name: str = "ToInt32") -> Tensor:
    """Converts to int32.

    Args:
      x: a Tensor, SparseTensor or IndexedSlices.
      name: the name of the operation.

    Returns:
      A Tensor of the same shape and dtype.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/to_int32
    """
    return cast(x, dtypes.int32, name)


def to_int64(x: TensorLike, name: str = "ToInt64") -> Tensor:
    """x as int64."""
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: TensorLike, name: str = "ToBFloat16") -> Tensor:
    """x as bfloat16."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: TensorLike, name: str = "ToComplex64") -> Tensor:
    """x as complex64."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: TensorLike, name: str = "ToComplex128") -> Tensor:
    """x as complex128."""
    return cast(x, dtypes.complex128, name)


# -- sequences --

_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def range(
    start: TensorLike, limit: Any = None, delta: TensorLike = 1, dtype: DTypeLike | None = None, name: str = "range"
) -> Tensor:
    """Evenly spaced numbers: start, start + delta, ... below limit. range(n) is range(0, n).

    Args:
      start: the first number, a scalar; the limit if `limit` is None.
      limit: the end, which is left out.
      delta: the distance between two numbers; negative to count down.
      dtype: the element type; by default the first of int32, int64, float32, float64 that holds all three arguments.
      name: the name of the operation.

    Returns:
      A vector of ceil((limit - start) / delta) numbers.

    Raises:
      InvalidArgumentError: at run time, `delta` is 0 or has the wrong sign.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/range
    """
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as name:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        ends = [
            convert_to_tensor(value, dtype=None if isinstance(value, Tensor) else wanted, name=what)
            for value, what in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if wanted is None:
            types = {end.dtype.base_dtype for end in ends}
            ranked = [each for each in _RANGE_TYPES if each in types]
            wanted = ranked[-1] if len(ranked) == len(types) else ends[0].dtype.base_dtype
        first, last, step = (cast(end, wanted) for end in ends)
        return apply_op("Range", name, start=first, limit=last, delta=step)


def linspace(start: TensorLike, stop: Any, num: Any, name: str | None = None, axis: Any = 0) -> Tensor:
    """Evenly spaced numbers between two bounds.

    Args:
      start: the first number, or a tensor of first numbers; integers become float64.
      stop: the last number, included; of the shape of `start`.
      num: how many numbers.
      name: the name of the operation.
      axis: the place of the new dimension, if the bounds have dimensions.

    Returns:
      A vector of `num` numbers of the dtype of `start`; for bounds of rank n, a tensor of rank n + 1.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linspace
    """
    with name_scope(name, "linspace", [start, stop]) as scope:
        first = convert_to_tensor(start, name="start")
        last = convert_to_tensor(stop, dtype=first.dtype, name="stop")
        count = convert_to_tensor(num, name="num") if not isinstance(num, int) else num
        if first.dtype.is_integer:
            first, last = cast(first, dtypes.float64), cast(last, dtypes.float64)
        if first.shape.ndims == 0 and last.shape.ndims == 0 and count != 0:
            return apply_op("LinSpace", scope, start=first, stop=last, num=count)
        return _linspace_of_many(first, last, count, axis, scope)


def _linspace_of_many(start: Tensor, stop: Tensor, count: Any, axis: Any, name: str) -> Tensor:
    """`linspace` of bounds with dimensions; the first and the last numbers are exact."""
    shape = apply_op("BroadcastArgs", s0=apply_op("Shape", input=start), s1=apply_op("Shape", input=stop))
    start, stop = (apply_op("BroadcastTo", input=each, shape=shape) for each in (start, stop))
    last = maximum(cast(count, dtypes.int32) - 1, 1)
    steps = cast(range(0, last), start.dtype)
    rank = apply_op("Rank", input=start)
    columns = apply_op("ConcatV2", values=[[-1], apply_op("Fill", dims=apply_op("ExpandDims", input=rank, dim=0),
                                                          value=1)], axis=0)  # fmt: skip
    low, high = (apply_op("ExpandDims", input=each, dim=0) for each in (start, stop))
    middle = low + (high - low) / cast(last, start.dtype) * apply_op("Reshape", tensor=steps, shape=columns)
    whole = apply_op("ConcatV2", values=[middle, high], axis=0)
    whole = apply_op("StridedSlice", input=whole, begin=[0], end=apply_op("Reshape", tensor=cast(count, dtypes.int32),
                                                                         shape=[1]), strides=[1])  # fmt: skip
    if not isinstance(axis, Tensor) and axis == 0:
        return apply_op("Identity", name, input=whole)
    axis = cast(axis, dtypes.int32)
    axis = apply_op("SelectV2", condition=less(axis, 0), t=axis + rank + 1, e=axis)
    order = apply_op("ConcatV2", values=[range(1, axis + 1), [0], range(axis + 1, rank + 1)], axis=0)
    return apply_op("Transpose", name, x=whole, perm=order)


lin_space = linspace


# -- functions that are one op --


def one_op(op_type: str, name: str, arguments: Sequence[str], text: str, shape: str = "") -> OneArgument:
    """The public function of an op whose inputs are `arguments`, in order, and whose attributes have defaults.

    `shape` describes the result's shape; by default the shape of the inputs, or the shape that they broadcast to.
    """

    def function(*values: Any, name: str | None = None, **named: Any) -> Tensor:
        given = dict(zip(arguments, values, strict=False))
        if len(values) == len(arguments) + 1 and name is None:
            name = values[-1]
        elif len(values) > len(arguments):
            raise TypeError(f"{function.__name__}() takes {', '.join(arguments)} and name, got {len(values)} values")
        given.update(named)
        if set(given) != set(arguments):
            raise TypeError(f"{function.__name__}() takes {', '.join(arguments)} and name, got {', '.join(given)}")
        return apply_op(op_type, name, **given)

    return _described(function, op_type, name, tuple(arguments), text, shape)


def _of_one(op_type: str, name: str, text: str) -> OneArgument:
    return one_op(op_type, name, ["x"], text)


def _of_one_or_sparse(op_type: str, name: str, text: str) -> OneArgument:
    """A function with f(0) = 0: of a SparseTensor it is the SparseTensor of f of the stored values."""

    def function(x: Any, name: str | None = None) -> Any:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, apply_op(op_type, name, x=x.values), x.dense_shape)
        return apply_op(op_type, name, x=x)

    return _described(function, op_type, name, ("x",), text + " A SparseTensor stays one.")


def _of_two(op_type: str, name: str, text: str) -> OneArgument:
    return one_op(op_type, name, ["x", "y"], text + " Shapes broadcast.")


def _described(
    function: Callable[..., Any], op_type: str, name: str, arguments: tuple[str, ...], text: str, shape: str = ""
) -> OneArgument:
    """The function with the name, signature and documentation that `help` and editors show."""
    function.__name__ = function.__qualname__ = name
    function.__signature__ = _signature(arguments)  # type: ignore[attr-defined]
    taken = "".join(
        f"  {each}: a tensor, or a value that converts to one, of a dtype of the op {op_type}.\n" for each in arguments
    )
    shape = shape or (f"of the shape of {arguments[0]}" if len(arguments) == 1 else "of the broadcast shape")
    dtype = ", bool" if op_type in _GIVE_BOOL else f" and the dtype of {arguments[0]}"
    function.__doc__ = (
        f"{text}\n\nArgs:\n{taken}  name: the name of the operation.\n\nReturns:\n  A tensor {shape}{dtype}.\n\n"
        "Raises:\n  TypeError: a dtype is not one of the op's; runtime/ops.md lists them.\n"
        "  ValueError: the shapes do not fit.\n\n"
        f"Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/{name}"
    )
    return dispatched(function)


@functools.cache
def _signature(arguments: tuple[str, ...]) -> inspect.Signature:
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(each, either, annotation="TensorLike") for each in arguments]
    parameters.append(inspect.Parameter("name", either, default=None, annotation="str | None"))
    return inspect.Signature(parameters, return_annotation="Tensor")


_GIVE_BOOL = frozenset(
    "Equal Greater GreaterEqual IsFinite IsInf IsNan Less LessEqual LogicalAnd LogicalNot LogicalOr NotEqual".split()
)


acos = _of_one("Acos", "acos", "The angle in [0, pi] whose cosine is x.")
acosh = _of_one("Acosh", "acosh", "The inverse of cosh, for x >= 1.")
asin = _of_one("Asin", "asin", "The angle in [-pi/2, pi/2] whose sine is x.")
asinh = _of_one("Asinh", "asinh", "The inverse of sinh.")
atan = _of_one("Atan", "atan", "The angle in (-pi/2, pi/2) whose tangent is x.")
atanh = _of_one("Atanh", "atanh", "The inverse of tanh, for -1 <= x <= 1.")
ceil = _of_one("Ceil", "ceil", "The least integer not below x, in the type of x.")
cos = _of_one("Cos", "cos", "The cosine of x radians.")
cosh = _of_one("Cosh", "cosh", "(exp(x) + exp(-x)) / 2.")
digamma = _of_one("Digamma", "digamma", "The derivative of lgamma.")
erf = _of_one_or_sparse("Erf", "erf", "The error function.")
erfc = _of_one("Erfc", "erfc", "1 - erf(x), exact where erf(x) is near 1.")
erfinv = _of_one("Erfinv", "erfinv", "The inverse of erf.")
exp = _of_one("Exp", "exp", "e to the power x.")
expm1 = _of_one("Expm1", "expm1", "exp(x) - 1, exact near x = 0.")
floor = _of_one("Floor", "floor", "The greatest integer not above x, in the type of x.")
invert = _of_one("Invert", "invert", "x with every bit flipped. Integers.")
is_finite = _of_one("IsFinite", "is_finite", "Whether x is neither infinite nor NaN.")
is_inf = _of_one("IsInf", "is_inf", "Whether x is infinite.")
is_nan = _of_one("IsNan", "is_nan", "Whether x is NaN.")
lgamma = _of_one("Lgamma", "lgamma", "log |gamma(x)|.")
log = _of_one("Log", "log", "The natural logarithm of x.")
log1p = _of_one("Log1p", "log1p", "log(1 + x), exact near x = 0.")
logical_not = _of_one("LogicalNot", "logical_not", "True where x is False.")
ndtri = _of_one("Ndtri", "ndtri", "The quantile function of the standard normal distribution.")
negative = _of_one_or_sparse("Neg", "negative", "-x.")
reciprocal = _of_one("Reciprocal", "reciprocal", "1 / x.")
rint = _of_one("Rint", "rint", "x rounded to the nearest integer, halves to the even one, in the type of x.")
rsqrt = _of_one("Rsqrt", "rsqrt", "1 / sqrt(x).")
sigmoid = _of_one("Sigmoid", "sigmoid", "1 / (1 + exp(-x)).")
sign = _of_one_or_sparse("Sign", "sign", "-1, 0 or 1 as x is below, at or above 0; x / |x| of complex numbers.")
sin = _of_one("Sin", "sin", "The sine of x radians.")
sinh = _of_one("Sinh", "sinh", "(exp(x) - exp(-x)) / 2.")
sqrt = _of_one_or_sparse("Sqrt", "sqrt", "The square root of x.")
square = _of_one_or_sparse("Square", "square", "x * x.")
tan = _of_one("Tan", "tan", "The tangent of x radians.")
tanh = _of_one_or_sparse("Tanh", "tanh", "The hyperbolic tangent of x.")

add = _of_two("Add", "add", "x + y; strings are joined.")
bitwise_and = _of_two("BitwiseAnd", "bitwise_and", "The bits set in both x and y. Integers.")
bitwise_or = _of_two("BitwiseOr", "bitwise_or", "The bits set in x or y. Integers.")
bitwise_xor = _of_two("BitwiseXor", "bitwise_xor", "The bits set in exactly one of x and y. Integers.")
equal = _of_two("Equal", "equal", "Whether x == y.")
floor_div = _of_two("FloorDiv", "floor_div", "The greatest integer not above x / y, in the type of x.")
floormod = _of_two("FloorMod", "floormod", "x - floor(x / y) * y: the remainder has the sign of y.")
greater = _of_two("Greater", "greater", "Whether x > y.")
greater_equal = _of_two("GreaterEqual", "greater_equal", "Whether x >= y.")
left_shift = _of_two("LeftShift", "left_shift", "x with its bits moved up by y places, y clamped to the width of x.")
less = _of_two("Less", "less", "Whether x < y.")
less_equal = _of_two("LessEqual", "less_equal", "Whether x <= y.")
logical_and = _of_two("LogicalAnd", "logical_and", "Whether both x and y are True.")
logical_or = _of_two("LogicalOr", "logical_or", "Whether x or y is True.")
maximum = _of_two("Maximum", "maximum", "The greater of x and y.")
minimum = _of_two("Minimum", "minimum", "The lesser of x and y.")
multiply = _of_two("Mul", "multiply", "x * y.")
multiply_no_nan = _of_two("MulNoNan", "multiply_no_nan", "x * y, and 0 where y is 0, even if x is infinite or NaN.")
not_equal = _of_two("NotEqual", "not_equal", "Whether x != y.")
pow = _of_two("Pow", "pow", "x to the power y.")
realdiv = _of_two("RealDiv", "realdiv", "x / y of floating-point or complex numbers.")
right_shift = _of_two("RightShift", "right_shift", "x with its bits moved down by y places, the sign kept.")
squared_difference = _of_two("SquaredDifference", "squared_difference", "(x - y)^2.")
subtract = _of_two("Sub", "subtract", "x - y.")
truncatediv = _of_two("TruncateDiv", "truncatediv", "x / y cut toward zero, in the type of x.")
truncatemod = _of_two("TruncateMod", "truncatemod", "The remainder of `truncatediv`: it has the sign of x.")
xdivy = _of_two("Xdivy", "xdivy", "x / y, and 0 where x is 0.")
xlog1py = _of_two("Xlog1py", "xlog1py", "x * log(1 + y), and 0 where x is 0.")
xlogy = _of_two("Xlogy", "xlogy", "x * log(y), and 0 where x is 0.")

atan2 = one_op("Atan2", "atan2", ["y", "x"], "The angle of the point (x, y), in [-pi, pi]. Shapes broadcast.")
betainc = one_op("Betainc", "betainc", ["a", "b", "x"], "The regularised incomplete beta function I_x(a, b).")
igamma = one_op("Igamma", "igamma", ["a", "x"], "The regularised lower incomplete gamma function P(a, x).")
igammac = one_op("Igammac", "igammac", ["a", "x"], "The regularised upper incomplete gamma function Q(a, x).")
nextafter = one_op("NextAfter", "nextafter", ["x1", "x2"], "The next number after x1 toward x2.")
polygamma = one_op("Polygamma", "polygamma", ["a", "x"], "The a-th derivative of digamma at x.")
zeta = one_op("Zeta", "zeta", ["x", "q"], "The Hurwitz zeta function: the sum of (q + k)^-x over k >= 0.")


divide_no_nan = div_no_nan
mod = floormod


# -- shape rules --

shape_rule(
    "Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "Bucketize", "Cast", "Ceil", "ComplexAbs",
    "Conj", "Cos", "Cosh", "Digamma", "Erf", "Erfc", "Erfinv", "Exp",
    "Expm1", "Floor", "Imag", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p", "LogicalNot",
    "Ndtri", "Neg", "PopulationCount", "Real", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh",
    "Sqrt", "Square", "Tan", "Tanh",
)(unchanged)  # fmt: skip

shape_rule(
    "Add", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div", "DivNoNan",
    "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Igamma", "Igammac", "LeftShift", "Less", "LessEqual",
    "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "NotEqual", "Polygamma",
    "Pow", "RealDiv", "RightShift", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py",
    "Xlogy", "Zeta",
)(broadcast)  # fmt: skip


@shape_rule(
    "AddN", "AccumulateNV2", "InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"
)
def _all_the_same(op: Operation) -> list[TensorShape]:
    shape = op.get_attr("shape") if op.type == "AccumulateNV2" else unknown_shape()
    for tensor in op.inputs:
        shape = shape.merge_with(tensor.shape)
    return [shape]


shape_rule("_HostCast")(unchanged)


@shape_rule("Betainc")
def _betainc_shape(op: Operation) -> list[TensorShape]:
    shape = unknown_shape()
    for tensor in op.inputs:
        if tensor.shape.ndims != 0:
            shape = shape.merge_with(tensor.shape)
    return [TensorShape([]) if all(tensor.shape.ndims == 0 for tensor in op.inputs) else shape]


@shape_rule("ClipByValue")
def _clip_by_value_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    for bound in op.inputs[1:]:
        if bound.shape.ndims not in (0, None):
            shape = shape.merge_with(bound.shape)
    return [shape]


@shape_rule("Range")
def _range_shape(op: Operation) -> list[TensorShape]:
    for tensor, what in zip(op.inputs, ("start", "limit", "delta"), strict=True):
        if tensor.shape.ndims not in (0, None):
            raise ValueError(f"{what} must be a scalar, not shape {tensor.shape}")
    start, limit, delta = (constant_value(tensor) for tensor in op.inputs)
    if start is None or limit is None or delta is None:
        return [unknown_shape(1)]
    if delta == 0:
        raise ValueError("Requires delta != 0")
    first, last, step = (value.item() for value in (start, limit, delta))
    if (last - first) * step < 0:
        raise ValueError(f"Requires start and limit in the order of delta: start {first}, limit {last}, delta {step}")
    return [TensorShape([int(np.ceil(builtins.abs((last - first) / step)))])]


@shape_rule("LinSpace")
def _lin_space_shape(op: Operation) -> list[TensorShape]:
    count = constant_value(op.inputs[2])
    if count is not None and count < 0:
        raise ValueError(f"Requires num > 0: {count}")
    return [TensorShape([None if count is None else int(count)])]
