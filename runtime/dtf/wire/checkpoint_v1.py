"""Checkpoints of TensorFlow's first format, V1: read, written, and told from those of the second.

A V1 checkpoint is one sorted table, or several shards named by a pattern such as `model-?????-of-00002`: under the
empty key stands which tensors and slices there are, under each slice's key its values. Owns the format, and
`open_checkpoint`, which finds what format a prefix has. Savers write the second (`checkpoint.py`) unless told to.

    open_checkpoint("model.ckpt-5").read("w")

Source: the format facts of tensorflow/core/util/saved_tensor_slice.proto
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from google.protobuf.message import DecodeError

from dtf.wire import codec, dtypes, errors, filesystems
from dtf.wire.checkpoint import index_file, is_storable, no_such_checkpoint
from dtf.wire.files import error_of, file_errors, write_atomically
from dtf.wire.increments import opened
from dtf.wire.index_table import read_table, write_table
from dtf.wire.tensor_shape import TensorShape, is_possible
from dtf.wire.tensor_slices import (
    Extents,
    check_stored,
    extents_from_proto,
    extents_to_proto,
    put_together,
    slice_key,
    spelled_out,
)
from dtf.wire.versions import CHECKPOINT, check_versions


class Checkpoint(Protocol):
    """What the readers of both formats offer; BundleReader documents the methods."""

    def keys(self) -> list[str]: ...
    def has(self, name: str) -> bool: ...
    def dtype(self, name: str) -> dtypes.DType: ...
    def shape(self, name: str) -> TensorShape: ...
    def read(self, name: str) -> np.ndarray: ...
    def read_slice(self, name: str, extents: Extents) -> np.ndarray: ...
    def is_whole(self) -> bool: ...
    def bases(self) -> list[str]: ...


def open_checkpoint(prefix: str) -> Checkpoint:
    """The reader of a checkpoint of either format.

    Raises:
      NotFoundError: there is no checkpoint under the prefix.
      DataLossError: its index is damaged or cut short.
    """
    if not filesystems.exists(index_file(prefix)) and v1_files(prefix):
        return TableReader(prefix)
    return opened(prefix)


def write_v1(path: str, parts: Sequence[tuple[str, Sequence[int], Extents, np.ndarray]]) -> None:
    """Writes one file of a V1 checkpoint, which is complete or absent.

    Args:
      parts: (name, shape of the whole, extents, values) of each tensor, or of each part of one.

    Raises:
      InvalidArgumentError: a part comes twice, or does not lie within the whole.
      OpError: the file cannot be written.
    """
    from dtf.wire.pb import saved_tensor_slice_pb2 as messages

    contents = messages.SavedTensorSlices()
    contents.meta.versions.producer = CHECKPOINT
    tensors: dict[str, Any] = {}
    table: dict[bytes, bytes] = {}
    for name, full_shape, extents, array in parts:
        spelled_out(extents, full_shape)  # checks them
        data = codec.array_to_proto(array, as_content=False)
        if name not in tensors:
            tensors[name] = contents.meta.tensor.add(name=name, type=data.dtype)
            tensors[name].shape.CopyFrom(TensorShape(list(full_shape)).as_proto())
        proto = extents_to_proto(extents)
        tensors[name].slice.append(proto)
        data.ClearField("dtype")
        data.ClearField("tensor_shape")
        key = slice_key(name, extents)
        if key in table:
            raise errors.InvalidArgumentError.of(f"{path}: two values for {name} at {list(extents)}")
        saved = messages.SavedSlice(name=name, slice=proto, data=data)
        table[key] = messages.SavedTensorSlices(data=saved).SerializeToString()
    with file_errors(path):
        write_atomically(path, write_table([(b"", contents.SerializeToString()), *sorted(table.items())]))


def v1_files(prefix: str) -> list[str]:
    """The files of a V1 checkpoint, sorted; `prefix` is a path, or the pattern of several shards' paths."""
    if filesystems.isfile(prefix):
        return [prefix]
    return sorted(path for path in filesystems.glob(prefix) if filesystems.isfile(path))


