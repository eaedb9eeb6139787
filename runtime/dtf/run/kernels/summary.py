"""Kernels of the summary ops: each gives a serialized Summary message, the same as TensorFlow's in meaning.

Owns histograms with TensorFlow's default buckets, and the encoding of images as PNG and of sound as WAV. Does not
write event files (`events.py`). Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary
"""

from __future__ import annotations

import functools
import struct
import zlib

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.value_types import Array
from dtf.wire import codec
from dtf.wire.pb import histogram_pb2, summary_pb2
from dtf.wire.strings import string_scalar


def _text(value: str | bytes | Array) -> str:
    value = value.item() if isinstance(value, np.ndarray) else value
    return value.decode() if isinstance(value, bytes) else value


def _serialized(summary: summary_pb2.Summary) -> np.ndarray:
    return string_scalar(summary.SerializeToString())


@kernel("ScalarSummary")
def _(node: KernelNode) -> Function:
    def scalar_summary(tags: np.ndarray, values: np.ndarray) -> np.ndarray:
        if np.shape(tags) != np.shape(values) and not (np.size(tags) == 1 and np.size(values) == 1):
            raise invalid(
                f"tags and values are not the same shape: {list(np.shape(tags))} != {list(np.shape(values))}"
                + (f" (tag '{_text(np.ravel(tags)[0])}')" if np.size(tags) == 1 else "")
            )
        summary = summary_pb2.Summary()
        for tag, value in zip(np.ravel(tags), np.ravel(values), strict=True):
            summary.value.add(tag=_text(tag), simple_value=float(value))
        return _serialized(summary)

    return scalar_summary


# -- histograms


@functools.cache
def _bucket_limits() -> np.ndarray:
    """The upper ends of the buckets: growing by a tenth from 1e-12 to 1e20 on both sides of zero."""
    limits = []
    limit = 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    positive = np.array([*limits, np.finfo(np.float64).max])
    return np.concatenate([-positive[::-1], [0.0], positive])


@kernel("HistogramSummary")
def _(node: KernelNode) -> Function:
    def histogram_summary(tag: np.ndarray, values: np.ndarray) -> np.ndarray:
        numbers = np.ravel(values).astype(np.float64)
        finite = np.isfinite(numbers)
        if not finite.all():
            word = "Nan" if np.isnan(numbers[~finite][0]) else "Infinity"
            raise invalid(f"{word} in summary histogram for: {node.name}")
        summary = summary_pb2.Summary()
        _fill_histogram(summary.value.add(tag=_text(tag)).histo, numbers)
        return _serialized(summary)

    return histogram_summary


def _fill_histogram(histogram: histogram_pb2.HistogramProto, values: np.ndarray) -> None:
    limits = _bucket_limits()
    counts = np.bincount(np.searchsorted(limits, values, "right"), minlength=len(limits))
    histogram.min = values.min() if values.size else np.finfo(np.float64).max
    histogram.max = values.max() if values.size else -np.finfo(np.float64).max
    histogram.num = values.size
    histogram.sum = values.sum()
    histogram.sum_squares = np.square(values).sum()
    # A run of empty buckets is told as one, which ends where the last of them does.
    full = counts > 0
    told = full | np.append(full[1:], True)
    histogram.bucket_limit.extend(limits[told].tolist())
    histogram.bucket.extend(counts[told].astype(np.float64).tolist())


# -- merging and tensors


@kernel("MergeSummary")
def _(node: KernelNode) -> Function:
    def merge_summary(*inputs: np.ndarray) -> np.ndarray:
        merged = summary_pb2.Summary()
        seen = set()
        for serialized in (each for value in inputs for each in np.ravel(value)):
            try:
                summary = summary_pb2.Summary.FromString(serialized)
            except Exception:
                raise invalid("Could not parse one of the summary inputs") from None
            for value in summary.value:
                if value.tag in seen:
                    raise invalid(f"Duplicate tag {value.tag} found in summary inputs")
                seen.add(value.tag)
            merged.MergeFrom(summary)
        return _serialized(merged)

    return merge_summary


@kernel("TensorSummary")
def _(node: KernelNode) -> Function:
    def tensor_summary(tensor: np.ndarray) -> np.ndarray:
        summary = summary_pb2.Summary()
        summary.value.add(node_name=node.name, tensor=codec.array_to_proto(tensor))
        return _serialized(summary)

    return tensor_summary


