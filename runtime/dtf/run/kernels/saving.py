"""Kernels that save: SaveV2 and SaveIncrement, which training does not wait for, and the older Save and SaveSlices.

SaveV2 takes a snapshot of the variables when it starts and returns; a thread of the pool writes the file from it, while
other steps update the variables. The step that saves ends when the file is whole, as in TensorFlow.

Owns the writing of one save. What a snapshot keeps of variables is `state.snapshots`'s, the format `wire.checkpoint`'s.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, scalar
from dtf.run.state.resources import ResourceManager, Variable
from dtf.run.state.snapshots import PIECE_BYTES, Budget, VariableSnapshot, is_large
from dtf.run.state.touched_rows import TouchedRows, record_of
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Array
from dtf.wire import errors, filesystems, increments
from dtf.wire.checkpoint import BundleWriter, PieceWriter, merge_bundles
from dtf.wire.checkpoint_v1 import write_v1
from dtf.wire.crc import crc32c
from dtf.wire.files import file_errors
from dtf.wire.tensor_slices import parse_slice_spec
from dtf.wire.unfinished import remove_abandoned

_KEPT_PART = 0.25
"""The snapshots of a save may keep this part of the saved bytes in memory."""
_KEPT_BYTES_MIN = 1 << 24
_ROWS_PART = 0.5
"""Where more rows have changed than this part of a table, an increment has all of it."""
_OPEN_WAIT_S = 1.0
"""An update for whose old rows there is no room waits at most so long until the file is open."""


@kernel("SaveV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    def save(
        step: StepContext,
        done: Done[Outputs],
        prefix: Array,
        tensor_names: np.ndarray,
        shape_and_slices: np.ndarray,
        *tensors: Array,
    ) -> None:
        _start(step, done, prefix, tensor_names, shape_and_slices, tensors)

    return save


@kernel("SaveIncrement", asynchronous=True)
def _(node: KernelNode) -> Function:
    def save(
        step: StepContext,
        done: Done[Outputs],
        prefix: Array,
        tensor_names: np.ndarray,
        shape_and_slices: np.ndarray,
        base: Array,
        target: Array,
        *tensors: Array,
    ) -> None:
        saves = as_text(scalar(base, "base")), as_text(scalar(target, "target"))
        _start(step, done, prefix, tensor_names, shape_and_slices, tensors, *saves)

    return save


def _start(
    step: StepContext,
    done: Done[Outputs],
    prefix: Array,
    tensor_names: np.ndarray,
    shape_and_slices: np.ndarray,
    tensors: Sequence[Array],
    *saves: str,
) -> None:
    """Takes the snapshot of a save and has a thread of the pool write it. `saves`: as `_Save` takes them."""
    path = as_text(scalar(prefix, "prefix"))
    names, specs = _checked_names(tensor_names, shape_and_slices, tensors)
    job = _Save(path, names, specs, tensors, step.resources, step.cancellation, *saves)
    growing_pool.submit(job.run, done)


@dataclass(frozen=True)
class _Rows:
    """The rows of a table that an increment has."""

    snapshot: VariableSnapshot
    rows: np.ndarray
    names: increments.Names
    about: np.ndarray


class _RowPieces:
    """Takes the pieces of a whole table and writes the rows that are wanted. `PieceWriter`'s methods."""

    def __init__(self, part: _Rows, place: PieceWriter) -> None:
        self._rows = part.rows
        self._row_bytes = part.snapshot.nbytes // part.snapshot.shape[0]
        self._place = place

    def write(self, start: int, piece: np.ndarray) -> None:
        table = piece.reshape(-1, self._row_bytes)
        first = start // self._row_bytes
        begin, end = np.searchsorted(self._rows, (first, first + len(table))).tolist()
        if end > begin:
            self._place.write(begin * self._row_bytes, table[self._rows[begin:end] - first].reshape(-1))

    def finish(self) -> None:
        self._place.finish()


_Source = Array | VariableSnapshot | _Rows
_Place = PieceWriter | _RowPieces


