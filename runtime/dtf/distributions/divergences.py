"""The formulas of `kl_divergence` for the distributions of this package."""

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
from dtf.distributions.continuous import Beta, Dirichlet, Gamma, Normal, Uniform
from dtf.distributions.discrete import Bernoulli, Categorical
from dtf.distributions.kl_table import RegisterKL


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
