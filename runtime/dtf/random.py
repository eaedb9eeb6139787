"""The namespace tf.random. Owns nothing: the functions are those of `ops/random`."""

from __future__ import annotations

from dtf.build.ops.random import (
    categorical,
    get_seed,
    multinomial,
    set_random_seed,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
)
from dtf.build.ops.random import random_gamma as gamma
from dtf.build.ops.random import random_normal as normal
from dtf.build.ops.random import random_poisson as poisson
from dtf.build.ops.random import random_shuffle as shuffle
from dtf.build.ops.random import random_uniform as uniform

__all__ = [
    "categorical", "gamma", "get_seed", "multinomial", "normal", "poisson", "set_random_seed", "shuffle",
    "stateless_normal", "stateless_truncated_normal", "stateless_uniform", "truncated_normal", "uniform",
]  # fmt: skip
