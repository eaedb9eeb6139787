"""tf.contrib.distributions: the distributions of tf.distributions under their older place.

    action = tf.contrib.distributions.Normal(mu, sigma)

Only re-exports names. TensorFlow's other classes of this module, such as its bijectors and mixtures, are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions
"""

from __future__ import annotations

from typing import Any

from dtf import distributions, late

__all__ = list(distributions.__all__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(distributions, name)
    raise late.missing(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
