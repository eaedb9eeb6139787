"""The keeper's loop: requests of the daemon, ends of tasks, held ports, and whoever has to be started again."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time

from dtfctl.launchers import log_recorder
from dtfctl.launchers.keeper import LINE_BYTES_MAX, LOCK, SOCKET, SWEEP_S, TOKEN, TOKEN_VARIABLE
from dtfctl.launchers.keeper.cgroups import (
    LIBRARY,
    is_populated,
    kill_cgroup,
    make_cgroup,
    members,
    remove_cgroup,
)
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
    peer_of,
    processes_with,
    signal_process,
    wake_at_child_signals,
)
from dtfctl.launchers.keeper.program import OWN_LIMITS, default_signals, dying, leave
from dtfctl.launchers.keeper.protocol import REQUESTS, SHIM_NEWS
from dtfctl.launchers.keeper.recorder import Recorder
from dtfctl.launchers.keeper.records import (
    RECORDS,
    SHIM_END_S,
    Entry,
    file_name,
    place_files,
    read_record,
    record_name,
    remove_files,
    wait_for_record,
    why_no_record,
    write_record,
)
from dtfctl.launchers.keeper.respawn import Respawn
from dtfctl.launchers.keeper.shim import Shim, send_line
from dtfctl.wire.messages import BadMessage, Complaints, checked, message
from dtfctl.wording import reason_and_file, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Mapping, Sequence
    from typing import Any

SEND_S = 2.0
FENCE_AGAIN_S = 0.1
ACCEPT_PAUSE_S = 0.05
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
        self.orphan_exits: dict[int, dict[str, Any]] = {}
        self.respawn = Respawn()
        self.daemon_pid = 0
        self.recorder = Recorder()
        self.shim_pid = 0
        self.shim: socket.socket | None = None
        self.shim_news = b""
        self.running = True
        self.connection: socket.socket | None = None
        self.received = b""
        self.complaints = Complaints()
        LIBRARY.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.selector = selectors.DefaultSelector()
        self.wake, self.waker = wake_at_child_signals()
        for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(SOCKET)
        self.listener.listen(4)
        self.selector.register(self.wake, selectors.EVENT_READ, self.on_child)
        self.selector.register(self.listener, selectors.EVENT_READ, self.on_connect)
        os.makedirs(RECORDS, exist_ok=True)
        # Hosts may share a tree of cgroups, as containers do; the folder's name is that of the run on this one.
        self.cgroup = make_cgroup(f"dtfctl-{token}-{os.path.basename(os.getcwd())}")
        self.adopt()

    def serve(self) -> None:
        while self.running:
            due = [at for at in (self.respawn.at, self.recorder.at, self.fence_due()) if at is not None]
            begun = time.monotonic()
            wait = max(0.0, min(due) - begun) if due else None
            ready = self.selector.select(wait)
            if wait is not None:
                self.lease.forgive(time.monotonic() - begun - wait)
            for key, _ in ready:
                key.data()
            if (at := self.fence_due()) is not None and time.monotonic() >= at:
                self.fence()
            if self.respawn.at is not None and time.monotonic() >= self.respawn.at:
                self.respawn_daemon()
            if self.recorder.at is not None and time.monotonic() >= self.recorder.at:
                self.recorder.start()
        self.recorder.end()
        self.end_shims()
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

    def on_connect(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:
            # It has gone already, or there is no descriptor for it now: it is asked for again.
            time.sleep(ACCEPT_PAUSE_S)
            return
        if peer_of(connection)[1] not in (0, os.geteuid()):
            connection.close()
            return
        self.drop_connection()
        connection.settimeout(SEND_S)
        self.connection = connection
        self.received = b""
        self.respawn.connected(time.monotonic())
        self.selector.register(connection, selectors.EVENT_READ, self.on_readable)

    def drop_connection(self) -> None:
        if self.connection is not None:
            self.selector.unregister(self.connection)
            self.connection.close()
            self.connection = None

    def on_readable(self) -> None:
        if self.connection is None:
            return
        try:
            data = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if len(self.received) > LINE_BYTES_MAX:
            self.complaints.tell(f"a request was refused: it is longer than {LINE_BYTES_MAX} bytes")
            data = b""
        if not data:
            self.drop_connection()
            self.respawn.lost(time.monotonic())
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            self.take(line)

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
        if self.daemon_pid:
            return
        command = self.respawn.command
        pid = os.fork()
        if pid == 0:
            with dying():
                os.setsid()
                leave()
                log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                null = os.open(os.devnull, os.O_RDONLY)
                for target, source in ((0, null), (1, log), (2, log)):
                    os.dup2(source, target)
                default_signals()
                os.execve(command["argv"][0], command["argv"], command["environment"])
        self.daemon_pid = pid

    def send(self, message: Mapping[str, Any]) -> None:
        if self.connection is None:
            return
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # A daemon that takes nothing in is as good as dead; all that it misses is on record.
            self.drop_connection()
            self.respawn.lost(time.monotonic())

    def do_hello(self, respawn: dict[str, Any]) -> None:
        self.respawn.command = respawn
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
        except OSError as error:
            words = f"could not be started: {reason_and_file(error)}"
            self.send({"is": "exited", "task": task, "generation": generation, "at": time.monotonic(), "error": words})
            return
        started = self.start_by_shim(
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
        if entry.shim != self.shim_pid:
            self.watch(entry)
        # With the news of its start may have come that of its end.
        self.hear(b"")

    def forget(self, task: str, generation: int) -> None:
        """However often a task is restarted, what is known of it does not grow."""
        entry = self.entries.get((task, generation))
        if entry is None or not entry.exit:
            return
        del self.entries[task, generation]
        for kind in ("start", "exit"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{RECORDS}/{record_name(entry, kind)}")

    # -- the shim

    def start_by_shim(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the start record, or {"error": words}."""
        shim = self.shim or self.start_shim()
        with contextlib.suppress(OSError):
            send_line(shim, request)
            while True:
                # Between the lines about ends stands the one about the start.
                *lines, self.shim_news = self.shim_news.split(b"\n")
                for number, line in enumerate(lines):
                    news: dict[str, Any] = checked(line, SHIM_NEWS)
                    if "exit" not in news:
                        self.shim_news = b"\n".join([*lines[number + 1 :], self.shim_news])
                        return news
                    self.on_end(news)
                data = shim.recv(1 << 16)
                if not data:
                    break
                self.shim_news += data
        # Perhaps a shim that was killed in the middle of this very start had got as far as the record.
        self.shim_lost()
        record = read_record(f"{file_name(request['task'], request['generation'])}.start")
        words = "status unknown: its shim was killed while it was started"
        return record or {"error": words, "preempted": words}

    def start_shim(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            with dying():
                os.setsid()
                leave(theirs.fileno())
                Shim(theirs, self.boot, self.cgroup).serve()
        theirs.close()
        self.shim, self.shim_pid, self.shim_news = ours, pid, b""
        self.selector.register(ours, selectors.EVENT_READ, self.on_shim)
        return ours

    def on_shim(self) -> None:
        if self.shim is None:
            return
        try:
            data = self.shim.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.shim_lost()
            return
        self.hear(data)

    def hear(self, data: bytes) -> None:
        *lines, self.shim_news = (self.shim_news + data).split(b"\n")
        for line in lines:
            self.on_end(checked(line, SHIM_NEWS))

    def on_end(self, news: dict[str, Any]) -> None:
        entry = self.entries.get((news["task"], news["generation"]))
        if entry is not None and not entry.exit:
            self.ended(entry, read_record(record_name(entry, "exit")) or news["exit"], on_record=True)

    def shim_lost(self) -> None:
        """Its tasks are this keeper's children now. The next start makes another shim."""
        assert self.shim is not None
        self.selector.unregister(self.shim)
        self.shim.close()
        lost, self.shim, self.shim_pid = self.shim_pid, None, 0
        self.reap()
        for entry in list(self.entries.values()):
            if entry.shim == lost and not entry.exit:
                self.watch(entry)

    def end_shims(self) -> None:
        """A shim goes when its keeper has gone and its last task."""
        if self.shim is not None:
            self.shim.close()
        shims = {(entry.shim, entry.shim_start_time) for entry in self.entries.values()}
        deadline = time.monotonic() + SHIM_END_S
        for pid, start_time in shims:
            while time.monotonic() < deadline:
                self.reap()
                pidfd = open_pidfd(pid, start_time)
                if pidfd < 0:
                    break
                os.close(pidfd)
                time.sleep(0.002)

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
        mine = {os.getpid(), self.daemon_pid, self.recorder.pid, self.shim_pid} | shims
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
        assert self.connection is not None
        peer = peer_of(self.connection)[0]
        self.reap()
        if self.daemon_pid not in (0, peer):
            os.kill(self.daemon_pid, signal.SIGKILL)
            os.waitpid(self.daemon_pid, 0)
        remove_files()
        self.respawn.end()
        self.running = False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
