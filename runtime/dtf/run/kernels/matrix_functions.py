"""Kernels of functions of matrices, triangular factors and banded systems.

Owns LU and general eigenvalues, square root and logarithm, the gradient of Cholesky, banded and tridiagonal solvers.
Products and the other decompositions belong to `linalg`. The last two dimensions are the matrix, those before a batch.

Sources: N. Higham, "Functions of Matrices" (2008), chapters 6 and 11; I. Murray, "Differentiation of the Cholesky
decomposition" (2016).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype
from dtf.run.kernels.linalg import adjoint_of, check_square, decomposition

_STEPS_MAX = 100

# -- factors --


@decomposition("Lu", failure="Input is not invertible.")
def _lu(node: KernelNode) -> Function:
    index_dtype = node.attr("output_idx_type").as_numpy_dtype

    def factor(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if matrix.shape[-1] != matrix.shape[-2]:
            raise invalid("Input matrix must be square.")
        size = matrix.shape[-1]
        if not matrix.size:
            return matrix, np.zeros(matrix.shape[:-1], index_dtype)
        lu = matrix.reshape(-1, size, size).copy()
        rows = np.tile(np.arange(size), (len(lu), 1))
        each = np.arange(len(lu))
        for column in range(size):
            pivots = column + np.argmax(np.abs(lu[:, column:, column]), axis=1)
            for array in (lu, rows):
                array[each, pivots], array[:, column] = array[:, column].copy(), array[each, pivots]
            pivot = lu[:, column, column]
            if not np.all(pivot):
                raise invalid("Input is not invertible.")
            lu[:, column + 1 :, column] /= pivot[:, None]
            lu[:, column + 1 :, column + 1 :] -= lu[:, column + 1 :, column, None] * lu[:, None, column, column + 1 :]
        return lu.reshape(matrix.shape), rows.reshape(matrix.shape[:-1]).astype(index_dtype)

    return factor


@decomposition("Eig", failure="Eigendecomposition was not successful. The input might not be valid.")
def _eig(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "Tout")
    wanted = np.result_type(numpy_dtype(node), np.complex64)
    if wanted != dtype:
        raise invalid(f"Invalid output dtype {np.dtype(dtype)}: that of the eigenvalues is {wanted}")

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        check_square(matrix)
        if not node.attr("compute_v"):
            return np.linalg.eigvals(matrix).astype(dtype), np.empty((0,), dtype)
        values, vectors = np.linalg.eig(matrix)
        return values.astype(dtype), vectors.astype(dtype)

    return decompose


@decomposition("CholeskyGrad", "BatchCholeskyGrad", failure="The Cholesky factor is not invertible.")
def _cholesky_grad(node: KernelNode) -> Function:
    def gradient(factor: np.ndarray, grad: np.ndarray) -> np.ndarray:
        check_square(factor)
        middle = np.tril(adjoint_of(factor) @ grad)
        diagonal = np.arange(factor.shape[-1])
        middle[..., diagonal, diagonal] /= 2
        inverse = np.linalg.inv(factor)
        full = adjoint_of(inverse) @ middle @ inverse
        return ((full + adjoint_of(full)) / 2).astype(factor.dtype, copy=False)

    return gradient


# -- functions --


@decomposition("MatrixSquareRoot", failure="The matrix has no square root.")
def _matrix_square_root(node: KernelNode) -> Function:
    return _of_each_matrix(square_root)


@decomposition("MatrixLogarithm", failure="The matrix has no logarithm.")
def _matrix_logarithm(node: KernelNode) -> Function:
    return _of_each_matrix(logarithm)


def square_root(matrix: np.ndarray) -> np.ndarray:
    """The principal square root of one matrix [n, n], in its dtype; NaN for a real matrix whose root is complex."""
    wide = matrix.astype(np.complex128)
    root = _by_eigenvectors(wide, np.sqrt)
    if root is None:
        root = _square_root_by_iteration(wide)
    if matrix.dtype.kind == "c":
        return root.astype(matrix.dtype)
    is_real = np.abs(root.imag).max(initial=0) <= 1e-6 * np.abs(root).max(initial=0)
    return (root.real if is_real else np.full_like(root.real, np.nan)).astype(matrix.dtype)


def logarithm(matrix: np.ndarray) -> np.ndarray:
    """The principal logarithm of one complex matrix [n, n]: of a root close to 1, by Gauss-Legendre quadrature."""
    wide = matrix.astype(np.complex128)
    result = _by_eigenvectors(wide, np.log)
    if result is not None:
        return result.astype(matrix.dtype)
    identity = np.eye(len(wide))
    roots = 0
    while np.linalg.norm(wide - identity) > 0.25 and roots < _STEPS_MAX:
        wide = _square_root_by_iteration(wide)
        roots += 1
    nodes, weights = np.polynomial.legendre.leggauss(10)
    rest = wide - identity
    total = sum(
        weight / 2 * np.linalg.solve(identity + (node + 1) / 2 * rest, rest)
        for node, weight in zip(nodes, weights, strict=True)
    )
    return (2.0**roots * np.asarray(total)).astype(matrix.dtype)


def _of_each_matrix(function: Callable[[np.ndarray], np.ndarray]) -> Function:
    def run(matrix: np.ndarray) -> np.ndarray:
        check_square(matrix)
        size = matrix.shape[-1]
        if not matrix.size:
            return matrix
        results = [function(each) for each in matrix.reshape(-1, size, size)]
        return np.array(results, matrix.dtype).reshape(matrix.shape)

    return run


def _by_eigenvectors(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
    """`function` of the eigenvalues put between the eigenvectors; None where those are too close to dependent."""
    values, vectors = np.linalg.eig(matrix)
    if not len(values) or np.linalg.cond(vectors) > 1e4:
        return None
    return (vectors * function(values)) @ np.linalg.inv(vectors)


def _square_root_by_iteration(matrix: np.ndarray) -> np.ndarray:
    """The Denman-Beavers iteration in its product form (Higham, section 6.3)."""
    root, product = matrix, matrix
    identity = np.eye(len(matrix))
    for _ in range(_STEPS_MAX):
        inverse = np.linalg.inv(product)
        root = root @ (identity + inverse) / 2
        product = (identity + (product + inverse) / 2) / 2
        if np.linalg.norm(product - identity) < 1e-14 * len(matrix):
            break
    return root


# -- banded systems --


@decomposition("BandedTriangularSolve", failure="Input matrix is not invertible.")
def _banded_triangular_solve(node: KernelNode) -> Function:
    lower, is_adjoint = node.attr("lower"), node.attr("adjoint")

    def solve(bands: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        count, size = bands.shape[-2:]
        if not 1 <= count <= size:
            raise invalid(f"The number of bands must be in [1, {size}], got {count}")
        if not bands.size:
            raise invalid(f"The bands must not be an empty tensor, got shape {list(bands.shape)}")
        if rhs.shape[-2] != size:
            raise invalid(f"Input matrix and rhs are incompatible: {size} columns and {rhs.shape[-2]} rows.")
        matrix = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
        for offset in range(count):
            rows = np.arange(offset, size) if lower else np.arange(size - offset)
            columns = rows - offset if lower else rows + offset
            matrix[..., rows, columns] = bands[..., offset if lower else count - 1 - offset, rows]
        if not np.all(np.diagonal(matrix, axis1=-2, axis2=-1)):
            raise invalid("Input matrix is not invertible.")
        return np.linalg.solve(adjoint_of(matrix) if is_adjoint else matrix, rhs)

    return solve


@kernel("TridiagonalMatMul")
def _tridiagonal_matmul(node: KernelNode) -> Function:
    def multiply(above: np.ndarray, main: np.ndarray, below: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        if len({each.ndim for each in (above, main, below, rhs)}) > 1:
            raise invalid("All input tensors must have the same rank.")
        upper, middle, lower = (np.moveaxis(each, -2, -1) for each in (above, main, below))
        result = middle * rhs
        result[..., :-1, :] += upper[..., :-1, :] * rhs[..., 1:, :]
        result[..., 1:, :] += lower[..., 1:, :] * rhs[..., :-1, :]
        return result

    return multiply


@kernel("TridiagonalSolve")
def _tridiagonal_solve(node: KernelNode) -> Function:
    partial_pivoting, perturb = node.attr("partial_pivoting"), node.attr("perturb_singular")
    if perturb:
        raise invalid("perturb_singular is not supported on CPUs.")

    def solve(diagonals: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        if diagonals.ndim < 2 or diagonals.shape[-2] != 3:
            raise invalid("Expected diagonals with 3 rows: superdiagonal, main diagonal, subdiagonal.")
        size = diagonals.shape[-1]
        if rhs.shape[-2] != size:
            raise invalid(f"Expected the length of left-hand side and right-hand side to be equal, got {size} and "
                          f"{rhs.shape[-2]}.")  # fmt: skip
        above, main, below = np.moveaxis(diagonals, -2, 0)
        return _eliminate(above, main, below, rhs, partial_pivoting)

    return solve


def _eliminate(
    above: np.ndarray, main: np.ndarray, below: np.ndarray, rhs: np.ndarray, partial_pivoting: bool
) -> np.ndarray:
    """Gaussian elimination, batches at once. A row keeps its pivot and the two elements right of it."""
    size = main.shape[-1]
    first, second, third = main.copy(), above.copy(), np.zeros_like(main)
    second[..., -1:] = 0
    x = rhs.copy()
    for row in range(size - 1):
        following = [below[..., row + 1], first[..., row + 1], second[..., row + 1]]
        current = [first[..., row], second[..., row], third[..., row]]
        swap = np.abs(following[0]) > np.abs(current[0]) if partial_pivoting else np.zeros(main.shape[:-1], bool)
        kept = [np.where(swap, new, old) for new, old in zip(following, current, strict=True)]
        other = [np.where(swap, old, new) for new, old in zip(following, current, strict=True)]
        kept_x = np.where(swap[..., None], x[..., row + 1, :], x[..., row, :])
        other_x = np.where(swap[..., None], x[..., row, :], x[..., row + 1, :])
        factor = other[0] / kept[0]
        first[..., row], second[..., row], third[..., row] = kept
        first[..., row + 1] = other[1] - factor * kept[1]
        second[..., row + 1] = other[2] - factor * kept[2]
        x[..., row, :], x[..., row + 1, :] = kept_x, other_x - factor[..., None] * kept_x
    for row in reversed(range(size)):
        if row + 1 < size:
            x[..., row, :] -= second[..., row, None] * x[..., row + 1, :]
        if row + 2 < size:
            x[..., row, :] -= third[..., row, None] * x[..., row + 2, :]
        x[..., row, :] /= first[..., row, None]
    if not np.isfinite(x).all():  # a pivot of zero: TensorFlow answers such a system with NaN throughout
        bad = ~np.isfinite(x).all(axis=(-1, -2))
        x[bad] = np.nan
    return x
