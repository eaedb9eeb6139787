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
import io
import math
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, cast

import numpy as np
from google.protobuf.message import DecodeError

from dtf.wire import dtypes, errors, filesystems, limits
from dtf.wire.crc import crc32c, joined_crc32c, mask
from dtf.wire.files import error_of, file_errors, written_aside
from dtf.wire.index_table import read_table, write_table
from dtf.wire.tensor_proto import variant_from_proto, variant_to_proto
from dtf.wire.tensor_shape import TensorShape, is_possible
from dtf.wire.tensor_slices import (
    Extents,
    check_stored,
    cut,
    extents_from_proto,
    extents_to_proto,
    put_together,
    slice_key,
    spelled_out,
)
from dtf.wire.unfinished import new_token
from dtf.wire.variants import is_variant
from dtf.wire.varints import read_varint, varint
from dtf.wire.versions import CHECKPOINT, check_versions

_HEADER_KEY = b""
_READ_BYTES = 1 << 20
"""As much as is checked while it is still in the processor's cache."""


class BundleWriter:
    """Writes one bundle. Nothing stands under the prefix until `finish`; `abandon` leaves nothing behind.

    Args:
      prefix: the prefix of its files.
      is_beside: a bundle with one data file is replaced: take other names for the data, so that the old one is whole
        until the new index is there.

    Raises (all methods):
      NotFoundError: the folder does not exist.
      ResourceExhaustedError: the disk is full.
      PermissionDeniedError, UnknownError: the file system refuses otherwise.
    """

    def __init__(self, prefix: str, is_beside: bool = False) -> None:
        self.prefix = prefix
        self._shard, self._shards = (1, 2) if is_beside else (0, 1)
        self._entries: dict[bytes, Any] = {}
        self._offset = 0
        self._aside = f"{prefix}.tempstate{new_token()}"
        with file_errors(prefix):
            self._data: BinaryIO = filesystems.open(self._aside, "wb")  # noqa: SIM115  (closed by finish or abandon)

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
        spelled_out(extents, full_shape)  # checks them
        entry.slices.append(extents_to_proto(extents))
        self._put(slice_key(name, extents), array)

    @property
    def takes_pieces_in_any_order(self) -> bool:
        """Whether several tensors can be written at the same time, by `reserve`: in files of this machine."""
        return isinstance(self._data, io.BufferedWriter)

    def reserve(
        self, name: str, dtype: np.dtype, shape: Sequence[int], part: tuple[Sequence[int], Extents] | None = None
    ) -> PieceWriter:
        """Makes room for a tensor of numbers that comes piece by piece. It must be whole before `finish`, and, unless
        `takes_pieces_in_any_order`, before anything else is added.

        Args:
          part: the full shape and the extents, where the tensor is a part of the variable `name`.

        Raises:
          InvalidArgumentError: the name is there already.
        """
        key = name.encode()
        if part is not None:
            whole = self._entries.get(key)
            if whole is None:
                whole = self._entries[key] = self._new_entry(np.empty(0, dtype), part[0])
            spelled_out(part[1], part[0])  # checks them
            whole.slices.append(extents_to_proto(part[1]))
            key = slice_key(name, part[1])
        self._check_new(key)
        entry = self._new_entry(np.empty(0, dtype), shape)
        entry.offset, entry.size = self._offset, math.prod(shape) * dtype.itemsize
        self._offset += entry.size
        self._entries[key] = entry
        return PieceWriter(self.prefix, self._data, entry, self.takes_pieces_in_any_order)

    def finish(self) -> None:
        """Makes the bundle visible under its prefix."""
        from dtf.wire.pb import tensor_bundle_pb2

        header = tensor_bundle_pb2.BundleHeaderProto(num_shards=self._shards)
        header.version.producer = CHECKPOINT
        items = [(_HEADER_KEY, header.SerializeToString())]
        items += [(key, entry.SerializeToString()) for key, entry in sorted(self._entries.items())]
        try:
            with file_errors(self.prefix):
                _sync_and_close(self._data)
                with written_aside(index_file(self.prefix), write_table(items)) as index:
                    filesystems.replace(self._aside, data_file(self.prefix, self._shard, self._shards))
                    for empty in range(self._shard):
                        filesystems.open(data_file(self.prefix, empty, self._shards), "wb").close()
                    filesystems.replace(index, index_file(self.prefix))
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Gives up: removes what was written aside."""
        # On a full disk closing fails as well, for what is still buffered; the file is closed all the same.
        with contextlib.suppress(OSError):
            self._data.close()
        with contextlib.suppress(FileNotFoundError):
            filesystems.remove(self._aside)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()

    def _put(self, key: bytes, value: np.ndarray) -> None:
        self._check_new(key)
        array = np.asarray(value)
        entry = self._new_entry(array, array.shape)
        chunks, crc = _encode(array)
        with file_errors(self.prefix):
            if self.takes_pieces_in_any_order:
                self._data.seek(self._offset)
            for chunk in chunks:
                self._data.write(chunk)
        entry.offset = self._offset
        entry.size = sum(len(chunk) for chunk in chunks)
        entry.crc32c = mask(crc)
        self._offset += entry.size
        self._entries[key] = entry

    def _check_new(self, key: bytes) -> None:
        if key in self._entries and not self._entries[key].slices:
            raise errors.InvalidArgumentError.of(f"Adding duplicate key: {key.decode(errors='replace')}")

    def _new_entry(self, array: np.ndarray, shape: Sequence[int]) -> Any:
        from dtf.wire.pb import tensor_bundle_pb2

        if array.dtype != object:
            dtype = dtypes.as_dtype(array.dtype)
        else:
            dtype = dtypes.variant if _holds_variants(array) else dtypes.string
        return tensor_bundle_pb2.BundleEntryProto(
            dtype=cast(Any, dtype.as_datatype_enum),
            shape=TensorShape(list(shape)).as_proto(),
            shard_id=self._shard,
        )


class PieceWriter:
    """Writes one tensor of a bundle in pieces: in any order and from several threads where the file allows that."""

    def __init__(self, prefix: str, file: BinaryIO, entry: Any, in_any_order: bool) -> None:
        self._prefix = prefix
        self._file = file
        self._entry = entry
        self._in_any_order = in_any_order
        self._checksums: dict[int, tuple[int, int]] = {}

    def write(self, start: int, piece: np.ndarray) -> None:
        """Writes bytes (a contiguous uint8 array), `start` bytes from where the tensor begins.

        Raises:
          OpError: as BundleWriter's methods.
        """
        self._checksums[start] = (crc32c(piece), len(piece))
        with file_errors(self._prefix):
            if not self._in_any_order:
                self._file.write(piece.data)
                return
            left, offset = piece.data, self._entry.offset + start
            while left:
                written = os.pwrite(self._file.fileno(), left, offset)
                left, offset = left[written:], offset + written

    def finish(self) -> None:
        """All pieces are written: stores their checksum."""
        crc, end = 0, 0
        for start, (checksum, length) in sorted(self._checksums.items()):
            assert start == end, f"bytes {end} to {start} are missing"
            crc, end = joined_crc32c(crc, checksum, length), end + length
        assert end == self._entry.size, f"bytes {end} to {self._entry.size} are missing"
        self._entry.crc32c = mask(crc)


class BundleReader:
    """Reads one bundle.

    Raises:
      NotFoundError: there is no checkpoint under the prefix.
      DataLossError: a file is damaged or cut short (also from the reading methods).
      InvalidArgumentError: its writer asks for another reader.
    """

    def __init__(self, prefix: str) -> None:
        from dtf.wire.pb import tensor_bundle_pb2

        self.prefix = prefix
        index = index_file(prefix)
        try:
            data = filesystems.read_regular(index)
        except (FileNotFoundError, NotADirectoryError):
            raise no_such_checkpoint(prefix) from None
        except OSError as error:
            raise error_of(error, index) from error
        table = dict(read_table(data, index))
        header_bytes = table.pop(_HEADER_KEY, None)
        if header_bytes is None:
            raise errors.DataLossError.of(f"{index}: the bundle has no header")
        try:
            header = tensor_bundle_pb2.BundleHeaderProto.FromString(header_bytes)
            self._entries = {key: tensor_bundle_pb2.BundleEntryProto.FromString(value) for key, value in table.items()}
        except DecodeError as error:
            raise errors.DataLossError.of(f"{index}: an entry cannot be read") from error
        check_versions(header.version, CHECKPOINT, f"{index}: Checkpoint")
        if header.endianness != header.LITTLE:
            message = f"{index}: big-endian bundles cannot be read here"
            raise errors.UnimplementedError.of(message)
        self._num_shards = header.num_shards
        limits.CHECKPOINT_SHARDS.check(self._num_shards, f"{index}: the number of its shards", errors.DataLossError)
        for key, entry in self._entries.items():
            self._check(key, entry)

    def _check(self, key: bytes, entry: Any) -> None:
        """Raises DataLossError for an entry that no writer makes: what follows relies on this."""
        what = f"{index_file(self.prefix)}: the entry of {key.decode(errors='replace')!r}"
        sizes = [dim.size for dim in entry.shape.dim]
        if entry.shape.unknown_rank or not is_possible(sizes) or not is_storable(entry.dtype):
            raise errors.DataLossError.of(f"{what} has type {entry.dtype} and shape {sizes}")
        if entry.offset < 0 or entry.size < 0 or not 0 <= entry.shard_id < max(1, self._num_shards):
            where = f"{entry.size} bytes at {entry.offset} of shard {entry.shard_id} of {self._num_shards}"
            raise errors.DataLossError.of(f"{what} names {where}")
        for stored in entry.slices:
            check_stored(stored, sizes, what)
        if not key.startswith(b"\0"):
            try:
                key.decode()
            except UnicodeDecodeError:
                raise errors.DataLossError.of(f"{what}: its name is not UTF-8") from None

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
            sizes = {shard: filesystems.getsize(data_file(self.prefix, shard, self._num_shards)) for shard in ends}
        except OSError:
            return False
        return all(sizes[shard] >= end for shard, end in ends.items())

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
        if not entry.slices:
            return cut(self._read_entry(name, entry), extents)

        dtype = dtypes.as_dtype(entry.dtype)

        def read_part(stored: Extents) -> np.ndarray:
            return self._read_entry(name, self._entry(slice_key(name, stored)), dtype)

        stored = [extents_from_proto(proto) for proto in entry.slices]
        return put_together(f"{name} in checkpoint {self.prefix}", dtype, full_shape, extents, stored, read_part)

    def stored_parts(self, name: str) -> list[Extents]:
        """The parts of a partitioned variable that the bundle has; none of a whole tensor. Raises NotFoundError."""
        return [extents_from_proto(proto) for proto in self._entry(name.encode()).slices]

    def bases(self) -> list[str]:
        """The checkpoints that this one needs: none. An increment has some."""
        return []

    def _entry(self, key: bytes) -> Any:
        try:
            return self._entries[key]
        except KeyError:
            name = key.decode(errors="replace")
            raise errors.NotFoundError.of(f"Key {name} not found in checkpoint {self.prefix}") from None

    def _read_entry(self, name: str, entry: Any, wanted: dtypes.DType | None = None) -> np.ndarray:
        path = data_file(self.prefix, entry.shard_id, self._num_shards)
        dtype = dtypes.as_dtype(entry.dtype)
        shape = [dim.size for dim in entry.shape.dim]
        # Each string and variant takes a byte at least.
        fits = entry.size == math.prod(shape) * dtype.size if dtype.size else entry.size >= math.prod(shape)
        if not fits or wanted not in (None, dtype):
            message = f"{path}: tensor {name} of shape {shape} and type {dtype.name} cannot have {entry.size} bytes"
            raise errors.DataLossError.of(message)
        try:
            there = filesystems.getsize(path) - entry.offset  # 0 of a pipe, whose reader would wait
            if entry.size <= max(0, there) and dtype.size:
                array, crc = _read_numbers(path, entry, dtype, shape)
            else:
                stored, there = filesystems.read_array(path, entry.offset, entry.size)
        except FileNotFoundError:
            raise errors.NotFoundError.of(f"{path}: the checkpoint's data file is missing") from None
        except OSError as error:
            raise error_of(error, path) from error
        if entry.size > max(0, there):
            message = f"{path}: cut short: tensor {name} needs {entry.size} bytes at {entry.offset}, has {there}"
            raise errors.DataLossError.of(message)
        if dtype is dtypes.string:
            array, crc = _decode_strings(stored, shape, f"{path}: tensor {name}")
        elif dtype is dtypes.variant:
            array, crc = _decode_variants(stored, shape, f"{path}: tensor {name}")
        if mask(crc) != entry.crc32c:
            raise errors.DataLossError.of(f"{path}: Checksum does not match for tensor {name}")
        return array


def _read_numbers(path: str, entry: Any, dtype: dtypes.DType, shape: Sequence[int]) -> tuple[np.ndarray, int]:
    """A tensor and its checksum. The array owns its memory, so that a variable may update it in place."""
    array = np.empty(shape, dtype.as_numpy_dtype)
    crc = 0
    for piece in filesystems.read_pieces(path, entry.offset, array.reshape(-1).view(np.uint8), _READ_BYTES):
        crc = crc32c(piece, crc)
    return array, crc


def merge_bundles(prefixes: Sequence[str], merged: str, delete_old_folders: bool = True) -> None:
    """Makes one bundle of several, by renaming their data files and joining their indexes.

    Raises:
      InvalidArgumentError: two bundles hold the same tensor.
      NotFoundError: one of them is not there.
    """
    from dtf.wire.pb import tensor_bundle_pb2

    header = tensor_bundle_pb2.BundleHeaderProto()
    header.version.producer = CHECKPOINT
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
                raise errors.InvalidArgumentError.of(message)
            if not entry.slices:
                entry.shard_id += first_shard
            entries[key] = entry
    header.num_shards = len(moves)
    items = [(_HEADER_KEY, header.SerializeToString())]
    items += [(key, entry.SerializeToString()) for key, entry in sorted(entries.items())]
    with file_errors(merged):
        filesystems.makedirs(filesystems.dirname(merged) or ".")
        with written_aside(index_file(merged), write_table(items)) as index:
            for source, shard in moves:
                filesystems.replace(source, data_file(merged, shard, len(moves)))
            filesystems.replace(index, index_file(merged))
        for prefix in prefixes:
            with contextlib.suppress(FileNotFoundError):
                filesystems.remove(index_file(prefix))
        if delete_old_folders:
            for folder in {filesystems.dirname(prefix) for prefix in prefixes} - {filesystems.dirname(merged)}:
                with contextlib.suppress(OSError):  # files of other programs may be there too
                    filesystems.rmdir(folder)


def index_file(prefix: str) -> str:
    """The path of a bundle's index."""
    return f"{prefix}.index"


