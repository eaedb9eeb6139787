"""How far distributions are from each other: `kl_divergence`, a table of formulas by two classes.

    @tf.distributions.RegisterKL(Mine, Yours)
    def _(mine, yours, name=None): ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dtf.build.default_graph import name_scope
from dtf.build.ops.activations import log_softmax, softplus
from dtf.build.ops.filling import ones_like
from dtf.build.ops.math import digamma, lgamma, log, logical_and, square
from dtf.build.ops.reductions import reduce_sum
from dtf.build.ops.searching import where
from dtf.build.ops.special import lbeta
from dtf.build.tensor import Tensor
from dtf.distributions.base import Distribution
from dtf.distributions.continuous import Beta, Dirichlet, Gamma, Normal, Uniform
from dtf.distributions.discrete import Bernoulli, Categorical

_Formula = Callable[..., Tensor]
_formulas: dict[tuple[type, type], _Formula] = {}


class RegisterKL:
    """Registers the decorated function as the divergence of two classes.

    Args:
      dist_cls_a: the class of the first distribution.
      dist_cls_b: the class of the second.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: _Formula) -> _Formula:
        """Adds the function to the table.

        Raises:
          TypeError: it cannot be called.
          ValueError: the classes have a formula already.
        """
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _formulas:
            raise ValueError(f"KL({self._key[0].__name__} || {self._key[1].__name__}) has already been registered")
        _formulas[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """The divergence of Kullback and Leibler, the mean of log(a / b) under a.

    Args:
      distribution_a, distribution_b: distributions whose classes have a formula.
      allow_nan_stats: accepted; undefined divergences are NaN.
      name: the name scope.

    Returns:
      A Tensor of the batch shape of both.

    Raises:
      NotImplementedError: the classes have no formula.
    """
    del allow_nan_stats
    for first in type(distribution_a).__mro__:
        for second in type(distribution_b).__mro__:
            if (first, second) in _formulas:
                with name_scope("KullbackLeibler"):
                    return _formulas[first, second](distribution_a, distribution_b, name=name)
    raise NotImplementedError(
        f"No KL(distribution_a || distribution_b) registered for {type(distribution_a).__name__} and "
        f"{type(distribution_b).__name__}"
    )


@RegisterKL(Normal, Normal)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_normal_normal"):
        ratio = square(a.scale) / square(b.scale)
        return square(a.loc - b.loc) / (2.0 * square(b.scale)) + 0.5 * (ratio - 1.0 - log(ratio))


@RegisterKL(Bernoulli, Bernoulli)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_bernoulli_bernoulli"):
        one = softplus(-b.logits) - softplus(-a.logits)
        other = softplus(b.logits) - softplus(a.logits)
        return a.probs * one + (1.0 - a.probs) * other


@RegisterKL(Categorical, Categorical)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical"):
        return reduce_sum(a.probs * (log_softmax(a.logits) - log_softmax(b.logits)), -1)


@RegisterKL(Uniform, Uniform)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_uniform_uniform"):
        found = log((b.high - b.low) / (a.high - a.low))
        return where(logical_and(b.low <= a.low, a.high <= b.high), found, math.inf * ones_like(found))


@RegisterKL(Gamma, Gamma)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * digamma(a.concentration)
            + lgamma(b.concentration) - lgamma(a.concentration)
            + b.concentration * log(a.rate) - b.concentration * log(b.rate)
            + a.concentration * (b.rate / a.rate - 1.0)
        )


@RegisterKL(Beta, Beta)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_beta_beta"):
        def difference(of: Callable[[Any], Tensor], what: str) -> Tensor:
            return of(getattr(b, what)) - of(getattr(a, what))

        names = "concentration1", "concentration0", "total_concentration"
        change = [getattr(a, each) - getattr(b, each) for each in names]
        digammas = [digamma(getattr(a, each)) for each in names]
        return (
            difference(lgamma, names[0]) + difference(lgamma, names[1]) - difference(lgamma, names[2])
            + digammas[0] * change[0] + digammas[1] * change[1] - digammas[2] * change[2]
        )


@RegisterKL(Dirichlet, Dirichlet)
def _(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_dirichlet_dirichlet"):
        weights = digamma(a.concentration) - digamma(a.total_concentration)[..., None]
        return reduce_sum((a.concentration - b.concentration) * weights, -1) - lbeta(a.concentration) + lbeta(
            b.concentration
        )
