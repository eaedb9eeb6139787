"""Kernels that decode and encode image files. PNG and BMP are read here; JPEG and GIF need the package Pillow.

Pillow is an extra of this package (`pip install dtf[images]`); without it those two kinds are a
FailedPreconditionError that says so.
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid
from dtf.run.lib import png
from dtf.run.value_types import Array
from dtf.wire import errors, limits
from dtf.wire.strings import string_scalar

_JPEG, _GIF, _BMP = b"\xff\xd8\xff", (b"GIF87a", b"GIF89a"), b"BM"


def _pillow() -> ModuleType:
    try:
        import PIL.Image
    except ImportError:
        raise errors.FailedPreconditionError.of(
            "JPEG and GIF files need the package Pillow: pip install 'dtf[images]'"
        ) from None
    return PIL.Image


def _contents(contents: Array) -> bytes:
    if np.ndim(contents):
        raise invalid(f"contents must be scalar, got shape {list(np.shape(contents))}")
    return contents.item() if isinstance(contents, np.ndarray) else contents


def _checked_channels(node: KernelNode, allowed: tuple[int, ...] = (0, 1, 3, 4)) -> int:
    channels = node.attr("channels")
    if channels not in allowed:
        raise invalid(f"channels must be one of {', '.join(map(str, allowed))}; got {channels}")
    return channels


# Files of any of the kinds are taken by each of these, as TensorFlow has it.


@kernel("DecodePng", "DecodeImage")
def _(node: KernelNode) -> Function:
    channels, dtype = _checked_channels(node), np.dtype(node.attr("dtype").as_numpy_dtype)
    animated = node.op == "DecodeImage" and node.attr("expand_animations")
    return lambda contents: _decoded(_contents(contents), channels, dtype, animated)


@kernel("DecodeJpeg")
def _(node: KernelNode) -> Function:
    channels, ratio = _checked_channels(node, (0, 1, 3)), node.attr("ratio")
    return lambda contents: _decoded(_contents(contents), channels, np.dtype(np.uint8), False, ratio)


@kernel("DecodeAndCropJpeg")
def _(node: KernelNode) -> Function:
    channels, ratio = _checked_channels(node, (0, 1, 3)), node.attr("ratio")

    def decode_and_crop(contents: np.ndarray, window: np.ndarray) -> np.ndarray:
        top, left, height, width = window.tolist()
        image = _decoded(_contents(contents), channels, np.dtype(np.uint8), False, ratio)
        beyond = top + height > image.shape[0] or left + width > image.shape[1]
        if min(top, left) < 0 or min(height, width) <= 0 or beyond:
            raise invalid("Invalid JPEG data or crop window")
        return np.ascontiguousarray(image[top : top + height, left : left + width])

    return decode_and_crop


@kernel("DecodeBmp")
def _(node: KernelNode) -> Function:
    channels = _checked_channels(node)
    return lambda contents: _decoded(_contents(contents), channels, np.dtype(np.uint8), False)


@kernel("DecodeGif")
def _(node: KernelNode) -> Function:
    return lambda contents: _decoded(_contents(contents), 3, np.dtype(np.uint8), True)


def _decoded(data: bytes, channels: int, dtype: np.dtype, animated: bool, ratio: int = 1) -> np.ndarray:
    """The image of a file, [height, width, channels]; all frames of a GIF file, [frames, ...], when `animated`."""
    try:
        if data.startswith(png.SIGNATURE):
            image = png.decode_png(data, channels, 8 if dtype == np.uint8 else 16)
        elif data.startswith(_JPEG):
            image = _decode_jpeg(data, channels, ratio)
        elif data.startswith(_GIF):
            frames = _decode_gif(data)
            if not animated and len(frames) > 1:
                frames = frames[:1]
            image = frames if animated else frames[0]
        elif data.startswith(_BMP):
            image = _decode_bmp(data, channels)
        else:
            raise invalid("Unknown image file format. One of JPEG, PNG, GIF, BMP required.")
    except (ValueError, struct.error) as error:
        raise invalid(f"Invalid image data: {error}") from None
    return _converted(image, dtype)


def _converted(image: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if image.dtype == dtype:
        return np.ascontiguousarray(image)
    if dtype == np.uint16:
        return image.astype(np.uint16) * 257
    if dtype.kind == "f":
        return (image / np.float32(np.iinfo(image.dtype).max)).astype(np.float32)
    return (image >> 8).astype(np.uint8)


def _decode_jpeg(data: bytes, channels: int, ratio: int) -> np.ndarray:
    with _opened_by_pillow(data, "JPEG") as opened:
        if ratio > 1:
            opened.draft(opened.mode, (-(-opened.width // ratio), -(-opened.height // ratio)))
        wanted = {0: "L" if opened.mode == "L" else "RGB", 1: "L"}.get(channels, "RGB")
        _check_size("JPEG", opened.width, opened.height, max(channels, len(wanted)))
        image = np.asarray(opened.convert(wanted))
    image = image[..., None] if image.ndim == 2 else image
    return np.concatenate([image, np.full_like(image[..., :1], 255)], 2) if channels == 4 else image


def _decode_gif(data: bytes) -> np.ndarray:
    with _opened_by_pillow(data, "GIF") as opened:
        frames: list[np.ndarray] = []
        for number in range(getattr(opened, "n_frames", 1)):
            _check_size("GIF", opened.width, opened.height, 3 * (number + 1))
            opened.seek(number)
            frames.append(np.asarray(opened.convert("RGB")))
    return np.stack(frames)


@contextlib.contextmanager
def _opened_by_pillow(data: bytes, kind: str) -> Iterator[Any]:
    """The image as Pillow reads it. What Pillow raises for damaged files becomes ValueError."""
    pillow = _pillow()
    try:
        with pillow.open(io.BytesIO(data), formats=[kind]) as opened:
            yield opened
    except _PILLOW_RAISES as error:
        raise ValueError(f"{kind}: {error}") from None
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise invalid(f"{kind}: {error}") from None


_PILLOW_RAISES = (OSError, SyntaxError, ValueError, IndexError, KeyError, TypeError, EOFError, OverflowError)
"""By whatever in a file Pillow's readers stumble over."""


