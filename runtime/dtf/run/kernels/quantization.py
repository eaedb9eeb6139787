"""Kernels of quantized numbers: whole numbers that stand for equal steps between two bounds.

Values are plain integers of the width of their type; the bounds travel beside them as float32 scalars. The rules of
rounding are those of TensorFlow's reference kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dtf.run.kernels import Function, KernelNode, bind, kernel
from dtf.run.kernels.arguments import as_text, invalid, numpy_dtype, room, scalar
from dtf.run.value_types import Array
from dtf.wire import dtypes

_float = np.float32
_Bound = Array | np.float32
_MOST = np.finfo(np.float32).max


def _ends(dtype: type[np.generic]) -> tuple[int, int]:
    limits = np.iinfo(np.dtype(dtype))
    return int(limits.min), int(limits.max)


def _away_from_zero(values: np.ndarray) -> np.ndarray:
    """Rounded, halves away from zero."""
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values))


def _bound(value: Array, what: str) -> np.float32:
    return _float(scalar(np.asarray(value), what))


class _Mode:
    """What QuantizeV2 and Dequantize have in common."""

    def __init__(self, node: KernelNode) -> None:
        self.mode = as_text(node.attr("mode"))
        self.narrow = bool(node.attr("narrow_range"))
        if self.narrow and self.mode != "SCALED":
            raise invalid(f"narrow_range is only supported with SCALED mode, but the mode is {self.mode}")
        self.axis = int(node.attr("axis"))
        self.dtype = numpy_dtype(node)
        self.low, self.high = _ends(self.dtype)
        self.is_signed = self.low < 0
        self.half = _float((self.high - self.low + 1) / 2 if self.is_signed else 0)

    def bounds(self, values: np.ndarray, low: Array, high: Array) -> tuple[np.ndarray, np.ndarray]:
        """The bounds as float32 scalars, or as vectors in the place of the axis."""
        if self.axis == -1:
            return np.asarray(_bound(low, "min_range")), np.asarray(_bound(high, "max_range"))
        if not -1 < self.axis < values.ndim:
            raise invalid(f"Axis must be less than input dimension({values.ndim}), got {self.axis}")
        size = values.shape[self.axis]
        for name, each in (("min_range", low), ("max_range", high)):
            if np.shape(each) != (size,):
                raise invalid(f"{name} must have one entry per slice of axis {self.axis}, got {list(np.shape(each))}")
        around = [size if at == self.axis else 1 for at in range(values.ndim)]
        return np.reshape(low, around).astype(np.float32), np.reshape(high, around).astype(np.float32)


@kernel("QuantizeV2")
def _(node: KernelNode) -> Function:
    mode = _Mode(node)
    least = _float(node.attr("ensure_minimum_range"))
    halves_to_even = as_text(node.attr("round_mode")) == "HALF_TO_EVEN"
    if halves_to_even and mode.mode != "SCALED":
        raise invalid(f"Round mode HALF_TO_EVEN is only supported for mode SCALED, but mode is {mode.mode}")

    def run(values: np.ndarray, low: Array, high: Array) -> tuple[_Bound, ...]:
        first, last = mode.bounds(values, low, high)
        if np.any(first > last):
            raise invalid(f"max_range must be larger than min_range: {np.ravel(last)[0]} < {np.ravel(first)[0]}")
        spread = np.maximum(_float(1), np.maximum(np.abs(first), np.abs(last))) * least
        first = np.minimum(_float(0), first)
        last = np.maximum(_float(0), np.maximum(last, first + spread))
        out, first, last = _quantized(values, mode, first, last, halves_to_even)
        return out, first.reshape(np.shape(low)), last.reshape(np.shape(high))

    return run


def _quantized(
    values: np.ndarray, mode: _Mode, first: np.ndarray, last: np.ndarray, halves_to_even: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the whole numbers, the bounds that they keep)."""
    with np.errstate(all="ignore"):
        if mode.mode == "MIN_FIRST":
            out = _first_quantized(values, mode.dtype, first, last)
        elif mode.mode == "SCALED":
            lowest = _float(mode.low + mode.narrow)
            highest = _float(mode.high)
            by_first = np.where(lowest * first > 0, lowest / first, _MOST)
            by_last = np.where(highest * last > 0, highest / last, _MOST)
            scale = np.minimum(by_first, by_last).astype(np.float32)
            first, last = lowest / scale, highest / scale
            steps = np.clip(values, first, last) * scale
            out = np.rint(steps) if halves_to_even else _away_from_zero(steps)
        else:
            scale = _float(mode.high - mode.low) / (last - first)
            steps = (np.clip(values, first, last) - first) * scale
            out = _away_from_zero(steps - mode.half) if mode.is_signed else np.floor(steps + _float(0.5))
        whole = np.nan_to_num(out.astype(np.float64))
        if mode.high == np.iinfo(np.int32).max and mode.mode != "MIN_FIRST":
            whole = np.where(whole > mode.high, mode.low, whole)  # what processors make of numbers too great for int32
        whole = np.clip(whole, mode.low, mode.high)
    return whole.astype(mode.dtype), np.asarray(first, np.float32), np.asarray(last, np.float32)


