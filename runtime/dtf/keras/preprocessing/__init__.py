"""tf.keras.preprocessing: sequences of one length, texts as numbers, and batches of images."""

from __future__ import annotations

from dtf.keras.preprocessing import image, sequence, text

__all__ = ["image", "sequence", "text"]