def data_file(prefix: str, shard: int, num_shards: int) -> str:
    """The path of one of a bundle's data files."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def no_such_checkpoint(prefix: str) -> errors.NotFoundError:
    """The error for a prefix under which there is no checkpoint, in TensorFlow's words."""
    message = f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
    return errors.NotFoundError.of(message)


def bundle_files(prefix: str) -> list[str]:
    """The existing files of a bundle."""
    pattern = glob.escape(prefix)
    return sorted([*filesystems.glob(f"{pattern}.index"), *filesystems.glob(f"{pattern}.data-*-of-*")])


def _encode(array: np.ndarray) -> tuple[list[Any], int]:
    """Returns the chunks to store and their checksum."""
    if array.dtype != object:
        stored = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return [stored], crc32c(stored)
    if _holds_variants(array):
        return _encode_variants(array)
    values = [value if isinstance(value, bytes) else str(value).encode() for value in array.reshape(-1)]
    lengths = b"".join(varint(len(value)) for value in values)
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
        raise errors.DataLossError.of(f"{what}: string lengths are cut short") from None
    crc = crc32c(_fixed_lengths(lengths))
    guard = data[position : position + 4]
    if guard != struct.pack("<I", mask(crc)):
        raise errors.DataLossError.of(f"{what}: Checksum does not match for the string lengths")
    position += 4
    if sum(lengths) != len(data) - position:
        raise errors.DataLossError.of(f"{what}: the string lengths do not add up")
    crc = crc32c(data[position:], crc32c(guard, crc))
    result = np.empty(len(lengths), object)
    for number, length in enumerate(lengths):
        result[number] = data[position : position + length]
        position += length
    return result.reshape(shape), crc


