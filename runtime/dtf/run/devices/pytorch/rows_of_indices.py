"""Gathering, scattering, segments and one-hot vectors.

CPU tensors are checked for indices out of range, as TensorFlow's CPU kernels do. On CUDA devices nothing waits for such
a check: as with TensorFlow's kernels for GPUs, a row that does not exist is read as zeros, and dropped where it
is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dtf.run.devices.pytorch.arrays import COMPUTED
from dtf.run.devices.pytorch.rows import TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.wire import dtypes

__all__ = ["combine_rows", "gathered", "nd_rows", "valid_rows"]

_COMPLEX = frozenset((dtypes.complex64, dtypes.complex128))
_WIDE_INTEGERS = {torch.int8: torch.int32, torch.int16: torch.int32, torch.uint8: torch.int32}


def valid_rows(indices: Tensor, limit: int) -> Tensor | None:
    """A mask of the indices within [0, limit); None: all are.

    Raises:
      Unsuited: an index of a CPU tensor is not, which is the CPU's kernel's error.
    """
    is_valid = (indices >= 0) & (indices < limit)
    if indices.is_cuda:
        return is_valid
    if not bool(is_valid.all()):
        raise Unsuited
    return None


def gathered(params: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The entries of `params` along an axis that `indices` (of any rank) name."""
    if params.dim() < 1 or not -params.dim() <= axis < params.dim():
        raise Unsuited
    axis %= params.dim()
    limit = params.shape[axis]
    is_valid = valid_rows(indices, limit)
    flat = indices.reshape(-1).long()
    if is_valid is not None:
        if not limit:
            raise Unsuited
        flat = flat.clamp(0, limit - 1)
    found = torch.index_select(params, axis, flat)
    if is_valid is not None:
        around = [1] * params.dim()
        around[axis] = -1
        found = torch.where(is_valid.reshape(around), found, torch.zeros_like(found))
    return found.reshape(*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :])


@computes("Gather", attr="Tparams")
def _(node: KernelNode) -> TensorFunction:
    return lambda params, indices: gathered(params, indices, 0)


@computes("GatherV2", attr="Tparams")
def _(node: KernelNode) -> TensorFunction:
    batch_dims = node.attr("batch_dims")

    def gather(params: Tensor, indices: Tensor, axis: np.ndarray) -> Tensor:
        if batch_dims:
            raise Unsuited
        return gathered(params, indices, int(axis))

    return gather


def nd_rows(indices: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor | None]:
    """The row numbers that index vectors stand for over the leading dimensions of a shape, flat; and `valid_rows`."""
    depth = indices.shape[-1]
    if indices.dim() < 1 or depth > len(shape) or not depth:
        raise Unsuited
    sizes = torch.tensor(shape[:depth], device=indices.device)
    vectors = indices.reshape(-1, depth).long()
    is_valid = ((vectors >= 0) & (vectors < sizes)).all(-1)
    if not indices.is_cuda and not bool(is_valid.all()):
        raise Unsuited
    weights = torch.tensor([math.prod(shape[at + 1 : depth]) for at in range(depth)], device=indices.device)
    return (vectors * weights).sum(-1), is_valid if indices.is_cuda else None


@computes("GatherNd", attr="Tparams")
def _(node: KernelNode) -> TensorFunction:
    def gather_nd(params: Tensor, indices: Tensor) -> Tensor:
        if not params.numel():
            raise Unsuited
        rows, is_valid = nd_rows(indices, params.shape)
        depth = indices.shape[-1]
        flat = params.reshape(-1, *params.shape[depth:])
        found = flat.index_select(0, rows if is_valid is None else rows.clamp(0, flat.shape[0] - 1))
        if is_valid is not None:
            found = torch.where(is_valid.reshape(-1, *[1] * (found.dim() - 1)), found, torch.zeros_like(found))
        return found.reshape(*indices.shape[:-1], *params.shape[depth:])

    return gather_nd


# -- scattering


def combine_rows(how: str, out: Tensor, rows: Tensor, updates: Tensor) -> None:
    """Combines updates[i] into out[rows[i]] in place.

    Args:
      how: "Add", "Sub", "Mul", "Max", "Min", "Div" or "Update" (the last one wins, on CPUs).
      out: [n, ...], contiguous.
      rows: int64 [k], within [0, n).
      updates: [k, ...].
    """
    if how == "Update":
        out.index_copy_(0, rows, updates) if out.dim() else out.copy_(updates[-1])
    elif how in ("Add", "Sub"):
        out.index_add_(0, rows, updates, alpha=1 if how == "Add" else -1)
    elif how == "Div":
        if not out.is_floating_point():
            raise Unsuited
        _reduce_into(out, rows, 1 / updates, "prod")
    else:
        _reduce_into(out, rows, updates, {"Mul": "prod", "Max": "amax", "Min": "amin"}[how])


