"""Distributions over real numbers, and over vectors of positive numbers that sum to one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.array import broadcast_dynamic_shape, identity, shape_of
from dtf.build.ops.diagonals import matrix_set_diag
from dtf.build.ops.filling import ones, ones_like, zeros
from dtf.build.ops.joining import concat
from dtf.build.ops.math import (
    abs,
    betainc,
    cast,
    digamma,
    erf,
    expm1,
    greater_equal,
    igamma,
    less,
    lgamma,
    log,
    log1p,
    logical_or,
    sign,
    square,
)
from dtf.build.ops.random import random_gamma, random_normal, random_uniform
from dtf.build.ops.reductions import reduce_all, reduce_sum
from dtf.build.ops.searching import where, where_v2
from dtf.build.ops.special import lbeta
from dtf.build.tensor import Tensor
from dtf.distributions.base import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, Distribution
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class _OfTwo(Distribution):
    """A distribution of two parameters that broadcast.

    Args:
      given: the arguments of the subclass by name.
      first: the name of its first parameter.
      second: the name of its second parameter.
    """

    _first: Tensor
    _second: Tensor

    def __init__(self, given: dict[str, Any], first: str, second: str) -> None:
        both = {first: given[first], second: given[second]}
        self._first, self._second = _parameters(self, given["name"], type(self).__name__, **both)
        self._begin(self._first.dtype, FULLY_REPARAMETERIZED, given)

    def _batch_shape(self) -> TensorShape:
        from dtf.build.ops.array import broadcast_static_shape

        return broadcast_static_shape(self._first.shape, self._second.shape)

    def _batch_shape_tensor(self) -> Tensor:
        return broadcast_dynamic_shape(shape_of(self._first), shape_of(self._second))

    def _ones(self) -> Tensor:
        known = self.batch_shape
        return ones(known if known.is_fully_defined() else self._batch_shape_tensor(), self._dtype)

    def _whole(self, n: Tensor) -> Tensor:
        return concat([[n], self._batch_shape_tensor()], 0)


def _parameters(owner: Distribution, name: str | None, default: str, **given: Any) -> list[Tensor]:
    """Parameters as tensors of one floating dtype, in the scope of a distribution."""
    with name_scope(name or default) as owner._opened:
        dtype = next((each.dtype for each in given.values() if hasattr(each, "dtype")), None)
        if dtype is not None:
            dtype = dtypes.as_dtype(dtype).base_dtype
        return [identity(convert_to_tensor(each, dtype or dtypes.float32), name=key) for key, each in given.items()]


class Normal(_OfTwo):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
    ) -> None:
        super().__init__(dict(locals()), "loc", "scale")

    @property
    def loc(self) -> Tensor:
        """The mean."""
        return self._first

    @property
    def scale(self) -> Tensor:
        """The standard deviation."""
        return self._second

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return random_normal(self._whole(n), 0.0, 1.0, self._dtype, seed) * self.scale + self.loc

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _log_prob(self, x: Tensor) -> Tensor:
        return -0.5 * square(self._z(x)) - (_HALF_LOG_2PI + log(self.scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return 0.5 * (1.0 + erf(self._z(x) * math.sqrt(0.5)))

    def _quantile(self, p: Tensor) -> Tensor:
        from dtf.build.ops.math import ndtri

        return ndtri(p) * self.scale + self.loc

    def _entropy(self) -> Tensor:
        return (0.5 + _HALF_LOG_2PI) + log(self.scale * self._ones())

    def _mean(self) -> Tensor:
        return self.loc * ones_like(self.scale)

    _mode = _mean

    def _stddev(self) -> Tensor:
        return self.scale * ones_like(self.loc)


class Laplace(_OfTwo):
    """The distribution of Laplace with median `loc` and density exp(-|x - loc| / scale) / (2 scale)."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Laplace"
    ) -> None:
        super().__init__(dict(locals()), "loc", "scale")

    @property
    def loc(self) -> Tensor:
        """The median."""
        return self._first

    @property
    def scale(self) -> Tensor:
        """The mean distance from the median."""
        return self._second

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        low = np.nextafter(self._dtype.as_numpy_dtype(-1.0), self._dtype.as_numpy_dtype(0.0))
        drawn = random_uniform(self._whole(n), low, 1.0, self._dtype, seed)
        return self.loc - self.scale * sign(drawn) * log1p(-abs(drawn))

    def _log_prob(self, x: Tensor) -> Tensor:
        return -abs((x - self.loc) / self.scale) - math.log(2.0) - log(self.scale)

    def _cdf(self, x: Tensor) -> Tensor:
        z = (x - self.loc) / self.scale
        return 0.5 + 0.5 * sign(z) * -expm1(-abs(z))

    def _entropy(self) -> Tensor:
        return math.log(2.0) + 1.0 + log(self.scale + 0.0 * self.loc)

    def _mean(self) -> Tensor:
        return self.loc + 0.0 * self.scale

    _mode = _mean

    def _stddev(self) -> Tensor:
        return math.sqrt(2.0) * self.scale + 0.0 * self.loc


