"""Reading the tasks' log files: their last lines, and all of them as they grow, whole lines only.

A task writes its files itself (see launchers/keeper.py), one for each of its processes; nothing here is in its way.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from dtfctl.errors import UnknownTask

CHUNK_BYTES = 1 << 20
LINE_BYTES_MAX = 1 << 20
"""A longer line is shown in pieces."""


class LogFollower:
    """Yields what the chosen tasks have written since the last call, of one run's log folder."""

    def __init__(self, folder: Path, tasks: Iterable[str]) -> None:
        self._folder = folder
        self._tasks = {task.replace(":", "-"): task for task in tasks}
        self._files: dict[str, _GrowingFile] = {}

    def poll(self, is_last: bool = False) -> list[tuple[str, str]]:
        """(task, line) in the order of each file. `is_last` also yields a last line that has no end."""
        self._look_for_files()
        lines = []
        for stem, generation in sorted(self._newest()):
            task = self._tasks[stem]
            for key in sorted(self._files, key=_generation):
                if key.rpartition(".")[0] == stem:
                    ended = is_last or _generation(key) < generation
                    lines += [(task, line) for line in self._files[key].read(ended)]
        return lines

    def skip_to_last(self, count: int) -> list[tuple[str, str]]:
        """The last `count` lines of each task; `poll` continues after them."""
        kept: dict[str, list[str]] = {}
        for task, line in self.poll():
            kept.setdefault(task, []).append(line)
        return [(task, line) for task, lines in kept.items() for line in lines[max(0, len(lines) - count) :]]

    def _look_for_files(self) -> None:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return
        for name in names:
            key = name.removesuffix(".log")
            if key not in self._files and key.rpartition(".")[0] in self._tasks:
                self._files[key] = _GrowingFile(self._folder / name)

    def _newest(self) -> list[tuple[str, int]]:
        newest: dict[str, int] = {}
        for key in self._files:
            stem = key.rpartition(".")[0]
            newest[stem] = max(newest.get(stem, 0), _generation(key))
        return list(newest.items())


def last_lines(folder: Path, task: str, count: int, up_to_generation: int | None = None) -> list[str]:
    """The last lines of the newest log of a task that has any line, perhaps of no later generation than the given."""
    paths = {_generation(path.stem): path for path in folder.glob(f"{task.replace(':', '-')}.*.log")}
    for generation, path in sorted(paths.items(), reverse=True):
        if up_to_generation is not None and generation > up_to_generation:
            continue
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (1 << 16)))
            lines = [line for line in _text(file.read()).splitlines() if line.strip()]
        if lines:
            return lines[-count:]
    return []


def choose_tasks(names: list[str], patterns: Iterable[str]) -> list[str]:
    """Tasks by `worker:1`, by job (`ps`) or by pattern (`'w*'`). Raises UnknownTask for one that fits nothing."""
    chosen = set()
    for pattern in patterns:
        fitting = [
            name for name in names if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name.partition(":")[0], pattern)
        ]
        if not fitting:
            raise UnknownTask(f'no task is called "{pattern}" (there are {", ".join(names)})')
        chosen.update(fitting)
    return [name for name in names if name in chosen] if chosen else names


class _GrowingFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read(self, ended: bool) -> list[str]:
        lines: list[str] = []
        try:
            if os.stat(self._path).st_size > self._offset:
                with open(self._path, "rb") as file:
                    file.seek(self._offset)
                    while chunk := file.read(CHUNK_BYTES):
                        self._offset += len(chunk)
                        lines += self._split(chunk)
        except FileNotFoundError:
            pass
        if ended and self._rest:
            lines.append(_text(self._rest))
            self._rest = b""
        return lines

    def _split(self, chunk: bytes) -> list[str]:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            whole.append(self._rest)
            self._rest = b""
        return [_text(line) for line in whole]


def _text(data: bytes) -> str:
    return data.decode(errors="replace").removesuffix("\r")


def _generation(key: str) -> int:
    number = key.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0