class TableReader:
    """Reads one V1 checkpoint.

    Raises:
      NotFoundError: there is no file of that name; or, by the reading methods, no such tensor.
      DataLossError: a file is damaged, cut short, or something else.
    """

    def __init__(self, prefix: str) -> None:
        from dtf.wire.pb import saved_tensor_slice_pb2

        self.prefix = prefix
        self._tensors: dict[str, Any] = {}
        self._values: dict[bytes, tuple[str, bytes]] = {}
        paths = v1_files(prefix)
        if not paths:
            raise no_such_checkpoint(prefix)
        for path in paths:
            try:
                table = dict(read_table(filesystems.read_regular(path), path))
            except OSError as error:
                raise error_of(error, path) from error
            try:
                slices = saved_tensor_slice_pb2.SavedTensorSlices.FromString(table.pop(b"", b""))
            except DecodeError as error:
                raise errors.DataLossError.of(f"{path}: its table of contents cannot be read") from error
            if not slices.HasField("meta"):
                raise errors.DataLossError.of(f"{path}: not a checkpoint of format V1: no table of contents")
            check_versions(slices.meta.versions, CHECKPOINT, f"{path}: Checkpoint")
            for tensor in slices.meta.tensor:
                what = f"{path}: the entry of {tensor.name!r}"
                sizes = [dim.size for dim in tensor.shape.dim]
                if tensor.shape.unknown_rank or not is_possible(sizes) or not is_storable(tensor.type):
                    raise errors.DataLossError.of(f"{what} has type {tensor.type} and shape {sizes}")
                for stored in tensor.slice:
                    check_stored(stored, sizes, what)
                known = self._tensors.setdefault(tensor.name, tensor)
                if known is not tensor:
                    if (known.type, known.shape) != (tensor.type, tensor.shape):
                        raise errors.DataLossError.of(f"{what} contradicts that of another file")
                    known.slice.extend(tensor.slice)
            self._values.update((key, (path, value)) for key, value in table.items())

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._tensors)

    def has(self, name: str) -> bool:
        """Whether the checkpoint holds `name`."""
        return name in self._tensors

    def dtype(self, name: str) -> dtypes.DType:
        """The dtype of a tensor. Raises NotFoundError."""
        return dtypes.as_dtype(self._tensor(name).type)

    def shape(self, name: str) -> TensorShape:
        """The whole shape of a tensor. Raises NotFoundError."""
        return TensorShape(self._tensor(name).shape)

    def bases(self) -> list[str]:
        """As BundleReader's."""
        return []

    def is_whole(self) -> bool:
        """Whether all values are there."""
        return all(
            slice_key(name, extents_from_proto(proto)) in self._values
            for name, tensor in self._tensors.items()
            for proto in tensor.slice
        )

    def read(self, name: str) -> np.ndarray:
        """A whole tensor."""
        return self.read_slice(name, [(0, -1)] * len(self._tensor(name).shape.dim))

    def read_slice(self, name: str, extents: Extents) -> np.ndarray:
        """The part of a tensor that `extents` names.

        Raises:
          NotFoundError: the name, or a part of what is asked for, is not in the checkpoint.
        """
        tensor = self._tensor(name)
        full_shape = [dim.size for dim in tensor.shape.dim]
        stored = [extents_from_proto(proto) for proto in tensor.slice]

        def read_part(part: Extents) -> np.ndarray:
            return self._read_part(name, part, full_shape)

        what = f"{name} in checkpoint {self.prefix}"
        return put_together(what, self.dtype(name), full_shape, extents, stored, read_part)

    def _tensor(self, name: str) -> Any:
        try:
            return self._tensors[name]
        except KeyError:
            raise errors.NotFoundError.of(f"Key {name} not found in checkpoint {self.prefix}") from None

    def _read_part(self, name: str, part: Extents, full_shape: Sequence[int]) -> np.ndarray:
        from dtf.wire.pb import saved_tensor_slice_pb2

        entry = self._values.get(slice_key(name, part))
        if entry is None:
            raise errors.DataLossError.of(f"{self.prefix}: the values of tensor {name} at {part} are missing")
        path, value = entry
        sizes = [size if length < 0 else length for (_, length), size in zip(part, full_shape, strict=True)]
        try:
            data = saved_tensor_slice_pb2.SavedTensorSlices.FromString(value).data.data
            # The message has bare values: type and shape stand in the table of contents.
            data.dtype = self._tensor(name).type
            data.tensor_shape.CopyFrom(TensorShape(sizes).as_proto())
            if codec.repeated_bytes(data):  # a writer writes every element
                raise errors.InvalidArgumentError.of("values are missing")
            return codec.proto_to_array(data)
        except (DecodeError, errors.InvalidArgumentError, errors.ResourceExhaustedError) as error:
            raise errors.DataLossError.of(f"{path}: the values of tensor {name} cannot be read") from error
