"""The agent: dtfctl's hands on a host that it reaches over ssh. Nothing of it is installed there.

    daemon  <--ssh: JSON lines-->  agent  <--unix socket-->  keeper  (guards, tasks: keeper.py)

ssh runs a Python that it finds on the host, and this text, with those that it imports, is the first line of that
Python's input (ssh.py). The second line is a request, and its `do` says what this agent is for:

- check: tells everything that may hinder tasks here, and what the launcher has to know of the host;
- sync:  compares a list of files with a folder, and takes in what differs;
- environment: makes a Python environment (environment.py), or brings it up to date;
- talk:  makes sure that the run's keeper is at work, and passes lines between it and the launcher. Besides that it
         sends what the tasks write to their logs and when, measures what they take of the host, and asks their
         commands and files whether they are ready;
- clean: ends all that is left of a run.

The keeper lives in a private folder, ~/.local/state/dtfctl/hosts/<run>, detached: a lost connection ends the agent,
and nothing else. The folder goes when the run is over. Only Python's standard library, 3.10 or later.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import ctypes
import hashlib
import json
import os
import pwd
import selectors
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict

from dtfctl import usage
from dtfctl.launchers import environment

SOCKET = "keeper.sock"
TOKEN = "token"
LOGS, TIMES = "logs", "times"
NOTE = struct.Struct("<qq")
"""Of the recorder: time, size; the first one is its header."""

FILES = "files"
MANIFEST = ".dtfctl-sync.json"
"""In the folder that is synced: what was brought there, so that what the user deletes is deleted there too."""

NOT_INHERITED = ("PWD", "OLDPWD", "SHLVL", "_", "MAIL", "LS_COLORS")
LINE_BYTES_MAX = 64 << 20
LOG_CHUNK_BYTES = 48 << 10
LOG_WINDOW_BYTES = 1 << 20
"""So much of the logs may be on its way; what the keeper has to say is never behind more than that."""

LOG_KEPT_BYTES = 16 << 20
LOG_PIECE_BYTES = 4 << 20
"""Of a log that the launcher has got the last part is kept; the rest is given back to the disk in pieces."""

BLOCK_BYTES = 4096
PUNCH_HOLE, KEEP_SIZE = 2, 1

LOG_PAUSE_S = 0.02
LOG_LOOK_S = 0.5
"""How often files are looked at where the kernel does not tell of changes."""

KEEPER_START_S = 10.0
SWEEP_S = 12.0
PYTHON_CHECK_S = 20.0
MTIME_TOLERANCE_NS = 2000
IN_MODIFY, IN_CREATE = 0x2, 0x100


def main() -> None:
    os.umask(0o077)
    lines = Lines(0)
    request = json.loads(lines.wait())
    do = request.pop("do")
    if do == "talk":
        Talk(lines, **request).serve()
        return
    try:
        if do == "check":
            reply = check(**request)
        elif do == "sync":
            reply = sync(lines, **request)
        elif do == "environment":
            reply = environment.make(**request)
        else:
            reply = clean(**request)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reply = {"error": f"{where}{error.strerror or error}"}
    write_line(reply)


class Lines:
    """Whole lines from a descriptor, and what comes after them as it is."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.rest = b""

    def wait(self):
        """The next line, b"" at the end."""
        while b"\n" not in self.rest:
            data = os.read(self.descriptor, 1 << 16)
            if not data or len(self.rest) > LINE_BYTES_MAX:
                return b""
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def take(self):
        """The whole lines that are there; None at the end."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return []
        if not data or len(self.rest) > LINE_BYTES_MAX:
            return None
        *whole, self.rest = (self.rest + data).split(b"\n")
        return whole

    def read(self, size):
        """For tarfile: bytes."""
        if not self.rest:
            return os.read(self.descriptor, size)
        data, self.rest = self.rest[:size], self.rest[size:]
        return data


def write_line(document):
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


# -- check


def check(folder, addresses, names, ports, pythons, needs_folder):
    """`addresses` are those at which servers will listen, `names` those by which others know this host, `ports`
    [address, port] that the cluster file fixes. What is wrong with each is told in words; "" is nothing."""
    place = absolute(folder)
    existing = nearest_folder(place)
    here = os.uname()
    return {
        "python": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "user": user_name(),
        "host": here.nodename,
        "kernel": f"{here.sysname} {here.release}",
        "boot": boot_id(),
        "time": time.time(),
        "cores": os.cpu_count() or 1,
        "environment": inherited_environment(),
        "folder": place,
        "folder_error": folder_error(place, existing, needs_folder),
        "free_bytes": shutil.disk_usage(existing).free,
        "has_rsync": shutil.which("rsync") is not None,
        "addresses": {address: address_error(address) for address in addresses},
        "names": {name: name_error(name) for name in names},
        "ports": [[address, port, port_error(address, port)] for address, port in ports],
        "pythons": {python: python_error(python, place) for python in pythons},
    }


def absolute(path):
    return os.path.normpath(os.path.join(home(), expanded(path)))


def expanded(path):
    return home() + path[1:] if path == "~" or path.startswith("~/") else path


def home():
    return os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir


def user_name():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def inherited_environment():
    return {
        key: value
        for key, value in os.environ.items()
        if key not in NOT_INHERITED and not key.startswith(("SSH_", "DTFCTL_"))
    }


def nearest_folder(path):
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def folder_error(path, existing, needs_folder):
    if existing == path:
        return "" if os.access(path, os.R_OK | os.W_OK | os.X_OK) else f"{path} is not writable"
    if os.path.lexists(path):
        return f"{path} is not a folder"
    if needs_folder:
        return f"there is no folder {path}"
    inside = path[len(existing) :].strip("/").split("/")[0]
    blocking = os.path.join(existing, inside)
    if os.path.lexists(blocking):
        return f"{blocking} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"{path} cannot be made: {existing} is not writable"


def address_error(address):
    why = port_error(address, 0)
    if why:
        return why
    with contextlib.suppress(OSError):
        if socket.gethostbyname(address).startswith("127.") and not address.startswith(("127.", "localhost")):
            return "the host itself takes that name for its loopback (/etc/hosts), where nobody else reaches it"
    return ""


def name_error(name):
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def port_error(address, port):
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((address, port))
    except OSError as error:
        return error.strerror or str(error)
    finally:
        holder.close()
    return ""


def python_error(python, folder):
    command = os.path.join(folder, expanded(python)) if "/" in python else python
    try:
        done = subprocess.run(
            [command, "-c", "import sys; print(sys.version_info[0])"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PYTHON_CHECK_S,
        )
    except subprocess.TimeoutExpired:
        return f"does not answer within {PYTHON_CHECK_S:g}s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return words[-1] if words else f"exits with status {done.returncode}"


# -- sync


def sync(lines, folder, files, inode=0):
    """`files` is path -> [size, mtime in ns, mode, target of a link or ""], all below `folder`. `inode` is that of the
    folder from which they come: where it is the same and nothing differs, the two are one folder that is shared.

    Answers with those that differ here; then comes either a tar of them, or, when rsync has brought them, nothing.
    Only files that an earlier sync brought, and that are as it left them, are ever removed.
    """
    place = absolute(folder)
    os.makedirs(place, exist_ok=True)
    os.umask(0o022)
    for path in files:
        if path.startswith("/") or ".." in path.split("/"):
            raise OSError(0, "lies outside of the folder", path)
    former = former_files(place)
    gone = [path for path in former if path not in files and is_same(place, path, former[path])]
    wanted = [path for path, entry in files.items() if not is_same(place, path, entry)]
    refuse_links(place, wanted)
    write_line({"folder": place, "wanted": wanted})
    way = json.loads(lines.wait())["way"]
    if way == "tar":
        take_tar(lines, place, set(wanted))
    for path in gone:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(place, path))
        with contextlib.suppress(OSError):
            os.removedirs(os.path.dirname(os.path.join(place, path)))
    missing = []
    for path in wanted:
        if way == "tar" and not files[path][3]:
            with contextlib.suppress(OSError):
                os.utime(os.path.join(place, path), ns=(files[path][1], files[path][1]))
        if not is_same(place, path, files[path]):
            missing.append(path)
    if not wanted and os.stat(place).st_ino == inode:
        return {"missing": [], "removed": []}
    aside = os.path.join(place, f"{MANIFEST}.{os.getpid()}")
    os.makedirs(place, exist_ok=True)
    with open(aside, "w") as file:
        json.dump({path: entry for path, entry in files.items() if path not in missing}, file)
    os.replace(aside, os.path.join(place, MANIFEST))
    return {"missing": missing, "removed": gone}


def former_files(place):
    try:
        with open(os.path.join(place, MANIFEST)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def is_same(place, path, entry):
    size, mtime_ns, mode, target = entry
    try:
        found = os.lstat(os.path.join(place, path))
        if target or stat.S_ISLNK(found.st_mode):
            return bool(target) and os.readlink(os.path.join(place, path)) == target
    except OSError:
        return False
    is_equal = found.st_size == size and bool(found.st_mode & 0o100) == bool(mode & 0o100)
    return is_equal and stat.S_ISREG(found.st_mode) and abs(found.st_mtime_ns - mtime_ns) <= MTIME_TOLERANCE_NS


def take_tar(lines, place, wanted):
    """Each file is complete or as it was before. What is no wanted file is not taken."""
    with tarfile.open(fileobj=lines, mode="r|") as archive:
        for member in archive:
            if member.name not in wanted or not (member.isreg() or member.issym()):
                continue
            path = os.path.join(place, member.name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            aside = f"{path}.{os.getpid()}.dtfctl"
            if member.issym():
                os.symlink(member.linkname, aside)
            else:
                content = archive.extractfile(member)
                assert content is not None
                with open(aside, "wb") as file:
                    shutil.copyfileobj(content, file)
                os.chmod(aside, member.mode & 0o777)
            if os.path.isdir(path) and not os.path.islink(path):
                os.unlink(aside)
                raise OSError(0, "is a folder here and a file there", path)
            os.replace(aside, path)


def refuse_links(place, paths):
    """Through real folders only: a link on the way could lead out of the place."""
    for folder in {os.path.dirname(path) for path in paths}:
        while folder:
            path = os.path.join(place, folder)
            if os.path.islink(path):
                raise OSError(0, "is a link on this host, and files are to come below it", path)
            folder = os.path.dirname(folder)


# -- talk and clean


def run_folder(run):
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(home(), ".local", "state")
    return os.path.join(state, "dtfctl", "hosts", run)


def reach_keeper(run, token, keeper):
    """A connection to the run's keeper, which is started when there is none. Leaves this process in its folder."""
    folder = run_folder(run)
    os.makedirs(os.path.join(folder, LOGS), exist_ok=True)
    os.chdir(folder)
    found = os.stat(".")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise OSError(0, "is not private: it must be this user's alone, with mode 0700", folder)
    with open(TOKEN, "w") as file:
        file.write(token)
    name = os.path.join(place_keeper(keeper), "keeper.py")
    deadline = time.monotonic() + KEEPER_START_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(SOCKET)
            return connection
        except OSError:
            connection.close()
        if time.monotonic() > deadline:
            raise OSError(0, "the keeper does not start", os.path.join(folder, "keeper.log"))
        start_keeper(name)


