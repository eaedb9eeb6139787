"""Kernels of matrix products and decompositions, on BLAS and LAPACK through numpy.

Half precision is multiplied in float32 (numpy has no fast loops for it) and rounded once at the end. Decompositions
take batches: the last two dimensions are the matrix.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room, scalar
from dtf.run.value_types import Array, ArrayFunction
from dtf.wire import errors
from dtf.wire.dtypes import DType

Factory = Callable[[KernelNode], Function]


# -- products --


@kernel("MatMul")
def _matmul(node: KernelNode) -> Function:
    transpose_a, transpose_b = node.attr("transpose_a"), node.attr("transpose_b")

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.ndim != 2 or b.ndim != 2:
            which, wrong = (0, a) if a.ndim != 2 else (1, b)
            raise invalid(f"In[{which}] is not a matrix. Instead it has shape {_shape_text(wrong)}")
        left = a.T if transpose_a else a
        right = b.T if transpose_b else b
        if left.shape[1] != right.shape[0]:
            raise invalid(f"Matrix size-incompatible: In[0]: {_shape_text(a)}, In[1]: {_shape_text(b)}")
        room((left.shape[0], right.shape[1]), a.dtype)
        return np.dot(left, right)

    return multiply if not _is_half(node.attr("T")) else _through_float32(multiply)


@kernel("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(node: KernelNode) -> Function:
    adjoint_x, adjoint_y = node.attr("adj_x"), node.attr("adj_y")
    same_type = node.op != "BatchMatMulV3"
    output = node.attr("T" if same_type else "Tout")
    output_dtype = output.as_numpy_dtype

    def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if x.ndim < 2 or y.ndim < 2:
            which, wrong = (0, x) if x.ndim < 2 else (1, y)
            raise invalid(f"In[{which}] ndims must be >= 2: {wrong.ndim}")
        left = adjoint_of(x) if adjoint_x else x
        right = adjoint_of(y) if adjoint_y else y
        if left.shape[-1] != right.shape[-2]:
            raise invalid(f"Matrix size-incompatible: In[0]: {_shape_text(x)}, In[1]: {_shape_text(y)}")
        if left.ndim == 2 and right.ndim == 2:
            room((left.shape[0], right.shape[1]), left.dtype)
        else:
            room((*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]), left.dtype)
        return np.matmul(left, right)

    if not same_type:
        # bfloat16 products are formed in float32, as those of matrices of one dtype are.
        wide = np.float32 if _is_half(output) else output_dtype
        return lambda x, y: multiply(x.astype(wide), y.astype(wide)).astype(output_dtype, copy=False)
    return multiply if not _is_half(output) else _through_float32(multiply)


@kernel("SparseMatMul")
def _sparse_matmul(node: KernelNode) -> Function:
    # "Sparse" only hints that many entries are zero; both operands are dense, and BLAS is faster than skipping zeros.
    transpose_a, transpose_b = node.attr("transpose_a"), node.attr("transpose_b")

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        left = a.T if transpose_a else a
        right = b.T if transpose_b else b
        if left.shape[1] != right.shape[0]:
            raise invalid(f"Matrix size incompatible: a: {_shape_text(a)}, b: {_shape_text(b)}")
        room((left.shape[0], right.shape[1]), np.float32)
        return np.dot(left.astype(np.float32), right.astype(np.float32))

    return multiply


def _einsum_shape(equation: str, operands: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The shape of the result, labels of unequal sizes and malformed equations aside: numpy refuses these."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    more: tuple[int, ...] = ()
    for labels, operand in zip(inputs.split(","), operands, strict=False):
        before, dots, behind = labels.partition("...")
        if dots:
            among = operand.shape[len(before) : operand.ndim - len(behind)]
            more = tuple(map(max, itertools.zip_longest(among[::-1], more[::-1], fillvalue=1)))[::-1]
        sizes |= zip(before, operand.shape, strict=False)
        sizes |= zip(behind[::-1], operand.shape[::-1], strict=False)
    return (*(more if "..." in output else ()), *(sizes.get(label, 1) for label in output.replace("...", "")))


@kernel("Einsum")
def _einsum(node: KernelNode) -> Function:
    equation = node.attr("equation")
    equation = equation.decode() if isinstance(equation, bytes) else equation

    def contract(*operands: np.ndarray) -> np.ndarray:
        room(_einsum_shape(equation, operands), operands[0].dtype)
        return np.asarray(np.einsum(equation, *operands, optimize=True))

    return contract if not _is_half(node.attr("T")) else _through_float32(contract)


@kernel("Cross")
def _cross(node: KernelNode) -> Function:
    def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.shape != b.shape:
            raise invalid("Both inputs must be of same shape")
        if a.ndim == 0:
            raise invalid("Input must be at least 1D")
        if a.shape[-1] != 3:
            raise errors.FailedPreconditionError.of("Cross-products are only defined for 3-element vectors.")
        return np.cross(a, b)

    return cross


def _is_half(dtype: DType) -> bool:
    return dtype.name in ("float16", "bfloat16")


def _through_float32(function: ArrayFunction) -> Function:
    def run(*operands: np.ndarray) -> np.ndarray:
        return function(*[operand.astype(np.float32) for operand in operands]).astype(operands[0].dtype)

    return run


def adjoint_of(x: np.ndarray) -> np.ndarray:
    swapped = np.swapaxes(x, -1, -2)
    return np.conjugate(swapped) if x.dtype.kind == "c" else swapped


# -- decompositions and solvers --


def decomposition(*ops: str, failure: str) -> Callable[[Factory], Factory]:
    """Like `kernel`, with half precision lifted to float32 and LAPACK's complaints told as `failure`."""

    def register(factory: Factory) -> Factory:
        @kernel(*ops)
        def checked(node: KernelNode) -> Function:
            function = factory(node)
            half = _is_half(node.attr("T"))

            def run(*operands: np.ndarray) -> Outputs:
                for operand in operands[:2]:
                    if operand.ndim < 2:
                        raise invalid(f"Input must have rank >= 2, got {operand.ndim}")
                dtype = operands[0].dtype
                if half:
                    operands = tuple(operand.astype(np.float32) for operand in operands)
                try:
                    result = function(*operands)
                except np.linalg.LinAlgError:
                    raise invalid(failure) from None
                if half:
                    parts = result if isinstance(result, tuple) else (result,)
                    narrowed = [part.astype(dtype) for part in parts]
                    return narrowed if isinstance(result, tuple) else narrowed[0]
                return result

            return run

        return factory

    return register


