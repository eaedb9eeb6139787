"""tf.contrib.distributions: counts and one-hot classes, and their forms with gradients.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions;
Maddison et al. (2017), https://arxiv.org/abs/1611.00712, for the relaxed ones
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.contrib.distributions.bijectors import Exp, Sigmoid
from dtf.contrib.distributions.broadcasting import Broadcast, logits_and_probs
from dtf.contrib.distributions.combined import TransformedDistribution
from dtf.contrib.distributions.scalars import Logistic
from dtf.distributions import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, Distribution, RegisterKL
from dtf.wire import dtypes

__all__ = [
    "Binomial", "ExpRelaxedOneHotCategorical", "Geometric", "NegativeBinomial", "OneHotCategorical", "Poisson",
    "RelaxedBernoulli", "RelaxedOneHotCategorical",
]  # fmt: skip


class Poisson(Broadcast):
    """The number of events where `rate` are expected; `log_rate` is its logarithm."""

    rate: Any
    log_rate: Any

    def __init__(
        self, rate: Any = None, log_rate: Any = None, interpolate_nondiscrete: bool = True,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Poisson",
    ) -> None:  # fmt: skip
        if (rate is None) == (log_rate is None):
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        if log_rate is None:
            rate = tf.convert_to_tensor(rate)
            both = {"rate": rate, "log_rate": tf.log(rate)}
        else:
            log_rate = tf.convert_to_tensor(log_rate)
            both = {"rate": tf.exp(log_rate), "log_rate": log_rate}
        given = {key: value for key, value in locals().items() if key not in ("self", "both", "__class__")}
        self._start({**given, **both}, "rate", "log_rate", kind=NOT_REPARAMETERIZED)
        self._parameters.update(rate=given["rate"] if given["log_rate"] is None else None, log_rate=given["log_rate"])

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.random_poisson(self.rate, [n], self._dtype, seed)

    def _log_prob(self, x: Any) -> Any:
        return x * self.log_rate - tf.lgamma(1.0 + x) - self.rate

    def _cdf(self, x: Any) -> Any:
        shape = tf.shape(x + self.rate)
        inside = tf.broadcast_to(tf.maximum(tf.floor(x), 0.0), shape)
        found = tf.igammac(1.0 + inside, tf.broadcast_to(self.rate, shape))
        return tf.where(tf.broadcast_to(x, shape) < 0.0, tf.zeros_like(found), found)

    def _mean(self) -> Any:
        return tf.identity(self.rate)

    _variance = _mean

    def _mode(self) -> Any:
        return tf.floor(self.rate)


class _OfChance(Broadcast):
    """A distribution of a chance, which is given as `probs` or as `logits`."""

    logits: Any
    probs: Any

    def _start_of_chance(self, given: dict[str, Any], *others: str) -> None:
        """The constructor, as `_start`; `others` are the arguments besides the chance."""
        logits, probs = logits_and_probs(given["logits"], given["probs"])
        every = {**given, "logits": logits, "probs": probs}
        self._start(every, "logits", "probs", *others, kind=NOT_REPARAMETERIZED)
        self._parameters.update(logits=given["logits"], probs=given["probs"])


class Geometric(_OfChance):
    """The number of failures before the first success, of chance `probs`."""

    def __init__(
        self, logits: Any = None, probs: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self._start_of_chance(given)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.floor(tf.log(self._uniform(n, seed)) / tf.log1p(-self.probs))

    def _log_prob(self, x: Any) -> Any:
        return x * tf.log1p(-self.probs) + tf.log(self.probs)

    def _cdf(self, x: Any) -> Any:
        found = -tf.expm1((1.0 + tf.floor(x)) * tf.log1p(-self.probs))
        return tf.where(x + tf.zeros_like(found) < 0.0, tf.zeros_like(found), found)

    def _entropy(self) -> Any:
        return tf.nn.softplus(self.logits) / self.probs - self.logits

    def _mean(self) -> Any:
        return tf.exp(-self.logits)

    def _variance(self) -> Any:
        return self._mean() / self.probs

    def _mode(self) -> Any:
        return tf.zeros_like(self.probs)


class NegativeBinomial(_OfChance):
    """The number of successes, of chance `probs`, before `total_count` failures."""

    total_count: Any

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "NegativeBinomial",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self._start_of_chance(given, "total_count")

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        count, inverse = self._spread(self.total_count), self._spread(tf.exp(-self.logits))
        rate = tf.random_gamma([n], count, inverse, self._dtype, seed)
        return tf.random_poisson(rate, [], self._dtype, None if seed is None else seed + 1)

    def _log_prob(self, x: Any) -> Any:
        n = self.total_count
        chances = n * tf.log_sigmoid(-self.logits) + x * tf.log_sigmoid(self.logits)
        return chances + tf.lgamma(n + x) - tf.lgamma(1.0 + x) - tf.lgamma(n)

    def _cdf(self, x: Any) -> Any:
        shape = tf.shape(x + self._spread(0.0))
        count, more = tf.broadcast_to(self.total_count, shape), 1.0 + tf.maximum(tf.floor(x), 0.0)
        failure = tf.broadcast_to(tf.sigmoid(-self.logits), shape)
        found = tf.betainc(count, tf.broadcast_to(more, shape), failure)
        return tf.where(tf.broadcast_to(x, shape) < 0.0, tf.zeros_like(found), found)

    def _mean(self) -> Any:
        return self.total_count * tf.exp(self.logits)

    def _variance(self) -> Any:
        return self._mean() / tf.sigmoid(-self.logits)

    def _mode(self) -> Any:
        return tf.maximum(tf.floor((self.total_count - 1.0) * tf.exp(self.logits)), 0.0)


class Binomial(_OfChance):
    """The number of successes, of chance `probs`, in `total_count` trials."""

    total_count: Any

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Binomial",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self._start_of_chance(given, "total_count")

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        trials = tf.cast(tf.reduce_max(self.total_count), dtypes.int32)
        shape = tf.concat([[n], self._batch_shape_tensor(), [trials]], 0)
        wins = tf.random_uniform(shape, dtype=self._dtype, seed=seed) < tf.expand_dims(self.probs, -1)
        counted = tf.cast(tf.range(trials), self._dtype) < tf.expand_dims(self.total_count, -1)
        return tf.reduce_sum(tf.cast(tf.logical_and(wins, counted), self._dtype), -1)

    def _log_prob(self, x: Any) -> Any:
        n = self.total_count
        ways = tf.lgamma(1.0 + n) - tf.lgamma(1.0 + x) - tf.lgamma(1.0 + n - x)
        return ways + x * tf.log(self.probs) + (n - x) * tf.log1p(-self.probs)

    def _mean(self) -> Any:
        return self.total_count * self.probs

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Any:
        return tf.floor((1.0 + self.total_count) * self.probs)


class _OfClasses(Distribution):
    """A distribution over vectors of `k` classes, of chances [..., k]."""

    _event_dims = 1
    logits: Any
    probs: Any

    def _batch_shape(self) -> Any:
        return self.logits.shape[:-1]

    def _event_shape(self) -> Any:
        return self.logits.shape[-1:]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.logits)[:-1]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.logits)[-1:]

    @property
    def event_size(self) -> Any:
        """The number of classes, an int32 scalar."""
        return tf.shape(self.logits)[-1]


class OneHotCategorical(_OfClasses):
    """One of `k` classes, as a vector with a single one."""

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = dtypes.int32, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "OneHotCategorical",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.logits, self.probs = logits_and_probs(logits, probs, classes=True)
        self._begin(dtypes.as_dtype(dtype), NOT_REPARAMETERIZED, given)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        flat = tf.reshape(self.logits, [-1, self.event_size])
        drawn = tf.transpose(tf.multinomial(flat, n, seed))
        whole = tf.one_hot(drawn, self.event_size, dtype=self._dtype)
        return tf.reshape(whole, tf.concat([[n], tf.shape(self.logits)], 0))

    def _log_prob(self, x: Any) -> Any:
        return tf.reduce_sum(tf.cast(x, self.logits.dtype) * tf.nn.log_softmax(self.logits), -1)

    def _entropy(self) -> Any:
        return -tf.reduce_sum(self.probs * tf.nn.log_softmax(self.logits), -1)

    def _mean(self) -> Any:
        return tf.identity(self.probs)

    def _mode(self) -> Any:
        return tf.one_hot(tf.argmax(self.logits, -1), self.event_size, dtype=self._dtype)

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _covariance(self) -> Any:
        outer = tf.expand_dims(self.probs, -1) * tf.expand_dims(self.probs, -2)
        return tf.matrix_set_diag(-outer, self._variance())


class ExpRelaxedOneHotCategorical(_OfClasses):
    """The logarithm of RelaxedOneHotCategorical."""

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, dtype: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.logits, self.probs = logits_and_probs(logits, probs, classes=True)
        self.temperature = tf.convert_to_tensor(temperature, self.logits.dtype)
        self._begin(self.logits.dtype, FULLY_REPARAMETERIZED, given)

    def _warm(self) -> Any:
        return tf.expand_dims(self.temperature, -1) if self.temperature.shape.ndims else self.temperature

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        low = self._dtype.as_numpy_dtype(1e-37)
        drawn = tf.random_uniform(tf.concat([[n], tf.shape(self.logits)], 0), low, 1.0, self._dtype, seed)
        return tf.nn.log_softmax((self.logits - tf.log(-tf.log(drawn))) / self._warm())

    def _log_prob(self, x: Any) -> Any:
        size = tf.cast(self.event_size, self._dtype)
        whole = tf.reduce_sum(tf.nn.log_softmax(self.logits - x * self._warm()), -1)
        return whole + tf.lgamma(size) + tf.log(self.temperature) * (size - 1.0)


class RelaxedOneHotCategorical(TransformedDistribution):
    """One of `k` classes as a vector of a softmax; the lower the temperature, the nearer to a single one."""

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, dtype: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "RelaxedOneHotCategorical",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        inner = ExpRelaxedOneHotCategorical(temperature, logits, probs, dtype, validate_args, allow_nan_stats)
        super().__init__(inner, Exp(), validate_args=validate_args, name=name)
        self.temperature, self.logits, self.probs = inner.temperature, inner.logits, inner.probs
        self._parameters = given


class RelaxedBernoulli(TransformedDistribution):
    """A number in (0, 1); the lower the temperature, the nearer to 0 or 1."""

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "RelaxedBernoulli",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.logits, self.probs = logits_and_probs(logits, probs)
        self.temperature = tf.convert_to_tensor(temperature, self.logits.dtype)
        inner = Logistic(self.logits / self.temperature, 1.0 / self.temperature)
        super().__init__(inner, Sigmoid(), validate_args=validate_args, name=name)
        self._parameters = given


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_one_hot_categorical"):
        return tf.reduce_sum(a.probs * (tf.nn.log_softmax(a.logits) - tf.nn.log_softmax(b.logits)), -1)


@RegisterKL(Poisson, Poisson)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_poisson_poisson"):
        return a.rate * (a.log_rate - b.log_rate) - a.rate + b.rate
