"""tf.contrib.distributions: distributions made of others: transformed, mixed, joined, and rounded to integers.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions/TransformedDistribution
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dtf as tf
from dtf.contrib.distributions.bijectors import Bijector, Identity
from dtf.distributions import NOT_REPARAMETERIZED, Distribution, Normal, RegisterKL, kl_divergence

__all__ = [
    "BatchReshape", "ConditionalDistribution", "ConditionalTransformedDistribution", "Independent", "Mixture",
    "MixtureSameFamily", "QuantizedDistribution", "SinhArcsinh", "TransformedDistribution",
]  # fmt: skip

ConditionalDistribution = Distribution


class TransformedDistribution(Distribution):
    """The distribution of bijector(x), with x of another distribution.

    Args:
      distribution: of x.
      bijector: the function; the identity by default.
      batch_shape, event_shape: the shapes of x, where `distribution` is of scalars; its own by default.
    """

    def __init__(
        self, distribution: Any, bijector: Bijector | None = None, batch_shape: Any = None, event_shape: Any = None,
        validate_args: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.distribution, self.bijector = distribution, Identity() if bijector is None else bijector
        self._own_batch = None if batch_shape is None else [int(each) for each in np.atleast_1d(batch_shape)]
        self._own_event = None if event_shape is None else [int(each) for each in np.atleast_1d(event_shape)]
        name = name or f"{self.bijector.name}{type(distribution).__name__}"
        self._begin(
            distribution.dtype, distribution.reparameterization_type, {**given, "name": name, "allow_nan_stats": True}
        )
        self._parameters = given

    @property
    def _inner_event(self) -> Any:
        event = self.distribution.event_shape
        return event if self._own_event is None else tf.TensorShape(self._own_event).concatenate(event)

    def _event_shape(self) -> Any:
        return self.bijector.forward_event_shape(self._inner_event)

    def _batch_shape(self) -> Any:
        return self.distribution.batch_shape if self._own_batch is None else tf.TensorShape(self._own_batch)

    def _event_shape_tensor(self) -> Any:
        inner = self.distribution.event_shape_tensor()
        if self._own_event is not None:
            inner = tf.concat([self._own_event, inner], 0)
        return self.bijector.forward_event_shape_tensor(inner)

    def _batch_shape_tensor(self) -> Any:
        return self.distribution.batch_shape_tensor() if self._own_batch is None else self._own_batch

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        extra = [*(self._own_batch or ()), *(self._own_event or ())]
        return self.bijector.forward(self.distribution.sample([n, *extra] if extra else tf.reshape(n, [1]), seed))

    def _log_prob(self, y: Any) -> Any:
        x = self.bijector.inverse(y)
        dims = self._event_shape().ndims
        event = max(self.bijector.inverse_min_event_ndims, dims or 0)
        determinant = self.bijector.inverse_log_det_jacobian(y, event)
        several = x if isinstance(x, tuple) else (x,)
        found = [self._summed(self.distribution.log_prob(each)) + determinant for each in several]
        return found[0] if len(found) == 1 else tf.reduce_logsumexp(tf.stack(found), 0)

    def _summed(self, log_prob: Any) -> Any:
        """The logarithms of scalars that make one event."""
        own = self._inner_event.ndims - self.distribution.event_shape.ndims
        return tf.reduce_sum(log_prob, list(range(-own, 0))) if own else log_prob

    def _cdf(self, y: Any) -> Any:
        if self._event_shape().ndims:
            raise NotImplementedError
        return self.distribution.cdf(self.bijector.inverse(y))

    def _quantile(self, p: Any) -> Any:
        if self._event_shape().ndims:
            raise NotImplementedError
        return self.bijector.forward(self.distribution.quantile(p))

    def _entropy(self) -> Any:
        if not self.bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        entropy = self.distribution.entropy()
        own = self._inner_event.ndims - self.distribution.event_shape.ndims
        if own:
            entropy = entropy * float(np.prod(self._own_event or [1]))
        zero = tf.zeros(self._inner_event.as_list(), self.dtype)
        return entropy + self.bijector.forward_log_det_jacobian(zero, self._inner_event.ndims)

    def _mean(self) -> Any:
        if not self.bijector.is_constant_jacobian:
            raise NotImplementedError("mean is not implemented for non-affine bijectors")
        return self.bijector.forward(self.distribution.mean())


ConditionalTransformedDistribution = TransformedDistribution


class SinhArcsinh(TransformedDistribution):
    """A normal number that went through sinh((arcsinh(x) + skewness) * tailweight), with its own place and width."""

    def __init__(
        self, loc: Any, scale: Any, skewness: Any = None, tailweight: Any = None, distribution: Any = None,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "SinhArcsinh",
    ) -> None:  # fmt: skip
        from dtf.contrib.distributions import bijectors

        given = {key: value for key, value in locals().items() if key not in ("self", "__class__", "bijectors")}
        self.loc, self.scale = tf.convert_to_tensor(loc), tf.convert_to_tensor(scale)
        self.skewness = tf.convert_to_tensor(0.0 if skewness is None else skewness, self.loc.dtype)
        self.tailweight = tf.convert_to_tensor(1.0 if tailweight is None else tailweight, self.loc.dtype)
        zero = self.loc + self.scale + self.skewness + self.tailweight
        if distribution is None:
            distribution = Normal(tf.zeros_like(zero), tf.ones_like(zero))
        curve = bijectors.SinhArcsinh(self.skewness, self.tailweight)
        factor = self.scale * (2.0 / bijectors.SinhArcsinh(0.0, self.tailweight).forward(tf.constant(2.0, zero.dtype)))
        chain = bijectors.Chain([bijectors.AffineScalar(self.loc, factor), curve])
        super().__init__(distribution, chain, validate_args=validate_args, name=name)
        self._parameters = given


class Independent(Distribution):
    """A distribution whose last batch dimensions are parts of one event.

    Args:
      distribution: the distribution of the parts.
      reinterpreted_batch_ndims: how many batch dimensions; all but the first by default.
    """

    def __init__(
        self, distribution: Any, reinterpreted_batch_ndims: int | None = None, validate_args: bool = False,
        name: str | None = None,
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        rank = distribution.batch_shape.ndims
        self.distribution = distribution
        self.reinterpreted_batch_ndims: int = (
            max(0, rank - 1) if reinterpreted_batch_ndims is None else int(reinterpreted_batch_ndims)
        )
        if rank is not None and self.reinterpreted_batch_ndims > rank:
            raise ValueError(
                f"reinterpreted_batch_ndims({self.reinterpreted_batch_ndims}) cannot exceed "
                f"distribution.batch_ndims({rank})"
            )
        name = name or f"Independent{type(distribution).__name__}"
        more = {"name": name, "allow_nan_stats": distribution.allow_nan_stats}
        self._begin(distribution.dtype, distribution.reparameterization_type, {**given, **more})
        self._parameters = given

    def _place(self) -> int:
        return self.distribution.batch_shape.ndims - self.reinterpreted_batch_ndims

    def _batch_shape(self) -> Any:
        return self.distribution.batch_shape[: self._place()]

    def _event_shape(self) -> Any:
        return self.distribution.batch_shape[self._place() :].concatenate(self.distribution.event_shape)

    def _batch_shape_tensor(self) -> Any:
        return self.distribution.batch_shape_tensor()[: self._place()]

    def _event_shape_tensor(self) -> Any:
        inner = self.distribution
        return tf.concat([inner.batch_shape_tensor()[self._place() :], inner.event_shape_tensor()], 0)

    def _summed(self, value: Any) -> Any:
        count = self.reinterpreted_batch_ndims
        return tf.reduce_sum(value, list(range(-count, 0))) if count else value

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self.distribution.sample(tf.reshape(n, [1]), seed)

    def _log_prob(self, x: Any) -> Any:
        return self._summed(self.distribution.log_prob(x))

    def _entropy(self) -> Any:
        return self._summed(self.distribution.entropy())

    def _mean(self) -> Any:
        return self.distribution.mean()

    def _mode(self) -> Any:
        return self.distribution.mode()

    def _variance(self) -> Any:
        return self.distribution.variance()

    def _stddev(self) -> Any:
        return self.distribution.stddev()


@RegisterKL(Independent, Independent)
def _(a: Any, b: Any, name: str | None = None) -> Any:
    if a.event_shape.as_list() != b.event_shape.as_list():
        raise ValueError("KL between Independents that have different event shapes is not supported.")
    with tf.name_scope(name, "kl_independent"):
        return a._summed(kl_divergence(a.distribution, b.distribution))


class BatchReshape(Distribution):
    """A distribution whose batch dimensions have another shape."""

    def __init__(
        self, distribution: Any, batch_shape: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.distribution = distribution
        count = distribution.batch_shape.num_elements()
        sizes = [int(each) for each in np.atleast_1d(batch_shape)]
        if -1 in sizes:
            sizes[sizes.index(-1)] = count // int(-np.prod(sizes))
        if count is not None and int(np.prod(sizes)) != count:
            raise ValueError(f"`batch_shape` size ({int(np.prod(sizes))}) must match the batch's {count} distributions")
        self._sizes = sizes
        self._begin(
            distribution.dtype, distribution.reparameterization_type,
            {**given, "name": name or f"BatchReshape{type(distribution).__name__}"},
        )  # fmt: skip

    def _batch_shape(self) -> Any:
        return tf.TensorShape(self._sizes)

    def _event_shape(self) -> Any:
        return self.distribution.event_shape

    def _batch_shape_tensor(self) -> Any:
        return self._sizes

    def _event_shape_tensor(self) -> Any:
        return self.distribution.event_shape_tensor()

    def _outwards(self, value: Any, event: bool) -> Any:
        """A value of the inner batch shape in the outer one."""
        inner = self.distribution
        dims = inner.event_shape.ndims if event else 0
        rank = value.shape.ndims - inner.batch_shape.ndims - dims
        shape = tf.shape(value)
        end = shape[value.shape.ndims - dims :]
        return tf.reshape(value, tf.concat([shape[:rank], self._sizes, end], 0))

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._outwards(self.distribution.sample(tf.reshape(n, [1]), seed), True)

    def _inside(self, formula: Any, x: Any) -> Any:
        inner, dims = self.distribution, self.distribution.event_shape.ndims
        whole = tf.concat([self._sizes, inner.event_shape_tensor()], 0)
        x = x + tf.zeros(whole, x.dtype)
        rank = x.shape.ndims - len(self._sizes) - dims
        shape = tf.shape(x)
        x = tf.reshape(x, tf.concat([shape[:rank], inner.batch_shape_tensor(), shape[x.shape.ndims - dims :]], 0))
        return self._outwards(formula(x), False)

    def _log_prob(self, x: Any) -> Any:
        return self._inside(self.distribution.log_prob, x)

    def _cdf(self, x: Any) -> Any:
        return self._inside(self.distribution.cdf, x)

    def _entropy(self) -> Any:
        return self._outwards(self.distribution.entropy(), False)

    def _mean(self) -> Any:
        return self._outwards(self.distribution.mean(), True)

    def _mode(self) -> Any:
        return self._outwards(self.distribution.mode(), True)

    def _variance(self) -> Any:
        return self._outwards(self.distribution.variance(), True)


def _last(value: Any, dims: int) -> Any:
    """A value [...] with further dimensions of size 1 at the end."""
    for _ in range(dims):
        value = tf.expand_dims(value, -1)
    return value


class Mixture(Distribution):
    """One of several distributions, chosen by a Categorical.

    Args:
      cat: the Categorical over the components.
      components: distributions of one dtype, batch shape and event shape.

    Raises:
      TypeError: `cat` is not a Categorical, or a component is not a distribution.
      ValueError: there are no components, or not as many as classes.
    """

    def __init__(
        self, cat: Any, components: Sequence[Any], validate_args: bool = False, allow_nan_stats: bool = True,
        use_static_graph: bool = False, name: str = "Mixture",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        if not isinstance(cat, tf.distributions.Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        if not all(isinstance(each, Distribution) for each in components):
            raise TypeError(f"all components must be Distribution instances, but saw: {components}")
        dtypes_ = {each.dtype for each in components}
        if len(dtypes_) > 1:
            raise TypeError(f"All components must have the same dtype, but saw dtypes: {dtypes_}")
        count = cat.logits.shape[-1].value
        if count is not None and count != len(components):
            raise ValueError(f"cat.num_classes != len(components): {count} vs. {len(components)}")
        self.cat, self.components, self.num_components = cat, list(components), len(components)
        self._begin(components[0].dtype, NOT_REPARAMETERIZED, given)

    def _batch_shape(self) -> Any:
        return self.components[0].batch_shape

    def _event_shape(self) -> Any:
        return self.components[0].event_shape

    def _batch_shape_tensor(self) -> Any:
        return self.components[0].batch_shape_tensor()

    def _event_shape_tensor(self) -> Any:
        return self.components[0].event_shape_tensor()

    def _logs(self) -> list[Any]:
        return tf.unstack(tf.cast(tf.nn.log_softmax(self.cat.logits), self._dtype), num=self.num_components, axis=-1)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        chosen = self.cat.sample(tf.reshape(n, [1]), seed)
        dims = self._event_shape().ndims
        drawn = [
            each.sample(tf.reshape(n, [1]), None if seed is None else seed + 1 + number)
            for number, each in enumerate(self.components)
        ]
        result = drawn[0]
        for number, each in enumerate(drawn[1:], 1):
            is_own = _last(tf.equal(chosen, number), dims)
            result = tf.where(tf.broadcast_to(is_own, tf.shape(each)), each, result)
        return result

    def _log_prob(self, x: Any) -> Any:
        parts = [log + each.log_prob(x) for log, each in zip(self._logs(), self.components, strict=True)]
        return tf.reduce_logsumexp(tf.stack(parts), 0)

    def _cdf(self, x: Any) -> Any:
        return tf.add_n([tf.exp(log) * each.cdf(x) for log, each in zip(self._logs(), self.components, strict=True)])

    def _weighted(self, values: list[Any]) -> Any:
        dims = self._event_shape().ndims
        return tf.add_n([_last(tf.exp(log), dims) * each for log, each in zip(self._logs(), values, strict=True)])

    def _mean(self) -> Any:
        return self._weighted([each.mean() for each in self.components])

    def _variance(self) -> Any:
        squares = [each.variance() + tf.square(each.mean()) for each in self.components]
        return self._weighted(squares) - tf.square(self._mean())

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Any:
        """The mean of the components' entropies, which is not above the entropy."""
        with self._scope(name):
            entropies = [each.entropy() for each in self.components]
            return tf.add_n([tf.exp(log) * each for log, each in zip(self._logs(), entropies, strict=True)])


