"""Random sequences of deaths, commands, file edits and deaths of the supervisor: whatever has happened, the cluster
ends up as it is wanted, and nothing is left over."""

from __future__ import annotations

import random

import pytest

from dtfctl.launchers.base import Reached, Unreachable
from dtfctl.plan import expand
from dtfctl.plan.diff import scaled
from dtfctl.supervise import host_failover
from dtfctl.values import state
from dtfctl.values.hosts import HostStatus
from dtfctl.values.plan import LOCALHOST
from tests.dtfctl.fakes import World, addresses_of, plan_of

TEXT = """
name: trial
program: train {cluster_flags}
restart: {policy: always, attempts: 1000000, alike: 0, jitter: 0}
jobs:
  ps: 1
  worker: 2
  evaluator: {port: none, restart: {policy: on-failure}}
"""
MACHINES = """
host_lost_after: 60s
hosts: {here: {ssh: none, address: h}, a: , b: , c: }
"""
EDITS = (
    TEXT,
    TEXT.replace("worker: 2", "worker: {hosts: [here, a]}").replace("ps: 1", "ps: {hosts: here}") + MACHINES,
    TEXT.replace("worker: 2", "worker: {hosts: [a, b], spare_hosts: c}") + MACHINES,
    TEXT.replace("worker: 2", "worker: {hosts: [b, c, here]}") + MACHINES + "cluster_spec: sparse\n",
    TEXT + "cluster_spec: sparse\n",
    TEXT + "environment: {RATE: '2'}\n",
    TEXT.replace("ps: 1", "ps: 2"),
    TEXT.replace("worker: 2", "worker: {replicas: 3, grace_period: 1s}"),
)
STEPS = 60