def check_square(matrix: np.ndarray) -> None:
    if matrix.shape[-1] != matrix.shape[-2]:
        raise invalid(f"Input matrix must be square, got: {matrix.shape[-2]} != {matrix.shape[-1]}")


@decomposition("MatrixInverse", "BatchMatrixInverse", failure="Input is not invertible.")
def _matrix_inverse(node: KernelNode) -> Function:
    adjoint = node.attr("adjoint")

    def invert(matrix: np.ndarray) -> np.ndarray:
        check_square(matrix)
        return np.linalg.inv(adjoint_of(matrix) if adjoint else matrix)

    return invert


@decomposition("MatrixDeterminant", "BatchMatrixDeterminant", failure="The determinant is not finite.")
def _matrix_determinant(node: KernelNode) -> Function:
    def determinant(matrix: np.ndarray) -> Array:
        check_square(matrix)
        return np.linalg.det(matrix)

    return determinant


@decomposition("LogMatrixDeterminant", failure="The determinant is not finite.")
def _log_matrix_determinant(node: KernelNode) -> Function:
    def determinant(matrix: np.ndarray) -> tuple[Array, Array]:
        check_square(matrix)
        sign, logarithm = np.linalg.slogdet(matrix)
        return sign.astype(matrix.dtype), logarithm.astype(matrix.dtype)

    return determinant


@decomposition(
    "Cholesky", "BatchCholesky", failure="Cholesky decomposition was not successful. The input might not be valid."
)
def _cholesky(node: KernelNode) -> Function:
    def decompose(matrix: np.ndarray) -> np.ndarray:
        check_square(matrix)
        return np.linalg.cholesky(matrix)

    return decompose


