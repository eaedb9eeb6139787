"""The keeper: the process beside the tasks of one host. Parent of their guards, and of nobody's opinions.

    daemon  <--unix socket, JSON lines-->  keeper  --fork-->  guard  --fork, exec-->  task

It starts and signals tasks and tells how they ended; it decides nothing, so it need not change when dtfctl does.
It is one file that needs only Python's standard library (`python -I -S keeper.py RUN_DIR`, where RUN_DIR/token is
the run's token), so that it can be copied to a host that has nothing else.

Nothing is lost when any of these processes is killed:
- the daemon: the keeper and the tasks go on, and after a moment the keeper starts the daemon again;
- the keeper: its *guard*, a fork of the keeper, is the tasks' parent, waits for them and writes each exit status to a
  record on disk. The next keeper finds the records, watches the tasks, and makes a guard of its own for new ones;
- a guard: its tasks fall to the keeper, which is a subreaper, and are waited for there. If that keeper had been
  killed before, the kernel tells: of a zombie in /proc, of one that init has reaped through its pidfd (since Linux
  6.15; before, that status is lost).
A task writes straight to its own log file, so that nobody's death can lose, tear or hold up a line. Beside the keeper
runs a recorder (recorder.py, where it lies beside this file), which notes when logs grow and gives back their heads.

A process is trusted only by pid, start time and boot id together, and is signalled through a pidfd. All processes
of a run carry its token in their environment: by that the strays are found.

Requests (a line of JSON each): hello, hold, release, start, signal, sweep, bye. Messages back: listed, held, refused,
started, exited, swept.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import gc
import json
import os
import random
import resource
import selectors
import signal
import socket
import struct
import sys
import time

TOKEN_VARIABLE = "DTFCTL_TOKEN"
RECORDS = "records"
FILES = "files"
SOCKET = "keeper.sock"
LOCK = "keeper.lock"
TOKEN = "token"

CHOSEN_PORTS = range(20000, 32000)
"""Below Linux's ephemeral ports: no outgoing connection takes one of these while its task is down or starting."""

RESPAWN_DELAY_S = 0.1
RESPAWN_DELAY_S_MAX = 10.0
RECORDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorder.py")
RECORDER_PAUSE_S = 1.0
RECORDER_END_S = 2.0

SWEEP_S = 5.0
SEND_S = 2.0
GUARD_END_S = 1.0
DEFAULT_SIGNALS = (
    signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM
)  # fmt: skip
LINE_BYTES_MAX = 16 << 20

OWN_LIMITS = resource.getrlimit(resource.RLIMIT_NOFILE)
"""What the tasks get; the keeper itself takes all that it may have."""

PR_SET_CHILD_SUBREAPER = 36
PIDFD_SIGNAL_PROCESS_GROUP = 4
PIDFD_GET_INFO = 0xC040FF0B
PIDFD_INFO_EXIT = 8
EXIT_INFO_ATTEMPTS = 150

CPU_GRACE_S = 10

LIBRARY = ctypes.PyDLL(None, use_errno=True)
SYSCALL_CLONE3 = 435
CLONE_INTO_CGROUP = 1 << 33


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


class Entry:
    """One process of a task. `watch` is its pidfd where this keeper's own guard does not tell of its end."""

    def __init__(self, task, generation, pid, start_time, guard, guard_start_time, boot, at, address=None):
        self.task = task
        self.generation = generation
        self.pid = pid
        self.start_time = start_time
        self.guard = guard
        self.guard_start_time = guard_start_time
        self.boot = boot
        self.at = at
        self.address = address
        self.watch = -1
        self.exit = {}

    def started_message(self):
        return {
            "is": "started",
            "task": self.task,
            "generation": self.generation,
            "pid": self.pid,
            "at": self.at,
        }

    def exited_message(self):
        return {"is": "exited", "task": self.task, "generation": self.generation, **self.exit}