def _reduce_into(out: Tensor, rows: Tensor, updates: Tensor, how: str) -> Tensor:
    index = rows.reshape(-1, *[1] * (updates.dim() - 1)).expand(updates.shape)
    return out.scatter_reduce_(0, index, updates, how, include_self=True)


def scattered_nd(how: str, out: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Combines updates into the slices of `out` (contiguous) that index vectors name, in place."""
    depth = indices.shape[-1] if indices.dim() else 0
    if tuple(updates.shape) != tuple(indices.shape[:-1]) + tuple(out.shape[depth:]):
        raise Unsuited
    rows, is_valid = nd_rows(indices, out.shape)
    values = updates.reshape(-1, *out.shape[depth:])
    if is_valid is not None:
        rows, values = rows[is_valid], values[is_valid]
    combine_rows(how, out.view(-1, *out.shape[depth:]), rows, values)
    return out


@computes("ScatterNd")
def _(node: KernelNode) -> TensorFunction:
    def scatter_nd(indices: Tensor, updates: Tensor, shape: np.ndarray) -> Tensor:
        if not isinstance(indices, Tensor) or shape.ndim != 1 or min(shape.tolist(), default=0) < 0:
            raise Unsuited
        return scattered_nd("Add", updates.new_zeros(shape.tolist()), indices, updates)

    return scatter_nd


def _tensor_scatter(op: str, how: str) -> None:
    @computes(op)
    def factory(node: KernelNode) -> TensorFunction:
        return lambda tensor, indices, updates: scattered_nd(
            how, tensor.clone(memory_format=torch.contiguous_format), indices, updates
        )


for _op, _how in (("ScatterNdNonAliasingAdd", "Add"), ("TensorScatterAdd", "Add"), ("TensorScatterSub", "Sub"),
                  ("TensorScatterMax", "Max"), ("TensorScatterMin", "Min"), ("TensorScatterUpdate", "Update")):
    _tensor_scatter(_op, _how)


@computes("OneHot")
def _(node: KernelNode) -> TensorFunction:
    axis = node.attr("axis")

    def one_hot(indices: Tensor, depth: np.ndarray, on_value: Tensor, off_value: Tensor) -> Tensor:
        count = int(depth)
        if depth.ndim or count < 0 or on_value.dim() or off_value.dim():
            raise Unsuited
        classes = torch.arange(count, device=indices.device)
        out = torch.where(indices.unsqueeze(-1) == classes, on_value, off_value)
        return out if axis in (-1, indices.dim()) else out.movedim(-1, axis)

    return one_hot


# -- segments


def _start(how: str, dtype: torch.dtype) -> float:
    """What a segment that nothing names is."""
    if how in ("sum", "prod"):
        return 0 if how == "sum" else 1
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return limits.min if how == "amax" else limits.max


def reduced(how: str, data: Tensor, ids: Tensor, count: int, start: float) -> Tensor:
    """[count, ...]: row i is the reduction of the rows of `data` [k, ...] whose id is i."""
    wide = in_wide(data)
    out = torch.full((count, *data.shape[1:]), start, dtype=wide.dtype, device=data.device)
    if how == "sum":
        return out.index_add_(0, ids, wide)
    return _reduce_into(out, ids, wide, how)


def _unsorted(op: str, how: str) -> None:
    @computes(op, types=COMPUTED - _COMPLEX if how != "sum" else COMPUTED)
    def factory(node: KernelNode) -> TensorFunction:
        def run(data: Tensor, ids: Tensor, num_segments: np.ndarray) -> Tensor:
            count = int(num_segments)
            if count < 0 or data.shape[: ids.dim()] != ids.shape or not isinstance(ids, Tensor):
                raise Unsuited
            flat = ids.reshape(-1).long()
            values = data.reshape(flat.shape[0], *data.shape[ids.dim() :])
            if not flat.is_cuda and flat.numel() and int(flat.max()) >= count:
                raise Unsuited
            is_dropped = (flat < 0) | (flat >= count)
            # One row more takes what is dropped, so that nothing waits to learn how many rows that are.
            rows = flat.masked_fill(is_dropped, count)
            return reduced(how, values, rows, count + 1, _start(how, data.dtype))[:count]

        return run


for _op, _how in (("Sum", "sum"), ("Prod", "prod"), ("Max", "amax"), ("Min", "amin")):
    _unsorted(f"UnsortedSegment{_op}", _how)


def _sorted(op: str, how: str, empty: float) -> None:
    @computes(op, types=COMPUTED - _COMPLEX)
    def factory(node: KernelNode) -> TensorFunction:
        def run(data: Tensor, ids: Tensor) -> Tensor:
            if ids.dim() != 1 or not data.dim() or len(data) != len(ids) or not len(ids):
                raise Unsuited
            rows = ids.long()
            if bool((rows[1:] < rows[:-1]).any()) or int(rows[0]) < 0:
                raise Unsuited
            count = int(rows[-1]) + 1
            if how == "mean" and not data.is_floating_point():
                raise Unsuited
            times = torch.bincount(rows, minlength=count).reshape(-1, *[1] * (data.dim() - 1))
            if how == "mean":
                return reduced("sum", data, rows, count, 0) / times.clamp(min=1)
            result = reduced(how, data, rows, count, _start(how, data.dtype))
            return torch.where(times == 0, torch.full_like(result, empty), result)

        return run


for _op, _how, _empty in (("Sum", "sum", 0), ("Prod", "prod", 1), ("Max", "amax", 0), ("Min", "amin", 0),
                          ("Mean", "mean", 0)):
    _sorted(f"Segment{_op}", _how, _empty)


def _after(divide: Callable[[Tensor], Tensor] | None, sums: Tensor, ids: Tensor, count: int) -> Tensor:
    if divide is None:
        return sums
    times = torch.bincount(ids, minlength=count).clamp(min=1).to(sums.dtype)
    return sums / divide(times).reshape(-1, *[1] * (sums.dim() - 1))


def _sparse(name: str, divide: Callable[[Tensor], Tensor] | None) -> None:
    @computes(f"SparseSegment{name}", f"SparseSegment{name}WithNumSegments", types=COMPUTED - _COMPLEX)
    def forward(node: KernelNode) -> TensorFunction:
        def run(data: Tensor, indices: Tensor, ids: Tensor, num_segments: np.ndarray | None = None) -> Tensor:
            if indices.shape != ids.shape or ids.dim() != 1 or not len(ids) or not data.is_floating_point():
                raise Unsuited
            rows = ids.long()
            if bool((rows[1:] < rows[:-1]).any()) or int(rows[0]) < 0:
                raise Unsuited
            count = int(rows[-1]) + 1
            if num_segments is not None:
                if count > int(num_segments):
                    raise Unsuited
                count = int(num_segments)
            return _after(divide, reduced("sum", gathered(in_wide(data), indices, 0), rows, count, 0), rows, count)

        return run


_sparse("Sum", None)
_sparse("Mean", lambda times: times)
_sparse("SqrtN", torch.sqrt)


# -- taking apart and putting together


@computes("DynamicStitch", "ParallelDynamicStitch")
def _(node: KernelNode) -> TensorFunction:
    count = node.attr("N")

    def dynamic_stitch(*indices_and_data: Tensor) -> Tensor:
        indices, data = indices_and_data[:count], indices_and_data[count:]
        rest = tuple(data[0].shape[indices[0].dim() :])
        if any(tuple(values.shape) != (*index.shape, *rest) for index, values in zip(indices, data, strict=True)):
            raise Unsuited
        flat = [index.reshape(-1).long() for index in indices]
        every = torch.cat(flat)
        if every.numel() and int(every.min()) < 0:
            raise Unsuited
        out = data[0].new_zeros((int(every.max()) + 1 if every.numel() else 0, *rest))
        for index, values in zip(flat, data, strict=True):
            if index.numel():
                out.index_copy_(0, index, values.reshape(-1, *rest))
        return out

    return dynamic_stitch


@computes("DynamicPartition")
def _(node: KernelNode) -> TensorFunction:
    count = node.attr("num_partitions")

    def dynamic_partition(data: Tensor, partitions: Tensor) -> list[Tensor]:
        if data.shape[: partitions.dim()] != partitions.shape:
            raise Unsuited
        valid_rows(partitions, count)
        numbers = partitions.reshape(-1)
        rows = data.reshape(numbers.shape[0], *data.shape[partitions.dim() :])
        return [rows[numbers == number] for number in range(count)]

    return dynamic_partition


@computes("MatrixBandPart")
def _(node: KernelNode) -> TensorFunction:
    def band_part(value: Tensor, lower: np.ndarray | Tensor, upper: np.ndarray | Tensor) -> Tensor:
        if value.dim() < 2:
            raise Unsuited
        below, above = int(lower), int(upper)
        rows = torch.arange(value.shape[-2], device=value.device)[:, None]
        columns = torch.arange(value.shape[-1], device=value.device)
        is_in = (below < 0 or rows - columns <= below) & (above < 0 or columns - rows <= above)
        return value * 1 if is_in is True else torch.where(is_in, value, torch.zeros_like(value))

    return band_part
