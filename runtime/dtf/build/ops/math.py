"""Public functions and shape rules of arithmetic, comparison, reductions, scans, sequences and casts.

Names, arguments and defaults are TensorFlow 1.x's (https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math).
Segments are in `segment`, matrix products and decompositions in `linalg`, gradients in `math_grad`, kernels in
`run.kernels.math`. Functions that are one op, with no choice to make, are rows of a table at the end of the public
part.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant, constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import name_scope
from dtf.build.shape_rules import broadcast, shape_rule, unchanged
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, unknown_shape

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "arg_max", "arg_min", "argmax", "argmin", "asin",
    "asinh", "atan", "atan2", "atanh", "betainc", "bincount", "bitwise_and", "bitwise_or", "bitwise_xor", "cast",
    "ceil", "complex", "conj", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp", "digamma",
    "div", "div_no_nan", "divide", "divide_no_nan", "equal", "erf", "erfc", "erfinv", "exp", "expm1", "floor",
    "floor_div", "floordiv", "floormod", "greater", "greater_equal", "histogram_fixed_width",
    "histogram_fixed_width_bins", "igamma", "igammac", "imag", "invert", "is_finite", "is_inf", "is_nan", "lbeta",
    "left_shift", "less", "less_equal", "lgamma", "lin_space", "linspace", "log", "log1p", "log_sigmoid",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
    "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal", "polygamma", "polyval", "pow", "range", "real",
    "realdiv", "reciprocal", "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "right_shift", "rint", "round", "rsqrt", "saturate_cast", "scalar_mul", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "square", "squared_difference", "subtract", "tan", "tanh", "to_bfloat16", "to_complex128",
    "to_complex64", "to_double", "to_float", "to_int32", "to_int64", "truediv", "truncatediv", "truncatemod", "xdivy",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip


OneArgument = Callable[..., Tensor]

# -- division, powers, signs: where the op depends on the dtype --


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 2 divides: integers are floored, anything else is divided exactly. Shapes broadcast."""
    with name_scope(name, "div", [x, y]) as name:
        x, y = _same_type(x, y)
        if x.dtype.is_integer:
            return apply_op("FloorDiv", name, x=x, y=y)
        return apply_op("RealDiv", name, x=x, y=y)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 3 divides; see `truediv`."""
    return truediv(x, y, name or "truediv")


# The floating-point type in which integers of a type are divided; None: they are floating-point already.
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


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
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


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The greatest integer not above x / y, in the type of x. Shapes broadcast."""
    with name_scope(name, "floordiv", [x, y]) as name:
        return apply_op("FloorDiv", name, x=x, y=y)


def _same_type(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x = convert_to_tensor(x, name="x")
    y = convert_to_tensor(y, name="y", dtype=None if isinstance(y, Tensor) else x.dtype.base_dtype)
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise TypeError(f"x and y must have the same dtype, got {x.dtype!r} != {y.dtype!r}")
    return x, y


def abs(x: Any, name: str | None = None) -> Any:
    """|x|; of complex numbers the modulus, in the type of their parts. A SparseTensor stays one."""
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, abs(x.values, name), x.dense_shape)
    with name_scope(name, "Abs", [x]) as name:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return apply_op("ComplexAbs", name, x=x, Tout=x.dtype.real_dtype)
        return apply_op("Abs", name, x=x)


def round(x: Any, name: str | None = None) -> Tensor:
    """x rounded to the nearest integer, halves to the even one. Integers are returned as they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else apply_op("Round", name, x=x)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x))), computed so that it does not overflow."""
    with name_scope(name, "LogSigmoid", [x]) as name:
        x = convert_to_tensor(x, name="x")
        return negative(apply_op("Softplus", features=negative(x)), name=name)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return div_no_nan(constant(1, dtype=x.dtype.base_dtype, name="one"), x, name=scope)


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """True where exactly one of x and y is."""
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name=name)


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
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


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """log |Beta(x)| over the last axis: the sum of lgamma(x) less lgamma of the sum. x: [..., k] -> [...]."""
    with name_scope(name, "lbeta", [x]) as name:
        x = convert_to_tensor(x, name="x")
        return subtract(reduce_sum(lgamma(x), axis=[-1]), lgamma(reduce_sum(x, axis=[-1])), name=name)


