"""The keeper's loop: requests of the daemon, ends of tasks, held ports, and processes that must be started again."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import resource
import selectors
import signal
import sys
import time

from dtfctl.launchers import log_recorder
from dtfctl.launchers.keeper import LEAVING, LOCK, SOCKET, SWEEP_S, TOKEN, TOKEN_VARIABLE, durable
from dtfctl.launchers.keeper.cgroups import (
    LIBRARY,
    is_populated,
    kill_cgroup,
    make_cgroup,
    members,
    remove_cgroup,
)
from dtfctl.launchers.keeper.daemon_line import DaemonLine
from dtfctl.launchers.keeper.lease import WORDS as FENCED
from dtfctl.launchers.keeper.lease import Lease
from dtfctl.launchers.keeper.ports import Ports
from dtfctl.launchers.keeper.processes import (
    PIDFD_SIGNAL_PROCESS_GROUP,
    boot_id,
    command_of,
    exit_of,
    exit_of_other,
    kill_group,
    open_pidfd,
    processes_with,
    signal_process,
    wake_at_child_signals,
)
from dtfctl.launchers.keeper.program import OWN_LIMITS
from dtfctl.launchers.keeper.protocol import REQUESTS
from dtfctl.launchers.keeper.recorder import Recorder
from dtfctl.launchers.keeper.records import (
    RECORDS,
    Entry,
    place_files,
    read_record,
    record_name,
    remove_files,
    wait_for_record,
    why_no_record,
    write_record,
)
from dtfctl.launchers.keeper.respawn import Respawn, start_again
from dtfctl.launchers.keeper.shims import Shims
from dtfctl.wire.messages import BadMessage, Complaints, message
from dtfctl.wording import reason_and_file, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Mapping, Sequence
    from typing import Any

FENCE_AGAIN_S = 0.1
HELLO_S = 20.0
"""How long a keeper without tasks waits for its first daemon, which may have been killed as it started the keeper."""

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    os.chdir(sys.argv[1])
    os.umask(0o077)
    with open(TOKEN) as file:
        token = file.read().strip()
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another keeper is running here")
    # A descriptor for each held port, and one for each task of a keeper that was killed.
    resource.setrlimit(resource.RLIMIT_NOFILE, (OWN_LIMITS[1], OWN_LIMITS[1]))
    keeper = Keeper(token)
    # The shim is a fork of this process, and each task begins as one: what is frozen now stays shared with them.
    gc.collect()
    gc.freeze()
    gc.disable()
    # Whoever started the keeper waits for this word; what comes after goes to the log with the errors.
    print("ready", flush=True)
    os.dup2(2, 1)
    keeper.serve()


class Keeper:
    """One thread, one selector. All state here can be rebuilt from the records, except the held ports."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.boot = boot_id()
        self.entries: dict[tuple[str, int], Entry] = {}
        self.ports = Ports()
        self.lease = Lease(self.boot)
        self.fence_at: float | None = None
        self.unheard_until: float | None = time.monotonic() + HELLO_S
        self.orphan_exits: dict[int, dict[str, Any]] = {}
        self.respawn = Respawn()
        self.daemon_pid = 0
        self.recorder = Recorder()
        self.running = True
        self.complaints = Complaints()
        LIBRARY.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.selector = selectors.DefaultSelector()
        self.wake, self.waker = wake_at_child_signals()
        for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)
        self.daemon = DaemonLine(self.selector, self.respawn, self.complaints, self.take)
        self.send = self.daemon.send
        self.selector.register(self.wake, selectors.EVENT_READ, self.on_child)
        os.makedirs(RECORDS, exist_ok=True)
        # Hosts may share a tree of cgroups, as containers do; the folder's name is that of the run on this one.
        self.cgroup = make_cgroup(f"dtfctl-{token}-{os.path.basename(os.getcwd())}")
        self.shims = Shims(self.boot, self.cgroup, self.selector, self.on_end, self.on_shim_lost)
        self.adopt()

    def serve(self) -> None:
        while self.running:
            times = (self.respawn.at, self.recorder.at, self.fence_due(), self.leave_due())
            due = [at for at in times if at is not None]
            begun = time.monotonic()
            wait = max(0.0, min(due) - begun) if due else None
            ready = self.selector.select(wait)
            if wait is not None:
                self.lease.forgive(time.monotonic() - begun - wait)
            for key, _ in ready:
                key.data()
            if (at := self.fence_due()) is not None and time.monotonic() >= at:
                self.fence()
            if (at := self.leave_due()) is not None and time.monotonic() >= at:
                self.go()
            if self.respawn.at is not None and time.monotonic() >= self.respawn.at:
                self.respawn_daemon()
            if self.recorder.at is not None and time.monotonic() >= self.recorder.at:
                self.recorder.start()
        self.recorder.end()
        shims = {(entry.shim, entry.shim_start_time) for entry in self.entries.values()}
        self.shims.end(shims, self.reap)
        remove_cgroup(self.cgroup)

    # -- the lease

    def do_lease(self, until: float | None, host: str) -> None:
        self.lease.renew(until, host)
        self.fence_at = None

    def fence_due(self) -> float | None:
        """When the running tasks are to be killed, for the supervisor may by then replace them elsewhere."""
        if self.lease.until is None or all(entry.exit for entry in self.entries.values()):
            return None
        return max(self.lease.until, self.fence_at or 0.0)

    def fence(self) -> None:
        """Kills first, and writes afterwards: the disk may be behind the same network as the supervisor."""
        running = [entry for entry in self.entries.values() if not entry.exit]
        for entry in running:
            signal_process(entry.pid, entry.start_time, signal.SIGKILL, PIDFD_SIGNAL_PROCESS_GROUP)
        kill_cgroup(self.cgroup)
        for pid, start_time in self.strays(f"DTFCTL_HOST={self.lease.host}"):
            signal_process(pid, start_time, signal.SIGKILL)
        for entry in running:
            entry.fenced = FENCED
        self.fence_at = time.monotonic() + FENCE_AGAIN_S

    def leave_due(self) -> float | None:
        """When to go, if nothing is heard: the tasks have ended, and perhaps no supervisor will ever come."""
        if self.unheard_until is not None and not self.entries and not self.daemon.is_connected:
            return self.unheard_until
        if self.lease.leave_at is None or any(not entry.exit for entry in self.entries.values()):
            return None
        return self.lease.leave_at

    def go(self) -> None:
        """A supervisor that comes even so starts another keeper, which finds the ends of the tasks on record."""
        reason = "for too long (fence_after)" if self.unheard_until is None else f"within {HELLO_S:g} s of its start"
        self.complaints.tell(f"the keeper heard of no supervisor {reason} and ends")
        with contextlib.suppress(OSError), open(LEAVING, "w"):
            pass
        self.running = False

    # -- what is found on disk

    def adopt(self) -> None:
        """Takes over the tasks of a keeper that was killed."""
        for name in sorted(os.listdir(RECORDS)):
            if not name.endswith(".start"):
                continue
            record = read_record(name)
            if record is None:
                self.forget_damaged(name)
                continue
            entry = Entry(**record)
            self.entries[entry.task, entry.generation] = entry
            entry.exit = read_record(record_name(entry, "exit")) or {}
            if entry.exit:
                self.ports.hold_again(entry)
            elif entry.boot != self.boot:
                words = "lost: the machine was restarted"
                self.ended(entry, {"error": words, "preempted": words, "at": time.monotonic()})
            else:
                self.watch(entry)

    def forget_damaged(self, name: str) -> None:
        """A record that cannot be read would let a second process of the task be started beside the first."""
        task = ":".join(name.rsplit(".", 2)[0].rsplit("-", 1))
        self.complaints.tell(f"{name} is damaged: the process of {task} is killed")
        for pid, start_time in self.strays(f"DTFCTL_TASK={task}"):
            signal_process(pid, start_time, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.rename(f"{RECORDS}/{name}", f"{RECORDS}/{name}.damaged")

    def watch(self, entry: Entry) -> None:
        """Follows the task itself, else takes the end that is on record."""
        pidfd = open_pidfd(entry.pid, entry.start_time)
        if pidfd < 0:
            self.settle(entry)
            return
        entry.watch = pidfd
        self.selector.register(pidfd, selectors.EVENT_READ, lambda: self.on_watch(entry))

    def on_watch(self, entry: Entry) -> None:
        pidfd, entry.watch = entry.watch, -1
        self.selector.unregister(pidfd)
        try:
            self.settle(entry, pidfd)
        finally:
            os.close(pidfd)

    def settle(self, entry: Entry, pidfd: int = -1) -> None:
        """The task is gone: the record that its shim writes, what was reaped here, or the task's pidfd says how."""
        exit_record = wait_for_record(entry)
        if exit_record is None:
            self.reap()
            exit_record = self.orphan_exits.pop(entry.pid, None)
        if exit_record is None and pidfd >= 0:
            exit_record = exit_of_other(entry.pid, entry.start_time, pidfd)
        if exit_record is None:
            # What nobody saw is held against nobody.
            words = "status unknown: its shim was killed, and the record of its end is lost"
            if why := why_no_record():
                words = f"status unknown: its end could not be recorded: {why}"
            exit_record = {"error": words, "preempted": words, "at": time.monotonic()}
        self.ended(entry, exit_record)

    def ended(self, entry: Entry, exit_record: dict[str, Any], on_record: bool = False) -> None:
        if entry.fenced and exit_record.get("signal") == signal.SIGKILL:
            exit_record, on_record = {**exit_record, "error": entry.fenced, "preempted": entry.fenced}, False
        if not on_record:
            try:
                write_record(record_name(entry, "exit"), exit_record)
            except OSError as error:
                # It is remembered here, and told; only a keeper to come will not find it.
                self.complaints.tell(reason_and_file(error))
        entry.exit = exit_record
        self.ports.hold_again(entry)
        self.send(entry.exited_message())

    # -- children

    def on_child(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.wake.recv(4096):
                pass
        self.reap()

    def reap(self) -> None:
        """Takes in every dead child: shims, tasks whose shim was killed, and what tasks left behind."""
        orphans = {entry.pid for entry in self.entries.values() if not entry.exit}
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            if info.si_pid in orphans:
                # Its group goes while the pid cannot yet be anybody else's.
                kill_group(info.si_pid)
                self.orphan_exits[info.si_pid] = exit_of(info)
            if info.si_pid == self.daemon_pid:
                self.daemon_pid = 0
            if info.si_pid == self.recorder.pid:
                self.recorder.has_ended()
            os.waitpid(info.si_pid, 0)

    # -- the daemon's side

    def take(self, line: bytes) -> None:
        """A line that is no request changes nothing, and is answered."""
        try:
            request = message(line, "do", REQUESTS)
        except BadMessage as error:
            self.complaints.tell(f"a request was refused: {error}")
            self.send({"is": "misunderstood", "error": str(error)})
            return
        number = request.get("id")
        try:
            getattr(self, "do_" + request.pop("do"))(**request)
        except OSError as error:
            self.complaints.tell(f"a request failed: {reason_and_file(error)}")
            if number is not None:
                self.send({"is": "refused", "id": number, "error": reason_and_file(error)})

    def respawn_daemon(self) -> None:
        # A daemon that connects ends the waiting for the start after this one.
        self.respawn.plan(time.monotonic())
        self.reap()
        if not self.daemon_pid:
            self.daemon_pid = start_again(self.respawn.command)

    def do_hello(self, respawn: dict[str, Any]) -> None:
        self.respawn.command = respawn
        self.unheard_until = None
        listing = [[entry.task, entry.generation] for entry in self.entries.values()]
        self.send({"is": "listed", "known": listing})
        for entry in self.entries.values():
            self.send(entry.started_message())
            if entry.exit:
                self.send(entry.exited_message())

    def do_hold(
        self, id: int, task: str, address: str, port: int, fixed: bool, within: Sequence[int] | None = None
    ) -> None:
        try:
            self.send({"is": "held", "id": id, "port": self.ports.hold(task, address, port, fixed, within)})
        except OSError as error:
            self.send({"is": "refused", "id": id, "error": reason_of(error)})

    def do_release(self, task: str) -> None:
        """The task does not come back here."""
        self.ports.release(task)

    def do_start(
        self,
        task: str,
        generation: int,
        argv: list[str],
        environment: Mapping[str, str],
        working_dir: str,
        log: str,
        address: list[Any] | None,
        limits: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        logs: Sequence[int] | None = None,
    ) -> None:
        if (task, generation) in self.entries:
            return
        if self.lease.is_over(time.monotonic()):
            # The request was on its way for too long.
            fenced = {"error": FENCED, "preempted": FENCED}
            self.send({"is": "exited", "task": task, "generation": generation, "at": time.monotonic(), **fenced})
            return
        if logs:
            # A full disk is the task's trouble, not the keeper's; the recorder then takes its own measure.
            with contextlib.suppress(OSError):
                log_recorder.begin(log, *logs)
        self.ports.release(task)
        try:
            environment = {**environment, **place_files(task, files or {})}
            environment |= durable.place(task, environment, self.token)
        except OSError as error:
            words = f"could not be started: {reason_and_file(error)}"
            self.send({"is": "exited", "task": task, "generation": generation, "at": time.monotonic(), "error": words})
            return
        started = self.shims.start_task(
            {
                "task": task,
                "generation": generation,
                "argv": argv,
                "environment": environment,
                "working_dir": working_dir,
                "log": log,
                "address": address,
                "limits": limits or {},
            }
        )
        if "error" in started:
            self.send({"is": "exited", "task": task, "generation": generation, "at": time.monotonic(), **started})
            return
        entry = Entry(**started)
        self.entries[task, generation] = entry
        self.send(entry.started_message())
        self.forget(task, generation - 2)
        if entry.shim != self.shims.pid:
            self.watch(entry)
        self.shims.hear()

    def forget(self, task: str, generation: int) -> None:
        """However often a task is restarted, what is known of it does not grow."""
        entry = self.entries.get((task, generation))
        if entry is None or not entry.exit:
            return
        del self.entries[task, generation]
        for kind in ("start", "exit"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{RECORDS}/{record_name(entry, kind)}")

    def on_end(self, news: dict[str, Any]) -> None:
        entry = self.entries.get((news["task"], news["generation"]))
        if entry is not None and not entry.exit:
            self.ended(entry, read_record(record_name(entry, "exit")) or news["exit"], on_record=True)

    def on_shim_lost(self, lost: int) -> None:
        """Its tasks are this keeper's children now."""
        self.reap()
        for entry in list(self.entries.values()):
            if entry.shim == lost and not entry.exit:
                self.watch(entry)

    def do_signal(self, task: str, generation: int, number: int) -> None:
        entry = self.entries.get((task, generation))
        if entry is not None and not entry.exit:
            signal_process(entry.pid, entry.start_time, number, PIDFD_SIGNAL_PROCESS_GROUP)

    def do_sweep(self, id: int) -> None:
        """Bounded: what is still there after SWEEP_S is named instead."""
        deadline = time.monotonic() + SWEEP_S
        pause_s = 0.005
        kill_cgroup(self.cgroup)
        # One that is on its way out has no environment any more, but it may still have its port.
        while (left := self.strays()) or is_populated(self.cgroup):
            for pid, start_time in left:
                signal_process(pid, start_time, signal.SIGKILL)
            if time.monotonic() > deadline:
                break
            time.sleep(pause_s)
            pause_s = min(0.1, pause_s * 2)
            self.reap()
        named = [{"pid": pid, "command": command_of(pid)} for pid, _ in left]
        self.send({"is": "swept", "id": id, "left": named})

    def strays(self, variable: str = "") -> list[tuple[int, int]]:
        """(pid, start time) of what carries the run's token or fell to the keeper, zombies apart; with a `variable`
        only what has that in its environment too."""
        # A shim whose tasks have all ended is about to go by itself.
        shims = {entry.shim for entry in self.entries.values() if entry.boot == self.boot}
        shims = {pid for pid in shims if not command_of(pid) or command_of(pid) == command_of(os.getpid())}
        mine = {os.getpid(), self.daemon_pid, self.recorder.pid, self.shims.pid} | shims
        grouped = set() if variable else members(self.cgroup)
        markers = {f"{TOKEN_VARIABLE}={self.token}".encode(), *([variable.encode()] if variable else [])}
        return [
            (pid, start_time)
            for pid, parent, start_time, process_state, is_marked in processes_with(markers)
            if pid not in mine
            and process_state != "Z"
            and (is_marked or pid in grouped or (parent == os.getpid() and not variable))
        ]

    def do_bye(self) -> None:
        """The last request. A daemon that was started here and came too late to be needed goes too."""
        peer = self.daemon.peer
        self.reap()
        if self.daemon_pid not in (0, peer):
            os.kill(self.daemon_pid, signal.SIGKILL)
            os.waitpid(self.daemon_pid, 0)
        remove_files()
        durable.remove(self.token)
        self.respawn.end()
        self.running = False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
