"""tf.keras.preprocessing: sequences of one length, and texts as numbers. Readers of images are left out."""

from __future__ import annotations

from dtf.keras.preprocessing import sequence, text

__all__ = ["sequence", "text"]