@decomposition("MatrixSolve", "BatchMatrixSolve", failure="Input matrix is not invertible.")
def _matrix_solve(node: KernelNode) -> Function:
    adjoint = node.attr("adjoint")

    def solve(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        _check_system(matrix, rhs)
        return np.linalg.solve(adjoint_of(matrix) if adjoint else matrix, rhs)

    return solve


@decomposition("MatrixTriangularSolve", "BatchMatrixTriangularSolve", failure="Input matrix is not invertible.")
def _matrix_triangular_solve(node: KernelNode) -> Function:
    lower, adjoint = node.attr("lower"), node.attr("adjoint")

    def solve(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        _check_system(matrix, rhs)
        # numpy offers no triangular solver. The other triangle must not be read, so it is cleared first.
        triangle = np.tril(matrix) if lower else np.triu(matrix)
        return np.linalg.solve(adjoint_of(triangle) if adjoint else triangle, rhs)

    return solve


def _check_system(matrix: np.ndarray, rhs: np.ndarray) -> None:
    check_square(matrix)
    if matrix.shape[-2] != rhs.shape[-2]:
        raise invalid(f"Input matrix and rhs are incompatible: {_shape_text(matrix)} and {_shape_text(rhs)}")


@decomposition("MatrixSolveLs", "BatchMatrixSolveLs", failure="Input matrix was rank deficient or ill-conditioned.")
def _matrix_solve_ls(node: KernelNode) -> Function:
    fast = node.attr("fast")

    def solve(matrix: np.ndarray, rhs: np.ndarray, l2_regularizer: Array) -> np.ndarray:
        dtype = matrix.dtype
        scalar(l2_regularizer, "l2_regularizer")
        if not fast:  # the regularizer is ignored by the slow, complete orthogonal path
            return (np.linalg.pinv(matrix) @ rhs).astype(dtype)
        rows, columns = matrix.shape[-2:]
        adjoint = adjoint_of(matrix)
        if rows >= columns:
            gramian = adjoint @ matrix + (l2_regularizer * np.eye(columns)).astype(dtype)
            return np.linalg.solve(gramian, adjoint @ rhs)
        gramian = matrix @ adjoint + (l2_regularizer * np.eye(rows)).astype(dtype)
        return adjoint @ np.linalg.solve(gramian, rhs)

    return solve


@decomposition("Qr", failure="The QR decomposition failed.")
def _qr(node: KernelNode) -> Function:
    mode = "complete" if node.attr("full_matrices") else "reduced"

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        if mode == "complete" and matrix.ndim > 1:
            room((*matrix.shape[:-1], matrix.shape[-2]), matrix.dtype)
        return tuple(np.linalg.qr(matrix, mode))  # type: ignore[call-overload]

    return decompose


@decomposition("Svd", "BatchSvd", failure="The singular value decomposition did not converge.")
def _svd(node: KernelNode) -> Function:
    compute_uv, full = node.attr("compute_uv"), node.attr("full_matrices")

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not compute_uv:
            nothing = np.empty((0,), matrix.dtype)
            return np.linalg.svd(matrix, compute_uv=False).astype(matrix.dtype), nothing, nothing
        if full and matrix.ndim > 1:
            room((*matrix.shape[:-2], max(matrix.shape[-2:]), max(matrix.shape[-2:])), matrix.dtype)
        u, s, v_adjoint = np.linalg.svd(matrix, full)
        return s.astype(matrix.dtype), u, adjoint_of(v_adjoint)

    return decompose


_NO_EIGENVALUES = "The eigendecomposition was not successful. The input might not be valid."


@decomposition("SelfAdjointEig", "BatchSelfAdjointEig", failure=_NO_EIGENVALUES)
def _self_adjoint_eig_in_one(node: KernelNode) -> Function:
    def decompose(matrix: np.ndarray) -> np.ndarray:
        check_square(matrix)
        values, vectors = np.linalg.eigh(matrix)
        return np.concatenate([values[..., None, :].astype(matrix.dtype), vectors], -2)

    return decompose


@decomposition("SelfAdjointEigV2", "BatchSelfAdjointEigV2", failure=_NO_EIGENVALUES)
def _self_adjoint_eig(node: KernelNode) -> Function:
    compute_v = node.attr("compute_v")

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        check_square(matrix)
        if not compute_v:
            return np.linalg.eigvalsh(matrix).astype(matrix.dtype), np.empty((0,), matrix.dtype)
        values, vectors = np.linalg.eigh(matrix)
        return values.astype(matrix.dtype), vectors

    return decompose


def _shape_text(array: Array) -> str:
    return "[" + ",".join(str(size) for size in np.shape(array)) + "]"
