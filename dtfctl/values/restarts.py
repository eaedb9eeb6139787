"""Why tasks were restarted, in a few words that never change: found in the history of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dtfctl.values.history import Happening

CAUSES = ("exit", "signal", "out_of_memory", "hung", "preempted", "moved", "requested", "changed", "other")
"""The process ended by itself; a signal ended it; for want of memory; it answered no more; its machine was taken away;
its host was lost; a user asked; the cluster file or the ClusterSpec changed."""

_SIGNS = {"hangs": "hung", "notice": "preempted", "moved": "moved", "asked for": "requested", "to restart": "changed"}
"""What happens to a task before such a restart."""


class RestartCounts:
    """Counts the restarts of each task by cause; happenings are taken in their order, each once.

    Attributes:
      counts: (task, cause) -> restarts.
      last_id: of the last happening taken.
    """

    def __init__(self, history: Iterable[Happening] = ()) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self.last_id = 0
        self._started: set[str] = set()
        self._signs: dict[str, str] = {}
        self._ends: dict[str, str] = {}
        self.take(history)

    def take(self, history: Iterable[Happening]) -> list[tuple[str, str]]:
        """The restarts among these happenings, as (task, cause)."""
        found = []
        for happening in history:
            self.last_id = max(self.last_id, happening.id)
            task = happening.task
            if not task:
                continue
            if happening.what == "start":
                if task in self._started:
                    key = task, self._cause(task)
                    self.counts[key] = self.counts.get(key, 0) + 1
                    found.append(key)
                self._started.add(task)
                self._signs.pop(task, None)
                self._ends.pop(task, None)
            elif happening.what in _SIGNS:
                self._signs[task] = _SIGNS[happening.what]
            elif happening.what == "notice over":
                self._signs.pop(task, None)
            elif happening.what == "ended":
                self._ends[task] = happening.cause
            elif happening.what == "renew" and task not in self._signs:
                self._signs[task] = "changed"
        return found

    def _cause(self, task: str) -> str:
        if task in self._signs:
            return self._signs[task]
        words = self._ends.get(task, "")
        if "out of memory" in words:
            return "out_of_memory"
        if words.startswith("killed by"):
            return "signal"
        if words.startswith("exited with"):
            return "exit"
        if words.startswith("hung"):
            return "hung"
        if words.startswith(("its host", "was lost")):
            return "moved"
        return "other"
