"""Whether what tasks need is there on this host: their programs, folders, devices, limits. Changes nothing.

`answers` takes questions, each a mapping whose `ask` names one of the functions below and whose other keys are its
arguments, and returns [number of the question, grade, what is wrong, what to do]. The grade is "wrong" for what would
end a task at its start, "doubt" for what may. programs.py has what is asked of a program.
"""

from __future__ import annotations

import glob
import os
import resource
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dtfctl.launchers.agent.places import absolute
from dtfctl.launchers.agent.programs import Finding, interpreter, program

WRONG, DOUBT = "wrong", "doubt"

FREE_BYTES_MIN, FREE_BYTES_FEW = 1 << 20, 1 << 30
"""With less than the first nothing can be begun, with less than the second a checkpoint may not fit."""
MEMORY_FEW = 32 << 20
CPU_GRACE_S = 10
"""What keeper/program.py adds to the hard limit of CPU time."""

LIMITS = {
    "open_files": (resource.RLIMIT_NOFILE, "ulimit -Hn"),
    "processes": (resource.RLIMIT_NPROC, "ulimit -Hu"),
    "memory_bytes": (resource.RLIMIT_DATA, "ulimit -Hd"),
    "core_bytes": (resource.RLIMIT_CORE, "ulimit -Hc"),
    "cpu_s": (resource.RLIMIT_CPU, "ulimit -Ht"),
}
KEYS = {"memory_bytes": "memory", "core_bytes": "core", "cpu_s": "cpu_time"}


def answers(questions: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for number, question in enumerate(questions):
        arguments = {key: value for key, value in question.items() if key != "ask"}
        found += [[number, *answer] for answer in ASKED[question["ask"]](**arguments)]
    return found


def folder(path: str) -> Iterator[Finding]:
    """Whether a program can be started in it."""
    place = absolute(path)
    if not os.path.lexists(place):
        yield WRONG, f"its working_dir {place} does not exist", f"mkdir -p {place}, or another working_dir"
    elif not os.path.isdir(place):
        yield WRONG, f"its working_dir {place} is not a folder", "another working_dir"
    elif not os.access(place, os.X_OK):
        yield WRONG, f"its working_dir {place} cannot be entered (no permission)", f"ls -ld {place}"


def makeable(path: str, name: str) -> Iterator[Finding]:
    """Whether tasks can write to a folder, which they make if need be; `name` is the cluster file's for it."""
    place = absolute(path)
    existing = place
    while not os.path.lexists(existing) and existing != os.path.dirname(existing):
        existing = os.path.dirname(existing)
    do = f"another {name}"
    if not os.path.isdir(existing):
        yield WRONG, f"the {name} {place} cannot be made: {existing} is not a folder", do
        return
    whole = os.fsencode(place)
    longest = max(map(len, whole[len(os.fsencode(existing)) :].split(b"/")))
    if longest > os.pathconf(existing, "PC_NAME_MAX") or len(whole) >= os.pathconf(existing, "PC_PATH_MAX"):
        yield WRONG, f"the {name} {place[:60]}... cannot be made in {existing}: its name is too long", do
        return
    verb = "written to" if existing == place else f"made in {existing}"
    room = os.statvfs(existing)
    free = size_of(room.f_bavail * room.f_frsize)
    if room.f_flag & os.ST_RDONLY:
        yield WRONG, f"the {name} {place} cannot be {verb}: its file system is read-only", do
    elif not os.access(existing, os.W_OK | os.X_OK) or existing.split("/")[1] in ("proc", "sys"):
        yield WRONG, f"the {name} {place} cannot be {verb}: permission denied", f"ls -ld {existing}, or {do}"
    elif room.f_bavail * room.f_frsize < FREE_BYTES_MIN and room.f_blocks:
        yield WRONG, f"only {free} are free for the {name} {place}", f"df -h {existing}"
    elif room.f_files and not room.f_favail:
        yield WRONG, f"the file system of the {name} {place} has no room for more files", f"df -i {existing}"
    elif room.f_bavail * room.f_frsize < FREE_BYTES_FEW and room.f_blocks:
        yield DOUBT, f"only {free} are free for the {name} {place}", f"df -h {existing}"


def limits(limits: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether this user may have them."""
    for key, (number, command) in LIMITS.items():
        wanted = limits.get(key)
        hard = resource.getrlimit(number)[1]
        if wanted is None or hard == resource.RLIM_INFINITY or os.geteuid() == 0:
            continue
        if wanted + (CPU_GRACE_S if key == "cpu_s" else 0) > hard:
            name = KEYS.get(key, key)
            yield WRONG, f"limits.{name} is {wanted}, and this user's hard limit is {hard}", f"{command} shows it"
    most = _most_open_files()
    if (limits.get("open_files") or 0) > most:
        yield WRONG, f"limits.open_files is {limits['open_files']}, and the kernel allows {most}", "sysctl fs.nr_open"
    if limits.get("memory_bytes") is not None and limits["memory_bytes"] < MEMORY_FEW:
        size, least_size = size_of(limits["memory_bytes"]), size_of(MEMORY_FEW)
        yield DOUBT, f"limits.memory is {size}: Python may not start with so little", f"at least {least_size}"
    nice = limits.get("nice")
    least = 20 - resource.getrlimit(resource.RLIMIT_NICE)[0]
    if nice is not None and nice < os.getpriority(os.PRIO_PROCESS, 0) and nice < least and os.geteuid() != 0:
        yield WRONG, f"limits.nice is {nice}, and only root may use negative values", "0 to 19, or ulimit -e"


def own_limits() -> Iterator[Finding]:
    """What tasks inherit from this session."""
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size != resource.RLIM_INFINITY:
        yield DOUBT, f"files are limited to {size_of(size)}, so larger checkpoints fail", "ulimit -f unlimited"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 256:
        yield DOUBT, f"a process may have {hard} open files and sockets only", "ulimit -Hn"


def cpus(ids: Sequence[int]) -> Iterator[Finding]:
    there = sorted(os.sched_getaffinity(0))
    missing = [core for core in ids if core not in there]
    if missing:
        yield (
            DOUBT,
            f"asks for {_count(len(ids), 'core')} ({_ranges(ids)}), and the machine has {len(there)} "
            f"({_ranges(there)}), which are shared",
            f"cpus: {len(there)} at most for all tasks of a host, or no cpus",
        )


def gpus(ids: Sequence[int]) -> Iterator[Finding]:
    there = gpu_count()
    missing = [number for number in ids if number >= there]
    if missing:
        has = "has none" if not there else f"has {there} (0-{there - 1})"
        yield (
            DOUBT,
            f"asks for {_count(len(ids), 'GPU')} ({_ranges(ids)}), and the machine {has} (/dev/nvidia*)",
            f"gpus: {there or 'none'}, or a host with that many",
        )


def gpu_count() -> int:
    return len(glob.glob("/dev/nvidia[0-9]*")) or len(glob.glob("/proc/driver/nvidia/gpus/*"))


def _most_open_files() -> int:
    try:
        with open("/proc/sys/fs/nr_open") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 1 << 62


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _ranges(numbers: Iterable[int]) -> str:
    """0-3,6"""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def size_of(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


ASKED: dict[str, Any] = {
    "interpreter": interpreter,
    "program": program,
    "folder": folder,
    "makeable": makeable,
    "limits": limits,
    "own_limits": own_limits,
    "cpus": cpus,
    "gpus": gpus,
}
