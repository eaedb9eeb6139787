"""Several tensors as one message between two dtf programs: a manifest of what there is, then the elements.

Owns a layout of our own that costs less to write and read than one protobuf message per tensor: all sizes stand in
front, where they are the same from step to step and are looked up, and elements are aligned where they lie. Numbers are
row-major and little-endian. What protobuf must describe (strings, handles, variants) is a TensorProto inside.

    message    count u32, bytes of entries u32, bytes of labels u32, 0 u32, entries, tags u32 each, labels as JSON,
               padding, padded elements of each
    entry      type u8 (a DataType, or DEAD or PROTO), rank u8, 6 zeros, bytes u64, sizes i64 each
"""

from __future__ import annotations

import json
import math
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.wire import codec, dtypes, errors, forks
from dtf.wire.python_values import no_tensor

Buffer = Any

LABELLED = 0xFFFFFFFF
"""The tag of a value that has a label instead of a number."""

_HEAD = struct.Struct("<IIII")
_ENTRY = struct.Struct("<BB6xQ")
_DEAD = 254
_PROTO = 255
_ALIGNMENT = 16
_COPIED_BYTES_MAX = 4096
_REMEMBERED_MAX = 1024
_REMEMBERED_BYTES_MAX = 1 << 20
"""Of manifests: what a peer writes in one byte takes ten here."""


def pack(
    values: Sequence[Any], tags: Sequence[int] | None = None, labels: Sequence[str] = (), dead: Any = None
) -> list[Buffer]:
    """The message, in pieces; a large array's piece is its own memory.

    Args:
      values: arrays, numpy scalars, handles.
      tags: a number for each value, by default its position; those that are LABELLED take the labels in order.
      dead: the object that stands for a dead tensor.

    What is sent before it must be a multiple of 16 bytes long.
    """
    pieces: list[Buffer] = [b""]
    entries: list[bytes] = []
    for value in values:
        try:
            head = _head_of[value.dtype, value.shape]
        except (KeyError, AttributeError):
            head, value = _describe(value, dead)
        entries.append(head)
        data: Buffer
        if type(value) is bytes:
            data, size = value, len(value)
        else:
            size = value.nbytes
            data = value.tobytes() if size <= _COPIED_BYTES_MAX else _bytes_of(value)
        if size:
            pieces.append(data)
            if size % _ALIGNMENT:
                pieces.append(_PADDING[-size % _ALIGNMENT])
    pieces[0] = _front(tuple(entries), None if tags is None else tuple(tags), labels)
    return pieces


def unpack(data: Buffer, at: int = 0, dead: Any = None) -> list[Any]:
    """The values of a message that begins at `at`; large ones are read-only views of `data`.

    Raises:
      InvalidArgumentError: it is none.
    """
    return unpack_tagged(data, at, dead)[0]


