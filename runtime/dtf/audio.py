"""The namespace tf.audio. Owns nothing: the functions are those of `ops/audio`."""

from __future__ import annotations

from dtf.build.ops.audio import *  # noqa: F403
