"""Signals in time and frequency: frames, windows, short-time and cosine transforms, mel scales.

Nothing here is an op of its own: Fourier transforms are `spectral`'s. Signals have time, or frequency, last.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/signal
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.array import reshape
from dtf.build.ops.gathering import gather
from dtf.build.ops.joining import concat, pad, tile
from dtf.build.ops.math import cast, complex, cos, exp, log, multiply, range, real, sin, sqrt, square, subtract
from dtf.build.ops.rearranging import reverse
from dtf.build.ops.reductions import cumsum, reduce_sum
from dtf.build.ops.segment import unsorted_segment_sum
from dtf.build.ops.special import bessel_i0e
from dtf.build.ops.spectral import irfft, rfft
from dtf.build.shape_rules import sizes_of
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "dct", "frame", "hamming_window", "hann_window", "idct", "inverse_mdct", "inverse_stft",
    "inverse_stft_window_fn", "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix", "mdct",
    "mfccs_from_log_mel_spectrograms", "overlap_and_add", "stft", "vorbis_window",
]  # fmt: skip

# -- frames --


def _number(value: Any) -> Any:
    """A statically known tensor as a number; any other value unchanged."""
    known = constant_value(value) if isinstance(value, Tensor) else None
    return value if known is None else known.item()


def frame(
    signal: TensorLike,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Windows of `frame_length` elements, `frame_step` apart, along `axis`: [..., n, ...] -> [..., frames, length,
    ...].

    With `pad_end` the last windows extend past the end and are filled with `pad_value`.
    """
    with name_scope(name or "frame"):
        signal = convert_to_tensor(signal)
        frame_length, frame_step, axis = (_number(each) for each in (frame_length, frame_step, axis))
        sizes = sizes_of(signal)
        if sizes is None and axis != -1:
            return _framed_of_unknown_rank(signal, frame_length, frame_step, pad_end, pad_value, axis)
        if sizes is None:
            shape = apply_op("Shape", input=signal)
            rows = reshape(signal, concat([[-1], shape[-1:]], 0))
            rows.set_shape([None, None])
            framed = frame(rows, frame_length, frame_step, pad_end, pad_value)
            return reshape(framed, concat([shape[:-1], apply_op("Shape", input=framed)[1:]], 0))
        at = axis % len(sizes)
        length: Any = sizes[at] if sizes[at] is not None else apply_op("Shape", input=signal)[at]
        if pad_end:
            count = (length + frame_step - 1) // frame_step
            missing = (count - 1) * frame_step + frame_length - length
            missing = max(0, missing) if isinstance(missing, int) else apply_op("Maximum", x=missing, y=0)
            paddings = [[0, missing if dimension == at else 0] for dimension in np.arange(len(sizes))]
            signal = pad(signal, paddings, constant_values=pad_value)
        else:
            count = (length - frame_length) // frame_step + 1
            count = max(0, count) if isinstance(count, int) else apply_op("Maximum", x=count, y=0)
        starts = apply_op("ExpandDims", input=multiply(range(count), frame_step), dim=1)
        if isinstance(frame_length, Tensor):
            return gather(signal, starts + range(frame_length)[None], axis=at)
        framed = gather(signal, starts + np.arange(frame_length, dtype=np.int32)[None], axis=at)
        known = None if isinstance(count, Tensor) else count
        framed.set_shape([*sizes[:at], known, frame_length, *sizes[at + 1 :]])
        return framed


