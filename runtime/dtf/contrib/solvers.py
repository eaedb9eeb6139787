"""tf.contrib.solvers: linear systems given by operators, solved by conjugate gradients.

    linear_equations .. conjugate_gradient
    least_squares ..... cgls
    util .............. create_operator, identity_operator, l2norm, dot

An operator has `shape`, `apply(x)` and `apply_adjoint(x)`; x is [n, 1].

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/solvers
"""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import dtf as tf

__all__ = ["least_squares", "linear_equations", "util"]

_Operator = namedtuple("_Operator", "shape dtype apply apply_adjoint")
_GradientState = namedtuple("_GradientState", "i x r p gamma")


def _create_operator(matrix: Any) -> Any:
    matrix = tf.convert_to_tensor(matrix)
    return _Operator(
        matrix.shape, matrix.dtype, lambda x: tf.matmul(matrix, x), lambda x: tf.matmul(matrix, x, adjoint_a=True)
    )


def _identity_operator(matrix: Any) -> Any:
    return _Operator(tf.shape(matrix), matrix.dtype, lambda x: x, lambda x: x)


def _dot(x: Any, y: Any) -> Any:
    return tf.reduce_sum(tf.conj(x) * y)


def _l2norm_squared(v: Any) -> Any:
    return tf.constant(2, dtype=v.dtype.base_dtype) * tf.nn.l2_loss(v)


def _l2norm(v: Any) -> Any:
    return tf.sqrt(_l2norm_squared(v))


def _conjugate_gradient(
    operator: Any, rhs: Any, preconditioner: Any = None, x: Any = None, tol: float = 1e-4, max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> Any:  # fmt: skip
    """The state (i, x, r, p, gamma) once the residual r is below tol * |rhs|, or after `max_iter` rounds.

    Args:
      operator: symmetric and positive definite.
      rhs: the right side, a vector.
      preconditioner: an operator near the inverse.
      x: a first guess; zeros by default.
    """
    with tf.name_scope(name):
        rhs = tf.convert_to_tensor(rhs)
        column = rhs[:, None]
        bound = tol * tf.norm(column)

        def improved(r: Any) -> Any:
            return r if preconditioner is None else preconditioner.apply(r)

        guess = tf.zeros_like(column) if x is None else tf.convert_to_tensor(x)[:, None]
        residual = column if x is None else column - operator.apply(guess)
        direction = improved(residual)

        def body(i: Any, x: Any, r: Any, p: Any, gamma: Any) -> Any:
            z = operator.apply(p)
            alpha = gamma / _dot(p, z)
            x, r = x + alpha * p, r - alpha * z
            q = improved(r)
            after = _dot(r, q)
            return i + 1, x, r, q + after / gamma * p, after

        state = (tf.constant(0), guess, residual, direction, _dot(residual, direction))
        i, x, r, p, gamma = tf.while_loop(
            lambda i, x, r, p, gamma: tf.logical_and(i < max_iter, tf.norm(r) > bound), body, state
        )
        return _GradientState(i, tf.squeeze(x, [1]), tf.squeeze(r, [1]), p, gamma)


_LeastSquaresState = namedtuple("_LeastSquaresState", "i x r p gamma")


def _cgls(operator: Any, rhs: Any, tol: float = 1e-6, max_iter: int = 20, name: str = "cgls") -> Any:
    """The state (i, x, r, p, gamma) of min |A x - rhs| once |A' r| is below tol * |A' rhs|."""
    with tf.name_scope(name):
        rhs = tf.convert_to_tensor(rhs)
        column = rhs[:, None]
        direction = operator.apply_adjoint(column)
        first = _l2norm_squared(direction)
        bound = tol * tol * first

        def body(i: Any, x: Any, r: Any, p: Any, gamma: Any) -> Any:
            q = operator.apply(p)
            alpha = gamma / _l2norm_squared(q)
            x, r = x + alpha * p, r - alpha * q
            s = operator.apply_adjoint(r)
            after = _l2norm_squared(s)
            return i + 1, x, r, s + after / gamma * p, after

        state = (tf.constant(0), tf.zeros_like(direction), column, direction, first)
        i, x, r, p, gamma = tf.while_loop(
            lambda i, x, r, p, gamma: tf.logical_and(i < max_iter, gamma > bound), body, state
        )
        return _LeastSquaresState(i, tf.squeeze(x, [1]), tf.squeeze(r, [1]), p, gamma)


linear_equations = SimpleNamespace(conjugate_gradient=_conjugate_gradient)
least_squares = SimpleNamespace(cgls=_cgls)
util = SimpleNamespace(
    create_operator=_create_operator, identity_operator=_identity_operator, dot=_dot, l2norm=_l2norm,
    l2norm_squared=_l2norm_squared,
)