def _steps(dtype: type[np.generic]) -> float:
    return float(2 ** (np.dtype(dtype).itemsize * 8))


def _first_quantized(values: np.ndarray, dtype: type[np.generic], first: _Bound, last: _Bound) -> np.ndarray:
    """The steps of MIN_FIRST: the least bound is rounded to a step first."""
    count = _steps(dtype)
    spread = (np.asarray(last, np.float64) - first) * (count / (count - 1))
    scale = np.where(spread == 0, 0.0, count / np.where(spread == 0, 1, spread))
    least = _away_from_zero(np.asarray(first, np.float64) * scale)
    return _away_from_zero(values.astype(np.float64) * scale) - least + _ends(dtype)[0]


def _first_numbers(values: np.ndarray, dtype: type[np.generic], first: _Bound, last: _Bound) -> np.ndarray:
    """The numbers of MIN_FIRST, float64."""
    count = _steps(dtype)
    step = np.asarray(np.asarray(last, np.float32) - first, np.float64) * (count / (count - 1)) / count
    coarse = step.astype(np.float32).astype(np.float64)
    least = np.where(coarse == 0, first, _away_from_zero(first / np.where(coarse == 0, 1, coarse)) * coarse)
    return least + (values.astype(np.float64) - _ends(dtype)[0]) * step


@kernel("Dequantize")
def _(node: KernelNode) -> Function:
    mode, wanted = _Mode(node), numpy_dtype(node, "dtype")

    def run(values: np.ndarray, low: Array, high: Array) -> np.ndarray:
        first, last = mode.bounds(values, low, high)
        given = values.astype(np.float32)
        with np.errstate(all="ignore"):
            if mode.mode == "MIN_FIRST":
                out = _first_numbers(values, mode.dtype, first, last)
            elif mode.mode == "SCALED":
                scale = last / _float(mode.high)
                if mode.is_signed:
                    scale = np.maximum(first / _float(mode.low + mode.narrow), scale)
                out = given * scale
            else:
                out = (given + mode.half) * ((last - first) / _float(mode.high - mode.low)) + first
        return out.astype(np.float32).astype(wanted)

    return run


# -- one type in another


def _requantized(
    values: np.ndarray, low: np.float32, high: np.float32, given: type[np.generic], wanted: type[np.generic],
    first: np.float32, last: np.float32,
) -> np.ndarray:  # fmt: skip
    """Numbers between two bounds as steps between two others."""
    numbers = _first_numbers(values, given, low, high)
    steps = _first_quantized(numbers, wanted, first, last)
    return np.clip(np.nan_to_num(steps), *_ends(wanted)).astype(wanted)


