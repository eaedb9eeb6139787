"""Decompositions of matrices, solvers, determinants and inverses, with their shape rules.

Names, arguments and defaults are TensorFlow 1.x's (https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg).
The last two dimensions of a tensor are the matrix, the dimensions before them a batch. Gradients are in `linalg_grad`,
kernels in `dtf.run.kernels.linalg`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.default_graph import name_scope
from dtf.build.ops.math import log, multiply, real
from dtf.build.ops.reductions import reduce_sum
from dtf.build.shape_rules import broadcast_shape, shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "cholesky",
    "cholesky_solve",
    "logdet",
    "matrix_determinant",
    "matrix_inverse",
    "matrix_solve",
    "matrix_solve_ls",
    "matrix_triangular_solve",
    "qr",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "slogdet",
    "svd",
]


def matrix_inverse(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices, or of their adjoints. A singular one is an InvalidArgumentError at run time."""
    return apply_op("MatrixInverse", name, input=input, adjoint=adjoint)


def matrix_determinant(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinant. [..., n, n] -> [...]."""
    return apply_op("MatrixDeterminant", name, input=input)


def slogdet(input: TensorLike, name: str | None = None) -> Any:
    """(sign, log |determinant|). [..., n, n] -> twice [...]."""
    return apply_op("LogMatrixDeterminant", name, input=input)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """log of the determinant of hermitian positive definite matrices, from their Cholesky factors."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = apply_op("MatrixDiagPart", input=cholesky(matrix))
        return multiply(2.0, reduce_sum(log(real(diagonal)), axis=[-1]))


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular L with L L^H = input, for hermitian positive definite matrices (else InvalidArgumentError).

    Only the lower triangle of the input is read.
    """
    return apply_op("Cholesky", name, input=input)


def cholesky_solve(chol: Any, rhs: TensorLike, name: str | None = None) -> Tensor:
    """The X with A X = rhs, where chol = cholesky(A). [..., n, n], [..., n, k] -> [..., n, k]."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        first = matrix_triangular_solve(chol, rhs, adjoint=False, lower=True)
        return matrix_triangular_solve(chol, first, adjoint=True, lower=True)


def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The X with matrix X = rhs (or the adjoint of the matrix). [..., n, n], [..., n, k] -> [..., n, k]."""
    return apply_op("MatrixSolve", name, matrix=matrix, rhs=rhs, adjoint=adjoint)


def matrix_triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """As `matrix_solve`, reading only the lower (or upper) triangle of the matrix."""
    return apply_op("MatrixTriangularSolve", name, matrix=matrix, rhs=rhs, lower=lower, adjoint=adjoint)


def matrix_solve_ls(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """The X that makes |matrix X - rhs|^2 + l2_regularizer |X|^2 least. [..., m, n], [..., m, k] -> [..., n, k].

    `fast` solves the normal equations; otherwise the pseudo-inverse is used and the regularizer ignored.
    """
    regularizer = np.float64(l2_regularizer)
    return apply_op("MatrixSolveLs", name, matrix=matrix, rhs=rhs, l2_regularizer=regularizer, fast=fast)


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Any:
    """(q, r) with q r = input, q unitary and r upper triangular. [..., m, n] -> [..., m, p], [..., p, n].

    p is min(m, n), or m with `full_matrices`.
    """
    return apply_op("Qr", name, input=input, full_matrices=full_matrices)


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """(s, u, v) with u diag(s) v^H = tensor; only s when `compute_uv` is False.

    [..., m, n] -> s [..., p] in descending order, real; u [..., m, p]; v [..., n, p]; p = min(m, n), and u and v square
    with `full_matrices`.
    """
    s, u, v = apply_op("Svd", name, input=tensor, compute_uv=compute_uv, full_matrices=full_matrices)
    return (real(s), u, v) if compute_uv else real(s)


def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(e, v): eigenvalues in ascending order and eigenvectors, the columns of v, of hermitian matrices [..., n, n]."""
    e, v = apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=True)
    return e, v


