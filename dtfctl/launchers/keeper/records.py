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
from dtfctl.wire.messages import BadMessage, checked
from dtfctl.wording import reason_and_file

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Mapping, Sequence
    from typing import Any

RECORDS = "records"
PROBE = "room"
SHIM_END_S = 1.0
"""How long a shim may take for the record of an end."""


class Entry:
    """One process of a task. `watch` is its pidfd where this keeper's own shim does not tell of its end;
    `fenced` says why this host has killed it unasked."""

    def __init__(
        self,
        task: str,
        generation: int,
        pid: int,
        start_time: int,
        shim: int,
        shim_start_time: int,
        boot: str,
        at: float,
        address: Sequence[Any] | None = None,
    ) -> None:
        self.task = task
        self.generation = generation
        self.pid = pid
        self.start_time = start_time
        self.shim = shim
        self.shim_start_time = shim_start_time
        self.boot = boot
        self.at = at
        self.address = address
        self.watch = -1
        self.exit: dict[str, Any] = {}
        self.fenced = ""

    def started_message(self) -> dict[str, Any]:
        return {
            "is": "started",
            "task": self.task,
            "generation": self.generation,
            "pid": self.pid,
            "at": self.at,
        }

    def exited_message(self) -> dict[str, Any]:
        return {"is": "exited", "task": self.task, "generation": self.generation, **self.exit}


def record_name(entry: Entry, kind: str) -> str:
    return f"{file_name(entry.task, entry.generation)}.{kind}"


def file_name(task: str, generation: int) -> str:
    return f"{task.replace(':', '-')}.{generation}"


def write_record(name: str, record: dict[str, Any], exclusive: bool = False) -> None:
    path = f"{RECORDS}/{name}"
    aside = f"{RECORDS}/.{name}.{os.getpid()}"
    try:
        with open(aside, "w") as file:
            json.dump(record, file)
        if exclusive:
            os.link(aside, path)
        else:
            os.replace(aside, path)
    except OSError as error:
        # A file that is written to does not name itself, and who reads this is elsewhere.
        error.filename, error.filename2 = os.path.abspath(os.fsdecode(error.filename or aside)), None
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)


def read_record(name: str) -> dict[str, Any] | None:
    """None for one that is not there, or is not what a keeper or shim has written."""
    try:
        with open(f"{RECORDS}/{name}", "rb") as file:
            record: dict[str, Any] = checked(file.read(), EXIT_RECORD if name.endswith(".exit") else START_RECORD)
            return record
    except (OSError, BadMessage):
        return None


def why_no_record() -> str:
    """Why no record can be written now; "" if one can."""
    try:
        write_record(PROBE, {"at": time.monotonic()})
        os.unlink(f"{RECORDS}/{PROBE}")
    except OSError as error:
        return reason_and_file(error)
    return ""


def wait_for_record(entry: Entry) -> dict[str, Any] | None:
    """How it ended; a shim that lives is about to write that, for the task is gone."""
    deadline = time.monotonic() + SHIM_END_S
    while (record := read_record(record_name(entry, "exit"))) is None:
        shim = -1 if is_zombie(entry.shim) else open_pidfd(entry.shim, entry.shim_start_time)
        if shim < 0:
            return read_record(record_name(entry, "exit"))
        os.close(shim)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.001)
    return record


def place_files(task: str, files: Mapping[str, str]) -> dict[str, str]:
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


def remove_files() -> None:
    with contextlib.suppress(OSError):
        for folder, _, names in os.walk(FILES, topdown=False):
            for name in names:
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
