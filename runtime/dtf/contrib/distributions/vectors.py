"""tf.contrib.distributions: normal vectors with covariances, other vectors by diagonals, and Wishart's matrices.

Owns `Gaussian`, a normal vector loc + scale @ z with any square `scale`, under all classes of MultivariateNormal.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions/MultivariateNormalTriL
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.contrib.distributions.bijectors import Affine
from dtf.contrib.distributions.combined import TransformedDistribution
from dtf.distributions import (
    FULLY_REPARAMETERIZED,
    Distribution,
    Exponential,
    Laplace,
    Normal,
    RegisterKL,
    kl_divergence,
)

__all__ = [
    "MultivariateNormalDiag", "MultivariateNormalDiagPlusLowRank", "MultivariateNormalDiagWithSoftplusScale",
    "MultivariateNormalFullCovariance", "MultivariateNormalTriL", "VectorExponentialDiag", "VectorLaplaceDiag",
    "WishartCholesky", "WishartFull",
]  # fmt: skip


class Gaussian(Distribution):
    """Normal vectors loc + scale @ z.

    Attributes:
      loc: the means [..., n].
      scale_matrix: the factor [..., n, n].
    """

    _event_dims = 1
    loc: Any
    scale_matrix: Any

    def _start(self, loc: Any, matrix: Any, given: dict[str, Any]) -> None:
        self.scale_matrix = matrix
        self.loc = tf.zeros_like(matrix[..., 0]) if loc is None else tf.convert_to_tensor(loc, matrix.dtype)
        self._begin(matrix.dtype, FULLY_REPARAMETERIZED, given)

    @property
    def scale(self) -> Any:
        """The factor, as a linear operator."""
        return tf.linalg.LinearOperatorFullMatrix(self.scale_matrix)

    def _batch_shape(self) -> Any:
        return tf.broadcast_static_shape(self.loc.shape[:-1], self.scale_matrix.shape[:-2])

    def _event_shape(self) -> Any:
        return self.scale_matrix.shape[-1:]

    def _batch_shape_tensor(self) -> Any:
        return tf.broadcast_dynamic_shape(tf.shape(self.loc)[:-1], tf.shape(self.scale_matrix)[:-2])

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.scale_matrix)[-1:]

    def _function(self) -> Affine:
        made = Affine(shift=self.loc)
        made.scale = self.scale_matrix
        return made

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], self._batch_shape_tensor(), self._event_shape_tensor()], 0)
        return self._function().forward(tf.random_normal(shape, dtype=self._dtype, seed=seed))

    def _log_scale(self) -> Any:
        return tf.log(tf.abs(tf.matrix_determinant(self.scale_matrix)))

    def _size(self) -> Any:
        return tf.cast(self._event_shape_tensor()[0], self._dtype)

    def _log_prob(self, x: Any) -> Any:
        z = self._function().inverse(x)
        return -0.5 * (tf.reduce_sum(tf.square(z), -1) + self._size() * math.log(2 * math.pi)) - self._log_scale()

    def _whole(self, value: Any) -> Any:
        return value + tf.zeros(self._batch_shape_tensor(), self._dtype)

    def _entropy(self) -> Any:
        return self._whole(0.5 * self._size() * (1.0 + math.log(2 * math.pi)) + self._log_scale())

    def _mean(self) -> Any:
        return self.loc + tf.zeros(tf.concat([self._batch_shape_tensor(), self._event_shape_tensor()], 0), self._dtype)

    _mode = _mean

    def _covariance(self) -> Any:
        return tf.matmul(self.scale_matrix, self.scale_matrix, transpose_b=True)

    def _variance(self) -> Any:
        return tf.reduce_sum(tf.square(self.scale_matrix), -1)


class MultivariateNormalTriL(Gaussian):
    """Normal vectors whose `scale_tril` [..., n, n] is the lower triangle of Cholesky of the covariances."""

    def __init__(
        self, loc: Any = None, scale_tril: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        if scale_tril is None:
            if loc is None:
                raise ValueError("MultivariateNormalTriL needs loc or scale_tril.")
            matrix = tf.matrix_diag(tf.ones_like(tf.convert_to_tensor(loc)))
        else:
            matrix = tf.matrix_band_part(tf.convert_to_tensor(scale_tril), -1, 0)
        self._start(loc, matrix, given)

    def _log_scale(self) -> Any:
        return tf.reduce_sum(tf.log(tf.abs(tf.matrix_diag_part(self.scale_matrix))), -1)


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """Normal vectors of a covariance matrix [..., n, n]."""

    def __init__(
        self, loc: Any = None, covariance_matrix: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MultivariateNormalFullCovariance",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        tril = None if covariance_matrix is None else tf.cholesky(tf.convert_to_tensor(covariance_matrix))
        super().__init__(loc, tril, validate_args, allow_nan_stats, name)
        self._parameters = given


class MultivariateNormalDiagPlusLowRank(Gaussian):
    """Normal vectors with scale diag(scale_diag) + V diag(d) V^T + multiplier * I.

    Args:
      loc: the means [..., n]; 0 by default.
      scale_diag: the diagonal [..., n].
      scale_identity_multiplier: a factor of the identity.
      scale_perturb_factor: V [..., n, r].
      scale_perturb_diag: d [..., r]; ones by default.
    """

    def __init__(
        self, loc: Any = None, scale_diag: Any = None, scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None, scale_perturb_diag: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        made = Affine(None, scale_identity_multiplier, scale_diag, None, scale_perturb_factor, scale_perturb_diag)
        matrix = made.scale
        if matrix is None:
            if loc is None:
                raise ValueError("MultivariateNormalDiagPlusLowRank needs loc or scale_diag.")
            factor = tf.constant(1.0) if made._factor is None else made._factor
            matrix = tf.matrix_diag(tf.ones_like(tf.convert_to_tensor(loc)) * factor[..., None])
        self._start(loc, matrix, given)


class MultivariateNormalDiag(Distribution):
    """Vectors of independent normal elements.

    Args:
      loc: the means [..., n]; 0 by default.
      scale_diag: the standard deviations [..., n]; 1 by default.
      scale_identity_multiplier: a factor of all of them, [...].
    """

    _event_dims = 1

    def __init__(
        self, loc: Any = None, scale_diag: Any = None, scale_identity_multiplier: Any = None,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "MultivariateNormalDiag",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        if loc is None and scale_diag is None:
            raise ValueError("MultivariateNormalDiag needs loc or scale_diag.")
        scale = tf.ones_like(tf.convert_to_tensor(loc)) if scale_diag is None else tf.convert_to_tensor(scale_diag)
        if scale_identity_multiplier is not None:
            scale *= tf.expand_dims(scale_identity_multiplier, -1)
        mean = tf.zeros_like(scale) if loc is None else tf.convert_to_tensor(loc)
        shape = tf.broadcast_dynamic_shape(tf.shape(mean), tf.shape(scale))
        static = tf.broadcast_static_shape(mean.shape, scale.shape)
        mean, scale = tf.broadcast_to(mean, shape), tf.broadcast_to(scale, shape)
        for each in (mean, scale):
            each.set_shape(static)
        self._elements = Normal(mean, scale)
        super()._begin(mean.dtype, FULLY_REPARAMETERIZED, given)

    @property
    def loc(self) -> Any:
        """The means."""
        return self._elements.loc

    def _batch_shape(self) -> Any:
        return self.loc.shape[:-1]

    def _event_shape(self) -> Any:
        return self.loc.shape[-1:]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.loc)[:-1]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.loc)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._elements.sample(n, seed)

    def _log_prob(self, x: Any) -> Any:
        return tf.reduce_sum(self._elements.log_prob(x), -1)

    def _entropy(self) -> Any:
        return tf.reduce_sum(self._elements.entropy(), -1)

    def _mean(self) -> Any:
        return self._elements.mean()

    def _mode(self) -> Any:
        return self._elements.mean()

    def _stddev(self) -> Any:
        return self._elements.stddev()

    def _covariance(self) -> Any:
        return tf.matrix_diag(tf.square(self._elements.stddev()))


def MultivariateNormalDiagWithSoftplusScale(  # noqa: N802
    loc: Any, scale_diag: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "MultivariateNormalDiagWithSoftplusScale",
) -> MultivariateNormalDiag:  # fmt: skip
    """MultivariateNormalDiag whose standard deviations are softplus(scale_diag)."""
    return MultivariateNormalDiag(loc, tf.nn.softplus(scale_diag), None, validate_args, allow_nan_stats, name)


def VectorExponentialDiag(  # noqa: N802
    loc: Any = None, scale_diag: Any = None, scale_identity_multiplier: Any = None, validate_args: bool = False,
    allow_nan_stats: bool = True, name: str = "VectorExponentialDiag",
) -> TransformedDistribution:  # fmt: skip
    """Vectors loc + scale * z, with z of independent exponential numbers of rate 1."""
    return _by_diagonal(lambda one: Exponential(one), loc, scale_diag, scale_identity_multiplier, name)


def VectorLaplaceDiag(  # noqa: N802
    loc: Any = None, scale_diag: Any = None, scale_identity_multiplier: Any = None, validate_args: bool = False,
    allow_nan_stats: bool = True, name: str = "VectorLaplaceDiag",
) -> TransformedDistribution:  # fmt: skip
    """Vectors loc + scale * z, with z of independent numbers of Laplace's distribution."""
    return _by_diagonal(lambda one: Laplace(0.0 * one, one), loc, scale_diag, scale_identity_multiplier, name)


