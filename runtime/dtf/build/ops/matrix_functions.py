"""Functions of matrices, LU factors, banded and tridiagonal systems: public functions and static shapes.

Kernels: `run.kernels.matrix_functions`; gradients: `matrix_functions_grad`. Names and arguments follow
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg. The last two dimensions are the matrix.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.decompositions import matrix_solve, matrix_triangular_solve, svd
from dtf.build.ops.linalg import eye, matmul
from dtf.build.ops.math import abs as absolute
from dtf.build.ops.math import cast, greater, multiply, truediv
from dtf.build.ops.reductions import reduce_max, reduce_sum
from dtf.build.shape_rules import broadcast_shape, shape_rule, unchanged, unknown
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "banded_triangular_solve", "eig", "eigvals", "expm", "logm", "lu", "lu_matrix_inverse", "lu_reconstruct",
    "lu_solve", "matrix_rank", "matrix_square_root", "pinv", "sqrtm", "tridiagonal_matmul", "tridiagonal_solve",
]  # fmt: skip

# -- factors --


def lu(input: TensorLike, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """(lu, p): the factors of a square matrix in one, L below its diagonal of ones and U above, and the order of rows.

    gather(input, p) = L U. [..., n, n] -> [..., n, n] and [..., n]. A singular matrix is an InvalidArgumentError.
    """
    return apply_op("Lu", name, input=input, output_idx_type=output_idx_type)


def lu_reconstruct(lower_upper: Any, perm: TensorLike, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The matrix that `lu` factored."""
    with name_scope(name or "lu_reconstruct"):
        lower_upper, perm = convert_to_tensor(lower_upper), convert_to_tensor(perm)
        product = matmul(_lower(lower_upper), apply_op("MatrixBandPart", input=lower_upper, num_lower=0, num_upper=-1))
        return gather_rows(product, inverse_order(perm))


