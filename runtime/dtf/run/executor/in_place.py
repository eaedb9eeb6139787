"""In place: elementwise operations that overwrite an input which nobody else wants.

A value may be overwritten when it was made by an operation whose result is its own, when the elementwise operation is
its only consumer, and when it stays within one segment. All that is known when a partition is compiled. Whether it is
worth it, and shapes and dtypes fit, is seen when the values are there; a result is the same to the last bit.

Owns both questions. Does not write code (`segment_source`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from dtf.run.executor.instructions import Instruction
from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function
from dtf.run.value_types import Array

__all__ = ["into", "overwritten"]

_BYTES_MIN = 1 << 15
"""Smaller arrays are made anew as fast."""
_ELEMENTWISE: frozenset[object] = frozenset({
    np.absolute, np.add, np.cos, np.divide, np.exp, np.log, np.maximum, np.minimum, np.multiply, np.negative, np.sin,
    np.sqrt, np.square, np.subtract, np.tanh,
})  # fmt: skip
_MAKERS = frozenset({"BatchMatMul", "BatchMatMulV2", "BiasAdd", "Conv2D", "MatMul", "Relu", "Sigmoid"})

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
    found: dict[int, int] = {}
    for instruction in instructions:
        if not _is_elementwise(instruction) or any(instruction.dereferences):
            continue
        for position, value in enumerate(_resolved(instruction.inputs, alias)):
            maker = instructions[value[0]]
            is_own = _is_elementwise(maker) or maker.op in _MAKERS
            is_here = segment_of.get(value[0]) == segment_of.get(instruction.index)
            if is_own and is_here and value[0] in segment_of and uses[value] == 1 and value not in crossing:
                found[instruction.index] = position
                break
    return found


def into(function: Function, position: int) -> Function:
    """The ufunc as a function that writes its result into the argument at `position` where that fits."""

    def call(*values: Array) -> Outputs:
        out = values[position]
        if type(out) is np.ndarray and out.nbytes >= _BYTES_MIN and out.dtype.kind == "f" and out.flags.writeable:
            shapes = (out.shape, out.shape[-1:], ())
            if all(value.dtype is out.dtype and value.shape in shapes for value in values):
                return function(*values, out=out)
        return function(*values)

    return call


def _is_elementwise(instruction: Instruction) -> bool:
    function = instruction.function
    return isinstance(function, np.ufunc) and function in _ELEMENTWISE and not instruction.kernel.stateful


def _resolved(values: Iterable[_Value], alias: Mapping[_Value, _Value]) -> list[_Value]:
    return [alias.get(value, value) for value in values]
