"""Gradients of matrix products, contractions, decompositions and solvers.

The decompositions follow M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), and, for singular values and eigenvectors, J. Townsend, "Differentiating the
singular value decomposition" (2016). They hold where the decomposition is unique: distinct singular or eigenvalues.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.gradients import gradient
from dtf.build.ops.decompositions import matrix_inverse, matrix_solve, matrix_triangular_solve, svd
from dtf.build.ops.einsum import parse_einsum
from dtf.build.ops.linalg import adjoint, cross, matmul
from dtf.build.ops.math import (
    add,
    cast,
    conj,
    div_no_nan,
    multiply,
    negative,
    reciprocal,
    square,
    subtract,
)  # fmt: skip
from dtf.build.ops.math_grad import sum_to_shape_of
from dtf.build.tensor import Operation, Tensor

Gradients = list[Any]

# -- products --


@gradient("MatMul")
def _matmul(op: Operation, grad: Any) -> Gradients:
    transpose_a, transpose_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    a, b = (conj(x) for x in op.inputs)
    by_a = _product(b, grad, transpose_b, True) if transpose_a else _product(grad, b, False, not transpose_b)
    by_b = _product(grad, a, True, transpose_a) if transpose_b else _product(a, grad, not transpose_a, False)
    return [by_a, by_b]


def _product(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Tensor:
    return apply_op("MatMul", a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b)


@gradient("SparseMatMul")
def _sparse_matmul(op: Operation, grad: Any) -> Gradients:
    transpose_a, transpose_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    a, b = (cast(x, grad.dtype) for x in op.inputs)
    by_a = _product(b, grad, transpose_b, True) if transpose_a else _product(grad, b, False, not transpose_b)
    by_b = _product(grad, a, True, transpose_a) if transpose_b else _product(a, grad, not transpose_a, False)
    return [cast(by_a, op.inputs[0].dtype), cast(by_b, op.inputs[1].dtype)]


@gradient("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(op: Operation, grad: Any) -> Gradients:
    x, y = (cast(each, grad.dtype) for each in op.inputs)
    adjoint_x, adjoint_y = op.get_attr("adj_x"), op.get_attr("adj_y")
    by_x = _batch_product(y, grad, adjoint_y, True) if adjoint_x else _batch_product(grad, y, False, not adjoint_y)
    by_y = _batch_product(grad, x, True, adjoint_x) if adjoint_y else _batch_product(x, grad, not adjoint_x, False)
    if op.type == "BatchMatMul":
        return [by_x, by_y]
    grads = [sum_to_shape_of(x, by_x), sum_to_shape_of(y, by_y)]
    return [cast(each, source.dtype) for each, source in zip(grads, op.inputs, strict=True)]


def _batch_product(x: Any, y: Any, adjoint_x: bool, adjoint_y: bool) -> Tensor:
    return apply_op("BatchMatMulV2", x=x, y=y, adj_x=adjoint_x, adj_y=adjoint_y)


@gradient("Cross")
def _cross(op: Operation, grad: Any) -> Gradients:
    a, b = op.inputs
    return [cross(b, grad), cross(grad, a)]


@gradient("Einsum")
def _einsum(op: Operation, grad: Any) -> Gradients:
    equation = op.get_attr("equation").decode()
    if "..." in equation and any(tensor.shape.ndims is None for tensor in op.inputs):
        return _einsum_of_unknown_ranks(op, grad, equation)
    contraction = parse_einsum(equation, [tensor.shape for tensor in op.inputs])
    grads = []
    for index, (labels, x) in enumerate(zip(contraction.inputs, op.inputs, strict=True)):
        if len(set(labels)) < len(labels):
            raise NotImplementedError(f"the gradient of einsum {equation!r}: an axis comes twice in {labels!r}")
        others = [each for position, each in enumerate(contraction.inputs) if position != index]
        operands = [grad] + [conj(each) for position, each in enumerate(op.inputs) if position != index]
        available = contraction.output + "".join(others)
        kept = "".join(label for label in labels if label in available)
        partial = apply_op("Einsum", inputs=operands, equation=f"{','.join([contraction.output, *others])}->{kept}")
        for axis, label in enumerate(labels):
            if label not in available:  # an axis that only this input has was summed: its gradient is repeated
                partial = apply_op("ExpandDims", input=partial, dim=axis)
        if kept != labels:
            partial = add(partial, apply_op("ZerosLike", x=x))
        grads.append(sum_to_shape_of(x, partial))
    return grads


def _einsum_of_unknown_ranks(op: Operation, grad: Any, equation: str) -> Gradients:
    """As above, with the ellipses left in the equations; each must be the first axes of its input and of the output."""
    left, _, output = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = [term.removeprefix("...") for term in terms]
    if not output.startswith("...") or any("." in each or len(set(each)) < len(each) for each in letters):
        raise NotImplementedError(f"the gradient of einsum {equation!r} for inputs of unknown rank")
    grads = []
    for index, (labels, x) in enumerate(zip(letters, op.inputs, strict=True)):
        others = [term for position, term in enumerate(terms) if position != index]
        operands = [grad] + [conj(each) for position, each in enumerate(op.inputs) if position != index]
        kept = "".join(label for label in labels if label in "".join([output, *others]))
        partial = apply_op("Einsum", inputs=operands, equation=f"{','.join([output, *others])}->...{kept}")
        for after, label in enumerate(reversed(labels)):
            if label not in kept:
                partial = apply_op("ExpandDims", input=partial, dim=-1 - after)
        grads.append(sum_to_shape_of(x, partial if kept == labels else add(partial, apply_op("ZerosLike", x=x))))
    return grads


# -- inverses, determinants, solvers --


@gradient("MatrixInverse")
def _matrix_inverse(op: Operation, grad: Any) -> Gradients:
    inverse = op.outputs[0]
    if op.get_attr("adjoint"):
        return [negative(matmul(inverse, matmul(grad, inverse, adjoint_a=True)))]
    return [negative(matmul(inverse, matmul(grad, inverse, adjoint_b=True), adjoint_a=True))]


@gradient("MatrixDeterminant")
def _matrix_determinant(op: Operation, grad: Any) -> Gradients:
    inverse = matrix_inverse(op.inputs[0], adjoint=True)
    return [multiply(_as_scalars(multiply(grad, conj(op.outputs[0]))), inverse)]


@gradient("LogMatrixDeterminant")
def _log_matrix_determinant(op: Operation, grad_sign: Any, grad_log: Any) -> Gradients:
    return [multiply(_as_scalars(grad_log), matrix_inverse(op.inputs[0], adjoint=True))]


def _as_scalars(x: Any) -> Tensor:
    """[...] as [..., 1, 1]: one number per matrix."""
    return apply_op("ExpandDims", input=apply_op("ExpandDims", input=x, dim=-1), dim=-1)


@gradient("MatrixSolve")
def _matrix_solve(op: Operation, grad: Any) -> Gradients:
    matrix, solution = op.inputs[0], op.outputs[0]
    is_adjoint = op.get_attr("adjoint")
    by_rhs = matrix_solve(matrix, grad, adjoint=not is_adjoint)
    return [_solver_by_matrix(by_rhs, solution, is_adjoint), by_rhs]


@gradient("MatrixTriangularSolve")
def _matrix_triangular_solve(op: Operation, grad: Any) -> Gradients:
    matrix, rhs = op.inputs
    lower, is_adjoint = op.get_attr("lower"), op.get_attr("adjoint")
    by_rhs = matrix_triangular_solve(matrix, grad, lower=lower, adjoint=not is_adjoint)
    by_matrix = _solver_by_matrix(by_rhs, op.outputs[0], is_adjoint)
    triangle = _band(by_matrix, -1, 0) if lower else _band(by_matrix, 0, -1)
    return [sum_to_shape_of(matrix, triangle), sum_to_shape_of(rhs, by_rhs)]


def _solver_by_matrix(by_rhs: Tensor, solution: Tensor, is_adjoint: bool) -> Tensor:
    left, right = (solution, by_rhs) if is_adjoint else (by_rhs, solution)
    return negative(matmul(left, right, adjoint_b=True))


def _band(matrix: Tensor, below: int, above: int) -> Tensor:
    wide = [constant(number, dtype="int64") for number in (below, above)]
    return apply_op("MatrixBandPart", input=matrix, num_lower=wide[0], num_upper=wide[1])


@gradient("MatrixSolveLs")
def _matrix_solve_ls(op: Operation, grad: Any) -> Gradients:
    a, b, regularizer = op.inputs
    x = op.outputs[0]
    if not op.get_attr("fast"):
        raise ValueError("Gradient not defined for fast=False")
    rows, columns = a.shape[-2:].as_list()
    if rows is None or columns is None:
        raise ValueError("the gradient of MatrixSolveLs needs matrices of known size")
    if rows >= columns:
        # x = S^-1 A^H b with S = A^H A + l I
        z = _solve_gramian(matmul(a, a, adjoint_a=True), regularizer, grad, columns)
        x_z = matmul(x, z, adjoint_b=True)
        by_a = subtract(matmul(b, z, adjoint_b=True), matmul(a, add(x_z, adjoint(x_z))))
        return [by_a, matmul(a, z), None]
    # x = A^H w with w = S^-1 b, S = A A^H + l I
    gramian = matmul(a, a, adjoint_b=True)
    w = _solve_gramian(gramian, regularizer, b, rows)
    v = _solve_gramian(gramian, regularizer, matmul(a, grad), rows)
    v_w = matmul(v, w, adjoint_b=True)
    by_a = subtract(matmul(w, grad, adjoint_b=True), matmul(add(v_w, adjoint(v_w)), a))
    return [by_a, v, None]


def _solve_gramian(gramian: Tensor, regularizer: Tensor, rhs: Any, size: int) -> Tensor:
    identity = apply_op("MatrixDiag", diagonal=apply_op("Fill", dims=[size], value=cast(regularizer, gramian.dtype)))
    return matrix_solve(add(gramian, identity), rhs)


# -- decompositions --


@gradient("Cholesky")
def _cholesky(op: Operation, grad: Any) -> Gradients:
    factor = op.outputs[0]
    middle = matmul(factor, grad, adjoint_a=True)
    # The lower triangle with half of the diagonal.
    middle = subtract(_band(middle, -1, 0), multiply(_band(middle, 0, 0), constant(0.5, dtype=middle.dtype)))
    inner = matrix_triangular_solve(factor, middle, adjoint=True)
    result = adjoint(matrix_triangular_solve(factor, adjoint(inner), adjoint=True))
    return [multiply(add(result, adjoint(result)), constant(0.5, dtype=result.dtype))]


@gradient("Qr")
def _qr(op: Operation, grad_q: Any, grad_r: Any) -> Gradients:
    q, r = op.outputs
    rows, columns = op.inputs[0].shape[-2:].as_list()
    if rows is None or columns is None:
        raise NotImplementedError("the gradient of Qr needs matrices of known size")
    if rows < columns or op.get_attr("full_matrices") and rows != columns:
        raise NotImplementedError("the gradient of Qr exists for as many rows as columns or more, full_matrices=False")
    q_grad = matmul(q, grad_q, adjoint_a=True)
    r_grad = matmul(r, grad_r, adjoint_b=True)
    skew = add(subtract(q_grad, adjoint(q_grad)), subtract(r_grad, adjoint(r_grad)))
    along = matmul(q, add(grad_r, _divide_by_triangle(_band(skew, -1, 0), r)))
    across = _divide_by_triangle(subtract(grad_q, matmul(q, q_grad)), r)
    return [add(along, across)]


def _divide_by_triangle(x: Tensor, r: Tensor) -> Tensor:
    """x r^-H for an upper triangular r."""
    return adjoint(matrix_triangular_solve(r, adjoint(x), lower=False))


@gradient("Svd")
def _svd(op: Operation, grad_s: Any, grad_u: Any, grad_v: Any) -> Gradients:
    matrix = op.inputs[0]
    if not op.get_attr("compute_uv"):
        _, u, v = svd(matrix)
        return [matmul(u, matmul(_diagonal(grad_s), v, adjoint_b=True))]
    rows, columns = matrix.shape[-2:].as_list()
    if op.get_attr("full_matrices") and (rows is None or rows != columns):
        raise NotImplementedError("the gradient of Svd with full_matrices exists for square matrices only")
    if matrix.dtype.is_complex:
        raise NotImplementedError("the gradient of Svd with vectors exists for real matrices only")
    s, u, v = op.outputs
    squares = square(s)
    gaps = _reciprocal_differences(squares)
    scale = _diagonal(s)
    u_grad = matmul(u, grad_u, adjoint_a=True)
    v_grad = matmul(v, grad_v, adjoint_a=True)
    core = add(
        add(
            matmul(multiply(gaps, subtract(u_grad, adjoint(u_grad))), scale),
            matmul(scale, multiply(gaps, subtract(v_grad, adjoint(v_grad)))),
        ),
        _diagonal(grad_s),
    )
    inverse_scale = _diagonal(reciprocal(s))
    u_rest = matmul(subtract(grad_u, matmul(u, u_grad)), inverse_scale)  # the part outside the span of u
    v_rest = matmul(subtract(grad_v, matmul(v, v_grad)), inverse_scale)
    by_matrix = add(matmul(add(matmul(u, core), u_rest), v, adjoint_b=True), matmul(u, v_rest, adjoint_b=True))
    return [by_matrix]


@gradient("SelfAdjointEigV2")
def _self_adjoint_eig(op: Operation, grad_e: Any, grad_v: Any) -> Gradients:
    matrix = op.inputs[0]
    if op.get_attr("compute_v"):
        e, v = op.outputs
        gaps = _reciprocal_differences(e)
        core = add(_diagonal(grad_e), multiply(gaps, matmul(v, grad_v, adjoint_a=True)))
    else:
        _, v = apply_op("SelfAdjointEigV2", input=matrix)
        core = _diagonal(grad_e)
    full = matmul(v, matmul(core, v, adjoint_b=True))
    # Only the lower triangle of the input is read, so it takes the gradient of both.
    lower = _band(add(full, adjoint(full)), -1, 0)
    return [subtract(lower, multiply(_band(lower, 0, 0), constant(0.5, dtype=lower.dtype)))]


def _diagonal(x: Any) -> Tensor:
    return apply_op("MatrixDiag", diagonal=x)


def _reciprocal_differences(x: Tensor) -> Tensor:
    """[..., n] -> [..., n, n]: 1 / (x[j] - x[i]), and 0 on the diagonal."""
    differences = subtract(apply_op("ExpandDims", input=x, dim=-2), apply_op("ExpandDims", input=x, dim=-1))
    return div_no_nan(constant(1, dtype=x.dtype), differences)
