"""PNG files to and from arrays, with zlib alone.

Owns the format as far as images need it: all color types and depths, interlaced or not, and the five row filters.
Source: https://www.w3.org/TR/png/
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from dtf.wire import errors, limits

__all__ = ["SIGNATURE", "decode_png", "encode_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_COLOR_OF_CHANNELS = {1: 0, 2: 4, 3: 2, 4: 6}
_GRAY, _PALETTE = 0, 3
# Adam7: first row, first column, row step, column step of each pass.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def encode_png(image: np.ndarray, compression: int = -1) -> bytes:
    """A file of an image [height, width, 1 to 4 channels] of uint8 or uint16. compression: zlib's level."""
    height, width, channels = image.shape
    depth = 8 * image.dtype.itemsize
    rows = np.ascontiguousarray(image.astype(image.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    # Every row as its difference to the one above.
    filtered = np.empty((height, rows.shape[1] + 1), np.uint8)
    filtered[:, 0] = 2
    filtered[:, 1:] = rows
    filtered[1:, 1:] -= rows[:-1]
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOR_OF_CHANNELS[channels], 0, 0, 0)
    data = zlib.compress(filtered.tobytes(), compression)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def decode_png(data: bytes, channels: int = 0, bits: int = 8) -> np.ndarray:
    """The image of a file, [height, width, channels] of uint8 or (bits 16) uint16.

    channels: 0 for those of the file, or 1 (gray), 2 (gray, alpha), 3 (red, green, blue), 4 (the same, alpha).

    Raises:
      ValueError: it is no PNG file, or damaged.
      InvalidArgumentError: the image is larger than `limits.IMAGE_ELEMENTS`.
    """
    if not data.startswith(SIGNATURE):
        raise ValueError("not a PNG file")
    header, palette, transparency, packed = b"", b"", b"", []
    for kind, body in _chunks(data):
        if kind == b"IHDR":
            header = body
        elif kind == b"PLTE":
            palette = body
        elif kind == b"tRNS":
            transparency = body
        elif kind == b"IDAT":
            packed.append(body)
    if len(header) != 13 or not packed:
        raise ValueError("a PNG file without a header or without data")
    width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if color not in _CHANNELS or depth not in (1, 2, 4, 8, 16) or not width or not height:
        raise ValueError("a PNG file with a bad header")
    in_file = _CHANNELS[color]
    size = width * height * max(in_file, channels)
    limits.IMAGE_ELEMENTS.check(size, f"PNG size {width} x {height} too large", errors.InvalidArgumentError)
    limits.check_room((height, width, max(in_file, channels)), max(depth // 8, 1) * 3, "PNG")
    parts = _parts(width, height, in_file * depth, bool(interlaced))
    needed = sum(rows * (row_bytes + 1) for _, rows, _, row_bytes in parts)
    try:
        raw = np.frombuffer(zlib.decompressobj().decompress(b"".join(packed), needed), np.uint8)
    except zlib.error as error:
        raise ValueError(f"damaged data: {error}") from None
    if raw.size < needed:
        raise ValueError("a PNG file with too little data")
    samples = _samples(raw, (height, width, in_file), depth, parts)
    if color == _PALETTE:
        samples = _from_palette(samples[..., 0], palette, transparency)
        depth = 8
    elif transparency:
        samples = _with_transparent_color(samples, transparency, depth)
    wide = 8 if depth <= 8 else bits  # channels are mixed before samples of 8 bits are widened
    return _as_bits(_as_channels(_as_bits(samples, depth, wide), channels, wide), wide, bits)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if at + 12 + size > len(data) or struct.unpack_from(">I", data, at + 8 + size)[0] != zlib.crc32(kind + body):
            raise ValueError("a PNG file that is cut short or damaged")
        yield kind, body
        at += 12 + size


_Part = tuple[tuple[slice, slice], int, int, int]
"""Which pixels, how many rows and columns of them, and bytes a row."""


def _parts(width: int, height: int, pixel_bits: int, interlaced: bool) -> list[_Part]:
    """The parts of an image in the order in which the file has them, without those that have no pixels."""
    parts = []
    for top, left, down, across in _PASSES if interlaced else ((0, 0, 1, 1),):
        rows, columns = len(range(top, height, down)), len(range(left, width, across))
        if rows and columns:
            where = slice(top, None, down), slice(left, None, across)
            parts.append((where, rows, columns, -(-columns * pixel_bits // 8)))
    return parts


def _samples(raw: np.ndarray, shape: tuple[int, int, int], depth: int, parts: list[_Part]) -> np.ndarray:
    """The numbers of the file, uint8 or uint16, [height, width, channels]."""
    out = np.empty(shape, np.uint16 if depth == 16 else np.uint8)
    channels, at = shape[2], 0
    for where, rows, columns, width_bytes in parts:
        target = out[where]
        part = raw[at : at + rows * (width_bytes + 1)]
        at += part.size
        lines = _unfiltered(part.reshape(rows, width_bytes + 1), max(channels * depth // 8, 1))
        if depth == 16:
            numbers = lines.view(">u2")
        elif depth == 8:
            numbers = lines
        else:
            bits = np.unpackbits(lines, axis=1).reshape(rows, -1, depth)
            numbers = bits @ (1 << np.arange(depth - 1, -1, -1)).astype(np.uint8)
        target[...] = numbers[:, : columns * channels].reshape(target.shape)
    return out


def _unfiltered(lines: np.ndarray, pixel_bytes: int) -> np.ndarray:
    """Rows of bytes, each the first time as a difference to its neighbours: the filter stands in front of it."""
    out = np.zeros((len(lines) + 1, lines.shape[1] - 1), np.uint8)
    for row, line in enumerate(lines):
        kind, above, current = int(line[0]), out[row], out[row + 1]
        current[:] = line[1:]
        if kind == 1:
            for first in range(pixel_bytes):
                current[first::pixel_bytes] = np.cumsum(current[first::pixel_bytes], dtype=np.uint8)
        elif kind == 2:
            current += above
        elif kind in (3, 4):
            current[:] = np.frombuffer(_sequential(kind, line[1:].tolist(), above.tolist(), pixel_bytes), np.uint8)
        elif kind:
            raise ValueError("a PNG file with an unknown filter")
    return out[1:]


def _sequential(kind: int, line: list[int], above: list[int], pixel_bytes: int) -> bytes:
    """The two filters that need every pixel before the next one: the average, and Paeth's choice."""
    done = bytearray(pixel_bytes) + bytearray(len(line))
    corner = [0] * pixel_bytes + above
    for at, value in enumerate(line):
        left, up = done[at], above[at]
        if kind == 3:
            guess = (left + up) >> 1
        else:
            diagonal = corner[at]
            by_left, by_up, by_diagonal = abs(up - diagonal), abs(left - diagonal), abs(left + up - 2 * diagonal)
            guess = (
                left if by_left <= by_up and by_left <= by_diagonal else up if by_up <= by_diagonal else diagonal
            )
        done[at + pixel_bytes] = (value + guess) & 0xFF
    return bytes(done[pixel_bytes:])


def _from_palette(indices: np.ndarray, palette: bytes, transparency: bytes) -> np.ndarray:
    colors = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if indices.max(initial=0) >= len(colors):
        raise ValueError("a PNG file with a color outside its palette")
    if not transparency:
        return colors[indices]
    alpha = np.full(len(colors), 255, np.uint8)
    alpha[: len(transparency)] = np.frombuffer(transparency, np.uint8)[: len(colors)]
    return np.concatenate([colors, alpha[:, None]], 1)[indices]


def _with_transparent_color(samples: np.ndarray, transparency: bytes, depth: int) -> np.ndarray:
    color = np.frombuffer(transparency, ">u2")[: samples.shape[2]]
    opaque = (samples != color).any(2, keepdims=True)
    return np.concatenate([samples, np.where(opaque, (1 << depth) - 1, 0).astype(samples.dtype)], 2)


def _as_bits(samples: np.ndarray, depth: int, bits: int) -> np.ndarray:
    if depth < 8:
        samples = (samples * (255 // ((1 << depth) - 1))).astype(np.uint8)
        depth = 8
    if depth == bits:
        return samples
    return samples.astype(np.uint16) * 257 if bits == 16 else (samples >> 8).astype(np.uint8)


def _as_channels(image: np.ndarray, channels: int, bits: int) -> np.ndarray:
    have = image.shape[2]
    if channels in (0, have):
        return image
    opaque = np.full((*image.shape[:2], 1), (1 << bits) - 1, image.dtype)
    alpha = image[..., -1:] if have in (2, 4) else opaque
    colors = image[..., : have - 1] if have in (2, 4) else image
    if channels >= 3 and colors.shape[2] == 1:
        colors = np.repeat(colors, 3, 2)
    elif channels <= 2 and colors.shape[2] == 3:
        red, green, blue = (colors[..., i].astype(np.uint32) for i in range(3))
        colors = ((9798 * red + 19235 * green + 3735 * blue) >> 15).astype(image.dtype)[..., None]
    return np.concatenate([colors, alpha], 2) if channels in (2, 4) else colors
