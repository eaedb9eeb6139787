"""Checkpoints in TensorFlow's V2 format, the tensor bundle.

A bundle `<prefix>` is `<prefix>.index`, a sorted table of names to entries (dtype, shape, place, checksum), and
`<prefix>.data-00000-of-00001`, the tensors' little-endian bytes one after another. Owns reading, writing and merging
of such files; does not know graphs, variables, or which checkpoint is the latest (train.checkpoint_management).

A bundle is complete or absent: each file is written aside, synced and renamed, the index last.

    writer = BundleWriter("model.ckpt-5")
    writer.add("w", array)
    writer.finish()
    BundleReader("model.ckpt-5").read("w")

Source: https://www.tensorflow.org/guide/checkpoint and the format facts of tensorflow/core/util/tensor_bundle.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import struct
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, cast

import numpy as np

from dtf.wire import dtypes, errors
from dtf.wire.crc import crc32c, mask
from dtf.wire.files import file_errors, write_atomically
from dtf.wire.index_table import read_table, read_varint, write_table, write_varint
from dtf.wire.tensor_shape import TensorShape

Extents = Sequence[tuple[int, int]]
"""One (start, length) per dimension; length -1 is the whole dimension."""

_HEADER_KEY = b""
_PRODUCER = 1


class BundleWriter:
    """Writes one bundle. Nothing stands under the prefix until `finish`; `abandon` leaves nothing behind.

    Raises (all methods):
      NotFoundError: the folder does not exist.
      ResourceExhaustedError: the disk is full.
      PermissionDeniedError, UnknownError: the file system refuses otherwise.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._entries: dict[bytes, Any] = {}
        self._offset = 0
        self._aside = f"{prefix}.tempstate{secrets.token_hex(8)}"
        with file_errors(prefix):
            self._data: BinaryIO = open(self._aside, "wb")  # noqa: SIM115  (closed by finish or abandon)

    def add(self, name: str, array: np.ndarray) -> None:
        """Adds a whole tensor.

        Raises:
          InvalidArgumentError: the name is there already.
        """
        self._put(name.encode(), array)

    def add_slice(self, name: str, full_shape: Sequence[int], extents: Extents, array: np.ndarray) -> None:
        """Adds one part of the variable `name`, whose whole has `full_shape`."""
        key = name.encode()
        entry = self._entries.get(key)
        if entry is None:
            entry = self._new_entry(np.asarray(array), full_shape)
            self._entries[key] = entry
        normalised(extents, full_shape)  # checks them
        entry.slices.append(_slice_to_proto(extents))
        self._put(slice_key(name, extents), array)

    def finish(self) -> None:
        """Makes the bundle visible under its prefix."""
        from dtf.wire.pb import tensor_bundle_pb2

        header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
        header.version.producer = _PRODUCER
        items = [(_HEADER_KEY, header.SerializeToString())]
        items += [(key, entry.SerializeToString()) for key, entry in sorted(self._entries.items())]
        try:
            with file_errors(self.prefix):
                _sync_and_close(self._data)
                os.replace(self._aside, data_file(self.prefix, 0, 1))
                write_atomically(index_file(self.prefix), write_table(items))
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Gives up: removes what was written aside."""
        # On a full disk closing fails as well, for what is still buffered; the file is closed all the same.
        with contextlib.suppress(OSError):
            self._data.close()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._aside)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()

    def _put(self, key: bytes, value: np.ndarray) -> None:
        if key in self._entries and not self._entries[key].slices:
            raise errors.InvalidArgumentError(None, None, f"Adding duplicate key: {key.decode(errors='replace')}")
        array = np.asarray(value)
        entry = self._new_entry(array, array.shape)
        chunks, crc = _encode(array)
        with file_errors(self.prefix):
            for chunk in chunks:
                self._data.write(chunk)
        entry.offset = self._offset
        entry.size = sum(len(chunk) for chunk in chunks)
        entry.crc32c = mask(crc)
        self._offset += entry.size
        self._entries[key] = entry

    def _new_entry(self, array: np.ndarray, shape: Sequence[int]) -> Any:
        from dtf.wire.pb import tensor_bundle_pb2

        dtype = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
        return tensor_bundle_pb2.BundleEntryProto(
            dtype=cast(Any, dtype.as_datatype_enum), shape=TensorShape(list(shape)).as_proto()
        )


class BundleReader:
    """Reads one bundle.

    Raises:
      NotFoundError: there is no checkpoint under the prefix.
      DataLossError: a file is damaged or cut short (also from the reading methods).
    """

    def __init__(self, prefix: str) -> None:
        from dtf.wire.pb import tensor_bundle_pb2

        self.prefix = prefix
        try:
            with open(index_file(prefix), "rb") as file:
                table = dict(read_table(file.read(), index_file(prefix)))
        except (FileNotFoundError, NotADirectoryError):
            message = f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
            raise errors.NotFoundError(None, None, message) from None
        header_bytes = table.pop(_HEADER_KEY, None)
        if header_bytes is None:
            raise errors.DataLossError(None, None, f"{index_file(prefix)}: the bundle has no header")
        header = tensor_bundle_pb2.BundleHeaderProto.FromString(header_bytes)
        if header.endianness != header.LITTLE:
            message = f"{index_file(prefix)}: big-endian bundles cannot be read here"
            raise errors.UnimplementedError(None, None, message)
        self._num_shards = header.num_shards
        self._entries = {key: tensor_bundle_pb2.BundleEntryProto.FromString(value) for key, value in table.items()}

    def keys(self) -> list[str]:
        """The names of all tensors and partitioned variables, sorted."""
        return sorted(key.decode() for key in self._entries if not key.startswith(b"\0"))

    def data_files(self) -> list[str]:
        """The paths of the data files that the index speaks of, whether they exist or not."""
        return [data_file(self.prefix, shard, self._num_shards) for shard in range(self._num_shards)]

    def is_whole(self) -> bool:
        """Whether all data files are there and reach as far as the index says; their contents are not read."""
        ends = dict.fromkeys(range(self._num_shards), 0)
        for entry in self._entries.values():
            ends[entry.shard_id] = max(ends.get(entry.shard_id, 0), entry.offset + entry.size)
        try:
            return all(
                os.path.getsize(data_file(self.prefix, shard, self._num_shards)) >= end for shard, end in ends.items()
            )
        except OSError:
            return False

    def has(self, name: str) -> bool:
        """Whether the bundle holds `name`."""
        return name.encode() in self._entries

    def dtype(self, name: str) -> dtypes.DType:
        """The dtype of a tensor. Raises NotFoundError."""
        return dtypes.as_dtype(self._entry(name.encode()).dtype)

    def shape(self, name: str) -> TensorShape:
        """The whole shape of a tensor, also of a partitioned one. Raises NotFoundError."""
        return TensorShape(self._entry(name.encode()).shape)

    def read(self, name: str) -> np.ndarray:
        """A whole tensor; the parts of a partitioned variable are put together."""
        entry = self._entry(name.encode())
        if not entry.slices:
            return self._read_entry(name, entry)
        return self.read_slice(name, [(0, -1)] * len(entry.shape.dim))

    def read_slice(self, name: str, extents: Extents) -> np.ndarray:
        """The part of a tensor that `extents` names, from wherever it is stored.

        Raises:
          NotFoundError: the name, or a part of what is asked for, is not in the bundle.
        """
        entry = self._entry(name.encode())
        full_shape = [dim.size for dim in entry.shape.dim]
        wanted = normalised(extents, full_shape)
        if not entry.slices:
            return self._read_entry(name, entry)[tuple(slice(start, start + length) for start, length in wanted)]
        result = np.empty([length for _, length in wanted], dtypes.as_dtype(entry.dtype).as_numpy_dtype)
        covered = 0
        for proto in entry.slices:
            stored = _slice_from_proto(proto)
            held = normalised(stored, full_shape)
            common = [(max(a, c), min(a + b, c + d)) for (a, b), (c, d) in zip(wanted, held, strict=True)]
            if any(low >= high for low, high in common):
                continue
            part = self._read_entry(name, self._entry(slice_key(name, stored)))
            source = _within(common, held)
            target = _within(common, wanted)
            result[target] = part[source]
            covered += int(np.prod([high - low for low, high in common]))
        if covered < result.size:
            message = f"Tensor slices of {name} in checkpoint {self.prefix} do not cover what is asked for"
            raise errors.NotFoundError(None, None, message)
        return result

    def _entry(self, key: bytes) -> Any:
        try:
            return self._entries[key]
        except KeyError:
            name = key.decode(errors="replace")
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint {self.prefix}") from None

    def _read_entry(self, name: str, entry: Any) -> np.ndarray:
        path = data_file(self.prefix, entry.shard_id, self._num_shards)
        try:
            with open(path, "rb") as file:
                stored = np.fromfile(file, np.uint8, entry.size, offset=entry.offset)
        except FileNotFoundError:
            raise errors.NotFoundError(None, None, f"{path}: the checkpoint's data file is missing") from None
        if len(stored) < entry.size:
            message = f"{path}: cut short: tensor {name} needs {entry.size} bytes at {entry.offset}, has {len(stored)}"
            raise errors.DataLossError(None, None, message)
        shape = [dim.size for dim in entry.shape.dim]
        if entry.dtype == dtypes.string.as_datatype_enum:
            array, crc = _decode_strings(stored, shape, f"{path}: tensor {name}")
        else:
            array = stored.view(dtypes.as_dtype(entry.dtype).as_numpy_dtype).reshape(shape)
            crc = crc32c(stored)
        if mask(crc) != entry.crc32c:
            raise errors.DataLossError(None, None, f"{path}: Checksum does not match for tensor {name}")
        return array


def merge_bundles(prefixes: Sequence[str], merged: str, delete_old_folders: bool = True) -> None:
    """Makes one bundle of several, by renaming their data files and joining their indexes.

    Raises:
      InvalidArgumentError: two bundles hold the same tensor.
      NotFoundError: one of them is not there.
    """
    from dtf.wire.pb import tensor_bundle_pb2

    header = tensor_bundle_pb2.BundleHeaderProto()
    header.version.producer = _PRODUCER
    entries: dict[bytes, Any] = {}
    moves: list[tuple[str, int]] = []
    for prefix in dict.fromkeys(prefixes):
        reader = BundleReader(prefix)
        first_shard = len(moves)
        moves += [(path, first_shard + number) for number, path in enumerate(reader.data_files())]
        for key, entry in reader._entries.items():
            if entry.slices and key in entries:
                entries[key].slices.extend(entry.slices)
                continue
            if key in entries:
                message = f"Duplicate tensor {key.decode(errors='replace')} in the merged checkpoint {merged}"
                raise errors.InvalidArgumentError(None, None, message)
            if not entry.slices:
                entry.shard_id += first_shard
            entries[key] = entry
    header.num_shards = len(moves)
    items = [(_HEADER_KEY, header.SerializeToString())]
    items += [(key, entry.SerializeToString()) for key, entry in sorted(entries.items())]
    with file_errors(merged):
        os.makedirs(os.path.dirname(merged) or ".", exist_ok=True)
        for source, shard in moves:
            os.replace(source, data_file(merged, shard, len(moves)))
        write_atomically(index_file(merged), write_table(items))
        for prefix in prefixes:
            with contextlib.suppress(FileNotFoundError):
                os.remove(index_file(prefix))
        if delete_old_folders:
            for folder in {os.path.dirname(prefix) for prefix in prefixes} - {os.path.dirname(merged)}:
                with contextlib.suppress(OSError):  # somebody else's files may be there too
                    os.rmdir(folder)


def index_file(prefix: str) -> str:
    """The path of a bundle's index."""
    return f"{prefix}.index"