class Chaos(World):
    """Every operation may happen at any moment; `steady` waits until nothing happens any more."""

    def __init__(self, folder, seed):
        super().__init__(folder, TEXT)
        self.rng = random.Random(seed)
        self.supervisor.step()

    def any_task(self):
        return self.rng.choice([task.name for task in self.supervisor.run.plan.tasks()])

    def any_alive(self):
        return self.rng.choice(sorted(self.launcher.alive)) if self.launcher.alive else None

    def apply(self, plan):
        if not self.supervisor.run.leaving:
            known = self.supervisor.run.hosts
            joining = {host.name: HostStatus(host.name) for host in plan.remote_hosts if host.name not in known}
            self.supervisor.apply(plan, addresses_of(plan), {}, joining=joining)

    # -- what may happen

    def crash(self):
        if name := self.any_alive():
            self.launcher.end(name, code=self.rng.choice([1, 2, 77]))

    def preempt(self):
        if name := self.any_alive():
            self.launcher.end(name, signal_number=self.rng.choice([9, 15, 11]))

    def done(self):
        name = self.any_alive()
        # Training must not come to its end before the test does.
        if name and not name.startswith("worker"):
            self.launcher.end(name, code=0)

    def ready(self):
        name = self.any_task()
        self.supervisor.note_ready(name, self.supervisor.statuses[name].generation)

    def hang(self):
        name = self.any_task()
        self.supervisor.note_ailing(name, self.supervisor.statuses[name].generation, "hung")

    def notice(self):
        name = self.any_task()
        self.supervisor.note_notice(name, self.rng.choice(["preempted: notice", ""]))

    def deaf(self):
        self.launcher.obeys_sigterm = not self.launcher.obeys_sigterm

    def restart(self):
        self.supervisor.restart([self.any_task()], "restart", str(self.rng.random()))

    def hold(self):
        self.supervisor.hold([self.any_task()], "stop")

    def release(self):
        self.supervisor.release([self.any_task()], "start")

    def scale(self):
        self.apply(scaled(self.supervisor.run.plan, "worker", self.rng.randint(1, 5)))

    def edit(self):
        self.apply(plan_of(self.rng.choice(EDITS)))

    def wait(self):
        self.clock.pass_(self.rng.choice([0.1, 1.0, 7.0, 70.0]))

    def cut(self):
        if hosts := sorted(self.supervisor.run.hosts):
            host = self.rng.choice(hosts)
            self.launcher.away.add(host)
            self.supervisor.handle(Unreachable(host, "no route"))

    def reach(self, every=False):
        for host in sorted(self.launcher.away):
            if every or self.rng.random() < 0.5:
                self.launcher.away.discard(host)
                self.supervisor.handle(Reached(host))
                self.launcher.tell(host)

    def look_after_machines(self):
        """What the owner of a supervisor does besides: finds places on spares, and lets machines go."""
        due = self.supervisor.moves_due()
        if due:
            self.supervisor.move({name: f"{host}:1" if name.startswith("worker") else "" for name, host in due.items()})
        for host in self.supervisor.parting():
            self.supervisor.part(host, ())
        return bool(due)

    def die(self):
        """kill -9, now or just after the next decision was written and before it was carried out."""
        if self.rng.random() < 0.5:
            self.launcher.is_cut = True
            self.supervisor.step()
            self.launcher.is_cut = False
        self.replace_supervisor()
        self.launcher.tell(LOCALHOST, *(host for host in self.supervisor.run.hosts if host not in self.launcher.away))

    def steady(self):
        """The clock runs, tasks become ready, notices end."""
        for name in list(self.supervisor.statuses):
            self.supervisor.note_notice(name, "")
        self.reach(every=True)
        for _ in range(1000):
            at = self.supervisor.step()
            if self.look_after_machines():
                continue
            if self.supervisor.is_finished:
                return
            starting = [each for each in self.supervisor.statuses.values() if each.state == state.STARTING]
            for status in starting:
                self.supervisor.note_ready(status.name, status.generation)
            if at is not None:
                self.clock.now = max(self.clock.now, at)
            elif not starting:
                return
        raise AssertionError("it does not come to rest")

    # -- what must hold then

    def check(self):
        run = self.supervisor.run
        plan = run.plan
        wanted = {task.name for task in plan.tasks()}
        assert set(self.supervisor.statuses) == set(self.store.load()[1]) == wanted
        assert run.former is None
        assert run.parting == () and set(run.hosts) == {host.name for host in plan.remote_hosts}
        assert self.launcher.ghosts == {}
        running = set()
        for task in plan.tasks():
            status = self.supervisor.statuses[task.name]
            if task.name in run.held:
                # One that had ended by itself keeps that end.
                assert status.state in (state.STOPPED, state.SUCCEEDED), status
            elif status.state != state.SUCCEEDED:
                assert status.state == state.RUNNING, status
                running.add(task.name)
                assert self.launcher.alive[task.name] == status.generation
                assert self.launcher.where[task.name] == host_failover.launcher_host(run.actual.task(task.name))
                launch = next(
                    each for each in reversed(self.launcher.launches) if each.task == task.name
                )
                assert launch.argv == expand.argv(plan, task, run.addresses)
                assert launch.environment.get("RATE") == task.settings.environment.get("RATE")
            # The start of one may have been called off before it came to a machine that was away.
            assert status.generation >= max(
                (generation for name, generation in self.launcher.pids if name == task.name), default=0
            )
        assert set(self.launcher.alive) == running


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_the_cluster_becomes_what_is_wanted_and_nothing_is_left_over(tmp_path, seed):
    world = Chaos(tmp_path, seed)
    happenings = [
        getattr(world, name)
        for name in (
            "crash preempt done ready ready ready hang notice deaf restart hold release scale edit wait wait die die "
            "cut reach"
        ).split()
    ]
    try:
        for _ in range(3):
            for _ in range(STEPS // 3):
                world.rng.choice(happenings)()
                if world.rng.random() < 0.7:
                    world.supervisor.step()
                    world.look_after_machines()
            world.steady()
            world.check()
        world.supervisor.stop("enough")
        for _ in range(3):
            world.rng.choice([world.die, world.deaf, world.crash, world.wait])()
            world.supervisor.step()
        world.steady()
        assert world.supervisor.is_finished
        assert world.launcher.alive == {}
        assert {status.state for status in world.supervisor.statuses.values()} <= state.ENDED
    finally:
        world.store.close()
