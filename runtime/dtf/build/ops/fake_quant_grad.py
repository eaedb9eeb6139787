"""Gradients of simulated quantisation: rounding passes the gradient on; outside the bounds it goes to the bounds."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.tensor import Operation

not_differentiable(
    "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient",
)  # fmt: skip


@gradient("FakeQuantWithMinMaxArgs")
def _(op: Operation, grad: Any) -> list[Any]:
    settings = {name: op.get_attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return [apply_op("FakeQuantWithMinMaxArgsGradient", gradients=grad, inputs=op.inputs[0], **settings)]


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def _(op: Operation, grad: Any) -> list[Any]:
    inputs, low, high = op.inputs
    settings = {name: op.get_attr(name) for name in ("num_bits", "narrow_range")}
    return list(
        apply_op(f"{op.type}Gradient", gradients=grad, inputs=inputs, min=low, max=high, **settings)
    )


@gradient("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def _(op: Operation, grad: Any) -> list[Any]:
    return [grad, *[None] * (len(op.inputs) - 1)]


@gradient("QuantizeAndDequantizeV4")
def _(op: Operation, grad: Any) -> list[Any]:
    inputs, low, high = op.inputs
    made = apply_op(
        "QuantizeAndDequantizeV4Grad", gradients=grad, input=inputs, input_min=low, input_max=high,
        axis=op.get_attr("axis"),
    )  # fmt: skip
    return list(made)


@gradient("QuantizeAndDequantizeV4Grad")
def _(op: Operation, grad: Any, *_: Any) -> list[Any]:
    return [grad, None, None, None]
