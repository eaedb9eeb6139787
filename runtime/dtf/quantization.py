"""The namespace tf.quantization. Only re-exports functions of `ops/fake_quant` and `ops/quantization`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.fake_quant import *  # noqa: F403
from dtf.build.ops.quantization import dequantize, quantize, quantized_concat  # noqa: F401

__getattr__ = _late.refusals(__name__)
