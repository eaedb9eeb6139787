"""What is on disk of each process of a task: small files that are complete or absent.

RUN_DIR/records/<task>.<generation>.start and .exit; RUN_DIR/files/<task>/ has what a task is given as files.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from dtfctl.launchers.keeper import FILES
from dtfctl.launchers.keeper.processes import is_zombie, open_pidfd
from dtfctl.launchers.keeper.protocol import EXIT_RECORD, START_RECORD
from dtfctl.messages import BadMessage, checked

RECORDS = "records"
GUARD_END_S = 1.0
"""How long a guard may take for the record of an end."""


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


def record_name(entry, kind):
    return f"{file_name(entry.task, entry.generation)}.{kind}"


def file_name(task, generation):
    return f"{task.replace(':', '-')}.{generation}"


def write_record(name, record, exclusive=False):
    path = f"{RECORDS}/{name}"
    aside = f"{RECORDS}/.{name}.{os.getpid()}"
    try:
        with open(aside, "w") as file:
            json.dump(record, file)
        if exclusive:
            os.link(aside, path)
        else:
            os.replace(aside, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)


def read_record(name):
    """None for one that is not there, or is not what a keeper or guard has written."""
    try:
        with open(f"{RECORDS}/{name}", "rb") as file:
            return checked(file.read(), EXIT_RECORD if name.endswith(".exit") else START_RECORD)
    except (OSError, BadMessage):
        return None


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
