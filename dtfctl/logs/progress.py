"""How far the training is, from the event files that trainers write for TensorBoard into the checkpoint folder.

Reads just enough of the format (TFRecord frames, Event and Summary messages) to find the global step, the rate and
the loss; works for dtf's and TensorFlow's trainers alike, and is nothing but a view: no decision depends on it.
TensorFlow keeps events back for up to two minutes; until then the step is that of the newest checkpoint.
"""

from __future__ import annotations

import logging
import math
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import BinaryIO, Protocol

from dtfctl.logs.training_folder import LocalFolder, StoredFolder, TrainingFolder
from dtfctl.values.plan import is_remote
from dtfctl.wire.protobuf import fields

_STORE_PERIOD_S = 5.0
RATE_TAG = "global_step/sec"
RECORD_BYTES_MAX = 64 << 20
LATE_BYTES_MAX = 32 << 20
TAGS_MAX = 20
"""How many losses are told apart."""
MEDIAN_OF = 5
LOSSES_MIN = 15
"""A trend needs so many."""

_PATH = re.compile(r'^model_checkpoint_path: "([^"\n]*)"', re.MULTILINE)
_CHECKPOINT = re.compile(r'^model_checkpoint_path: ".*-(\d{1,18})"', re.MULTILINE)



@dataclass(frozen=True)
class Trend:
    """Medians of five losses each: the `first`, the `best` (least) so far, and those of `now`."""

    first: float
    best: float
    now: float


@dataclass(frozen=True)
class Progress:
    """`steps_per_s` and `loss` are None while no event told them. A loss that is not a number stays one: nan, inf.
    `trend` is that of the loss, None before enough of it."""

    step: int = 0
    steps_per_s: float | None = None
    loss: float | None = None
    trend: Trend | None = None

    def __str__(self) -> str:
        parts = [f"step {self.step}"]
        if self.steps_per_s is not None:
            parts.append(f"{self.steps_per_s:.1f} steps/s")
        if self.loss is not None:
            parts.append(f"loss {self.loss:.4g}")
        return ", ".join(parts)


class Reader(Protocol):
    """Follows a training."""

    checkpoint: str

    def poll(self) -> Progress | None:
        """The newest progress, or None before the first event or checkpoint that has a step."""


def follow(place: str, is_late: bool = False) -> Reader | None:
    """Follows the training in a folder of this machine or a store; None for ""."""
    if is_remote(place):
        return StoredProgress(place, is_late)
    return ProgressReader(Path(place), is_late) if place else None


class StoredProgress:
    """The progress of a training in a store, read in a thread of its own. `poll` returns at once what was read last.

    Attributes:
      checkpoint: the path of the newest complete checkpoint that was read, "" without one.
    """

    def __init__(
        self, url: str, is_late: bool = False, open_folder: Callable[[str], TrainingFolder] = StoredFolder
    ) -> None:
        self.checkpoint = ""
        self._url = url
        self._open = open_folder
        self._is_late = is_late
        self._reader: ProgressReader | None = None
        self._found: Progress | None = None
        self._next_at = 0.0
        self._thread: threading.Thread | None = None

    def poll(self) -> Progress | None:
        if time.monotonic() >= self._next_at and (self._thread is None or not self._thread.is_alive()):
            self._next_at = time.monotonic() + _STORE_PERIOD_S
            self._thread = threading.Thread(target=self._read, name="dtfctl-store", daemon=True)
            self._thread.start()
        return self._found

    def wait(self, timeout_s: float) -> Progress | None:
        """As `poll`, but waits for the store, up to `timeout_s`."""
        self.poll()
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._found

    def _read(self) -> None:
        try:
            if self._reader is None:
                self._reader = ProgressReader(self._open(self._url), self._is_late)
            self._found = self._reader.poll()
            name = self._reader.checkpoint
            self.checkpoint = f"{self._url.rstrip('/')}/{name}" if name else ""
        except ImportError as error:
            self._next_at = math.inf
            _logger.warning("the progress in %s is not shown: %s (pip install 'dtf[fs]')", self._url, error)
        except Exception as error:  # the libraries below have their own, and a view must not end its owner
            _logger.info("%s cannot be read: %s: %s", self._url, type(error).__name__, error)


