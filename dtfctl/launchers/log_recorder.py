"""The recorder: beside the keeper it notes when the tasks' logs grow, and gives back the heads of those that are long.

Tasks write straight to their files, and nothing stands in their way; so nobody sees a line go by. Instead the kernel
tells (inotify) that a file has grown, and the recorder appends "at this time it had this size" to the log's file of
times. The time of a line is that of the first such entry behind it.

    logs/<task>.<generation>.log    written by the task alone, append-only
    times/<task>.<generation>       HEADER: bytes of a piece, how many older pieces stay; then ENTRY: time, size

The first entry's size is where the log begins. A log that has grown beyond what is to stay loses a quarter of a piece
from its head, up to the end of a line: that entry is moved on disk first, then the kernel gets the blocks back (a
punched hole). The offsets of all that follows stay as they are, so neither the task nor a reader has to do anything.

It is one file that needs only Python's standard library (`python -I -S log_recorder.py RUN_DIR`), is started by the
keeper, and ends with it: when its standard input ends. Killed, it loses nothing but the exactness of some times.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Iterable, Sequence

LOGS, TIMES = "logs", "times"
HEADER = struct.Struct("<qq")
ENTRY = struct.Struct("<qq")
"""Microseconds since 1970, bytes."""

MAX_BYTES, COUNT = 64 << 20, 5
"""For a log without settings."""

PROCESSES_KEPT = 100
"""Of the logs of a task's former processes."""

PAUSE_S = 0.05
"""Between two looks at files that grow all the time; the first growth after a pause is seen at once."""

POLL_S = 0.5
"""Where the kernel does not tell of changes."""

PUNCHED_AT_ONCE = 8 << 20
CHUNK_BYTES = 1 << 16
IN_MODIFY, IN_CREATE, IN_Q_OVERFLOW = 0x2, 0x100, 0x4000
PUNCH_HOLE, KEEP_SIZE = 2, 1
INOTIFY_EVENT = struct.Struct("iIII")
LIBRARY = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    os.chdir(sys.argv[1])
    os.umask(0o077)
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    Recorder().serve()


def note_growth(log: str, entries: Iterable[Sequence[int]]) -> None:
    """For a log that comes from another machine, before its bytes do: when it grew there, as [time, size] by this
    machine's clock. Times never go back, and what is on record stays."""
    folder, name = os.path.split(log)
    with open(os.path.join(os.path.dirname(folder), TIMES, name.removesuffix(".log")), "a+b", 0) as file:
        file.seek(-ENTRY.size, os.SEEK_END)
        latest, noted = ENTRY.unpack(file.read(ENTRY.size))
        new = [(max(at, latest), size) for at, size in entries if size > noted]
        file.write(b"".join(ENTRY.pack(*entry) for entry in new))


def begin(log: str, max_bytes: int, count: int) -> None:
    """Before a task begins: says how much of its log is to stay. Nothing changes for a log that is there already."""
    folder, name = os.path.split(log)
    times = os.path.join(os.path.dirname(folder), TIMES)
    os.makedirs(times, exist_ok=True)
    with open(os.path.join(times, name.removesuffix(".log")), "ab", 0) as file:
        if file.tell() == 0:
            file.write(first_entries(max_bytes, count))


