"""What the tests of dtfctl share: plans made from text, a clock that is moved by hand, a supervisor whose whole world
is made up, and patience for processes."""

from __future__ import annotations

import sys
from pathlib import Path

from dtfctl.config import parse
from dtfctl.launchers.agent_client import BECOME_AGENT
from dtfctl.launchers.fake import FakeLauncher
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values.plan import ClusterPlan
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus

CLUSTER = """
name: trial
program: train
jobs:
  ps: 1
  worker: 2
"""


def plan_of(text: str = CLUSTER, folder: str = "/cluster") -> ClusterPlan:
    return parse(text, "cluster.yaml", Path(folder))


AGENT = [sys.executable, "-I", "-S", "-c", BECOME_AGENT]
"""A Python that waits for the line that makes it an agent, as ssh starts one elsewhere."""


class FakeClock:
    """Monotonic seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def addresses_of(plan: ClusterPlan) -> dict[str, str]:
    """Made up, and the same for a task in every plan."""
    tasks = [task for task in plan.tasks() if task.job.has_address]
    return {task.name: f"127.0.0.1:{_FIRST_PORTS.get(task.job.name, 100) + task.index}" for task in tasks}


_FIRST_PORTS = {"ps": 1, "worker": 2}


class World:
    """A supervisor with everything around it made up."""

    def __init__(self, folder: Path, text: str = CLUSTER) -> None:
        self.paths = ClusterPaths(folder)
        self.clock = FakeClock()
        self.store = Store(self.paths.store, wall_clock=lambda: 0.0)
        self.launcher = FakeLauncher(self.clock)
        plan = plan_of(text)
        statuses = {task.name: TaskStatus(task.name) for task in plan.tasks()}
        run = Run(1, "token", "boot", plan, {"SECRET": "x"}, addresses_of(plan), 0.0)
        self.store.begin(run, statuses.values())
        self.supervisor = self.make_supervisor(run, statuses)

    def make_supervisor(self, run: Run, statuses: dict[str, TaskStatus]) -> Supervisor:
        supervisor = Supervisor(run, statuses, self.store, self.launcher, self.paths, self.clock, jitter=lambda: 0.0)
        self.launcher.on_event = supervisor.handle
        return supervisor

    def replace_supervisor(self):
        """As after a SIGKILL: what the next one knows is what is on disk."""
        self.supervisor = self.make_supervisor(*self.store.load())
        return self.supervisor

    def make_ready(self):
        self.supervisor.step()
        for status in list(self.supervisor.statuses.values()):
            self.supervisor.note_ready(status.name, status.generation)
        self.supervisor.step()

    def states(self):
        return {status.name: status.state for status in self.supervisor.statuses.values()}

    def started(self):
        return [(launch.task, launch.generation) for launch in self.launcher.launches]

    def history(self):
        return [" ".join(filter(None, (item.task, item.what, item.cause))) for item in self.store.history(1)]