# -- complex numbers --


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


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part; a tensor that is not complex is returned as it is."""
    with name_scope(name, "Real", [input]) as name:
        input = convert_to_tensor(input, name="input")
        return apply_op("Real", name, input=input, Tout=input.dtype.real_dtype) if input.dtype.is_complex else input


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part; zeros for a tensor that is not complex."""
    with name_scope(name, "Imag", [input]) as name:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Imag", name, input=input, Tout=input.dtype.real_dtype)
        return apply_op("ZerosLike", name, x=input)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of complex numbers, in radians; zeros for a tensor that is not complex."""
    with name_scope(name, "Angle", [input]) as name:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Angle", name, input=input, Tout=input.dtype.real_dtype)
        return apply_op("ZerosLike", name, x=input)


def conj(x: Any, name: str | None = None) -> Tensor:
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


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The element-wise sum of tensors of one shape and type. IndexedSlices are made dense first.

    Raises:
      ValueError: `inputs` is empty or not a sequence, or the shapes differ.
    """
    tensors = _list_of_tensors(inputs)
    if len(tensors) == 1:
        return apply_op("Identity", name, input=tensors[0]) if name else tensors[0]
    return apply_op("AddN", name, inputs=tensors)


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """As `add_n`; `shape` may say what the inputs agree on, `tensor_dtype` what their type must be.

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
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape")
    return [convert_to_tensor(each) for each in inputs]


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """scalar * x, where x may be IndexedSlices (which stay IndexedSlices).

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


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """x in another type; x itself when it has that type already. IndexedSlices and SparseTensors stay such.

    Floating-point numbers are cut toward zero when cast to integers; of complex numbers the real part is kept; numbers
    become True when they are not zero.
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


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
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


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """x as float32."""
    return cast(x, dtypes.float32, name)


def to_double(x: Any, name: str = "ToDouble") -> Tensor:
    """x as float64."""
    return cast(x, dtypes.float64, name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """x as int32."""
    return cast(x, dtypes.int32, name)


def to_int64(x: Any, name: str = "ToInt64") -> Tensor:
    """x as int64."""
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Tensor:
    """x as bfloat16."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Tensor:
    """x as complex64."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Tensor:
    """x as complex128."""
    return cast(x, dtypes.complex128, name)


# -- reductions --


def reduce_sum(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sum along `axis` (an integer, a list or tensor of them; all axes by default), in the type of the input.

    With `keepdims` the reduced axes stay, with size 1. `reduction_indices` and `keep_dims` are the older names.
    """
    return _reduce("Sum", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The mean along `axis`; arguments as for `reduce_sum`. The mean of integers is an integer, cut toward zero."""
    return _reduce("Mean", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_prod(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The product along `axis`; arguments as for `reduce_sum`."""
    return _reduce("Prod", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_max(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The maximum along `axis`; arguments as for `reduce_sum`. Of nothing: the least value of the type."""
    return _reduce("Max", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_min(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The minimum along `axis`; arguments as for `reduce_sum`. Of nothing: the greatest value of the type."""
    return _reduce("Min", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_all(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether all are true along `axis`; arguments as for `reduce_sum`."""
    return _reduce("All", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_any(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether any is true along `axis`; arguments as for `reduce_sum`."""
    return _reduce("Any", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares along `axis`."""
    return _reduce("EuclideanNorm", input_tensor, axis, keepdims, name)


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """log of the sum of exp along `axis`, without overflow; arguments as for `reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as name:
        x = convert_to_tensor(input_tensor, name="input_tensor")
        largest = reduce_max(x, axis, keepdims=True)
        # An infinite maximum would make inf - inf; the result does not depend on what is subtracted.
        finite = apply_op(
            "Select",
            condition=is_finite(largest),
            t=largest,
            e=apply_op("ZerosLike", x=largest),
        )
        shift = apply_op("StopGradient", input=finite)
        result = log(reduce_sum(exp(subtract(x, shift)), axis, keepdims=keep))
        if not keep:
            shift = apply_op("Reshape", tensor=shift, shape=apply_op("Shape", input=result))
        return add(result, shift, name=name)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The population variance along `axis`: the mean square distance from the mean.

    Raises:
      TypeError: the input is of an integer type.
    """
    with name_scope(name or "reduce_variance", None, [input_tensor]):
        x = convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
        distance = subtract(x, reduce_mean(x, axis=axis, keepdims=True))
        squared = real(multiply(conj(distance), distance)) if x.dtype.is_complex else square(distance)
        return reduce_mean(squared, axis=axis, keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The square root of `reduce_variance`."""
    with name_scope(name or "reduce_std", None, [input_tensor]):
        return sqrt(reduce_variance(input_tensor, axis=axis, keepdims=keepdims))


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """How many elements along `axis` are not zero (not empty, for strings); other arguments as for `reduce_sum`."""
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims))
    value = _one_of("input", input, "input_tensor", input_tensor)
    with name_scope(name, "count_nonzero", [value]):
        value = convert_to_tensor(value, name="input")
        zero = constant("" if value.dtype.base_dtype == dtypes.string else 0, dtype=value.dtype.base_dtype)
        counted = cast(not_equal(value, zero), dtypes.int64)
        return cast(reduce_sum(counted, axis=axis, keepdims=keep), dtypes.as_dtype(dtype))


def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """The index of the greatest element along one axis (0 by default), the first of several equal ones."""
    axis = _one_of("axis", axis, "dimension", dimension)
    return arg_max(input, 0 if axis is None else axis, output_type, name)


def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """The index of the least element along one axis (0 by default), the first of several equal ones."""
    axis = _one_of("axis", axis, "dimension", dimension)
    return arg_min(input, 0 if axis is None else axis, output_type, name)


def arg_max(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The older form of `argmax`."""
    return apply_op("ArgMax", name, input=input, dimension=dimension, output_type=dtypes.as_dtype(output_type))


def arg_min(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The older form of `argmin`."""
    return apply_op("ArgMin", name, input=input, dimension=dimension, output_type=dtypes.as_dtype(output_type))


def _reduce(
    op_type: str,
    input_tensor: Any,
    axis: Any,
    keepdims: bool | None,
    name: str | None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    axis = _one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims))
    x = convert_to_tensor(input_tensor, name="input_tensor")
    axes = _all_axes(x) if axis is None else axis
    result = apply_op(op_type, name, input=x, reduction_indices=axes, keep_dims=keep)
    if axis is None and not keep:
        result.set_shape([])
    return result


def _all_axes(x: Tensor) -> Any:
    if x.shape.ndims is not None:
        return constant(np.arange(x.shape.ndims, dtype=np.int32))
    return range(0, apply_op("Rank", input=x))


def _one_of(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has two names."""
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{new_name}' and '{old_name}'.")
    return old


# -- scans --


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running sums along `axis`; `exclusive` leaves an element out of its own sum, `reverse` sums from the end."""
    return apply_op("Cumsum", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running products along `axis`; arguments as for `cumsum`."""
    return apply_op("Cumprod", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running log-sum-exp along `axis`; arguments as for `cumsum`."""
    return apply_op("CumulativeLogsumexp", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


# -- sequences and counts --

_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """start, start + delta, ... up to but without limit; range(n) is range(0, n). A vector.

    The type is `dtype`, or the first of int32, int64, float32, float64 that holds all three arguments.
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


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` evenly spaced numbers from start to stop, both included. A vector of floating-point numbers."""
    return apply_op("LinSpace", name, start=start, stop=stop, num=num)


lin_space = linspace


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32
) -> Tensor:
    """How often each value of `arr` (int32, not negative) occurs: a vector that is long enough for the largest value.

    With `weights` (of the shape of `arr`) bin i is the sum of the weights of the values i, in their type. `minlength`
    and `maxlength` bound the length of the result; values beyond it are not counted.
    """
    with name_scope(None, "bincount", [arr, weights]):
        arr = convert_to_tensor(arr, dtype=dtypes.int32, name="arr")
        present = greater(reduce_prod(apply_op("Shape", input=arr)), 0)
        size = multiply(cast(present, dtypes.int32), add(reduce_max(arr), 1))
        if minlength is not None:
            size = maximum(convert_to_tensor(minlength, dtype=dtypes.int32, name="minlength"), size)
        if maxlength is not None:
            size = minimum(convert_to_tensor(maxlength, dtype=dtypes.int32, name="maxlength"), size)
        weights = constant([], dtype) if weights is None else weights
        return apply_op("Bincount", arr=arr, size=size, weights=weights)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many values fall into each of `nbins` equal parts of [low, high] = value_range; the ends take outsiders."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as name:
        return apply_op(
            "HistogramFixedWidth", name, values=values, value_range=value_range, nbins=nbins,
            dtype=dtypes.as_dtype(dtype),
        )  # fmt: skip


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """For each value the part of `histogram_fixed_width` that it falls into."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        low, high = (
            apply_op("GatherV2", params=convert_to_tensor(value_range), indices=index, axis=0) for index in (0, 1)
        )
        nbins = convert_to_tensor(nbins, dtype=dtypes.int32, name="nbins")
        scaled = truediv(subtract(values, low), subtract(high, low))
        bins = floor(multiply(cast(nbins, scaled.dtype), scaled))
        last = cast(subtract(nbins, 1), scaled.dtype)
        return cast(minimum(maximum(bins, cast(0, scaled.dtype)), last), dtypes.as_dtype(dtype))


# -- functions that are one op --


def one_op(op_type: str, name: str, arguments: Sequence[str], text: str) -> OneArgument:
    """The public function of an op whose inputs are `arguments`, in order, and whose attributes have defaults."""

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

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _of_one(op_type: str, name: str, text: str) -> OneArgument:
    return one_op(op_type, name, ["x"], text)


def _of_one_or_sparse(op_type: str, name: str, text: str) -> OneArgument:
    """A function with f(0) = 0: of a SparseTensor it is the SparseTensor of f of the stored values."""

    def function(x: Any, name: str | None = None) -> Any:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, apply_op(op_type, name, x=x.values), x.dense_shape)
        return apply_op(op_type, name, x=x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text + " A SparseTensor stays one."
    return function


def _of_two(op_type: str, name: str, text: str) -> OneArgument:
    return one_op(op_type, name, ["x", "y"], text + " Shapes broadcast.")


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
div_no_nan = _of_two("DivNoNan", "div_no_nan", "x / y, and 0 where y is 0.")
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
    "Conj", "Cos", "Cosh", "Cumprod", "Cumsum", "CumulativeLogsumexp", "Digamma", "Erf", "Erfc", "Erfinv", "Exp",
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


@shape_rule("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm")
def _reduction_shape(op: Operation) -> list[TensorShape]:
    shape, keep = op.inputs[0].shape, op.get_attr("keep_dims")
    axes = constant_value(op.inputs[1])
    if shape.ndims is None:
        return [unknown_shape()]
    if axes is None:
        # Which axes go is not known; whether any dimension stays may be.
        return [unknown_shape(shape.ndims) if keep else unknown_shape()]
    reduced = set()
    for axis in np.reshape(axes, -1).tolist():
        if not -shape.ndims <= axis < shape.ndims:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {shape.ndims} dimensions.")
        reduced.add(axis % shape.ndims)
    sizes = shape.as_list()
    if keep:
        return [TensorShape([1 if axis in reduced else size for axis, size in enumerate(sizes)])]
    return [TensorShape([size for axis, size in enumerate(sizes) if axis not in reduced])]


@shape_rule("ArgMax", "ArgMin")
def _arg_reduction_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    axis = constant_value(op.inputs[1])
    if shape.ndims is None:
        return [unknown_shape()]
    if shape.ndims == 0:
        return [TensorShape([])]
    if axis is None:
        return [unknown_shape(shape.ndims - 1)]
    if not -shape.ndims <= axis < shape.ndims:
        raise ValueError(f"Dimension {axis} must be in the range [{-shape.ndims}, {shape.ndims})")
    sizes = shape.as_list()
    del sizes[int(axis)]
    return [TensorShape(sizes)]


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
    if count is not None and count <= 0:
        raise ValueError(f"Requires num > 0: {count}")
    return [TensorShape([None if count is None else int(count)])]


@shape_rule("Bincount")
def _bincount_shape(op: Operation) -> list[TensorShape]:
    size = constant_value(op.inputs[1])
    return [TensorShape([None if size is None else int(size)])]


@shape_rule("HistogramFixedWidth")
def _histogram_shape(op: Operation) -> list[TensorShape]:
    bins = constant_value(op.inputs[2])
    return [TensorShape([None if bins is None else int(bins)])]
