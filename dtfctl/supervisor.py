"""The loop's body: what was observed goes in, `reconcile` decides, and its plan is applied. No sockets, no asyncio.

The owner (daemon.py) calls `handle` for what the launcher tells, `note_ready` and `note_waiting` for what the probes
find, and `step` after each of them and when the clock reaches what `step` returned. What is decided is on disk before
it is done, so that a supervisor that is killed anywhere is continued by the next one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace

from dtfctl import expand, state
from dtfctl.launchers.base import Event, Exited, Launch, Launcher, Listed, Started, Stray
from dtfctl.paths import ClusterPaths
from dtfctl.reconcile import FAILED, STOPPED, Action, Desired, reconcile, root_cause
from dtfctl.store import Happening, Run, Store
from dtfctl.task import Exit, TaskStatus


class Supervisor:
    """Owns `run` and `statuses`, and is the only one that changes them. One thread.

    `clock` gives monotonic seconds, `jitter` numbers in [0, 1).
    """

    def __init__(
        self,
        run: Run,
        statuses: dict[str, TaskStatus],
        store: Store,
        launcher: Launcher,
        paths: ClusterPaths,
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self.run = run
        self.statuses = statuses
        self.is_finished = False
        self._store = store
        self._launcher = launcher
        self._paths = paths
        self._clock = clock
        self._jitter = jitter
        self._changed: set[str] = set()
        self._happenings: list[Happening] = []
        self._effects: list[Callable[[], None]] = []

    def handle(self, event: Event) -> None:
        """Takes in what the launcher tells. What is said twice, or of a former generation, changes nothing."""
        if isinstance(event, Listed):
            self._compare(event)
            return
        status = self.statuses.get(event.task)
        if status is None or event.generation != status.generation or status.state not in state.WITH_PROCESS:
            return
        if isinstance(event, Started):
            if status.pid is None:
                self._put(replace(status, pid=event.pid, started_at=event.at))
                self._note(event.task, "started", f"pid {event.pid}")
                if self.run.plan.task(event.task).settings.readiness.kind == "none" and status.state == state.STARTING:
                    self.note_ready(event.task, event.generation)
        elif isinstance(event, Exited):
            self._put(status.move("exit", exit=event.exit, pid=None, waiting_for=""))
            self._note(event.task, "ended", str(event.exit))

    def note_ready(self, task: str, generation: int) -> None:
        status = self.statuses[task]
        if status.generation == generation and status.state == state.STARTING:
            now = self._clock()
            self._put(status.move("ready", ready_at=now, waiting_for=""))
            self._note(task, "ready", f"after {now - (status.started_at or now):.1f}s")

    def note_waiting(self, task: str, generation: int, waiting_for: str) -> None:
        """What the readiness of a starting task still lacks, in words."""
        status = self.statuses[task]
        if status.generation == generation and status.state == state.STARTING and status.waiting_for != waiting_for:
            self._put(replace(status, waiting_for=waiting_for))

    def stop(self, why: str, grace_period_s: float | None = None) -> None:
        """From now on the cluster is wanted down. A second call may shorten the grace period, 0 kills at once."""
        if not self.run.outcome:
            self.run = replace(self.run, outcome=STOPPED, why=why)
            self._note("", "stopping", why)
        self.run = replace(self.run, grace_period_s=grace_period_s)

    def step(self) -> float | None:
        """Reconciles and applies until nothing is left to do now; returns when to be called again at the latest."""
        while True:
            run = self.run
            desired = Desired(run.plan, run.outcome, run.why, run.grace_period_s)
            plan = reconcile(desired, self.statuses, self._clock(), self._jitter)
            if plan.outcome and not run.outcome:
                culprit = root_cause(self.statuses) if plan.outcome == FAILED else None
                self.run = replace(run, outcome=plan.outcome, why=plan.why, root_cause=culprit.name if culprit else "")
            for action in plan.actions:
                self._apply(action)
            self._look_whether_all_are_ready()
            self._commit()
            if not plan.actions or self.is_finished:
                return plan.look_again_at

    def end(self, strays: tuple[Stray, ...]) -> None:
        """The last word of the run: it is over, and these processes would not die."""
        self.run = replace(
            self.run,
            is_over=True,
            # Secrets that came with the environment are not kept longer than they serve.
            environment={},
            secrets={},
            strays=tuple((stray.pid, stray.host, stray.command) for stray in strays),
        )
        for stray in strays:
            self._note("", "left behind", f"pid {stray.pid} on {stray.host}: {stray.command}")
        self._note("", self.run.outcome, self.run.why)
        self._commit()

    def _compare(self, listed: Listed) -> None:
        """After the launcher was found again: what it never heard of is asked for again, what it lost has ended."""
        for status in list(self.statuses.values()):
            if status.state not in state.WITH_PROCESS or (status.name, status.generation) in listed.known:
                continue
            if status.pid is None and status.state == state.STARTING:
                self._launcher.start(self._launch(status))
            else:
                words = "was lost: nothing is known of its process" if status.pid else "was never started"
                self.handle(Exited(status.name, status.generation, Exit(self._clock(), error=words)))

    def _apply(self, action: Action) -> None:
        if action.verb == "finish":
            self.is_finished = True
            return
        status = self.statuses[action.task]
        now = self._clock()
        if action.verb == "start":
            status = status.move(
                "start",
                generation=status.generation + 1,
                restarts=status.restarts + (status.generation > 0),
                pid=None,
                started_at=None,
                ready_at=None,
                next_start_at=None,
            )
            launch = self._launch(status)
            self._effects.append(lambda: self._launcher.start(launch))
        elif action.verb == "terminate":
            status = status.move("stop", stop_at=now, stop_why=action.cause, waiting_for="")
            # A task that somebody has suspended could not hear its stop signal.
            self._signal(status, self._stop_signal(status), signal.SIGCONT)
        elif action.verb == "kill":
            status = replace(status, kill_at=now)
            self._signal(status, signal.SIGKILL)
        elif action.verb == "stop":
            status = status.move("stop", stop_why=action.cause, reason=action.cause, next_start_at=None)
        elif action.verb == "abandon":
            status = status.move("abandon", reason=action.cause)
        else:
            status = status.move(action.verb, reason=action.cause)
            if action.verb == "retry":
                status = replace(status, next_start_at=now + action.delay_s, restart_reason=action.cause)
            if action.failures:
                status = replace(status, failures=action.failures)
        self._put(status)
        self._note(action.task, action.verb, action.cause)

    def _stop_signal(self, status: TaskStatus) -> int:
        return signal.Signals[self.run.plan.task(status.name).settings.stop_signal]

    def _signal(self, status: TaskStatus, *numbers: int) -> None:
        for number in numbers:
            self._effects.append(
                lambda number=number: self._launcher.signal(status.name, status.generation, number)  # type: ignore[misc]
            )

    def _launch(self, status: TaskStatus) -> Launch:
        run = self.run
        task = run.plan.task(status.name)
        port = run.addresses.get(status.name, "").rpartition(":")[2]
        return Launch(
            status.name,
            status.generation,
            expand.argv(run.plan, task, run.addresses),
            expand.environment(run.plan, task, run.addresses, run.environment, run.secrets),
            task.working_dir,
            str(self._paths.log(run.number, status.name, status.generation)),
            task.bind_host if port else "",
            int(port) if port else None,
            task.settings.limits,
            task.place.cpus,
        )

    def _look_whether_all_are_ready(self) -> None:
        good = (state.RUNNING, state.SUCCEEDED)
        if not self.run.all_were_ready and all(status.state in good for status in self.statuses.values()):
            self.run = replace(self.run, all_were_ready=True)
            self._note("", "ready", "all tasks are ready")

    def _put(self, status: TaskStatus) -> None:
        self.statuses[status.name] = status
        self._changed.add(status.name)

    def _note(self, task: str, what: str, cause: str) -> None:
        self._happenings.append(self._store.happening(task, what, cause))

    def _commit(self) -> None:
        """To the disk first, then into the world."""
        self._store.save(self.run, [self.statuses[name] for name in sorted(self._changed)], self._happenings)
        self._changed.clear()
        self._happenings.clear()
        effects, self._effects = self._effects, []
        for effect in effects:
            effect()