def place_keeper(keeper):
    """The folder of these files, whole or not there at all."""
    folder = f"keeper-{hashlib.sha256(json.dumps(keeper, sort_keys=True).encode()).hexdigest()[:16]}"
    if not os.path.isdir(folder):
        aside = f"{folder}.{os.getpid()}"
        os.makedirs(aside, exist_ok=True)
        for name, text in keeper.items():
            with open(os.path.join(aside, name), "wb") as file:
                file.write(base64.b64decode(text))
        try:
            os.rename(aside, folder)
        except OSError:
            # Another agent was quicker.
            shutil.rmtree(aside, ignore_errors=True)
    return folder


def start_keeper(name):
    with open("keeper.log", "ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", name, "."],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert keeper.stdout is not None
    # Either "ready", or the end of one that found another keeper at work.
    if not keeper.stdout.readline():
        keeper.wait()
        time.sleep(0.05)
    keeper.stdout.close()


def clean(run, token, keeper):
    """Ends whatever is left of a run, and forgets it; `left` is what would not die."""
    if not os.path.isdir(run_folder(run)):
        return {"left": []}
    with reach_keeper(run, token, keeper) as connection:
        connection.settimeout(SWEEP_S)
        connection.sendall(b'{"do": "sweep", "id": 0}\n')
        with connection.makefile("rb") as messages:
            while not (line := messages.readline()).startswith(b'{"is": "swept"'):
                if not line:
                    raise OSError(0, "the keeper has gone", run_folder(run))
            left = json.loads(line)["left"]
            connection.sendall(b'{"do": "bye"}\n')
            messages.read()
    shutil.rmtree(run_folder(run), ignore_errors=True)
    return {"left": left}


