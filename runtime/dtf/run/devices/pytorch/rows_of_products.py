"""Matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from dtf.run.devices.pytorch.arrays import COMPUTED, dtype_of
from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.wire import dtypes

_TYPES = FLOATS | {dtypes.complex64, dtypes.complex128, dtypes.int32, dtypes.int64}


@computes("MatMul", types=_TYPES)
def _(node: KernelNode) -> TensorFunction:
    transpose_a, transpose_b = node.attr("transpose_a"), node.attr("transpose_b")

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        if a.dim() != 2 or b.dim() != 2:
            raise Unsuited
        left, right = in_wide(a), in_wide(b)
        return torch.mm(left.t() if transpose_a else left, right.t() if transpose_b else right)

    return multiply


def _batch(node: KernelNode) -> TensorFunction:
    adjoint_x, adjoint_y = node.attr("adj_x"), node.attr("adj_y")
    wide = dtype_of(node.attr("Tout")) if node.op == "BatchMatMulV3" else None

    def multiply(x: Tensor, y: Tensor) -> Tensor:
        if x.dim() < 2 or y.dim() < 2:
            raise Unsuited
        left, right = (in_wide(x), in_wide(y)) if wide is None else (in_wide(x.to(wide)), in_wide(y.to(wide)))
        return torch.matmul(left.mH if adjoint_x else left, right.mH if adjoint_y else right)

    return multiply


computes("BatchMatMul", "BatchMatMulV2", types=_TYPES)(_batch)
computes("BatchMatMulV3", types=COMPUTED, attr="Ta")(_batch)


@computes("Einsum", types=_TYPES)
def _(node: KernelNode) -> TensorFunction:
    text = node.attr("equation")
    equation = text.decode() if isinstance(text, bytes) else text

    def contract(*operands: Tensor) -> Tensor:
        return torch.einsum(equation, *map(in_wide, operands))

    return contract
