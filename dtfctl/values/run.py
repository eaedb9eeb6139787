"""The present or last run of a cluster, as a frozen value that the supervisor replaces and the store keeps. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dtfctl.values import hosts, state
from dtfctl.values import plan as plans
from dtfctl.values.hosts import HostStatus
from dtfctl.values.plan import ClusterPlan, HostPlan, Task
from dtfctl.values.task import TaskStatus


@dataclass(frozen=True)
class Run:
    """One `up` until its end. `addresses` are host:port by task, `secrets` values by source (expand.secret_key),
    `strays` what would not die, as [pid, host, command], `hosts` what is known of other machines, `moves` the hosts of
    the tasks that a spare took over, `parting` the machines that were removed from the file and are to be released.

    `held` are the tasks that the user has stopped, each with why. `former` is the plan before the present one, while
    tasks that only it has are still ending. `requests` are the last commands that were carried out, so that one that
    is repeated is not done twice. `generations` are the last ones of tasks that were there before, so that one that
    comes back goes on counting. `followers` are (task, what befell it) after the `root_cause`.

    The times in the statuses belong to the machine's `boot`, `started_at` and `ended_at` (0: not yet)
    are the wall clock's.
    `outcome` with `why` is set once the end is decided, `is_over` when nothing of the run is left to do.
    """

    number: int
    token: str
    boot: str
    plan: ClusterPlan
    environment: Mapping[str, str] = field(repr=False)
    addresses: Mapping[str, str]
    started_at: float
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    all_were_ready: bool = False
    outcome: str = ""
    why: str = ""
    grace_period_s: float | None = None
    root_cause: str = ""
    followers: tuple[tuple[str, str], ...] = ()
    ended_at: float = 0.0
    held: Mapping[str, str] = field(default_factory=dict)
    former: ClusterPlan | None = None
    requests: tuple[str, ...] = ()
    generations: Mapping[str, int] = field(default_factory=dict)
    is_over: bool = False
    strays: tuple[tuple[int, str, str], ...] = ()
    hosts: Mapping[str, HostStatus] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    parting: tuple[HostPlan, ...] = ()

    def but(self, **changes: Any) -> Run:
        """The same with these fields changed. What was derived from other fields is kept: it was work for each task."""
        after = replace(self, **changes)
        for name, sources in _DERIVED.items():
            if name in self.__dict__ and not sources & changes.keys():
                after.__dict__[name] = self.__dict__[name]
        return after

    def with_host(self, host: HostStatus) -> Run:
        """The same with another status of a host that the run knows."""
        after = self.but(hosts={**self.hosts, host.name: host})
        if host.found is self.hosts[host.name].found:
            # Where tasks are depends on what hosts have, and not on whether they answer.
            for name in ("actual", "leaving"):
                if name in self.__dict__:
                    after.__dict__[name] = self.__dict__[name]
        is_away = host.state != hosts.CONNECTED
        after.__dict__["away"] = self.away | {host.name} if is_away else self.away - {host.name}
        return after

    @property
    def remote_hosts(self) -> tuple[HostPlan, ...]:
        """All machines that the run has to do with, those on their way out too."""
        plans = [self.plan] if self.former is None else [self.former, self.plan]
        every = (*self.parting, *(host for plan in plans for host in plan.remote_hosts))
        return tuple({host.name: host for host in every}.values())

    @cached_property
    def actual(self) -> ClusterPlan:
        """The plan as it is carried out: hosts as they were found, tasks where they moved to."""
        return self._actual(self.plan)

    @cached_property
    def leaving(self) -> Mapping[str, Task]:
        """The tasks that only the former plan has, by name."""
        if self.former is None:
            return {}
        wanted = {task.name for task in self.plan.tasks()}
        return {task.name: task for task in self._actual(self.former).tasks() if task.name not in wanted}

    @cached_property
    def away(self) -> frozenset[str]:
        """The hosts that cannot be asked for anything now."""
        return frozenset(host.name for host in self.hosts.values() if host.state != hosts.CONNECTED)

    @cached_property
    def spares(self) -> Mapping[str, str]:
        """Task -> the spare host that takes it over, of all tasks on lost hosts that have one."""
        if not any(self.hosts[name].state == hosts.LOST for name in self.away):
            return {}
        return hosts.spares(self.plan, self.actual, self.hosts)

    def task(self, name: str) -> Task:
        """Where and how it runs, be it leaving. Raises KeyError."""
        return self.leaving.get(name) or self.actual.task(name)

    def host_of(self, status: TaskStatus) -> str:
        """Where a task's process is or will be, by the name that the file gives the host."""
        if status.state in state.WITH_PROCESS and status.host not in ("", plans.LOCALHOST):
            return status.host
        return self.task(status.name).host.name

    def _actual(self, plan: ClusterPlan) -> ClusterPlan:
        found = {host.name: self.hosts[host.name].found for host in plan.hosts if host.name in self.hosts}
        resolved = {host.name: hosts.resolved(host, plan, found.get(host.name, {})) for host in plan.hosts}
        return plans.placed(plan, resolved, self.moves)


_DERIVED = {
    "actual": frozenset({"plan", "moves", "hosts"}),
    "leaving": frozenset({"plan", "former", "moves", "hosts"}),
    "away": frozenset({"hosts"}),
    "spares": frozenset({"plan", "moves", "hosts"}),
}
"""What is derived from a run's fields, with the fields from which it is."""
