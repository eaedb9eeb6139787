"""Processes, each known by its pid and start time together, and the ways in which they end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import struct
import time

PIDFD_SIGNAL_PROCESS_GROUP = 4
PIDFD_GET_INFO = 0xC040FF0B
PIDFD_INFO_EXIT = 8
EXIT_INFO_ATTEMPTS = 150


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


def exit_of(info):
    how = "code" if info.si_code == os.CLD_EXITED else "signal"
    return {how: info.si_status, "at": time.monotonic()}


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
