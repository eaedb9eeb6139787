"""The loop's body: what was observed goes in, `reconcile` decides, and its plan is applied. No sockets, no asyncio.

The owner (daemon.py) calls `handle` for what the launcher tells, `note_ready` and `note_waiting` for what the probes
find, and `step` after each of them and when the clock reaches what `step` returned. What is decided is on disk before
it is done, so that a supervisor that is killed anywhere is continued by the next one.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from dtfctl.errors import StoreUnwritable
from dtfctl.launchers.base import (
    Event,
    Exited,
    Launch,
    Launcher,
    Listed,
    Reached,
    Ready,
    Started,
    Stray,
    Unreachable,
    Waiting,
)
from dtfctl.plan import backups, expand
from dtfctl.plan.diff import Change, Effect, Given, between
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.supervise import host_failover, planned_ends
from dtfctl.supervise.reconcile import FAILED, STOPPED, Action, Desired, Verb, companions, reconcile, verdict
from dtfctl.supervise.restart import remembering
from dtfctl.values import state
from dtfctl.values.history import Happening
from dtfctl.values.hosts import HostStatus
from dtfctl.values.plan import ClusterPlan, Task
from dtfctl.values.run import Run
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import Exit, TaskStatus, Then
from dtfctl.wire.messages import Complaints

REQUESTS_KEPT = 32


class Supervisor:
    """Owns `run` and `statuses`, and is the only one that changes them. One thread.

    `clock` gives monotonic seconds, `jitter` numbers in [0, 1), `files` what a task is given as files (base.Launch).
    `tell` takes what has happened once it is on disk, and returns at once.
    """

    def __init__(
        self,
        run: Run,
        statuses: Mapping[str, TaskStatus],
        store: Store,
        launcher: Launcher,
        paths: ClusterPaths,
        clock: Callable[[], float],
        jitter: Callable[[], float],
        files: Callable[[Task], dict[str, str]] = lambda task: {},
        tell: Callable[[Sequence[Happening]], None] = lambda happenings: None,
    ) -> None:
        self.run = run
        self.statuses = Statuses(statuses.values())
        self.is_finished = False
        self.unwritten = ""
        self._store = store
        self._launcher = launcher
        self._paths = paths
        self._clock = clock
        self._jitter = jitter
        self._files = files
        self._tell = tell
        self._changed: set[str] = set()
        self._happenings: list[Happening] = []
        self._effects: list[Callable[[], None]] = []
        self._forgotten: list[str] = []
        self._generations: dict[str, int] = {}
        self._touched: set[str] = set(statuses)
        self._complaints = Complaints()

    def handle(self, event: Event) -> None:
        """Takes in what the launcher tells. What is said twice, of a former generation, or by another host than the
        task's, changes nothing."""
        if isinstance(event, Listed):
            self._compare(event)
            return
        if isinstance(event, Reached | Unreachable):
            wall, now = self._store.wall_clock(), self._clock()
            if isinstance(event, Reached):
                self._take(host_failover.reached(self.run, event.host, wall, now))
            else:
                self._take(host_failover.unreachable(self.run, event.host, event.why, wall, now))
            return
        status = self.statuses.get(event.task)
        if status is None or event.generation != status.generation or status.state not in state.WITH_PROCESS:
            return
        if event.host != (host := host_failover.at(self.run.task(event.task), status)):
            self._complaints.tell(f"{event.host} reports on {event.task}, which runs on {host}: ignored")
            return
        if isinstance(event, Waiting):
            self.note_waiting(event.task, event.generation, event.why)
        elif isinstance(event, Ready):
            self.note_ready(event.task, event.generation)
        elif isinstance(event, Started):
            if status.pid is None:
                self._put(status.started(event.pid, event.at))
                self._note(event.task, "started", f"pid {event.pid}")
                task = self.run.task(event.task)
                is_unasked = task.settings.readiness.kind == "none" and not task.host.probes_itself
                if is_unasked and status.state == state.STARTING:
                    self.note_ready(event.task, event.generation)
        else:
            ended = _as_it_came_about(event.exit, status)
            if not (self.run.outcome or ended.preempted):
                plan = self.run.actual
                ended = replace(ended, preempted=planned_ends.excuse(plan, event.task, status, ended, self.statuses))
            self._put(status.ended(ended))
            self._note(event.task, "ended", str(event.exit))

    def note_ready(self, task: str, generation: int) -> None:
        status = self.statuses[task]
        if status.generation == generation and status.state == state.STARTING:
            now = self._clock()
            self._put(status.became_ready(now))
            self._note(task, "ready", f"after {now - (status.started_at or now):.1f}s")

    def note_waiting(self, task: str, generation: int, waiting_for: str) -> bool:
        """What the readiness of a starting task still lacks, in words. Returns whether that is new."""
        status = self.statuses[task]
        if status.generation != generation or status.state != state.STARTING or status.waiting_for == waiting_for:
            return False
        self._put(replace(status, waiting_for=waiting_for))
        return True

    def note_place(self, task: str, generation: int, role: str) -> bool:
        """What a place of a durable task says of its role. Returns whether that is new."""
        status = self.statuses.get(task)
        if status is None or status.generation != generation or status.role == role:
            return False
        self._put(replace(status, role=role))
        self._note(task, "place", role)
        return True

    def note_event(self, task: str, what: str, words: str) -> None:
        """For the history."""
        self._note(task, what, words)

    def note_ailing(self, task: str, generation: int, why: str) -> None:
        """A task that was ready does not answer any more: this process of it must go."""
        status = self.statuses[task]
        if status.generation == generation and status.state == state.RUNNING:
            self._put(replace(status, ailing=why))
            self._note(task, "hangs", why)

    def note_stalled(self, task: str, generation: int, why: str, since_s: float = 0.0) -> bool:
        """This process has got nowhere for `since_s` seconds, or ("") it does again. Returns whether that is new."""
        status = self.statuses.get(task)
        if status is None or status.generation != generation or status.state not in state.ALIVE:
            return False
        if bool(status.stalled) == bool(why):
            return False
        since = self._store.wall_clock() - since_s if why else None
        self._put(replace(status, stalled=why, stalled_since=since))
        self._note(task, "stalled" if why else "goes on", f"stalled: {why}" if why else "gets on again")
        return True

    def note_notice(self, task: str, why: str) -> bool:
        """The machine of a task is about to be taken away, or ("") is not any more."""
        status = self.statuses.get(task)
        if status is None or bool(status.notice) == bool(why):
            return False
        self._put(replace(status, notice=why))
        self._note(task, "notice" if why else "notice over", why)
        return True

    # -- what the user wants of some tasks; on disk when it returns, and not done twice under the same `request`

    def restart(self, tasks: Iterable[str], why: str, request: str = "") -> None:
        """A new process for each of these, whatever became of the present one and whatever the policy says."""
        if self._is_new(request):
            names = list(tasks)
            self._let_go(names)
            self._renew(names, why)
        self._commit()

    def hold(self, tasks: Iterable[str], why: str, request: str = "") -> None:
        """From now on these are wanted down, until `release` or `restart`."""
        if self._is_new(request):
            held = {name: why for name in tasks if name not in self.run.held}
            self.run = self.run.but(held={**self.run.held, **held})
            for name in held:
                self._put(replace(self.statuses[name], renew=""))
                self._note(name, "held", why)
        self._commit()

    def release(self, tasks: Iterable[str], why: str, request: str = "") -> None:
        """These are wanted up again; what has no process, or is losing it, gets one."""
        if self._is_new(request):
            names = list(tasks)
            self._let_go(names)
            self._renew((name for name in names if self.statuses[name].state not in state.ALIVE), why)
        self._commit()

    def changes(
        self, plan: ClusterPlan, addresses: Mapping[str, str], secrets: Mapping[str, str]
    ) -> tuple[Change, ...]:
        """What `apply` would come to, each with its cause."""
        run = self.run
        wanted = replace(host_failover.joined(run, plan, {}), former=None)
        return between(
            Given(run.actual, run.addresses, run.secrets),
            Given(wanted.actual, addresses, secrets),
            partial(host_failover.inherited, run),
        )

    def apply(
        self,
        plan: ClusterPlan,
        addresses: Mapping[str, str],
        secrets: Mapping[str, str],
        request: str = "",
        joining: Mapping[str, HostStatus] | None = None,
    ) -> tuple[Change, ...]:
        """Another cluster file, whose tasks have these `addresses`, takes the place of the present one. The machines
        that are `joining` are known to the launcher already.

        Raises ValueError while tasks of the former one are still ending.
        """
        if self.run.leaving:
            raise ValueError("tasks that were removed from the cluster are still stopping")
        if not self._is_new(request):
            return ()
        changes = self.changes(plan, addresses, secrets)
        names = {task.name for task in plan.tasks()}
        self.run = replace(
            host_failover.joined(self.run, plan, joining or {}),
            addresses=addresses,
            secrets=secrets,
            held={name: why for name, why in self.run.held.items() if name in names},
            all_were_ready=self.run.all_were_ready and not any(change.makes_process for change in changes),
        )
        if not self.run.leaving:
            self.run = self.run.but(former=None)
        for change in changes:
            if change.verb == Effect.START:
                self._put(TaskStatus(change.task, generation=self.run.generations.get(change.task, 0)))
            elif change.verb == Effect.RESTART:
                status = self.statuses[change.task]
                # What has done its work has done it, and what the user has stopped is not started by the way.
                if status.state not in (state.SUCCEEDED, state.STOPPED):
                    self._put(replace(status, renew=change.cause))
            self._note(change.task, f"to {change.verb}", change.cause)
        order = [*(task.name for task in plan.tasks()), *self.run.leaving]
        self.statuses = Statuses(self.statuses[name] for name in order if name in self.statuses)
        self._touched |= self.statuses.keys()
        self._commit()
        return changes

    def stop(self, why: str, grace_period_s: float | None = None) -> None:
        """From now on the cluster is wanted down, on disk when this returns. A second call may shorten the grace
        period, 0 kills at once."""
        if not self.run.outcome:
            self.run = self.run.but(outcome=STOPPED, why=why)
            self._note("", "stopping", why)
        self.run = self.run.but(grace_period_s=grace_period_s)
        self._commit()

    def explain(self, why: str) -> None:
        """Why the cluster was stopped, when that became known only afterwards."""
        if self.run.outcome == STOPPED and not self.run.is_over and self.run.why != why:
            self.run = self.run.but(why=why)
            self._note("", "stopping", why)
            self._commit()

    def step(self) -> float | None:
        """Reconciles and applies until nothing is left to do now; returns when to be called again at the latest."""
        while True:
            self._take(host_failover.losses(self.run, self.statuses, self._store.wall_clock(), self._clock()))
            run = self.run
            desired = Desired(
                run.actual, run.outcome, run.why, run.grace_period_s, run.held, run.leaving, run.away
            )
            plan = reconcile(desired, self.statuses, self._clock(), self._jitter)
            if plan.outcome and not run.outcome:
                self._decide(plan.outcome, plan.why)
            for action in plan.actions:
                self._apply(action)
            self._forget_leaving()
            self._look_whether_all_are_ready()
            is_done = not plan.actions or self.is_finished
            # What was settled and what follows from it are one commit, as long as nothing of it is visible outside.
            if is_done or self._effects:
                self._commit()
            if is_done:
                times = (plan.look_again_at, host_failover.look_again_at(run))
                return min((at for at in times if at is not None), default=None)

    def take_touched(self) -> set[str]:
        """The tasks that have changed since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def moves_due(self) -> dict[str, str]:
        """Task -> spare host, of tasks on lost hosts. The owner finds them ports there and calls `move`."""
        return host_failover.due(self.run, self.statuses)

    def note_trouble(self, task: str, words: str) -> None:
        """For the history."""
        self._note(task, "trouble", words)

    def note_scaled(self, words: str) -> None:
        """For the history: another number of tasks was decided here, and why."""
        self._note("", "autoscale", words)

    def tell_trouble(self, words: str) -> None:
        """For the history, also after the end of the run; on disk when this returns, if it can be written."""
        self._note("", "trouble", words)
        with contextlib.suppress(StoreUnwritable):
            self._commit()

    def move(self, addresses: Mapping[str, str]) -> None:
        """These tasks are at these addresses now ("" for none), on their spares."""
        self._take(host_failover.moved(self.run, self.statuses, addresses, self._clock()))

    def parting(self) -> list[str]:
        """Machines that the owner may let go now; then it calls `part`."""
        return host_failover.parting(self.run, self.statuses)

    def part(self, host: str, strays: tuple[Stray, ...]) -> None:
        self.run = host_failover.parted(self.run, host)
        self._note("", "host", f"{host} is released: the cluster file no longer uses it")
        self._note_strays(strays)
        self._commit()

    def end(self, strays: tuple[Stray, ...]) -> None:
        """The last word of the run: it is over, and these processes would not die."""
        self.run = self.run.but(
            is_over=True,
            ended_at=self._store.wall_clock(),
            # Secrets that came with the environment are not kept longer than they serve.
            environment={},
            secrets={},
        )
        self._note_strays(strays)
        self._note("", self.run.outcome, self.run.why)
        self._commit()

    def save(self) -> bool:
        """Whether all is on disk; what could not be written is tried once more."""
        if self.unwritten:
            self._commit()
        return not self.unwritten

    def _note_strays(self, strays: tuple[Stray, ...]) -> None:
        self.run = replace(
            self.run, strays=(*self.run.strays, *((stray.pid, stray.host, stray.command) for stray in strays))
        )
        for stray in strays:
            self._note("", "left behind", f"pid {stray.pid} on {stray.host}: {stray.command}")

    def _compare(self, listed: Listed) -> None:
        """After a host was found again: what it never heard of is asked for again, what it lost has ended, and what
        was given up meanwhile is ended there too."""
        own = {name: self.statuses[name] for name in self.statuses.on_host(listed.host)}
        for name, generation in sorted(listed.known):
            present = own.get(name)
            if present is None or present.generation != generation or present.state not in state.WITH_PROCESS:
                self._launcher.signal(name, generation, signal.SIGKILL, listed.host)
            if name not in self.statuses:
                self._launcher.release_port(name, listed.host)
        for status in own.values():
            if status.state not in state.WITH_PROCESS:
                continue
            if (status.name, status.generation) in listed.known:
                if status.state == state.STOPPING:
                    # The signal may have been lost with the connection.
                    self._stop(status)
                continue
            if status.pid is None and status.state == state.STARTING:
                self._start(status)
            else:
                # What nobody saw is held against nobody.
                words = "was lost: the state of its process is unknown" if status.pid else "was never started"
                ended = Exit(self._clock(), error=words, preempted=words)
                self.handle(Exited(status.name, status.generation, ended, listed.host))

    def _apply(self, action: Action) -> None:
        if action.verb == Verb.FINISH:
            self.is_finished = True
            return
        if action.verb == Verb.FORGET:
            self._forget(action)
            return
        status = self.statuses[action.task]
        now = self._clock()
        if action.verb == Verb.START:
            host = host_failover.launcher_host(self.run.actual.task(status.name))
            if status.host not in ("", host):
                self._effects.append(partial(self._launcher.release_port, status.name, status.host))
            is_restart = status.generation > self.run.generations.get(status.name, 0)
            status = status.starting(host, is_restart)
            # What a process gets is put together when it starts: of all tasks at once it would be large.
            self._effects.append(partial(self._start, status))
        elif action.verb == Verb.TERMINATE:
            is_planned = action.then in planned_ends.PLANNED and not self.run.outcome
            status = status.terminated(now, action.cause, action.then, is_planned)
            self._stop(status)
        elif action.verb == Verb.KILL:
            status = status.killed(now)
            self._stop(status)
        elif action.verb == Verb.STOP:
            status = status.stopped(action.cause)
        elif action.verb == Verb.RENEW:
            status = status.renewed(action.cause)
        elif action.verb == Verb.ABANDON:
            status = status.abandoned(action.cause)
        else:
            next_start_at = now + action.delay_s if action.verb == Verb.RETRY else None
            status = status.settled(action.verb, action.cause, next_start_at)
            if action.decision is not None:
                status = remembering(status, action.decision)
        self._put(status)
        self._note(action.task, action.verb, action.cause)
        if action.verb == Verb.RETRY:
            found = companions(self.run.actual, self.run.task(action.task), self.statuses)
            self._renew(found, f"restarts with {action.task}")

    def _stop(self, status: TaskStatus) -> None:
        """Signals a stopping task, as far as its end has come."""
        task = self.run.task(status.name)
        numbers: tuple[int, ...] = (signal.SIGKILL,)
        if status.kill_at is None:
            # A suspended task could not handle its stop signal.
            numbers = (signal.Signals[task.settings.stop_signal], signal.SIGCONT)
        for number in numbers:
            self._effects.append(
                partial(self._launcher.signal, status.name, status.generation, number, host_failover.at(task, status))
            )

    def _take(self, change: host_failover.Change) -> None:
        """What has become of hosts, and of tasks with them."""
        self.run = change.run
        for status in change.statuses:
            self._put(status)
        for note in change.notes:
            self._note(*note)

    def _start(self, status: TaskStatus) -> None:
        peer = backups.peer_of(status.name)
        if peer in self.run.addresses:
            self._launcher.release_port(peer, host_failover.launcher_host(self.run.actual.task(status.name)))
        self._launcher.start(self._launch(status))

    def _launch(self, status: TaskStatus) -> Launch:
        run = self.run
        task = run.actual.task(status.name)
        port = run.addresses.get(status.name, "").rpartition(":")[2]
        return Launch(
            status.name,
            status.generation,
            expand.argv(run.plan, task, run.addresses),
            expand.environment(run.plan, task, run.addresses, host_failover.inherited(run, task), run.secrets),
            task.working_dir,
            str(self._paths.log(run.number, status.name, status.generation)),
            task.bind_host if port else "",
            int(port) if port else None,
            task.settings.limits,
            task.place.cpus,
            host_failover.launcher_host(task),
            task.settings.logs,
            self._files(task),
        )

    def _look_whether_all_are_ready(self) -> None:
        others = tuple(each for each in state.STATES if each not in (state.RUNNING, state.SUCCEEDED))
        if self.run.all_were_ready or self.statuses.count(*others) > len(self.run.held):
            return
        if all(name in self.run.held for name in self.statuses.in_state(*others)):
            self.run = self.run.but(all_were_ready=True)
            self._note("", "ready", "all tasks are ready")

    def _decide(self, outcome: str, why: str) -> None:
        """The end of the cluster is decided; for a failure who began it, and what befell whom after that."""
        found = verdict(self.run.actual, self.statuses) if outcome == FAILED else None
        self.run = self.run.but(
            outcome=outcome,
            why=why,
            root_cause=found.culprit.name if found else "",
            followers=tuple((status.name, str(status.exit)) for status in found.after) if found else (),
        )

    def _forget(self, action: Action) -> None:
        host = host_failover.at(self.run.task(action.task), self.statuses[action.task])
        self._effects.append(partial(self._launcher.release_port, action.task, host))
        status = self.statuses.remove(action.task)
        self._generations[status.name] = status.generation
        self._touched.add(action.task)
        self._forgotten.append(action.task)
        self._note(action.task, action.verb, action.cause)

    def _forget_leaving(self) -> None:
        """After a round of FORGET: how often those tasks were started stays known, and the last one ends the change."""
        if self._generations:
            self.run = self.run.but(generations={**self.run.generations, **self._generations})
            self._generations = {}
            if not any(name in self.statuses for name in self.run.leaving):
                self.run = self.run.but(former=None)

    def _is_new(self, request: str) -> bool:
        """Whether a command was not carried out before; from now on it was. A nameless one is always new."""
        if not request:
            return True
        if request in self.run.requests:
            return False
        self.run = self.run.but(requests=(*self.run.requests, request)[-REQUESTS_KEPT:])
        return True

    def _let_go(self, names: Iterable[str]) -> None:
        held = {name: why for name, why in self.run.held.items() if name not in set(names)}
        self.run = self.run.but(held=held)

    def _renew(self, names: Iterable[str], why: str) -> None:
        for name in names:
            self._put(replace(self.statuses[name], renew=why))
            self._note(name, "asked for", why)

    def _put(self, status: TaskStatus) -> None:
        self.statuses.put(status)
        self._changed.add(status.name)
        self._touched.add(status.name)

    def _note(self, task: str, what: str, cause: str) -> None:
        self._happenings.append(self._store.happening(task, what, cause))

    def _commit(self) -> None:
        """To the disk first, then into the world."""
        changed = [self.statuses[name] for name in sorted(self._changed) if name in self.statuses]
        try:
            self._store.save(self.run, changed, self._happenings, self._forgotten)
        except StoreUnwritable as error:
            self.unwritten = str(error)
            if not self.run.outcome:
                raise
            # Actions that end a cluster may safely be repeated, so they need not wait for room on the disk.
        else:
            self.unwritten = ""
            self._changed.clear()
            self._forgotten.clear()
            if self._happenings:
                self._tell(tuple(self._happenings))
            self._happenings.clear()
        effects, self._effects = self._effects, []
        for effect in effects:
            effect()


def _as_it_came_about(ended: Exit, status: TaskStatus) -> Exit:
    """An end that was brought about: a hung task has failed however it ended then, a preempted one has not."""
    if status.stop_why and status.after_stop == Then.RETRY:
        return Exit(ended.at, error=f"{status.stop_why}: {ended}")
    if status.stop_why and status.after_stop == Then.PREEMPT:
        return replace(ended, preempted=status.stop_why)
    return ended
