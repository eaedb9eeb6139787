"""Elements kept from the first pass for the later ones, in memory or in a TFRecord file."""

from __future__ import annotations

import contextlib

from dtf.run.datasets.dataset import Dataset, Elements, Scope, restored_state, saved_state
from dtf.run.lib.growth import Growth
from dtf.run.value_types import Element, Position
from dtf.wire import filesystems
from dtf.wire.events import read_records, record_bytes
from dtf.wire.files import file_errors
from dtf.wire.pb import tensor_pb2
from dtf.wire.tensor_proto import variant_from_proto, variant_to_proto
from dtf.wire.unfinished import new_token

__all__ = ["cached"]


def cached(dataset: Dataset, filename: str) -> Dataset:
    """The same elements; after one whole pass they come from memory, or from the file when there is a name.

    The file is written aside and renamed when it is complete.
    """
    if filename:
        path = f"{filename}.tfrecord"
        return Dataset("CacheDataset", lambda scope: _FileCached(scope, dataset, path), dataset.cardinality)
    owner = _Owner()

    def start(scope: Scope) -> Elements:
        return _Cached(scope, dataset, scope.memory(owner, _Kept))

    return Dataset("CacheDataset", start, dataset.cardinality)


class _Owner:
    """Whose memory the elements are."""


class _Kept:
    """The elements of a whole pass, once there was one."""

    def __init__(self) -> None:
        self.elements: list[Element] | None = None


class _Cached(Elements):
    def __init__(self, scope: Scope, dataset: Dataset, kept: _Kept) -> None:
        self._scope, self._dataset, self._kept = scope, dataset, kept
        self._taken: list[Element] = []
        self._at = 0
        self._growth = Growth("a cache")
        self._source = dataset.start(scope) if kept.elements is None else None

    def __next__(self) -> Element:
        if self._source is None:
            assert self._kept.elements is not None
            if self._at >= len(self._kept.elements):
                raise StopIteration
            self._at += 1
            return self._kept.elements[self._at - 1]
        try:
            element = next(self._source)
        except StopIteration:
            self.close()
            self._kept.elements, self._source, self._at = self._taken, None, len(self._taken)
            raise
        self._growth.add(element, len(self._taken))
        self._taken.append(element)
        self._at += 1
        return element

    def save(self) -> Position:
        return self._at

    def restore(self, state: Position) -> None:
        # What was kept is made again: a cache may be large, and is not part of a position.
        _pass_over(self, self._scope, state)

    def close(self) -> None:
        if self._source is not None:
            self._source.close()


class _FileCached(Elements):
    """Reads the file if there is one; else writes it while it passes elements on."""

    def __init__(self, scope: Scope, dataset: Dataset, path: str) -> None:
        self._scope, self._path = scope, path
        self._part = f"{path}.tmp{new_token()}"
        self._records = read_records(path) if filesystems.exists(path) else None
        self._source = dataset.start(scope) if self._records is None else None
        self._at = 0

    def __next__(self) -> Element:
        if self._records is not None:
            record = next(self._records)
            self._at += 1
            return tuple(restored_state(variant_from_proto(tensor_pb2.VariantTensorDataProto.FromString(record))))
        if self._source is None:
            raise StopIteration
        try:
            element = next(self._source)
        except StopIteration:
            with file_errors(self._path):
                filesystems.open(self._part, "ab").close()
                filesystems.replace(self._part, self._path)
            self._source.close()
            self._source = None
            raise
        # Opened for each element: nobody may come to close it.
        with file_errors(self._part), filesystems.open(self._part, "ab") as file:
            file.write(record_bytes(variant_to_proto(saved_state(list(element))).SerializeToString()))
        self._at += 1
        return element

    def save(self) -> Position:
        return self._at

    def restore(self, state: Position) -> None:
        _pass_over(self, self._scope, state)

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
            with contextlib.suppress(OSError):
                filesystems.remove(self._part)


def _pass_over(elements: Elements, scope: Scope, count: int) -> None:
    for _ in range(count):
        scope.check()
        next(elements, None)
