"""Distributions over numbers of a finite set, and over counts of them."""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.activations import log_softmax, softmax, softplus
from dtf.build.ops.array import identity, reshape, shape_of
from dtf.build.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from dtf.build.ops.diagonals import matrix_set_diag
from dtf.build.ops.filling import one_hot, ones_like, zeros_like
from dtf.build.ops.joining import concat
from dtf.build.ops.math import cast, lgamma, log, log1p, sigmoid
from dtf.build.ops.random import multinomial, random_gamma, random_uniform
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.reductions import argmax, reduce_sum
from dtf.build.ops.special import lbeta
from dtf.build.tensor import Tensor
from dtf.distributions.base import NOT_REPARAMETERIZED, Distribution
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape


def _logits_and_probs(
    owner: Distribution, logits: Any, probs: Any, multidimensional: bool, name: str
) -> tuple[Tensor, Tensor]:
    """Returns both forms (logits, probabilities) from the one that is given.

    Raises:
      ValueError: neither or both are given.
    """
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both.")
    with name_scope(name) as owner._opened:
        if probs is None:
            logits = convert_to_tensor(logits, name="logits")
            return logits, softmax(logits) if multidimensional else sigmoid(logits)
        probs = convert_to_tensor(probs, name="probs")
        return (log(probs) if multidimensional else log(probs) - log1p(-probs)), probs


class Bernoulli(Distribution):
    """1 with a given probability, otherwise 0.

    Args:
      logits: the logarithm of the odds of 1.
      probs: the probability of 1, in place of `logits`.
      dtype: the dtype of samples.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        given = dict(locals())
        self._logits, self._probs = _logits_and_probs(self, logits, probs, False, name)
        self._begin(dtypes.as_dtype(dtype), NOT_REPARAMETERIZED, given)

    @property
    def logits(self) -> Tensor:
        """The logarithm of the odds of 1."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self._probs

    def _value_dtype(self) -> Any:
        return None

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._logits)

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        drawn = random_uniform(concat([[n], shape_of(self._probs)], 0), dtype=self._probs.dtype, seed=seed)
        return cast(drawn < self._probs, self._dtype)

    def _log_prob(self, event: Tensor) -> Tensor:
        event = cast(event, self._logits.dtype)
        zeros = zeros_like(event + self._logits)
        return -sigmoid_cross_entropy_with_logits(labels=event + zeros, logits=self._logits + zeros)

    def _entropy(self) -> Tensor:
        return -self._logits * (sigmoid(self._logits) - 1.0) + softplus(-self._logits)

    def _mean(self) -> Tensor:
        return identity(self._probs)

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return cast(self._probs > 0.5, self._dtype)


