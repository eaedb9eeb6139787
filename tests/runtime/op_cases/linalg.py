"""Cases of matrix products, contractions, decompositions and solvers."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import dtf as tf
from dtf.run.executor import executor
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.math import numbers

a = numbers(3, 4)
b = numbers(4, 2, seed=1)
x = numbers(2, 3, 4)
y = numbers(2, 4, 5, seed=1)
square = numbers(2, 3, 3) + 3 * np.eye(3)
rhs = numbers(2, 3, 2, seed=1)
tall, wide = numbers(4, 3), numbers(3, 4)
tall_rhs = numbers(4, 2, seed=1)
positive_definite = np.matmul(square, np.swapaxes(square, 1, 2)) + np.eye(3)
singular = np.zeros((2, 2), np.float32)


def adjoint(matrix):
    return np.conj(np.swapaxes(matrix, -1, -2))


def regularized(matrix, right, weight):
    gramian = adjoint(matrix) @ matrix + weight * np.eye(matrix.shape[-1])
    return np.linalg.solve(gramian, adjoint(matrix) @ right)


def run(*tensors):
    """The values of tensors of the default graph, and of the session that runs them nothing else."""
    return executor.run_graph_def(tensors[0].graph.as_graph_def(), [tensor.name for tensor in tensors])


def numeric_gradient(function, value, step=1e-6):
    gradient = np.zeros(value.shape)
    for index in np.ndindex(value.shape):
        up, down = value.copy(), value.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def check_symmetric_gradient(build):
    """Compares tf.gradients of build(w + w^T) with differences: these ops read one triangle of a symmetric matrix."""
    half = positive_definite[0] / 2
    weights = np.random.RandomState(3).uniform(0.5, 1.5, (3, 3))

    def loss(value):
        tensor = tf.constant(value)
        result = build(tensor + tf.transpose(tensor))
        return tensor, tf.reduce_sum(result * tf.constant(weights[: result.shape[0]]))

    def evaluate(value):
        with tf.Graph().as_default():
            return run(loss(value)[1])[0]

    with tf.Graph().as_default():
        tensor, total = loss(half)
        (computed,) = run(tf.gradients(total, tensor)[0])
    np.testing.assert_allclose(computed, numeric_gradient(evaluate, half), rtol=1e-4, atol=1e-4)


def cholesky_gradient():
    check_symmetric_gradient(tf.cholesky)


def eigenvectors_rebuild_the_matrix_and_have_a_gradient():
    with tf.Graph().as_default():
        e, v = tf.self_adjoint_eig(positive_definite)
        values, vectors = run(e, v)
    np.testing.assert_allclose(vectors @ (values[..., None] * adjoint(vectors)), positive_definite, atol=1e-10)

    def both(matrix):
        e, v = tf.self_adjoint_eig(matrix)
        return e[:, None] * v**2

    check_symmetric_gradient(both)
    check_symmetric_gradient(lambda matrix: tf.self_adjoint_eigvals(matrix)[:, None])


def qr_rebuilds_the_matrix_and_has_a_gradient():
    with tf.Graph().as_default():
        q, r = tf.qr(tall)
        q_full, r_full = tf.qr(tall, full_matrices=True)
        values = run(q, r, q_full, r_full)
    np.testing.assert_allclose(values[0] @ values[1], tall, atol=1e-12)
    np.testing.assert_allclose(values[2] @ values[3], tall, atol=1e-12)
    assert values[2].shape == (4, 4)
    weights = numbers(4, 3, seed=5)

    def loss(tensor):
        q, r = tf.qr(tensor)
        return tf.reduce_sum(q * weights) + tf.reduce_sum(r * weights[:3])

    check_gradient(loss, tall)


def svd_rebuilds_the_matrix_and_has_a_gradient():
    for matrix in (tall, wide):
        with tf.Graph().as_default():
            s, u, v = run(*tf.svd(matrix))
            (alone,) = run(tf.svd(matrix, compute_uv=False))
        np.testing.assert_allclose(u @ np.diag(s) @ adjoint(v), matrix, atol=1e-12)
        np.testing.assert_allclose(s, alone, atol=1e-12)
        check_gradient(lambda tensor: tf.reduce_sum(tf.svd(tensor, compute_uv=False) ** 3), matrix)
        weights_u, weights_v = numbers(*u.shape, seed=6), numbers(*v.shape, seed=7)

        def loss(tensor, weights_u=weights_u, weights_v=weights_v):
            s, u, v = tf.svd(tensor)
            return tf.reduce_sum(weights_u * u**2) + tf.reduce_sum(weights_v * v**2) + tf.reduce_sum(s)

        check_gradient(loss, matrix)


def check_gradient(loss, value):
    def evaluate(moved):
        with tf.Graph().as_default():
            return run(loss(tf.constant(moved)))[0]

    with tf.Graph().as_default():
        tensor = tf.constant(value)
        (computed,) = run(tf.gradients(loss(tensor), tensor)[0])
    np.testing.assert_allclose(computed, numeric_gradient(evaluate, value), rtol=1e-4, atol=1e-4)


def sparse_products_have_the_gradient_of_dense_ones():
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            with tf.Graph().as_default():
                left = tf.constant((a.T if transpose_a else a).astype(np.float32))
                right = tf.constant((b.T if transpose_b else b).astype(np.float32))
                dense = tf.matmul(left, right, transpose_a, transpose_b)
                sparse = tf.matmul(left, right, transpose_a, transpose_b, a_is_sparse=True)
                assert sparse.op.type == "SparseMatMul"
                grads = [tf.gradients(each * each, [left, right]) for each in (dense, sparse)]
                values = run(*grads[0], *grads[1])
            np.testing.assert_allclose(values[0], values[2], rtol=1e-5)
            np.testing.assert_allclose(values[1], values[3], rtol=1e-5)


def singular_matrices_are_refused():
    for build in (tf.matrix_inverse, lambda m: tf.matrix_solve(m, m), lambda m: tf.cholesky(m - 1)):
        with tf.Graph().as_default():
            result = build(tf.constant(singular))
            try:
                run(result)
            except errors.InvalidArgumentError:
                continue
        raise AssertionError("a singular matrix went through")


CASES = [
    Case("MatMul", [a, b], expect=np.matmul, grad=True),
    Case("MatMul", [a.T, b], {"transpose_a": True}, expect=lambda m, n: m.T @ n, grad=True, name="transpose_a"),
    Case("MatMul", [a, b.T], {"transpose_b": True}, expect=lambda m, n: m @ n.T, grad=True, name="transpose_b"),
    Case("MatMul", [a.T, b.T], {"transpose_a": True, "transpose_b": True}, expect=lambda m, n: m.T @ n.T, grad=True,
         name="both"),
    Case("MatMul", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)], expect=np.zeros((2, 3)), name="empty"),
    Case("MatMul", [a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)],
         expect=lambda m, n: m.astype(float) @ n.astype(float), rtol=2e-2, atol=2e-2, name="bfloat16"),
    Case("BatchMatMul", [x, y], expect=np.matmul, grad=True),
    Case("BatchMatMul", [adjoint(x), adjoint(y)], {"adj_x": True, "adj_y": True},
         expect=lambda m, n: adjoint(m) @ adjoint(n), grad=True, name="adjoint"),
    Case("BatchMatMulV2", [x, y[:1]], expect=np.matmul, grad=True),
    Case("BatchMatMulV2", [numbers(2, 1, 3, 4), numbers(3, 5, 4)], {"adj_y": True},
         expect=lambda m, n: m @ adjoint(n), grad=True, name="adjoint_and_repeated"),
    Case("BatchMatMulV3", [np.full((1, 2, 2), 100, np.int8), np.full((1, 2, 2), 100, np.uint8)], {"Tout": np.int32},
         expect=np.full((1, 2, 2), 20000, np.int32)),
    Case("SparseMatMul", [a.astype(np.float32), b.astype(np.float32)], expect=np.matmul),
    Case("SparseMatMul", run=sparse_products_have_the_gradient_of_dense_ones, name="gradient"),
    Case("Cross", [numbers(2, 3), numbers(2, 3, seed=1)], expect=np.cross, grad=True),
    Case("Einsum", [[x, b]], {"equation": "abc,cd->adb"}, expect=lambda m, n: np.einsum("abc,cd->adb", m, n),
         grad=True),
    Case("Einsum", [[x, y]], {"equation": "...ij,...jk->...ik"}, expect=np.matmul, grad=True, name="ellipsis"),
    Case("Einsum", [[x]], {"equation": "abc->ca"}, expect=lambda m: m.sum(1).T, grad=True, name="of_one"),
    Case("MatrixInverse", [square], expect=np.linalg.inv, grad=True),
    Case("MatrixInverse", [square], {"adjoint": True}, expect=lambda m: np.linalg.inv(adjoint(m)), grad=True,
         name="adjoint"),
    Case("MatrixInverse", run=singular_matrices_are_refused, name="singular"),
    Case("MatrixDeterminant", [square], expect=np.linalg.det, grad=True),
    Case("LogMatrixDeterminant", [square], expect=lambda m: list(np.linalg.slogdet(m)), grad=True),
    Case("Cholesky", [positive_definite], expect=np.linalg.cholesky),
    Case("Cholesky", run=cholesky_gradient, name="gradient"),
    Case("MatrixSolve", [square, rhs], expect=np.linalg.solve, grad=True),
    Case("MatrixSolve", [square, rhs], {"adjoint": True}, expect=lambda m, r: np.linalg.solve(adjoint(m), r), grad=True,
         name="adjoint"),
    Case("MatrixTriangularSolve", [square, rhs], expect=lambda m, r: np.linalg.solve(np.tril(m), r), grad=True),
    Case("MatrixTriangularSolve", [square, rhs], {"lower": False, "adjoint": True},
         expect=lambda m, r: np.linalg.solve(adjoint(np.triu(m)), r), grad=True, name="upper_adjoint"),
    Case("MatrixSolveLs", [tall, tall_rhs, np.float64(0.1)], expect=regularized, grad=[0, 1]),
    Case("MatrixSolveLs", [wide, rhs[0], np.float64(0.1)], expect=regularized, grad=[0, 1], name="underdetermined"),
    Case("MatrixSolveLs", [tall, tall_rhs, np.float64(0)], {"fast": False},
         expect=lambda m, r, weight: np.linalg.lstsq(m, r, rcond=None)[0], name="slow"),
    Case("Qr", run=qr_rebuilds_the_matrix_and_has_a_gradient),
    Case("Svd", run=svd_rebuilds_the_matrix_and_has_a_gradient),
    Case("SelfAdjointEigV2", run=eigenvectors_rebuild_the_matrix_and_have_a_gradient),
]  # fmt: skip
