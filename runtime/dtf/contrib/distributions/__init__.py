"""tf.contrib.distributions: the distributions of tf.distributions under their older place, and many more.

    action = tf.contrib.distributions.MultivariateNormalTriL(mu, scale_tril)
    prior = tf.contrib.distributions.MixtureSameFamily(tf.distributions.Categorical(logits), Normal(mu, sigma))
    positive = tf.contrib.distributions.TransformedDistribution(Normal(0.0, 1.0), bijectors.Exp())

Only re-exports names: `scalars`, `counts`, `vectors` and `combined` have the distributions, `bijectors` the invertible
functions. Flows of neural networks (MaskedAutoregressiveFlow, RealNVP), Empirical and the quadrature compounds are not
here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions
"""

# ruff: noqa: F403

from __future__ import annotations

from typing import Any

from dtf.contrib.distributions import bijectors  # noqa: F401
from dtf.contrib.distributions.combined import *
from dtf.contrib.distributions.counts import *
from dtf.contrib.distributions.scalars import *
from dtf.contrib.distributions.triangles import *
from dtf.contrib.distributions.vectors import *
from dtf.distributions import *
from dtf.distributions import kl_divergence


def kl(dist_a: Any, dist_b: Any, allow_nan: bool = False, name: str | None = None) -> Any:
    """The older name of `kl_divergence`."""
    return kl_divergence(dist_a, dist_b, allow_nan, name)
