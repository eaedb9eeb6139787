"""How a fork becomes a task's program, and what a fork owes to its parent."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

OWN_LIMITS = resource.getrlimit(resource.RLIMIT_NOFILE)
"""What the tasks get; the keeper itself takes all that it may have."""

CPU_GRACE_S = 10
DEFAULT_SIGNALS = (
    signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM
)  # fmt: skip


def become(
    argv: list[str],
    environment: Mapping[str, str],
    working_dir: str,
    log: str,
    limits: Mapping[str, Any],
    error_writer: int,
) -> None:
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
        # Python's message when a limit is above the one that this user may have.
        os.write(error_writer, f"could not be started: {what}: {error}".encode())
    except OSError as error:
        os.write(error_writer, f"could not be started: {what}: {os.strerror(error.errno or 0)}".encode())


def limiters(limits: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
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
            yield name, functools.partial(resource.setrlimit, number, (most, hard))
    nice = limits.get("nice")
    if nice is not None:
        yield "limits.nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, nice)
    if limits.get("cpus"):
        available = sorted(os.sched_getaffinity(0))
        chosen = {core if core in available else available[core % len(available)] for core in limits["cpus"]}
        yield "cpus", lambda: os.sched_setaffinity(0, chosen)


def default_signals() -> None:
    for number in DEFAULT_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def leave(*kept: int) -> None:
    """In a fork: of the keeper's descriptors only the standard ones stay open, and `kept`."""
    signal.set_wakeup_fd(-1)
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, 1 << 20)


@contextlib.contextmanager
def dying() -> Iterator[None]:
    """Whatever happens in a fork, it never returns into the keeper's loop."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(127)