@kernel("Requantize")
def _(node: KernelNode) -> Function:
    given, wanted = numpy_dtype(node, "Tinput"), numpy_dtype(node, "out_type")

    def run(values: np.ndarray, low: Array, high: Array, first: Array, last: Array) -> tuple[_Bound, ...]:
        bounds = _bound(low, "input_min"), _bound(high, "input_max")
        least, most = _bound(first, "requested_output_min"), _bound(last, "requested_output_max")
        if least > 0:
            raise invalid(f"requested_output_min must be <= 0, but got {least}")
        if most < least:
            raise invalid(f"requested_output_max must be >= requested_output_min, but got {most} and {least}")
        return _requantized(values, *bounds, given, wanted, least, most), least, most

    return run


def _used_range(
    values: np.ndarray, dtype: type[np.generic], low: np.float32, high: np.float32
) -> tuple[np.float32, np.float32]:
    """The bounds of the numbers that occur; 0 is among them."""
    if not values.size:
        return _float(0), _float(0)
    ends = np.array([values.min(), values.max()], values.dtype)
    least, most = _first_numbers(ends, dtype, low, high).astype(np.float32)
    return _float(min(least, 0)), _float(max(most, 0))


@kernel("RequantizationRange")
def _(node: KernelNode) -> Function:
    given = numpy_dtype(node, "Tinput")
    return lambda values, low, high: _used_range(values, given, _bound(low, "input_min"), _bound(high, "input_max"))


@kernel("QuantizeDownAndShrinkRange")
def _(node: KernelNode) -> Function:
    given, wanted = numpy_dtype(node, "Tinput"), numpy_dtype(node, "out_type")

    def run(values: np.ndarray, low: Array, high: Array) -> tuple[_Bound, ...]:
        bounds = _bound(low, "input_min"), _bound(high, "input_max")
        first, last = _used_range(values, given, *bounds)
        return _requantized(values, *bounds, given, wanted, _float(first), _float(last)), first, last

    return run


# -- shapes and comparisons, which leave the steps alone


@kernel("QuantizedReshape")
def _(node: KernelNode) -> Function:
    def run(values: np.ndarray, shape: Array, low: Array, high: Array) -> tuple[_Bound, ...]:
        sizes = np.asarray(shape)
        if sizes.ndim != 1 or np.count_nonzero(sizes == -1) > 1 or np.any(sizes < -1):
            raise invalid(f"shape must be a vector with at most one -1, got {sizes.tolist()}")
        try:
            return values.reshape(sizes.tolist()), low, high
        except ValueError as error:
            raise invalid(f"Input to reshape is a tensor with {values.size} values: {error}") from None

    return run


@kernel("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX")
def _(node: KernelNode) -> Function:
    given, wanted = numpy_dtype(node, "Tinput"), numpy_dtype(node, "out_type")
    top = 6.0 if node.op.endswith("6") else None
    takes_top = node.op.endswith("X")

    def run(values: np.ndarray, *bounds: Array) -> tuple[_Bound, ...]:
        most = _bound(bounds[0], "max_value") if takes_top else top
        low, high = (_bound(each, "a bound") for each in bounds[-2:])
        ends = _first_quantized(np.array([0.0 if most is None else float(most), 0.0]), given, low, high)
        last, zero = (int(each) for each in np.clip(np.nan_to_num(ends), *_ends(given)))
        out = np.maximum(values, given(zero))
        if most is not None:
            out = np.minimum(out, given(last))
        return out.astype(wanted), low, high

    return run


