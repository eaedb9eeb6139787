"""The namespace tf.audio. Only re-exports functions of `ops/audio`."""

from __future__ import annotations

from dtf.build.ops.audio import *  # noqa: F403