class _Save:
    """One save. Its thread writes the pieces in order; a thread whose update finds the budget used up writes the rest
    of that variable between them. `_lock` guards the places in the file and the first failure of such a thread.

    Args:
      base: the save whose later changes are wanted; "": all.
      target: the name of this save, for the increment after it; "": there will be none.
    """

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        specs: Sequence[str],
        tensors: Sequence[Array],
        resources: ResourceManager,
        cancellation: CancellationManager,
        base: str = "",
        target: str = "",
    ) -> None:
        self._path = path
        self._base = base if base != target else ""
        self._target = target
        self._records: list[tuple[TouchedRows | None, TouchedRows]] = []
        self._cancellation = cancellation
        self._lock = threading.Lock()
        self._places: dict[VariableSnapshot, _Place] = {}
        self._has_places = threading.Event()
        self._failure: errors.OpError | None = None
        size = sum(np.asarray(tensor).nbytes for tensor in tensors)
        budget = Budget(max(int(size * _KEPT_PART), _KEPT_BYTES_MIN))
        large = [tensor for tensor in tensors if is_large(tensor)]
        holders = _holders(large, resources) if large else {}
        self._parts: list[tuple[str, str, _Source]] = []
        try:
            for name, spec, tensor in zip(names, specs, tensors, strict=True):
                self._parts.append((name, spec, self._source(name, spec, tensor, holders, budget)))
        except BaseException:
            self._close()
            raise

    def _source(self, name: str, spec: str, tensor: Array, holders: dict[int, Variable], budget: Budget) -> _Source:
        """A snapshot where a variable still has this value; else the value, which nobody modifies."""
        variable = holders.get(id(tensor))
        if variable is None:
            return tensor
        with variable.lock:
            if not variable.holds(tensor):
                return tensor
            snapshot = VariableSnapshot(variable, budget, self._write_rest)
            rows = self._rows_to_save(variable, snapshot) if self._target else None
        if rows is None:
            return snapshot
        names = increments.names_of(name, crc32c(spec.encode()))
        return _Rows(snapshot, rows, names, increments.about(self._base, snapshot.shape, spec))

    def _rows_to_save(self, variable: Variable, snapshot: VariableSnapshot) -> np.ndarray | None:
        """The rows that have changed since the base; None where all are to be saved. Begins the record of the next."""
        record = record_of(variable, self._base) if self._base else None
        rows = record.rows() if record is not None else None
        if snapshot.is_by_rows:
            self._records.append((record, TouchedRows(variable, self._target)))
        return rows if rows is not None and len(rows) <= snapshot.shape[0] * _ROWS_PART else None

    def run(self, done: Done[Outputs]) -> None:
        """Writes the file, then answers."""
        try:
            self._write()
        except errors.OpError as error:
            done(error=error)
        except Exception as error:
            done(error=errors.InternalError.of(f"{self._path}; {type(error).__name__}: {error}"))
        else:
            self._end_records(True)
            done(())
        finally:
            self._has_places.set()
            self._close()

    def _close(self) -> None:
        """Ends the snapshots and the records of a save that is over, in whatever way."""
        self._end_records(False)
        for _, _, source in self._parts:
            if (snapshot := _snapshot_of(source)) is not None:
                snapshot.close()

    def _end_records(self, is_saved: bool) -> None:
        """Of the changes since the base where this save is on the disk, else of those since this save."""
        records, self._records = self._records, []
        for old, new in records:
            ended = old if is_saved else new
            if ended is not None:
                ended.end()

    def _write(self) -> None:
        _remove_abandoned(self._path)
        with _folder_of(self._path), BundleWriter(self._path) as writer:
            if writer.takes_pieces_in_any_order:
                with self._lock:
                    for name, spec, source in self._parts:
                        if (snapshot := _snapshot_of(source)) is not None:
                            self._places[snapshot] = _reserve(writer, name, spec, source)
            self._has_places.set()
            room = np.empty(self._room_bytes(), np.uint8)
            while self._parts:
                name, spec, source = self._parts[0]
                if isinstance(source, _Rows):
                    writer.add(source.names.rows, source.rows)
                    writer.add(source.names.about, source.about)
                if (snapshot := _snapshot_of(source)) is not None:
                    place = self._places.get(snapshot) or _reserve(writer, name, spec, source)
                    self._write_pieces(snapshot, place, room)
                    snapshot.close()
                elif spec:
                    writer.add_slice(name, *parse_slice_spec(spec), np.asarray(source))
                else:
                    writer.add(name, np.asarray(source))
                del source, snapshot
                self._parts.pop(0)  # what has been written takes no more memory
            self._check()

    def _room_bytes(self) -> int:
        snapshots = [_snapshot_of(source) for _, _, source in self._parts]
        return max((snapshot.room_bytes for snapshot in snapshots if snapshot is not None), default=0)

    def _write_pieces(self, snapshot: VariableSnapshot, place: _Place, room: np.ndarray) -> None:
        while (piece := snapshot.take(room)) is not None:
            self._check()
            place.write(*piece)
        self._check()
        place.finish()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._cancellation.is_cancelled:
            raise errors.CancelledError.of("Step was cancelled")

    def _write_rest(self, snapshot: VariableSnapshot) -> bool:
        """Called by an update that changes what has not been written yet and cannot be kept. It holds the lock of the
        variable, so that the thread of the save waits for it before the next piece.
        """
        self._has_places.wait(_OPEN_WAIT_S)
        with self._lock:
            place = self._places.get(snapshot)
        if place is None:
            return False
        room = np.empty(min(snapshot.room_bytes, PIECE_BYTES), np.uint8) if snapshot.room_bytes <= PIECE_BYTES else None
        try:
            while (piece := snapshot.take(room)) is not None:
                place.write(*piece)
        except errors.OpError as error:
            self._failure = error
            snapshot.close()
        return True


