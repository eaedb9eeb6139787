"""dtfctl move, drain and balance: tasks go to other hosts, the places of durable ps live, one after another.

Each step is whole by itself: when a command is interrupted, the cluster runs on as the steps so far have left it, and
the same command again does the rest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dtfctl.commands.figures import client_tls
from dtfctl.commands.frame import (
    CHANGES_PENDING,
    ERROR,
    TIMED_OUT,
    USAGE,
    Duration,
    Options,
    choose_active,
    command,
    fail,
    lines_of,
    names_cluster,
    takes_progress,
)

if TYPE_CHECKING:
    from dtfctl.control.cluster import Cluster
    from dtfctl.plan.moves import Held, Step
    from dtfctl.probes.places import PlaceState
    from dtfctl.values.run import Run

LOOK_S = 0.05
STEP_S = 300.0
"""A step may take so long: a new process starts, and gigabytes are copied."""


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _takes_steps(function: _Function) -> _Function:
    timeout = click.option(
        "--timeout", type=Duration(), default=STEP_S, metavar="SECONDS", help="The longest wait for one step (300)."
    )
    plan = click.option("--plan", "is_plan", is_flag=True, help="Only print the steps; exit with 20 if there are any.")
    return names_cluster(plan(timeout(takes_progress(function))))


def add_to(group: click.Group) -> None:
    @command(group)
    @click.argument("host")
    @_takes_steps
    def drain(options: Options, host: str, cluster: str | None, is_plan: bool, timeout: float) -> None:
        """Moves all tasks away from a HOST, so that the machine can be taken away: dtfctl drain node3.

        Durable parameter servers move live, one after another; the training pauses only while a backup becomes the
        primary. Other tasks restart on other hosts. The host gets no tasks any more until the next dtfctl up.
        """
        from dtfctl.plan import moves

        mover = _Mover(options, cluster, timeout)
        steps = mover.planned(lambda run, held: moves.drained(run.actual, host, held))
        mover.carry_out(steps, is_plan, (host,))
        mover.say(f"{host} has no tasks" if not steps else f"{host} has no tasks any more")

    @command(group)
    @_takes_steps
    def balance(options: Options, cluster: str | None, is_plan: bool, timeout: float) -> None:
        """Spreads durable parameter servers evenly over their hosts, by the bytes of their variables.

        First it prints the hosts with their bytes before and after, and the steps. The number of ps stays: the graph
        of the program names them. So give the job more ps than hosts, and add hosts later.
        """
        from dtfctl.plan import moves

        mover = _Mover(options, cluster, timeout)
        steps = mover.planned(lambda run, held: moves.balanced(run.actual, held))
        for line in mover.table(steps):
            if is_plan:
                print(line)
            else:
                mover.say(line)
        mover.carry_out(steps, is_plan)
        mover.say("the parameter servers are spread evenly" if not steps else f"{len(steps)} steps done")

    @command(group)
    @click.argument("wanted", nargs=-1, required=True, metavar="TASK=HOST...")
    @_takes_steps
    def move(options: Options, wanted: tuple[str, ...], cluster: str | None, is_plan: bool, timeout: float) -> None:
        """Moves tasks to other hosts: dtfctl move ps:0=node3. A durable ps moves live, other tasks restart there."""
        from dtfctl.plan import moves

        pairs = dict(_pair(text) for text in wanted)
        mover = _Mover(options, cluster, timeout)
        steps = mover.planned(lambda run, held: moves.moves_of(run.actual, pairs, held))
        mover.carry_out(steps, is_plan)
        mover.say(", ".join(f"{task} is on {host}" for task, host in pairs.items()))


def _pair(text: str) -> tuple[str, str]:
    task, equals, host = text.partition("=")
    if not equals or not task or not host:
        raise click.UsageError(f"{text!r} must have the form TASK=HOST, such as ps:0=node3")
    return task, host


class _Mover:
    """Carries steps out on one cluster, and says what it does."""

    def __init__(self, options: Options, cluster: str | None, timeout_s: float) -> None:
        self._cluster: Cluster = choose_active(options, cluster)
        self._terminal = options.terminal()
        self._timeout_s = timeout_s
        run, _ = self._cluster.load()
        self._tls = client_tls(self._cluster, run)

    def say(self, words: str) -> None:
        self._terminal.say(words)

    def planned(self, plan: Callable[[Run, dict[str, Held]], tuple[Step, ...]]) -> tuple[Step, ...]:
        run = self._cluster.load()[0]
        try:
            return plan(run, self._held(run))
        except ValueError as error:
            fail(USAGE, f"{self._cluster.name}: {error}")

    def table(self, steps: Sequence[Step]) -> list[str]:
        """The bytes of each host, before and after."""
        from dtfctl.plan import moves

        run = self._cluster.load()[0]
        held = self._held(run)
        before = moves.loads(run.actual, held)
        if not before:
            return ['no parameter server has "durability: host"; others cannot move without a restart']
        after = moves.loads(*moves.after(run.actual, held, steps))
        return [
            f"{host:<16}serves {_mb(serving)} of {_mb(every)}, then {_mb(after[host][0])} of {_mb(after[host][1])}"
            for host, (serving, every) in before.items()
        ]

    def carry_out(self, steps: Sequence[Step], is_plan: bool, without: Collection[str] = ()) -> None:
        """Prints the steps, and does them unless they are only a plan, which ends the command here."""
        from dtfctl.plan.backups import other_place
        from dtfctl.plan.moves import Act

        run = self._cluster.load()[0]
        live = [step for step in steps if other_place(run.plan, step.task)]
        others = {step.task: step.host for step in steps if step not in live}
        for step in steps:
            if is_plan:
                print(step)
        if is_plan:
            for line in self._change(others, without, False) if others else ():
                print(line)
            sys.exit(CHANGES_PENDING if steps else 0)
        if without:
            self._change({}, without, True)  # from here on nothing else goes there
        for step in live:
            began = time.monotonic()
            if step.act == Act.PROMOTE:
                self._promote(step.task)
            else:
                self._move(step.task, step.host)
            self.say(f"{step}    {time.monotonic() - began:.1f}s")
        if others:
            for line in self._change(others, without, True):
                self.say(f"    {line}")
            self._wait(lambda: all(self._is_there(*each) for each in others.items()), "tasks to be ready")

    # -- steps

    def _promote(self, task: str) -> None:
        """The backup serves: once it is in sync."""

        def is_done() -> bool:
            state = self._state(task)
            if state is None or state.role != "backup" or not state.has_right:
                return state is not None and state.role == "primary" and not state.is_paused
            self._order(task, {"ask": "promote", "term": state.term})
            return False

        self._wait(is_done, f"{task} to serve")

    def _move(self, task: str, host: str) -> None:
        """The backup ends, and is filled on another host. It gives its right back first: nothing waits for it then."""
        other = self._other(task)
        self._wait(lambda: self._serves(other), f"{other} to serve")
        state = self._state(other)
        if state is not None and state.mode == "pair":
            self._order(other, {"ask": "alone", "term": state.term})
        for line in self._change({task: host}, (), True):
            self.say(f"    {line}")
        self._wait(lambda: self._is_there(task, host), f"{task} to be the backup on {host}")

    def _is_there(self, task: str, host: str) -> bool:
        run, statuses = self._cluster.load()
        status = statuses.get(task)
        if status is None or status.renew or run.host_of(status) != host or not run.actual.has_task(task):
            return False
        from dtfctl.values import state

        if status.state in state.UNFORGIVEN:
            fail(ERROR, f"{task} {status.reason} on {host}")
        found = self._state(task) if self._other(task) else None
        return status.ready and (not self._other(task) or (found is not None and found.is_ready))

    def _serves(self, task: str) -> bool:
        found = self._state(task)
        return found is not None and found.role == "primary" and not found.is_paused

    def _change(self, tasks: dict[str, str], without: Collection[str], is_serious: bool) -> list[str]:
        reply = self._cluster.move(tasks, without, is_serious, self._terminal.say)
        if "error" in reply:
            fail(ERROR, f"{self._cluster.name}: {reply['error']}")
        return list(lines_of(reply))

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._timeout_s
        while not is_done():
            run = self._cluster.load()[0]
            if run.is_over or run.outcome:
                fail(ERROR, f"{self._cluster.name} ended meanwhile: {run.outcome} ({run.why})")
            if time.monotonic() > deadline:
                fail(TIMED_OUT, f"waited {self._timeout_s:g}s for {what}; the same command again does the rest")
            time.sleep(LOOK_S)

    # -- places

    def _other(self, task: str) -> str:
        from dtfctl.plan.backups import other_place

        return other_place(self._cluster.load()[0].plan, task)

    def _held(self, run: Run) -> dict[str, Held]:
        from dtfctl.plan.moves import Held

        found = {}
        for job in run.plan.jobs:
            for index in range(job.replicas if job.backs_up else 0):
                names = f"{job.backs_up}:{index}", f"{job.name}:{index}"
                states = [self._state(name) for name in names]
                primary = next(
                    (name for name, state in zip(names, states, strict=True) if state and state.role == "primary"), ""
                )
                if not primary:
                    fail(ERROR, f"no place of {names[0]} serves now; dtfctl status has the reason")
                found[names[0]] = Held(primary, max(state.bytes for state in states if state))
        return found

    def _state(self, task: str) -> PlaceState | None:
        import asyncio

        from dtfctl.plan.backups import peer_of
        from dtfctl.probes import places

        address = self._cluster.load()[0].addresses.get(peer_of(task), "")
        try:
            return asyncio.run(places.ask(address, {"ask": "state"}, tls=self._tls))
        except places.PlaceError:
            return None

    def _order(self, task: str, order: dict[str, object]) -> None:
        """A refused order is asked again by the caller, as long as it waits."""
        import asyncio

        from dtfctl.plan.backups import peer_of
        from dtfctl.probes import places

        address = self._cluster.load()[0].addresses.get(peer_of(task), "")
        try:
            asyncio.run(places.ask(address, order, places.ORDER_S, self._tls))
        except places.PlaceError as error:
            self.say(f"    {error}")


def _mb(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
