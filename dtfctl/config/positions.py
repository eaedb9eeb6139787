"""Where in the cluster file a task's values stand: `positions(task, "venv", "python")` is file:line:column. Pure."""

from __future__ import annotations

from dtfctl.config import hostlist, schema
from dtfctl.config.build import TENSORBOARD, Level, levels_of
from dtfctl.config.kinds import Found, Reader, Values
from dtfctl.config.source import Node, Position
from dtfctl.values.plan import Task


class Positions:
    def __init__(self, root: Node, reader: Reader) -> None:
        self._values, self._levels = levels_of(root, reader)

    def __call__(self, task: Task, *keys: str) -> str:
        """Of the first of these keys that anything is said of, for this task, its job, its host or all; else of its
        job. A dot leads into a mapping: environment.PATH."""
        level = self._levels.get(task.job.name)
        for key in keys:
            found = self._find(task, level, key)
            if found is not None:
                return str(found)
        return "" if level is None else str(level.at)

    def top(self, key: str) -> str:
        """Of a key at the top, "" where it does not stand."""
        found = self._values.get(key)
        return "" if found is None else str(found.node.at)

    def _find(self, task: Task, level: Level | None, key: str) -> Position | None:
        places = [] if level is None else [self._of_task(level, task.index), level.own]
        places += [self._of_host(task.host.name), *([] if level is None else [level.values]), self._values]
        for values in places:
            at = _inner(values, key.split("."))
            if at is not None:
                # What `tensorboard:` stands for is written nowhere in the file.
                return level.at if level is not None and at.file == TENSORBOARD else at
        return None

    def _of_task(self, level: Level, index: int) -> Values:
        if "tasks" in level.values:
            for text, found in level.values["tasks"].value.items():
                if index in hostlist.numbers(text, schema.REPLICAS_MAX):
                    inner: Values = found.value
                    return inner
        return {}

    def _of_host(self, name: str) -> Values:
        if "hosts" in self._values:
            for text, found in self._values["hosts"].value.items():
                if name in hostlist.expand_names(text):
                    inner: Values = found.value
                    return inner
        return {}


def _inner(values: Values, path: list[str]) -> Position | None:
    found: Found | None = values.get(path[0])
    if found is None:
        return None
    if len(path) == 1:
        return found.node.at
    return _inner(found.value, path[1:]) if isinstance(found.value, dict) else None
