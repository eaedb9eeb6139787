"""Gradients of discrete Fourier transforms: transforms themselves, the other way round."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.gradients import gradient
from dtf.build.ops.joining import pad
from dtf.build.ops.math import cast, multiply, real, subtract
from dtf.build.ops.reductions import reduce_prod
from dtf.build.ops.searching import where_v2
from dtf.build.tensor import Operation, Tensor

Gradients = list[Any]

_INVERSE = {"FFT": "IFFT", "FFT2D": "IFFT2D", "FFT3D": "IFFT3D", "IFFT": "FFT", "IFFT2D": "FFT2D", "IFFT3D": "FFT3D"}


def _rank(op: Operation) -> int:
    return int(op.type[-2]) if op.type.endswith("D") else 1


@gradient("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def _complex_transform(op: Operation, grad: Any) -> Gradients:
    count = cast(reduce_prod(apply_op("Shape", input=grad)[-_rank(op) :]), grad.dtype)
    scale = count if not op.type.startswith("I") else apply_op("Reciprocal", x=count)
    return [multiply(apply_op(_INVERSE[op.type], input=grad), scale)]


@gradient("RFFT", "RFFT2D", "RFFT3D")
def _of_real(op: Operation, grad: Any) -> Gradients:
    x, lengths = op.inputs
    rank = _rank(op)
    # The half that is not computed has no gradient: the whole transform goes back with zeros there.
    whole = _sized(grad, apply_op("Shape", input=grad)[:-rank], lengths)
    back = multiply(apply_op("I" + op.type[1:], input=whole), cast(reduce_prod(lengths), grad.dtype))
    shape = apply_op("Shape", input=x)
    return [_sized(real(back), shape[:-rank], shape[-rank:]), None]


@gradient("IRFFT", "IRFFT2D", "IRFFT3D")
def _to_real(op: Operation, grad: Any) -> Gradients:
    y, lengths = op.inputs
    rank = _rank(op)
    forward = apply_op(op.type[1:], input=grad, fft_length=lengths, Tcomplex=y.dtype.base_dtype)
    # Each frequency counts twice, except 0 and, for even lengths, the highest.
    last = lengths[-1]
    places = apply_op("Range", start=0, limit=apply_op("FloorDiv", x=last, y=2) + 1, delta=1)
    is_single = apply_op(
        "LogicalOr", x=apply_op("Equal", x=places, y=0), y=apply_op("Equal", x=multiply(places, 2), y=last)
    )
    weights = where_v2(is_single, constant(1.0, y.dtype.base_dtype), constant(2.0, y.dtype.base_dtype))
    scaled = multiply(forward, weights) / cast(reduce_prod(lengths), y.dtype)
    shape = apply_op("Shape", input=y)
    return [_sized(scaled, shape[:-rank], shape[-rank:]), None]


def _sized(x: Tensor, lead: Tensor, sizes: Tensor) -> Tensor:
    """The last dimensions cut, or filled with zeros, to `sizes`."""
    rank = x.shape.ndims
    if rank is None:
        raise NotImplementedError("the gradient of a real Fourier transform needs a tensor of known rank")
    shape = apply_op("ConcatV2", values=[lead, sizes], axis=0)
    found = apply_op("Shape", input=x)
    missing = apply_op("Maximum", x=subtract(shape, found), y=apply_op("ZerosLike", x=found))
    padded = pad(x, apply_op("Pack", values=[apply_op("ZerosLike", x=missing), missing], axis=1))
    return apply_op("Slice", input=padded, begin=[0] * rank, size=shape)
