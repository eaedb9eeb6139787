"""Parts of variables in checkpoints: extents, their text and key forms, and putting a tensor together from parts.

Owns what both checkpoint formats share about slices; does not know files. Extents have one (start, length) per
dimension, and a length of -1 is the whole dimension.

    >>> parse_slice_spec("4 3 0,2:-")
    ([4, 3], [(0, 2), (0, -1)])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dtf.wire import dtypes, errors, limits

Extents = Sequence[tuple[int, int]]
"""One (start, length) per dimension; length -1 is the whole dimension."""


def parse_slice_spec(text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Parses SaveV2's and RestoreV2's `shape_and_slices` entry, such as "4 3 0,2:-".

    Returns (full shape, extents).

    Raises:
      InvalidArgumentError: the text has another form.
    """
    try:
        *dims, last = text.split()
        shape = [int(dim) for dim in dims]
        extents = [
            (0, -1) if part == "-" else (int(part.split(",")[0]), int(part.split(",")[1])) for part in last.split(":")
        ]
        if len(extents) != len(shape):
            raise ValueError("rank")
    except (ValueError, IndexError):
        raise errors.InvalidArgumentError.of(f"not a tensor slice specification: {text!r}") from None
    return shape, extents


def spelled_out(extents: Extents, full_shape: Sequence[int]) -> list[tuple[int, int]]:
    """Extents with every length spelled out.

    Raises:
      InvalidArgumentError: they do not lie within `full_shape`.
    """
    spelled = [
        (start, size - start if length < 0 else length)
        for (start, length), size in zip(extents, full_shape, strict=True)
    ]
    for (start, length), size in zip(spelled, full_shape, strict=True):
        if start < 0 or length < 0 or start + length > size:
            message = f"slice {list(extents)} does not lie within shape {list(full_shape)}"
            raise errors.InvalidArgumentError.of(message)
    return spelled


def cut(whole: np.ndarray, extents: Extents) -> np.ndarray:
    """The part of a tensor that `extents` names."""
    return whole[tuple(slice(start, start + length) for start, length in spelled_out(extents, whole.shape))]


def put_together(
    what: str,
    dtype: dtypes.DType,
    full_shape: Sequence[int],
    wanted: Extents,
    stored: Iterable[Extents],
    read_part: Callable[[Extents], np.ndarray],
) -> np.ndarray:
    """One part of a tensor, made from those parts of it that are stored; only what is needed is read.

    Args:
      what: names the tensor in errors.
      dtype: its dtype.
      full_shape: the shape of the whole.
      wanted: which part is asked for.
      stored: which parts there are.
      read_part: gives one of them.

    Raises:
      NotFoundError: the stored parts do not cover what is asked for.
      DataLossError: a part has another shape than it should, or parts overlap, as no writer lets them.
    """
    target_extents = spelled_out(wanted, full_shape)
    sizes = [length for _, length in target_extents]
    parts = []
    covered = 0
    for extents in stored:
        held = spelled_out(extents, full_shape)
        common = [(max(a, c), min(a + b, c + d)) for (a, b), (c, d) in zip(target_extents, held, strict=True)]
        if all(low < high for low, high in common):
            parts.append((extents, held, common))
            covered += math.prod(high - low for low, high in common)
    if covered < math.prod(sizes):
        raise errors.NotFoundError.of(f"Tensor slices of {what} do not cover the requested slice")
    if covered > math.prod(sizes) or not _are_disjoint([common for _, _, common in parts], target_extents):
        raise errors.DataLossError.of(f"Tensor slices of {what} overlap")
    limits.check_room(sizes, dtype.size or 8, dtype.name)
    result = np.empty(sizes, dtype.as_numpy_dtype)
    for extents, held, common in parts:
        part = read_part(extents)
        if list(part.shape) != [length for _, length in held]:
            message = f"{what}: the values at {list(extents)} have shape {list(part.shape)}"
            raise errors.DataLossError.of(message)
        result[_within(common, target_extents)] = part[_within(common, held)]
    return result


def _are_disjoint(parts: Sequence[Sequence[tuple[int, int]]], target: Sequence[tuple[int, int]]) -> bool:
    """Whether parts of a target, together of its size, do not overlap, and so leave nothing of it out."""
    if len(parts) < 2:
        return True
    whole = [(start, start + length) for start, length in target]
    axes = {axis for part in parts for axis, (held, all_of_it) in enumerate(zip(part, whole, strict=True))
            if held != all_of_it}  # fmt: skip
    if len(axes) == 1:  # as partitioners cut
        [axis] = axes
        ends = sorted(part[axis] for part in parts)
        return all(before[1] <= after[0] for before, after in itertools.pairwise(ends))
    covered = np.zeros([length for _, length in target], bool)
    for part in parts:
        covered[_within(part, target)] = True
    return bool(covered.all())


def check_stored(proto: Any, full_shape: Sequence[int], what: str) -> None:
    """Raises DataLossError when a TensorSliceProto of a file does not name a part of a tensor of that shape."""
    extents = extents_from_proto(proto)
    try:
        if len(extents) == len(full_shape):
            spelled_out(extents, full_shape)
            return
    except errors.InvalidArgumentError:
        pass
    message = f"{what} has a slice {extents} that is not one of shape {list(full_shape)}"
    raise errors.DataLossError.of(message)


def extents_to_proto(extents: Extents) -> Any:
    """Extents as a TensorSliceProto."""
    from dtf.wire.pb import tensor_slice_pb2

    proto = tensor_slice_pb2.TensorSliceProto()
    for start, length in extents:
        extent = proto.extent.add()
        if length >= 0:
            extent.start, extent.length = start, length
    return proto


def extents_from_proto(proto: Any) -> list[tuple[int, int]]:
    """The extents that a TensorSliceProto tells."""
    return [(e.start, e.length if e.HasField("length") else -1) for e in proto.extent]


def slice_key(name: str, extents: Extents) -> bytes:
    """The key of one part of a variable: order-preserving codes of 0, name, rank, and each start and length.

    A whole dimension is (0, -1); the key is of the extents as they were given, not spelled out.
    """
    key = _ordered_number(0) + _ordered_string(name.encode()) + _ordered_number(len(extents))
    for start, length in extents:
        key += _ordered_signed(start) + _ordered_signed(length)
    return key


def _within(common: Sequence[tuple[int, int]], extents: Extents) -> tuple[slice, ...]:
    """Indices of the common (low, high) ranges inside the part that starts where `extents` do."""
    return tuple(slice(low - start, high - start) for (low, high), (start, _) in zip(common, extents, strict=True))


def _ordered_number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _ordered_string(value: bytes) -> bytes:
    # UTF-8 has no byte 0xff, which would need a code of its own.
    return value.replace(b"\0", b"\0\xff") + b"\0\x01"


def _ordered_signed(value: int) -> bytes:
    """A signed integer in n bytes of 7 n bits: the header bits count the bytes, flipped for negative values."""
    magnitude = value if value >= 0 else ~value
    size = magnitude.bit_length() // 7 + 1
    header = ((1 << size) - 1) << (8 * size - size)
    code = (value & ((1 << 8 * size) - 1)) ^ header
    return code.to_bytes(size, "big")
