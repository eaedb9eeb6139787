"""The event files of a training as series: every scalar, histogram and image that trainers write for TensorBoard.

Reads dtf's and TensorFlow's files alike, each on from where it was; `progress` reads them for the step only. A folder
below the checkpoint folder is a run of its own, as in TensorBoard (`.`: the folder itself). No file is changed.
A program may write anything: the memory of a reader is bounded, whatever the files hold (`samples` keeps histograms
and images).

The smallest use: `reader = EventReader(folder); reader.poll(); reader.scalars["."]["loss"].points()`.
"""

from __future__ import annotations

import math
import os
import re
import struct
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

from dtfctl.logs.progress import records
from dtfctl.logs.samples import Histogram, Image, Samples, picture_size
from dtfctl.wire.protobuf import fields

POINTS_MAX = 20_000
"""Of a series; a longer one is thinned: its older points lose every second one."""

POINTS_IN_ALL = 4_000_000
"""About so many points of all series are kept (24 bytes each): with more series each has fewer."""

SERIES_MAX = 2_000
RUN_NAME_MAX = 200
TIME_MAX = 1e11
"""A wall time above this is not taken for one."""

FILES_MAX = 500
BYTES_AT_ONCE = 32 << 20
"""The most that one poll reads of a file, so that it stays short; the next poll goes on."""

IMAGE_BYTES_MAX = 4 << 20
IMAGE_PIXELS_MAX = 32 << 20
"""A picture of more pixels (128 MiB, decoded) would take the memory of the browser that shows it."""

BUCKETS_MAX = 4_000
"""TensorFlow's histograms have at most 1,549."""

_CHECKPOINT_NAME = re.compile(r"-(\d{1,18})\.index$")
_FLOAT, _DOUBLE = 1, 2


@dataclass
class Series:
    """A scalar: `steps`, `times` (wall clock, seconds) and `values`, in the order of steps."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, step: int, at: float, value: float, points_max: int = 0) -> None:
        """A restarted training repeats steps since its checkpoint: what it writes replaces them."""
        if self.steps and step <= self.steps[-1]:
            index = bisect_left(self.steps, step)
            for column in (self.steps, self.times, self.values):
                del column[index:]
        self.steps.append(step)
        self.times.append(at)
        self.values.append(value)
        if len(self.steps) > (points_max or POINTS_MAX):
            half = len(self.steps) // 2
            for column in (self.steps, self.times, self.values):
                del column[0:half:2]

    def points(
        self, count: int = 1_000, first: float = -math.inf, last: float = math.inf
    ) -> tuple[list[int], list[float], list[float]]:
        """At most about `count` of the points between two steps: of each stretch its lowest and its highest value, so
        that a peak is never left out. What is not a number stays."""
        begin = max(0, bisect_left(self.steps, first) - 1) if first > -math.inf else 0
        end = min(len(self.steps), bisect_left(self.steps, last) + 1) if last < math.inf else len(self.steps)
        indices: list[int] = list(range(begin, end))
        if len(indices) > count:
            size = -(-2 * len(indices) // count)
            chosen: list[int] = []
            for start in range(begin, end, size):
                part = range(start, min(start + size, end))
                finite = [index for index in part if math.isfinite(self.values[index])]
                low = min(finite, key=self.values.__getitem__, default=part[0])
                high = max(finite, key=self.values.__getitem__, default=part[-1])
                broken = next((index for index in part if not math.isfinite(self.values[index])), low)
                chosen += sorted({low, high, broken})
            indices = sorted({begin, *chosen, end - 1})
        return (
            [self.steps[index] for index in indices],
            [self.times[index] for index in indices],
            [self.values[index] for index in indices],
        )


class EventReader:
    """Everything by run and tag. One thread. A run or tag comes into being with its first value."""

    def __init__(self, folder: Path) -> None:
        self.scalars: dict[str, dict[str, Series]] = {}
        self.samples = Samples()
        self._folder = folder
        self._offsets: dict[Path, int] = {}
        self._count = 0

    def poll(self) -> bool:
        """Reads what has come. Returns whether there may be more at once."""
        has_more = False
        for path in self._paths():
            begin = self._offsets.get(path, 0)
            try:
                if os.stat(path).st_size <= begin:
                    continue
                run = _run_name(path, self._folder)
                with open(path, "rb") as file:
                    for payload, end in records(file, begin):
                        self._offsets[path] = end
                        self._take(run, payload)
                        if end - begin > BYTES_AT_ONCE:
                            has_more = True
                            break
            except OSError:
                continue
        return has_more

    def checkpoints(self) -> list[tuple[int, float]]:
        """(step, wall time) of the checkpoints that are there."""
        found = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    match = _CHECKPOINT_NAME.search(entry.name)
                    if match:
                        found.append((int(match[1]), entry.stat().st_mtime))
        except OSError:
            pass
        return sorted(found)

    def _paths(self) -> list[Path]:
        """Older files of a folder first, since newer ones go on where they end."""
        found: list[Path] = []
        for place, folders, names in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and "_temp_" not in name)
            if Path(place) != self._folder and len(Path(place).relative_to(self._folder).parts) >= 3:
                folders.clear()
            found += sorted(Path(place, name) for name in names if "tfevents" in name)
            if len(found) >= FILES_MAX:
                break
        return found[:FILES_MAX]

    def _take(self, run: str, payload: bytes) -> None:
        try:
            wall_time, step, values = 0.0, 0, []
            for number, _, value in fields(payload):
                if number == 1 and isinstance(value, bytes):
                    wall_time = struct.unpack("<d", value)[0]
                elif number == 2 and isinstance(value, int):
                    step = value if value < 1 << 63 else 0
                elif number == 5 and isinstance(value, bytes):
                    values += [item for key, _, item in fields(value) if key == 1 and isinstance(item, bytes)]
            at = wall_time if 0 <= wall_time <= TIME_MAX else 0.0
            for each in values:
                self._take_value(run, step, at, each)
        except (IndexError, struct.error, ValueError):
            return

    def _take_value(self, run: str, step: int, at: float, payload: bytes) -> None:
        tag = ""
        for number, kind, value in fields(payload):
            if number == 1 and isinstance(value, bytes):
                tag = value.decode(errors="replace")[:200]
            elif not isinstance(value, bytes):
                continue
            elif number == 2 and kind == 5:
                self._add_scalar(run, tag, step, at, struct.unpack("<f", value)[0])
            elif number == 8 and (scalar := _scalar_of_tensor(value)) is not None:
                self._add_scalar(run, tag, step, at, scalar)
            elif number == 4:
                image = _image(step, at, value)
                if image is not None and self._has_room(self.samples.images, run, tag):
                    self.samples.add_image(run, tag, image)
            elif number == 5:
                histogram = _histogram(step, at, value)
                if histogram is not None and self._has_room(self.samples.histograms, run, tag):
                    self.samples.add_histogram(run, tag, histogram)

    def _add_scalar(self, run: str, tag: str, step: int, at: float, value: float) -> None:
        if self._has_room(self.scalars, run, tag):
            points_max = max(1_000, min(POINTS_MAX, POINTS_IN_ALL // max(1, self._count)))
            self.scalars.setdefault(run, {}).setdefault(tag, Series()).add(step, at, value, points_max)

    def _has_room(self, kept: object, run: str, tag: str) -> bool:
        assert isinstance(kept, dict)
        if tag in kept.get(run, {}):
            return True
        if self._count >= SERIES_MAX:
            return False
        self._count += 1
        return True


def _run_name(path: Path, folder: Path) -> str:
    """A folder's name need not be text."""
    return os.fsencode(os.path.relpath(path.parent, folder)).decode(errors="replace")[:RUN_NAME_MAX]