def _framed_of_unknown_rank(signal: Tensor, length: Any, step: Any, pad_end: bool, pad_value: Any, axis: int) -> Tensor:
    """`frame` along an axis of a signal whose rank only the step knows."""
    rank = apply_op("Rank", input=signal)
    at = axis if axis >= 0 else rank + axis
    size = gather(apply_op("Shape", input=signal), at)
    if pad_end:
        count = (size + step - 1) // step
        missing = apply_op("Maximum", x=(count - 1) * step + length - size, y=0)
        behind = apply_op("OneHot", indices=at, depth=rank, on_value=missing, off_value=0)
        paddings = apply_op("Pack", values=[apply_op("ZerosLike", x=behind), behind], axis=1)
        signal = pad(signal, paddings, constant_values=pad_value)
    else:
        count = apply_op("Maximum", x=(size - length) // step + 1, y=0)
    starts = apply_op("ExpandDims", input=multiply(range(count), step), dim=1)
    return gather(signal, starts + range(length)[None], axis=at)


def overlap_and_add(signal: TensorLike, frame_step: Any, name: str | None = None) -> Tensor:
    """Frames that start `frame_step` apart, added up where they overlap: [..., frames, length] -> [..., n].

    n is (frames - 1) * frame_step + length. frame_step is a Python number.
    """
    with name_scope(name or "overlap_and_add"):
        signal = convert_to_tensor(signal)
        rank = signal.shape.with_rank_at_least(2).ndims
        frames, length = signal.shape.as_list()[-2:] if rank is not None else (None, None)
        step = _number(frame_step)
        if length is None or isinstance(step, Tensor):
            return _added_at_places(signal, step)
        shape = apply_op("Shape", input=signal)
        count: Any = shape[-2] if frames is None else frames
        segments = -(-length // step)
        # Segment s of frame f belongs to the step f + s: a row of segments is shifted by one step against the last.
        flat = reshape(signal, concat([[-1], [count], [length]], 0))
        flat = pad(flat, [[0, 0], [0, segments], [0, segments * step - length]])
        rows = reshape(flat, concat([[-1], [count + segments], [segments], [step]], 0))
        by_segment = apply_op("Transpose", x=rows, perm=[0, 2, 1, 3])
        steps = segments * (count + segments)
        joined = reshape(by_segment, concat([[-1], [steps], [step]], 0))[:, : steps - segments]
        shifted = reshape(joined, concat([[-1], [segments], [count + segments - 1], [step]], 0))
        total = reshape(reduce_sum(shifted, 1), concat([shape[:-2], [(count + segments - 1) * step]], 0))
        made = total[..., : (count - 1) * step + length]
        leading = signal.shape.as_list()[:-2]
        made.set_shape([*leading, None if frames is None else (frames - 1) * step + length])
        return made


def _added_at_places(signal: Tensor, step: Any) -> Tensor:
    """overlap_and_add where only the step knows the length or the distance of frames."""
    shape = apply_op("Shape", input=signal)
    frames, length = shape[-2], shape[-1]
    places = reshape(multiply(range(frames), step)[:, None] + range(length)[None], [-1])
    rows = apply_op("Transpose", x=reshape(signal, [-1, frames * length]), perm=[1, 0])
    total = unsorted_segment_sum(rows, places, (frames - 1) * step + length)
    return reshape(apply_op("Transpose", x=total, perm=[1, 0]), concat([shape[:-2], [-1]], 0))


# -- windows --


def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The raised cosine that is 0 at its ends. [window_length]."""
    return _raised_cosine(name or "hann_window", window_length, periodic, dtype, 0.5)


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The raised cosine that is 0.08 at its ends. [window_length]."""
    return _raised_cosine(name or "hamming_window", window_length, periodic, dtype, 0.54)


def vorbis_window(window_length: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """The window of Vorbis: its square and the square of the window shifted by half a length add up to 1.
    [window_length]."""
    with name_scope(name or "vorbis_window"):
        dtype = dtypes.as_dtype(dtype)
        length = convert_to_tensor(window_length, dtypes.int32)
        place = (cast(range(length), dtype) + 0.5) / cast(length, dtype)
        return sin(multiply(np.pi / 2, square(sin(multiply(np.pi, place)))))


def kaiser_window(
    window_length: Any, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Kaiser's window; a larger beta makes it narrower. [window_length]."""
    with name_scope(name or "kaiser_window"):
        dtype = dtypes.as_dtype(dtype)
        length = convert_to_tensor(window_length, dtypes.int32)
        beta = convert_to_tensor(beta, dtype)
        last = cast(apply_op("Maximum", x=length - 1, y=1), dtype)
        # The only place of a window of length 1 is its middle.
        middle = cast(apply_op("Greater", x=length, y=1), dtype)
        place = multiply(cast(range(length), dtype), 2.0) / last - middle
        inner = apply_op("Maximum", x=subtract(1.0, square(place)), y=convert_to_tensor(0, dtype))
        scaled = beta * sqrt(inner)
        return exp(scaled - beta) * bessel_i0e(scaled) / bessel_i0e(beta)


def kaiser_bessel_derived_window(
    window_length: Any, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The window built from Kaiser's running sums, which suits `mdct`. [window_length], which is even."""
    with name_scope(name or "kaiser_bessel_derived_window"):
        length = convert_to_tensor(window_length, dtypes.int32)
        sums = cumsum(kaiser_window(apply_op("FloorDiv", x=length, y=2) + 1, beta, dtype))
        half = sqrt(sums[:-1] / sums[-1])
        return apply_op("ConcatV2", values=[half, reverse(half, [0])], axis=0)


def _raised_cosine(name: str, window_length: Any, periodic: bool, dtype: Any, middle: float) -> Tensor:
    with name_scope(name):
        dtype = dtypes.as_dtype(dtype)
        length = convert_to_tensor(window_length, dtypes.int32)
        even = subtract(1, apply_op("FloorMod", x=length, y=2)) if periodic else convert_to_tensor(0)
        period = apply_op("Maximum", x=cast(length + even - 1, dtype), y=convert_to_tensor(1, dtype))
        phase = multiply(cast(range(length), dtype), 2 * np.pi / period)
        return subtract(middle, multiply(1 - middle, cos(phase))) + cast(
            apply_op("Equal", x=length, y=1), dtype
        ) * (2 - 2 * middle)


# -- short-time Fourier transforms --


def stft(
    signals: TensorLike,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The Fourier transforms of windows of real signals: [..., n] -> [..., frames, fft_length / 2 + 1].

    fft_length is by default the least power of two that holds a window.
    """
    with name_scope(name or "stft"):
        signals = convert_to_tensor(signals)
        frame_length, frame_step, fft_length = (_number(each) for each in (frame_length, frame_step, fft_length))
        frames = frame(signals, frame_length, frame_step, pad_end=pad_end)
        if fft_length is None:
            fft_length = _enclosing_power_of_two(frame_length)
        if window_fn is not None:
            frames = multiply(frames, window_fn(frame_length, dtype=frames.dtype))
        return rfft(frames, [fft_length])


def inverse_stft_window_fn(
    frame_step: int, forward_window_fn: Callable[..., Tensor] = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """The window for `inverse_stft` that undoes `forward_window_fn`: together they add up to 1."""

    def inverse(frame_length: Any, dtype: Any) -> Tensor:
        with name_scope(name or "inverse_stft_window_fn"):
            window = forward_window_fn(frame_length, dtype=dtype)
            overlaps = -(-int(frame_length) // int(frame_step))
            squares = pad(square(window), [[0, overlaps * frame_step - frame_length]])
            total = reduce_sum(reshape(squares, [overlaps, frame_step]), 0)
            return window / tile(total, [overlaps])[:frame_length]

    return inverse


def inverse_stft(
    stfts: Any,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Any = hann_window,
    name: str | None = None,
) -> Tensor:
    """Signals from their short-time transforms: [..., frames, fft_length / 2 + 1] -> [..., n].

    It is exact with the window `inverse_stft_window_fn(frame_step)`.
    """
    with name_scope(name or "inverse_stft"):
        frame_length, frame_step, fft_length = (_number(each) for each in (frame_length, frame_step, fft_length))
        if fft_length is None:
            fft_length = _enclosing_power_of_two(frame_length)
        frames = irfft(stfts, [fft_length])[..., :frame_length]
        if fft_length < frame_length:
            rank = frames.shape.with_rank_at_least(1).ndims
            frames = pad(frames, [[0, 0]] * ((rank or 1) - 1) + [[0, frame_length - fft_length]])
        if window_fn is not None:
            frames = multiply(frames, window_fn(frame_length, dtype=frames.dtype))
        return overlap_and_add(frames, frame_step)


def _enclosing_power_of_two(length: Any) -> Any:
    if isinstance(length, Tensor):
        exponent = apply_op("Ceil", x=log(cast(length, dtypes.float64)) / np.log(2.0))
        return cast(apply_op("Round", x=apply_op("Pow", x=np.float64(2), y=exponent)), dtypes.int32)
    return 1 << max(0, length - 1).bit_length()


# -- cosine transforms --


def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform of one of the types 1 to 4 over the last dimension.

    Args:
      input: float32 or float64 [..., length].
      n: cut or fill up with zeros to this length first.
      axis: -1, the only one that there is.
      norm: None, or "ortho" for an orthogonal matrix (not with type 1).

    Raises:
      ValueError: an argument that is not one of these.
    """
    with name_scope(name or "dct"):
        value = convert_to_tensor(input)
        _check_cosine(type, axis, norm)
        sizes = sizes_of(value)
        if sizes is None or sizes[-1] is None:
            return _dct_of_unknown_length(value, type, n, norm)
        if n is not None:
            missing = max(0, n - sizes[-1])
            value = pad(value[..., :n], [[0, 0]] * (len(sizes) - 1) + [[0, missing]])
        length = sizes[-1] if n is None else n
        dtype = value.dtype
        zero = convert_to_tensor(0, dtype)
        if type == 1:
            if length < 2:
                raise ValueError("Type 1 needs two elements or more.")
            return real(rfft(concat([value, reverse(value, [-1])[..., 1:-1]], -1)))
        turns = np.arange(length) * np.pi / (2 * length)
        scale = complex(_constant(2 * np.cos(turns), dtype), _constant((-2 if type == 2 else 2) * np.sin(turns), dtype))
        if type == 2:
            made = real(rfft(value, [2 * length])[..., :length] * scale)
            # These make the rows of the matrix orthonormal.
            factor = np.sqrt(np.where(np.arange(length) == 0, 0.25, 0.5) / length)
            return made * _constant(factor, dtype) if norm == "ortho" else made
        if type == 3:
            # The element 0 stands once in the sum, the others twice.
            weights = np.sqrt(length * np.where(np.arange(length) == 0, 1, 0.5)) if norm == "ortho" else length
            given = value * _constant(weights, dtype)
            return irfft(scale * complex(given, zero), [2 * length])[..., :length]
        made = dct(value, 2, 2 * length)[..., 1::2]
        return made * float(np.sqrt(0.5 / length)) if norm == "ortho" else made


def _dct_of_unknown_length(value: Tensor, type: int, n: int | None, norm: str | None) -> Tensor:
    """`dct` of a dimension whose size only the step knows."""
    static, dtype = value.shape, value.dtype.base_dtype
    if n is not None:
        shape = apply_op("Shape", input=value)
        missing = apply_op("Maximum", x=n - shape[-1], y=0)
        zeros = apply_op("Fill", dims=concat([shape[:-1], [missing]], 0), value=convert_to_tensor(0, dtype))
        value = concat([value[..., :n], zeros], -1)
    if type == 1:
        made = real(rfft(concat([value, reverse(value, [-1])[..., 1:-1]], -1)))
    elif type == 4:
        size = apply_op("Shape", input=value)[-1]
        zeros = apply_op("ZerosLike", x=value)
        made = _dct_of_unknown_length(concat([value, zeros], -1), 2, None, None)[..., 1::2]
        made = made * apply_op("Rsqrt", x=2 * cast(size, dtype)) if norm == "ortho" else made
    else:
        made = _dct_by_fft(value, type, norm)
    if static.ndims is not None:
        made.set_shape([*static.as_list()[:-1], n])
    return made


def _dct_by_fft(value: Tensor, type: int, norm: str | None) -> Tensor:
    """The types 2 and 3 of a dimension whose size only the step knows."""
    dtype = value.dtype.base_dtype
    length = apply_op("Shape", input=value)[-1]
    size, numbers = cast(length, dtype), range(length)
    turns = cast(numbers, dtype) * np.pi / (2 * size)
    sine = apply_op("Sin", x=turns)
    scale = complex(2 * apply_op("Cos", x=turns), -2 * sine if type == 2 else 2 * sine)
    first = cast(apply_op("Equal", x=numbers, y=0), dtype)
    if type == 2:
        made = real(rfft(value, [2 * length])[..., :length] * scale)
        return made * apply_op("Sqrt", x=(0.5 - 0.25 * first) / size) if norm == "ortho" else made
    weights = apply_op("Sqrt", x=size * (0.5 + 0.5 * first)) if norm == "ortho" else size
    given = value * weights
    return irfft(scale * complex(given, apply_op("ZerosLike", x=given)), [2 * length])[..., :length]


def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `dct` of the same type: exact with "ortho", otherwise up to a factor."""
    if n is not None:
        raise ValueError(f"n is not supported: {n}")
    return dct(input, {2: 3, 3: 2}.get(type, type), None, axis, norm, name)


def _check_cosine(type: int, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if type not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")


def _constant(values: Any, dtype: Any) -> Tensor:
    return convert_to_tensor(np.asarray(values, dtype.as_numpy_dtype))


def mdct(
    signals: TensorLike,
    frame_length: int,
    window_fn: Any = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The modified cosine transform of frames that overlap by half: [..., n] -> [..., frames, frame_length / 2].

    frame_length must be a multiple of 4.
    """
    with name_scope(name or "mdct"):
        quarter, half = _quarters(frame_length)
        frames = frame(convert_to_tensor(signals), frame_length, half, pad_end)
        if window_fn is not None:
            frames = multiply(frames, window_fn(frame_length, dtype=frames.dtype))
        else:
            frames = frames * float(np.sqrt(0.5))
        a, b = frames[..., :quarter], frames[..., quarter:half]
        c, d = frames[..., half : half + quarter], frames[..., half + quarter :]
        folded = concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], -1)
        return dct(folded, 4, norm=norm)


def inverse_mdct(
    mdcts: Any, window_fn: Any = vorbis_window, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The inverse of `mdct`, for windows that fit: [..., frames, half] -> [..., (frames + 1) * half]."""
    with name_scope(name or "inverse_mdct"):
        mdcts = convert_to_tensor(mdcts)
        half = mdcts.shape.as_list()[-1]
        _quarters(2 * half)
        folded = idct(mdcts, 4, norm=norm)
        if norm is None:
            folded = folded * (0.5 / half)
        first, second = folded[..., : half // 2], folded[..., half // 2 :]
        parts = [second, -reverse(second, [-1]), -reverse(first, [-1]), -first]
        frames = concat(parts, -1)
        if window_fn is not None:
            frames = multiply(frames, window_fn(2 * half, dtype=frames.dtype))
        else:
            frames = frames * float(np.sqrt(0.5))
        return overlap_and_add(frames, half)


def _quarters(frame_length: int) -> tuple[int, int]:
    if frame_length % 4:
        raise ValueError(f"The frame length must be a multiple of 4: {frame_length}")
    return frame_length // 4, frame_length // 2


# -- mel scales --


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix [num_spectrogram_bins, num_mel_bins] of triangles that are equally wide on the mel scale.

    Raises:
      ValueError: numbers that are not positive, or edges that do not rise within half of the sample rate.
    """
    dtype = dtypes.as_dtype(dtype)
    num_mel_bins, num_spectrogram_bins, sample_rate, lower_edge_hertz, upper_edge_hertz = (
        _number(each)
        for each in (num_mel_bins, num_spectrogram_bins, sample_rate, lower_edge_hertz, upper_edge_hertz)
    )
    if num_mel_bins <= 0 or sample_rate <= 0:
        raise ValueError(f"num_mel_bins and sample_rate must be positive. Got: {num_mel_bins} and {sample_rate}")
    if not 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2:
        raise ValueError(
            "The edges must rise from 0 or more to half of the sample rate or less. Got: "
            f"{lower_edge_hertz}, {upper_edge_hertz} of {sample_rate}"
        )
    with name_scope(name, "linear_to_mel_weight_matrix") as name:
        # The bin of frequency 0 belongs to no band.
        bins = _mel(np.linspace(0.0, sample_rate / 2, num_spectrogram_bins)[1:])[:, None]
        edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        low, middle, high = edges[:-2], edges[1:-1], edges[2:]
        rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
        weights = np.vstack([np.zeros(num_mel_bins), np.maximum(0, np.minimum(rising, falling))])
        return convert_to_tensor(weights.astype(dtype.as_numpy_dtype), name=name)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients: [..., bins] -> [..., bins]. Most uses keep only the first ones."""
    with name_scope(name or "mfccs_from_log_mel_spectrograms"):
        value = convert_to_tensor(log_mel_spectrograms)
        sizes = sizes_of(value)
        bins = None if sizes is None else sizes[-1]
        if bins == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {value.shape}")
        if bins is None:
            size = cast(apply_op("Shape", input=value)[-1], value.dtype.base_dtype)
            return dct(value, 2) * apply_op("Rsqrt", x=2 * size)
        return dct(value, 2) * float(1 / np.sqrt(2.0 * bins))
