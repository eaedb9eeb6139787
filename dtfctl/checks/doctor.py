"""What is wrong, or may go wrong, before anybody has to find out: this machine, the hosts, what earlier runs left.

Each question is a function that yields Findings, and changes nothing. The hosts are asked by launchers/preflight.py,
which `up` calls too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dtfctl import hints
from dtfctl.checks.questions import DOUBT, Where
from dtfctl.checks.validation import troubles
from dtfctl.config import ClusterFile
from dtfctl.control.cluster import Cluster, with_own_ssh
from dtfctl.errors import StoreError, StoreUnwritable
from dtfctl.launchers import gpus
from dtfctl.launchers.keeper import CHOSEN_PORTS, TOKEN, TOKEN_VARIABLE
from dtfctl.show.view import size
from dtfctl.storage.paths import socket_address
from dtfctl.values.plan import SSH, ClusterPlan
from dtfctl.wording import printable, reason_and_file, reason_of

FINE, DOUBTFUL, WRONG = "ok", "doubt", "wrong"

OPEN_FILES_MIN, OPEN_FILES_GOOD = 256, 4096
FREE_BYTES_MIN, FREE_BYTES_GOOD = 64 << 20, 1 << 30


@dataclass(frozen=True)
class Finding:
    """`grade` is ok, doubt (it may come to hurt) or wrong (a cluster cannot run); `to_do` is what to do about it."""

    grade: str
    subject: str
    what: str
    to_do: str = ""

    def __str__(self) -> str:
        then = f"\n{'':22}{self.to_do}" if self.to_do else ""
        return printable(f"{self.grade:<6}{self.subject:<16}{self.what}{then}", lines=True)


def of_this_machine(root: Path) -> Iterator[Finding]:
    yield from answered("python", _python())
    yield from answered("limits", _limits())
    yield from answered("ports", _ports())
    yield from answered("state folder", _state_folder(root))
    yield from answered("kernel", _kernel())
    yield from answered("gpus", _gpus())


def answered(subject: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of a question; one that cannot be answered, on a full disk for instance, is itself a finding."""
    try:
        yield from findings
    except OSError as error:
        yield Finding(WRONG, subject, reason_and_file(error))


def of_earlier_runs(clusters: Iterable[Cluster]) -> Iterator[Finding]:
    tokens = {}
    for cluster in clusters:
        try:
            found = cluster.find()
        except StoreError as error:
            is_full = isinstance(error, StoreUnwritable)
            to_do = "" if is_full else hints.command("down", cluster.name, "--purge")
            yield Finding(WRONG, cluster.name, str(error).splitlines()[0], to_do)
            continue
        if found is None:
            continue
        run, _ = found
        if not run.is_over:
            tokens[run.token] = cluster.name
            if not cluster.has_supervisor():
                words = "its run has not ended, and no supervisor runs"
                look = hints.command("status", cluster.name)
                yield Finding(DOUBTFUL, cluster.name, words, f"{look} brings its supervisor back")
        for pid, host, command in run.strays:
            if host == "localhost" and Path(f"/proc/{pid}").exists():
                yield Finding(DOUBTFUL, cluster.name, f"left behind: pid {pid}: {command}", f"kill -9 {pid}")
        for run_dir in cluster.paths.runs.iterdir() if cluster.paths.runs.exists() else ():
            with contextlib.suppress(OSError):
                tokens.setdefault((run_dir / TOKEN).read_text().strip(), f"{cluster.name} (an ended run)")
    strangers = list(_strangers(tokens))
    for pid, owner, command in strangers:
        to_do = f"kill {pid}" if owner else f"it belongs to no run that is known here; kill {pid} if it is not needed"
        yield Finding(DOUBTFUL, "left behind", f"pid {pid} of {owner or 'an unknown run'}: {command[:80]}", to_do)
    if not strangers:
        yield Finding(FINE, "left behind", "no process of an ended run is left")


