"""Gradients of quantized numbers: rounding to whole numbers passes no gradient on."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    "Dequantize", "QuantizeDownAndShrinkRange", "QuantizeV2", "QuantizedAvgPool", "QuantizedBiasAdd",
    "QuantizedConcat", "QuantizedConv2D", "QuantizedMatMul", "QuantizedMaxPool", "QuantizedRelu", "QuantizedRelu6",
    "QuantizedReluX", "QuantizedReshape", "RequantizationRange", "Requantize",
)  # fmt: skip