class Recorder:
    """One thread. All that it knows it reads from the files; `tasks` are the logs by file name without its end, and
    by generation."""

    def __init__(self) -> None:
        os.makedirs(TIMES, exist_ok=True)
        self.tasks: dict[str, dict[int, Log]] = {}
        self.watch = watch_folder(LOGS)

    def serve(self) -> None:
        self.look(None)
        for log in [log for logs in self.tasks.values() for log in logs.values()]:
            # A recorder that was killed may have come no further than to its decision.
            log.punch(0, log.start)
        descriptors = [0] if self.watch < 0 else [0, self.watch]
        while True:
            ready, _, _ = select.select(descriptors, [], [], POLL_S if self.watch < 0 else None)
            self.look(self.changed())
            if 0 in ready:
                return
            ready, _, _ = select.select([0], [], [], PAUSE_S)
            if ready:
                self.look(None)
                return

    def changed(self) -> set[str] | None:
        """The names of the logs that may have grown, None: perhaps any."""
        names: set[str] = set()
        is_any = False
        if self.watch < 0:
            return None
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.watch, CHUNK_BYTES):
                position = 0
                while position < len(data):
                    _, mask, _, length = INOTIFY_EVENT.unpack_from(data, position)
                    is_any = is_any or bool(mask & IN_Q_OVERFLOW)
                    position += INOTIFY_EVENT.size
                    names.add(os.fsdecode(data[position : position + length].rstrip(b"\0")))
                    position += length
        return None if is_any else names

    def look(self, names: set[str] | None) -> None:
        for name in sorted(os.listdir(LOGS)) if names is None else names:
            task, _, generation = name.removesuffix(".log").rpartition(".")
            if not name.endswith(".log") or not generation.isdecimal():
                continue
            logs = self.tasks.setdefault(task, {})
            try:
                if int(generation) not in logs:
                    logs[int(generation)] = Log(name.removesuffix(".log"))
                    self.forget_oldest(logs)
                if logs[int(generation)].note():
                    self.make_room(logs)
            except FileNotFoundError:
                logs.pop(int(generation), None)

    def forget_oldest(self, logs: dict[int, Log]) -> None:
        for generation in sorted(logs)[:-PROCESSES_KEPT]:
            logs.pop(generation).delete()

    def make_room(self, logs: dict[int, Log]) -> None:
        """The logs of all processes of a task together stay within what its last one may have. Of the one before that a
        piece stays however much the last one writes: it may tell why there is another."""
        newest = logs[max(logs)]
        former = max((generation for generation in logs if generation < max(logs)), default=0)
        excess = sum(log.length for log in logs.values()) - newest.max_bytes * (newest.count + 1)
        for generation in sorted(logs):
            if excess <= 0:
                return
            log = logs[generation]
            least = newest.max_bytes if generation == former and newest.count else 0
            if log is newest:
                log.drop(max(excess, log.max_bytes // 4))
            elif least:
                excess -= log.drop(min(excess, log.length - least)) if log.length > least else 0
            elif log.length <= excess or not (dropped := log.drop(excess)):
                excess -= log.length
                logs.pop(generation).delete()
            else:
                excess -= dropped


class Log:
    """One log file. `start` is the first byte that is kept, `size` how far its growth is on record."""

    def __init__(self, key: str) -> None:
        self.path = f"{LOGS}/{key}.log"
        self.times = f"{TIMES}/{key}"
        self.can_punch = True
        begin(self.path, MAX_BYTES, COUNT)
        data = self.read_times()
        # The last entry may have been cut off by the machine's end.
        whole = len(data) - (len(data) - HEADER.size) % ENTRY.size
        if whole < HEADER.size + ENTRY.size:
            data, whole = first_entries(MAX_BYTES, COUNT), HEADER.size + ENTRY.size
            self.rewrite(data)
        elif whole < len(data):
            self.rewrite(data[:whole])
        self.max_bytes: int
        self.count: int
        self.max_bytes, self.count = HEADER.unpack_from(data)
        self.start: int = ENTRY.unpack_from(data, HEADER.size)[1]
        self.size: int = ENTRY.unpack_from(data, whole - ENTRY.size)[1]

    @property
    def length(self) -> int:
        return self.size - self.start

    def note(self) -> bool:
        """Whether the log has grown."""
        size = os.stat(self.path).st_size
        if size <= self.size:
            return False
        self.size = size
        with open(self.times, "a+b", 0) as file:
            # What came from another machine brought its own times along.
            file.seek(-ENTRY.size, os.SEEK_END)
            if ENTRY.unpack(file.read(ENTRY.size))[1] < size:
                file.write(ENTRY.pack(now_us(), size))
        return True

    def drop(self, excess: int) -> int:
        """Forgets at least so many bytes from the start on, up to the end of a line. Returns how many."""
        former, end = self.start, self.line_end(self.start + excess)
        if end is None or not self.can_punch:
            return 0
        data = self.read_times()
        entries = list(ENTRY.iter_unpack(data[HEADER.size :]))
        kept = [(at, size) for at, size in entries if size > end]
        begun = max([entries[0][0], *(at for at, size in entries if size <= end)])
        self.rewrite(data[: HEADER.size] + b"".join(ENTRY.pack(*entry) for entry in [(begun, end), *kept]))
        self.start = end
        self.punch(former, end)
        return end - former

    def line_end(self, offset: int) -> int | None:
        """The first offset behind a line's end from `offset` on; None when no line has ended yet."""
        with open(self.path, "rb") as file:
            file.seek(offset)
            while chunk := file.read(CHUNK_BYTES):
                if (found := chunk.find(b"\n")) >= 0:
                    return offset + found + 1
                offset += len(chunk)
        return None

    def punch(self, begin: int, end: int) -> None:
        """In small bites: while the kernel is at one, the task's next write has to wait."""
        if begin >= end:
            return
        with open(self.path, "r+b") as file:
            while begin < end and self.can_punch:
                length = min(PUNCHED_AT_ONCE, end - begin)
                if why := give_back(file.fileno(), begin, length):
                    # A file system that cannot: its logs grow for as long as their tasks write.
                    self.can_punch = False
                    print(f"{self.path}: {why}: its head stays", file=sys.stderr)
                begin += length

    def read_times(self) -> bytes:
        with open(self.times, "rb") as file:
            return file.read()

    def rewrite(self, data: bytes) -> None:
        aside = f"{TIMES}/.new"
        with open(aside, "wb") as file:
            file.write(data)
        os.replace(aside, self.times)

    def delete(self) -> None:
        for path in (self.path, self.times):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def watch_folder(folder: str) -> int:
    """An inotify descriptor for what changes in a folder's files, or -1 where the system gives no descriptor."""
    descriptor: int = LIBRARY.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor >= 0 and LIBRARY.inotify_add_watch(descriptor, os.fsencode(folder), IN_MODIFY | IN_CREATE) < 0:
        os.close(descriptor)
        return -1
    return descriptor


def give_back(descriptor: int, begin: int, length: int) -> str:
    """The disk gets these bytes of a file back, and all offsets stay; "" or why it cannot."""
    arguments = ctypes.c_int64(begin), ctypes.c_int64(length)
    if LIBRARY.fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, *arguments):
        return os.strerror(ctypes.get_errno())
    return ""


def first_entries(max_bytes: int, count: int) -> bytes:
    return HEADER.pack(max_bytes, count) + ENTRY.pack(now_us(), 0)


def now_us() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    main()