def entry_of(record):
    """None for a record that is not whole."""
    try:
        entry = Entry(**record)
    except TypeError:
        return None
    numbers = (entry.generation, entry.pid, entry.start_time, entry.guard, entry.guard_start_time)
    is_whole = all(isinstance(number, int) for number in numbers) and isinstance(entry.task, str)
    return entry if is_whole else None


class Keeper:
    """One thread, one selector. All state here can be rebuilt from the records, except the held ports."""

    def __init__(self, token):
        self.token = token
        self.boot = boot_id()
        self.entries: dict[tuple[str, int], Entry] = {}
        self.held: dict[str, socket.socket] = {}
        self.orphan_exits: dict[int, dict] = {}
        self.respawn = {}
        self.respawn_at: float | None = None
        self.respawn_delay_s = RESPAWN_DELAY_S
        self.daemon_since = 0.0
        self.daemon_pid = 0
        self.recorder_pid = 0
        self.recorder_pipe = -1
        self.recorder_at: float | None = time.monotonic() if os.path.exists(RECORDER) else None
        self.guard_pid = 0
        self.guard: socket.socket | None = None
        self.guard_news = b""
        self.running = True
        self.connection = None
        self.received = b""
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
            [sys.executable, "-I", "-S", RECORDER, "."],
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
            entry = entry_of(record)
            if entry is None:
                self.forget_damaged(name)
                continue
            self.entries[entry.task, entry.generation] = entry
            entry.exit = read_record(record_name(entry, "exit")) or {}
            if entry.exit:
                self.hold_again(entry)
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
            words = "ended unseen: its guard and its keeper had been killed, and its exit status is lost"
            exit_record = {"error": words, "at": time.monotonic()}
        self.ended(entry, exit_record)

    def ended(self, entry, exit_record, on_record=False):
        if not on_record:
            write_record(record_name(entry, "exit"), exit_record)
        entry.exit = exit_record
        self.hold_again(entry)
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
        connection, _ = self.listener.accept()
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
        if not data or len(self.received) > LINE_BYTES_MAX:
            self.drop_connection()
            self.daemon_lost()
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            getattr(self, "do_" + request.pop("do"))(**request)

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
            holder = self.bind(address, port, fixed, within)
        except OSError as error:
            self.send({"is": "refused", "id": id, "error": error.strerror or str(error)})
            return
        if task in self.held:
            self.held.pop(task).close()
        self.held[task] = holder
        self.send({"is": "held", "id": id, "port": holder.getsockname()[1]})

    def do_release(self, task):
        """The task does not come back here."""
        if task in self.held:
            self.held.pop(task).close()

    def bind(self, address, port, fixed, within=None):
        """A bound socket that does not listen; `within` are the first and the last port to choose from.

        A fixed port is taken with SO_REUSEADDR, which forgives lingering connections. A chosen one is taken
        without: that is refused when anybody has it bound, another keeper's holder too.
        """
        candidates = [port] if port else []
        if not fixed:
            choice = CHOSEN_PORTS if within is None else range(within[0], within[1] + 1)
            candidates += random.sample(choice, min(200, len(choice)))
        for number, candidate in enumerate(candidates):
            holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            if fixed:
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind((address, candidate))
                return holder
            except OSError as error:
                holder.close()
                if error.errno != errno.EADDRINUSE or number == len(candidates) - 1:
                    raise
        raise AssertionError("no candidate")

    def hold_again(self, entry):
        """The port of a task without a process stays out of strangers' reach."""
        if entry.address is not None and entry.task not in self.held:
            with contextlib.suppress(OSError):
                address, port = entry.address
                self.held[entry.task] = self.bind(address, port, fixed=True)

    def do_start(
        self, task, generation, argv, environment, working_dir, log, address, limits=None, files=None, logs=None
    ):
        if (task, generation) in self.entries:
            return
        if logs:
            begin_times(log, *logs)
        if task in self.held:
            self.held.pop(task).close()
        try:
            environment = {**environment, **place_files(task, files or {})}
        except OSError as error:
            words = f"could not be started: {error.filename}: {error.strerror}"
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
                    message = json.loads(line)
                    if "pid" in message:
                        self.guard_news = b"\n".join([*lines[number + 1 :], self.guard_news])
                        return message
                    self.on_end(message)
                data = guard.recv(1 << 16)
                if not data:
                    break
                self.guard_news += data
        # Perhaps a guard that was killed in the middle of this very start had got as far as the record.
        self.guard_lost()
        record = read_record(f"{file_name(request['task'], request['generation'])}.start")
        return record or {"error": "could not be started: its guard was killed"}

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
            self.on_end(json.loads(line))

    def on_end(self, message):
        entry = self.entries.get((message["task"], message["generation"]))
        if entry is not None and not entry.exit:
            self.ended(entry, read_record(record_name(entry, "exit")) or message["exit"], on_record=True)

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
        while left := self.strays():
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


