"""Kernels that save: SaveV2, which training does not wait for, and the older Save and SaveSlices.

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

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, scalar
from dtf.run.state.resources import ResourceManager, Variable
from dtf.run.state.snapshots import PIECE_BYTES, Budget, VariableSnapshot, is_large
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Array
from dtf.wire import errors, filesystems
from dtf.wire.checkpoint import BundleWriter, PieceWriter, merge_bundles
from dtf.wire.checkpoint_v1 import write_v1
from dtf.wire.files import file_errors
from dtf.wire.tensor_slices import parse_slice_spec
from dtf.wire.unfinished import remove_abandoned

_KEPT_PART = 0.25
"""How much of what is saved its snapshots may keep besides."""
_KEPT_BYTES_MIN = 1 << 24
_OPEN_WAIT_S = 1.0
"""How long an update that may keep no more waits until the file is open, at most."""


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
        path = as_text(scalar(prefix, "prefix"))
        specs = _texts(shape_and_slices)
        job = _Save(path, _texts(tensor_names), specs, tensors, step.resources, step.cancellation)
        growing_pool.submit(job.run, done)

    return save


class _Save:
    """One save. Its thread writes the pieces in order; a thread whose update finds the budget used up writes the rest
    of that variable between them. `_lock` guards the places in the file and the first failure of such a thread.
    """

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        specs: Sequence[str],
        tensors: Sequence[Array],
        resources: ResourceManager,
        cancellation: CancellationManager,
    ) -> None:
        self._path = path
        self._cancellation = cancellation
        self._lock = threading.Lock()
        self._places: dict[VariableSnapshot, PieceWriter] = {}
        self._has_places = threading.Event()
        self._failure: errors.OpError | None = None
        size = sum(np.asarray(tensor).nbytes for tensor in tensors)
        budget = Budget(max(int(size * _KEPT_PART), _KEPT_BYTES_MIN))
        large = [tensor for tensor in tensors if is_large(tensor)]
        holders = _holders(large, resources) if large else {}
        self._parts = [
            (name, spec, self._source(tensor, holders, budget))
            for name, spec, tensor in zip(names, specs, tensors, strict=True)
        ]

    def _source(self, tensor: Array, holders: dict[int, Variable], budget: Budget) -> Array | VariableSnapshot:
        """A snapshot where a variable still has this value; else the value, which nobody modifies."""
        variable = holders.get(id(tensor))
        if variable is None:
            return tensor
        with variable.lock:
            if not variable.holds(tensor):
                return tensor
            return VariableSnapshot(variable, budget, self._write_rest)

    def run(self, done: Done[Outputs]) -> None:
        """Writes the file, then answers."""
        try:
            self._write()
        except errors.OpError as error:
            done(error=error)
        except Exception as error:
            done(error=errors.InternalError.of(f"{self._path}; {type(error).__name__}: {error}"))
        else:
            done(())
        finally:
            self._has_places.set()
            for _, _, source in self._parts:
                if isinstance(source, VariableSnapshot):
                    source.close()

    def _write(self) -> None:
        _remove_abandoned(self._path)
        with _folder_of(self._path), BundleWriter(self._path) as writer:
            if writer.takes_pieces_in_any_order:
                with self._lock:
                    for name, spec, source in self._parts:
                        if isinstance(source, VariableSnapshot):
                            self._places[source] = _reserve(writer, name, spec, source)
            self._has_places.set()
            room = np.empty(self._room_bytes(), np.uint8)
            while self._parts:
                name, spec, source = self._parts[0]
                if isinstance(source, VariableSnapshot):
                    place = self._places.get(source) or _reserve(writer, name, spec, source)
                    self._write_pieces(source, place, room)
                    source.close()
                elif spec:
                    writer.add_slice(name, *parse_slice_spec(spec), np.asarray(source))
                else:
                    writer.add(name, np.asarray(source))
                del source
                self._parts.pop(0)  # what has been written takes no more memory
            self._check()

    def _room_bytes(self) -> int:
        sizes = [source.room_bytes for _, _, source in self._parts if isinstance(source, VariableSnapshot)]
        return max(sizes, default=0)

    def _write_pieces(self, snapshot: VariableSnapshot, place: PieceWriter, room: np.ndarray) -> None:
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


def _reserve(writer: BundleWriter, name: str, spec: str, source: VariableSnapshot) -> PieceWriter:
    part = parse_slice_spec(spec) if spec else None
    return writer.reserve(name, source.dtype, source.shape, part)


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