def _by_diagonal(
    make: Callable[[Any], Any], loc: Any, diagonal: Any, factor: Any, name: str
) -> TransformedDistribution:
    if loc is None and diagonal is None:
        raise ValueError(f"{name} needs loc or scale_diag.")
    given = tf.convert_to_tensor(loc if diagonal is None else diagonal)
    diagonal = tf.ones_like(given) if diagonal is None else given
    shift = None if loc is None else tf.convert_to_tensor(loc)
    shape = diagonal.shape if shift is None else tf.broadcast_static_shape(diagonal.shape, shift.shape)
    function = Affine(shift, factor, diagonal)
    base = make(tf.constant(1.0, diagonal.dtype))
    return TransformedDistribution(base, function, shape[:-1].as_list(), shape[-1:].as_list(), name=name)


class _Wishart(Distribution):
    """Positive matrices [..., n, n]: sums of `df` outer products of normal vectors of covariance `scale`."""

    _event_dims = 2
    _tril: Any
    df: Any

    def _start(self, df: Any, tril: Any, as_triangles: bool, given: dict[str, Any]) -> None:
        self._tril, self.df = tril, tf.convert_to_tensor(df, tril.dtype)
        self.cholesky_input_output_matrices = as_triangles
        self._begin(tril.dtype, FULLY_REPARAMETERIZED, given)

    @property
    def dimension(self) -> Any:
        """The number of rows."""
        return tf.shape(self._tril)[-1]

    def scale(self) -> Any:
        """The covariance of the vectors, or its lower triangle if matrices are given as triangles."""
        return self._shown(self._tril)

    def _shown(self, tril: Any) -> Any:
        return tril if self.cholesky_input_output_matrices else tf.matmul(tril, tril, transpose_b=True)

    def _batch_shape(self) -> Any:
        return tf.broadcast_static_shape(self.df.shape, self._tril.shape[:-2])

    def _event_shape(self) -> Any:
        return self._tril.shape[-2:]

    def _batch_shape_tensor(self) -> Any:
        return tf.broadcast_dynamic_shape(tf.shape(self.df), tf.shape(self._tril)[:-2])

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self._tril)[-2:]

    def _half_degrees(self) -> Any:
        """(df - i) / 2 for each row i, [..., n]."""
        return 0.5 * (self.df[..., None] - tf.cast(tf.range(self.dimension), self._dtype))

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], self._batch_shape_tensor(), self._event_shape_tensor()], 0)
        below = tf.matrix_band_part(tf.random_normal(shape, dtype=self._dtype, seed=seed), -1, 0)
        half = tf.broadcast_to(self._half_degrees(), shape[1:-1])
        other_seed = None if seed is None else seed + 1
        squares = tf.random_gamma([n], half, tf.constant(0.5, self._dtype), self._dtype, other_seed)
        triangle = tf.matrix_set_diag(below, tf.sqrt(squares))
        return self._shown(tf.matmul(tf.broadcast_to(self._tril, shape), triangle))

    def _log_norm(self) -> Any:
        size = tf.cast(self.dimension, self._dtype)
        gammas = tf.reduce_sum(tf.lgamma(self._half_degrees()), -1) + 0.25 * size * (size - 1.0) * math.log(math.pi)
        return self.df * _log_diagonal(self._tril) + 0.5 * self.df * size * math.log(2.0) + gammas

    def _log_prob(self, x: Any) -> Any:
        root = x if self.cholesky_input_output_matrices else tf.cholesky(x)
        size = tf.cast(self.dimension, self._dtype)
        shape = tf.broadcast_dynamic_shape(tf.shape(root), tf.shape(self._tril))
        solved = tf.matrix_triangular_solve(tf.broadcast_to(self._tril, shape), tf.broadcast_to(root, shape))
        trace = tf.reduce_sum(tf.square(solved), [-2, -1])
        return -0.5 * trace + (self.df - size - 1.0) * _log_diagonal(root) - self._log_norm()

    def mean_log_det(self, name: str = "mean_log_det") -> Any:
        """The mean of the logarithm of the determinant."""
        with self._scope(name):
            size = tf.cast(self.dimension, self._dtype)
            means = tf.reduce_sum(tf.digamma(self._half_degrees()), -1)
            return means + size * math.log(2.0) + 2.0 * _log_diagonal(self._tril)

    def log_normalization(self, name: str = "log_normalization") -> Any:
        """The logarithm of the factor that makes the density's integral 1, negated."""
        with self._scope(name):
            return self._log_norm()

    def _entropy(self) -> Any:
        size = tf.cast(self.dimension, self._dtype)
        return self._log_norm() - 0.5 * (self.df - size - 1.0) * self.mean_log_det() + 0.5 * self.df * size

    def _mean(self) -> Any:
        df = self.df[..., None, None]
        if self.cholesky_input_output_matrices:
            return tf.sqrt(df) * self._tril
        return df * tf.matmul(self._tril, self._tril, transpose_b=True)

    def _variance(self) -> Any:
        whole = tf.matmul(self._tril, self._tril, transpose_b=True)
        diagonal = tf.matrix_diag_part(whole)
        outer = tf.expand_dims(diagonal, -1) * tf.expand_dims(diagonal, -2)
        found = self.df[..., None, None] * (tf.square(whole) + outer)
        return tf.cholesky(found) if self.cholesky_input_output_matrices else found


