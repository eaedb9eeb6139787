"""Kernels of discrete Fourier transforms over the last one, two or three dimensions.

Results have the precision of the input: numpy computes some of them in float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype
from dtf.run.value_types import Array, Index


def _rank(op: str) -> int:
    return int(op[-2]) if op.endswith("D") else 1


def _check_rank(value: np.ndarray, rank: int) -> None:
    if value.ndim < rank:
        raise invalid(f"Input must have rank of at least {rank} but got: {list(value.shape)}")


@kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def _(node: KernelNode) -> Function:
    return _transform(node.op, numpy_dtype(node, "Tcomplex"))


@kernel("BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D")
def _(node: KernelNode) -> Function:
    return _transform(node.op.removeprefix("Batch"), np.complex64)


def _transform(op: str, dtype: np.typing.DTypeLike) -> Function:
    rank = _rank(op)
    transform: Callable[..., Array] = np.fft.ifftn if op.startswith("I") else np.fft.fftn

    def run(value: np.ndarray) -> np.ndarray:
        _check_rank(value, rank)
        if not value.size:
            return value.astype(dtype)
        return transform(value, axes=range(-rank, 0)).astype(dtype, copy=False)

    return run


@kernel("RFFT", "RFFT2D", "RFFT3D")
def _(node: KernelNode) -> Function:
    dtype, rank = numpy_dtype(node, "Tcomplex"), _rank(node.op)
    _check_precision(node, "Treal", "Tcomplex", "forward")

    def run(value: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        lengths = _lengths(fft_length, rank)
        taken = _taken(value, rank, lengths)
        out_sizes = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
        if 0 in taken.shape or 0 in lengths:
            return np.zeros((*value.shape[:-rank], *out_sizes), dtype)
        return np.fft.rfftn(taken, axes=range(-rank, 0)).astype(dtype, copy=False)

    return run


@kernel("IRFFT", "IRFFT2D", "IRFFT3D")
def _(node: KernelNode) -> Function:
    dtype, rank = numpy_dtype(node, "Treal"), _rank(node.op)
    _check_precision(node, "Tcomplex", "Treal", "backward")

    def run(value: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        lengths = _lengths(fft_length, rank)
        halved = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
        taken = _taken(value, rank, halved)
        if 0 in taken.shape or 0 in lengths:
            return np.zeros((*value.shape[:-rank], *lengths), dtype)
        return np.fft.irfftn(taken, lengths, axes=range(-rank, 0)).astype(dtype, copy=False)

    return run


def _check_precision(node: KernelNode, source: str, target: str, direction: str) -> None:
    if node.attr("Treal") != node.attr("Tcomplex").real_dtype:
        enums = [node.attr(name).as_datatype_enum for name in (source, target)]
        raise invalid(f"Wrong types for {direction} real FFT: in={enums[0]} out={enums[1]}")


def _lengths(fft_length: np.ndarray, rank: int) -> list[int]:
    if fft_length.shape != (rank,):
        raise invalid(f"fft_length must have shape [{rank}]")
    lengths = fft_length.tolist()
    if min(lengths) < 0:
        raise invalid(f"fft_length[{lengths.index(min(lengths))}] must be >= 0, but got: {min(lengths)}")
    return lengths


def _taken(value: np.ndarray, rank: int, sizes: list[int]) -> np.ndarray:
    """The leading block of those sizes of the last dimensions."""
    _check_rank(value, rank)
    for dimension, (found, size) in enumerate(zip(value.shape[-rank:], sizes, strict=True)):
        if found < size and found:
            raise invalid(f"Input dimension {dimension} must have length of at least {size} but got: {found}")
    block: Index = (Ellipsis, *(slice(size) for size in sizes))
    return value[block]
