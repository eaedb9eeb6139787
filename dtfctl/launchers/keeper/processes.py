"""Processes, each known by its pid and start time together, and the ways in which they end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Iterator
    from typing import Any

PIDFD_SIGNAL_PROCESS_GROUP = 4
PIDFD_GET_INFO = 0xC040FF0B
PIDFD_INFO_EXIT = 8
EXIT_INFO_ATTEMPTS = 150


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def stat_of(pid: int) -> tuple[int, int, str]:
    """(parent, start time in clock ticks since boot, state letter)."""
    fields = stat_fields(pid)
    return int(fields[1]), int(fields[19]), fields[0]


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state letter on; the command's name before it may contain anything."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def is_zombie(pid: int) -> bool:
    try:
        return stat_of(pid)[2] in "ZX"
    except (OSError, IndexError):
        return False


def command_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def open_pidfd(pid: int, start_time: int) -> int:
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


def signal_process(pid: int, start_time: int, number: int, flags: int = 0) -> None:
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


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def exit_of(info: os.waitid_result) -> dict[str, Any]:
    how = "code" if info.si_code == os.CLD_EXITED else "signal"
    return {how: info.si_status, "at": time.monotonic()}


def exit_of_other(pid: int, start_time: int, pidfd: int) -> dict[str, Any] | None:
    """How a child of another process has ended; None when that is unknown."""
    for _ in range(EXIT_INFO_ATTEMPTS):
        # Its present parent may reap it late.
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


def status_of_zombie(pid: int, start_time: int) -> int | None:
    """The wait status of a process that has ended and is not reaped; else None."""
    try:
        # To others the kernel shows 0.
        if os.geteuid() not in (0, os.stat(f"/proc/{pid}").st_uid):
            return None
        fields = stat_fields(pid)
        return int(fields[49]) if fields[0] == "Z" and int(fields[19]) == start_time else None
    except (OSError, IndexError):
        return None


def status_by_pidfd(pidfd: int) -> int | None:
    """The wait status of a process once it has been reaped; else None. OSError before Linux 6.15."""
    info = bytearray(64)
    struct.pack_into("Q", info, 0, PIDFD_INFO_EXIT)
    fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
    return struct.unpack_from("i", info, 60)[0] if struct.unpack_from("Q", info)[0] & PIDFD_INFO_EXIT else None

def peer_of(connection: socket.socket) -> tuple[int, int, int]:
    """(pid, user, group) of the process at the other end of a Unix socket."""
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))


def processes_with(markers: set[bytes]) -> Iterator[tuple[int, int, int, str, bool]]:
    """(pid, parent, start time, state, whether its environment has all these lines) of each process that can be
    read."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                is_marked = markers <= set(file.read().split(b"\0"))
            parent, start_time, process_state = stat_of(int(name))
        except (OSError, IndexError):
            continue
        yield int(name), parent, start_time, process_state, is_marked


def wake_at_child_signals() -> tuple[socket.socket, socket.socket]:
    """(socket that can be read when a child has ended, its other end, to be kept open)."""
    wake, waker = socket.socketpair()
    wake.setblocking(False)
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    return wake, waker