def unpack_tagged(data: Buffer, at: int = 0, dead: Any = None) -> tuple[list[Any], tuple[int, ...], tuple[str, ...]]:
    """The values of a message, their tags, and the labels of those that are LABELLED. Errors as `unpack`."""
    try:
        manifest = _manifest(data, at)
        values: list[Any] = []
        for count, dtype, sizes, begin, size, kind in manifest.runs:
            if dtype is None:
                values.append(_odd(data, kind, begin + at, size, dead))
            elif count == 1:
                values.append(np.ndarray(sizes, dtype, data, begin + at))
            else:
                values.extend(np.ndarray((count, *sizes), dtype, data, begin + at))
    except (struct.error, ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise errors.InvalidArgumentError.of(f"Malformed tensors: {error}") from None
    return values, manifest.tags, manifest.labels


class _Manifest:
    """What stands in front of the elements. `runs` tells where they are: (how many of a kind stand side by side,
    dtype, sizes, begin, bytes, kind).
    """

    __slots__ = ("labels", "runs", "tags")

    def __init__(self, text: bytes) -> None:
        count, entry_bytes, label_bytes, _ = _HEAD.unpack_from(text)
        runs: list[tuple[int, Any, tuple[int, ...], int, int, int]] = []
        begin = len(text) + -len(text) % _ALIGNMENT
        at = _HEAD.size
        for _ in range(count):
            kind, rank, size = _ENTRY.unpack_from(text, at)
            at += _ENTRY.size
            sizes = struct.unpack_from(f"<{rank}q", text, at)
            at += 8 * rank
            dtype = None
            if kind < _DEAD:
                dtype = np.dtype(dtypes.as_dtype(kind).as_numpy_dtype)
                if dtype.hasobject:
                    raise ValueError("elements that are objects do not lie in a message")
                if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != size:
                    raise ValueError("the sizes do not fit")
            before = runs[-1] if runs else None
            if before is not None and before[1:3] == (dtype, sizes) and sizes and size and size % _ALIGNMENT == 0:
                runs[-1] = (before[0] + 1, *before[1:])
            else:
                runs.append((1, dtype, sizes, begin, size, kind))
            begin += size + -size % _ALIGNMENT
        if at != _HEAD.size + entry_bytes:
            raise ValueError("the entries do not fit")
        self.runs = runs
        self.tags: tuple[int, ...] = struct.unpack_from(f"<{count}I", text, at)
        labels = json.loads(text[at + 4 * count :]) if label_bytes else []
        if type(labels) is not list or len(labels) != self.tags.count(LABELLED):
            raise ValueError("the labels do not fit")
        self.labels = tuple(map(str, labels))


def _manifest(data: Buffer, at: int) -> _Manifest:
    """What stands in front of the elements: the same at every step, and looked up."""
    count, entry_bytes, label_bytes, _ = _HEAD.unpack_from(data, at)
    text = bytes(data[at : at + _HEAD.size + entry_bytes + 4 * count + label_bytes])
    found = _manifests.get(text)
    if found is None:
        found = _Manifest(text)
        if not label_bytes:
            _remember(text, found)
    return found


def _remember(text: bytes, manifest: _Manifest) -> None:
    global _remembered_bytes
    with _remembering:
        if len(_manifests) >= _REMEMBERED_MAX or _remembered_bytes + len(text) > _REMEMBERED_BYTES_MAX:
            _manifests.clear()
            _remembered_bytes = 0
        if len(text) <= _REMEMBERED_BYTES_MAX and text not in _manifests:
            _manifests[text] = manifest
            _remembered_bytes += len(text)


def _front(entries: tuple[bytes, ...], tags: tuple[int, ...] | None, labels: Sequence[str]) -> bytes:
    """What stands in front of the elements: without labels the same at every step, and looked up."""
    found = None if labels else _fronts.get((entries, tags))
    if found is None:
        found = _new_front(entries, range(len(entries)) if tags is None else tags, labels)
        if not labels:
            if len(_fronts) >= _REMEMBERED_MAX:
                _fronts.clear()
            _fronts[entries, tags] = found
    return found


def _new_front(entries: Sequence[bytes], tags: Sequence[int], labels: Sequence[str]) -> bytes:
    text = b"".join(entries)
    names = json.dumps(labels).encode() if labels else b""
    head = _HEAD.pack(len(entries), len(text), len(names), 0)
    manifest = b"".join((head, text, struct.pack(f"<{len(entries)}I", *tags), names))
    return manifest + _PADDING[-len(manifest) % _ALIGNMENT]


def _bytes_of(array: np.ndarray) -> memoryview:
    """The memory of an array, or that of a copy in row-major order."""
    try:
        return array.data.cast("B")
    except (TypeError, ValueError, BufferError):  # of another order, or of a type that buffers do not know
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _describe(value: Any, dead: Any) -> tuple[bytes, Any]:
    """The entry of a value whose type and shape have not been met yet, and its elements."""
    if dead is not None and value is dead:
        return _ENTRY.pack(_DEAD, 0, 0), b""
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.hasobject or dtype.kind in "SU":
        try:
            text = codec.array_to_proto(value).SerializeToString()
        except TypeError:
            raise no_tensor(value) from None
        return _ENTRY.pack(_PROTO, 0, len(text)), text
    array = np.asarray(value)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    enum = dtypes.as_dtype(array.dtype).as_datatype_enum
    head = _ENTRY.pack(enum, array.ndim, array.nbytes) + struct.pack(f"<{array.ndim}q", *array.shape)
    if value.dtype == array.dtype:
        if len(_head_of) >= _REMEMBERED_MAX:
            _head_of.clear()
        _head_of[value.dtype, value.shape] = head
    return head, array


def _odd(data: Buffer, kind: int, begin: int, size: int, dead: Any) -> Any:
    if kind == _DEAD:
        return dead
    return codec.decode_tensor(bytes(data[begin : begin + size]))


_PADDING = [bytes(count) for count in range(_ALIGNMENT)]
_head_of: dict[tuple[Any, tuple[int, ...]], bytes] = {}
_manifests: dict[bytes, _Manifest] = {}
_remembered_bytes = 0
_remembering = threading.Lock()
"""Guards changes of both."""
_fronts: dict[tuple[tuple[bytes, ...], tuple[int, ...] | None], bytes] = {}


def _begin_anew() -> None:
    """In a forked process: the lock may be held by a thread of the parent."""
    global _remembering
    _remembering = threading.Lock()


forks.in_child(_begin_anew)