def _log_diagonal(triangle: Any) -> Any:
    return tf.reduce_sum(tf.log(tf.matrix_diag_part(triangle)), -1)


class WishartCholesky(_Wishart):
    """Wishart's distribution of a lower triangle `scale` of Cholesky."""

    def __init__(
        self, df: Any, scale: Any, cholesky_input_output_matrices: bool = False, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "WishartCholesky",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self._start(df, tf.convert_to_tensor(scale), cholesky_input_output_matrices, given)


class WishartFull(_Wishart):
    """Wishart's distribution of a positive matrix `scale`."""

    def __init__(
        self, df: Any, scale: Any, cholesky_input_output_matrices: bool = False, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "WishartFull",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self._start(df, tf.cholesky(tf.convert_to_tensor(scale)), cholesky_input_output_matrices, given)


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    return tf.reduce_sum(kl_divergence(a._elements, b._elements), -1, name=name)


def _factor_of(normal: Any) -> tuple[Any, Any]:
    """The means, and the factor [..., n, n], of a normal vector."""
    if isinstance(normal, Gaussian):
        return normal.loc, normal.scale_matrix
    return normal.loc, tf.matrix_diag(normal.stddev())


def _kl_of_vectors(a: Any, b: Any, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_mvn"):
        (mean_a, scale_a), (mean_b, scale_b) = _factor_of(a), _factor_of(b)
        moved = tf.matrix_solve(scale_b, scale_a)
        far = tf.squeeze(tf.matrix_solve(scale_b, tf.expand_dims(mean_b - mean_a, -1)), -1)
        logs = [tf.log(tf.abs(tf.matrix_determinant(each))) for each in (scale_b, scale_a)]
        size = tf.cast(tf.shape(scale_a)[-1], scale_a.dtype)
        squares = tf.reduce_sum(tf.square(moved), [-2, -1]) + tf.reduce_sum(tf.square(far), -1)
        return logs[0] - logs[1] + 0.5 * (squares - size)


for _first, _second in (
    (Gaussian, Gaussian), (Gaussian, MultivariateNormalDiag), (MultivariateNormalDiag, Gaussian),
):  # fmt: skip
    RegisterKL(_first, _second)(_kl_of_vectors)
