"""Gradients of LU, general eigenvalues, banded and tridiagonal solvers.

Source: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); for eigenvectors of unit length C. Boeddeker et al., "On the computation of complex-valued
gradients with application to statistically optimum beamforming" (2017).
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops.decompositions import matrix_solve, matrix_triangular_solve
from dtf.build.ops.diagonals import matrix_band_part, matrix_diag, matrix_diag_part
from dtf.build.ops.joining import concat, stack
from dtf.build.ops.linalg import adjoint, eye, matmul
from dtf.build.ops.math import add, cast, conj, divide, multiply, negative, real, subtract
from dtf.build.ops.math_grad import sum_to_shape_of
from dtf.build.ops.matrix_functions import eig, gather_rows, inverse_order
from dtf.build.ops.reductions import reduce_sum
from dtf.build.ops.searching import where_v2
from dtf.build.tensor import Operation, Tensor

Gradients = list[Any]

not_differentiable("CholeskyGrad", "MatrixLogarithm")


@gradient("Lu")
def _lu(op: Operation, grad: Any, _: Any) -> Gradients:
    factors, order = op.outputs
    upper = matrix_band_part(factors, 0, -1)
    strict_lower = subtract(factors, upper)
    lower = apply_op(
        "MatrixSetDiag", input=strict_lower, diagonal=apply_op("OnesLike", x=matrix_diag_part(factors))
    )
    upper_grad = matrix_band_part(grad, 0, -1)
    lower_grad = subtract(grad, upper_grad)
    of_lower = matmul(lower, lower_grad, adjoint_a=True)
    of_lower = subtract(of_lower, matrix_band_part(of_lower, 0, -1))
    of_upper = matrix_band_part(matmul(upper_grad, upper, adjoint_b=True), 0, -1)
    middle = matrix_triangular_solve(lower, add(of_lower, of_upper), lower=True, adjoint=True)
    # times the inverse of the adjoint of upper, from the right
    permuted = adjoint(matrix_triangular_solve(upper, adjoint(middle), lower=False))
    return [gather_rows(permuted, inverse_order(order))]


@gradient("MatrixSquareRoot")
def _matrix_square_root(op: Operation, grad: Any) -> Gradients:
    # The gradient G of X = A^(1/2) solves X^H G + G X^H = grad: one system for the rows of G, one after another.
    root = op.outputs[0]
    shape = apply_op("Shape", input=root)
    batch, size = shape[:-2], shape[-1:]
    identity = eye(shape[-1], dtype=root.dtype)
    squared = apply_op("Mul", x=size, y=size)
    system = add(
        apply_op("Einsum", inputs=[adjoint(root), identity], equation="...ij,kl->...ikjl"),
        apply_op("Einsum", inputs=[identity, conj(root)], equation="ij,...kl->...ikjl"),
    )
    system = apply_op("Reshape", tensor=system, shape=concat([batch, squared, squared], 0))
    rows = apply_op("Reshape", tensor=grad, shape=concat([batch, squared, [1]], 0))
    return [apply_op("Reshape", tensor=matrix_solve(system, rows), shape=shape)]


@gradient("Eig")
def _eig(op: Operation, grad_e: Any, grad_v: Any) -> Gradients:
    e, v = op.outputs if op.get_attr("compute_v") else eig(op.inputs[0])
    core = matrix_diag(grad_e)
    if op.get_attr("compute_v"):
        differences = subtract(apply_op("ExpandDims", input=e, dim=-2), apply_op("ExpandDims", input=e, dim=-1))
        zeros, ones = apply_op("ZerosLike", x=differences), apply_op("OnesLike", x=differences)
        is_same = apply_op("Equal", x=differences, y=zeros)
        gaps = where_v2(is_same, zeros, divide(ones, where_v2(is_same, ones, differences)))
        projected = matmul(v, grad_v, adjoint_a=True)
        along = apply_op("ExpandDims", input=cast(real(matrix_diag_part(projected)), v.dtype), dim=-2)
        turned = subtract(projected, multiply(matmul(v, v, adjoint_a=True), along))
        core = add(core, multiply(conj(gaps), turned))
    v_adjoint = adjoint(v)
    return [cast(matrix_solve(v_adjoint, matmul(core, v_adjoint)), op.inputs[0].dtype)]


@gradient("BandedTriangularSolve")
def _banded_triangular_solve(op: Operation, grad: Any) -> Gradients:
    bands, rhs = op.inputs
    lower, is_adjoint = op.get_attr("lower"), op.get_attr("adjoint")
    by_rhs = apply_op("BandedTriangularSolve", matrix=bands, rhs=grad, lower=lower, adjoint=not is_adjoint)
    left, right = (op.outputs[0], by_rhs) if is_adjoint else (by_rhs, op.outputs[0])
    whole = negative(matmul(left, right, adjoint_b=True))
    sizes = apply_op("Shape", input=bands)[-2:]
    zero, last = constant(0), sizes[0] - 1
    which = stack([negative(last), zero] if lower else [zero, last])
    kept = matrix_diag_part(whole, k=which, align="LEFT_RIGHT")
    # One band comes from matrix_diag_part without the dimension of bands.
    batch = apply_op("Shape", input=whole)[:-2]
    kept = apply_op("Reshape", tensor=kept, shape=concat([batch, sizes], 0))
    return [sum_to_shape_of(bands, kept), sum_to_shape_of(rhs, by_rhs)]


@gradient("TridiagonalMatMul")
def _tridiagonal_matmul(op: Operation, grad: Any) -> Gradients:
    above, main, below, rhs = op.inputs
    by_diagonals = [_row(each) for each in _diagonal_products(grad, rhs)]
    turned_above, turned_below = (conj(each) for each in _transposed(above[..., 0, :], below[..., 0, :]))
    by_rhs = apply_op(
        "TridiagonalMatMul", superdiag=_row(turned_above), maindiag=conj(main), subdiag=_row(turned_below), rhs=grad
    )
    return [*by_diagonals, by_rhs]


@gradient("TridiagonalSolve")
def _tridiagonal_solve(op: Operation, grad: Any) -> Gradients:
    diagonals, solution = op.inputs[0], op.outputs[0]
    above, below = _transposed(diagonals[..., 0, :], diagonals[..., 2, :])
    turned = conj(stack([above, diagonals[..., 1, :], below], axis=-2))
    by_rhs = apply_op(
        "TridiagonalSolve", diagonals=turned, rhs=grad, partial_pivoting=op.get_attr("partial_pivoting")
    )
    return [negative(stack(_diagonal_products(by_rhs, solution), axis=-2)), by_rhs]


def _diagonal_products(left: Tensor, right: Tensor) -> list[Tensor]:
    """The diagonals above, on and below the main one of left right^H, each of n elements."""
    right = conj(right)
    zeros = apply_op("ZerosLike", x=right[..., :1, :])
    shifted = (concat([right[..., 1:, :], zeros], -2), right, concat([zeros, right[..., :-1, :]], -2))
    return [reduce_sum(multiply(left, each), -1) for each in shifted]


def _transposed(above: Tensor, below: Tensor) -> tuple[Tensor, Tensor]:
    """The diagonals above and below the main one of the transposed matrix."""
    zeros = apply_op("ZerosLike", x=above[..., :1])
    return concat([below[..., 1:], zeros], -1), concat([zeros, above[..., :-1]], -1)


def _row(vector: Tensor) -> Tensor:
    return apply_op("ExpandDims", input=vector, dim=-2)
