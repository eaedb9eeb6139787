"""The logs of many tasks as one stream in the order of time: what is there already, and what comes."""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from dtfctl.logs.files import Line, LogFile, generations

_TIME = attrgetter("time")


@dataclass(frozen=True)
class Choice:
    """Which lines are wanted. `since` and `until` are wall-clock seconds; `tail` is how many of the last ones of each
    task; `attempt` one process of each task, -1 the one before the newest; `pattern` is to be found in each line."""

    since: float | None = None
    until: float | None = None
    tail: int | None = None
    attempt: int | None = None
    pattern: re.Pattern[str] | None = None

    def takes(self, line: Line) -> bool:
        return (
            (self.since is None or line.time >= self.since)
            and (self.until is None or line.time <= self.until)
            and (self.pattern is None or self.pattern.search(line.text) is not None)
        )

    @property
    def is_of_all_lines(self) -> bool:
        return self.since is None and self.until is None and self.pattern is None


EVERYTHING = Choice()


class LogReader:
    """`past` once, or not at all; then `poll` for what has come since."""

    def __init__(self, folder: Path, tasks: Iterable[str], choice: Choice = EVERYTHING) -> None:
        self._folder = folder
        self._choice = choice
        self._logs: dict[str, dict[int, LogFile]] = {task: {} for task in tasks}
        self._done: dict[str, int] = {}

    def past(self, is_over: bool = True) -> Iterator[Line]:
        """What is there. Of a run that `is_over` also a last line that has no end."""
        self._look_for_files()
        return heapq.merge(*(self._past_of(task, is_over) for task in self._logs), key=_TIME)

    def poll(self, is_over: bool = False) -> list[Line]:
        """What was written since the last call."""
        self._look_for_files()
        lines = [line for task in self._logs for line in self._lines_of(task, is_over) if self._choice.takes(line)]
        lines.sort(key=_TIME)
        return lines

    def add(self, tasks: Iterable[str]) -> None:
        """Tasks that are new in the cluster."""
        for task in tasks:
            self._logs.setdefault(task, {})

    def _past_of(self, task: str, is_over: bool) -> Iterator[Line]:
        choice, logs = self._choice, self._logs[task]
        if choice.since is not None:
            for log in logs.values():
                log.seek_since(choice.since)
        if choice.tail is None:
            return (line for line in self._lines_of(task, is_over) if choice.takes(line))
        if choice.is_of_all_lines:
            wanted = choice.tail
            for generation in sorted(logs, reverse=True):
                wanted -= logs[generation].seek_last(wanted)
            return self._lines_of(task, is_over)
        lines = (line for line in self._lines_of(task, is_over) if choice.takes(line))
        return iter(deque(lines, maxlen=choice.tail))

    def _lines_of(self, task: str, is_over: bool) -> Iterator[Line]:
        """In the order of its processes. One that has a successor has ended, and is not looked at again."""
        logs = self._logs[task]
        for generation in sorted(logs):
            is_ended = is_over or generation < max(logs)
            yield from logs[generation].lines(is_ended)
            if is_ended and generation < max(logs):
                del logs[generation]
                self._done[task] = generation

    def _look_for_files(self) -> None:
        for task, found in generations(self._folder).items():
            logs = self._logs.get(task)
            if logs is None:
                continue
            if self._choice.attempt is not None:
                found = self._chosen(sorted(found))
            for generation in found:
                if generation not in logs and generation > self._done.get(task, 0):
                    logs[generation] = LogFile(self._folder, task, generation)

    def _chosen(self, found: list[int]) -> list[int]:
        if self._choice.attempt == -1:
            return found[-2:-1]
        return [generation for generation in found if generation == self._choice.attempt]
