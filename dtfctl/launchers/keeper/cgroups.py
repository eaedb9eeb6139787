"""A cgroup of version 2 for the run and one below it for each task, where there is one that this user may write.

A cgroup is known by its folder; "" stands for none, and everything here takes that too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct

LIBRARY = ctypes.PyDLL(None, use_errno=True)
SYSCALL_CLONE3 = 435
CLONE_INTO_CGROUP = 1 << 33


def make_cgroup(name: str, above: str | None = None) -> str:
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


def own_cgroup() -> str:
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file, open("/proc/self/mounts") as mounts:
        path = next((line[3:].strip() for line in file if line.startswith("0::")), "")
        mount = next((fields[1] for fields in map(str.split, mounts) if fields[2] == "cgroup2"), "")
        if path and mount:
            return (mount + path).rstrip("/")
    return ""


def fork_into(cgroup: str) -> int:
    """A fork that begins in a cgroup ("": in that of its parent). Moving there later would cost it some ten
    milliseconds, for which the kernel waits until all its cores have taken notice."""
    if not cgroup:
        return os.fork()
    with contextlib.suppress(OSError):
        folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Python's own fork has precautions for other threads besides; the shim has none.
            arguments = struct.pack("11Q", CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
            number, size = ctypes.c_long(SYSCALL_CLONE3), ctypes.c_size_t(len(arguments))
            pid: int = LIBRARY.syscall(number, arguments, size)
        finally:
            os.close(folder)
        if pid >= 0:
            return pid
    # Before Linux 5.7, or where a security policy forbids the call.
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError), open(f"{cgroup}/cgroup.procs", "w") as file:
            file.write("0")
    return pid


def kill_cgroup(folder: str) -> None:
    """All of it at once (since Linux 5.14), however often it has forked."""
    if folder:
        with contextlib.suppress(OSError), open(f"{folder}/cgroup.kill", "w") as file:
            file.write("1")


def remove_cgroup(folder: str) -> None:
    """What is still in it is killed; if that takes its time, the folder stays until the end of the run."""
    if not folder or remove_folder(folder):
        return
    kill_cgroup(folder)
    for name in folders_in(folder):
        remove_folder(f"{folder}/{name}")
    remove_folder(folder)


def remove_folder(folder: str) -> bool:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return True
    return False


def folders_in(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    return []


def members(folder: str) -> set[int]:
    """The processes in it and the folders below it."""
    found = set()
    if folder:
        for name in ("", *folders_in(folder)):
            with contextlib.suppress(OSError), open(f"{folder}/{name}/cgroup.procs") as file:
                found |= set(map(int, file))
    return found


def is_populated(folder: str) -> bool:
    """Whether any process is in it or below it, one that is just ending too."""
    if folder:
        with contextlib.suppress(OSError), open(f"{folder}/cgroup.events") as file:
            return "populated 1" in file.read()
    return False


def kills_for_memory() -> int:
    """How often this machine's kernel has killed something for want of memory."""
    with contextlib.suppress(OSError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
