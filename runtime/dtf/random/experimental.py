"""The namespace tf.random.experimental. Only re-exports names of `ops/random_generators`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.random_generators import (  # noqa: F401
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
    stateless_shuffle,
)
from dtf.build.ops.random_generators import fold_in as stateless_fold_in  # noqa: F401
from dtf.build.ops.random_generators import split as stateless_split  # noqa: F401

__getattr__ = _late.refusals(__name__)