class MixtureSameFamily(Distribution):
    """One of the distributions along the last batch dimension of a distribution, chosen by a Categorical."""

    def __init__(
        self, mixture_distribution: Any, components_distribution: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MixtureSameFamily",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.mixture_distribution, self.components_distribution = mixture_distribution, components_distribution
        one, other = mixture_distribution.logits.shape[-1].value, components_distribution.batch_shape[-1].value
        if one is not None and other is not None and one != other:
            raise ValueError(f"`mixture_distribution` components ({one}) does not equal "
                             f"`components_distribution.batch_shape[-1]` ({other})")  # fmt: skip
        self._begin(components_distribution.dtype, NOT_REPARAMETERIZED, given)

    def _batch_shape(self) -> Any:
        return self.components_distribution.batch_shape[:-1]

    def _event_shape(self) -> Any:
        return self.components_distribution.event_shape

    def _batch_shape_tensor(self) -> Any:
        return self.components_distribution.batch_shape_tensor()[:-1]

    def _event_shape_tensor(self) -> Any:
        return self.components_distribution.event_shape_tensor()

    def _logs(self) -> Any:
        return tf.cast(tf.nn.log_softmax(self.mixture_distribution.logits), self._dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = self.components_distribution.sample(tf.reshape(n, [1]), seed)
        count = self.components_distribution.batch_shape[-1].value
        shape = tf.concat([tf.reshape(n, [1]), self._batch_shape_tensor(), [count]], 0)
        logits = tf.reshape(tf.broadcast_to(self.mixture_distribution.logits, shape), [-1, count])
        chosen = tf.reshape(tf.multinomial(logits, 1, None if seed is None else seed + 1), shape[:-1])
        dims = self._event_shape().ndims
        mask = _last(tf.one_hot(chosen, count, dtype=self._dtype), dims)
        return tf.reduce_sum(drawn * mask, -1 - dims)

    def _log_prob(self, x: Any) -> Any:
        inner = tf.expand_dims(x, -1 - self._event_shape().ndims)
        return tf.reduce_logsumexp(self._logs() + self.components_distribution.log_prob(inner), -1)

    def _cdf(self, x: Any) -> Any:
        inner = tf.expand_dims(x, -1 - self._event_shape().ndims)
        return tf.reduce_sum(tf.exp(self._logs()) * self.components_distribution.cdf(inner), -1)

    def _weighted(self, values: Any) -> Any:
        dims = self._event_shape().ndims
        return tf.reduce_sum(_last(tf.exp(self._logs()), dims) * values, -1 - dims)

    def _mean(self) -> Any:
        return self._weighted(self.components_distribution.mean())

    def _variance(self) -> Any:
        inner = self.components_distribution
        return self._weighted(inner.variance() + tf.square(inner.mean())) - tf.square(self._mean())


class QuantizedDistribution(Distribution):
    """The ceiling of samples of a distribution: integers, cut off at `low` and `high`."""

    def __init__(
        self, distribution: Any, low: Any = None, high: Any = None, validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:  # fmt: skip
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        self.distribution = distribution
        self.low = None if low is None else tf.convert_to_tensor(low, distribution.dtype)
        self.high = None if high is None else tf.convert_to_tensor(high, distribution.dtype)
        self._begin(distribution.dtype, NOT_REPARAMETERIZED, {**given, "allow_nan_stats": True})
        self._parameters = given

    def _batch_shape(self) -> Any:
        return self.distribution.batch_shape

    def _event_shape(self) -> Any:
        return self.distribution.event_shape

    def _batch_shape_tensor(self) -> Any:
        return self.distribution.batch_shape_tensor()

    def _event_shape_tensor(self) -> Any:
        return self.distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        found = tf.ceil(self.distribution.sample(tf.reshape(n, [1]), seed))
        found = found if self.low is None else tf.maximum(found, self.low)
        return found if self.high is None else tf.minimum(found, self.high)

    def _cut(self, y: Any, found: Any, below: float, above: float) -> Any:
        """A probability, and its values where y is outside of the bounds."""
        if self.low is not None:
            found = tf.where(tf.broadcast_to(y < self.low, tf.shape(found)), below * tf.ones_like(found), found)
        if self.high is not None:
            found = tf.where(tf.broadcast_to(y >= self.high, tf.shape(found)), above * tf.ones_like(found), found)
        return found

    def _cdf(self, y: Any) -> Any:
        y = tf.floor(y)
        return self._cut(y, self.distribution.cdf(y), 0.0, 1.0)

    def _above(self, y: Any) -> Any:
        return self._cut(y, self.distribution.survival_function(y), 1.0, 0.0)

    def _prob(self, y: Any) -> Any:
        up, down = self._cdf(y), self._cdf(y - 1.0)
        over, under = self._above(y), self._above(y - 1.0)
        return tf.where(over < up, under - over, up - down)
