"""tf.contrib.feature_column: sequence columns and the layer that uses them. Only re-exports names.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/feature_column
"""

from __future__ import annotations

from dtf import late as _late
from dtf.feature_column.sequence import *  # noqa: F403

__getattr__ = _late.refusals(__name__)
