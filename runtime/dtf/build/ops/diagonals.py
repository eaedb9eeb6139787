"""Array ops on diagonals and bands of matrices: public functions, then their static shapes.

Kernels: `run.kernels.diagonals`; gradients: `array_grad`.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.shape_rules import shape_rule, sizes_of, unchanged, unknown
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "diag",
    "diag_part",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
]


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` where both halves of the index agree, zeros elsewhere."""
    return apply_op("Diag", name, diagonal=diagonal)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The inverse of `diag`."""
    return apply_op("DiagPart", name, input=input)


def matrix_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Square matrices with the given diagonals: [..., n] -> [..., n, n]."""
    return apply_op("MatrixDiag", name, diagonal=diagonal)


def matrix_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The main diagonals of matrices: [..., m, n] -> [..., min(m, n)]."""
    return apply_op("MatrixDiagPart", name, input=input)


def matrix_set_diag(input: Any, diagonal: Any, name: str | None = None) -> Tensor:
    """Matrices with their main diagonals replaced."""
    return apply_op("MatrixSetDiag", name, input=input, diagonal=diagonal)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside the band of that many sub- and superdiagonals (negative: all of them)."""
    lower = convert_to_tensor(num_lower)
    upper = convert_to_tensor(num_upper, lower.dtype) if not isinstance(num_upper, Tensor) else num_upper
    return apply_op("MatrixBandPart", name, input=input, num_lower=lower, num_upper=upper)


# -- shape rules

shape_rule("MatrixBandPart")(unchanged)


@shape_rule("Diag")
def _(op):
    return [op.inputs[0].shape.concatenate(op.inputs[0].shape)]


@shape_rule("DiagPart")
def _(op):
    dims = sizes_of(op.inputs[0])
    if dims is None:
        return unknown(op)
    if len(dims) % 2 or not dims:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(dims)}")
    half = len(dims) // 2
    return [TensorShape(dims[:half]).merge_with(dims[half:])]


@shape_rule("MatrixDiag")
def _(op):
    dims = sizes_of(op.inputs[0])
    return unknown(op) if dims is None else [TensorShape([*dims, dims[-1]])]


@shape_rule("MatrixDiagPart")
def _(op):
    dims = sizes_of(op.inputs[0])
    if dims is None:
        return unknown(op)
    op.inputs[0].shape.with_rank_at_least(2)
    rows, columns = dims[-2:]
    return [TensorShape([*dims[:-2], None if rows is None or columns is None else min(rows, columns)])]


@shape_rule("MatrixSetDiag")
def _(op):
    return [op.inputs[0].shape.with_rank_at_least(2)]
