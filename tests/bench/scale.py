"""What a supervisor costs as clusters grow: start, one task's death, a host's absence, `status`, adoption, end.

    python -m tests.bench.scale [--tasks 100 1000 10000] [--json FILE]

The supervisor, its store and what shows a run are the real ones; hosts and processes are made up (launchers/fake.py),
ten tasks to a host. Each size is measured in a process of its own, so that memory is its own too. The tests count the
lines of Python that an event takes (`lines_of`), which no load of the machine changes. Times are CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import dtfctl
from dtfctl.config import parse
from dtfctl.control.cluster import Cluster
from dtfctl.control.requests import hold_ports
from dtfctl.launchers.base import Reached, Unreachable
from dtfctl.launchers.fake import FakeLauncher
from dtfctl.launchers.multi_host import HostsLauncher
from dtfctl.plan import expand
from dtfctl.show import view
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values import state
from dtfctl.values.hosts import as_found
from dtfctl.values.plan import LOCALHOST, ClusterPlan
from dtfctl.values.run import Run
from dtfctl.values.snapshot import take
from dtfctl.values.task import TaskStatus

ROOT = Path(dtfctl.__file__).parent
TASKS_ON_HOST = 10
SERVERS = 10
REPEATS = 20

FILE = """\
name: scale
program: [python, train.py]
cluster_spec: sparse
python: /usr/bin/python3
hosts:
  node[1-{hosts}]: {{slots: {slots}}}
jobs:
  ps: {{replicas: {servers}, hosts: "node[1-{hosts}]"}}
  worker: {{replicas: {workers}, hosts: "node[1-{hosts}]"}}
  board: {{replicas: 1, hosts: node1, port: none, sidecar: true, program: [board]}}
