"""The namespace tf.random. Only re-exports functions of `ops/random` and `ops/candidate_sampling`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from dtf.build.ops.random import (
    categorical,
    get_seed,
    multinomial,
    set_random_seed,
    stateless_binomial,
    stateless_categorical,
    stateless_gamma,
    stateless_multinomial,
    stateless_normal,
    stateless_poisson,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
)
from dtf.build.ops.random import random_gamma as gamma
from dtf.build.ops.random import random_normal as normal
from dtf.build.ops.random import random_poisson as poisson
from dtf.build.ops.random import random_shuffle as shuffle
from dtf.build.ops.random import random_uniform as uniform

#: Names of the generators, imported at their first use.
_GENERATORS = (
    "Algorithm", "Generator", "create_rng_state", "fold_in", "get_global_generator", "set_global_generator", "split",
)  # fmt: skip

__all__ = [
    "all_candidate_sampler", "categorical", "fixed_unigram_candidate_sampler", "gamma", "get_seed",
    "learned_unigram_candidate_sampler", "log_uniform_candidate_sampler", "multinomial", "normal", "poisson",
    "set_random_seed", "shuffle", "stateless_binomial", "stateless_categorical", "stateless_gamma",
    "stateless_multinomial", "stateless_normal", "stateless_poisson", "stateless_truncated_normal",
    "stateless_uniform", "truncated_normal", "uniform", "uniform_candidate_sampler",
]  # fmt: skip

__getattr__, __dir__ = _late.names(
    globals(),
    dict.fromkeys(_GENERATORS, "dtf.build.ops.random_generators"),
    {"experimental": "dtf.random.experimental"},
)
