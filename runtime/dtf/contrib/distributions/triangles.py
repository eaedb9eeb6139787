"""Triangles of matrices as vectors, and other helpers of tf.contrib.distributions.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions/fill_triangular
"""

from __future__ import annotations

import math
from typing import Any

import dtf as tf

__all__ = [
    "fill_triangular", "fill_triangular_inverse", "matrix_diag_transform", "reduce_weighted_logsumexp",
    "softplus_inverse", "tridiag",
]  # fmt: skip


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """A triangle [..., n, n] of vectors [..., n (n + 1) / 2], in the clockwise order of TensorFlow.

    Raises:
      ValueError: no triangle has so many numbers.
    """
    with tf.name_scope(name, "fill_triangular"):
        x = tf.convert_to_tensor(x)
        count = x.shape[-1].value
        if count is None:
            raise ValueError("fill_triangular needs a static size of the last dimension")
        size = (math.isqrt(1 + 8 * count) - 1) // 2
        if size * (size + 1) // 2 != count:
            raise ValueError(f"Input right-most shape ({count}) does not correspond to a triangular matrix.")
        rest = x[..., size:]
        parts = [x, tf.reverse(rest, [-1])] if upper else [rest, tf.reverse(x, [-1])]
        square = tf.reshape(tf.concat(parts, -1), tf.concat([tf.shape(x)[:-1], [size, size]], 0))
        made = tf.matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
        made.set_shape(x.shape[:-1].concatenate([size, size]))
        return made


def fill_triangular_inverse(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """The vectors of triangles: what `fill_triangular` turns into x."""
    with tf.name_scope(name, "fill_triangular_inverse"):
        x = tf.convert_to_tensor(x)
        size = x.shape[-1].value
        if size is None:
            raise ValueError("fill_triangular_inverse needs a static size of the last dimension")
        count = size * (size + 1) // 2
        flat = tf.reshape(x, tf.concat([tf.shape(x)[:-2], [size * size]], 0))
        if upper:
            made = tf.concat([flat[..., :size], _rest(flat, size, count, upper)], -1)
        else:
            made = tf.concat([tf.reverse(flat[..., -size:], [-1]), _rest(flat, size, count, upper)], -1)
        made.set_shape(x.shape[:-2].concatenate([count]))
        return made


def _rest(flat: Any, size: int, count: int, upper: bool) -> Any:
    """The numbers after the first row: of each place the one that the triangle keeps."""
    places = []
    for number in range(size, count):
        first = number if upper else number - size
        second = size * size - 1 - (number - size) if upper else size * size - 1 - number
        row, column = divmod(first, size)
        is_first = column >= row if upper else column <= row
        places.append(first if is_first else second)
    return tf.gather(flat, tf.constant(places, tf.int32), axis=-1)


def matrix_diag_transform(matrix: Any, transform: Any = None, name: str | None = None) -> Any:
    """A matrix whose diagonal went through a function."""
    with tf.name_scope(name, "matrix_diag_transform"):
        matrix = tf.convert_to_tensor(matrix)
        return matrix if transform is None else tf.matrix_set_diag(matrix, transform(tf.matrix_diag_part(matrix)))


def softplus_inverse(x: Any, name: str | None = None) -> Any:
    """log(exp(x) - 1)."""
    with tf.name_scope(name, "softplus_inverse"):
        x = tf.convert_to_tensor(x)
        return x + tf.log(-tf.expm1(-x))


def reduce_weighted_logsumexp(
    logx: Any, w: Any = None, axis: Any = None, keep_dims: bool = False, return_sign: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """log(abs(sum(w * exp(logx)))), with the sum's sign if `return_sign`."""
    with tf.name_scope(name, "reduce_weighted_logsumexp"):
        logx = tf.convert_to_tensor(logx)
        if w is None:
            found = tf.reduce_logsumexp(logx, axis, keep_dims)
            return (found, tf.ones_like(found)) if return_sign else found
        w = tf.convert_to_tensor(w, logx.dtype)
        most = tf.stop_gradient(tf.reduce_max(logx + tf.log(tf.abs(w)), axis, keepdims=True))
        most = tf.where(tf.is_finite(most), most, tf.zeros_like(most))
        whole = tf.reduce_sum(w * tf.exp(logx - most), axis, keepdims=keep_dims)
        sign = tf.sign(whole)
        shift = most if keep_dims else tf.squeeze(most, axis)
        found = shift + tf.log(sign * whole)
        return (found, sign) if return_sign else found


def tridiag(below: Any = None, diag: Any = None, above: Any = None, name: str | None = None) -> Any:
    """Matrices of up to three diagonals."""
    with tf.name_scope(name, "tridiag"):
        parts = []
        if below is not None:
            parts.append(tf.pad(tf.matrix_diag(below), _edges(below, [[1, 0], [0, 1]])))
        if diag is not None:
            parts.append(tf.matrix_diag(diag))
        if above is not None:
            parts.append(tf.pad(tf.matrix_diag(above), _edges(above, [[0, 1], [1, 0]])))
        if not parts:
            raise ValueError("Must specify at least one of `below`, `diag`, `above`.")
        return tf.add_n(parts)


def _edges(diagonal: Any, last: list[list[int]]) -> list[list[int]]:
    rank: int = tf.convert_to_tensor(diagonal).shape.ndims  # type: ignore[assignment]
    return [[0, 0]] * (rank - 1) + last
