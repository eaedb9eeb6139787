"""Simulated quantisation: the functions of tf.quantization, their shape rules.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/quantization
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.shape_rules import shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient", "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient", "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient", "quantize_and_dequantize", "quantize_and_dequantize_v2",
]  # fmt: skip


def fake_quant_with_min_max_args(
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """float32 numbers rounded to one of 2 ** num_bits steps between two bounds. narrow_range: one step fewer."""
    return apply_op(
        "FakeQuantWithMinMaxArgs", name, inputs=inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range
    )


def fake_quant_with_min_max_args_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradients where the inputs are within the bounds, 0 elsewhere."""
    return apply_op(
        "FakeQuantWithMinMaxArgsGradient",
        name,
        gradients=gradients,
        inputs=inputs,
        min=min,
        max=max,
        num_bits=num_bits,
        narrow_range=narrow_range,
    )


def fake_quant_with_min_max_vars(
    inputs: TensorLike, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """As `fake_quant_with_min_max_args` with scalar tensors as bounds, which have gradients."""
    return _of_vars("FakeQuantWithMinMaxVars", inputs, min, max, num_bits, narrow_range, name)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """As `fake_quant_with_min_max_vars` with one pair of bounds per entry of the last dimension."""
    return _of_vars("FakeQuantWithMinMaxVarsPerChannel", inputs, min, max, num_bits, narrow_range, name)


def fake_quant_with_min_max_vars_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """(by the inputs, by min, by max)."""
    return _of_vars(
        "FakeQuantWithMinMaxVarsGradient", inputs, min, max, num_bits, narrow_range, name, gradients=gradients
    )


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """(by the inputs, by min, by max), the last two per channel."""
    return _of_vars(
        "FakeQuantWithMinMaxVarsPerChannelGradient", inputs, min, max, num_bits, narrow_range, name,
        gradients=gradients,
    )  # fmt: skip


def _of_vars(op: str, inputs: Any, low: Any, high: Any, bits: int, narrow: bool, name: Any, **more: Any) -> Any:
    return apply_op(op, name, inputs=inputs, min=low, max=high, num_bits=bits, narrow_range=narrow, **more)


def quantize_and_dequantize(
    input: TensorLike,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Numbers rounded to multiples that `num_bits` can count, symmetric around zero; gradients pass unchanged.

    The bounds come from the input unless `range_given`. round_mode: "HALF_TO_EVEN" or "HALF_UP". With `axis` each
    slice has bounds of its own, vectors.
    """
    given = locals()
    return _quantized("QuantizeAndDequantizeV2", given)


def quantize_and_dequantize_v2(
    input: TensorLike,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """As `quantize_and_dequantize`, but no gradient passes where the input is outside of the bounds."""
    given = locals()
    return _quantized("QuantizeAndDequantizeV4", given)


def _quantized(op: str, given: dict[str, Any]) -> Tensor:
    arguments = {key: value for key, value in given.items() if key != "name"}
    return apply_op(op, given["name"] or "quantize_and_dequantize", **arguments)


# -- shape rules

shape_rule(
    "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
    "QuantizeAndDequantizeV4",
)(unchanged)  # fmt: skip


@shape_rule("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape, op.inputs[2].shape, op.inputs[3].shape]


@shape_rule("QuantizeAndDequantizeV4Grad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape, op.inputs[2].shape, op.inputs[3].shape]