_BYTES_WHILE_READ = 3


def _check_size(kind: str, width: int, height: int, channels: int) -> None:
    what = f"{kind} size {width} x {height} too large"
    limits.IMAGE_ELEMENTS.check(width * height * channels, what, errors.InvalidArgumentError)
    # Beside the result there is what the reader decodes, and what is converted to other channels.
    limits.check_room((height, width, channels), _BYTES_WHILE_READ, kind)


def _decode_bmp(data: bytes, channels: int) -> np.ndarray:
    """Uncompressed, of 8 (gray), 24 or 32 bits a pixel."""
    (start,) = struct.unpack_from("<I", data, 10)
    width, height = struct.unpack_from("<ii", data, 18)
    (bits,) = struct.unpack_from("<H", data, 28)
    in_file = {8: 1, 24: 3, 32: 4}.get(bits)
    if in_file is None or width <= 0 or height == 0:
        raise ValueError(f"BMP files of {bits} bits a pixel and size {width} x {height} cannot be read")
    if channels not in (0, in_file):
        raise ValueError(f"channels attribute {channels} does not match bits per pixel from file {in_file}")
    row_bytes = (width * in_file + 3) // 4 * 4
    _check_size("BMP", width, abs(height), in_file)
    needed = row_bytes * abs(height)
    pixels = np.frombuffer(data, np.uint8, needed, start) if len(data) >= start + needed else None
    if pixels is None:
        raise ValueError("BMP: the file is cut short")
    image = pixels.reshape(abs(height), row_bytes)[:, : width * in_file].reshape(abs(height), width, in_file)
    if height > 0:
        image = image[::-1]
    return image if in_file == 1 else image[..., [2, 1, 0, 3][:in_file]]


@kernel("ExtractJpegShape")
def _(node: KernelNode) -> Function:
    dtype = node.attr("output_type").as_numpy_dtype

    def extract_jpeg_shape(contents: np.ndarray) -> np.ndarray:
        data, at = _contents(contents), 2
        while data.startswith(_JPEG) and at + 9 < len(data):
            marker, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
            if data[at] != 0xFF:
                break
            if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack_from(">HH", data, at + 5)
                return np.array([height, width, data[at + 9]], dtype)
            at += 1 if marker == 0xFF else 2 + size
        raise invalid("Invalid JPEG data, unable to find its size")

    return extract_jpeg_shape


# -- encoding


@kernel("EncodePng")
def _(node: KernelNode) -> Function:
    compression = node.attr("compression")

    def encode(images: np.ndarray) -> np.ndarray:
        if images.ndim < 3 or images.shape[-1] not in (1, 2, 3, 4):
            raise invalid(f"image must be at least rank 3 with 1, 2, 3 or 4 channels, got shape {list(images.shape)}")
        return _each_image(images, lambda image: png.encode_png(image, compression))

    return encode


@kernel("EncodeJpeg")
def _(node: KernelNode) -> Function:
    quality, progressive, optimize = (node.attr(name) for name in ("quality", "progressive", "optimize_size"))
    subsampling = 2 if node.attr("chroma_downsampling") else 0
    kind = as_text(node.attr("format"))
    per_inch = 1.0 if as_text(node.attr("density_unit")) == "in" else 2.54
    density = (round(node.attr("x_density") * per_inch), round(node.attr("y_density") * per_inch))

    def encode(image: np.ndarray) -> np.ndarray:
        wanted = {"grayscale": (1,), "rgb": (3,)}.get(kind, (1, 3))
        if image.ndim != 3 or image.shape[2] not in wanted:
            raise invalid(f"image must be 3-dimensional with {wanted} channels, got shape {list(image.shape)}")
        made = _pillow().fromarray(image[..., 0] if image.shape[2] == 1 else image)
        out = io.BytesIO()
        made.save(
            out, "JPEG", quality=quality, progressive=progressive, optimize=optimize, dpi=density,
            subsampling=subsampling,
        )  # fmt: skip
        return string_scalar(out.getvalue())

    return encode


def _each_image(images: np.ndarray, encode: Callable[[np.ndarray], bytes]) -> np.ndarray:
    out = np.empty(images.shape[:-3], object)
    flat = images.reshape(-1, *images.shape[-3:])
    out.reshape(-1)[:] = [encode(image) for image in flat]
    return out
