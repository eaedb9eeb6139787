"""Kernels of sound: WAV files of 16 bits, spectrograms, and mel-frequency cepstral coefficients.

Source of the coefficients: Davis and Mermelstein, "Comparison of parametric representations for monosyllabic word
recognition" (1980), with triangles that are equally wide on the mel scale.
"""

from __future__ import annotations

import functools
import math
import struct

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room, scalar, shape_text
from dtf.run.value_types import Array, Scalar
from dtf.wire.strings import string_scalar

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_FULL_SCALE = 32768
_PCM = 1


@kernel("EncodeWav")
def _(node: KernelNode) -> Function:
    def encode(audio: np.ndarray, sample_rate: Array) -> np.ndarray:
        if audio.ndim != 2:
            raise invalid(f"audio must be 2-dimensional, got shape {shape_text(audio.shape)}")
        rate = int(scalar(sample_rate, "sample_rate"))
        samples, channels = audio.shape
        if not channels:
            raise invalid("audio is null")
        if channels >= 1 << 16:
            raise invalid(f"num_channels must be in (0, 2^16), got: {channels}")
        if rate <= 0:
            raise invalid(f"sample_rate must be in (0, 2^32), got: {rate}")
        scaled = np.clip(np.trunc(audio * np.float32(_FULL_SCALE)), -_FULL_SCALE, _FULL_SCALE - 1)
        data = np.nan_to_num(scaled).astype("<i2").tobytes()
        header = _HEADER.pack(
            b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, _PCM, channels, rate, rate * channels * 2, channels * 2, 16,
            b"data", len(data),
        )  # fmt: skip
        return string_scalar(header + data)

    return encode


@kernel("DecodeWav")
def _(node: KernelNode) -> Function:
    wanted_channels, wanted_samples = node.attr("desired_channels"), node.attr("desired_samples")

    def decode(contents: Array) -> tuple[Array, np.int32]:
        samples, rate = _decoded(scalar(contents, "contents"))
        if wanted_channels > 0:
            # A file of fewer channels repeats its last one.
            room((len(samples), wanted_channels), np.float64)
            samples = samples[:, np.minimum(np.arange(wanted_channels), samples.shape[1] - 1)]
        if wanted_samples > 0:
            room((wanted_samples, samples.shape[1]), np.float32)
            kept = samples[:wanted_samples]
            samples = np.concatenate([kept, np.zeros((wanted_samples - len(kept), samples.shape[1]), np.float32)])
        return np.ascontiguousarray(samples), np.int32(rate)

    return decode


