"""The command line's side: which cluster is meant, reaching or waking its supervisor, and waiting for what it does.

Commands go over the control socket, what is known is read from the store; so a command works while the supervisor
is alive, dead, or long done.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtfctl.control.client import ControlClient, Reply
from dtfctl.control.verbs import Purpose, Verb
from dtfctl.errors import SecretMissing, StoreError, SupervisorHasGone, SupervisorUnreachable, UnknownCluster
from dtfctl.plan.diff import scaled
from dtfctl.plan.expand import secret_key, thread_defaults
from dtfctl.plan.moves import moved
from dtfctl.storage.ownership import make_private
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.values.history import Happening
from dtfctl.values.plan import ClusterPlan, Secret, to_json
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus
from dtfctl.wording import reason_and_file

if TYPE_CHECKING:
    import subprocess

    from dtfctl.checks.questions import Where

DAEMON_START_S = 15.0
SETTLE_S = 45.0
"""How long a supervisor may take to bring in the last logs of other machines and to go."""

CLUSTER_FILE = "cluster.yaml"
CLUSTER_VARIABLE = "DTFCTL_CLUSTER"
"""Names the cluster for a command that was typed on another machine, where its arguments name other files."""

SSH_VARIABLE = "DTFCTL_SSH"
"""The ssh to call, with options, in place of the file's."""