class Talk:
    """One thread, one selector; ends with its input, or with the keeper."""

    def __init__(self, lines, run, token, keeper, have):
        self.lines = lines
        try:
            self.keeper = reach_keeper(run, token, keeper)
        except OSError as error:
            sys.exit(f"{error.filename}: {error.strerror}")
        self.keeper_lines = Lines(self.keeper.fileno())
        self.logs = Logs(have)
        self.selector = selectors.DefaultSelector()
        self.out = bytearray()
        self.commands = {}
        self.drains = []
        self.is_leaving = False
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.selector.register(0, selectors.EVENT_READ, self.on_request)
        self.selector.register(self.keeper, selectors.EVENT_READ, self.on_keeper)
        if self.logs.watch >= 0:
            self.selector.register(self.logs.watch, selectors.EVENT_READ, self.logs.note)

    def serve(self):
        self.send({"is": "host", "boot": boot_id()})
        self.serve_lines(self.take_rest())
        while True:
            for key, _ in self.selector.select(self.patience_s()):
                key.data()
            self.look_after_commands()
            self.send_logs()

    def take_rest(self):
        """Lines that came together with the request."""
        *whole, self.lines.rest = self.lines.rest.split(b"\n")
        return whole

    def patience_s(self):
        now = time.monotonic()
        times = [deadline for _, deadline, _, _ in self.commands.values()]
        times += [self.logs.look_at] if self.logs.look_at is not None else []
        return max(0.0, min(times) - now) if times else None

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data):
        was_empty = not self.out
        self.out += data
        if was_empty:
            self.flush()
            if self.out:
                self.selector.register(1, selectors.EVENT_WRITE, self.on_writable)

    def on_writable(self):
        self.flush()
        if not self.out:
            self.selector.unregister(1)

    def flush(self):
        try:
            while self.out:
                del self.out[: os.write(1, self.out[: 1 << 16])]
        except BlockingIOError:
            pass
        except OSError:
            self.end(0)

    def end(self, status):
        for process, _, _, _ in self.commands.values():
            kill_group(process)
        os._exit(status)

    def on_request(self):
        lines = self.lines.take()
        if lines is None:
            self.end(0)
        self.serve_lines(lines)

    def serve_lines(self, lines):
        for line in lines:
            request = json.loads(line)
            do = request.pop("do")
            if do in ("ack", "drain", "command", "file", "clock", "usage"):
                getattr(self, "do_" + do)(**request)
                continue
            self.is_leaving = self.is_leaving or do == "bye"
            if do == "hello":
                self.logs.look_at = time.monotonic()
            try:
                self.keeper.sendall(line + b"\n")
            except OSError:
                self.keeper_has_gone()

    def on_keeper(self):
        lines = self.keeper_lines.take()
        if lines is None:
            self.keeper_has_gone()
        self.send_bytes(b"".join(line + b"\n" for line in lines))

    def keeper_has_gone(self):
        if self.is_leaving:
            os.chdir("/")
            shutil.rmtree(self.logs.run_folder, ignore_errors=True)
        os.set_blocking(1, True)
        self.flush()
        self.end(0 if self.is_leaving else 1)

    def do_clock(self):
        """The launcher times the round trip."""
        self.send({"is": "clock", "monotonic": time.monotonic(), "wall": time.time()})

    def do_usage(self, id, pids):
        """What the sessions take that these processes lead."""
        found = {str(pid): asdict(each) for pid, each in usage.measure(set(pids)).items()}
        self.send({"is": "used", "id": id, "usages": found, "monotonic": time.monotonic()})

    # -- logs

    def do_ack(self, bytes, file="", until=0):
        self.logs.on_way -= bytes
        self.logs.let_go(file, until)

    def do_drain(self, id):
        """Answered when all that is in the logs has been sent."""
        self.drains.append(id)
        self.logs.look_at = time.monotonic()

    def send_logs(self):
        if self.logs.look_at is None or time.monotonic() < self.logs.look_at:
            return
        is_all = self.logs.send(self.send)
        if is_all:
            for id in self.drains:
                self.send({"is": "drained", "id": id})
            self.drains.clear()

    # -- readiness

    def do_file(self, id, path, age_s):
        """Whether the file is no older than so many seconds; by this host's clock alone."""
        try:
            is_new = time.time() - os.stat(path).st_mtime <= age_s
            missing = "" if is_new else f"the file {path} is of an earlier run"
        except OSError as error:
            missing = f"the file {path}: {error.strerror}"
        self.send({"is": "checked", "id": id, "missing": missing})

    def do_command(self, id, command, environment, working_dir, timeout_s):
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, **placed_files(environment.get("DTFCTL_TASK", ""))},
                cwd=working_dir,
                start_new_session=True,
            )
            pidfd = os.pidfd_open(process.pid)
        except OSError as error:
            missing = f"its command cannot be run: {error.strerror}"
            self.send({"is": "checked", "id": id, "missing": missing})
            return
        self.commands[id] = process, time.monotonic() + timeout_s, pidfd, timeout_s
        self.selector.register(pidfd, selectors.EVENT_READ, lambda: self.command_ended(id))

    def command_ended(self, id):
        process, _, pidfd, timeout_s = self.commands.pop(id)
        self.selector.unregister(pidfd)
        os.close(pidfd)
        if process.poll() is None:
            kill_group(process)
            process.wait()
            missing = f"its command did not end within {timeout_s:g}s"
        elif process.returncode:
            missing = f"its command exits with status {process.returncode}"
        else:
            missing = ""
        self.send({"is": "checked", "id": id, "missing": missing})

    def look_after_commands(self):
        now = time.monotonic()
        for id in [id for id, (_, deadline, _, _) in self.commands.items() if now >= deadline]:
            self.command_ended(id)