class ProgressReader:
    """Reads on from where it was at each `poll`. Files that are there at the beginning are of earlier runs, unless it
    `is_late` itself: then the newest of them counts, if it is not so long that its reading would be waited for.

    Attributes:
      checkpoint: the newest complete checkpoint as the folder names it, "" without one; of the last reading.
    """

    def __init__(self, folder: Path | TrainingFolder, is_late: bool = False) -> None:
        self.checkpoint = ""
        self._folder = folder = LocalFolder(folder) if isinstance(folder, Path) else folder
        self._offsets: dict[str, int] = {path: folder.size(path) for path in folder.event_files()}
        if is_late and self._offsets:
            newest = max(self._offsets, key=folder.written_at)
            if self._offsets[newest] <= LATE_BYTES_MAX:
                del self._offsets[newest]
        self._progress = Progress()
        self._first_checkpoint = 0 if is_late else self._newest_checkpoint()
        self._last: tuple[float, int] | None = None
        self._trends: dict[str, _Losses] = {}
        # Who tells the rate has averaged it; between two events it is a guess.
        self._is_rate_told = False

    def poll(self) -> Progress | None:
        """The newest progress, or None before the first event or checkpoint that has a step."""
        for path in self._folder.event_files():
            if self._folder.size(path) <= self._offsets.get(path, 0):
                continue
            with self._folder.open(path) as file:
                for payload, end in records(file, self._offsets.get(path, 0)):
                    self._offsets[path] = end
                    self._take(payload)
        checkpoint = self._newest_checkpoint()
        if checkpoint != self._first_checkpoint and checkpoint > self._progress.step:
            self._progress = replace(self._progress, step=checkpoint)
        return self._progress if self._progress.step else None

    def _newest_checkpoint(self) -> int:
        """The step in the name of the newest complete checkpoint, 0 without one."""
        state = self._folder.state()
        path, match = _PATH.search(state), _CHECKPOINT.search(state)
        self.checkpoint = path[1] if path else ""
        return int(match[1]) if match else 0

    def _take(self, payload: bytes) -> None:
        try:
            wall_time, step, values = _event(payload)
        except (IndexError, struct.error, ValueError):
            return
        progress = self._progress
        if step > 0:
            if not self._is_rate_told and self._last is not None and step > self._last[1] and wall_time > self._last[0]:
                progress = replace(progress, steps_per_s=(step - self._last[1]) / (wall_time - self._last[0]))
            if self._last is None or step != self._last[1]:
                self._last = wall_time, step
            progress = replace(progress, step=step)
        for tag, value in values:
            if tag == RATE_TAG:
                self._is_rate_told = True
                progress = replace(progress, steps_per_s=value)
            elif tag.rpartition("/")[2].startswith("loss"):
                key = tag if tag in self._trends or len(self._trends) < TAGS_MAX else ""
                trend = self._trends.setdefault(key, _Losses()).take(value)
                progress = replace(progress, loss=value, trend=trend)
        self._progress = progress


class _Losses:
    """The trend of the losses of one tag."""

    def __init__(self) -> None:
        self._count = 0
        self._last: deque[float] = deque(maxlen=MEDIAN_OF)
        self._first = self._best = math.inf

    def take(self, loss: float) -> Trend | None:
        self._count += 1
        self._last.append(loss)
        if not all(map(math.isfinite, self._last)) or len(self._last) < MEDIAN_OF:
            return None
        now = median(self._last)
        if self._count == MEDIAN_OF:
            self._first = now
        self._best = min(self._best, now)
        is_known = self._count >= LOSSES_MIN and math.isfinite(self._first)
        return Trend(self._first, self._best, now) if is_known else None


def records(file: BinaryIO, offset: int) -> Iterator[tuple[bytes, int]]:
    """Whole records from `offset` on, each with where the next begins; one that is still being written is left."""
    while True:
        file.seek(offset)
        header = file.read(12)
        if len(header) < 12:
            return
        (length,) = struct.unpack("<Q", header[:8])
        if length > RECORD_BYTES_MAX:
            return
        payload = file.read(length + 4)
        if len(payload) < length + 4:
            return
        offset += 12 + length + 4
        yield payload[:length], offset


def _event(payload: bytes) -> tuple[float, int, list[tuple[str, float]]]:
    """(wall time, step, [(tag, simple value)]) of an Event message."""
    wall_time, step = 0.0, 0
    values: list[tuple[str, float | None]] = []
    for number, _, value in fields(payload):
        if number == 1 and isinstance(value, bytes):
            wall_time = struct.unpack("<d", value)[0]
        elif number == 2 and isinstance(value, int):
            step = value if value < 1 << 63 else 0
        elif number == 5 and isinstance(value, bytes):
            values += [_summary_value(item) for key, _, item in fields(value) if key == 1 and isinstance(item, bytes)]
    return wall_time, step, [(tag, scalar) for tag, scalar in values if scalar is not None]


def _summary_value(payload: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, _, value in fields(payload):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode(errors="replace")
        elif number == 2 and isinstance(value, bytes):
            scalar = struct.unpack("<f", value)[0]
    return tag, scalar


_logger = logging.getLogger("dtfctl")
