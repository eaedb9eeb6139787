"""The namespace tf.quantization, as far as it simulates. Only re-exports functions of `ops/fake_quant`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.fake_quant import *  # noqa: F403

__getattr__ = _late.refusals(__name__)