class Ward:
    """A task as its guard knows it: `words` are why it could not become its program, which come through `errors` (a
    pipe, -1 once it is closed), `kills` what the kernel had killed for want of memory when it began."""

    def __init__(self, record, errors, kills, cgroup):
        self.record = record
        self.errors = errors
        self.words = ""
        self.kills = kills
        self.cgroup = cgroup


class Guard:
    """A fork of the keeper that outlives it: parent of the tasks, which it starts as the keeper asks, and whose ends it
    puts on record. It goes when its keeper has gone and its last task."""

    def __init__(self, keeper, boot, cgroup):
        self.keeper = keeper
        self.boot = boot
        self.cgroup = cgroup
        self.start_time = stat_of(os.getpid())[1]
        self.received = b""
        self.has_keeper = True
        self.wards: dict[int, Ward] = {}
        self.selector = selectors.DefaultSelector()
        wake, self.waker = socket.socketpair()
        wake.setblocking(False)
        self.waker.setblocking(False)
        self.wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        self.selector.register(wake, selectors.EVENT_READ, self.on_child)
        self.selector.register(keeper, selectors.EVENT_READ, self.on_request)

    def serve(self):
        while self.has_keeper or self.wards:
            for key, _ in self.selector.select():
                key.data()

    def on_request(self):
        data = b""
        with contextlib.suppress(OSError):
            data = self.keeper.recv(1 << 16)
        if not data:
            self.has_keeper = False
            self.selector.unregister(self.keeper)
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            self.start(json.loads(line))

    def start(self, request):
        """The task begins once it is on record, and not before."""
        task, generation = request["task"], request["generation"]
        go_reader, go_writer = os.pipe()
        error_reader, error_writer = os.pipe()
        kills = kills_for_memory()
        cgroup = make_cgroup(file_name(task, generation), self.cgroup)
        pid = fork_into(cgroup)
        if pid == 0:
            with dying():
                os.close(go_writer)
                default_signals()
                signal.set_wakeup_fd(-1)
                os.setsid()
                if os.read(go_reader, 1):
                    become(
                        request["argv"],
                        request["environment"],
                        request["working_dir"],
                        request["log"],
                        request["limits"],
                        error_writer,
                    )
        os.close(go_reader)
        os.close(error_writer)
        record = {
            "task": task,
            "generation": generation,
            "pid": pid,
            "start_time": stat_of(pid)[1],
            "guard": os.getpid(),
            "guard_start_time": self.start_time,
            "boot": self.boot,
            "at": time.monotonic(),
            "address": request["address"],
        }
        try:
            write_record(f"{file_name(task, generation)}.start", record, exclusive=True)
        except FileExistsError:
            # A guard of a keeper that was killed in the middle of this very start came first.
            os.close(go_writer)
            os.close(error_reader)
            os.waitpid(pid, 0)
            self.tell(read_record(f"{file_name(task, generation)}.start"))
            return
        os.write(go_writer, b"g")
        os.close(go_writer)
        ward = self.wards[pid] = Ward(record, error_reader, kills, cgroup)
        self.tell(record)
        self.selector.register(error_reader, selectors.EVENT_READ, lambda: self.on_become(ward))

    def on_become(self, ward):
        """The pipe closes with the exec of the program; what comes before that is why there was none."""
        if ward.errors < 0:
            return
        ward.words = os.read(ward.errors, 1 << 12).decode()
        self.selector.unregister(ward.errors)
        os.close(ward.errors)
        ward.errors = -1

    def on_child(self):
        with contextlib.suppress(BlockingIOError):
            while self.wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if info.si_pid in self.wards:
                    self.ended(info)
                os.waitpid(info.si_pid, 0)

    def ended(self, info):
        ward = self.wards.pop(info.si_pid)
        # While the task is not reaped its pid is nobody else's, so its group can be emptied in safety.
        kill_group(info.si_pid)
        remove_cgroup(ward.cgroup)
        self.on_become(ward)
        ended = {"error": ward.words, "at": time.monotonic()} if ward.words else exit_of(info)
        if ended.get("signal") == signal.SIGKILL and kills_for_memory() > ward.kills:
            ended["is_out_of_memory"] = True
        task, generation = ward.record["task"], ward.record["generation"]
        write_record(f"{file_name(task, generation)}.exit", ended)
        self.tell({"task": task, "generation": generation, "exit": ended})

    def tell(self, message):
        with contextlib.suppress(OSError):
            send_line(self.keeper, message)


