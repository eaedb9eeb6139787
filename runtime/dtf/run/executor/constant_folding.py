"""Folding: what can be computed once, when a partition is compiled, instead of in every step.

Owns which ops may be folded: those that are cheap, have one output and cannot make much of little. What fails is left
for the step to fail at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from dtf.run.executor.broadcasts import is_broadcast, result_size
from dtf.run.executor.instructions import Instruction
from dtf.run.value_types import Array

__all__ = ["folded"]

_BYTES_MAX = 1 << 16
_ELEMENTWISE = """
    Abs Add AddV2 BiasAdd Cast Ceil Cos Div Equal Exp Floor FloorDiv FloorMod Greater GreaterEqual Invert IsFinite Less
    LessEqual Log LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul Neg NotEqual OnesLike Pow RealDiv Reciprocal
    Relu Round Rsqrt Select SelectV2 Sigmoid Sign Sin Sqrt Square SquaredDifference Sub Tanh TruncateDiv TruncateMod
    ZerosLike
"""
_OF_SHAPES = """
    ConcatV2 DynamicStitch ExpandDims Gather GatherV2 InvertPermutation Max Min Pack Prod Rank Reshape Shape Size Slice
    Squeeze StridedSlice Sum Transpose
"""
_MAKERS: Mapping[str, Callable[..., float]] = {
    "BroadcastTo": lambda value, sizes: math.prod(np.ravel(sizes).tolist()),
    "Fill": lambda sizes, value: math.prod(np.ravel(sizes).tolist()),
    "Range": lambda start, limit, delta: abs((float(limit) - float(start)) / float(delta)),
}
"""Ops that make an array as large as their inputs say, with how many elements it has."""
_FOLDABLE = frozenset(_ELEMENTWISE.split()) | frozenset(_OF_SHAPES.split()) | _MAKERS.keys()


def folded(instruction: Instruction, constants: Mapping[int, Array]) -> Array | np.generic | None:
    """The value of an instruction whose inputs are constants; None where it has to be run."""
    if instruction.op not in _FOLDABLE or instruction.controls or not instruction.inputs:
        return None
    if instruction.kernel.stateful or any(instruction.dereferences):
        return None
    if any(source not in constants or output for source, output in instruction.inputs):
        return None
    values = [constants[source] for source, _ in instruction.inputs]
    try:
        if instruction.op in _MAKERS and not 0 <= _MAKERS[instruction.op](*values) <= _BYTES_MAX:
            return None
        if is_broadcast(instruction) and result_size(values) > _BYTES_MAX:
            return None
        value = instruction.function(*values)
    except Exception:
        return None
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "biufc":
        return None
    return value if value.nbytes <= _BYTES_MAX else None
