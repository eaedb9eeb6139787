"""Kernels that simulate quantisation: numbers rounded to the steps that a few bits between two bounds leave.

Source: Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference"
(2018). The bounds are moved a little so that zero is one of the steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.value_types import Array

_float = np.float32


class _Steps:
    def __init__(self, node: KernelNode) -> None:
        bits = node.attr("num_bits")
        if not 2 <= bits <= 16:
            raise invalid(f"num_bits must be between 2 and 16, got {bits}")
        self._low = _float(1 if node.attr("narrow_range") else 0)
        self._high = _float((1 << bits) - 1)

    def nudged(self, low: Array | float, high: Array | float) -> tuple[Array, Array, Array]:
        """(lowest step, highest step, distance of steps) for bounds, which may be one per channel."""
        least, most = np.asarray(low, np.float32), np.asarray(high, np.float32)
        scale = (most - least) / (self._high - self._low)
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = np.clip(np.floor(self._low - least / scale + _float(0.5)), self._low, self._high)
        return (self._low - zero) * scale, (self._high - zero) * scale, scale

    def forward(self, inputs: np.ndarray, low: Array | float, high: Array | float) -> np.ndarray:
        first, last, scale = self.nudged(low, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.floor((np.clip(inputs, first, last) - first) / scale + _float(0.5))
            out = (steps * scale + first).astype(np.float32)
        flat = (np.asarray(low) == 0) & (np.asarray(high) == 0)
        return np.where(flat, _float(0), out)

    def backward(
        self, grads: np.ndarray, inputs: np.ndarray, low: Array | float, high: Array | float
    ) -> tuple[Array, Array, Array]:
        """Gradients by the inputs and, element by element, by the two bounds."""
        if np.shape(grads) != np.shape(inputs):
            raise invalid(f"gradient and input must have one shape: {list(grads.shape)} and {list(inputs.shape)}")
        flat = (np.asarray(low) == 0) & (np.asarray(high) == 0)
        first, last, _ = self.nudged(low, high)
        below, above = ~flat & (inputs < first), ~flat & (inputs > last)
        none = _float(0)
        return np.where(below | above, none, grads), np.where(below, grads, none), np.where(above, grads, none)


@kernel("FakeQuantWithMinMaxArgs")
def _(node: KernelNode) -> Function:
    steps, bounds = _Steps(node), _bounds(node)
    return lambda inputs: steps.forward(inputs, *bounds)


@kernel("FakeQuantWithMinMaxArgsGradient")
def _(node: KernelNode) -> Function:
    steps, bounds = _Steps(node), _bounds(node)
    return lambda grads, inputs: steps.backward(grads, inputs, *bounds)[0]


def _bounds(node: KernelNode) -> tuple[float, float]:
    low, high = node.attr("min"), node.attr("max")
    if not low < high:
        raise invalid(f"min has to be smaller than max, was: {low} >= {high}")
    return low, high


def _bounds_check(node: KernelNode) -> Callable[..., None]:
    """Bounds are scalars, or vectors with a number for each channel."""
    rank = int("PerChannel" in node.op)

    def check(inputs: np.ndarray, low: Array | float, high: Array | float) -> None:
        for name, bound in (("min", low), ("max", high)):
            if np.ndim(bound) != rank:
                raise invalid(f"`{name}` must be rank {rank} but is rank {np.ndim(bound)}")
            if rank and (not inputs.ndim or np.size(bound) != inputs.shape[-1]):
                raise invalid(f"{name} has incorrect size: {np.size(bound)} for inputs of shape {list(inputs.shape)}")

    return check


@kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def _(node: KernelNode) -> Function:
    steps, check = _Steps(node), _bounds_check(node)

    def forward(inputs: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        check(inputs, low, high)
        return steps.forward(inputs, low, high)

    return forward


@kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def _(node: KernelNode) -> Function:
    steps, check, per_channel = _Steps(node), _bounds_check(node), "PerChannel" in node.op

    def backward(
        grads: np.ndarray, inputs: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        check(inputs, low, high)
        by_input, by_low, by_high = steps.backward(grads, inputs, low, high)
        axes = tuple(range(inputs.ndim - 1)) if per_channel else None
        return by_input, by_low.sum(axes, dtype=np.float32), by_high.sum(axes, dtype=np.float32)

    return backward
