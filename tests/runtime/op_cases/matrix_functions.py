"""Cases of functions of matrices, their factors, and banded systems."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.linalg import adjoint, check_gradient, positive_definite, rhs, run, square
from tests.runtime.op_cases.math import numbers

bands = numbers(2, 3, 4, low=1.0, high=2.0)
system = np.moveaxis(numbers(3, 2, 5, low=0.5, high=1.0), 0, 1) + np.array([[0.0], [4.0], [0.0]])
system_rhs = numbers(2, 5, 2)
# Differences move elements that are not read, too; their gradient is zero.
jordan = np.array([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]])


def factors(matrix):
    order, matrix = np.arange(len(matrix)), matrix.copy()
    for k in range(len(matrix)):
        pivot = k + np.argmax(np.abs(matrix[k:, k]))
        matrix[[k, pivot]], order[[k, pivot]] = matrix[[pivot, k]], order[[pivot, k]]
        matrix[k + 1 :, k] /= matrix[k, k]
        matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
    return matrix, order.astype(np.int32)


def dense_bands(bands, lower):
    out = np.zeros((*bands.shape[:-2], bands.shape[-1], bands.shape[-1]))
    for batch in np.ndindex(bands.shape[:-2]):
        for k in range(bands.shape[-2]):
            for i in range(k, bands.shape[-1]):
                if lower:
                    out[(*batch, i, i - k)] = bands[(*batch, k, i)]
                else:
                    out[(*batch, i - k, i)] = bands[(*batch, bands.shape[-2] - 1 - k, i - k)]
    return out


def dense_system(diagonals):
    out = np.zeros((*diagonals.shape[:-2], diagonals.shape[-1], diagonals.shape[-1]))
    for batch in np.ndindex(diagonals.shape[:-2]):
        above, main, below = diagonals[batch]
        out[batch] = np.diag(main) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)
    return out


def lu_parts_solve_and_rebuild():
    def rebuilt(matrix):
        lower_upper, order = tf.linalg.lu(matrix)
        return tf.linalg.lu_reconstruct(lower_upper, order)

    with tf.Graph().as_default():
        lower_upper, order = tf.linalg.lu(tf.constant(square))
        values = run(
            rebuilt(tf.constant(square)), tf.linalg.lu_solve(lower_upper, order, rhs),
            tf.linalg.lu_matrix_inverse(lower_upper, order),
        )  # fmt: skip
    np.testing.assert_allclose(values[0], square, atol=1e-12)
    np.testing.assert_allclose(values[1], np.linalg.solve(square, rhs), atol=1e-12)
    np.testing.assert_allclose(values[2], np.linalg.inv(square), atol=1e-12)
    check_gradient(lambda matrix: tf.reduce_sum(tf.linalg.lu(matrix).lu * np.arange(9.0).reshape(3, 3)), square)


def a_singular_matrix_has_no_factors():
    with tf.Graph().as_default():
        parts = tf.linalg.lu(np.zeros((2, 2)))
        try:
            run(parts.lu)
        except errors.InvalidArgumentError as error:
            assert "Input is not invertible." in error.message
        else:
            raise AssertionError("a singular matrix was factored")


def eigenvectors_diagonalise_and_have_a_gradient():
    weights = numbers(3, seed=5)
    with tf.Graph().as_default():
        e, v = run(*tf.linalg.eig(tf.constant(square)))
        values = run(tf.linalg.eigvals(tf.constant(square)))[0]
    np.testing.assert_allclose(square @ v, v * e[..., None, :], atol=1e-10)
    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(e))
    real = 0.2 * square[:1] + np.diag([0.0, 2.0, 4.0])  # eigenvalues real, well apart
    check_gradient(lambda m: tf.reduce_sum(tf.real(tf.linalg.eigvals(m)) ** 2 * weights), real)

    def by_vectors(matrix):
        values, vectors = tf.linalg.eig(matrix)
        return tf.reduce_sum(tf.abs(vectors) ** 2 * weights[:, None]) + tf.reduce_sum(tf.abs(values))

    check_gradient(by_vectors, real)


def a_matrix_exponential_is_the_sum_of_its_series():
    matrix = np.stack([0.1 * square[0], 6 * square[1]])
    term, series = np.stack([np.eye(3)] * 2), np.stack([np.eye(3)] * 2)
    for k in range(1, 200):
        term = term @ matrix / k
        series = series + term
    with tf.Graph().as_default():
        found = run(tf.linalg.expm(tf.constant(matrix)))[0]
    np.testing.assert_allclose(found, series, rtol=1e-9)
    check_gradient(lambda m: tf.reduce_sum(tf.linalg.expm(m) * np.arange(9.0).reshape(3, 3)), square)


def pseudo_inverses_and_ranks_are_numpys():
    deficient = numbers(4, 2) @ numbers(2, 3, seed=1)
    with tf.Graph().as_default():
        inverse, rank = run(tf.linalg.pinv(tf.constant(deficient)), tf.linalg.matrix_rank(tf.constant(deficient)))
    np.testing.assert_allclose(inverse, np.linalg.pinv(deficient), atol=1e-10)
    assert rank == 2


def tridiagonal_functions_take_all_formats():
    dense, vector = dense_system(system), system_rhs[..., 0]
    with tf.Graph().as_default():
        sequence = [tf.constant(system[:, number]) for number in range(3)]
        found = run(
            tf.linalg.tridiagonal_solve(tf.constant(system), vector),
            tf.linalg.tridiagonal_solve(tf.constant(dense), system_rhs, "matrix"),
            tf.linalg.tridiagonal_matmul(sequence, system_rhs, "sequence"),
        )
    np.testing.assert_allclose(found[0], np.linalg.solve(dense, system_rhs)[..., 0], atol=1e-12)
    np.testing.assert_allclose(found[1], np.linalg.solve(dense, system_rhs), atol=1e-12)
    np.testing.assert_allclose(found[2], dense @ system_rhs, atol=1e-12)


def half_of_the_lower_triangle(factor, grad):
    middle = np.tril(adjoint(factor) @ grad)
    middle[..., range(3), range(3)] /= 2
    full = adjoint(np.linalg.inv(factor)) @ middle @ np.linalg.inv(factor)
    return (full + adjoint(full)) / 2


CASES = [
    Case("Lu", [square[0]], expect=lambda m: list(factors(m))),
    Case("Lu", run=lu_parts_solve_and_rebuild, name="public"),
    Case("Lu", run=a_singular_matrix_has_no_factors, name="singular"),
    Case("Eig", run=eigenvectors_diagonalise_and_have_a_gradient),
    Case("MatrixSquareRoot", [positive_definite @ positive_definite], expect=positive_definite, grad=True),
    Case("MatrixSquareRoot", [jordan @ jordan], expect=jordan, name="without_eigenvectors"),
    Case("MatrixSquareRoot", run=a_matrix_exponential_is_the_sum_of_its_series, name="exponential"),
    Case("MatrixSquareRoot", run=pseudo_inverses_and_ranks_are_numpys, name="pseudo_inverse"),
    Case("MatrixLogarithm", [positive_definite.astype(complex)],
         expect=lambda m: np.stack([(v * np.log(e)) @ v.T for e, v in zip(*np.linalg.eigh(m.real), strict=True)])),
    Case("MatrixLogarithm", [jordan.astype(complex)], name="without_eigenvectors", expect=np.array(
        [[np.log(2), 0.5, -0.125], [0, np.log(2), 0.5], [0, 0, np.log(2)]])),
    Case("CholeskyGrad", [np.linalg.cholesky(positive_definite), numbers(2, 3, 3, seed=3)],
         expect=half_of_the_lower_triangle),
    Case("BandedTriangularSolve", [bands, numbers(2, 4, 2)], grad=True,
         expect=lambda m, r: np.linalg.solve(dense_bands(m, True), r)),
    Case("BandedTriangularSolve", [bands, numbers(2, 4, 2)], {"lower": False, "adjoint": True}, grad=True,
         expect=lambda m, r: np.linalg.solve(adjoint(dense_bands(m, False)), r), name="upper_adjoint"),
    Case("TridiagonalMatMul", [system[:, :1], system[:, 1:2], system[:, 2:], system_rhs], grad=True,
         expect=lambda above, main, below, r: dense_system(np.concatenate([above, main, below], 1)) @ r),
    Case("TridiagonalSolve", [system, system_rhs], grad=True,
         expect=lambda d, r: np.linalg.solve(dense_system(d), r)),
    Case("TridiagonalSolve", [system[:, ::1] * [[3.0], [0.1], [3.0]], system_rhs], name="that_needs_pivots",
         expect=lambda d, r: np.linalg.solve(dense_system(d), r)),
    Case("TridiagonalSolve", run=tridiagonal_functions_take_all_formats, name="public"),
]  # fmt: skip