"""

FOUND = {"folder": "/there", "python": "/usr/bin/python3", "cores": 8, "environment": {"HOME": "/home/user"}}


def plan_of(tasks: int) -> ClusterPlan:
    hosts = max(2, tasks // TASKS_ON_HOST)
    text = FILE.format(hosts=hosts, slots=TASKS_ON_HOST + 2, servers=SERVERS, workers=tasks - SERVERS - 1)
    return parse(text, "cluster.yaml", Path("/cluster"))


class World:
    """A supervisor of so many tasks, and everything around it made up but for the store."""

    def __init__(self, folder: Path, plan: ClusterPlan) -> None:
        self.paths = ClusterPaths(folder)
        self.paths.folder.mkdir(parents=True, exist_ok=True)
        self.now = 1000.0
        self.store = Store(self.paths.store, wall_clock=lambda: self.now)
        self.fake = FakeLauncher(self.clock)
        found = as_found({host.name: FOUND for host in plan.hosts}, self.now, self.now)
        addresses = asyncio.run(hold_ports(self.fake, Run(1, "", "", plan, {}, {}, 0.0, hosts=found).actual, {}))
        run = Run(1, "token", "boot", plan, {"PATH": "/bin"}, addresses, self.now, hosts=found)
        self.store.begin(run, [TaskStatus(task.name) for task in plan.tasks()])
        self.supervisor = self.adopt()

    def clock(self) -> float:
        return self.now

    def adopt(self) -> Supervisor:
        """The next supervisor, after a SIGKILL to this one: it hears of each host what is there."""
        found = self.store.load()
        assert found is not None
        hosts = HostsLauncher(self.fake.on(LOCALHOST), lambda host: self.fake.on(host.name), found[0].remote_hosts)
        self.supervisor = Supervisor(*found, self.store, hosts, self.paths, self.clock, jitter=lambda: 0.0)
        self.fake.on_event = self.supervisor.handle
        asyncio.run(hosts.connect())
        self.supervisor.step()
        return self.supervisor

    def up(self) -> None:
        """All run; each is found ready in a round of its own."""
        self.supervisor.step()
        for name in list(self.supervisor.statuses):
            self.become_ready(name)

    def become_ready(self, name: str) -> None:
        self.supervisor.note_ready(name, self.supervisor.statuses[name].generation)
        self.supervisor.step()

    def die(self, name: str) -> None:
        """Its process is killed from outside, comes back and is ready."""
        self.now += 100.0
        self.fake.end(name, signal_number=9)
        self.supervisor.step()
        self.become_ready(name)

    def fail(self, name: str) -> None:
        """It fails, and is started again after its pause."""
        self.now += 1000.0
        self.fake.end(name, code=1)
        self.now = self.supervisor.step() or self.now
        self.supervisor.step()
        self.become_ready(name)

    def give_up(self, name: str) -> None:
        """It fails until its policy forgives no more."""
        while self.supervisor.statuses[name].state not in state.UNFORGIVEN:
            if self.supervisor.statuses[name].state == state.RUNNING:
                self.fake.end(name, code=1)
            self.now = max(self.now, self.supervisor.step() or self.now)

    def finish(self, name: str) -> None:
        self.fake.end(name, code=0)
        self.supervisor.step()

    def lose_sight_of(self, host: str) -> None:
        """It cannot be reached for a moment."""
        self.supervisor.handle(Unreachable(host, "no answer"))
        self.supervisor.step()
        self.supervisor.handle(Reached(host))
        self.supervisor.step()

    def end(self) -> None:
        self.supervisor.stop("the end")
        while not self.supervisor.is_finished:
            self.supervisor.step()
        self.supervisor.end(())


def lines_of(call: Callable[[], Any]) -> int:
    """How many lines of dtfctl's Python a call executes: each turn of a loop counts."""
    count = 0
    root = str(ROOT)

    def trace(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(root):
            return None
        count += what == "line"
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(former)
    return count


def measure(tasks: int, folder: Path) -> dict[str, float]:
    figures: dict[str, float] = {"tasks": tasks}
    with _ms(figures, "read the file"):
        plan = plan_of(tasks)
    figures["hosts"] = len(plan.hosts)
    with _ms(figures, "expand"):
        addresses = {task.name: f"{task.advertised_host}:2222" for task in plan.tasks() if task.job.has_address}
        view.expansion(expand.described(plan, addresses))
    with _ms(figures, "record"):
        world = World(folder / "scale", plan)
    with _ms(figures, "up"):
        world.up()
    figures["one death, ms"] = _median_ms(lambda: world.die("worker:7"))
    figures["one failure, ms"] = _median_ms(lambda: world.fail("worker:7"))
    figures["one host away and back, ms"] = _median_ms(lambda: world.lose_sight_of("node2"))
    figures["hold and release one, ms"] = _median_ms(lambda: _hold(world))
    figures["supervisor, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cluster = Cluster(world.paths)
    with _ms(figures, "status -o json"):
        json.dumps(view.document(take(*cluster.load(), world.now, world.now)), indent=2)
    with _ms(figures, "status"):
        view.table(take(*cluster.load(), world.now, world.now))
    with _ms(figures, "ls"):
        view.clusters_table([view.summary(take(*cluster.load(), world.now, world.now))], world.now)
    with _ms(figures, "events"):
        figures["events kept"] = len(cluster.history(world.supervisor.run))
    figures["store, MB"] = world.paths.store.stat().st_size / 1e6
    with _ms(figures, "adoption"):
        world.adopt()
    with _ms(figures, "scale to half"):
        _scale(world, (tasks - SERVERS - 1) // 2)
    with _ms(figures, "end"):
        world.end()
    world.store.close()
    return figures


def _hold(world: World) -> None:
    world.supervisor.hold(["worker:7"], "stop")
    world.supervisor.step()
    world.supervisor.release(["worker:7"], "start")
    world.supervisor.step()
    world.become_ready("worker:7")


def _scale(world: World, workers: int) -> None:
    from dtfctl.plan.diff import scaled

    run = world.supervisor.run
    plan = scaled(run.plan, "worker", workers)
    names = {task.name for task in plan.tasks()}
    addresses = {name: address for name, address in run.addresses.items() if name in names}
    world.supervisor.apply(plan, addresses, run.secrets)
    world.supervisor.step()


@contextmanager
def _ms(figures: dict[str, float], name: str) -> Iterator[None]:
    begun = time.process_time()
    yield
    figures[f"{name}, ms"] = 1e3 * (time.process_time() - begun)


def _median_ms(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        begun = time.process_time()
        call()
        times.append(1e3 * (time.process_time() - begun))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(options.one, Path(folder))))
        return
    columns = []
    for count in options.tasks:
        command = [sys.executable, "-m", "tests.bench.scale", "--one", str(count)]
        columns.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    print("| | " + " | ".join(f"{column['tasks']:,.0f} tasks" for column in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in list(columns[0])[1:]:
        print(f"| {name} | " + " | ".join(_number(column[name]) for column in columns) + " |")
    if options.json:
        options.json.write_text(json.dumps(columns, indent=1))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


if __name__ == "__main__":
    main()
