"""The namespace tf.math. Owns nothing: the functions are those of `ops/math`."""

from __future__ import annotations

from dtf.ops.math import *  # noqa: F403
from dtf.ops.nn import in_top_k, log_softmax, softmax, softplus, softsign, top_k  # noqa: F401
