"""The namespace tf.ragged. Only re-exports functions of `ops/ragged_functions`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.ragged_functions import *  # noqa: F403
from dtf.build.ragged import RaggedTensorValue  # noqa: F401

__getattr__ = _late.refusals(__name__)
