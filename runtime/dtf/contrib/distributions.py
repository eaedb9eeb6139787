"""tf.contrib.distributions: the distributions of tf.distributions under their older place, and normal vectors.

    action = tf.contrib.distributions.Normal(mu, sigma)
    action = tf.contrib.distributions.MultivariateNormalDiag(mu, sigma)

TensorFlow's other classes of this module, such as its bijectors and mixtures, are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions
"""

# ruff: noqa: F403

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.distributions import *
from dtf.distributions import FULLY_REPARAMETERIZED, Distribution, Normal, RegisterKL, kl_divergence


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


def NormalWithSoftplusScale(  # noqa: N802
    loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "NormalWithSoftplusScale",
) -> Any:  # fmt: skip
    """Normal whose standard deviation is softplus(scale)."""
    return Normal(loc, tf.nn.softplus(scale), validate_args, allow_nan_stats, name)


def kl(dist_a: Any, dist_b: Any, allow_nan: bool = False, name: str | None = None) -> Any:
    """The older name of `kl_divergence`."""
    return kl_divergence(dist_a, dist_b, allow_nan, name)


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    return tf.reduce_sum(kl_divergence(a._elements, b._elements), -1, name=name)
