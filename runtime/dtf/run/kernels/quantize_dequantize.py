"""Kernels that round numbers to the steps of a few bits around zero, and give them back as numbers.

The distance of the steps is the greater of those that the two bounds ask for; the other bound moves.
"""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, legacy_scalar, scalar
from dtf.run.value_types import Array

_MOST_BITS = 62


@kernel("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def _(node: KernelNode) -> Function:
    signed, given, narrow = node.attr("signed_input"), node.attr("range_given"), node.attr("narrow_range")
    axis, rounds_up = node.attr("axis"), as_text(node.attrs.get("round_mode", b"")) == "HALF_UP"
    fixed_bits, is_third = node.attrs.get("num_bits"), node.op.endswith("V3")

    def run(inputs: np.ndarray, low: Array, high: Array, bits: Array | int | None = fixed_bits) -> np.ndarray:
        count = int(scalar(np.asarray(bits), "num_bits"))
        if not 1 <= count <= _MOST_BITS + (not signed):
            raise invalid(f"num_bits is out of range: {count} with signed_input_ {int(signed)}")
        if axis < -1 or axis >= inputs.ndim:
            raise invalid(f"axis must be at least -1 and less than the rank {inputs.ndim}, got {axis}")
        if is_third and not inputs.ndim:
            raise invalid("the input must have one dimension or more")
        wide = inputs.astype(np.float32) if inputs.dtype.itemsize == 2 else inputs
        around = [size if dimension == axis else 1 for dimension, size in enumerate(inputs.shape)]
        if given:
            if is_third:
                low, high = (legacy_scalar(np.asarray(each), "a bound") for each in (low, high))
            _check_bounds(inputs, low, high, axis)
            first, last = (np.reshape(np.asarray(each).astype(wide.dtype), around) for each in (low, high))
        elif not inputs.size:
            return inputs
        else:
            others = tuple(dimension for dimension in range(inputs.ndim) if dimension != axis)
            first, last = wide.min(others, keepdims=True), wide.max(others, keepdims=True)
        lowest = (-(1 << count - 1) + bool(narrow)) if signed else 0
        highest = (1 << count - 1) - 1 if signed else (1 << count) - 1
        return _rounded(wide, first, last, lowest, highest, given, rounds_up).astype(inputs.dtype, copy=False)

    return run


def _check_bounds(inputs: np.ndarray, low: Array, high: Array, axis: int) -> None:
    for name, bound in (("input_min", low), ("input_max", high)):
        if axis == -1:
            scalar(np.asarray(bound), name)
        elif np.shape(bound) != (inputs.shape[axis],):
            raise invalid(f"{name} must have one entry per slice of axis {axis}, got shape {list(np.shape(bound))}")
    wrong = np.asarray(low) > np.asarray(high)
    if np.any(wrong):
        raise invalid(f"Invalid range: input_min {np.ravel(low)[0]} > input_max {np.ravel(high)[0]}")


def _rounded(
    inputs: np.ndarray, first: np.ndarray, last: np.ndarray, lowest: int, highest: int, clips: bool, rounds_up: bool
) -> np.ndarray:
    dtype = inputs.dtype.type
    most = np.finfo(dtype).max
    low, high = dtype(lowest), dtype(highest)
    with np.errstate(all="ignore"):
        by_first = np.where(low * first > 0, low / first, most).astype(dtype)
        by_last = np.where(high * last > 0, high / last, most).astype(dtype)
        first_decides = by_first < by_last
        scale = np.where(first_decides, by_first, by_last)
        distance = np.where(first_decides, first / low if lowest else dtype(0), last / high if highest else dtype(0))
        if clips:
            kept_first = np.where(first_decides, first, low * distance)
            kept_last = np.where(first_decides, high * distance, last)
            inputs = np.minimum(np.maximum(inputs, kept_first), kept_last)
        steps = inputs * scale
        whole = np.floor(steps + dtype(0.5)) if rounds_up else np.rint(steps)
        return (whole * distance).astype(dtype)


@kernel("QuantizeAndDequantizeV4Grad")
def _(node: KernelNode) -> Function:
    axis = node.attr("axis")

    def run(grads: np.ndarray, inputs: np.ndarray, low: Array, high: Array) -> tuple[Array, Array, Array]:
        if grads.shape != inputs.shape:
            raise invalid(f"gradient and input must be the same size: {list(grads.shape)} and {list(inputs.shape)}")
        if axis < -1 or axis >= inputs.ndim:
            raise invalid(f"axis must be at least -1 and less than the rank {inputs.ndim}, got {axis}")
        around = [size if dimension == axis else 1 for dimension, size in enumerate(inputs.shape)]
        for name, bound in (("input_min", low), ("input_max", high)):
            if axis == -1:
                scalar(np.asarray(bound), name)
            elif np.shape(bound) != (inputs.shape[axis],):
                raise invalid(f"{name} must have one entry per slice of axis {axis}, got {list(np.shape(bound))}")
        first, last = np.reshape(low, around), np.reshape(high, around)
        inside = (inputs >= first) & (inputs <= last)
        return np.where(inside, grads, grads.dtype.type(0)), np.zeros_like(low), np.zeros_like(high)

    return run
