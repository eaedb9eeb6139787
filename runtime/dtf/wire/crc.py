"""Masked CRC-32C, as tensor bundles, their index tables and event files store it.

The arithmetic is google-crc32c's; the mask keeps a checksum of data that itself holds checksums meaningful.
"""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78
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


def joined_crc32c(first: int, second: int, second_length: int) -> int:
    """The CRC-32C of two pieces of data, one after the other, from those of each.

    Args:
      second_length: the number of bytes of the second piece.
    """
    return _applied(_after_zeros(second_length), first) ^ second


_Operator = tuple[int, ...]
"""A linear map of checksums: what becomes of each of their 32 bits."""


@functools.lru_cache(maxsize=64)
def _after_zeros(length: int) -> _Operator:
    """How a checksum changes when `length` zero bytes follow."""
    result: _Operator = tuple(1 << bit for bit in range(32))
    power: _Operator = (_POLYNOMIAL, *(1 << bit for bit in range(31)))  # one zero bit
    left = length * 8
    while left:
        if left & 1:
            result = tuple(_applied(power, column) for column in result)
        power = tuple(_applied(power, column) for column in power)
        left >>= 1
    return result


def _applied(operator: _Operator, crc: int) -> int:
    result = 0
    for column in operator:
        if crc & 1:
            result ^= column
        crc >>= 1
    return result