def lu_solve(
    lower_upper: Any, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The X with A X = rhs for (lower_upper, perm) = lu(A). [..., n, n], [..., n], [..., n, k] -> [..., n, k]."""
    with name_scope(name or "lu_solve"):
        lower_upper, perm, rhs = (convert_to_tensor(each) for each in (lower_upper, perm, rhs))
        first = matrix_triangular_solve(_lower(lower_upper), gather_rows(rhs, perm))
        return matrix_triangular_solve(lower_upper, first, lower=False)


def lu_matrix_inverse(
    lower_upper: Any, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverse of the matrix that `lu` factored."""
    with name_scope(name or "lu_matrix_inverse"):
        lower_upper = convert_to_tensor(lower_upper)
        size = apply_op("Shape", input=lower_upper)[-1]
        batch = apply_op("Shape", input=lower_upper)[:-2]
        return lu_solve(lower_upper, perm, eye(size, batch_shape=batch, dtype=lower_upper.dtype))


def _lower(lower_upper: Tensor) -> Tensor:
    """The lower factor with its diagonal of ones."""
    strict = apply_op(
        "Sub", x=lower_upper, y=apply_op("MatrixBandPart", input=lower_upper, num_lower=0, num_upper=-1)
    )
    ones = apply_op("OnesLike", x=apply_op("MatrixDiagPart", input=lower_upper))
    return apply_op("MatrixSetDiag", input=strict, diagonal=ones)


def gather_rows(matrix: Tensor, order: Tensor) -> Tensor:
    """The rows of each matrix [..., n, k] in the order [..., n]."""
    from dtf.build.ops.gathering import gather

    if order.shape.ndims is None:
        raise ValueError("The rank of the permutation must be known.")
    return gather(matrix, order, axis=-2, batch_dims=order.shape.ndims - 1)


def inverse_order(order: Tensor) -> Tensor:
    """The permutations that undo permutations [..., n]."""
    if order.shape.ndims == 1:
        return apply_op("InvertPermutation", x=order)
    # Sorting a permutation finds where each number was.
    size = apply_op("Shape", input=order)[-1]
    return cast(apply_op("TopKV2", input=apply_op("Neg", x=order), k=size, sorted=True).indices, order.dtype)


def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(e, v): the complex eigenvalues and eigenvectors (the columns of v) of square matrices, in no order."""
    tensor = convert_to_tensor(tensor)
    e, v = apply_op("Eig", name, input=tensor, compute_v=True, Tout=_complex_of(tensor.dtype))
    return e, v


def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The complex eigenvalues of square matrices, in no order."""
    tensor = convert_to_tensor(tensor)
    return apply_op("Eig", name, input=tensor, compute_v=False, Tout=_complex_of(tensor.dtype)).e


def _complex_of(dtype: dtypes.DType) -> dtypes.DType:
    return dtypes.complex64 if dtype.base_dtype in (dtypes.float32, dtypes.complex64) else dtypes.complex128


# -- functions --


def sqrtm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal square root: the matrix whose product with itself is `input`. [..., n, n] -> [..., n, n]."""
    return apply_op("MatrixSquareRoot", name, input=input)


matrix_square_root = sqrtm


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal logarithm of complex matrices [..., n, n]."""
    return apply_op("MatrixLogarithm", name, input=input)


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The exponential of matrices [..., n, n]: a Pade approximant of a scaled matrix, squared back.

    Source: N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
    """
    from dtf.build.ops.control_flow import while_loop

    with name_scope(name or "matrix_exponential"):
        matrix = convert_to_tensor(input)
        real_dtype = matrix.dtype.real_dtype.base_dtype
        sizes = reduce_max(reduce_sum(absolute(matrix), -2), -1, keepdims=True)[..., None]
        # Per matrix, the squarings that bring the norm below the bound for which the approximant is exact.
        excess = apply_op("Log", x=truediv(sizes, constant(_PADE_NORM_MAX, real_dtype)))
        squarings = apply_op("Maximum", x=apply_op("Ceil", x=truediv(excess, math.log(2.0))), y=constant(0, real_dtype))
        scaled = truediv(matrix, cast(apply_op("Pow", x=constant(2, real_dtype), y=squarings), matrix.dtype))
        even, odd = _pade_parts(scaled)
        result = matrix_solve(apply_op("Sub", x=even, y=odd), apply_op("AddV2", x=even, y=odd))

        def square(count: Tensor, power: Tensor) -> tuple[Tensor, Tensor]:
            wanted = cast(greater(squarings, count), matrix.dtype)
            squared = matmul(power, power)
            return count + 1, apply_op("AddV2", x=multiply(squared, wanted), y=multiply(power, 1 - wanted))

        most = reduce_max(squarings)
        _, result = while_loop(lambda count, _: count < most, square, [constant(0, real_dtype), result])
        result.set_shape(matrix.shape)
        return result


_PADE_DEGREE = 13
_PADE_NORM_MAX = 2.0


def _pade_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """The even and the odd powers of the numerator of the diagonal Pade approximant of exp."""
    degree = _PADE_DEGREE
    coefficients = [1.0]
    for k in range(1, degree + 1):
        coefficients.append(coefficients[-1] * (degree - k + 1) / (k * (2 * degree - k + 1)))
    square = matmul(x, x)
    size = apply_op("Shape", input=x)
    identity = eye(size[-1], batch_shape=size[:-2], dtype=x.dtype)
    sums = []
    for start in (0, 1):
        total = multiply(identity, constant(coefficients[start], x.dtype))
        power = identity
        for coefficient in coefficients[start + 2 :: 2]:
            power = matmul(power, square)
            total = apply_op("AddV2", x=total, y=multiply(power, constant(coefficient, x.dtype)))
        sums.append(total)
    return sums[0], matmul(x, sums[1])


def matrix_rank(a: TensorLike, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """How many singular values exceed `tol` (the largest one times max(m, n) times the unit in the last place)."""
    with name_scope(name or "matrix_rank"):
        a = convert_to_tensor(a)
        values = svd(a, compute_uv=False)
        if tol is None:
            longest = reduce_max(apply_op("Shape", input=a)[-2:])
            unit = np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps
            tol = multiply(cast(longest, values.dtype), reduce_max(values, -1, keepdims=True)) * unit
        return reduce_sum(cast(greater(values, tol), dtypes.int32), -1)


def pinv(a: TensorLike, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse; singular values up to `rcond` times the largest count as zero."""
    with name_scope(name or "pinv"):
        a = convert_to_tensor(a)
        if rcond is None:
            longest = cast(reduce_max(apply_op("Shape", input=a)[-2:]), a.dtype.real_dtype.base_dtype)
            rcond = 10.0 * longest * np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps
        s, u, v = svd(a)
        limit = convert_to_tensor(rcond, s.dtype) * reduce_max(s, -1)
        is_large = greater(s, limit[..., None])
        inverses = apply_op("SelectV2", condition=is_large, t=s, e=convert_to_tensor(np.inf, s.dtype))
        return matmul(truediv(v, cast(inverses, v.dtype)[..., None, :]), u, adjoint_b=True)


# -- banded systems --


def banded_triangular_solve(
    bands: Any, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The X with A X = rhs for a triangular A given by its diagonals [..., k, n]. rhs: [..., n, m].

    Lower: the main diagonal comes first, and below it those further down, moved to the right. Upper: it comes last, and
    above it those further up, moved to the left.
    """
    return apply_op("BandedTriangularSolve", name, matrix=bands, rhs=rhs, lower=lower, adjoint=adjoint)


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """The X with A X = rhs for a tridiagonal A. rhs: [..., n] or [..., n, k].

    diagonals: "compact" [..., 3, n], the diagonals above, on and below the main one; the last element of the first and
    the first element of the last are ignored. "sequence", these three as a list; "matrix" [..., n, n].
    """
    with name_scope(name or "tridiagonal_solve"):
        rhs = convert_to_tensor(rhs)
        compact = apply_op("Pack", values=_three_diagonals(diagonals, diagonals_format), axis=-2)
        is_vector = rhs.shape.ndims is not None and compact.shape.ndims is not None and (
            rhs.shape.ndims == compact.shape.ndims - 1
        )
        if is_vector:
            rhs = rhs[..., None]
        elif transpose_rhs:
            from dtf.build.ops.rearranging import matrix_transpose

            rhs = matrix_transpose(rhs)
        if conjugate_rhs and rhs.dtype.is_complex:
            rhs = apply_op("Conj", input=rhs)
        solved = apply_op(
            "TridiagonalSolve", diagonals=compact, rhs=rhs, partial_pivoting=partial_pivoting,
            perturb_singular=perturb_singular,
        )  # fmt: skip
        return solved[..., 0] if is_vector else solved


def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The product of tridiagonal matrices, given as to `tridiagonal_solve`, and matrices [..., n, k]."""
    with name_scope(name or "tridiagonal_matmul"):
        above, main, below = (each[..., None, :] for each in _three_diagonals(diagonals, diagonals_format))
        return apply_op("TridiagonalMatMul", superdiag=above, maindiag=main, subdiag=below, rhs=rhs)


def _three_diagonals(diagonals: Any, diagonals_format: str) -> list[Tensor]:
    if diagonals_format == "sequence":
        return [convert_to_tensor(each) for each in diagonals]
    diagonals = convert_to_tensor(diagonals)
    if diagonals_format == "compact":
        return [diagonals[..., number, :] for number in range(3)]
    if diagonals_format != "matrix":
        raise ValueError(f"diagonals_format must be compact, sequence or matrix, got {diagonals_format!r}")
    bands = apply_op(
        "MatrixDiagPartV3", input=diagonals, k=[-1, 1], padding_value=convert_to_tensor(0, diagonals.dtype),
        align="LEFT_RIGHT",
    )  # fmt: skip
    return [bands[..., number, :] for number in range(3)]


# -- shape rules --


def _square(shape: TensorShape) -> TensorShape:
    shape = shape.with_rank_at_least(2)
    if shape.ndims is not None:
        shape[-1].assert_is_compatible_with(shape[-2])
    return shape


shape_rule("TridiagonalSolve")(lambda op: [op.inputs[1].shape])
shape_rule("TridiagonalMatMul")(lambda op: [op.inputs[3].shape])


@shape_rule("MatrixSquareRoot", "MatrixLogarithm", "CholeskyGrad")
def _square_shape(op: Operation) -> list[TensorShape]:
    _square(op.inputs[0].shape)
    return unchanged(op)


@shape_rule("Lu")
def _lu_shape(op: Operation) -> list[TensorShape]:
    shape = _square(op.inputs[0].shape)
    return [shape, TensorShape(None) if shape.ndims is None else shape[:-1]]


@shape_rule("Eig")
def _eig_shape(op: Operation) -> list[TensorShape]:
    shape = _square(op.inputs[0].shape)
    if shape.ndims is None:
        return unknown(op)
    return [shape[:-1], shape if op.get_attr("compute_v") else TensorShape([0])]


@shape_rule("BandedTriangularSolve")
def _banded_shape(op: Operation) -> list[TensorShape]:
    bands, rhs = (tensor.shape.with_rank_at_least(2) for tensor in op.inputs)
    if bands.ndims is None or rhs.ndims is None:
        return unknown(op)
    bands[-1].assert_is_compatible_with(rhs[-2])
    return [broadcast_shape(bands[:-2], rhs[:-2]).concatenate(rhs[-2:])]