def placed_files(task):
    """The paths of the files that the keeper has placed for a task here, by their variables."""
    folder = os.path.join(os.getcwd(), FILES, task.replace(":", "-"))
    return {name: os.path.join(folder, name) for name in os.listdir(folder)} if task and os.path.isdir(folder) else {}


class Logs:
    """What the launcher has of each log, and when to look for more."""

    def __init__(self, have):
        self.run_folder = os.getcwd()
        self.sent = dict(have)
        self.growths = {}
        self.on_way = 0
        # Nothing before the launcher has said hello.
        self.look_at: float | None = None
        self.watch = watch_folder(LOGS)
        self.given_back = {}

    def note(self):
        """The kernel tells of a change; a burst is looked at once."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.watch, 1 << 16):
                pass
        if self.look_at is None:
            self.look_at = time.monotonic() + LOG_PAUSE_S

    def send(self, send):
        """Sends what fits the window; whether that was all."""
        for name in sorted(os.listdir(LOGS)):
            path = os.path.join(LOGS, name)
            offset = self.sent.get(name, 0)
            if not name.endswith(".log") or os.stat(path).st_size <= offset:
                continue
            growth = self.growths.setdefault(name, Growth(os.path.join(TIMES, name.removesuffix(".log"))))
            with open(path, "rb") as file:
                file.seek(offset)
                while self.on_way < LOG_WINDOW_BYTES and (data := file.read(LOG_CHUNK_BYTES)):
                    text = base64.b64encode(data).decode()
                    times = growth.between(offset, offset + len(data))
                    send({"is": "log", "file": name, "offset": offset, "data": text, "times": times})
                    offset += len(data)
                    self.on_way += len(data)
            self.sent[name] = offset
            if self.on_way >= LOG_WINDOW_BYTES:
                self.look_at = time.monotonic() + LOG_PAUSE_S
                return False
        self.look_at = None if self.watch >= 0 else time.monotonic() + LOG_LOOK_S
        return True

    def let_go(self, name, until):
        """The launcher has the file up to there: the disk gets the blocks back, and offsets stay as they are. The last
        ones are kept, should the launcher's machine lose what it has not yet put on its own disk."""
        first, end = self.given_back.get(name, 0), (until - LOG_KEPT_BYTES) // BLOCK_BYTES * BLOCK_BYTES
        if end - first < LOG_PIECE_BYTES:
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(os.path.join(LOGS, os.path.basename(name)), os.O_WRONLY | os.O_CLOEXEC)
            # Where the file system cannot do it the log stays whole.
            arguments = ctypes.c_int(descriptor), ctypes.c_int(PUNCH_HOLE | KEEP_SIZE)
            ctypes.CDLL(None).fallocate(*arguments, ctypes.c_long(first), ctypes.c_long(end - first))
            os.close(descriptor)
            self.given_back[name] = end