def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues of hermitian matrices in ascending order. [..., n, n] -> [..., n]."""
    return apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=False).e


@shape_rule("MatrixInverse", "Cholesky")
def _square_shape(op: Operation) -> list[TensorShape]:
    batch, size = _square_matrix(op.inputs[0].shape)
    return [unknown_shape() if batch is None else batch.concatenate([size, size])]


@shape_rule("MatrixDeterminant", "LogMatrixDeterminant")
def _determinant_shape(op: Operation) -> list[TensorShape]:
    batch, _ = _square_matrix(op.inputs[0].shape)
    return [unknown_shape() if batch is None else batch] * len(op.outputs)


@shape_rule("SelfAdjointEigV2")
def _self_adjoint_eig_shape(op: Operation) -> list[TensorShape]:
    batch, size = _square_matrix(op.inputs[0].shape)
    if batch is None:
        return [unknown_shape()] * 2
    vectors = batch.concatenate([size, size]) if op.get_attr("compute_v") else TensorShape([0])
    return [batch.concatenate([size]), vectors]


@shape_rule("MatrixSolve", "MatrixTriangularSolve")
def _solve_shape(op: Operation) -> list[TensorShape]:
    batch, size = _square_matrix(op.inputs[0].shape)
    rhs = op.inputs[1].shape.with_rank_at_least(2)
    if op.type == "MatrixSolve" and batch is None and rhs.ndims is not None:
        return [rhs]
    if op.type == "MatrixSolve" and batch is not None and rhs.ndims is None:
        return [batch.concatenate([size, None])]
    if batch is None or rhs.ndims is None:
        return [unknown_shape()]
    rows, columns = rhs.as_list()[-2:]
    check_inner(size, rows)
    batch = batch.merge_with(rhs[:-2]) if op.type == "MatrixSolve" else broadcast_shape(batch, rhs[:-2])
    return [batch.concatenate([rows if size is None else size, columns])]


@shape_rule("MatrixSolveLs")
def _solve_ls_shape(op: Operation) -> list[TensorShape]:
    matrix, rhs = (tensor.shape.with_rank_at_least(2) for tensor in op.inputs[:2])
    if matrix.ndims is None or rhs.ndims is None:
        return [unknown_shape()]
    check_inner(matrix.as_list()[-2], rhs.as_list()[-2])
    return [matrix[:-2].merge_with(rhs[:-2]).concatenate([matrix[-1], rhs[-1]])]


@shape_rule("Qr")
def _qr_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank_at_least(2)
    if shape.ndims is None:
        return [unknown_shape()] * 2
    rows, columns = shape.as_list()[-2:]
    inner = rows if op.get_attr("full_matrices") else _lesser(rows, columns)
    return [shape[:-2].concatenate([rows, inner]), shape[:-2].concatenate([inner, columns])]


@shape_rule("Svd")
def _svd_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank_at_least(2)
    if shape.ndims is None:
        return [unknown_shape()] * 3
    rows, columns = shape.as_list()[-2:]
    least = _lesser(rows, columns)
    values = shape[:-2].concatenate([least])
    if not op.get_attr("compute_uv"):
        return [values, TensorShape([0]), TensorShape([0])]
    inner = (rows, columns) if op.get_attr("full_matrices") else (least, least)
    return [values, shape[:-2].concatenate([rows, inner[0]]), shape[:-2].concatenate([columns, inner[1]])]


def _lesser(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _square_matrix(shape: TensorShape) -> tuple[TensorShape | None, int | None]:
    """The batch shape (None if the rank is unknown) and the number of rows of square matrices."""
    shape = shape.with_rank_at_least(2)
    if shape.ndims is None:
        return None, None
    rows, columns = shape.as_list()[-2:]
    check_inner(rows, columns)
    return shape[:-2], columns if rows is None else rows


def check_inner(a: int | None, b: int | None) -> None:
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
