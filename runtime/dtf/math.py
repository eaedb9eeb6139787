"""The namespace tf.math. Owns nothing: the functions are those of `ops/math`, `ops/segment` and `ops/special`."""

from __future__ import annotations

from dtf.build.ops import special  # noqa: F401
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
from dtf.build.ops.special import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e  # noqa: F401