def _scalar_of_tensor(payload: bytes) -> float | None:
    """Of a tensor with one float, as the summaries of TensorFlow 2 are; None of others."""
    dtype, found, dimensions = 0, None, 0
    for number, _, value in fields(payload):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 2 and isinstance(value, bytes):
            dimensions = sum(1 for key, _, _ in fields(value) if key == 2)
        elif number in (4, 5, 6) and isinstance(value, bytes):
            code = "<d" if number == 6 or (number == 4 and dtype == _DOUBLE) else "<f"
            if len(value) == struct.calcsize(code) and dtype in (_FLOAT, _DOUBLE):
                found = struct.unpack(code, value)[0]
    return found if dimensions == 0 else None


def _image(step: int, at: float, payload: bytes) -> Image | None:
    """None for what is no picture, or one of a size that nobody wants to open."""
    data = next((value for number, _, value in fields(payload) if number == 4 and isinstance(value, bytes)), b"")
    size = picture_size(data) if len(data) <= IMAGE_BYTES_MAX else None
    if size is None or not 0 < size[0] * size[1] <= IMAGE_PIXELS_MAX:
        return None
    return Image(step, at, *size, data)


def _histogram(step: int, at: float, payload: bytes) -> Histogram | None:
    """None for one of more buckets than any trainer writes."""
    numbers = {1: 0.0, 2: 0.0, 3: 0.0}
    lists: dict[int, list[float]] = {6: [], 7: []}
    for number, kind, value in fields(payload):
        if not isinstance(value, bytes):
            continue
        if number in numbers and kind == 1:
            numbers[number] = struct.unpack("<d", value)[0]
        elif number in lists:
            if len(value) // 8 + len(lists[number]) > BUCKETS_MAX:
                return None
            lists[number] += struct.unpack(f"<{len(value) // 8}d", value[: len(value) // 8 * 8])
    return Histogram(step, at, numbers[1], numbers[2], numbers[3], tuple(lists[6]), tuple(lists[7]))
