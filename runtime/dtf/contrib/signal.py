"""tf.contrib.signal: tf.signal under its older place."""

from __future__ import annotations

from dtf.signal import *  # noqa: F403