def become(argv, environment, working_dir, log, limits, error_writer):
    """In the task's process: turns into the program, or tells why it cannot."""
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, output), (2, output)):
            os.dup2(source, target)
        os.umask(0o022)
        resource.setrlimit(resource.RLIMIT_NOFILE, OWN_LIMITS)
        what = f"the folder {working_dir}"
        os.chdir(working_dir)
        for limiter in limiters(limits):
            what, apply = limiter
            apply()
        what = argv[0]
        os.execvpe(argv[0], argv, environment)
    except ValueError as error:
        # What Python says when a limit is above that which this user may have.
        os.write(error_writer, f"could not be started: {what}: {error}".encode())
    except OSError as error:
        os.write(error_writer, f"could not be started: {what}: {os.strerror(error.errno or 0)}".encode())


def limiters(limits):
    """What to apply in a task's process before its program, each with its name for the user."""
    for key, number, name in (
        ("memory_bytes", resource.RLIMIT_DATA, "limits.memory"),
        ("open_files", resource.RLIMIT_NOFILE, "limits.open_files"),
        ("processes", resource.RLIMIT_NPROC, "limits.processes"),
        ("core_bytes", resource.RLIMIT_CORE, "limits.core"),
        ("cpu_s", resource.RLIMIT_CPU, "limits.cpu_time"),
    ):
        most = limits.get(key)
        if most is not None:
            # After the soft limit's SIGXCPU a program has a moment to save what it has.
            hard = most + CPU_GRACE_S if key == "cpu_s" else most
            yield name, lambda number=number, most=most, hard=hard: resource.setrlimit(number, (most, hard))
    nice = limits.get("nice")
    if nice is not None:
        yield "limits.nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, nice)
    if limits.get("cpus"):
        available = sorted(os.sched_getaffinity(0))
        chosen = {core if core in available else available[core % len(available)] for core in limits["cpus"]}
        yield "cpus", lambda: os.sched_setaffinity(0, chosen)


@contextlib.contextmanager
def dying():
    """Whatever happens in a fork, it never returns into the keeper's loop."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(127)


def leave(*kept):
    """In a fork: of the keeper's descriptors only the standard ones stay open, and `kept`."""
    signal.set_wakeup_fd(-1)
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, 1 << 20)


