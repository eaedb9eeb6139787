"""The public names of tf.train.experimental.

Only re-exports names.
"""

# ruff: noqa: F401
from __future__ import annotations

from dtf import late as _late
from dtf.train.loss_scale import (
    DynamicLossScale,
    FixedLossScale,
    LossScale,
    MixedPrecisionLossScaleOptimizer,
    disable_mixed_precision_graph_rewrite,
    enable_mixed_precision_graph_rewrite,
)

__getattr__ = _late.refusals(__name__)