class Cluster:
    """One cluster of this user on this machine, by its state folder."""

    def __init__(self, paths: ClusterPaths) -> None:
        self.paths = paths
        self._daemon: subprocess.Popen[bytes] | None = None
        # This process closes it by ending; a supervisor that has no run yet ends then.
        self._leash = -1
        self._watch: ControlClient | None = None

    @property
    def name(self) -> str:
        return self.paths.folder.name

    def load(self) -> tuple[Run, dict[str, TaskStatus]]:
        """The present or last run. Raises UnknownCluster when there was none, StoreError."""
        found = self.find()
        if found is None:
            raise UnknownCluster(f'the cluster "{self.name}" was never up')
        return found

    def find(self) -> tuple[Run, dict[str, TaskStatus]] | None:
        if not self.paths.store.exists():
            return None
        store = Store(self.paths.store)
        try:
            return store.load()
        finally:
            store.close()

    def history(self, run: Run, after: int = 0) -> list[Happening]:
        """What has happened in the run after the entry with this id."""
        store = Store(self.paths.store)
        try:
            return store.history(run.number, after)
        finally:
            store.close()

    def is_active(self) -> bool:
        """Whether there is a run that is not over. A command asks this often; so not all tasks are read for it."""
        if not self.paths.store.exists():
            return False
        store = Store(self.paths.store)
        try:
            return store.is_over() is False
        finally:
            store.close()

    def engine(self) -> str:
        """That of the present or last run, without reading its tasks; "" when there was none."""
        if not self.paths.store.exists():
            return ""
        store = Store(self.paths.store)
        try:
            return store.engine()
        finally:
            store.close()

    # -- the supervisor

    def has_supervisor(self) -> bool:
        """Whether its process is there; nobody is woken."""
        return not self._is_unlocked()

    def up(
        self, plan: ClusterPlan, say: Callable[[str], None], apply: bool = False, where: Where | None = None
    ) -> Reply:
        """Starts the cluster. Of one that runs already it tells what the plan would change, and with `apply` does so.

        What is to be begun or changed is prepared first: other machines are looked at, get the folder, and environments
        are made. `where` knows where the file's values stand. Raises SecretMissing, HostsUnusable.
        """
        values = read_secrets(plan, os.environ)
        make_private(self.paths.folder)
        environment = {**thread_defaults(plan, os.cpu_count() or 1), **os.environ}
        plan = with_own_ssh(plan)
        request: dict[str, Any] = {"do": Verb.UP, "plan": to_json(plan), "environment": environment, "secrets": values}
        if apply:
            request |= {"apply": True, "id": _new_id()}
        while True:
            found: dict[str, Any] = {}
            self.clean_hosts()
            running = self._running()
            if has_to_prepare(plan) and (apply or running is None):
                found = self._prepare(plan, say, running, where=where)
            reply = self._ask(Purpose.SERVE, {**request, "hosts": found})
            if reply.get("is") != "ending":
                return reply
            # The former run has its grace periods, and then it is this one's turn.
            self.wait_until(lambda run, _: run.is_over, None)
            self.wait_for_end_of_supervisor()

    def on_tasks(self, verb: Verb, tasks: Sequence[str], why: str) -> Reply:
        """`verb` is one of verbs.ON_TASKS."""
        return self._ask(Purpose.ADOPT, {"do": verb, "tasks": list(tasks), "why": why, "id": _new_id()})

    def scale(self, job: str, replicas: int, is_serious: bool, say: Callable[[str], None]) -> Reply:
        """What it would change, or did. Machines that get their first task by it are prepared. Raises HostsUnusable."""
        request: dict[str, Any] = {"do": Verb.SCALE, "job": job, "replicas": replicas}
        return self._change(request, lambda plan: scaled(plan, job, replicas), is_serious, say)

    def move(
        self, tasks: Mapping[str, str], without: Collection[str], is_serious: bool, say: Callable[[str], None]
    ) -> Reply:
        """What other hosts for these tasks would change, or did. Hosts `without` get no tasks. Raises as `scale`."""
        request: dict[str, Any] = {"do": Verb.MOVE, "tasks": dict(tasks), "without": list(without)}
        return self._change(request, lambda plan: moved(plan, tasks, without), is_serious, say)

    def _change(
        self,
        request: dict[str, Any],
        changed: Callable[[ClusterPlan], ClusterPlan],
        is_serious: bool,
        say: Callable[[str], None],
    ) -> Reply:
        request |= {"apply": is_serious, "id": _new_id()}
        running = self._running()
        if is_serious and running is not None:
            # What cannot be is for the supervisor to say.
            with contextlib.suppress(ValueError):
                plan = changed(running.plan)
                parting = {host.name for host in running.parting}
                new = {host.name for host in plan.remote_hosts} - (running.hosts.keys() - parting)
                request["hosts"] = self._prepare(plan, say, running, new) if new else {}
        return self._ask(Purpose.ADOPT, request)

    def _running(self) -> Run | None:
        found = self.find()
        return None if found is None or found[0].is_over else found[0]

    def _prepare(
        self,
        plan: ClusterPlan,
        say: Callable[[str], None],
        running: Run | None,
        only: Collection[str] | None = None,
        where: Where | None = None,
    ) -> dict[str, Any]:
        from dtfctl.launchers.preflight import nowhere, prepare

        found = prepare(plan, self.paths.ssh, say, running, only, where or nowhere)
        return {name: dict(host) for name, host in found.items()}

    def down(self, why: str, grace_period_s: float | None = None) -> Reply:
        return self._ask(Purpose.ADOPT, {"do": Verb.DOWN, "why": why, "grace_period_s": grace_period_s})

    def usages(self) -> dict[str, Any]:
        """What the tasks on other machines take there: usage.Usage's fields, and `at`, by the monotonic clock here."""
        return self.measured()[0]

    def measured(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `usages`, and by task (how many steps its sessions have run, when that was asked, monotonic)."""
        reply = self._ask(Purpose.ADOPT, {"do": Verb.USAGE})
        return reply.get("tasks", {}), reply.get("runs", {})

    def wake(self) -> None:
        """Makes sure that a run that is not over has a supervisor: starts one that adopts the run if need be."""
        with contextlib.suppress(_RunIsOver):
            self._connect(Purpose.ADOPT).close()

    def wait_for_change(self, timeout_s: float) -> bool:
        """Returns when something may have changed, or False after `timeout_s`. A supervisor that is gone is woken
        again, unless its run is over."""
        try:
            if self._watch is None:
                self._watch = self._connect(Purpose.ADOPT)
                self._watch.send({"do": Verb.WATCH})
            return self._watch.wait_for_change(timeout_s)
        except _RunIsOver:
            return True
        except SupervisorHasGone:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            return True

    def wait_until(self, condition: Callable[[Run, dict[str, TaskStatus]], bool], deadline: float | None) -> bool:
        """Whether the condition came true before the monotonic `deadline`."""
        while True:
            if condition(*self.load()):
                return True
            left_s = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
            if left_s <= 0:
                return False
            self.wait_for_change(left_s)

    def settle(self, timeout_s: float = SETTLE_S) -> bool:
        """Wait until a supervisor without a run has one, or is gone. Returns whether that came in time.

        A former supervisor may be ending, or an interrupted command may have started one.
        """
        deadline = time.monotonic() + timeout_s
        while self.has_supervisor() and not self.is_active():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def supervisor_pid(self) -> int:
        """0 when nobody answers."""
        client = ControlClient.connect(self.paths.control)
        if client is None:
            return 0
        try:
            return client.peer
        finally:
            client.close()

    def wait_for_end_of_supervisor(self, timeout_s: float = SETTLE_S) -> bool:
        """After the run is over: until the supervisor's process has ended as well."""
        deadline = time.monotonic() + timeout_s
        while not self._is_unlocked():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        if self._daemon is not None:
            self._daemon.wait(5)
        return True

    def clean_hosts(self) -> tuple[tuple[int, str, str], ...]:
        """Ends what an ended run left on hosts that could not be reached then; returns what is left still."""
        found = self.find()
        if found is not None and not found[0].is_over:
            return ()
        if not self.has_supervisor() and self.paths.runs.exists():
            self._clean_reached()
        if found is None or not found[0].strays:
            return ()
        from dtfctl.launchers.leftovers import clean

        run = found[0]
        left = clean(run, self.paths.ssh)
        if left != run.strays:
            store = Store(self.paths.store)
            try:
                store.save(replace(run, strays=left), ())
            finally:
                store.close()
        return left

    def _clean_reached(self) -> None:
        """What supervisors that were killed have left on other hosts."""
        from dtfctl.launchers import reached

        run_dirs = [run_dir for run_dir in self.paths.runs.iterdir() if reached.is_any(run_dir)]
        if run_dirs:
            import asyncio

            from dtfctl.launchers.leftovers import clean_reached

            asyncio.run(clean_reached(run_dirs, self.paths.ssh))

    def purge(self) -> None:
        """Forgets the cluster. What a damaged store cannot tell is found through the keepers."""
        from dtfctl.launchers.local import end_keeper

        if self.paths.runs.exists():
            for run_dir in self.paths.runs.iterdir():
                end_keeper(run_dir)
        shutil.rmtree(self.paths.folder, ignore_errors=True)

    def _ask(self, purpose: Purpose, request: dict[str, Any]) -> Reply:
        """Again, should the supervisor be killed in the middle: every request may be repeated."""
        while True:
            try:
                client = self._connect(purpose)
            except _RunIsOver:
                return {"error": "it is over"}
            try:
                return client.ask(request)
            except SupervisorHasGone:
                continue
            finally:
                client.close()

    def _connect(self, purpose: Purpose) -> ControlClient:
        """Raises _RunIsOver when there is nothing to `adopt`."""
        deadline = time.monotonic() + DAEMON_START_S
        pause_s = 0.005
        while (client := ControlClient.connect(self.paths.control)) is None:
            if self._is_unlocked():
                if purpose == Purpose.ADOPT and not self.is_active():
                    raise _RunIsOver
                # A supervisor that was killed, or was not needed, is no reason against another one.
                if self._daemon is not None and (self._daemon.poll() or 0) > 0:
                    raise SupervisorUnreachable(f"the supervisor does not start:\n{self._end_of_log()}")
                if self._daemon is None or self._daemon.poll() is not None:
                    # Not loaded where a supervisor answers.
                    from dtfctl.launchers.local import start_daemon

                    if self._leash >= 0:
                        os.close(self._leash)
                    reader, self._leash = os.pipe()
                    try:
                        self._daemon = start_daemon(self.paths.folder, purpose, reader)
                    finally:
                        os.close(reader)
            if time.monotonic() > deadline:
                raise SupervisorUnreachable(f"the supervisor does not answer:\n{self._end_of_log()}")
            time.sleep(pause_s)
            pause_s = min(0.05, pause_s * 1.5)
        if self._daemon is not None and self._daemon.pid != client.peer and self._daemon.poll() is None:
            # Somebody else's came first; this one would find that out some time after the command has ended.
            self._daemon.kill()
            self._daemon.wait()
        return client

    def _is_unlocked(self) -> bool:
        try:
            lock = os.open(self.paths.lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        finally:
            os.close(lock)

    def _end_of_log(self) -> str:
        try:
            lines = self.paths.daemon_log.read_text(errors="replace").splitlines()[-5:]
        except FileNotFoundError:
            lines = []
        return "\n".join(f"    {line}" for line in lines or [self._why_no_log()])

    def why_unwritten(self) -> str:
        """Why a supervisor cannot put on record what happens, and what to do; "" where it can."""
        try:
            room = os.statvfs(self.paths.folder)
        except OSError as error:
            return reason_and_file(error)
        if room.f_bavail and (room.f_favail or not room.f_files):
            return ""
        folder = shlex.quote(str(self.paths.folder))
        return f"the disk of {self.paths.folder} is full: df -h {folder}; make room"

    def _why_no_log(self) -> str:
        """A supervisor that could write nothing: what is known even so."""
        full = self.why_unwritten()
        if full:
            return f"{full}, or use another --state-dir"
        status = self._daemon.poll() if self._daemon is not None else None
        ended = "" if status is None else f"it has ended with status {status}, and "
        return f"{ended}its log is empty: {self.paths.daemon_log}"


def has_to_prepare(plan: ClusterPlan) -> bool:
    """Whether anything is to be looked at, brought or made before its tasks can start."""
    return bool(plan.remote_hosts) or any(task.settings.requirements.files for task in plan.tasks())


def with_own_ssh(plan: ClusterPlan) -> ClusterPlan:
    """The plan with the ssh that the user's environment names, if it does."""
    command = os.environ.get(SSH_VARIABLE)
    return replace(plan, ssh=replace(plan.ssh, command=command)) if command else plan


def read_secrets(plan: ClusterPlan, environment: Mapping[str, str]) -> dict[str, str]:
    """The values of all secrets, by their sources. Raises SecretMissing."""
    settings = (each for job in plan.jobs for each in (job.settings, *job.overrides.values()))
    return secret_values((secret for each in settings for secret in each.secrets), environment)


def secret_values(secrets: Iterable[Secret], environment: Mapping[str, str]) -> dict[str, str]:
    """As `read_secrets`, of some."""
    values: dict[str, str] = {}
    for secret in secrets:
        key = secret_key(secret.file, secret.variable)
        if secret.file:
            try:
                values[key] = Path(secret.file).read_text().removesuffix("\n").removesuffix("\r")
            except (OSError, UnicodeDecodeError) as error:
                words = error.strerror if isinstance(error, OSError) else "not a text file"
                raise SecretMissing(f"the secret {secret.name}: {secret.file}: {words}") from None
            if "\0" in values[key]:
                raise SecretMissing(f"the secret {secret.name}: {secret.file}: it contains a zero byte")
        elif secret.variable in environment:
            values[key] = environment[secret.variable]
        else:
            raise SecretMissing(
                f"the secret {secret.name}: the variable {secret.variable} is not set; "
                f"export it, or name a file: secrets: {{{secret.name}: {{file: ...}}}}"
            )
    return values


def _new_id() -> str:
    """A request that has one may be repeated, and is carried out once."""
    return os.urandom(8).hex()


class _RunIsOver(Exception):
    """Nobody needs a supervisor any more."""


def clusters(root: Path) -> list[Cluster]:
    """All clusters that have state under `root`."""
    if not root.is_dir():
        return []
    return [Cluster(ClusterPaths(folder)) for folder in sorted(root.iterdir()) if _has_state(folder)]


def _has_state(folder: Path) -> bool:
    return (folder / "store.sqlite").exists() or ClusterPaths(folder).job.exists()


NAMED_MAX = 5
"""So many clusters are named to choose from, running ones first."""


def choose(
    root: Path, given: str | None, say: Callable[[str], None] = lambda words: None, is_sure: bool = False
) -> Cluster:
    """The cluster that a command means: by name, by file, this folder's, or the newest that runs, else the newest.

    Of several it says which one is meant; where one must be `is_sure`, before something is removed, it is to be named.
    Raises UnknownCluster.
    """
    known = clusters(root)
    if given is not None:
        for cluster in known:
            if cluster.name == given:
                return cluster
        if os.path.isfile(given) or given.endswith((".yaml", ".yml")):
            return _of_file(known, Path(given))
        raise UnknownCluster(f'no cluster is called "{given}"{_there_are(known)}')
    if os.path.isfile(CLUSTER_FILE):
        return _of_file(known, Path(CLUSTER_FILE))
    return _newest(known, say, is_sure)


def _newest(known: list[Cluster], say: Callable[[str], None], is_sure: bool) -> Cluster:
    found = _by_age(known)
    if not found:
        raise UnknownCluster(f"no cluster was ever up, and this folder has no {CLUSTER_FILE}: dtfctl up FILE")
    running = [cluster for cluster, is_over in found if not is_over]
    candidates = running or [cluster for cluster, _ in found]
    if len(candidates) > 1 or (is_sure and len(found) > 1 and not running):
        if is_sure:
            raise UnknownCluster(f"several clusters match; name one{_there_are(known)}")
        others = ", ".join(cluster.name for cluster in candidates[1 : NAMED_MAX + 1])
        kind = "of those that run" if running else "of those that have ended"
        say(f"{candidates[0].name} is chosen, the newest {kind} (others: {others})")
    return candidates[0]


def _by_age(known: list[Cluster]) -> list[tuple[Cluster, bool]]:
    """(cluster, whether it has ended) of those that were ever up: running ones first, then the newest first."""
    rows = []
    for cluster in known:
        try:
            found = cluster.find()
        except StoreError:
            rows.append((True, 0.0, cluster))
            continue
        if found is not None:
            rows.append((found[0].is_over, -found[0].started_at, cluster))
    return [(cluster, is_over) for is_over, _, cluster in sorted(rows, key=lambda row: row[:2])]


def _of_file(known: list[Cluster], file: Path) -> Cluster:
    path = os.path.abspath(file)
    fitting = _with_file(known, path)
    if not fitting:
        # An `up` that was interrupted may still be on its way.
        for cluster in known:
            cluster.settle(DAEMON_START_S)
        fitting = _with_file(known, path)
    fitting = [cluster for cluster in fitting if cluster.is_active()] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownCluster(f"{file} has several clusters; name one{_there_are(fitting)}")
    raise UnknownCluster(f"{file} was never up{_there_are(known)}")


def _with_file(known: list[Cluster], path: str) -> list[Cluster]:
    return [cluster for cluster in known if path in _files_of(cluster)]


def _files_of(cluster: Cluster) -> list[str]:
    """The cluster file of its last run, and that of its last job of an engine."""
    found = cluster.find()
    files = [found[0].plan.file] if found else []
    if cluster.paths.job.exists():
        from dtfctl.launchers import slurm_job

        noted = slurm_job.noted(cluster.paths.folder)
        files += [noted.file] if noted else []
    return files


def _there_are(known: list[Cluster]) -> str:
    found = _by_age(known)
    names = sorted(cluster.name for cluster, is_over in found if not is_over)
    names += [f"{cluster.name} (ended)" for cluster, is_over in found if is_over]
    if not names:
        return " (no clusters are known)"
    rest = f"; and {len(names) - NAMED_MAX} more: dtfctl ls -a" if len(names) > NAMED_MAX else ""
    return f" (clusters: {', '.join(names[:NAMED_MAX])}{rest})"