def begin_times(log, max_bytes, count):
    """Tells the recorder how much of a log is to stay, and when it began; recorder.py has the format."""
    # A full disk is the task's trouble, not the keeper's; the recorder then takes its own measure.
    with contextlib.suppress(OSError):
        os.makedirs("times", exist_ok=True)
        with open(f"times/{os.path.basename(log).removesuffix('.log')}", "ab", 0) as file:
            if file.tell() == 0:
                file.write(struct.pack("<qqqq", max_bytes, count, time.time_ns() // 1000, 0))


def default_signals():
    for number in DEFAULT_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def exit_of(info):
    how = "code" if info.si_code == os.CLD_EXITED else "signal"
    return {how: info.si_status, "at": time.monotonic()}


# -- a cgroup of version 2, where there is one that this user may write


def make_cgroup(name, above=None):
    """Its folder, "" where there can be none."""
    if above is None:
        above = own_cgroup()
    if not above:
        return ""
    folder = f"{above}/{name}"
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass
    except OSError:
        return ""
    return folder if os.access(f"{folder}/cgroup.procs", os.W_OK) else ""


def own_cgroup():
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file, open("/proc/self/mounts") as mounts:
        path = next((line[3:].strip() for line in file if line.startswith("0::")), "")
        mount = next((fields[1] for fields in map(str.split, mounts) if fields[2] == "cgroup2"), "")
        if path and mount:
            return (mount + path).rstrip("/")
    return ""


def fork_into(cgroup):
    """A fork that begins in a cgroup ("": in that of its parent). Moving there later would cost it some ten
    milliseconds, for which the kernel waits until all its cores have taken notice."""
    if not cgroup:
        return os.fork()
    with contextlib.suppress(OSError):
        folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Python's own fork has precautions for other threads besides; the guard has none.
            arguments = struct.pack("11Q", CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
            pid = LIBRARY.syscall(SYSCALL_CLONE3, arguments, len(arguments))
        finally:
            os.close(folder)
        if pid >= 0:
            return pid
    # Before Linux 5.7, or where somebody forbids the call.
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError), open(f"{cgroup}/cgroup.procs", "w") as file:
            file.write("0")
    return pid


def kill_cgroup(folder):
    """All of it at once (since Linux 5.14), however often it has forked."""
    if folder:
        with contextlib.suppress(OSError), open(f"{folder}/cgroup.kill", "w") as file:
            file.write("1")


def remove_cgroup(folder):
    """What is still in it is killed; if that takes its time, the folder stays until the end of the run."""
    if not folder or remove_folder(folder):
        return
    kill_cgroup(folder)
    for name in folders_in(folder):
        remove_folder(f"{folder}/{name}")
    remove_folder(folder)


def remove_folder(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return True
    return False


def folders_in(folder):
    with contextlib.suppress(OSError):
        return [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    return []


def members(folder):
    """The processes in it and the folders below it."""
    found = set()
    if folder:
        for name in ("", *folders_in(folder)):
            with contextlib.suppress(OSError), open(f"{folder}/{name}/cgroup.procs") as file:
                found |= set(map(int, file))
    return found


def kills_for_memory():
    """How often this machine's kernel has killed something for want of memory."""
    with contextlib.suppress(OSError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


# -- records: small files that are complete or absent


def record_name(entry, kind):
    return f"{file_name(entry.task, entry.generation)}.{kind}"


def file_name(task, generation):
    return f"{task.replace(':', '-')}.{generation}"


def peer_of(connection):
    """(pid, user, group) of the process at the other end of a Unix socket."""
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))


def place_files(task, files):
    """Writes what a task is given as files, for this user alone; returns their paths by their variables."""
    paths = {}
    folder = os.path.join(os.getcwd(), FILES, task.replace(":", "-"))
    for variable, text in files.items():
        os.makedirs(folder, mode=0o700, exist_ok=True)
        paths[variable] = os.path.join(folder, variable)
        aside = f"{paths[variable]}.{os.getpid()}"
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
        os.replace(aside, paths[variable])
    return paths


def remove_files():
    with contextlib.suppress(OSError):
        for folder, _, names in os.walk(FILES, topdown=False):
            for name in names:
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)


def write_record(name, record, exclusive=False):
    path = f"{RECORDS}/{name}"
    aside = f"{RECORDS}/.{name}.{os.getpid()}"
    with open(aside, "w") as file:
        json.dump(record, file)
    if exclusive:
        try:
            os.link(aside, path)
        finally:
            os.unlink(aside)
    else:
        os.replace(aside, path)


def wait_for_record(entry):
    """How it ended; a guard that lives is about to write that, for the task is gone."""
    deadline = time.monotonic() + GUARD_END_S
    while (record := read_record(record_name(entry, "exit"))) is None:
        guard = -1 if is_zombie(entry.guard) else open_pidfd(entry.guard, entry.guard_start_time)
        if guard < 0:
            return read_record(record_name(entry, "exit"))
        os.close(guard)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.001)
    return record


def read_record(name):
    try:
        with open(f"{RECORDS}/{name}") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def send_line(connection, message):
    connection.sendall(json.dumps(message).encode() + b"\n")


# -- processes by pid and start time


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def stat_of(pid):
    """(parent, start time in clock ticks since boot, state letter)."""
    fields = stat_fields(pid)
    return int(fields[1]), int(fields[19]), fields[0]


def stat_fields(pid):
    """The fields of /proc/PID/stat from the state letter on; the command's name before it may contain anything."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def is_zombie(pid):
    try:
        return stat_of(pid)[2] in "ZX"
    except (OSError, IndexError):
        return False


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def open_pidfd(pid, start_time):
    """A pidfd of that very process, or -1 when it is gone (its pid may be a stranger's by now)."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return -1
    try:
        if stat_of(pid)[1] == start_time:
            return pidfd
    except (OSError, IndexError):
        pass
    os.close(pidfd)
    return -1


def exit_of_other(pid, start_time, pidfd):
    """How somebody else's child has ended; None when nobody tells."""
    for _ in range(EXIT_INFO_ATTEMPTS):
        # Whoever its parent is now may take his time to reap it.
        status = status_of_zombie(pid, start_time)
        if status is None:
            try:
                status = status_by_pidfd(pidfd)
            except OSError:
                return None
        if status is not None:
            how = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}
            return {**how, "at": time.monotonic()}
        time.sleep(0.01)
    return None


def status_of_zombie(pid, start_time):
    """The wait status of a process that has ended and is not reaped; else None."""
    try:
        # To others the kernel shows 0.
        if os.geteuid() not in (0, os.stat(f"/proc/{pid}").st_uid):
            return None
        fields = stat_fields(pid)
        return int(fields[49]) if fields[0] == "Z" and int(fields[19]) == start_time else None
    except (OSError, IndexError):
        return None


def status_by_pidfd(pidfd):
    """The wait status of a process once it has been reaped; else None. OSError before Linux 6.15."""
    info = bytearray(64)
    struct.pack_into("Q", info, 0, PIDFD_INFO_EXIT)
    fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
    return struct.unpack_from("i", info, 60)[0] if struct.unpack_from("Q", info)[0] & PIDFD_INFO_EXIT else None


def signal_process(pid, start_time, number, flags=0):
    pidfd = open_pidfd(pid, start_time)
    if pidfd < 0:
        return
    try:
        signal.pidfd_send_signal(pidfd, number, None, flags)
    except ProcessLookupError:
        # Either it is gone, or it is so young that it does not lead its group yet: then it is all of the group.
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, number)
    except OSError as error:
        if not flags or error.errno != errno.EINVAL:
            raise
        # Before Linux 6.9 a pidfd stands for one process only. Its pid is not reused while the pidfd shows it alive.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
    finally:
        os.close(pidfd)


def kill_group(pid):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