def data_file(prefix: str, shard: int, num_shards: int) -> str:
    """The path of one of a bundle's data files."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def bundle_files(prefix: str) -> list[str]:
    """The existing files of a bundle."""
    return sorted(glob.glob(glob.escape(prefix) + ".index") + glob.glob(glob.escape(prefix) + ".data-*-of-*"))


def _within(common: Sequence[tuple[int, int]], extents: Extents) -> tuple[slice, ...]:
    """Indices of the common (low, high) ranges inside the part that starts where `extents` do."""
    return tuple(slice(low - start, high - start) for (low, high), (start, _) in zip(common, extents, strict=True))


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
        raise errors.InvalidArgumentError(None, None, f"not a tensor slice specification: {text!r}") from None
    return shape, extents


def normalised(extents: Extents, full_shape: Sequence[int]) -> list[tuple[int, int]]:
    """Extents with every length spelled out.

    Raises:
      InvalidArgumentError: they do not lie within `full_shape`.
    """
    spelled = [
        (start, size - start if length < 0 else length)
        for (start, length), size in zip(extents, full_shape, strict=True)
    ]
    for (start, length), size in zip(spelled, full_shape, strict=True):
        if start < 0 or start + length > size:
            message = f"slice {list(extents)} does not lie within shape {list(full_shape)}"
            raise errors.InvalidArgumentError(None, None, message)
    return spelled


def slice_key(name: str, extents: Extents) -> bytes:
    """The index key of one part of a variable: order-preserving codes of 0, name, rank, and each start and length.

    A whole dimension is (0, -1); the key is of the extents as they were given, not spelled out.
    """
    key = _ordered_number(0) + _ordered_string(name.encode()) + _ordered_number(len(extents))
    for start, length in extents:
        key += _ordered_signed(start) + _ordered_signed(length)
    return key


def _ordered_number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _ordered_string(value: bytes) -> bytes:
    return value.replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff") + b"\0\x01"


def _ordered_signed(value: int) -> bytes:
    """A signed integer in n bytes of 7 n bits: the header bits count the bytes, flipped for negative values."""
    magnitude = value if value >= 0 else ~value
    size = magnitude.bit_length() // 7 + 1
    header = ((1 << size) - 1) << (8 * size - size)
    code = (value & ((1 << 8 * size) - 1)) ^ header
    return code.to_bytes(size, "big")


def _slice_to_proto(extents: Extents) -> Any:
    from dtf.wire.pb import tensor_slice_pb2

    proto = tensor_slice_pb2.TensorSliceProto()
    for start, length in extents:
        extent = proto.extent.add()
        if length >= 0:
            extent.start, extent.length = start, length
    return proto


def _slice_from_proto(proto: Any) -> list[tuple[int, int]]:
    return [(e.start, e.length if e.HasField("length") else -1) for e in proto.extent]


def _encode(array: np.ndarray) -> tuple[list[Any], int]:
    """Returns the chunks to store and their checksum."""
    if array.dtype != object:
        stored = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return [stored], crc32c(stored)
    values = [value if isinstance(value, bytes) else str(value).encode() for value in array.reshape(-1)]
    lengths = b"".join(write_varint(len(value)) for value in values)
    crc = crc32c(_fixed_lengths([len(value) for value in values]))
    guard = struct.pack("<I", mask(crc))
    crc = crc32c(guard, crc)
    joined = b"".join(values)
    return [lengths, guard, joined], crc32c(joined, crc)


def _decode_strings(stored: np.ndarray, shape: Sequence[int], what: str) -> tuple[np.ndarray, int]:
    data = stored.tobytes()
    lengths, position = [], 0
    try:
        for _ in range(int(np.prod(shape, dtype=np.int64))):
            length, position = read_varint(data, position)
            lengths.append(length)
    except IndexError:
        raise errors.DataLossError(None, None, f"{what}: string lengths are cut short") from None
    crc = crc32c(_fixed_lengths(lengths))
    guard = data[position : position + 4]
    if guard != struct.pack("<I", mask(crc)):
        raise errors.DataLossError(None, None, f"{what}: Checksum does not match for the string lengths")
    position += 4
    crc = crc32c(data[position:], crc32c(guard, crc))
    result = np.empty(len(lengths), object)
    for number, length in enumerate(lengths):
        result[number] = data[position : position + length]
        position += length
    return result.reshape(shape), crc


def _fixed_lengths(lengths: Iterable[int]) -> bytes:
    return b"".join(struct.pack("<I" if length <= 0xFFFFFFFF else "<Q", length) for length in lengths)


def _sync_and_close(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()
