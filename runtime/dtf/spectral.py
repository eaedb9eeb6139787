"""The namespace tf.spectral, an older name of parts of tf.signal. Only re-exports names."""

from __future__ import annotations

from dtf.build.ops.signal import dct, idct
from dtf.build.ops.spectral import (
    fft,
    fft2d,
    fft3d,
    ifft,
    ifft2d,
    ifft3d,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "idct", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d", "irfft3d", "rfft",
    "rfft2d", "rfft3d",
]  # fmt: skip