@kernel("QuantizedConcat")
def _(node: KernelNode) -> Function:
    count, dtype = int(node.attr("N")), numpy_dtype(node)

    def run(dim: Array, *arguments: Array) -> tuple[_Bound, ...]:
        parts, lows, highs = arguments[:count], arguments[count : 2 * count], arguments[2 * count :]
        axis = int(scalar(np.asarray(dim), "concat_dim"))
        rank = parts[0].ndim
        if not -rank <= axis < rank:
            raise invalid(f"concat_dim {axis} is not in the range [{-rank}, {rank})")
        shape = [size for at, size in enumerate(parts[0].shape) if at != axis % rank]
        for each in parts[1:]:
            if each.ndim != rank or [size for at, size in enumerate(each.shape) if at != axis % rank] != shape:
                raise invalid(f"Dimensions of inputs should match: {list(parts[0].shape)} vs. {list(each.shape)}")
        least = min(_float(0), *(_bound(each, "input_mins") for each in lows))
        most = max(_bound(each, "input_maxes") for each in highs)
        made = []
        for each, low, high in zip(parts, lows, highs, strict=True):
            same = dtype == np.int32 or (_float(low) == least and _float(high) == most)
            made.append(each if same else _requantized(each, _float(low), _float(high), dtype, dtype, least, most))
        return np.concatenate(made, axis), _float(least), _float(most)

    return run


