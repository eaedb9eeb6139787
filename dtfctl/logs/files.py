"""One process's log: whole lines from wherever the reader is, each with the time at which it was written."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dtfctl.launchers.log_recorder import ENTRY, HEADER, TIMES

CHUNK_BYTES = 1 << 20
LINE_BYTES_MAX = 1 << 20
"""A longer line is shown in pieces."""

TAIL_BYTES = 1 << 16
_LATEST_US = 1e18


class Line(NamedTuple):
    """`time` is the wall clock's when the line's end was seen on disk, in seconds; `attempt` the task's generation."""

    time: float
    task: str
    attempt: int
    text: str


class LogFile:
    """Reads on from where it was. `folder` is the run's log folder; the times lie beside it."""

    def __init__(self, folder: Path, task: str, generation: int) -> None:
        name = f"{file_stem(task)}.{generation}"
        self.task = task
        self.generation = generation
        self._path = folder / f"{name}.log"
        self._growth = _Growth(folder.parent / TIMES / name)
        self._offset = self._growth.start
        self._rest = b""

    def seek_since(self, since: float) -> None:
        """To the first line that ended at `since` or later."""
        self._offset = self._start_of_line(self._growth.size_before(since))
        self._rest = b""

    def seek_last(self, count: int) -> int:
        """To the last `count` lines; returns how many there are."""
        self._rest = b""
        try:
            with open(self._path, "rb") as file:
                end = file.seek(0, os.SEEK_END)
                position, found = end, 0
                # The newline at the very end closes the last line, it does not begin another.
                edge = end - 1
                while position > self._growth.start:
                    length = min(TAIL_BYTES, position - self._growth.start)
                    position -= length
                    file.seek(position)
                    data = file.read(length)
                    at = len(data)
                    while (at := data.rfind(b"\n", 0, at)) >= 0:
                        if position + at >= edge:
                            continue
                        found += 1
                        if found == count:
                            self._offset = position + at + 1
                            return count
                self._offset = self._growth.start if count else end
                return min(count, found + 1) if end > self._growth.start else 0
        except FileNotFoundError:
            return 0

    def lines(self, is_ended: bool) -> Iterator[Line]:
        """What has come since. A last line that has no end is one too when its process `is_ended`."""
        try:
            if os.stat(self._path).st_size <= self._offset and not (is_ended and self._rest):
                return
            with open(self._path, "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size > self._offset:
                    self._growth.refresh()
                    if self._offset < self._growth.start:
                        # What a slow reader has missed is gone.
                        self._offset, self._rest = self._growth.start, b""
                    file.seek(self._offset)
                    begin = self._offset - len(self._rest)
                    while chunk := file.read(CHUNK_BYTES):
                        self._offset += len(chunk)
                        *whole, self._rest = (self._rest + chunk).split(b"\n")
                        if len(self._rest) > LINE_BYTES_MAX:
                            whole.append(self._rest)
                            self._rest = b""
                        at, same_until = 0.0, -1
                        for data in whole:
                            begin += len(data) + 1
                            if begin > same_until:
                                at, same_until = self._growth.time_of(begin, status.st_mtime)
                            if data.startswith(b"\0") and not (data := data.lstrip(b"\0")):
                                # What another machine had given back before it could be brought here.
                                continue
                            yield Line(at, self.task, self.generation, as_text(data))
                        begin = self._offset - len(self._rest)
                if is_ended and self._rest:
                    data, self._rest = self._rest, b""
                    at, _ = self._growth.time_of(self._offset, status.st_mtime)
                    yield Line(at, self.task, self.generation, as_text(data))
        except FileNotFoundError:
            return

    def _start_of_line(self, offset: int) -> int:
        try:
            with open(self._path, "rb") as file:
                while offset > self._growth.start:
                    length = min(TAIL_BYTES, offset - self._growth.start)
                    file.seek(offset - length)
                    if (found := file.read(length).rfind(b"\n")) >= 0:
                        return offset - length + found + 1
                    offset -= length
        except FileNotFoundError:
            pass
        return self._growth.start


class _Growth:
    """What the recorder has noted of one log; without it all that is known is the file's own time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[int, int] = (0, 0)
        self._times: array[int] = array("q", [0])
        self._sizes: array[int] = array("q", [0])
        self.refresh()

    @property
    def start(self) -> int:
        """The first byte that is still there."""
        return self._sizes[0]

    def refresh(self) -> None:
        try:
            status = os.stat(self._path)
            if (status.st_ino, status.st_size) == self._read:
                return
            data = self._path.read_bytes()[HEADER.size :]
        except FileNotFoundError:
            return
        entries = array("q")
        entries.frombytes(data[: len(data) - len(data) % ENTRY.size])
        if entries:
            self._read = status.st_ino, status.st_size
            self._times, self._sizes = entries[0::2], entries[1::2]

    def time_of(self, end: int, latest: float) -> tuple[float, int]:
        """When the byte before `end` was on disk, in seconds, and up to which size that is true; `latest` is when the
        file was last written to."""
        index = bisect_left(self._sizes, end)
        if index < len(self._times):
            return self._times[index] / 1e6, self._sizes[index]
        return max(self._times[-1] / 1e6, min(latest, time.time())), end

    def size_before(self, since: float) -> int:
        index = bisect_left(self._times, int(min(max(since * 1e6, 0.0), _LATEST_US)))
        return self._sizes[max(0, index - 1)]


def last_lines(folder: Path, task: str, count: int, up_to_generation: int | None = None) -> list[str]:
    """The last lines of the newest log of a task that has any line, perhaps of no later generation than the given."""
    for generation in sorted(generations(folder).get(task, ()), reverse=True):
        if up_to_generation is not None and generation > up_to_generation:
            continue
        log = LogFile(folder, task, generation)
        log.seek_last(4 * count)
        lines = [line.text for line in log.lines(is_ended=True) if line.text.strip()]
        if lines:
            return lines[-count:]
    return []


def generations(folder: Path) -> dict[str, list[int]]:
    """Which logs there are, by task."""
    found: dict[str, list[int]] = {}
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found
    for name in names:
        stem, _, number = name.removesuffix(".log").rpartition(".")
        job, _, index = stem.rpartition("-")
        if name.endswith(".log") and number.isdecimal() and index.isdecimal():
            found.setdefault(f"{job}:{index}", []).append(int(number))
    return found


def tasks_with_logs(folder: Path) -> list[str]:
    """The tasks that have written logs there, by job and index."""
    return sorted(generations(folder), key=lambda task: (task.rpartition(":")[0], int(task.rpartition(":")[2])))


def file_stem(task: str) -> str:
    return task.replace(":", "-")


def as_text(data: bytes) -> str:
    return data.decode(errors="replace").removesuffix("\r")