def of_plan(file: ClusterFile, plan: ClusterPlan, root: Path, is_running: bool) -> Iterator[Finding]:
    """`is_running`: its ports are rightly in use."""
    yield Finding(FINE, "cluster file", f"{plan.file}: {', '.join(f'{job.replicas} {job.name}' for job in plan.jobs)}")
    for trouble in troubles(file, plan, root, has_ports=is_running):
        grade = DOUBTFUL if trouble.grade == DOUBT else WRONG
        subject, _, more = trouble.task.partition(" ")
        what = ": ".join(filter(None, (trouble.at, more, trouble.what)))
        yield Finding(grade, subject or "cluster file", what, trouble.to_do)
    if plan.checkpoint_folder:
        # What is wrong with it is among the troubles.
        yield from (each for each in _disk("checkpoint_dir", Path(plan.checkpoint_folder)) if each.grade == FINE)
    if plan.remote_hosts:
        yield from _hosts(plan, root, file.positions())


def _python() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    with contextlib.suppress(PackageNotFoundError):
        yield Finding(FINE, "dtfctl", f"{version('dtf')} at {Path(__file__).parents[1]}")
    words = f"{platform.python_version()} at {sys.executable}"
    is_known = sys.version_info >= (3, 10)
    yield Finding(FINE if is_known else WRONG, "python", words, "" if is_known else "dtfctl needs Python 3.10 or later")
    for package in ("click", "grpcio", "psutil", "pyyaml", "rich"):
        try:
            version(package)
        except PackageNotFoundError:
            yield Finding(WRONG, package, "is not installed", f"{sys.executable} -m pip install {package}")


def _limits() -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = f"{soft} (at most {hard})"
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES_MIN:
        yield Finding(WRONG, "open files", words, "ulimit -Hn, or nofile in /etc/security/limits.conf")
    elif soft != resource.RLIM_INFINITY and soft < OPEN_FILES_GOOD:
        yield Finding(DOUBTFUL, "open files", words, "tasks inherit it; ulimit -n 65536, or limits.open_files")
    else:
        yield Finding(FINE, "open files", words)
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and soft < 1024:
        yield Finding(DOUBTFUL, "processes", f"{soft}, threads included", "ulimit -u")
    else:
        yield Finding(FINE, "processes", "unlimited" if soft == resource.RLIM_INFINITY else f"{soft}")


def _ports() -> Iterator[Finding]:
    try:
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        return
    words = f"{CHOSEN_PORTS.start}-{CHOSEN_PORTS.stop - 1} are for tasks, outgoing connections use {first}-{last}"
    if first < CHOSEN_PORTS.stop and last >= CHOSEN_PORTS.start:
        to_do = "an outgoing connection may take a task's port: set a port range in the file"
        yield Finding(DOUBTFUL, "ports", words, to_do)
    else:
        yield Finding(FINE, "ports", words)


def _gpus() -> Iterator[Finding]:
    """The GPUs of this machine; nothing where it has no driver."""
    found, complaint = gpus.cards()
    if complaint:
        yield Finding(DOUBTFUL, "gpus", complaint, "nvidia-smi shows it; reload or update the driver")
    for card in found:
        subject = f"gpu {card.number}"
        words = f"{card.name}, {size(card.total_bytes)}, driver {card.driver}"
        if card.memory_errors:
            count = f"{card.memory_errors} uncorrectable memory error{'' if card.memory_errors == 1 else 's'}"
            yield Finding(DOUBTFUL, subject, f"{words}: {count}", "nvidia-smi -q -d ECC; reset or replace the card")
        elif card.is_split:
            to_do = "nvidia-smi -L names them; environment: {CUDA_VISIBLE_DEVICES: MIG-...} gives one to a job"
            yield Finding(DOUBTFUL, subject, f"{words}: split into instances by MIG, which gpus: does not count", to_do)
        else:
            yield Finding(FINE, subject, words)
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if found and hidden is not None:
        yield Finding(FINE, "gpus", f"CUDA_VISIBLE_DEVICES is {hidden!r} here; gpus: in a cluster file overrides it")


