"""In place: elementwise operations that overwrite an input which nobody else wants.

A value may be overwritten when it was made by an operation whose result is its own, when the elementwise operation is
its only consumer (but for copies in between, which hand on the same array), and when it stays within one segment. All
that is known when a partition is compiled. Whether it is worth it, and shapes and dtypes fit, is seen when the values
are there; a result is the same to the last bit.

Owns both questions. Does not write code (`segment_source`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from dtf.run.executor.instructions import ALIASES, Instruction
from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function, into_of
from dtf.run.value_types import Array

__all__ = ["into", "overwritten"]

_BYTES_MIN = 1 << 15
"""Smaller arrays are made anew as fast."""
_ELEMENTWISE: frozenset[object] = frozenset({
    np.absolute, np.add, np.cos, np.divide, np.exp, np.log, np.maximum, np.minimum, np.multiply, np.negative, np.sin,
    np.sqrt, np.square, np.subtract, np.tanh,
})  # fmt: skip
_OWN = """
    AddN AvgPoolGrad BatchMatMul BatchMatMulV2 BiasAdd Conv2D Conv2DBackpropFilter Conv2DBackpropInput
    DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput FusedBatchNorm
    FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 MatMul
    MaxPoolGrad Relu ReluGrad Sigmoid SigmoidGrad Softmax SquaredDifference TanhGrad
"""
_MAKERS = {**dict.fromkeys(_OWN.split(), 0), "SparseSoftmaxCrossEntropyWithLogits": 1}
"""Operations that make an array of their own as one of their outputs, with that output's number."""

_Value = tuple[int, int]


def overwritten(
    instructions: Sequence[Instruction],
    alias: Mapping[_Value, _Value],
    segment_of: Mapping[int, int],
    crossing: Collection[_Value],
) -> dict[int, int]:
    """Which input an elementwise instruction may overwrite: index -> position.

    Args:
      alias: other names of values.
      segment_of: the segment of each instruction that is in one.
      crossing: the values that other segments want.
    """
    uses = Counter(alias.get(value, value) for each in instructions for value in each.inputs)

    def is_free(value: _Value, here: int | None) -> bool:
        """Whether only one instruction of this segment wants a value, which is an array of its own."""
        while uses[value] == 1 and value not in crossing and value[0] in segment_of and segment_of[value[0]] == here:
            maker = instructions[value[0]]
            if maker.op not in ALIASES:
                if maker.op == "AddN" and len(maker.inputs) == 1:  # gives its input
                    return False
                return _is_elementwise(maker) or _MAKERS.get(maker.op) == value[1]
            if any(maker.dereferences) or maker.passes_reference:
                return False
            value = alias.get(maker.inputs[0], maker.inputs[0])
        return False

    found: dict[int, int] = {}
    for instruction in instructions:
        if not _is_elementwise(instruction):
            continue
        here = segment_of.get(instruction.index)
        for position, value in enumerate(_resolved(instruction.inputs, alias)):
            if not instruction.dereferences[position] and is_free(value, here):
                found[instruction.index] = position
                break
    return found


def into(function: Function, position: int) -> Function:
    """The function as one that writes its result into the argument at `position` where that fits."""
    variant = into_of(function)

    def call(*values: Array) -> Outputs:
        out = values[position]
        if type(out) is np.ndarray and out.nbytes >= _BYTES_MIN and out.dtype.kind == "f" and out.flags.writeable:
            if variant is not None:
                made = variant(out, *values)
                if made is not None:
                    return made
            elif all(value.dtype is out.dtype and _fits(value.shape, out.shape) for value in values):
                return function(*values, out=out)
        return function(*values)

    return call


def _fits(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Whether an array of a shape is broadcast to a result of another one."""
    if shape == result or not shape:
        return True
    if len(shape) > len(result):
        return False
    return all(size in (1, wanted) for size, wanted in zip(shape[::-1], result[::-1], strict=False))


def _is_elementwise(instruction: Instruction) -> bool:
    function = instruction.function
    if instruction.kernel.stateful or instruction.absorbed:
        return False
    return (isinstance(function, np.ufunc) and function in _ELEMENTWISE) or into_of(function) is not None


def _resolved(values: Iterable[_Value], alias: Mapping[_Value, _Value]) -> list[_Value]:
    return [alias.get(value, value) for value in values]
