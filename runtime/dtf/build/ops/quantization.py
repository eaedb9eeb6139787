"""Quantized numbers: the functions of tf.quantization and tf.nn, their shape rules. Kernels: the same family.

A quantized tensor holds whole numbers; two float32 scalars beside it are the numbers that its least and its greatest
one stand for. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/quantization
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.shape_rules import shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import window_extent

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "dequantize", "quantize", "quantize_v2", "quantized_avg_pool", "quantized_concat", "quantized_conv2d",
    "quantized_max_pool", "quantized_relu_x",
]  # fmt: skip


def quantize_v2(
    input: TensorLike, min_range: Any, max_range: Any, T: DTypeLike, mode: str = "MIN_COMBINED",
    name: str | None = None, round_mode: str = "HALF_AWAY_FROM_ZERO", narrow_range: bool = False,
    axis: int | None = None, ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    """As `quantize`, with the arguments in their older order."""
    return apply_op(
        "QuantizeV2", name, input=input, min_range=min_range, max_range=max_range, T=T, mode=mode,
        round_mode=round_mode, narrow_range=narrow_range, axis=-1 if axis is None else axis,
        ensure_minimum_range=ensure_minimum_range,
    )  # fmt: skip


def quantize(
    input: TensorLike, min_range: Any, max_range: Any, T: DTypeLike, mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO", name: str | None = None, narrow_range: bool = False,
    axis: int | None = None, ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    """Numbers as whole numbers of a quantized type.

    Args:
      input: float32.
      min_range, max_range: the bounds, float32 scalars, or vectors with `axis`.
      T: qint8, quint8, qint16, quint16 or qint32.
      mode: "MIN_COMBINED", "MIN_FIRST" or "SCALED".
      round_mode: "HALF_AWAY_FROM_ZERO", or "HALF_TO_EVEN" with "SCALED".
      name: the name of the operation.
      narrow_range: leave out the least whole number; with "SCALED".
      axis: the dimension whose slices have bounds of their own; None: one pair of bounds.
      ensure_minimum_range: the least distance of the bounds, relative to their size.

    Returns:
      (output, output_min, output_max): the whole numbers, and the bounds that they keep.
    """
    return quantize_v2(input, min_range, max_range, T, mode, name, round_mode, narrow_range, axis, ensure_minimum_range)


def dequantize(
    input: TensorLike, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", name: str | None = None,
    axis: int | None = None, narrow_range: bool = False, dtype: DTypeLike = dtypes.float32,
) -> Tensor:  # fmt: skip
    """The numbers that whole numbers of a quantized type stand for; arguments as `quantize`."""
    return apply_op(
        "Dequantize", name, input=input, min_range=min_range, max_range=max_range, mode=mode,
        narrow_range=narrow_range, axis=-1 if axis is None else axis, dtype=dtype,
    )  # fmt: skip


def quantized_concat(
    concat_dim: Any, values: Sequence[Any], input_mins: Sequence[Any], input_maxes: Sequence[Any],
    name: str | None = None,
) -> Any:  # fmt: skip
    """(the tensors joined along a dimension, with common bounds, the least bound, the greatest)."""
    return apply_op(
        "QuantizedConcat", name, concat_dim=concat_dim, values=list(values), input_mins=list(input_mins),
        input_maxes=list(input_maxes),
    )  # fmt: skip


def quantized_avg_pool(
    input: TensorLike, min_input: Any, max_input: Any, ksize: Sequence[int], strides: Sequence[int], padding: str,
    name: str | None = None,
) -> Any:  # fmt: skip
    """(the mean of each window, min_input, max_input)."""
    return apply_op("QuantizedAvgPool", name, input=input, min_input=min_input, max_input=max_input, ksize=ksize,
                    strides=strides, padding=padding)  # fmt: skip


def quantized_max_pool(
    input: TensorLike, min_input: Any, max_input: Any, ksize: Sequence[int], strides: Sequence[int], padding: str,
    name: str | None = None,
) -> Any:  # fmt: skip
    """(the greatest number of each window, min_input, max_input)."""
    return apply_op("QuantizedMaxPool", name, input=input, min_input=min_input, max_input=max_input, ksize=ksize,
                    strides=strides, padding=padding)  # fmt: skip


def quantized_conv2d(
    input: TensorLike, filter: TensorLike, min_input: Any, max_input: Any, min_filter: Any, max_filter: Any,
    strides: Sequence[int], padding: str, out_type: DTypeLike = dtypes.qint32,
    dilations: Sequence[int] = (1, 1, 1, 1), name: str | None = None,
) -> Any:  # fmt: skip
    """(the convolution, the least bound, the greatest): input [batch, rows, columns, in], filter [rows, columns,
    in, out]."""
    return apply_op(
        "QuantizedConv2D", name, input=input, filter=filter, min_input=min_input, max_input=max_input,
        min_filter=min_filter, max_filter=max_filter, strides=strides, padding=padding, out_type=out_type,
        dilations=list(dilations),
    )  # fmt: skip


def quantized_relu_x(
    features: TensorLike, max_value: Any, min_features: Any, max_features: Any, out_type: DTypeLike = dtypes.quint8,
    name: str | None = None,
) -> Any:  # fmt: skip
    """(the numbers between 0 and max_value, min_features, max_features)."""
    return apply_op("QuantizedReluX", name, features=features, max_value=max_value, min_features=min_features,
                    max_features=max_features, out_type=out_type)  # fmt: skip


# -- shape rules

_SCALAR = TensorShape([])

shape_rule("Dequantize")(unchanged)


@shape_rule("QuantizeV2")
def _(op: Operation) -> list[TensorShape]:
    bounds = TensorShape([None]) if op.get_attr("axis") != -1 else _SCALAR
    if bounds.ndims:
        bounds = op.inputs[1].shape
    return [op.inputs[0].shape, bounds, bounds]


@shape_rule("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX", "Requantize", "QuantizeDownAndShrinkRange")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape, _SCALAR, _SCALAR]


@shape_rule("RequantizationRange")
def _(op: Operation) -> list[TensorShape]:
    return [_SCALAR, _SCALAR]


@shape_rule("QuantizedBiasAdd")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank_at_least(2), _SCALAR, _SCALAR]


@shape_rule("QuantizedReshape")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[1]), op.inputs[2].shape, op.inputs[3].shape]


@shape_rule("QuantizedConcat")
def _(op: Operation) -> list[TensorShape]:
    parts = [each.shape for each in op.inputs[1 : 1 + op.get_attr("N")]]
    axis = constant_value(op.inputs[0])
    known = [each for each in parts if each.ndims is not None]
    if not known or axis is None:
        return [TensorShape([None] * len(known[0])) if known else TensorShape(None), _SCALAR, _SCALAR]
    rank = len(known[0])
    if not -rank <= int(axis) < rank:
        raise ValueError(f"concat_dim {int(axis)} is not in the range [{-rank}, {rank})")
    at = int(axis) % rank
    sizes = TensorShape(None)
    for each in known:
        sizes = sizes.merge_with([*each.as_list()[:at], None, *each.as_list()[at + 1 :]])
    joined = [each.as_list()[at] for each in known]
    total = None if len(known) < len(parts) or None in joined else sum(size or 0 for size in joined)
    return [TensorShape([*sizes.as_list()[:at], total, *sizes.as_list()[at + 1 :]]), _SCALAR, _SCALAR]


@shape_rule("QuantizedMatMul")
def _(op: Operation) -> list[TensorShape]:
    a, b = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(2)
    rows, inner = a.as_list()[::-1] if op.get_attr("transpose_a") else a.as_list()
    other, columns = b.as_list()[::-1] if op.get_attr("transpose_b") else b.as_list()
    TensorShape([inner]).assert_is_compatible_with([other])
    return [TensorShape([rows, columns]), _SCALAR, _SCALAR]


@shape_rule("QuantizedMaxPool", "QuantizedAvgPool")
def _(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank(4).as_list()
    windows, strides = _of_images(op, "ksize"), _of_images(op, "strides")
    sizes = [_count(op, shape[at], windows[at], strides[at]) for at in (1, 2)]
    return [TensorShape([shape[0], *sizes, shape[3]]), _SCALAR, _SCALAR]


def _of_images(op: Operation, attr: str) -> list[int]:
    """An attribute with a number for each dimension of images. Raises ValueError."""
    numbers = list(op.get_attr(attr))
    if len(numbers) != 4 or min(numbers) < 1:
        raise ValueError(f"{attr} must be 4 positive numbers, got {numbers}")
    return numbers


def _count(op: Operation, size: int | None, window: int | None, stride: int, dilation: int = 1) -> int | None:
    """How many windows there are along a dimension; None: not known."""
    padding = op.get_attr("padding")
    if size is None or window is None:
        return None
    name = padding.decode() if isinstance(padding, bytes) else padding
    return window_extent(size, window, stride, name, dilation).output


@shape_rule("QuantizedConv2D")
def _(op: Operation) -> list[TensorShape]:
    images, filters = op.inputs[0].shape.with_rank(4).as_list(), op.inputs[1].shape.with_rank(4).as_list()
    strides, dilations = _of_images(op, "strides"), _of_images(op, "dilations")
    sizes = [_count(op, images[at], filters[at - 1], strides[at], dilations[at]) for at in (1, 2)]
    return [TensorShape([images[0], *sizes, filters[3]]), _SCALAR, _SCALAR]