def _holders(tensors: Sequence[Array], resources: ResourceManager) -> dict[int, Variable]:
    """The variables whose values these arrays are, by the arrays' ids."""
    wanted = {id(tensor) for tensor in tensors}
    found = {}
    for variable in resources.variables():
        if variable.storage is None and variable.is_initialized:
            identity = variable.look(id)
            if identity in wanted:
                found[identity] = variable
    return found


def _snapshot_of(source: object) -> VariableSnapshot | None:
    if isinstance(source, _Rows):
        return source.snapshot
    return source if isinstance(source, VariableSnapshot) else None


def _reserve(writer: BundleWriter, name: str, spec: str, source: object) -> _Place:
    if isinstance(source, _Rows):
        shape = (len(source.rows), *source.snapshot.shape[1:])
        return _RowPieces(source, writer.reserve(source.names.values, source.snapshot.dtype, shape))
    assert isinstance(source, VariableSnapshot)
    part = parse_slice_spec(spec) if spec else None
    return writer.reserve(name, source.dtype, source.shape, part)


def _checked_names(names: np.ndarray, specs: np.ndarray, tensors: Sequence[Array]) -> tuple[list[str], list[str]]:
    """The names of the tensors of a save, and which parts they are: one of each for each tensor."""
    for what, values in (("tensor_names", names), ("shape_and_slices", specs)):
        if np.shape(values) != (len(tensors),):
            shape = list(np.shape(values))
            raise invalid(f"{what} must be a vector of {len(tensors)} texts, one a tensor; its shape is {shape}")
    return _texts(names), _texts(specs)


def _texts(values: np.ndarray) -> list[str]:
    return [as_text(value) for value in np.ravel(values).tolist()]


@kernel("Save", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, filename, tensor_names, *data: _save_v1(filename, tensor_names, [""] * len(data), data)


@kernel("SaveSlices", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, filename, tensor_names, specs, *data: _save_v1(filename, tensor_names, _texts(specs), data)


def _save_v1(filename: Array, tensor_names: Array, specs: list[str], tensors: Sequence[Array]) -> None:
    parts = []
    for name, spec, tensor in zip(_texts(tensor_names), specs, tensors, strict=True):
        shape, extents = parse_slice_spec(spec) if spec else (np.shape(tensor), [(0, -1)] * np.ndim(tensor))
        parts.append((name, shape, extents, tensor))
    path = as_text(scalar(filename, "filename"))
    with _folder_of(path):
        write_v1(path, parts)


@kernel("MergeV2Checkpoints", stateful=True)
def _(node: KernelNode) -> Function:
    delete = node.attr("delete_old_dirs")
    return lambda step, prefixes, merged: merge_bundles(
        _texts(prefixes), as_text(scalar(merged, "destination_prefix")), delete
    )


_SHARD = re.compile(r"(?:-\d+)?_temp_[0-9a-f]{32}/part")


def _remove_abandoned(path: str) -> None:
    """Before a task writes its shard: what it left on its disk when it was killed in an earlier save of the prefix."""
    shard = _SHARD.search(path)
    if shard is not None:
        prefix = path[: shard.start()]
        remove_abandoned(filesystems.dirname(prefix), [os.path.basename(prefix)])


@contextlib.contextmanager
def _folder_of(path: str) -> Iterator[None]:
    """Makes the folder of a file if need be, but not those above it; removes it again if the block fails."""
    folder = filesystems.dirname(path)
    made = False
    if folder and not filesystems.isdir(folder):
        with file_errors(path):
            # Another shard may have made it just now.
            with contextlib.suppress(FileExistsError):
                filesystems.mkdir(folder)
                made = True
            if not filesystems.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
    try:
        yield
    except BaseException:
        if made:
            with contextlib.suppress(OSError):  # other shards may be there
                filesystems.rmdir(folder)
        raise
