"""Broadcasts: element-wise operations whose result may be far larger than their inputs, as [n, 1] + [1, n] is.

Owns which ops they are, and the look at the room for such a result before numpy takes it. A step pays next to nothing
for it: a program multiplies the sizes of both inputs itself, and calls the `checked` function only where that is much.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from dtf.run.devices.backends import CPU
from dtf.run.executor.instructions import Instruction
from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function
from dtf.run.value_types import Array
from dtf.wire import limits

__all__ = ["BROADCASTS", "UNCHECKED_SIZE_MAX", "checked", "is_broadcast", "result_size", "with_check"]

BROADCASTS = frozenset(
    "Add AddV2 Atan2 Betainc BitwiseAnd BitwiseOr BitwiseXor ClipByValue Complex Div DivNoNan Equal FloorDiv "
    "FloorMod Greater GreaterEqual Igamma IgammaGradA Igammac LeftShift Less LessEqual LogicalAnd LogicalOr "
    "Maximum Minimum Mod Mul MulNoNan NextAfter NotEqual Polygamma Pow RealDiv RightShift SelectV2 "
    "SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta EluGrad InvGrad LeakyReluGrad "
    "ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad SoftplusGrad "
    "SoftsignGrad SqrtGrad TanhGrad".split()
)
"""The ops whose inputs are broadcast to one shape, which is that of the result. The inputs of the gradients among them
should have one shape already.
"""

UNCHECKED_SIZE_MAX = 1 << 24
"""Elements of a result that nobody looks at, whatever their type: `limits.check_room` does not look at fewer bytes."""


def checked(function: Function) -> Function:
    """The function of such an op, which looks at the room for its result first. Raises ResourceExhaustedError."""

    def call(*values: Array) -> Outputs:
        check_result(values)
        return function(*values)

    return call


def is_broadcast(instruction: Instruction) -> bool:
    """Whether an instruction is such an op, on the CPU; backends look at their own memory."""
    return instruction.op in BROADCASTS and instruction.kernel.device_type == CPU


def with_check(instruction: Instruction) -> Instruction:
    """The instruction with the `checked` function where it is such an op."""
    if not is_broadcast(instruction):
        return instruction
    return dataclasses.replace(instruction, function=checked(instruction.function))


def check_result(values: Sequence[Array]) -> None:
    """Raises ResourceExhaustedError where memory has no room for the result of such an op."""
    shape = values[0].shape
    if all(value.shape == shape for value in values):
        return
    try:
        result = np.broadcast(*values)
    except ValueError:  # the op itself refuses them
        return
    if result.size > max(value.size for value in values):
        item_bytes = max(value.dtype.itemsize for value in values)
        limits.check_room(result.shape, item_bytes, values[-1].dtype)


def result_size(values: Sequence[Array]) -> int:
    """How many elements the result of such an op has. Raises ValueError where the inputs do not fit together."""
    return int(np.broadcast(*values).size)
