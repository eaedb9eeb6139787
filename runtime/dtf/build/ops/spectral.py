"""Discrete Fourier transforms: public functions and static shapes. Functions composed of them are in `signal`.

Kernels: `run.kernels.signal`; gradients: `spectral_grad`. Source:
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/signal
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.joining import pad
from dtf.build.ops.math import multiply, subtract
from dtf.build.ops.rearranging import roll
from dtf.build.shape_rules import shape_rule, sizes_of, unchanged, unknown
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "fft", "fft2d", "fft3d", "fftshift", "ifft", "ifft2d", "ifft3d", "ifftshift", "irfft", "irfft2d", "irfft3d",
    "rfft", "rfft2d", "rfft3d",
]  # fmt: skip


def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """The Fourier transform over the last dimension of a complex tensor."""
    return apply_op("FFT", name, input=input)


def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """The Fourier transform over the last two dimensions of a complex tensor."""
    return apply_op("FFT2D", name, input=input)


def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """The Fourier transform over the last three dimensions of a complex tensor."""
    return apply_op("FFT3D", name, input=input)


def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `fft`."""
    return apply_op("IFFT", name, input=input)


def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `fft2d`."""
    return apply_op("IFFT2D", name, input=input)


def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `fft3d`."""
    return apply_op("IFFT3D", name, input=input)


def rfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The first n/2 + 1 values of the Fourier transform over the last dimension of a real tensor.

    fft_length: the n to cut or pad with zeros to; by default the length of the dimension.
    """
    return _of_real("RFFT", 1, input_tensor, fft_length, name)


def rfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `rfft`, over the last two dimensions; the last one is halved."""
    return _of_real("RFFT2D", 2, input_tensor, fft_length, name)


def rfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `rfft`, over the last three dimensions; the last one is halved."""
    return _of_real("RFFT3D", 3, input_tensor, fft_length, name)


def irfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft`. fft_length: the length of the result; by default 2 * (the dimension's size - 1)."""
    return _to_real("IRFFT", 1, input_tensor, fft_length, name)


def irfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft2d`."""
    return _to_real("IRFFT2D", 2, input_tensor, fft_length, name)


def irfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft3d`."""
    return _to_real("IRFFT3D", 3, input_tensor, fft_length, name)


def _of_real(op_type: str, rank: int, value: Any, fft_length: Any, name: str | None) -> Tensor:
    with name_scope(name, op_type.lower(), [value, fft_length]) as name:
        value = convert_to_tensor(value, None if hasattr(value, "dtype") else dtypes.float32)
        if value.dtype.base_dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"{op_type} requires tf.float32 or tf.float64 inputs, got: {value!r}")
        lengths = _default_lengths(value, rank, fft_length)
        result = dtypes.complex128 if value.dtype.base_dtype == dtypes.float64 else dtypes.complex64
        return apply_op(op_type, name, input=_padded(value, lengths, rank), fft_length=lengths, Tcomplex=result)


def _to_real(op_type: str, rank: int, value: Any, fft_length: Any, name: str | None) -> Tensor:
    with name_scope(name, op_type.lower(), [value, fft_length]) as name:
        value = convert_to_tensor(value, None if hasattr(value, "dtype") else dtypes.complex64)
        if value.dtype.base_dtype not in (dtypes.complex64, dtypes.complex128):
            raise ValueError(f"{op_type} requires tf.complex64 or tf.complex128 inputs, got: {value!r}")
        if fft_length is None:
            sizes = sizes_of(value)
            if sizes is None or None in sizes[-rank:]:
                shape = apply_op("Shape", input=value)[-rank:]
                last = subtract(multiply(shape[-1:], 2), 2)
                fft_length = apply_op("ConcatV2", values=[shape[:-1], apply_op("Maximum", x=last, y=[0])], axis=0)
            else:
                known = [size or 0 for size in sizes[-rank:]]
                fft_length = [*known[:-1], max(0, 2 * (known[-1] - 1))]
        lengths = convert_to_tensor(fft_length, dtypes.int32)
        halved = constant_value(lengths)
        if halved is not None:
            value = _padded(value, convert_to_tensor([*halved[:-1], halved[-1] // 2 + 1], dtypes.int32), rank)
        else:
            last = apply_op("FloorDiv", x=lengths[-1:], y=[2])
            needed = apply_op("ConcatV2", values=[lengths[:-1], apply_op("AddV2", x=last, y=[1])], axis=0)
            value = _padded(value, needed, rank)
        return apply_op(op_type, name, input=value, fft_length=lengths, Treal=value.dtype.real_dtype.base_dtype)


def _default_lengths(value: Tensor, rank: int, fft_length: Any) -> Tensor:
    if fft_length is not None:
        return convert_to_tensor(fft_length, dtypes.int32)
    sizes = sizes_of(value)
    if sizes is None or None in sizes[-rank:]:
        return apply_op("Shape", input=value)[-rank:]
    return convert_to_tensor(sizes[-rank:], dtypes.int32)


def _padded(value: Tensor, lengths: Tensor, rank: int) -> Tensor:
    """`value` padded with zeros at the end of its last dimensions where they are shorter than `lengths`."""
    sizes, wanted = sizes_of(value), constant_value(lengths)
    if sizes is not None and wanted is not None and None not in sizes[-rank:]:
        short = [max(0, int(want) - (size or 0)) for want, size in zip(wanted, sizes[-rank:], strict=True)]
        if not any(short):
            return value
        # An empty dimension stays empty.
        missing: Any = [0 if size == 0 else each for each, size in zip(short, sizes[-rank:], strict=True)]
        return pad(value, [[0, 0]] * (len(sizes) - rank) + [[0, each] for each in missing])
    missing = apply_op("Maximum", x=subtract(lengths, apply_op("Shape", input=value)[-rank:]), y=[0])
    if sizes is None:
        others: Any = apply_op("Fill", dims=apply_op("Rank", input=value)[None] - rank, value=0)
    else:
        others = np.zeros(len(sizes) - rank, np.int32)
    behind = apply_op("ConcatV2", values=[others, missing], axis=0)
    return pad(value, apply_op("Pack", values=[apply_op("ZerosLike", x=behind), behind], axis=1))


# -- shifts --


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """The frequency 0 moved to the middle of the dimensions `axes` (all without them)."""
    return _shifted(x, axes, name or "fftshift", lambda size: size // 2)


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, name or "ifftshift", lambda size: -(size // 2))


def _shifted(x: Any, axes: Any, name: str, amount: Any) -> Tensor:
    with name_scope(name):
        x = convert_to_tensor(x)
        sizes = sizes_of(x)
        if sizes is None:
            if axes is None:
                raise TypeError("The rank of the input must be known, or axes be given.")
            sizes = [None] * (int(np.abs(axes).max(initial=0)) + 1)
        axes = list(np.arange(len(sizes))) if axes is None else np.ravel(axes).tolist()
        shape = apply_op("Shape", input=x)
        known = [sizes[axis] for axis in axes]
        shift = [amount(shape[axis] if size is None else size) for axis, size in zip(axes, known, strict=True)]
        return roll(x, shift, [int(axis) for axis in axes])


# -- shape rules --

shape_rule("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")(unchanged)


@shape_rule("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def _real_transform_shape(op: Operation) -> list[TensorShape]:
    rank = int(op.type[-2]) if op.type.endswith("D") else 1
    sizes, lengths = sizes_of(op.inputs[0]), constant_value(op.inputs[1])
    if sizes is None:
        return unknown(op)
    op.inputs[0].shape.with_rank_at_least(rank)
    if lengths is None:
        return [TensorShape([*sizes[:-rank], *[None] * rank])]
    last = int(lengths[-1])
    halved = last // 2 + 1 if last else 0
    return [TensorShape([*sizes[:-rank], *map(int, lengths[:-1]), last if op.type.startswith("I") else halved])]
