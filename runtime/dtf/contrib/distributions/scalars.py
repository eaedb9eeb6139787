"""tf.contrib.distributions: distributions of real numbers beyond those of tf.distributions.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dtf as tf
from dtf.contrib.distributions.broadcasting import Broadcast
from dtf.distributions import (
    NOT_REPARAMETERIZED,
    Beta,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    RegisterKL,
    StudentT,
)

__all__ = [
    "BetaWithSoftplusConcentration", "Cauchy", "Chi2", "Chi2WithAbsDf", "Deterministic", "ExponentialWithSoftplusRate",
    "GammaWithSoftplusConcentrationRate", "Gumbel", "HalfNormal", "InverseGamma",
    "InverseGammaWithSoftplusConcentrationRate", "Kumaraswamy", "LaplaceWithSoftplusScale", "Logistic",
    "NormalWithSoftplusScale", "StudentTWithAbsDfSoftplusScale", "VectorDeterministic",
]  # fmt: skip

_EULER = float(np.euler_gamma)


class _Located(Broadcast):
    """A distribution of a place `loc` and a width `scale`."""

    loc: Any
    scale: Any

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str | None = None
    ) -> None:
        self._start({**locals(), "name": name or type(self).__name__}, "loc", "scale")

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def _at(self, z: Any) -> Any:
        return self.loc + self.scale * z

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._quantile(self._uniform(n, seed))

    def _mode(self) -> Any:
        return self._spread(self.loc)


class Cauchy(_Located):
    """The distribution of Cauchy with median `loc` and half width `scale`; its mean is undefined."""

    def _log_prob(self, x: Any) -> Any:
        return -tf.log1p(tf.square(self._z(x))) - math.log(math.pi) - tf.log(self.scale)

    def _cdf(self, x: Any) -> Any:
        return tf.atan(self._z(x)) / math.pi + 0.5

    def _quantile(self, p: Any) -> Any:
        return self._at(tf.tan(math.pi * (p - 0.5)))

    def _entropy(self) -> Any:
        return self._spread(math.log(4 * math.pi) + tf.log(self.scale))

    def _mean(self) -> Any:
        if not self.allow_nan_stats:
            raise ValueError("`mean` is undefined for Cauchy distribution.")
        return self._nan_unless(False, 0.0)

    def _stddev(self) -> Any:
        if not self.allow_nan_stats:
            raise ValueError("`stddev` is undefined for Cauchy distribution.")
        return self._nan_unless(False, 0.0)


class Gumbel(_Located):
    """The distribution of Gumbel: the largest of many numbers, with mode `loc` and width `scale`."""

    def _log_prob(self, x: Any) -> Any:
        z = self._z(x)
        return -(z + tf.exp(-z)) - tf.log(self.scale)

    def _log_cdf(self, x: Any) -> Any:
        return -tf.exp(-self._z(x))

    def _quantile(self, p: Any) -> Any:
        return self._at(-tf.log(-tf.log(p)))

    def _entropy(self) -> Any:
        return self._spread(1.0 + _EULER + tf.log(self.scale))

    def _mean(self) -> Any:
        return self._at(_EULER)

    def _stddev(self) -> Any:
        return self._spread(self.scale * (math.pi / math.sqrt(6.0)))


class Logistic(_Located):
    """The logistic distribution with mean `loc` and width `scale`."""

    def _log_prob(self, x: Any) -> Any:
        z = self._z(x)
        return -z - 2.0 * tf.nn.softplus(-z) - tf.log(self.scale)

    def _log_cdf(self, x: Any) -> Any:
        return -tf.nn.softplus(-self._z(x))

    def _cdf(self, x: Any) -> Any:
        return tf.sigmoid(self._z(x))

    def _quantile(self, p: Any) -> Any:
        return self._at(tf.log(p) - tf.log1p(-p))

    def _entropy(self) -> Any:
        return self._spread(2.0 + tf.log(self.scale))

    def _mean(self) -> Any:
        return self._spread(self.loc)

    def _stddev(self) -> Any:
        return self._spread(self.scale * (math.pi / math.sqrt(3.0)))


class HalfNormal(Broadcast):
    """The absolute value of a normal number with mean 0 and standard deviation `scale`."""

    scale: Any

    def __init__(
        self, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal"
    ) -> None:
        self._start(dict(locals()), "scale")

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], self._batch_shape_tensor()], 0)
        return tf.abs(tf.random_normal(shape, dtype=self._dtype, seed=seed) * self.scale)

    def _log_prob(self, x: Any) -> Any:
        inside = 0.5 * math.log(2 / math.pi) - tf.log(self.scale) - 0.5 * tf.square(x / self.scale)
        return tf.where(x + 0.0 * inside < 0.0, tf.fill(tf.shape(inside), tf.constant(-np.inf, self._dtype)), inside)

    def _cdf(self, x: Any) -> Any:
        return tf.erf(tf.maximum(x, 0.0) / self.scale * math.sqrt(0.5))

    def _quantile(self, p: Any) -> Any:
        return self.scale * tf.ndtri((1.0 + p) / 2.0)

    def _entropy(self) -> Any:
        return 0.5 * math.log(math.pi / 2) + tf.log(self.scale) + 0.5

    def _mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    def _mode(self) -> Any:
        return tf.zeros_like(self.scale)

    def _variance(self) -> Any:
        return tf.square(self.scale) * (1.0 - 2.0 / math.pi)


class InverseGamma(Broadcast):
    """The reciprocal of a gamma number of shape `concentration` and inverse scale `rate`."""

    concentration: Any
    rate: Any

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "InverseGamma",
    ) -> None:  # fmt: skip
        self._start(dict(locals()), "concentration", "rate")

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return 1.0 / tf.random_gamma([n], self._spread(self.concentration), self._spread(self.rate), self._dtype, seed)

    def _log_prob(self, x: Any) -> Any:
        a, b = self.concentration, self.rate
        return a * tf.log(b) - tf.lgamma(a) - (1.0 + a) * tf.log(x) - b / x

    def _cdf(self, x: Any) -> Any:
        shape = tf.shape(x + self._spread(0.0))
        return tf.igammac(tf.broadcast_to(self.concentration, shape), tf.broadcast_to(self.rate / x, shape))

    def _entropy(self) -> Any:
        a = self.concentration
        return self._spread(a + tf.log(self.rate) + tf.lgamma(a) - (1.0 + a) * tf.digamma(a))

    def _mean(self) -> Any:
        return self._nan_unless(self.concentration > 1.0, self.rate / (self.concentration - 1.0))

    def _mode(self) -> Any:
        return self.rate / (1.0 + self.concentration)

    def _variance(self) -> Any:
        a = self.concentration
        return self._nan_unless(a > 2.0, tf.square(self.rate) / (tf.square(a - 1.0) * (a - 2.0)))


class Kumaraswamy(Broadcast):
    """A distribution over (0, 1) with cdf 1 - (1 - x^concentration1)^concentration0."""

    concentration1: Any
    concentration0: Any

    def __init__(
        self, concentration1: Any = 1.0, concentration0: Any = 1.0, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Kumaraswamy",
    ) -> None:  # fmt: skip
        self._start(dict(locals()), "concentration1", "concentration0")

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._quantile(self._uniform(n, seed))

    def _log_prob(self, x: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return tf.log(a) + tf.log(b) + (a - 1.0) * tf.log(x) + (b - 1.0) * tf.log1p(-tf.pow(x, a))

    def _cdf(self, x: Any) -> Any:
        return 1.0 - tf.pow(1.0 - tf.pow(x, self.concentration1), self.concentration0)

    def _quantile(self, p: Any) -> Any:
        return tf.pow(1.0 - tf.pow(1.0 - p, 1.0 / self.concentration0), 1.0 / self.concentration1)

    def _entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = tf.digamma(b + 1.0) + _EULER
        return (1.0 - 1.0 / b) + (1.0 - 1.0 / a) * harmonic - tf.log(a) - tf.log(b)

    def _moment(self, n: float) -> Any:
        a, b = 1.0 + n / self.concentration1, self.concentration0
        return b * tf.exp(tf.lgamma(a) + tf.lgamma(b) - tf.lgamma(a + b))

    def _mean(self) -> Any:
        return self._moment(1.0)

    def _mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inside = tf.logical_and(self._spread(a) > 1.0, self._spread(b) > 1.0)
        return self._nan_unless(inside, tf.pow((a - 1.0) / (a * b - 1.0), 1.0 / a))

    def _variance(self) -> Any:
        return self._moment(2.0) - tf.square(self._moment(1.0))


class Chi2(Gamma):
    """The distribution of the sum of `df` squared standard normal numbers."""

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2"
    ) -> None:
        given = {"df": df, "validate_args": validate_args, "allow_nan_stats": allow_nan_stats, "name": name}
        self.df = tf.convert_to_tensor(df, name="df")
        super().__init__(0.5 * self.df, tf.constant(0.5, self.df.dtype), validate_args, allow_nan_stats, name)
        self._parameters = given


class Chi2WithAbsDf(Chi2):
    """Chi2 of floor(abs(df))."""

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2WithAbsDf"
    ) -> None:
        given = {"df": df, "validate_args": validate_args, "allow_nan_stats": allow_nan_stats, "name": name}
        super().__init__(tf.floor(tf.abs(tf.convert_to_tensor(df))), validate_args, allow_nan_stats, name)
        self._parameters = given


class _Fixed(Distribution):
    def __init__(
        self, loc: Any, atol: Any = None, rtol: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        given = {**locals(), "name": name or type(self).__name__}
        self.loc = tf.convert_to_tensor(loc)
        self.atol = tf.convert_to_tensor(0 if atol is None else atol, self.loc.dtype)
        self.rtol = tf.convert_to_tensor(0 if rtol is None else rtol, self.loc.dtype)
        self._begin(self.loc.dtype, NOT_REPARAMETERIZED, given)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.broadcast_to(self.loc, tf.concat([[n], tf.shape(self.loc)], 0))

    def _is_near(self, x: Any) -> Any:
        return tf.abs(x - self.loc) <= self.atol + self.rtol * tf.abs(self.loc)

    def _mean(self) -> Any:
        return tf.identity(self.loc)

    _mode = _mean

    def _variance(self) -> Any:
        return tf.zeros_like(self.loc)


class Deterministic(_Fixed):
    """One number, `loc`, within atol + rtol * abs(loc)."""

    def _batch_shape(self) -> Any:
        return self.loc.shape

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.loc)

    def _prob(self, x: Any) -> Any:
        return tf.cast(self._is_near(x), self._dtype)

    def _cdf(self, x: Any) -> Any:
        return tf.cast(x >= self.loc - (self.atol + self.rtol * tf.abs(self.loc)), self._dtype)

    def _entropy(self) -> Any:
        return tf.zeros_like(self.loc)


class VectorDeterministic(_Fixed):
    """One vector, `loc` [..., n], within atol + rtol * abs(loc)."""

    _event_dims = 1

    def _batch_shape(self) -> Any:
        return self.loc.shape[:-1]

    def _event_shape(self) -> Any:
        return self.loc.shape[-1:]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.loc)[:-1]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.loc)[-1:]

    def _prob(self, x: Any) -> Any:
        return tf.cast(tf.reduce_all(self._is_near(x), -1), self._dtype)

    def _entropy(self) -> Any:
        return tf.zeros(tf.shape(self.loc)[:-1], self._dtype)


# Positive parameters from any numbers


def NormalWithSoftplusScale(  # noqa: N802
    loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "NormalWithSoftplusScale",
) -> Any:  # fmt: skip
    """Normal whose standard deviation is softplus(scale)."""
    return Normal(loc, tf.nn.softplus(scale), validate_args, allow_nan_stats, name)


def LaplaceWithSoftplusScale(  # noqa: N802
    loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "LaplaceWithSoftplusScale",
) -> Any:  # fmt: skip
    """Laplace whose scale is softplus(scale)."""
    return Laplace(loc, tf.nn.softplus(scale), validate_args, allow_nan_stats, name)


def BetaWithSoftplusConcentration(  # noqa: N802
    concentration1: Any, concentration0: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "BetaWithSoftplusConcentration",
) -> Any:  # fmt: skip
    """Beta of the softplus of both arguments."""
    first, second = tf.nn.softplus(concentration1), tf.nn.softplus(concentration0)
    return Beta(first, second, validate_args, allow_nan_stats, name)


def GammaWithSoftplusConcentrationRate(  # noqa: N802
    concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "GammaWithSoftplusConcentrationRate",
) -> Any:  # fmt: skip
    """Gamma of the softplus of both arguments."""
    return Gamma(tf.nn.softplus(concentration), tf.nn.softplus(rate), validate_args, allow_nan_stats, name)


def InverseGammaWithSoftplusConcentrationRate(  # noqa: N802
    concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "InverseGammaWithSoftplusConcentrationRate",
) -> Any:  # fmt: skip
    """InverseGamma of the softplus of both arguments."""
    return InverseGamma(tf.nn.softplus(concentration), tf.nn.softplus(rate), validate_args, allow_nan_stats, name)


def ExponentialWithSoftplusRate(  # noqa: N802
    rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "ExponentialWithSoftplusRate"
) -> Any:
    """Exponential whose rate is softplus(rate)."""
    return Exponential(tf.nn.softplus(rate), validate_args, allow_nan_stats, name)


def StudentTWithAbsDfSoftplusScale(  # noqa: N802
    df: Any, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
    name: str = "StudentTWithAbsDfSoftplusScale",
) -> Any:  # fmt: skip
    """StudentT of floor(abs(df)) degrees of freedom, whose scale is softplus(scale)."""
    return StudentT(tf.floor(tf.abs(df)), loc, tf.nn.softplus(scale), validate_args, allow_nan_stats, name)


@RegisterKL(Gumbel, Gumbel)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_gumbel_gumbel"):
        ratio = a.scale / b.scale
        moved = tf.exp((b.loc - a.loc) / b.scale + tf.lgamma(ratio + 1.0))
        return tf.log(b.scale / a.scale) + _EULER * (ratio - 1.0) + moved - 1.0 + (a.loc - b.loc) / b.scale


@RegisterKL(HalfNormal, HalfNormal)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_half_normal_half_normal"):
        return tf.log(b.scale / a.scale) + 0.5 * (tf.square(a.scale / b.scale) - 1.0)


@RegisterKL(Laplace, Laplace)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_laplace_laplace"):
        far = tf.abs(a.loc - b.loc)
        ratio = a.scale / b.scale
        return -tf.log(ratio) - 1.0 + far / b.scale + ratio * tf.exp(-far / a.scale)
