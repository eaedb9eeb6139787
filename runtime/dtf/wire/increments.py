"""Increments: checkpoints that hold, of large tables, only the rows that have changed since the checkpoint before.

An increment is a bundle. Of a table `t` it has the changed rows: `t/.INCREMENT/<n>/rows`, `.../values` and
`.../about`, JSON with the base (a checkpoint in the same folder, by its name), the whole shape, and which part of the
whole it is; all other tensors are whole. Owns these names, the reader that joins an increment and its bases, and
`compact`, which makes an increment a bundle that TensorFlow reads.

    compact("model.ckpt-20")
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass

import numpy as np

from dtf.wire import dtypes, errors, filesystems
from dtf.wire.checkpoint import BundleReader, BundleWriter, bundle_files, data_file
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.tensor_slices import Extents, cut, parse_slice_spec, spelled_out

__all__ = ["INCREMENTS_MAX", "IncrementReader", "Names", "about", "compact", "is_increment", "names_of", "opened"]

_MARK = "/.INCREMENT/"
INCREMENTS_MAX = 200
"""In a row: a reader opens all of them, each from the one after it."""


@dataclass(frozen=True)
class Names:
    """The names of what an increment has of one part of a table."""

    rows: str
    values: str
    about: str


def names_of(name: str, number: int) -> Names:
    """The names for the part of a table that is the tensor `number` of its save."""
    return Names(*(f"{name}{_MARK}{number}/{each}" for each in ("rows", "values", "about")))


def about(base: str, shape: tuple[int, ...], spec: str) -> np.ndarray:
    """The tensor that says to what rows belong.

    Args:
      base: the prefix of the checkpoint before.
      shape: the shape of the part.
      spec: which part of a table it is, as SaveV2 has it; "" for a whole.
    """
    text = json.dumps({"base": os.path.basename(base), "shape": list(shape), "spec": spec})
    return np.array(text.encode(), object)


def is_increment(reader: BundleReader) -> bool:
    """Whether a bundle has rows of tables that are whole only together with another one."""
    return any(_MARK in name for name in list(reader.keys()))


def opened(prefix: str) -> BundleReader | IncrementReader:
    """The reader of a bundle, whole or an increment. Raises as BundleReader does."""
    reader = BundleReader(prefix)
    return IncrementReader(reader, []) if is_increment(reader) else reader


@dataclass(frozen=True)
class _Part:
    """Rows of one part of a table: `extents` is None where it is the whole."""

    names: Names
    base: str
    full_shape: list[int]
    shape: list[int]
    extents: list[tuple[int, int]] | None


class IncrementReader:
    """Reads an increment as if it were whole. The methods are BundleReader's.

    Raises (all methods):
      NotFoundError: a base is missing.
      DataLossError: a file is damaged, or what it says of its rows cannot be.
    """

    def __init__(self, reader: BundleReader, later: list[str]) -> None:
        self.prefix = reader.prefix
        self._reader = reader
        self._later = [*later, os.path.abspath(reader.prefix)]
        self._bases: dict[str, BundleReader | IncrementReader] = {}
        self._parts: dict[str, list[_Part]] = {}
        for name in list(reader.keys()):
            if _MARK in name and name.endswith("/about"):
                self._add(name)

    def _add(self, key: str) -> None:
        name, _, number = key.removesuffix("/about").partition(_MARK)
        names = Names(*(f"{name}{_MARK}{number}/{each}" for each in ("rows", "values", "about")))
        try:
            said = json.loads(self._reader.read(key).item())
            base, shape, spec = said["base"], [int(size) for size in said["shape"]], said["spec"]
            full_shape, extents = parse_slice_spec(spec) if spec else (shape, None)
            if not base or base != os.path.basename(base) or base in (".", "..") or not shape or "\0" in base:
                raise ValueError("the base is not a name, or there are no rows")
            if extents is not None and [length for _, length in spelled_out(extents, full_shape)] != shape:
                raise ValueError(f"the shape {shape} is not that of {spec!r}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise errors.DataLossError.of(f"{self.prefix}: {key} cannot be read: {error}") from error
        self._parts.setdefault(name, []).append(_Part(names, base, full_shape, shape, extents))

    def keys(self) -> list[str]:
        return sorted({*(each for each in list(self._reader.keys()) if _MARK not in each), *self._parts})

    def has(self, name: str) -> bool:
        return name in self._parts or self._reader.has(name)

    def dtype(self, name: str) -> dtypes.DType:
        parts = self._parts.get(name)
        return self._reader.dtype(parts[0].names.values) if parts else self._reader.dtype(name)

    def shape(self, name: str) -> TensorShape:
        parts = self._parts.get(name)
        return TensorShape(parts[0].full_shape) if parts else self._reader.shape(name)

    def read(self, name: str) -> np.ndarray:
        if name not in self._parts:
            return self._reader.read(name)
        return self.read_slice(name, [(0, -1)] * len(self._parts[name][0].full_shape))

    def read_slice(self, name: str, extents: Extents) -> np.ndarray:
        parts = self._parts.get(name)
        if parts is None:
            return self._reader.read_slice(name, extents)
        full_shape = parts[0].full_shape
        wanted = spelled_out(extents, full_shape)
        for part in parts:
            if spelled_out(part.extents or [(0, -1)] * len(full_shape), full_shape) == wanted:
                return self._updated(name, part, self._base(part.base).read_slice(name, extents))
        if self._reader.has(name) and all(wanted != self._place(part) for part in parts):
            try:
                return self._reader.read_slice(name, extents)  # a part that this checkpoint has whole
            except errors.NotFoundError:
                pass
        whole = self._base(parts[0].base).read(name)
        if not whole.flags.writeable:
            whole = np.array(whole)
        if self._reader.has(name):
            for place in self._reader.stored_parts(name):
                _part_of(whole, place)[...] = self._reader.read_slice(name, place)
        for part in parts:
            view = _part_of(whole, self._place(part))
            view[...] = self._updated(name, part, np.array(view))
        return cut(whole, extents)

    def is_whole(self) -> bool:
        """Whether all files are there and long enough, the bases' too."""
        try:
            return self._reader.is_whole() and all(reader.is_whole() for reader in self._direct_bases().values())
        except errors.OpError:
            return False

    def bases(self) -> list[str]:
        """The prefixes of all checkpoints that this one needs, the nearest first."""
        found: dict[str, None] = {}
        for prefix, reader in self._direct_bases().items():
            found[prefix] = None
            found.update(dict.fromkeys(reader.bases()))
        return list(found)

    def _direct_bases(self) -> dict[str, BundleReader | IncrementReader]:
        return {self._prefix_of(part.base): self._base(part.base) for parts in self._parts.values() for part in parts}

    def _prefix_of(self, base: str) -> str:
        return os.path.join(filesystems.dirname(self.prefix), base)

    def _base(self, base: str) -> BundleReader | IncrementReader:
        found = self._bases.get(base)
        if found is None:
            prefix = self._prefix_of(base)
            if os.path.abspath(prefix) in self._later:
                raise errors.DataLossError.of(f"{self.prefix}: its base {base} is based on it")
            if len(self._later) > INCREMENTS_MAX:
                raise errors.DataLossError.of(f"{self.prefix}: more than {INCREMENTS_MAX} increments in a row")
            try:
                reader = BundleReader(prefix)
            except errors.NotFoundError as error:
                raise errors.NotFoundError.of(
                    f"{self.prefix} is an increment, and its base {prefix} is missing"
                ) from error
            found = self._bases[base] = IncrementReader(reader, self._later) if is_increment(reader) else reader
        return found

    def _place(self, part: _Part) -> list[tuple[int, int]]:
        return spelled_out(part.extents or [(0, -1)] * len(part.full_shape), part.full_shape)

    def _updated(self, name: str, part: _Part, table: np.ndarray) -> np.ndarray:
        rows, values = self._reader.read(part.names.rows), self._reader.read(part.names.values)
        fits = list(table.shape) == part.shape and rows.dtype == np.int64 and values.dtype == table.dtype
        if not fits or values.shape != (rows.size, *part.shape[1:]) or rows.ndim != 1:
            raise errors.DataLossError.of(f"{self.prefix}: the rows of {name} do not fit its base {part.base}")
        if rows.size and (rows.min() < 0 or rows.max() >= part.shape[0]):
            raise errors.DataLossError.of(f"{self.prefix}: {name} has no row {rows.max()}, which is in its increment")
        if not table.flags.writeable:
            table = np.array(table)
        table[rows] = values
        return table


def _part_of(whole: np.ndarray, extents: Extents) -> np.ndarray:
    return whole[tuple(slice(start, start + length) for start, length in spelled_out(extents, whole.shape))]


def compact(prefix: str) -> bool:
    """Makes an increment a whole checkpoint under the same prefix. It needs no base from then on. Its files keep their
    time, which says when it was saved.

    Returns:
      False: it is whole already.

    Raises:
      OpError: as IncrementReader's and BundleWriter's methods; the increment is as it was.
    """
    bundle = BundleReader(prefix)
    if not is_increment(bundle):
        return False
    reader = IncrementReader(bundle, [])
    before = set(bundle.data_files())
    saved_ns = max(filesystems.stat(path).mtime_ns for path in bundle_files(prefix))
    with BundleWriter(prefix, is_beside=before == {data_file(prefix, 0, 1)}) as writer:
        for name in list(reader.keys()):
            writer.add(name, reader.read(name))
    for path in before - set(BundleReader(prefix).data_files()):
        if filesystems.exists(path):
            filesystems.remove(path)
    for path in bundle_files(prefix):
        with contextlib.suppress(OSError):  # a store's objects cannot be dated
            os.utime(path, ns=(saved_ns, saved_ns))
    return True
