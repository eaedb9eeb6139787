"""Masked CRC-32C, as tensor bundles, their index tables and event files store it.

The arithmetic is google-crc32c's; the mask keeps a checksum of data that itself holds checksums meaningful.
"""

from __future__ import annotations

import numpy as np

_MASK_DELTA = 0xA282EAD8


def crc32c(data: bytes | np.ndarray, start: int = 0) -> int:
    """The CRC-32C of `data` (bytes, or a contiguous uint8 array), carried on from `start`."""
    import google_crc32c  # only files need it

    return google_crc32c.extend(start, data)


def mask(crc: int) -> int:
    """The stored form of a checksum."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: bytes | np.ndarray) -> int:
    """The stored checksum of `data`."""
    return mask(crc32c(data))
