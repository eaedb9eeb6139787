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
import struct
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
from dtfctl.launchers.keeper.ports import Ports
from dtfctl.launchers.keeper.processes import (
    PIDFD_SIGNAL_PROCESS_GROUP,
    boot_id,
    command_of,
    exit_of,
    exit_of_other,
    kill_group,
    open_pidfd,
    signal_process,
    stat_of,
)
from dtfctl.launchers.keeper.program import DEFAULT_SIGNALS, OWN_LIMITS, default_signals, dying, leave
from dtfctl.launchers.keeper.protocol import GUARD_NEWS, REQUESTS
from dtfctl.launchers.keeper.records import (
    GUARD_END_S,
    RECORDS,
    Entry,
    file_name,
    place_files,
    read_record,
    record_name,
    remove_files,
    wait_for_record,
    write_record,
)
from dtfctl.launchers.keeper.shim import Guard, send_line
from dtfctl.messages import BadMessage, Complaints, checked, message
from dtfctl.wording import reason_and_file, reason_of

RESPAWN_DELAY_S = 0.1
RESPAWN_DELAY_S_MAX = 10.0
RECORDER_PAUSE_S = 1.0
RECORDER_END_S = 2.0
SEND_S = 2.0
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
        sys.exit("another keeper is at work here")
    # A descriptor for each held port, and one for each task of a keeper that was killed.
    resource.setrlimit(resource.RLIMIT_NOFILE, (OWN_LIMITS[1], OWN_LIMITS[1]))
    keeper = Keeper(token)
    # The guard is a fork of this process, and each task begins as one: what is frozen now stays shared with them.
    gc.collect()
    gc.freeze()
    gc.disable()
    # Whoever started the keeper waits for this word; what comes after goes to the log with the errors.
    print("ready", flush=True)
    os.dup2(2, 1)
    keeper.serve()


