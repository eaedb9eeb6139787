"""Reductions, scans, extremes' positions and the k largest."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dtf.run.devices.pytorch.arrays import COMPUTED
from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.wire import dtypes

_Reduce = Callable[[Tensor, list[int], bool], Tensor]
_COMPLEX = frozenset((dtypes.complex64, dtypes.complex128))


def _axes(indices: np.ndarray, rank: int) -> list[int]:
    axes = [int(axis) for axis in indices.reshape(-1).tolist()]
    if any(not -rank <= axis < rank for axis in axes):
        raise Unsuited
    axes = [axis % rank for axis in axes]
    if len(set(axes)) != len(axes):
        raise Unsuited
    return axes


def _reduction(op: str, reduce: _Reduce, types: frozenset[dtypes.DType] = COMPUTED, attr: str = "T") -> None:
    @computes(op, types=types, attr=attr)
    def factory(node: KernelNode) -> TensorFunction:
        keep = node.attr("keep_dims")

        def run(x: Tensor, indices: np.ndarray) -> Tensor:
            axes = _axes(indices, x.dim())
            return reduce(x, axes, keep) if axes else _of_nothing(x)

        return run

    def _of_nothing(x: Tensor) -> Tensor:
        if op == "EuclideanNorm":
            raise Unsuited
        return x


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    x = in_wide(x)
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keep, dtype=x.dtype)
    return x


_reduction("Sum", lambda x, axes, keep: torch.sum(x, axes, keep, dtype=x.dtype))
_reduction("Mean", lambda x, axes, keep: torch.mean(x, axes, keep), FLOATS | _COMPLEX)
_reduction("Prod", _product)
_reduction("Max", torch.amax)
_reduction("Min", torch.amin)
_reduction("All", torch.all, attr="")
_reduction("Any", torch.any, attr="")
_reduction("EuclideanNorm", lambda x, axes, keep: torch.sqrt(torch.sum(torch.square(x), axes, keep)), FLOATS)


def _position(op: str, find: Callable[[Tensor, int], Tensor], excluded: float) -> None:
    @computes(op, types=COMPUTED - _COMPLEX)
    def factory(node: KernelNode) -> TensorFunction:
        def run(x: Tensor, dimension: np.ndarray) -> Tensor:
            axis = int(dimension)
            if not -x.dim() <= axis < x.dim() or x.shape[axis] == 0 or x.dtype is torch.bool:
                raise Unsuited
            if x.is_floating_point():  # TensorFlow finds the extreme of what is a number
                x = x.masked_fill(torch.isnan(x), excluded)
            return find(x, axis)

        return run


_position("ArgMax", torch.argmax, -math.inf)
_position("ArgMin", torch.argmin, math.inf)


def _scan(op: str, accumulate: Callable[[Tensor, int], Tensor], identity: float) -> None:
    @computes(op, types=COMPUTED)
    def factory(node: KernelNode) -> TensorFunction:
        exclusive, reverse = node.attr("exclusive"), node.attr("reverse")

        def run(x: Tensor, dimension: np.ndarray) -> Tensor:
            axis = int(dimension)
            if not -x.dim() <= axis < x.dim():
                raise Unsuited
            turned = torch.flip(x, [axis]) if reverse else x
            result = accumulate(turned, axis)
            if exclusive:
                first = torch.full_like(turned.narrow(axis, 0, min(1, turned.shape[axis])), identity)
                result = torch.cat([first, result.narrow(axis, 0, max(0, turned.shape[axis] - 1))], axis)
            return torch.flip(result, [axis]) if reverse else result

        return run


_scan("Cumsum", lambda x, axis: torch.cumsum(x, axis, dtype=x.dtype), 0)
_scan("Cumprod", lambda x, axis: torch.cumprod(x, axis, dtype=x.dtype), 1)
_scan("CumulativeLogsumexp", lambda x, axis: torch.logcumsumexp(in_wide(x), axis), -math.inf)


def _largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    if values.dim() < 1 or not 0 <= k <= values.shape[-1]:
        raise Unsuited
    found, places = torch.sort(values, dim=-1, descending=True, stable=True)  # of equal ones the first comes first
    return found[..., :k], places[..., :k]


@computes("TopK", types=COMPUTED - _COMPLEX)
def _(node: KernelNode) -> TensorFunction:
    k = node.attr("k")
    return lambda values: _largest(values, k)


@computes("TopKV2", types=COMPUTED - _COMPLEX)
def _(node: KernelNode) -> TensorFunction:
    return lambda values, k: _largest(values, int(k))
