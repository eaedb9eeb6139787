"""Sound passes no gradients on, as in TensorFlow."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable("AudioSpectrogram", "DecodeWav", "EncodeWav", "Mfcc")
