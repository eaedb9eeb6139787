"""The namespace tf.math. Only re-exports functions of `ops/math`, `ops/segment` and `ops/special`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops import special  # noqa: F401
from dtf.build.ops.activations import log_softmax, softmax, softplus, softsign  # noqa: F401
from dtf.build.ops.check_ops import is_non_decreasing, is_strictly_increasing  # noqa: F401
from dtf.build.ops.confusion_matrix import confusion_matrix  # noqa: F401
from dtf.build.ops.counting import *  # noqa: F403
from dtf.build.ops.math import *  # noqa: F403
from dtf.build.ops.nn import in_top_k, top_k, zero_fraction  # noqa: F401
from dtf.build.ops.normalization import l2_normalize  # noqa: F401
from dtf.build.ops.rearranging import invert_permutation  # noqa: F401
from dtf.build.ops.reductions import *  # noqa: F403
from dtf.build.ops.segment import *  # noqa: F403
from dtf.build.ops.special import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, lbeta  # noqa: F401

__getattr__ = _late.refusals(__name__)