class Uniform(_OfTwo):
    """The uniform distribution over [low, high)."""

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        super().__init__(dict(locals()), "low", "high")

    @property
    def low(self) -> Tensor:
        """The lower bound."""
        return self._first

    @property
    def high(self) -> Tensor:
        """The upper bound."""
        return self._second

    def range(self, name: str = "range") -> Tensor:
        """high - low."""
        with self._scope(name):
            return self.high - self.low

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return self.low + self.range() * random_uniform(self._whole(n), dtype=self._dtype, seed=seed)

    def _prob(self, x: Tensor) -> Tensor:
        x = x * self._ones()
        outside = logical_or(less(x, self.low), greater_equal(x, self.high))
        inside = ones_like(x) / self.range()
        return where(outside, 0.0 * inside, inside)

    def _cdf(self, x: Tensor) -> Tensor:
        shape = broadcast_dynamic_shape(shape_of(x), self._batch_shape_tensor())
        zero, one = zeros(shape, self._dtype), ones(shape, self._dtype)
        within = where(less(x + zero, self.low + zero), zero, (x - self.low) / self.range() + zero)
        return where(greater_equal(x + zero, self.high + zero), one, within)

    def _quantile(self, p: Tensor) -> Tensor:
        return (1.0 - p) * self.low + p * self.high

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)


class Gamma(_OfTwo):
    """The gamma distribution of shape `concentration` and inverse scale `rate`."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        super().__init__(dict(locals()), "concentration", "rate")

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self._first

    @property
    def rate(self) -> Tensor:
        """The inverse scale."""
        return self._second

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        return random_gamma([n], self.concentration * self._ones(), self.rate * self._ones(), self._dtype, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        return (self.concentration - 1.0) * log(x) - self.rate * x - (
            lgamma(self.concentration) - self.concentration * log(self.rate)
        )

    def _cdf(self, x: Tensor) -> Tensor:
        x = x * self._ones()
        return igamma(self.concentration * ones_like(x), self.rate * x)

    def _entropy(self) -> Tensor:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1.0 - a) * digamma(a)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def _mode(self) -> Tensor:
        mode = (self.concentration - 1.0) / self.rate
        return where(self.concentration * self._ones() > 1.0, mode, math.nan * ones_like(mode))


class Exponential(Gamma):
    """The exponential distribution with density rate * exp(-rate * x)."""

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        given = dict(locals())
        [self._second] = _parameters(self, name, "Exponential", rate=rate)
        with name_scope(self._opened):
            self._first = ones([], self._second.dtype)
        self._begin(self._second.dtype, FULLY_REPARAMETERIZED, given)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        low = np.finfo(self._dtype.as_numpy_dtype).tiny
        return -log(random_uniform(self._whole(n), low, 1.0, self._dtype, seed)) / self.rate


class Beta(_OfTwo):
    """The beta distribution over (0, 1) with parameters `concentration1` (of x) and `concentration0` (of 1 - x)."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        super().__init__(dict(locals()), "concentration1", "concentration0")

    @property
    def concentration1(self) -> Tensor:
        """The parameter of x."""
        return self._first

    @property
    def concentration0(self) -> Tensor:
        """The parameter of 1 - x."""
        return self._second

    @property
    def total_concentration(self) -> Tensor:
        """The sum of both."""
        return self._first + self._second

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        one = random_gamma([n], self._first * self._ones(), dtype=self._dtype, seed=seed)
        other = random_gamma([n], self._second * self._ones(), dtype=self._dtype, seed=seed)
        return one / (one + other)

    def _log_beta(self) -> Tensor:
        return lgamma(self._first) + lgamma(self._second) - lgamma(self.total_concentration)

    def _log_prob(self, x: Tensor) -> Tensor:
        return (self._first - 1.0) * log(x) + (self._second - 1.0) * log1p(-x) - self._log_beta()

    def _cdf(self, x: Tensor) -> Tensor:
        x = x * self._ones()
        return betainc(self._first * ones_like(x), self._second * ones_like(x), x)

    def _entropy(self) -> Tensor:
        a, b, total = self._first, self._second, self.total_concentration
        return self._log_beta() - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (total - 2.0) * digamma(total)

    def _mean(self) -> Tensor:
        return self._first / self.total_concentration

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)

    def _mode(self) -> Tensor:
        mode = (self._first - 1.0) / (self.total_concentration - 2.0)
        defined = logical_or(self._first * self._ones() <= 1.0, self._second * self._ones() <= 1.0)
        return where(defined, math.nan * ones_like(mode), mode)


