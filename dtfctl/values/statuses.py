"""The statuses of all tasks, and which of them want attention: so that what one task's end costs does not grow with
the number of the others. Owned by the supervisor, which alone changes it; reconcile reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from dtfctl.values import state
from dtfctl.values.task import TaskStatus


class Statuses(Mapping[str, TaskStatus]):
    """By name, in the order in which they came: that of the plan."""

    def __init__(self, statuses: Iterable[TaskStatus] = ()) -> None:
        self._statuses: dict[str, TaskStatus] = {}
        self._positions: dict[str, int] = {}
        self._next_position = 0
        self._in_state: dict[str, set[str]] = {each: set() for each in state.STATES}
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._on_host: dict[str, set[str]] = {}
        self._planned: set[str] = set()
        self._restless: set[str] = set()
        for status in statuses:
            self.put(status)

    def __getitem__(self, name: str) -> TaskStatus:
        return self._statuses[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statuses)

    def __len__(self) -> int:
        return len(self._statuses)

    def in_state(self, *states: str) -> list[str]:
        """The names of the tasks in any of these states, in order."""
        return self.in_order({name for each in states for name in self._in_state[each]})

    def number(self, job: str, state: str) -> int:
        """How many tasks of a job are in a state."""
        return self._numbers[job, state]

    def count(self, *states: str) -> int:
        """How many tasks are in any of these states."""
        return sum(len(self._in_state[each]) for each in states)

    def among(self, names: Collection[str], *states: str) -> set[str]:
        """Those of these tasks that are in any of the states."""
        return {name for each in states for name in self._in_state[each].intersection(names)}

    def on_host(self, host: str) -> list[str]:
        """The names of the tasks whose last process is or was on a host, as the launchers know it, in order."""
        return self.in_order(self._on_host.get(host, ()))

    def planned(self) -> list[str]:
        """The names of the tasks with a planned end on record (`planned_at`), in order."""
        return self.in_order(self._planned)

    def restless(self) -> Collection[str]:
        """The names of the tasks that are not at rest: neither running (or on the way there) nor ended, or with a wish
        or a trouble on record."""
        return self._restless

    def in_order(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._positions.__getitem__)

    def put(self, status: TaskStatus) -> None:
        """A task that is new comes last."""
        former = self._statuses.get(status.name)
        if former is None:
            self._positions[status.name] = self._next_position
            self._next_position += 1
        else:
            self._leave(former)
        self._statuses[status.name] = status
        self._in_state[status.state].add(status.name)
        self._numbers[_job(status), status.state] += 1
        self._on_host.setdefault(status.host, set()).add(status.name)
        if status.planned_at is not None:
            self._planned.add(status.name)
        if not _is_at_rest(status):
            self._restless.add(status.name)

    def remove(self, name: str) -> TaskStatus:
        status = self._statuses.pop(name)
        del self._positions[name]
        self._leave(status)
        return status

    def _leave(self, status: TaskStatus) -> None:
        self._in_state[status.state].discard(status.name)
        self._numbers[_job(status), status.state] -= 1
        self._on_host[status.host].discard(status.name)
        self._planned.discard(status.name)
        self._restless.discard(status.name)


def _job(status: TaskStatus) -> str:
    return status.name.partition(":")[0]


def _is_at_rest(status: TaskStatus) -> bool:
    if status.renew:
        return False
    if status.state in state.ENDED:
        return True
    return status.state in state.ALIVE and not (status.ailing or status.notice)