class Keeper:
    """One thread, one selector. All state here can be rebuilt from the records, except the held ports."""

    def __init__(self, token):
        self.token = token
        self.boot = boot_id()
        self.entries: dict[tuple[str, int], Entry] = {}
        self.ports = Ports()
        self.orphan_exits: dict[int, dict] = {}
        self.respawn = {}
        self.respawn_at: float | None = None
        self.respawn_delay_s = RESPAWN_DELAY_S
        self.daemon_since = 0.0
        self.daemon_pid = 0
        self.recorder_pid = 0
        self.recorder_pipe = -1
        self.recorder_at: float | None = time.monotonic()
        self.guard_pid = 0
        self.guard: socket.socket | None = None
        self.guard_news = b""
        self.running = True
        self.connection = None
        self.received = b""
        self.complaints = Complaints()
        LIBRARY.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.selector = selectors.DefaultSelector()
        wake, self.waker = socket.socketpair()
        wake.setblocking(False)
        self.waker.setblocking(False)
        self.wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(SOCKET)
        self.listener.listen(4)
        self.selector.register(wake, selectors.EVENT_READ, self.on_child)
        self.selector.register(self.listener, selectors.EVENT_READ, self.on_connect)
        os.makedirs(RECORDS, exist_ok=True)
        self.cgroup = make_cgroup(f"dtfctl-{token}")
        self.adopt()

    def serve(self):
        while self.running:
            due = [at for at in (self.respawn_at, self.recorder_at) if at is not None]
            wait = max(0.0, min(due) - time.monotonic()) if due else None
            for key, _ in self.selector.select(wait):
                key.data()
            if self.respawn_at is not None and time.monotonic() >= self.respawn_at:
                self.respawn_daemon()
            if self.recorder_at is not None and time.monotonic() >= self.recorder_at:
                self.start_recorder()
        self.end_recorder()
        self.end_guards()
        remove_cgroup(self.cgroup)

    # -- the recorder, which ends when its standard input does

    def start_recorder(self):
        self.recorder_at = None
        reader, self.recorder_pipe = os.pipe()
        self.recorder_pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", log_recorder.__file__, "."],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)],
            setsid=True,
            setsigdef=DEFAULT_SIGNALS,
        )
        os.close(reader)

    def end_recorder(self):
        if not self.recorder_pid:
            return
        os.close(self.recorder_pipe)
        deadline = time.monotonic() + RECORDER_END_S
        while os.waitpid(self.recorder_pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.recorder_pid, signal.SIGKILL)
            time.sleep(0.002)

    # -- what is found on disk

    def adopt(self):
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

    def forget_damaged(self, name):
        """A record that cannot be read would let a second process of the task be started beside the first."""
        task = ":".join(name.rsplit(".", 2)[0].rsplit("-", 1))
        print(f"{name} is damaged: what runs of {task} is killed", file=sys.stderr, flush=True)
        for pid, start_time in self.strays(f"DTFCTL_TASK={task}"):
            signal_process(pid, start_time, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.rename(f"{RECORDS}/{name}", f"{RECORDS}/{name}.damaged")

    def watch(self, entry):
        """Follows the task itself, else takes the end that is on record."""
        pidfd = open_pidfd(entry.pid, entry.start_time)
        if pidfd < 0:
            self.settle(entry)
            return
        entry.watch = pidfd
        self.selector.register(pidfd, selectors.EVENT_READ, lambda: self.on_watch(entry))

    def on_watch(self, entry):
        pidfd, entry.watch = entry.watch, -1
        self.selector.unregister(pidfd)
        try:
            self.settle(entry, pidfd)
        finally:
            os.close(pidfd)

    def settle(self, entry, pidfd=-1):
        """The task is gone: the record that its guard writes, what was reaped here, or the task's pidfd says how."""
        exit_record = wait_for_record(entry)
        if exit_record is None:
            self.reap()
            exit_record = self.orphan_exits.pop(entry.pid, None)
        if exit_record is None and pidfd >= 0:
            exit_record = exit_of_other(entry.pid, entry.start_time, pidfd)
        if exit_record is None:
            # What nobody saw is held against nobody.
            words = "status unknown: its guard was killed, and the record of its end is lost"
            exit_record = {"error": words, "preempted": words, "at": time.monotonic()}
        self.ended(entry, exit_record)

    def ended(self, entry, exit_record, on_record=False):
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

    def on_child(self):
        with contextlib.suppress(BlockingIOError):
            while self.wake.recv(4096):
                pass
        self.reap()

    def reap(self):
        """Takes in every dead child: guards, tasks whose guard was killed, and what tasks left behind."""
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
            if info.si_pid == self.recorder_pid:
                self.recorder_pid = 0
                os.close(self.recorder_pipe)
                self.recorder_at = time.monotonic() + RECORDER_PAUSE_S
            os.waitpid(info.si_pid, 0)

    # -- the daemon's side

    def on_connect(self):
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
        self.respawn_at = None
        self.daemon_since = time.monotonic()
        self.selector.register(connection, selectors.EVENT_READ, self.on_readable)

    def drop_connection(self):
        if self.connection is not None:
            self.selector.unregister(self.connection)
            self.connection.close()
            self.connection = None

    def on_readable(self):
        if self.connection is None:
            return
        try:
            data = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if len(self.received) > LINE_BYTES_MAX:
            self.complaints.tell(f"a request is refused: it is longer than {LINE_BYTES_MAX} bytes")
            data = b""
        if not data:
            self.drop_connection()
            self.daemon_lost()
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            self.take(line)

    def take(self, line):
        """A line that is no request changes nothing, and is answered."""
        try:
            request = message(line, "do", REQUESTS)
        except BadMessage as error:
            self.complaints.tell(f"a request is refused: {error}")
            self.send({"is": "misunderstood", "error": str(error)})
            return
        number = request.get("id")
        try:
            getattr(self, "do_" + request.pop("do"))(**request)
        except OSError as error:
            self.complaints.tell(f"a request came to nothing: {reason_and_file(error)}")
            if number is not None:
                self.send({"is": "refused", "id": number, "error": reason_and_file(error)})

    def daemon_lost(self):
        if not self.respawn:
            return
        now = time.monotonic()
        if now - self.daemon_since > RESPAWN_DELAY_S_MAX:
            self.respawn_delay_s = RESPAWN_DELAY_S
        self.respawn_at = now + self.respawn_delay_s
        self.respawn_delay_s = min(RESPAWN_DELAY_S_MAX, self.respawn_delay_s * 2)

    def respawn_daemon(self):
        # Looked at again should this attempt come to nothing; a daemon that connects ends the waiting.
        self.daemon_lost()
        self.reap()
        if self.daemon_pid:
            return
        pid = os.fork()
        if pid == 0:
            with dying():
                os.setsid()
                leave()
                log = os.open(self.respawn["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                null = os.open(os.devnull, os.O_RDONLY)
                for target, source in ((0, null), (1, log), (2, log)):
                    os.dup2(source, target)
                default_signals()
                os.execve(self.respawn["argv"][0], self.respawn["argv"], self.respawn["environment"])
        self.daemon_pid = pid

    def send(self, message):
        if self.connection is None:
            return
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # A daemon that takes nothing in is as good as dead; all that it misses is on record.
            self.drop_connection()
            self.daemon_lost()

    def do_hello(self, respawn):
        self.respawn = respawn
        listing = [[entry.task, entry.generation] for entry in self.entries.values()]
        self.send({"is": "listed", "known": listing})
        for entry in self.entries.values():
            self.send(entry.started_message())
            if entry.exit:
                self.send(entry.exited_message())

    def do_hold(self, id, task, address, port, fixed, within=None):
        try:
            self.send({"is": "held", "id": id, "port": self.ports.hold(task, address, port, fixed, within)})
        except OSError as error:
            self.send({"is": "refused", "id": id, "error": reason_of(error)})

    def do_release(self, task):
        """The task does not come back here."""
        self.ports.release(task)

    def do_start(
        self, task, generation, argv, environment, working_dir, log, address, limits=None, files=None, logs=None
    ):
        if (task, generation) in self.entries:
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
        started = self.start_by_guard(
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
        if entry.guard != self.guard_pid:
            self.watch(entry)
        # With the news of its start may have come that of its end.
        self.hear(b"")

    def forget(self, task, generation):
        """However often a task is restarted, what is known of it does not grow."""
        entry = self.entries.get((task, generation))
        if entry is None or not entry.exit:
            return
        del self.entries[task, generation]
        for kind in ("start", "exit"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{RECORDS}/{record_name(entry, kind)}")

    # -- the guard

    def start_by_guard(self, request):
        """Returns the start record, or {"error": words}."""
        guard = self.guard or self.start_guard()
        with contextlib.suppress(OSError):
            send_line(guard, request)
            while True:
                # Between the lines about ends stands the one about the start.
                *lines, self.guard_news = self.guard_news.split(b"\n")
                for number, line in enumerate(lines):
                    news = checked(line, GUARD_NEWS)
                    if "exit" not in news:
                        self.guard_news = b"\n".join([*lines[number + 1 :], self.guard_news])
                        return news
                    self.on_end(news)
                data = guard.recv(1 << 16)
                if not data:
                    break
                self.guard_news += data
        # Perhaps a guard that was killed in the middle of this very start had got as far as the record.
        self.guard_lost()
        record = read_record(f"{file_name(request['task'], request['generation'])}.start")
        words = "status unknown: its guard was killed while it was started"
        return record or {"error": words, "preempted": words}

    def start_guard(self):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            with dying():
                os.setsid()
                leave(theirs.fileno())
                Guard(theirs, self.boot, self.cgroup).serve()
        theirs.close()
        self.guard, self.guard_pid, self.guard_news = ours, pid, b""
        self.selector.register(ours, selectors.EVENT_READ, self.on_guard)
        return ours

    def on_guard(self):
        if self.guard is None:
            return
        try:
            data = self.guard.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.guard_lost()
            return
        self.hear(data)

    def hear(self, data):
        *lines, self.guard_news = (self.guard_news + data).split(b"\n")
        for line in lines:
            self.on_end(checked(line, GUARD_NEWS))

    def on_end(self, news):
        entry = self.entries.get((news["task"], news["generation"]))
        if entry is not None and not entry.exit:
            self.ended(entry, read_record(record_name(entry, "exit")) or news["exit"], on_record=True)

    def guard_lost(self):
        """Its tasks are this keeper's children now. The next start makes another guard."""
        assert self.guard is not None
        self.selector.unregister(self.guard)
        self.guard.close()
        lost, self.guard, self.guard_pid = self.guard_pid, None, 0
        self.reap()
        for entry in list(self.entries.values()):
            if entry.guard == lost and not entry.exit:
                self.watch(entry)

    def end_guards(self):
        """A guard goes when its keeper has gone and its last task."""
        if self.guard is not None:
            self.guard.close()
        guards = {(entry.guard, entry.guard_start_time) for entry in self.entries.values()}
        deadline = time.monotonic() + GUARD_END_S
        for pid, start_time in guards:
            while time.monotonic() < deadline:
                self.reap()
                pidfd = open_pidfd(pid, start_time)
                if pidfd < 0:
                    break
                os.close(pidfd)
                time.sleep(0.002)

    def do_signal(self, task, generation, number):
        entry = self.entries.get((task, generation))
        if entry is not None and not entry.exit:
            signal_process(entry.pid, entry.start_time, number, PIDFD_SIGNAL_PROCESS_GROUP)

    def do_sweep(self, id):
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

    def strays(self, variable=""):
        """(pid, start time) of what carries the run's token or fell to the keeper, zombies apart; with a `variable`
        only what has that in its environment too."""
        # A guard whose tasks have all ended is about to go by itself.
        guards = {entry.guard for entry in self.entries.values() if entry.boot == self.boot}
        guards = {pid for pid in guards if not command_of(pid) or command_of(pid) == command_of(os.getpid())}
        mine = {os.getpid(), self.daemon_pid, self.recorder_pid, self.guard_pid} | guards
        grouped = set() if variable else members(self.cgroup)
        markers = {f"{TOKEN_VARIABLE}={self.token}".encode(), *([variable.encode()] if variable else [])}
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) in mine:
                continue
            pid = int(name)
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    is_ours = markers <= set(file.read().split(b"\0"))
                parent, start_time, process_state = stat_of(pid)
            except (OSError, IndexError):
                continue
            is_ours = is_ours or pid in grouped or (parent == os.getpid() and not variable)
            if is_ours and process_state != "Z":
                found.append((pid, start_time))
        return found

    def do_bye(self):
        """The last request. A daemon that was started here and came too late to be needed goes too."""
        assert self.connection is not None
        peer = peer_of(self.connection)[0]
        self.reap()
        if self.daemon_pid not in (0, peer):
            os.kill(self.daemon_pid, signal.SIGKILL)
            os.waitpid(self.daemon_pid, 0)
        remove_files()
        self.respawn = {}
        self.respawn_at = None
        self.running = False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)


def peer_of(connection):
    """(pid, user, group) of the process at the other end of a Unix socket."""
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
