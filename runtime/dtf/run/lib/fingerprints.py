"""Hashes of byte strings whose values TensorFlow graphs rely on: the same numbers in every process and version.

Owns FarmHash's Fingerprint64, MurmurHash64A with TensorFlow's seed, and SipHash-2-4. Knows no tensors.
Sources: https://github.com/google/farmhash (farmhashna), https://github.com/aappleby/smhasher, and Aumasson and
Bernstein, "SipHash: a fast short-input PRF" (2012).
"""

from __future__ import annotations

import struct

from dtf.wire.text_cache import cached_by_text

__all__ = ["fingerprint64", "murmur64", "siphash"]

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


@cached_by_text(1 << 16)
def fingerprint64(data: bytes) -> int:
    """FarmHash's Fingerprint64, an unsigned 64-bit number."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 32:
        return _up_to_32(data, size)
    if size <= 64:
        return _up_to_64(data, size)
    return _longer(data, size)


def murmur64(data: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """MurmurHash64A; the seed is the one of tf.string_to_hash_bucket."""
    multiplier = 0xC6A4A7935BD1E995
    value = seed ^ (len(data) * multiplier & _MASK)
    whole = len(data) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        word = word * multiplier & _MASK
        word = (word ^ word >> 47) * multiplier & _MASK
        value = (value ^ word) * multiplier & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & _MASK
    value = (value ^ value >> 47) * multiplier & _MASK
    return value ^ value >> 47


def siphash(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 of `data` under a key of two 64-bit numbers."""
    state = [
        key[0] & _MASK ^ 0x736F6D6570736575,
        key[1] & _MASK ^ 0x646F72616E646F6D,
        key[0] & _MASK ^ 0x6C7967656E657261,
        key[1] & _MASK ^ 0x7465646279746573,
    ]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        state[3] ^= word
        _sip_rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xFF
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(state: list[int], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a = a + b & _MASK
        c = c + d & _MASK
        b = _left(b, 13) ^ a
        d = _left(d, 16) ^ c
        a = _left(a, 32)
        c = c + b & _MASK
        a = a + d & _MASK
        b = _left(b, 17) ^ c
        d = _left(d, 21) ^ a
        c = _left(c, 32)
    state[:] = a, b, c, d


# -- FarmHash's parts, by length of the input


def _left(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _right(value: int, bits: int) -> int:
    return (value >> bits | value << 64 - bits) & _MASK


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _shift_mix(value: int) -> int:
    return value ^ value >> 47


def _mix(u: int, v: int, multiplier: int) -> int:
    a = _shift_mix((u ^ v) * multiplier & _MASK)
    return _shift_mix((v ^ a) * multiplier & _MASK) * multiplier & _MASK


def _up_to_16(data: bytes, size: int) -> int:
    multiplier = _K2 + size * 2
    if size >= 8:
        a = _word(data, 0) + _K2 & _MASK
        b = _word(data, size - 8)
        c = _right(b, 37) * multiplier + a & _MASK
        d = (_right(a, 25) + b) * multiplier & _MASK
        return _mix(c, d, multiplier)
    if size >= 4:
        return _mix(size + (_word(data, 0, 4) << 3) & _MASK, _word(data, size - 4, 4), multiplier)
    if size:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[-1] << 2)
        return _shift_mix(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return _K2


def _up_to_32(data: bytes, size: int) -> int:
    multiplier = _K2 + size * 2
    a = _word(data, 0) * _K1 & _MASK
    b = _word(data, 8)
    c = _word(data, size - 8) * multiplier & _MASK
    d = _word(data, size - 16) * _K2 & _MASK
    return _mix(
        _right(a + b & _MASK, 43) + _right(c, 30) + d & _MASK, a + _right(b + _K2 & _MASK, 18) + c & _MASK, multiplier
    )


def _up_to_64(data: bytes, size: int) -> int:
    multiplier = _K2 + size * 2
    a = _word(data, 0) * _K2 & _MASK
    b = _word(data, 8)
    c = _word(data, size - 8) * multiplier & _MASK
    d = _word(data, size - 16) * _K2 & _MASK
    y = _right(a + b & _MASK, 43) + _right(c, 30) + d & _MASK
    z = _mix(y, a + _right(b + _K2 & _MASK, 18) + c & _MASK, multiplier)
    e = _word(data, 16) * multiplier & _MASK
    f = _word(data, 24)
    g = (y + _word(data, size - 32)) * multiplier & _MASK
    h = (z + _word(data, size - 24)) * multiplier & _MASK
    return _mix(
        _right(e + f & _MASK, 43) + _right(g, 30) + h & _MASK, e + _right(f + a & _MASK, 18) + g & _MASK, multiplier
    )


def _longer(data: bytes, size: int) -> int:
    y = 81 * _K1 + 113 & _MASK
    z = _shift_mix(y * _K2 + 113 & _MASK) * _K2 & _MASK
    x = 81 * _K2 + _word(data, 0) & _MASK
    v, w = (0, 0), (0, 0)
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _stir(data, at, x, y, z, v, w, _K1, 1)
    multiplier = _K1 + ((z & 0xFF) << 1) & _MASK
    w0 = w[0] + (size - 1 & 63) & _MASK
    v0 = v[0] + w0 & _MASK
    x, y, z, v, w = _stir(data, size - 64, x, y, z, (v0, v[1]), (w0 + v0 & _MASK, w[1]), multiplier, 9)
    return _mix(
        _mix(v[0], w[0], multiplier) + _shift_mix(y) * _K0 + z & _MASK, _mix(v[1], w[1], multiplier) + x & _MASK,
        multiplier,
    )  # fmt: skip


def _stir(
    data: bytes, at: int, x: int, y: int, z: int, v: tuple[int, int], w: tuple[int, int], multiplier: int, factor: int
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """Works 64 bytes into the state."""
    x = _right(x + y + v[0] + _word(data, at + 8) & _MASK, 37) * multiplier & _MASK
    y = _right(y + v[1] + _word(data, at + 48) & _MASK, 42) * multiplier & _MASK
    x ^= w[1] * factor & _MASK
    y = y + v[0] * factor + _word(data, at + 40) & _MASK
    z = _right(z + w[0] & _MASK, 33) * multiplier & _MASK
    v = _weak(data, at, v[1] * multiplier & _MASK, x + w[0] & _MASK)
    w = _weak(data, at + 32, z + w[1] & _MASK, y + _word(data, at + 16) & _MASK)
    return z, y, x, v, w


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    first, second, third, fourth = struct.unpack_from("<4Q", data, at)
    a = a + first & _MASK
    b = _right(b + a + fourth & _MASK, 21)
    c = a
    a = a + second + third & _MASK
    b = b + _right(a, 44) & _MASK
    return a + fourth & _MASK, b + c & _MASK