def _state_folder(root: Path) -> Iterator[Finding]:
    """Whether it can hold what dtfctl puts there: private files, Unix sockets, logs whose heads can be given back."""
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(WRONG, "state folder", f"{root} cannot be written", "--state-dir, or DTFCTL_STATE_DIR")
        return
    yield from _disk("state folder", existing)
    status = os.stat(existing)
    if existing == root and status.st_uid != os.getuid():
        yield Finding(WRONG, "state folder", f"{root} belongs to another user", "--state-dir, or DTFCTL_STATE_DIR")
    if not root.exists():
        return
    with tempfile.TemporaryDirectory(dir=root, prefix=".doctor-") as folder:
        try:
            with (
                socket_address(Path(folder) / "s") as address,
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
            ):
                probe.bind(address)
        except OSError as error:
            to_do = "a local disk for --state-dir or DTFCTL_STATE_DIR"
            yield Finding(WRONG, "state folder", f"no Unix socket can be made there: {reason_of(error)}", to_do)
        with open(Path(folder) / "log", "w+b", buffering=0) as log:
            if log.write(bytes(1 << 20)) < 1 << 20:
                yield Finding(WRONG, "logs", "the disk is full: not even a short log can be written", f"df -h {root}")
                return
            arguments = ctypes.c_int64(0), ctypes.c_int64(1 << 19)
            if ctypes.CDLL(None, use_errno=True).fallocate(log.fileno(), 3, *arguments):
                words = f"{os.strerror(ctypes.get_errno())}: its file system cannot free the beginning of a log"
                yield Finding(DOUBTFUL, "logs", words, "logs grow without bound there; use a local disk")
            else:
                yield Finding(FINE, "logs", "the size of logs can be limited")


def _disk(subject: str, folder: Path) -> Iterator[Finding]:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    words = f"{folder}: {size(free)} free"
    grade = FINE if free >= FREE_BYTES_GOOD else DOUBTFUL if free >= FREE_BYTES_MIN else WRONG
    yield Finding(grade, subject, words, "" if grade == FINE else f"df -h {existing}")


def _kernel() -> Iterator[Finding]:
    release = platform.release()
    try:
        os.close(os.pidfd_open(os.getpid()))
        yield Finding(FINE, "kernel", release)
    except (OSError, AttributeError):
        yield Finding(WRONG, "kernel", f"{release} has no pidfd", "Linux 5.3 or later")
    library = ctypes.CDLL(None, use_errno=True)
    watch = library.inotify_init1(os.O_CLOEXEC)
    if watch < 0:
        to_do = "sysctl fs.inotify.max_user_instances; the times of log lines are less exact without"
        yield Finding(DOUBTFUL, "inotify", os.strerror(ctypes.get_errno()), to_do)
    else:
        os.close(watch)
    if time.time() < Path(__file__).stat().st_mtime - 86400:
        yield Finding(DOUBTFUL, "clock", f"{time.ctime()} is earlier than dtfctl's installation", "date")
    else:
        yield Finding(FINE, "clock", time.strftime("%Y-%m-%d %H:%M:%S %z"))


def _strangers(tokens: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """(pid, cluster, command) of this user's processes that carry a run's token without being of a living run."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            pairs = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            for pair in pairs:
                if pair.startswith(f"{TOKEN_VARIABLE}=".encode()):
                    owner = tokens.get(pair.partition(b"=")[2].decode(), "")
                    command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if not owner or owner.endswith("(an ended run)"):
                        yield int(name), owner, command.strip()


def _hosts(plan: ClusterPlan, root: Path, where: Where) -> Iterator[Finding]:
    from dtfctl.launchers.preflight import examine

    if any(host.via == SSH for host in plan.remote_hosts) and not shutil.which("ssh"):
        yield Finding(WRONG, "ssh", "is not installed", "apt install openssh-client, or your system's package")
        return
    folder = root / plan.name / "ssh"
    with contextlib.ExitStack() as stack:
        if not folder.exists():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for found in examine(with_own_ssh(plan), folder, where):
            for what, by_hand in found.errors:
                yield Finding(WRONG, found.host, what, f"see: {by_hand}" if by_hand else "")
            for warning in found.warnings:
                yield Finding(DOUBTFUL, found.host, warning)
            if not found.errors and not found.warnings:
                yield Finding(FINE, found.host, "can be used")
