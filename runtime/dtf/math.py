"""The namespace tf.math. Owns nothing: the functions are those of `ops/math` and `ops/segment`."""

from __future__ import annotations

from dtf.build.ops.math import *  # noqa: F403
from dtf.build.ops.nn import (  # noqa: F401
    in_top_k,
    l2_normalize,
    log_softmax,
    softmax,
    softplus,
    softsign,
    top_k,
    zero_fraction,
)
from dtf.build.ops.segment import *  # noqa: F403
