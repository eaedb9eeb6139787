"""Kernels that put strings together from many: templates, n-grams, segments; and those that unpack what is stored in
strings: compressed and padded bytes.
"""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, room
from dtf.run.value_types import Array
from dtf.wire import errors
from dtf.wire.decompress import decompress
from dtf.wire.strings import string_scalar

# -- templates


@kernel("StringFormat")
def _(node: KernelNode) -> Function:
    parts = as_text(node.attr("template")).split(as_text(node.attr("placeholder")))
    most = node.attr("summarize")
    if len(parts) - 1 != len(node.attr("T")):
        raise invalid(f"num placeholders in template and num inputs must match: {len(parts) - 1} vs. "
                      f"{len(node.attr('T'))}")  # fmt: skip

    def string_format(*values: np.ndarray) -> np.ndarray:
        texts = [_summary(np.asarray(value), most) for value in values]
        text = parts[0] + "".join(text + part for text, part in zip(texts, parts[1:], strict=True))
        return string_scalar(text.encode("utf-8", "surrogateescape"))

    return string_format


def _summary(array: Array, most: int, depth: int = 1) -> str:
    """A value with the first and the last `most` entries of every dimension (all: -1), nested in brackets."""
    if not np.ndim(array):
        return _word(array[()] if isinstance(array, np.ndarray) else array)
    count = len(array)
    if most < 0 or count <= 2 * most:
        entries = [_summary(each, most, depth + 1) for each in array]
    else:
        first, last = ([_summary(each, most, depth + 1) for each in part] for part in (array[:most], array[-most:]))
        entries = [*first, "...", *(last if most else [])]
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{between.join(entries)}]"


def _word(element: Array) -> str:
    if isinstance(element, bytes):
        return '"' + element.decode("utf-8", "surrogateescape") + '"'
    if isinstance(element, (bool, np.bool_)):
        return str(int(element))
    if isinstance(element, (complex, np.complexfloating)):
        return "?"
    if isinstance(element, (int, np.integer)):
        return str(int(element))
    wide = isinstance(element, np.float64)
    short = f"{float(element):.15g}" if wide else f"{float(element):.6g}"
    same = float(short) == element if wide else np.float32(short) == np.float32(element)
    if same or element != element:
        return short
    return f"{float(element):.17g}" if wide else f"{float(element):.9g}"


# -- n-grams and segments


@kernel("StringNGrams")
def _(node: KernelNode) -> Function:
    separator, left, right = (_bytes(node.attr(name)) for name in ("separator", "left_pad", "right_pad"))
    widths, pad_width = list(node.attr("ngram_widths")), node.attr("pad_width")
    keep_short = node.attr("preserve_short_sequences")
    if any(width <= 0 for width in widths):
        raise invalid("ngram_widths must contain positive values")

    def n_grams_of(row: list[bytes]) -> list[bytes]:
        made = []
        for width in widths:
            pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            padded = [left] * pad + row + [right] * pad
            made += [separator.join(padded[at : at + width]) for at in range(len(padded) - width + 1)]
        if keep_short and not made and row:
            pad = max(pad_width, 0)
            made.append(separator.join([left] * pad + row + [right] * pad))
        return made

    def string_n_grams(data: np.ndarray, splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape, data, splits = np.shape(splits), np.ravel(data), np.ravel(splits)
        if not splits.size:
            return np.full(data.shape, b"", object), splits
        if splits[0] != 0 or splits[-1] != data.size or (np.diff(splits) < 0).any():
            raise invalid(f"Invalid split values: they must rise from 0 to {data.size}, got {splits.tolist()}")
        values = data.tolist()
        bounds = splits.tolist()
        rows = [n_grams_of(values[start:stop]) for start, stop in zip(bounds[:-1], bounds[1:], strict=True)]
        flat = [value for row in rows for value in row]
        out = np.empty(len(flat), object)
        out[:] = flat
        return out, np.cumsum([0, *map(len, rows)]).astype(splits.dtype).reshape(shape)

    return string_n_grams


@kernel("UnsortedSegmentJoin")
def _(node: KernelNode) -> Function:
    separator = _bytes(node.attr("separator"))

    def unsorted_segment_join(values: np.ndarray, segment_ids: np.ndarray, count: np.ndarray) -> np.ndarray:
        total, rank = int(count), np.ndim(segment_ids)
        if total < 0:
            raise invalid("Number of segments must be non-negative.")
        if not rank:
            raise invalid("Segment_id cannot have rank 0")
        if np.ndim(values) < rank:
            raise errors.OutOfRangeError.of(
                f"Invalid segment_id rank {rank} for input with {np.ndim(values)} dimension(s)"
            )
        if np.shape(values)[:rank] != np.shape(segment_ids):
            raise invalid(
                f"Segment_ids shape {list(np.shape(segment_ids))} must be a prefix of the inputs' "
                f"{list(np.shape(values))}"
            )
        ids = np.ravel(segment_ids)
        if ids.size and (ids.min() < 0 or ids.max() >= total):
            raise invalid("segment_ids are not allowed to exceed num_segments or to have negative values.")
        inner = np.shape(values)[rank:]
        rows = values.reshape(ids.size, -1) if ids.size else np.empty((0, int(np.prod(inner))), object)
        out = np.empty(room((total, rows.shape[1]), object), object)
        for segment in range(total):
            members = rows[ids == segment]
            out[segment] = [separator.join(column) for column in members.T.tolist()]
        return out.reshape(total, *inner)

    return unsorted_segment_join


# -- bytes in strings

@kernel("DecodeCompressed")
def _(node: KernelNode) -> Function:
    kind = as_text(node.attr("compression_type"))
    if kind not in ("", "ZLIB", "GZIP"):
        raise invalid(f"Only ZLIB, GZIP or NONE are supported compressions, got {kind}")

    def unpack(value: bytes) -> bytes:
        return decompress(value, kind, "DecodeCompressed")

    def decode_compressed(values: np.ndarray) -> np.ndarray:
        if not kind:
            return values
        out = np.empty(np.shape(values), object)
        out.reshape(-1)[:] = [unpack(value) for value in np.ravel(values)]
        return out

    return decode_compressed


@kernel("DecodePaddedRaw")
def _(node: KernelNode) -> Function:
    dtype = np.dtype(node.attr("out_type").as_numpy_dtype)
    swap = not node.attr("little_endian") and dtype.itemsize > 1

    def decode_padded_raw(values: np.ndarray, fixed_length: np.ndarray) -> np.ndarray:
        length = int(fixed_length)
        if length <= 0 or length % dtype.itemsize:
            raise invalid(f"fixed_length ({length}) must be a positive multiple of {dtype.itemsize}")
        room((np.size(values), length), np.uint8)
        padded = np.zeros((np.size(values), length), np.uint8)
        for row, value in zip(padded, np.ravel(values), strict=True):
            row[: len(value)] = np.frombuffer(value[:length], np.uint8)
        flat = padded.reshape(-1).view(dtype)
        return (flat.byteswap() if swap else flat).reshape(*np.shape(values), length // dtype.itemsize)

    return decode_padded_raw


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