class StudentT(_OfTwo):
    """The distribution of Student with `df` degrees of freedom, moved by `loc` and scaled by `scale`."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        given = dict(locals())
        self._df, self._loc, self._scale = _parameters(self, name, "StudentT", df=df, loc=loc, scale=scale)
        with name_scope(self._opened):
            self._first, self._second = self._df, self._loc * ones_like(self._scale)
        self._begin(self._df.dtype, FULLY_REPARAMETERIZED, given)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self._df

    @property
    def loc(self) -> Tensor:
        """The median."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The factor of the deviation."""
        return self._scale

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        normal = random_normal(self._whole(n), dtype=self._dtype, seed=seed)
        df = self._df * self._ones()
        drawn = random_gamma([n], 0.5 * df, 0.5, self._dtype, seed)
        return normal / (drawn / df) ** 0.5 * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        y = (x - self._loc) / self._scale
        norm = (
            log(abs(self._scale)) + 0.5 * log(self._df) + 0.5 * math.log(math.pi)
            + lgamma(0.5 * self._df) - lgamma(0.5 * (self._df + 1.0))
        )
        return -0.5 * (self._df + 1.0) * log1p(square(y) / self._df) - norm

    def _cdf(self, x: Tensor) -> Tensor:
        y = (x - self._loc) / abs(self._scale)
        tail = 0.5 * betainc(0.5 * self._df * ones_like(y), 0.5 * ones_like(y), self._df / (square(y) + self._df))
        return where(less(y, 0.0 * y), tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        half = 0.5 * (self._df + 1.0)
        beta = lgamma(0.5 * self._df) + lgamma(ones_like(self._df) * 0.5) - lgamma(half)
        return (
            log(abs(self._scale) * self._ones()) + 0.5 * log(self._df) + beta
            + half * (digamma(half) - digamma(0.5 * self._df))
        )

    def _mean(self) -> Tensor:
        mean = self._loc * self._ones()
        return where(self._df * self._ones() > 1.0, mean, math.nan * ones_like(mean))

    def _variance(self) -> Tensor:
        df = self._df * self._ones()
        found = where(df > 2.0, square(self._scale) * df / (df - 2.0), math.inf * ones_like(df))
        return where(df > 1.0, found, math.nan * ones_like(df))

    def _mode(self) -> Tensor:
        return self._loc * self._ones()


class Dirichlet(Distribution):
    """The distribution of Dirichlet over vectors of positive numbers that sum to one."""

    _event_dims = 1

    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet"
    ) -> None:
        given = dict(locals())
        [self._concentration] = _parameters(self, name, "Dirichlet", concentration=concentration)
        self._begin(self._concentration.dtype, NOT_REPARAMETERIZED, given)

    @property
    def concentration(self) -> Tensor:
        """The parameters, [..., k]."""
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        """Their sums."""
        return reduce_sum(self._concentration, -1)

    def _batch_shape(self) -> TensorShape:
        return self._concentration.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._concentration)[:-1]

    def _event_shape(self) -> TensorShape:
        return self._concentration.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self._concentration)[-1:]

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        drawn = random_gamma([n], self._concentration, dtype=self._dtype, seed=seed)
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: Tensor) -> Tensor:
        return reduce_sum((self._concentration - 1.0) * log(x), -1) - lbeta(self._concentration)

    def _entropy(self) -> Tensor:
        total, k = self.total_concentration, cast(shape_of(self._concentration)[-1], self._dtype)
        return (
            lbeta(self._concentration) + (total - k) * digamma(total)
            - reduce_sum((self._concentration - 1.0) * digamma(self._concentration), -1)
        )

    def _mean(self) -> Tensor:
        return self._concentration / reduce_sum(self._concentration, -1, keepdims=True)

    def _factor(self) -> Tensor:
        return 1.0 / (1.0 + reduce_sum(self._concentration, -1, keepdims=True))

    def _variance(self) -> Tensor:
        mean = self._mean()
        return (mean - square(mean)) * self._factor()

    def _covariance(self) -> Tensor:
        mean = self._mean() * self._factor() ** 0.5
        outer = -mean[..., None] * mean[..., None, :]
        return matrix_set_diag(outer, self._variance())

    def _mode(self) -> Tensor:
        k = cast(shape_of(self._concentration)[-1], self._dtype)
        mode = (self._concentration - 1.0) / (reduce_sum(self._concentration, -1, keepdims=True) - k)
        defined = reduce_all(self._concentration > 1.0, -1, keepdims=True)
        return where_v2(defined, mode, math.nan * ones_like(mode))


