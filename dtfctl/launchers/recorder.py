"""The recorder: beside the keeper it notes when the tasks' logs grow, and gives back the heads of those that are long.

Tasks write straight to their files, and nothing stands in their way; so nobody sees a line go by. Instead the kernel
tells (inotify) that a file has grown, and the recorder appends "at this time it had this size" to a file of times
beside the log. The time of a line is that of the first such entry behind it.

    logs/<task>.<generation>.log      written by the task alone, append-only
    logs/<task>.<generation>.times    HEADER: bytes of a piece, how many older pieces stay; then ENTRY: time, size

The first entry's size is where the log begins. A log that has grown by a piece beyond what is to stay loses its head
up to the end of a line: that entry is moved on disk first, then the kernel gets the blocks back (a punched hole). The
offsets of all that follows stay as they are, so neither the task nor a reader has to do anything.

It is one file that needs only Python's standard library (`python -I -S recorder.py LOG_FOLDER`), is started by the
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

HEADER = struct.Struct("<qq")
ENTRY = struct.Struct("<qq")
"""Microseconds since 1970, bytes."""

MAX_BYTES, COUNT = 64 << 20, 5
"""For a log that nobody has told anything about."""

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


def main() -> None:
    os.chdir(sys.argv[1])
    os.umask(0o077)
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    Recorder().serve()


def begin(log, max_bytes, count):
    """Before a task begins: says how much of its log is to stay. A log that is there already goes on."""
    descriptor = os.open(times_name(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size == 0:
            os.write(descriptor, HEADER.pack(max_bytes, count) + ENTRY.pack(now_us(), 0))
    finally:
        os.close(descriptor)


class Recorder:
    """One thread. All that it knows it reads from the files."""

    def __init__(self):
        self.library = ctypes.CDLL(None, use_errno=True)
        self.logs: dict[str, Log] = {}
        self.watch = self.library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.watch >= 0 and self.library.inotify_add_watch(self.watch, b".", IN_MODIFY | IN_CREATE) < 0:
            os.close(self.watch)
            self.watch = -1

    def serve(self):
        self.look(None)
        for log in self.logs.values():
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

    def changed(self):
        """The names of the logs that may have grown, None: perhaps any."""
        names = set()
        if self.watch < 0:
            return None
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.watch, CHUNK_BYTES):
                position = 0
                while position < len(data):
                    _, mask, _, length = INOTIFY_EVENT.unpack_from(data, position)
                    if mask & IN_Q_OVERFLOW:
                        names = None
                    position += INOTIFY_EVENT.size
                    if names is not None:
                        names.add(os.fsdecode(data[position : position + length].rstrip(b"\0")))
                    position += length
        return names

    def look(self, names):
        for name in sorted(os.listdir(".")) if names is None else names:
            if not name.endswith(".log"):
                continue
            try:
                if name not in self.logs:
                    self.logs[name] = Log(name, self.library)
                if self.logs[name].note():
                    self.make_room(name)
            except FileNotFoundError:
                self.logs.pop(name, None)

    def make_room(self, name):
        """The logs of all the task's processes together stay within what its last one may have."""
        newest_first = sorted(
            (each for each in self.logs if task_of(each) == task_of(name)), key=generation_of, reverse=True
        )
        log = self.logs[newest_first[0]]
        excess = sum(self.logs[each].length for each in newest_first) - log.max_bytes * (log.count + 1)
        for old in newest_first[:0:-1]:
            if excess > 0 or newest_first.index(old) > PROCESSES_KEPT:
                excess -= self.logs[old].length
                if excess < 0 and newest_first.index(old) <= PROCESSES_KEPT:
                    # Not all of it has to go.
                    excess += self.logs[old].length
                    excess -= self.logs[old].drop(excess)
                    continue
                self.logs.pop(old).delete()
        if excess > 0:
            log.drop(max(excess, log.max_bytes))


class Log:
    """One log file. `start` is the first byte that is kept, `size` how far its growth is on record."""

    def __init__(self, name, library):
        self.name = name
        self.library = library
        self.can_punch = True
        if not os.path.exists(times_name(name)):
            begin(name, MAX_BYTES, COUNT)
        with open(times_name(name), "rb") as file:
            data = file.read()
        # The last entry may have been cut off by the machine's end.
        whole = len(data) - (len(data) - HEADER.size) % ENTRY.size
        if len(data) < HEADER.size + ENTRY.size:
            data = HEADER.pack(MAX_BYTES, COUNT) + ENTRY.pack(now_us(), 0)
            self.rewrite(data)
        elif whole < len(data):
            self.rewrite(data[:whole])
        self.max_bytes, self.count = HEADER.unpack_from(data)
        self.start = ENTRY.unpack_from(data, HEADER.size)[1]
        self.size = ENTRY.unpack_from(data[:whole], whole - ENTRY.size)[1]
        self.times = os.open(times_name(name), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    @property
    def length(self):
        return self.size - self.start

    def note(self):
        """Whether the log has grown, or is new."""
        size = os.stat(self.name).st_size
        if size <= self.size:
            return size == 0
        self.size = size
        os.write(self.times, ENTRY.pack(now_us(), size))
        return True

    def drop(self, excess):
        """Forgets at least so many bytes from the start on, up to the end of a line. Returns how many."""
        former, end = self.start, self.line_end(self.start + excess)
        if end is None or not self.can_punch:
            return 0
        with open(times_name(self.name), "rb") as file:
            data = file.read()
        entries = list(ENTRY.iter_unpack(data[HEADER.size :]))
        kept = [(at, size) for at, size in entries if size > end]
        begun = max([entries[0][0], *(at for at, size in entries if size <= end)])
        self.rewrite(data[: HEADER.size] + b"".join(ENTRY.pack(*entry) for entry in [(begun, end), *kept]))
        os.close(self.times)
        self.times = os.open(times_name(self.name), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.start = end
        self.punch(former, end)
        return end - former

    def line_end(self, offset):
        """The first offset behind a line's end from `offset` on; None when there is none yet."""
        with open(self.name, "rb") as file:
            file.seek(offset)
            while chunk := file.read(CHUNK_BYTES):
                if (found := chunk.find(b"\n")) >= 0:
                    return offset + found + 1
                offset += len(chunk)
        return None

    def punch(self, begin, end):
        """In small bites: while the kernel is at one, the task's next write has to wait."""
        if begin >= end:
            return
        with open(self.name, "r+b") as file:
            while begin < end and self.can_punch:
                length = min(PUNCHED_AT_ONCE, end - begin)
                arguments = ctypes.c_int64(begin), ctypes.c_int64(length)
                if self.library.fallocate(file.fileno(), PUNCH_HOLE | KEEP_SIZE, *arguments):
                    # A file system that cannot: its logs grow for as long as their tasks write.
                    self.can_punch = False
                    print(f"{self.name}: {os.strerror(ctypes.get_errno())}: its head stays", file=sys.stderr)
                begin += length

    def rewrite(self, data):
        aside = f".{times_name(self.name)}"
        with open(aside, "wb") as file:
            file.write(data)
        os.replace(aside, times_name(self.name))

    def delete(self):
        os.close(self.times)
        for name in (self.name, times_name(self.name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def times_name(log):
    return log[: -len(".log")] + ".times"


def task_of(name):
    return name.rsplit(".", 2)[0]


def generation_of(name):
    number = name.rsplit(".", 2)[1]
    return int(number) if number.isdecimal() else 0


def now_us():
    return time.time_ns() // 1000


if __name__ == "__main__":
    main()
