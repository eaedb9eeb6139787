"""Cases of quantized numbers. What they compute was taken from TensorFlow; quantized arrays are plain integers here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtf as tf
from tests.runtime.op_cases import Case

NUMBERS = np.float32([[-5, -4, -1.25, 0], [0.5, 1, 4.9, 6]])
QUINT8 = np.uint8([[0, 40, 113, 128], [141, 170, 255, 99]])
BOUNDS = {"min_input": -4.0, "max_input": 5.0}


def check(make: Callable[[], Any], *wanted: Any, atol: float = 1e-5) -> Callable[[], None]:
    """A test of the values that an op gives; `atol` is 1 where float32 rounds the bounds of int32."""

    def run() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            values = session.run(list(make()) if not isinstance(made := make(), tf.Tensor) else [made])
        assert len(values) == len(wanted)
        for value, expected in zip(values, wanted, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=atol)

    return run


def quantized(values: Any, dtype: Any = None) -> tf.Tensor:
    return tf.bitcast(tf.constant(values, tf.uint8), dtype or tf.quint8)


def quantizing():
    for mode, dtype, whole, low, high in (
        ("MIN_COMBINED", tf.quint8, [[0, 0, 78, 113], [128, 142, 252, 255]], -4, 5),
        ("MIN_COMBINED", tf.qint8, [[-128, -128, -50, -15], [-1, 14, 124, 127]], -4, 5),
        ("MIN_FIRST", tf.quint8, [[0, 0, 78, 113], [127, 141, 252, 255]], -4, 5),
        ("SCALED", tf.qint8, [[-127, -102, -32, 0], [13, 25, 124, 127]], -5.03937, 5),
    ):
        make = lambda mode=mode, dtype=dtype: tf.quantize(NUMBERS, -4.0, 5.0, dtype, mode)  # noqa: E731
        yield Case("QuantizeV2", run=check(make, whole, low, high), name=f"{mode}-{dtype.name}")
    for mode, wanted in (
        ("MIN_COMBINED", [[-4, -2.588235, -0.011765, 0.517647], [0.976471, 2, 5, -0.505882]]),
        ("MIN_FIRST", [[-3.988235, -2.576471, 0, 0.529412], [0.988235, 2.011765, 5.011765, -0.494118]]),
    ):
        make = lambda mode=mode: tf.dequantize(quantized(QUINT8), -4.0, 5.0, mode)  # noqa: E731
        yield Case("Dequantize", run=check(make, wanted), name=mode)


def activations():
    raw = tf.raw_ops
    bounds = {"min_features": -4.0, "max_features": 5.0}
    relu = lambda: raw.QuantizedRelu(features=quantized(QUINT8), **bounds)  # noqa: E731
    relu6 = lambda: raw.QuantizedRelu6(features=quantized(QUINT8), **bounds)  # noqa: E731
    relux = lambda: tf.nn.quantized_relu_x(quantized(QUINT8), 2.0, -4.0, 5.0)  # noqa: E731
    yield Case("QuantizedRelu", run=check(relu, np.maximum(QUINT8, 113), -4, 5))
    yield Case("QuantizedRelu6", run=check(relu6, np.maximum(QUINT8, 113), -4, 5))
    yield Case("QuantizedReluX", run=check(relux, np.clip(QUINT8, 113, 170), -4, 5))


def shapes():
    raw = tf.raw_ops
    reshape = lambda: raw.QuantizedReshape(  # noqa: E731
        tensor=quantized(QUINT8), shape=[4, -1], input_min=-4.0, input_max=5.0
    )
    yield Case("QuantizedReshape", run=check(reshape, QUINT8.reshape(4, 2), -4, 5))
    concat = lambda: tf.quantized_concat(1, [quantized(QUINT8)] * 2, [-4.0, -4.0], [5.0, 5.0])  # noqa: E731
    yield Case("QuantizedConcat", run=check(concat, np.concatenate([QUINT8, QUINT8], 1), -4, 5))
    images = np.arange(24, dtype=np.uint8).reshape(1, 3, 4, 2)
    windows = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
    biggest = lambda: tf.nn.quantized_max_pool(quantized(images), -4.0, 5.0, **windows)  # noqa: E731
    mean = lambda: tf.nn.quantized_avg_pool(quantized(images), -4.0, 5.0, **windows)  # noqa: E731
    yield Case("QuantizedMaxPool", run=check(biggest, images[:, 1:, 1::2], -4, 5))
    yield Case("QuantizedAvgPool", run=check(mean, images[:, :2, ::2] + 5, -4, 5))
    nothing = np.zeros((0, 1 << 20, 1 << 20, 1), np.uint8)
    none = lambda: tf.nn.quantized_max_pool(  # noqa: E731
        quantized(nothing), -4.0, 5.0, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
    )
    yield Case("QuantizedMaxPool", run=check(none, nothing[:, ::2, ::2], -4, 5), name="empty")


def products():
    raw = tf.raw_ops
    a, b = np.uint8([[128, 130], [126, 120]]), np.uint8([[129, 100, 128], [127, 128, 150]])
    sums = (a.astype(int) - 128) @ (b.astype(int) - 128)
    bounds = {"min_a": -128.0, "max_a": 127.0, "min_b": -128.0, "max_b": 127.0}
    matmul = lambda: raw.QuantizedMatMul(a=quantized(a), b=quantized(b), **bounds)  # noqa: E731
    limits = np.iinfo(np.int32)
    yield Case("QuantizedMatMul", run=check(matmul, sums, limits.min, limits.max))
    convolution = lambda: tf.nn.quantized_conv2d(  # noqa: E731
        quantized(a.reshape(1, 2, 1, 2)), quantized(b.reshape(1, 1, 2, 3)), -128.0, 127.0, -128.0, 127.0,
        [1, 1, 1, 1], "SAME",
    )  # fmt: skip
    yield Case("QuantizedConv2D", run=check(convolution, sums.reshape(1, 2, 1, 3), limits.min, limits.max))
    found = {"input_min": float(limits.min), "input_max": float(limits.max)}
    shrink = lambda: raw.QuantizeDownAndShrinkRange(  # noqa: E731
        input=matmul()[0], out_type=tf.quint8, **found
    )
    least, most = min(sums.min(), 0), max(sums.max(), 0)
    steps = np.round((sums - least) * 255 / (most - least))
    yield Case("QuantizeDownAndShrinkRange", run=check(shrink, steps, least, most, atol=1))
    extent = lambda: raw.RequantizationRange(input=matmul()[0], **found)  # noqa: E731
    yield Case("RequantizationRange", run=check(extent, least, most, atol=1))
    again = lambda: raw.Requantize(  # noqa: E731
        input=matmul()[0], requested_output_min=-255.0, requested_output_max=0.0, out_type=tf.quint8, **found
    )
    yield Case("Requantize", run=check(again, np.clip(sums + 255, 0, 255), -255, 0, atol=1))
    bias = lambda: raw.QuantizedBiasAdd(  # noqa: E731
        input=quantized([[128, 130]]), bias=quantized([129, 120]), min_input=-128.0, max_input=127.0, min_bias=-128.0,
        max_bias=127.0, out_type=tf.qint32,
    )  # fmt: skip
    width = 128 * 2.0**17
    yield Case("QuantizedBiasAdd", run=check(bias, [[128, -768]], -width, width))


def refused():
    images, kernel = np.zeros((1, 4, 4, 1), np.uint8), np.zeros((2, 2, 1, 1), np.uint8)
    pool = lambda ksize, strides: tf.nn.quantized_max_pool(  # noqa: E731
        quantized(images), 0.0, 1.0, ksize, strides, "VALID"
    )
    convolve = lambda strides: tf.nn.quantized_conv2d(  # noqa: E731
        quantized(images), quantized(kernel), 0.0, 1.0, 0.0, 1.0, strides, "VALID"
    )
    join = lambda axis, value: tf.quantized_concat(axis, [quantized(value)] * 2, [0.0] * 2, [1.0] * 2)  # noqa: E731
    for make, words in (
        (lambda: pool([1, 2, 2, 1], [1, 0, 1, 1]), "strides must be 4 positive numbers"),
        (lambda: pool([1, 2], [1, 1, 1, 1]), "ksize must be 4 positive numbers"),
        (lambda: pool([1, 9, 9, 1], [1, 1, 1, 1]), "Negative dimension size caused by subtracting 9 from 4"),
        (lambda: convolve([1, 1]), "strides must be 4 positive numbers"),
        (lambda: join(7, [1]), "concat_dim 7 is not in the range"),
        (lambda: join(0, 1), "concat_dim 0 is not in the range"),
    ):
        with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
            make()


CASES = [*quantizing(), *activations(), *shapes(), *products(), Case("QuantizedMaxPool", run=refused, name="refused")]