def _decoded(contents: bytes) -> tuple[np.ndarray, int]:
    """(samples [n, channels] in [-1, 1), samples per second) of a file."""
    at = 0

    def read(layout: str) -> tuple[Scalar, ...]:
        nonlocal at
        size = struct.calcsize(layout)
        if at + size > len(contents):
            raise invalid("Data too short when trying to read string")
        at += size
        return struct.unpack_from(layout, contents, at - size)

    def expect(name: bytes) -> None:
        (found,) = read("<4s")
        if found != name:
            text = found.decode("latin1")
            raise invalid(f"Header mismatch: Expected {name.decode()} but found {text}")

    expect(b"RIFF")
    read("<I")
    expect(b"WAVE")
    expect(b"fmt ")
    (size,) = read("<I")
    kind, channels, rate, bytes_per_second, bytes_per_sample, bits = read("<HHIIHH")
    if size not in (16, 18):
        raise invalid(f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}")
    if size == 18:
        read("<H")
    if kind != _PCM:
        raise invalid(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    if not channels:
        raise invalid("A WAV file must have at least one channel")
    if bits != 16:
        raise invalid(f"Can only read 16-bit WAV files, but received {bits}")
    if bytes_per_sample != channels * 2 or bytes_per_second != bytes_per_sample * rate:
        raise invalid("Bad number of bytes per sample or per second in the header of a WAV file")
    samples = None
    while at < len(contents) and samples is None:
        name, size = read("<4sI")
        if name == b"data":
            (data,) = read(f"<{size // bytes_per_sample * bytes_per_sample}s")
            samples = np.frombuffer(data, "<i2").reshape(-1, channels).astype(np.float32) / np.float32(_FULL_SCALE)
        else:
            at += size
    if samples is None:
        raise invalid("No data chunk found in WAV")
    return samples, rate


@kernel("AudioSpectrogram")
def _(node: KernelNode) -> Function:
    size, stride, squared = node.attr("window_size"), node.attr("stride"), node.attr("magnitude_squared")
    if size <= 1:
        raise invalid(f"window size must be > 1, got {size}")
    if stride <= 0:
        raise invalid(f"stride must be strictly positive, got {stride}")
    length = 1 << (size - 1).bit_length()
    room((3, length), np.float64)  # the window and what it is made of
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)

    def spectrogram(samples: np.ndarray) -> np.ndarray:
        if samples.ndim != 2:
            raise invalid(f"input must be 2-dimensional, got shape {shape_text(samples.shape)}")
        count = max(0, (len(samples) - size) // stride + 1)
        out = np.zeros(room((samples.shape[1], count, length // 2 + 1), np.complex128), np.float32)
        if out.size:
            frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), size, 0)[::stride]
            spectra = np.fft.rfft(frames * window, length)
            power = spectra.real**2 + spectra.imag**2
            out[:] = np.moveaxis(power if squared else np.sqrt(power), 1, 0)
        return out

    return spectrogram


@kernel("Mfcc")
def _(node: KernelNode) -> Function:
    low, high = node.attr("lower_frequency_limit"), node.attr("upper_frequency_limit")
    bands, coefficients = node.attr("filterbank_channel_count"), node.attr("dct_coefficient_count")

    @functools.cache  # made in the first step, which has a time limit
    def cosines() -> np.ndarray:
        room((3, coefficients, bands), np.float64)
        numbers = np.arange(coefficients)[:, None] * (np.arange(bands) + 0.5)
        table: np.ndarray = math.sqrt(2.0 / bands) * np.cos(np.pi / bands * numbers)
        return table

    def mfcc(spectrogram: np.ndarray, sample_rate: Array) -> np.ndarray:
        if spectrogram.ndim != 3:
            raise invalid(f"spectrogram must be 3-dimensional, got shape {shape_text(spectrogram.shape)}")
        rate, bins = int(scalar(sample_rate, "sample_rate")), spectrogram.shape[2]
        if bins < 2 or bands < 1 or not 1 <= coefficients <= bands or rate <= 0 or not 0 <= low < high:
            raise invalid(
                f"Mfcc initialization failed for channel count {bins}, sample rate {rate} and filterbank_channel_count "
                f"{bands}"
            )
        room((6, bins, bands), np.float64)
        weights = _triangles(bins, bands, rate, low, high)
        if not weights.any():
            return np.zeros((*spectrogram.shape[:2], coefficients), np.float32)
        energies = np.sqrt(spectrogram.astype(np.float64)) @ weights
        return (np.log(np.maximum(energies, 1e-12)) @ cosines().T).astype(np.float32)

    return mfcc


def _triangles(bins: int, bands: int, rate: int, low: float, high: float) -> np.ndarray:
    """How much of each bin of a spectrum belongs to each band: [bins, bands]."""
    width = 0.5 * rate / (bins - 1)
    mel = _mel(np.arange(bins) * width)
    edges = np.linspace(_mel(low), _mel(high), bands + 2)
    rising = (mel[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mel[:, None]) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0, np.minimum(rising, falling))
    number = np.arange(bins)
    used = (number >= int(1.5 + low / width)) & (number <= int(high / width))
    return weights * used[:, None]


def _mel(hertz: Array | float) -> Array:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)
