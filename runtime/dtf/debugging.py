"""The namespace tf.debugging. Only re-exports functions of `ops/check_ops`, `ops/array`, `ops/math`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.array import check_numerics  # noqa: F401
from dtf.build.ops.check_ops import *  # noqa: F403
from dtf.build.ops.control_flow import Assert  # noqa: F401
from dtf.build.ops.math import is_finite, is_inf, is_nan  # noqa: F401
from dtf.build.ops.newer_names import assert_all_finite, assert_shapes  # noqa: F401

__getattr__ = _late.refusals(__name__)
