"""The namespace tf.debugging. Owns nothing: the functions are those of `ops/check_ops`, `ops/array`, `ops/math`."""

from __future__ import annotations

from dtf.build.ops.array import check_numerics  # noqa: F401
from dtf.build.ops.check_ops import *  # noqa: F403
from dtf.build.ops.control_flow import Assert  # noqa: F401
from dtf.build.ops.math import is_finite, is_inf, is_nan  # noqa: F401