class Growth:
    """When a log grew, as the recorder notes it (recorder.py has the format); each note is read once."""

    def __init__(self, path):
        self.path = path
        self.inode = 0
        self.position = 0
        self.notes: collections.deque[tuple[int, int]] = collections.deque()

    def between(self, offset, end):
        """[microseconds since 1970, size] of each growth beyond `offset`, the last of them that to `end`."""
        self.read()
        found = []
        while self.notes and self.notes[0][1] <= end:
            at, size = self.notes.popleft()
            if size > offset:
                found.append([at, size])
        if not found or found[-1][1] < end:
            # It is in the middle of the next growth, or the recorder has not come to it yet.
            found.append([self.notes[0][0] if self.notes else time.time_ns() // 1000, end])
        return found

    def read(self):
        with contextlib.suppress(OSError), open(self.path, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self.inode:
                # The recorder writes it anew when it gives back the head of the log.
                self.inode, self.position = inode, NOTE.size
                self.notes.clear()
            file.seek(self.position)
            data = file.read()
            whole = len(data) - len(data) % NOTE.size
            self.position += whole
            self.notes.extend(NOTE.iter_unpack(data[:whole]))


def watch_folder(folder):
    """An inotify descriptor for what changes in a folder's files, or -1 where there is none to be had."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor >= 0 and library.inotify_add_watch(descriptor, os.fsencode(folder), IN_MODIFY | IN_CREATE) < 0:
        os.close(descriptor)
        return -1
    return descriptor


def kill_group(process):
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
