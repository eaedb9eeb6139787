"""tf.distributions: distributions whose parameters are tensors.

    action = tf.distributions.Normal(mu, sigma)
    loss = -action.log_prob(a) * advantage - 0.01 * action.entropy()

Only re-exports names: `base` has the class, `continuous` and `discrete` the distributions,
`kl_table` and `divergences` their distances.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/distributions
"""

from __future__ import annotations

from dtf.distributions import divergences as _divergences  # noqa: F401 fills the table
from dtf.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from dtf.distributions.continuous import Beta, Dirichlet, Exponential, Gamma, Laplace, Normal, StudentT, Uniform
from dtf.distributions.discrete import Bernoulli, Categorical, DirichletMultinomial, Multinomial
from dtf.distributions.kl_table import RegisterKL, kl_divergence

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "DirichletMultinomial", "Distribution", "Exponential",
    "FULLY_REPARAMETERIZED", "Gamma", "Laplace", "Multinomial", "NOT_REPARAMETERIZED", "Normal", "RegisterKL",
    "ReparameterizationType", "StudentT", "Uniform", "kl_divergence",
]  # fmt: skip
