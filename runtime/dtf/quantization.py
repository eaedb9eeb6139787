"""The namespace tf.quantization, as far as it simulates. Owns nothing: the functions are those of `ops/fake_quant`."""

from __future__ import annotations

from dtf.build.ops.fake_quant import *  # noqa: F403