class Categorical(Distribution):
    """A number of [0, k), each with a probability of its own.

    Args:
      logits: [..., k], logarithms of the probabilities up to a constant.
      probs: [..., k], the probabilities, in place of `logits`.
      dtype: the dtype of samples.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        given = dict(locals())
        self._logits, self._probs = _logits_and_probs(self, logits, probs, True, name)
        self._begin(dtypes.as_dtype(dtype), NOT_REPARAMETERIZED, given)

    @property
    def event_size(self) -> Tensor:
        """k, int32."""
        return shape_of(self._logits)[-1]

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities up to a constant."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._probs

    def _value_dtype(self) -> Any:
        return None

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._logits)[:-1]

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        flat = self._logits if self._logits.shape.ndims == 2 else reshape(
            self._logits, concat([[-1], [self.event_size]], 0)
        )
        drawn = transpose(cast(multinomial(flat, n, seed=seed), self._dtype))
        return reshape(drawn, concat([[n], self._batch_shape_tensor()], 0))

    def _log_prob(self, k: Tensor) -> Tensor:
        k = cast(k, dtypes.int32) if not k.dtype.is_integer else k
        logits = self._logits
        if not k.shape.is_fully_defined() or logits.shape.ndims is None or k.shape != logits.shape[:-1]:
            zeros = zeros_like(cast(k, logits.dtype)) + reduce_sum(zeros_like(logits), -1)
            k = k + cast(zeros, k.dtype)
            logits = logits + zeros[..., None]
        return -sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _entropy(self) -> Tensor:
        return -reduce_sum(log_softmax(self._logits) * self._probs, -1)

    def _mode(self) -> Tensor:
        return cast(argmax(self._logits, -1), self._dtype)


class Multinomial(Distribution):
    """How often each of k numbers comes in `total_count` draws.

    Args:
      total_count: the number of draws, of a floating dtype.
      logits: [..., k], logarithms of the probabilities up to a constant.
      probs: [..., k], the probabilities, in place of `logits`.
    """

    _event_dims = 1

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        given = dict(locals())
        self._logits, self._probs = _logits_and_probs(self, logits, probs, True, name)
        with name_scope(self._opened):
            self._total_count = convert_to_tensor(total_count, self._logits.dtype, name="total_count")
        self._begin(self._probs.dtype, NOT_REPARAMETERIZED, given)

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total_count

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities up to a constant."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._probs

    def _means(self) -> Tensor:
        return self._probs * self._total_count[..., None]

    def _batch_shape(self) -> TensorShape:
        return self._means().shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._means())[:-1]

    def _event_shape(self) -> TensorShape:
        return self._probs.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self._probs)[-1:]

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        from dtf.build.ops.functional import map_fn

        k = shape_of(self._probs)[-1]
        whole = self._means()
        logits = reshape(self._logits + zeros_like(whole), concat([[-1], [k]], 0))
        counts = reshape(self._total_count + zeros_like(whole[..., 0]), [-1])

        def draw(row: Any) -> Tensor:
            drawn = multinomial(row[0][None], n * cast(row[1], dtypes.int32), seed=seed)
            return reduce_sum(one_hot(reshape(drawn, concat([[n], [-1]], 0)), k, dtype=self._dtype), -2)

        drawn = map_fn(draw, [logits, counts], dtype=self._dtype)
        return reshape(transpose(drawn, [1, 0, 2]), concat([[n], self._batch_shape_tensor(), [k]], 0))

    def _log_prob(self, counts: Tensor) -> Tensor:
        return reduce_sum(counts * log_softmax(self._logits), -1) + _log_combinations(self._total_count, counts)

    def _mean(self) -> Tensor:
        return identity(self._means())

    def _variance(self) -> Tensor:
        return self._means() - self._means() * self._probs

    def _covariance(self) -> Tensor:
        mean = self._means()
        outer = -mean[..., None] * (self._probs * ones_like(mean))[..., None, :]
        return matrix_set_diag(outer, self._variance())


class DirichletMultinomial(Distribution):
    """A multinomial distribution whose probabilities are drawn from a Dirichlet distribution.

    Args:
      total_count: the number of draws, of a floating dtype.
      concentration: [..., k], the parameters of the Dirichlet distribution.
    """

    _event_dims = 1

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        given = dict(locals())
        with name_scope(name) as self._opened:
            self._concentration = convert_to_tensor(concentration, name="concentration")
            self._total_count = convert_to_tensor(total_count, self._concentration.dtype, name="total_count")
        self._begin(self._concentration.dtype, NOT_REPARAMETERIZED, given)

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total_count

    @property
    def concentration(self) -> Tensor:
        """The parameters of the Dirichlet distribution."""
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
        k = shape_of(self._concentration)[-1]
        draws = cast(self._total_count, dtypes.int32)
        gammas = random_gamma([n], self._concentration, dtype=self._dtype, seed=seed)
        drawn = multinomial(reshape(log(gammas), concat([[-1], [k]], 0)), draws, seed=seed)
        counts = reduce_sum(one_hot(drawn, k, dtype=self._dtype), -2)
        return reshape(counts, concat([[n], self._batch_shape_tensor(), [k]], 0))

    def _log_prob(self, counts: Tensor) -> Tensor:
        ordered = lbeta(self._concentration + counts) - lbeta(self._concentration)
        return ordered + _log_combinations(self._total_count, counts)

    def _parts(self) -> Tensor:
        return self._concentration / self.total_concentration[..., None]

    def _mean(self) -> Tensor:
        return self._total_count[..., None] * self._parts()

    def _scale(self) -> Tensor:
        total = self.total_concentration[..., None]
        return ((1.0 + total / self._total_count[..., None]) / (1.0 + total)) ** 0.5

    def _variance(self) -> Tensor:
        x = self._scale() * self._mean()
        return self._total_count[..., None] * x * (self._scale() - x / self._total_count[..., None])

    def _covariance(self) -> Tensor:
        x = self._scale() * self._mean()
        return matrix_set_diag(-x[..., None] * x[..., None, :], self._variance())


def _log_combinations(n: Tensor, counts: Tensor) -> Tensor:
    return lgamma(n + 1.0) - reduce_sum(lgamma(counts + 1.0), -1)