@kernel("TensorSummaryV2")
def _(node: KernelNode) -> Function:
    def tensor_summary(tag: np.ndarray, tensor: np.ndarray, metadata: np.ndarray) -> np.ndarray:
        summary = summary_pb2.Summary()
        value = summary.value.add(tag=_text(tag), tensor=codec.array_to_proto(tensor))
        value.metadata.ParseFromString(metadata.item())
        return _serialized(summary)

    return tensor_summary


# -- images

# PNG's colour types by the number of channels.
_PNG_COLOURS = {1: 0, 3: 2, 4: 6}
_NEARLY_ZERO = 1e-6


@kernel("ImageSummary")
def _(node: KernelNode) -> Function:
    most, bad_color = node.attr("max_images"), np.asarray(node.attr("bad_color"), np.uint8)

    def image_summary(tag: np.ndarray, tensor: np.ndarray) -> np.ndarray:
        if np.ndim(tensor) != 4 or tensor.shape[3] not in _PNG_COLOURS:
            raise invalid(
                "Tensor must be 4-D with last dim 1, 3, or 4, not [" + ",".join(map(str, np.shape(tensor))) + "]"
            )
        summary = summary_pb2.Summary()
        for i, image in enumerate(tensor[:most]):
            pixels = image if image.dtype == np.uint8 else _as_pixels(image, bad_color)
            name = f"{_text(tag)}/image" if most == 1 else f"{_text(tag)}/image/{i}"
            summary.value.add(tag=name).image.CopyFrom(
                summary_pb2.Summary.Image(
                    height=image.shape[0],
                    width=image.shape[1],
                    colorspace=image.shape[2],
                    encoded_image_string=encode_png(pixels),
                )
            )
        return _serialized(summary)

    return image_summary


def _as_pixels(image: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """Scales an image to 0 ... 255: by its largest value, or around 128 when it has negative ones.

    A pixel that is not finite becomes `bad_color`. As in TensorFlow, the factor is a float32 and the product in the
    image's own type.
    """
    number = image.dtype.type
    finite = np.isfinite(image).all(axis=-1)
    known = image[finite]
    low, high = (np.float32(known.min()), np.float32(known.max())) if known.size else (np.float32(0),) * 2
    largest, range_, offset = (max(-low, high), 127.0, 128.0) if low < 0 else (high, 255.0, 0.0)
    scale = number(0.0 if largest < _NEARLY_ZERO else np.float32(range_) / largest)
    with np.errstate(invalid="ignore"):
        pixels = np.where(finite[..., None], image * scale + number(offset), number(0)).astype(np.uint8)
    pixels[~finite] = bad_color[: image.shape[-1]]
    return pixels


def encode_png(image: np.ndarray) -> bytes:
    """A uint8 image [height, width, 1, 3 or 4 channels] as a PNG file. Source: https://www.w3.org/TR/png/"""
    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _PNG_COLOURS[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter, 0: none
    rows[:, 1:] = image.reshape(height, -1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in chunks)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# -- sound


@kernel("AudioSummary")
def _(node: KernelNode) -> Function:
    most, rate = node.attr("max_outputs"), node.attr("sample_rate")
    return lambda tag, tensor: _audio_summary(tag, tensor, float(rate), most)


@kernel("AudioSummaryV2")
def _(node: KernelNode) -> Function:
    most = node.attr("max_outputs")
    return lambda tag, tensor, rate: _audio_summary(tag, tensor, float(np.reshape(rate, ())), most)


def _audio_summary(tag: Array, tensor: np.ndarray, rate: float, most: int) -> np.ndarray:
    if np.ndim(tensor) not in (2, 3):
        raise invalid(f"Tensor must be 3-D or 2-D, got: {list(np.shape(tensor))}")
    if rate <= 0:
        raise invalid("sample_rate must be > 0")
    summary = summary_pb2.Summary()
    clips = tensor[:most] if tensor.ndim == 3 else tensor[:most, :, None]
    for i, clip in enumerate(clips):
        name = f"{_text(tag)}/audio" if most == 1 else f"{_text(tag)}/audio/{i}"
        audio = summary.value.add(tag=name).audio
        audio.sample_rate = rate
        audio.length_frames, audio.num_channels = clip.shape
        audio.content_type = "audio/wav"
        audio.encoded_audio_string = encode_wav(clip, round(rate))
    return _serialized(summary)


def encode_wav(samples: np.ndarray, rate: int) -> bytes:
    """Samples [frames, channels] within [-1, 1] as a WAV file of 16 bit integers."""
    channels = samples.shape[1]
    data = np.clip(np.round(np.asarray(samples, np.float32) * np.float32(1 << 15)), -(1 << 15), (1 << 15) - 1)
    data = data.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body