def _windows(node: KernelNode, values: np.ndarray) -> list[tuple[range, int]]:
    """For rows and for columns: where the windows of a pooling begin, perhaps before the image, and their size."""
    sizes, strides = list(node.attr("ksize")), list(node.attr("strides"))
    if values.ndim != 4 or len(sizes) != 4 or len(strides) != 4:
        raise invalid("the input, ksize and strides must have 4 dimensions")
    if sizes[0] != 1 or strides[0] != 1 or sizes[3] != 1 or strides[3] != 1 or min(sizes) < 1 or min(strides) < 1:
        raise invalid("Pooling is not yet supported on the batch or channel dimension")
    same, found = as_text(node.attr("padding")) == "SAME", []
    for size, window, stride in zip(values.shape[1:3], sizes[1:3], strides[1:3], strict=True):
        count = -(-size // stride) if same else max(0, (size - window) // stride + 1)
        before = max(0, (count - 1) * stride + window - size) // 2 if same else 0
        found.append((range(-before, count * stride - before, stride), window))
    return found


def _spans(starts: range, window: int, size: int) -> Iterator[tuple[int, int]]:
    """The half-open range of each window, as far as it is inside the image."""
    return ((max(0, start), min(size, start + window)) for start in starts)


@kernel("QuantizedMaxPool", "QuantizedAvgPool")
def _(node: KernelNode) -> Function:
    average, dtype = node.op == "QuantizedAvgPool", numpy_dtype(node)

    def run(values: np.ndarray, low: Array, high: Array) -> tuple[_Bound, ...]:
        bounds = _bound(low, "min_input"), _bound(high, "max_input")
        (rows, height), (columns, width) = _windows(node, values)
        shape = room((values.shape[0], len(rows), len(columns), values.shape[3]), np.int32)
        out = np.zeros(shape, dtype)
        if not out.size:
            return out, *bounds
        for i, (top, bottom) in enumerate(_spans(rows, height, values.shape[1])):
            for j, (left, right) in enumerate(_spans(columns, width, values.shape[2])):
                window = values[:, top:bottom, left:right]
                if average:
                    total = window.sum((1, 2), dtype=np.int64)
                    area = max(1, (bottom - top) * (right - left))
                    out[:, i, j] = np.sign(total) * (np.abs(total) // area)
                elif window.shape[1] and window.shape[2]:
                    out[:, i, j] = window.max((1, 2))
        return out, *bounds

    return run


# -- products


def _offset(dtype: type[np.generic], low: np.float32, high: np.float32) -> int:
    """The step that stands for 0."""
    found = _first_quantized(np.zeros(()), dtype, low, high)
    return int(np.clip(np.nan_to_num(found), *_ends(dtype)))


def _product_bounds(
    first: type[np.generic], a: tuple[np.float32, np.float32],
    second: type[np.generic], b: tuple[np.float32, np.float32],
) -> tuple[np.float32, np.float32]:
    """The bounds of int32 sums of products: one step is the product of the steps."""
    step = _step(first, *a) * _step(second, *b)
    low, high = _ends(np.int32)
    return _float(step * low), _float(step * high)


def _step(dtype: type[np.generic], low: np.float32, high: np.float32) -> float:
    return float(np.float32(high - low) / np.float32(_ends(dtype)[1] - _ends(dtype)[0]))


@kernel("QuantizedMatMul")
def _(node: KernelNode) -> Function:
    first, second, wanted = (numpy_dtype(node, name) for name in ("T1", "T2", "Toutput"))
    swap_a, swap_b = node.attr("transpose_a"), node.attr("transpose_b")

    def run(a: np.ndarray, b: np.ndarray, *bounds: Array) -> tuple[_Bound, ...]:
        low_a, high_a, low_b, high_b = (_bound(each, "a bound") for each in bounds)
        if a.ndim != 2 or b.ndim != 2:
            raise invalid(f"In[0] and In[1] must be matrices, got shapes {list(a.shape)} and {list(b.shape)}")
        left = (a.T if swap_a else a).astype(np.int64) - _offset(first, low_a, high_a)
        right = (b.T if swap_b else b).astype(np.int64) - _offset(second, low_b, high_b)
        if left.shape[1] != right.shape[0]:
            raise invalid(f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}")
        room((left.shape[0], right.shape[1]), np.int64)
        low, high = _product_bounds(first, (low_a, high_a), second, (low_b, high_b))
        return (left @ right).astype(wanted), low, high

    return run


@kernel("QuantizedConv2D")
def _(node: KernelNode) -> Function:
    first, second, wanted = (numpy_dtype(node, name) for name in ("Tinput", "Tfilter", "out_type"))
    convolve = _convolution(node)

    def run(inputs: np.ndarray, filters: np.ndarray, *bounds: Array) -> tuple[_Bound, ...]:
        low_a, high_a, low_b, high_b = (_bound(each, "a bound") for each in bounds)
        left = inputs.astype(np.float64) - _offset(first, low_a, high_a)
        right = filters.astype(np.float64) - _offset(second, low_b, high_b)
        low, high = _product_bounds(first, (low_a, high_a), second, (low_b, high_b))
        return np.rint(np.asarray(convolve(left, right))).astype(np.int64).astype(wanted), low, high

    return run


def _convolution(node: KernelNode) -> Function:
    """The float64 function of a Conv2D with the node's windows."""
    names = ("strides", "padding", "dilations")
    attrs = {name: node.attr(name) for name in names}
    attrs |= {"T": dtypes.float64, "data_format": b"NHWC", "explicit_paddings": [], "use_cudnn_on_gpu": False}
    return bind(node._replace(op="Conv2D", attrs=attrs))[1]


@kernel("QuantizedBiasAdd")
def _(node: KernelNode) -> Function:
    first, second, wanted = (numpy_dtype(node, name) for name in ("T1", "T2", "out_type"))

    def run(values: np.ndarray, bias: np.ndarray, *bounds: Array) -> tuple[_Bound, ...]:
        low_a, high_a, low_b, high_b = (_bound(each, "a bound") for each in bounds)
        if values.ndim < 2:
            raise invalid(f"Input tensor must be at least 2D: {list(values.shape)}")
        if bias.ndim != 1:
            raise invalid(f"Biases must be 1D: {list(bias.shape)}")
        if bias.shape[0] != values.shape[-1]:
            raise invalid(f"Must provide as many biases as the last dimension of the input: {list(bias.shape)}")
        numbers = _first_numbers(values, first, low_a, high_a) + _first_numbers(bias, second, low_b, high_b)
        most = max(abs(low_a), abs(high_a), abs(low_b), abs(high_b))
        low, high = _float(-most * (1 << 17)), _float(most * (1 << 17))
        steps = _first_quantized(numbers, wanted, low, high)
        return np.clip(np.nan_to_num(steps), *_ends(wanted)).astype(wanted), low, high

    return run

