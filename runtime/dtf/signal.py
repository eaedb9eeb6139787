"""The namespace tf.signal. Only re-exports functions of `ops/signal` and `ops/spectral`."""

from __future__ import annotations

from dtf.build.ops.signal import *  # noqa: F403
from dtf.build.ops.spectral import *  # noqa: F403
