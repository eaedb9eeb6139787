"""Array ops on diagonals and bands of matrices: public functions, then their static shapes.

Kernels: `run.kernels.diagonals`; gradients: `array_grad`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.shape_rules import shape_rule, sizes_of, unchanged, unknown
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "diag",
    "diag_part",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
]


def diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` where both halves of the index agree, zeros elsewhere."""
    return apply_op("Diag", name, diagonal=diagonal)


def diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `diag`."""
    return apply_op("DiagPart", name, input=input)


def matrix_diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: TensorLike = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the given diagonals, `padding_value` elsewhere: [..., n] -> [..., n, n] by default.

    k: which diagonal, counted upwards from the main one; or (lowest, highest) for a band. A band's `diagonal` is [...,
    high - low + 1, longest], highest diagonal first. `align` says on which side shorter diagonals above and below the
    main one are aligned: "LEFT" or "RIGHT" each. num_rows and num_cols of -1 are the smallest that fit.
    """
    diagonal = convert_to_tensor(diagonal)
    return apply_op(
        "MatrixDiagV3", name, diagonal=diagonal, k=k, num_rows=num_rows, num_cols=num_cols,
        padding_value=_padding(padding_value, diagonal), align=align,
    )  # fmt: skip


def matrix_diag_part(
    input: TensorLike,
    name: str | None = "diag_part",
    k: TensorLike = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The diagonals k of matrices, as `matrix_diag` takes them: [..., m, n] -> [..., min(m, n)] by default."""
    input = convert_to_tensor(input)
    padding = _padding(padding_value, input)
    return apply_op("MatrixDiagPartV3", name, input=input, k=k, padding_value=padding, align=align)


def matrix_set_diag(
    input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag", k: TensorLike = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices with their diagonals k replaced, given as `matrix_diag` takes them."""
    return apply_op("MatrixSetDiagV3", name, input=input, diagonal=diagonal, k=k, align=align)


def _padding(value: Any, like: Tensor) -> Any:
    """TensorFlow's padding of bool matrices is the number 0, too."""
    return bool(value) if like.dtype.is_bool and isinstance(value, int) else value


def matrix_band_part(input: TensorLike, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside the band of that many sub- and superdiagonals (negative: all of them)."""
    lower = convert_to_tensor(num_lower)
    upper = convert_to_tensor(num_upper, lower.dtype) if not isinstance(num_upper, Tensor) else num_upper
    return apply_op("MatrixBandPart", name, input=input, num_lower=lower, num_upper=upper)


# -- shape rules

shape_rule("MatrixBandPart")(unchanged)


@shape_rule("Diag")
def _(op):
    shape = op.inputs[0].shape.with_rank_at_least(1)
    return [shape.concatenate(shape)]


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
    op.inputs[0].shape.with_rank_at_least(1)
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
    diagonal = op.inputs[1].shape.ndims
    if diagonal is None:
        return [op.inputs[0].shape.with_rank_at_least(2)]
    return [op.inputs[0].shape.with_rank(diagonal + 1)]


@shape_rule("MatrixDiagPartV2", "MatrixDiagPartV3")
def _(op):
    dims, k = sizes_of(op.inputs[0]), _known_range(op.inputs[1])
    if dims is None or k is None:
        return unknown(op)
    op.inputs[0].shape.with_rank_at_least(2)
    return [TensorShape([*dims[:-2], *_bands(*k), _longest(*k, *dims[-2:])])]


@shape_rule("MatrixDiagV2", "MatrixDiagV3")
def _(op):
    dims, k = sizes_of(op.inputs[0]), _known_range(op.inputs[1])
    if dims is None or k is None:
        return unknown(op)
    op.inputs[0].shape.with_rank_at_least(1 + len(_bands(*k)))
    lead, width = dims[: -1 - len(_bands(*k))], dims[-1]
    rows, columns = (constant_value(each) for each in op.inputs[2:4])
    if width is None or rows is None or columns is None:
        return [TensorShape([*lead, None, None])]
    low, high = k
    least = (width - min(high, 0), width + max(low, 0))
    sizes = [int(each) for each in (rows, columns)]
    if sizes == [-1, -1]:
        sizes = [max(least)] * 2
    return [TensorShape([*lead, *(small if size == -1 else size for size, small in zip(sizes, least, strict=True))])]


@shape_rule("MatrixSetDiagV2", "MatrixSetDiagV3")
def _(op):
    k, diagonal = _known_range(op.inputs[2]), op.inputs[1].shape
    if k is None or diagonal.ndims is None:
        return [op.inputs[0].shape.with_rank_at_least(2)]
    rank = diagonal.ndims + 1 - len(_bands(*k))
    return [op.inputs[0].shape.with_rank(rank)]


def _known_range(k: Tensor) -> tuple[int, int] | None:
    value = constant_value(k)
    if value is None:
        return None
    numbers = np.ravel(value).tolist()
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise ValueError(f"k must be a diagonal or (lowest, highest), got {numbers}")
    return numbers[0], numbers[-1]


def _bands(low: int, high: int) -> list[int]:
    return [] if low == high else [high - low + 1]


def _longest(low: int, high: int, rows: int | None, columns: int | None) -> int | None:
    return None if rows is None or columns is None else min(rows + min(high, 0), columns - max(low, 0))
