"""Operators must agree with the dense matrices that they stand for, with static shapes and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtf as tf

linalg = tf.linalg
RANDOM = np.random.RandomState(7)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.5, 1.5, shape) * RANDOM.choice([-1.0, 1.0], shape)


def _matrices(n: int = 3) -> np.ndarray:
    return numbers(2, n, n) + 3 * np.eye(n)


def _circulant(kernel: np.ndarray) -> np.ndarray:
    """The matrix of a cyclic convolution over all dimensions of a kernel."""
    shape = kernel.shape
    size = kernel.size
    columns = []
    for index in np.ndindex(shape):
        columns.append(np.roll(kernel, index, range(kernel.ndim)).reshape(size))
    return np.stack(columns, 1)


def _cases() -> dict[str, tuple[list[np.ndarray], Callable[..., Any], np.ndarray]]:
    """name -> (arrays to feed, how tensors become an operator, the dense matrices)."""
    a, b, diagonal, low = _matrices(3), _matrices(2), numbers(2, 3), np.tril(_matrices(3))
    u, v = numbers(2, 3, 2) * 0.3, numbers(2, 3, 2) * 0.3
    axis = numbers(2, 3)
    unit = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    kernel, kernel2 = numbers(5), numbers(2, 3)
    spectrum, spectrum2 = np.fft.fft(kernel), np.fft.fft2(kernel2)
    col, row = numbers(2, 3) + 3, numbers(2, 3)
    row[:, 0] = col[:, 0]
    toeplitz = np.stack([
        [[col[k, i - j] if i >= j else row[k, j - i] for j in range(3)] for i in range(3)] for k in range(2)
    ])
    bands = numbers(2, 3, 3)
    bands[:, 1] += 3
    tridiagonal = np.stack([
        np.diag(bands[k, 1]) + np.diag(bands[k, 0, :-1], 1) + np.diag(bands[k, 2, 1:], -1) for k in range(2)
    ])
    perm = np.array([[2, 0, 1], [1, 0, 2]])
    zero = np.zeros((2, 3, 2))
    scale = np.array([2.0, -3.0])
    full = linalg.LinearOperatorFullMatrix
    update = np.array([[1.0, 2.0], [0.5, 1.5]])
    return {
        "full": ([a], full, a),
        "triangular": ([low], linalg.LinearOperatorLowerTriangular, low),
        "diagonal": ([diagonal], linalg.LinearOperatorDiag, np.stack([np.diag(each) for each in diagonal])),
        "identity": ([], lambda: linalg.LinearOperatorIdentity(3, [2], tf.float64), np.stack([np.eye(3)] * 2)),
        "scaled": ([scale], lambda s: linalg.LinearOperatorScaledIdentity(3, s), scale[:, None, None] * np.eye(3)),
        "composition": ([a, diagonal],
                        lambda x, d: linalg.LinearOperatorComposition([full(x), linalg.LinearOperatorDiag(d)]),
                        a * diagonal[:, None, :]),
        "adjoint": ([a], lambda x: linalg.LinearOperatorAdjoint(full(x)), a.transpose(0, 2, 1)),
        "inversion": ([a], lambda x: linalg.LinearOperatorInversion(full(x)), np.linalg.inv(a)),
        "kronecker": ([a, b], lambda x, y: linalg.LinearOperatorKronecker([full(x), full(y)]),
                      np.stack([np.kron(one, other) for one, other in zip(a, b, strict=True)])),
        "blocks": ([a, b], lambda x, y: linalg.LinearOperatorBlockDiag([full(x), full(y)]),
                   np.block([[a, zero], [zero.transpose(0, 2, 1), b]])),
        "lower blocks": ([a, b, v.transpose(0, 2, 1)],
                         lambda x, y, z: linalg.LinearOperatorBlockLowerTriangular([[full(x)], [full(z), full(y)]]),
                         np.block([[a, zero], [v.transpose(0, 2, 1), b]])),
        "householder": ([axis], linalg.LinearOperatorHouseholder, np.eye(3) - 2 * unit[:, :, None] * unit[:, None]),
        "permutation": ([perm], lambda p: linalg.LinearOperatorPermutation(p, tf.float64), np.eye(3)[perm]),
        "toeplitz": ([col, row], linalg.LinearOperatorToeplitz, toeplitz),
        "tridiagonal": ([bands], linalg.LinearOperatorTridiag, tridiagonal),
        "low rank": ([a, u, update, v],
                     lambda x, one, d, two: linalg.LinearOperatorLowRankUpdate(full(x), one, d, two),
                     a + u @ (update[:, :, None] * v.transpose(0, 2, 1))),
        "circulant": ([spectrum], lambda s: linalg.LinearOperatorCirculant(s, tf.complex128), _circulant(kernel)),
        "circulant of two dimensions": ([spectrum2], lambda s: linalg.LinearOperatorCirculant2D(s, tf.complex128),
                                        _circulant(kernel2)),
    }  # fmt: skip


CASES = _cases()


@pytest.mark.parametrize("static", [True, False], ids=["static", "unknown"])
@pytest.mark.parametrize("name", CASES)
def test_an_operator_does_what_its_dense_matrix_does(name: str, static: bool) -> None:
    arrays, make, dense = CASES[name]
    with tf.Graph().as_default():
        inputs = [tf.constant(each) if static else tf.placeholder(each.dtype, [None] * each.ndim) for each in arrays]
        operator = make(*inputs)
        size = dense.shape[-1]
        x = np.asarray(numbers(*dense.shape[:-2], size, 2), operator.dtype.as_numpy_dtype)
        wide = np.asarray(numbers(2, *dense.shape[:-2], size, 2), operator.dtype.as_numpy_dtype)
        plus = np.zeros(dense.shape, operator.dtype.as_numpy_dtype) + 1
        swapped = np.swapaxes(dense, -1, -2)
        columns = np.swapaxes(x, -1, -2)
        wanted: list[tuple[Any, Any]] = [
            (operator.to_dense(), dense),
            (operator.shape_tensor(), dense.shape),
            (operator.matmul(x), dense @ x),
            (operator.matmul(x, adjoint=True), swapped @ x),
            (operator.matmul(columns, adjoint_arg=True), dense @ x),
            (operator.matmul(wide), dense @ wide),
            (operator.matvec(x[..., 0]), (dense @ x)[..., 0]),
            (operator.solve(x), np.linalg.solve(dense, x)),
            (operator.solve(x, adjoint=True), np.linalg.solve(swapped, x)),
            (operator.solve(columns, adjoint_arg=True), np.linalg.solve(dense, x)),
            (operator.solve(wide), np.linalg.solve(np.broadcast_to(dense, wide.shape[:-2] + dense.shape[-2:]), wide)),
            (operator.determinant(), np.linalg.det(dense)),
            (operator.log_abs_determinant(), np.log(np.abs(np.linalg.det(dense)))),
            (operator.trace(), np.trace(dense, axis1=-2, axis2=-1)),
            (operator.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1)),
            (operator.add_to_tensor(plus), dense + plus),
            (operator.adjoint().to_dense(), swapped),
            (operator.inverse().to_dense(), np.linalg.inv(dense)),
            (operator.matmul(operator).to_dense(), dense @ dense),
            (operator.solve(operator).to_dense(), np.linalg.inv(dense) @ dense),
            (operator.cond(), np.linalg.cond(dense)),
        ]
        checks = [operator.assert_non_singular()] if static else []
        feeds = {} if static else dict(zip(inputs, arrays, strict=True))
        with tf.Session() as session:
            values = session.run([tensor for tensor, _ in wanted], feeds)
            session.run([each for each in checks if each is not None], feeds)
        for number, (value, (tensor, expected)) in enumerate(zip(values, wanted, strict=True)):
            np.testing.assert_allclose(value, expected, atol=1e-6, rtol=1e-5, err_msg=f"{number}: {tensor}")
            assert tensor.shape.is_compatible_with(np.shape(value))
        if static:
            assert operator.shape.as_list() == list(dense.shape)
            assert operator.is_square


def test_a_positive_definite_operator_has_a_factor() -> None:
    a = _matrices(3)
    positive = a @ a.transpose(0, 2, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        operator = linalg.LinearOperatorFullMatrix(
            positive, is_self_adjoint=True, is_positive_definite=True
        )
        x = numbers(2, 3, 1)
        made = operator.cholesky().to_dense(), operator.solve(x), operator.log_abs_determinant(), operator.eigvals()
        factor, solution, logarithm, values = session.run(made)
        session.run([operator.assert_positive_definite(), operator.assert_self_adjoint()])
    np.testing.assert_allclose(factor, np.linalg.cholesky(positive))
    np.testing.assert_allclose(solution, np.linalg.solve(positive, x))
    np.testing.assert_allclose(logarithm, np.log(np.linalg.det(positive)))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(positive))


def test_zeros_are_an_operator_without_an_inverse() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        operator = linalg.LinearOperatorZeros(2, 3, [4], is_square=False, is_self_adjoint=False)
        dense, product = session.run([operator.to_dense(), operator.matmul(tf.ones([3, 5]))])
        assert dense.shape == (4, 2, 3)
        assert product.shape == (4, 2, 5)
        with pytest.raises(NotImplementedError, match="singular"):
            operator.solve(tf.ones([2, 1]))


def test_promises_that_contradict_each_other_are_refused() -> None:
    with tf.Graph().as_default():
        full = linalg.LinearOperatorFullMatrix
        with pytest.raises(ValueError, match="always square"):
            full(np.eye(2), is_self_adjoint=True, is_square=False)
        with pytest.raises(ValueError, match="always non-singular"):
            full(np.eye(2), is_positive_definite=True, is_non_singular=False)
        with pytest.raises(ValueError, match="was not square"):
            _ = full(np.ones([2, 3]), is_square=True).is_square
        with pytest.raises(TypeError, match="dtype"):
            full(np.eye(2)).matmul(np.ones([2, 1], np.float32))
        with pytest.raises(ValueError, match="incompatible"):
            full(np.ones([2, 3])).matmul(full(np.ones([2, 3])))
