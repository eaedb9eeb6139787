"""The namespace tf.signal. Owns nothing: the functions are those of `ops/signal` and `ops/spectral`."""

from __future__ import annotations

from dtf.build.ops.signal import *  # noqa: F403
from dtf.build.ops.spectral import *  # noqa: F403