def _holds_variants(array: np.ndarray) -> bool:
    first = array.reshape(-1)[0] if array.size else None
    return is_variant(first) or hasattr(first, "type_name")


def _encode_variants(array: np.ndarray) -> tuple[list[Any], int]:
    """Of each: the length of its message, the message, and the checksum of all up to there."""
    chunks, crc = [], 0
    for value in array.reshape(-1):
        message = variant_to_proto(value).SerializeToString()
        crc = crc32c(message, crc32c(struct.pack("<Q", len(message)), crc))
        guard = struct.pack("<I", mask(crc))
        crc = crc32c(guard, crc)
        chunks += [varint(len(message)), message, guard]
    return chunks, crc


def _decode_variants(stored: np.ndarray, shape: Sequence[int], what: str) -> tuple[np.ndarray, int]:
    from dtf.wire.pb import tensor_pb2

    data, position, crc = stored.tobytes(), 0, 0
    result = np.empty(math.prod(shape), object)
    for number in range(len(result)):
        try:
            length, position = read_varint(data, position)
        except IndexError:
            raise errors.DataLossError.of(f"{what}: cut short") from None
        message, guard = data[position : position + length], data[position + length : position + length + 4]
        crc = crc32c(message, crc32c(struct.pack("<Q", length), crc))
        if guard != struct.pack("<I", mask(crc)):
            raise errors.DataLossError.of(f"{what}: Checksum does not match")
        crc = crc32c(guard, crc)
        position += length + 4
        try:
            result[number] = variant_from_proto(tensor_pb2.VariantTensorDataProto.FromString(message))
        except (DecodeError, errors.InvalidArgumentError) as error:
            raise errors.DataLossError.of(f"{what}: a variant cannot be read: {error}") from error
    return result.reshape(shape), crc


def _fixed_lengths(lengths: Iterable[int]) -> bytes:
    return b"".join(struct.pack("<I" if length <= 0xFFFFFFFF else "<Q", length) for length in lengths)


def is_storable(enum: int) -> bool:
    """Whether tensors of a type, given by its number, can be in a bundle."""
    try:
        dtype = dtypes.as_dtype(enum)
    except TypeError:
        return False
    return not dtype._is_ref_dtype and (bool(dtype.size) or dtype in (dtypes.string, dtypes.variant))


def _sync_and_close(file: BinaryIO) -> None:
    filesystems.sync(file)
    file.close()
