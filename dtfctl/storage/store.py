"""The cluster's memory: one SQLite file that is right after any SIGKILL.

Holds the present run (plan, addresses, environment, outcome), the status of each host and task, and the history of
events. Each field of the run has a row, so that a word about one host does not write the whole plan again.
The daemon writes; the command line reads it when no daemon is there. Private to the user, for the environment may
hold secrets.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from dtfctl import hints
from dtfctl.errors import StoreError, StoreUnwritable
from dtfctl.values import state
from dtfctl.values import task as tasks
from dtfctl.values.history import Happening
from dtfctl.values.hosts import HostStatus
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus
from dtfctl.wire.messages import BadMessage, checked
from dtfctl.wire.typed import from_document, shape_of
from dtfctl.wording import reason_of

SCHEMA_VERSION = 5
EVENTS_MAX = 10_000
EVENTS_OF_TASK = 20
"""So many of the last events are kept: EVENTS_MAX, and more where so many for each task are more."""

UNWRITABLE = ("disk is full", "readonly", "disk I/O", "unable to open")
"""In what SQLite says of a disk that takes nothing more."""

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS run (field TEXT PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS hosts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (name TEXT PRIMARY KEY, position INTEGER NOT NULL, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL, time REAL NOT NULL, task TEXT NOT NULL, what TEXT NOT NULL,
  cause TEXT NOT NULL);
PRAGMA user_version = {SCHEMA_VERSION};
"""


class Store:
    """All writing goes through `save`, one transaction each."""

    def __init__(self, path: Path, wall_clock: Any = time.time) -> None:
        self._path = path
        self.wall_clock = wall_clock
        # A run is a value: the one that was written last need not be written again.
        self._saved_run: Run | None = None
        self._positions: dict[str, int] = {}
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=10)
        except sqlite3.Error as error:
            raise self._error(error) from None
        try:
            path.chmod(0o600)
            self._database.execute("PRAGMA journal_mode = WAL")
            # A process that is killed loses nothing with this; a machine that is switched off loses its processes too.
            self._database.execute("PRAGMA synchronous = NORMAL")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                self._database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            elif version != SCHEMA_VERSION:
                raise self._error(f"it was written by another version of dtfctl (schema {version})")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the words of an error may quote the damage
            self._database.close()
            raise self._error(error) from None
        except StoreError:
            self._database.close()
            raise

    def load(self) -> tuple[Run, dict[str, TaskStatus]] | None:
        """The present or last run, or None before the first."""
        try:
            run_fields = self._database.execute("SELECT field, document FROM run").fetchall()
            if not run_fields:
                return None
            hosts = self._database.execute("SELECT name, document FROM hosts ORDER BY id").fetchall()
            rows = self._database.execute("SELECT document FROM tasks ORDER BY position").fetchall()
            text = _object([*run_fields, ("hosts", _object(hosts))])
            run = from_document(Run, checked(text, shape_of(Run)))
            statuses = [from_document(TaskStatus, checked(text, shape_of(TaskStatus))) for (text,) in rows]
            if any(status.state not in state.STATES for status in statuses):
                raise BadMessage("a task has an unknown state")
            return run, {status.name: status for status in statuses}
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise self._error(error) from None

    def is_over(self) -> bool | None:
        """Of the present or last run, without the rest of it; None before the first."""
        try:
            row = self._database.execute("SELECT document FROM run WHERE field = 'is_over'").fetchone()
            return None if row is None else bool(json.loads(row[0]))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._error(error) from None

    def engine(self) -> str:
        """That of the present or last run, without the rest of it; "" before the first."""
        try:
            row = self._database.execute("SELECT document FROM run WHERE field = 'plan'").fetchone()
            return "" if row is None else str(json.loads(row[0])["engine"])
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise self._error(error) from None

    def begin(self, run: Run, statuses: Iterable[TaskStatus]) -> None:
        """A new run takes the place of the former one. Raises StoreUnwritable, and then all is as it was."""
        with self._writing(run):
            self._database.execute("DELETE FROM tasks")
            self._database.execute("DELETE FROM hosts")
            self._saved_run = None
            self._put(run, statuses)

    def save(
        self,
        run: Run,
        statuses: Iterable[TaskStatus],
        happenings: Iterable[Happening] = (),
        forgotten: Iterable[str] = (),
    ) -> None:
        """What is the same as before is not written again. Raises StoreUnwritable, and then all is as it was."""
        statuses, happenings, names = list(statuses), list(happenings), [(name,) for name in forgotten]
        if run is self._saved_run and not (statuses or happenings or names):
            return
        with self._writing(run):
            self._put(run, statuses)
            self._database.executemany("DELETE FROM tasks WHERE name = ?", names)
            self._database.executemany(
                "INSERT INTO events (run, time, task, what, cause) VALUES (?, ?, ?, ?, ?)",
                [(run.number, item.time, item.task, item.what, item.cause) for item in happenings],
            )
            kept = max(EVENTS_MAX, EVENTS_OF_TASK * len(self._positions))
            self._database.execute("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (kept,))

    def history(self, run: int, after: int = 0) -> list[Happening]:
        """What has happened after the one with this id."""
        query = "SELECT time, task, what, cause, id FROM events WHERE run = ? AND id > ? ORDER BY id"
        return [Happening(*row) for row in self._database.execute(query, (run, after))]

    def happening(self, task: str, what: str, cause: str) -> Happening:
        return Happening(self.wall_clock(), task, what, cause)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _writing(self, run: Run) -> Iterator[None]:
        """One transaction; what it has written is remembered only when it is on disk."""
        positions = self._positions
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            self._saved_run, self._positions = None, positions
            raise self._error(error) from None
        self._saved_run = run

    def _put(self, run: Run, statuses: Iterable[TaskStatus]) -> None:
        if run is not self._saved_run:
            self._put_run(run, self._saved_run)
        self._database.executemany(
            "INSERT INTO tasks VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET document = excluded.document",
            [(status.name, self._positions[status.name], json.dumps(tasks.to_json(status))) for status in statuses],
        )

    def _put_run(self, run: Run, former: Run | None) -> None:
        """What differs from the `former` run, which is on disk; None where that is not known."""
        changed = [
            (each.name, json.dumps(_plain(getattr(run, each.name))))
            for each in fields(run)
            if each.name != "hosts" and (former is None or getattr(former, each.name) is not getattr(run, each.name))
        ]
        self._database.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", changed)
        known: Mapping[str, HostStatus] = {} if former is None else former.hosts
        if run.hosts is not known:
            if former is None:
                self._database.execute("DELETE FROM hosts")
            gone = [(name,) for name in known.keys() - run.hosts.keys()]
            self._database.executemany("DELETE FROM hosts WHERE name = ?", gone)
            self._database.executemany(
                "INSERT INTO hosts (name, document) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET document = excluded.document",
                [(name, json.dumps(_plain(host))) for name, host in run.hosts.items() if known.get(name) is not host],
            )
        if former is None or run.plan is not former.plan or run.former is not former.former:
            names = (*(task.name for task in run.plan.tasks()), *run.leaving)
            self._positions = {name: position for position, name in enumerate(names)}
            rows = [(position, name) for name, position in self._positions.items()]
            self._database.executemany("UPDATE tasks SET position = ? WHERE name = ?", rows)

    def _error(self, error: Exception | str) -> StoreError:
        words = error if isinstance(error, str) else reason_of(error)
        if isinstance(error, sqlite3.OperationalError) and any(sign in words for sign in UNWRITABLE):
            folder = self._path.parent
            to_do = f"make room there: df -h {shlex.quote(str(folder))}"
            return StoreUnwritable(f"{folder} cannot be written: {words}; {to_do}")
        return StoreError(
            f"{self._path}: {words}\n"
            f"The state of this cluster cannot be read. This ends what runs and forgets it: "
            f"{hints.command('down', self._path.parent.name, '--purge')}"
        )


def _plain(value: Any) -> Any:
    """A field of a run as `json.dumps` takes it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _object(items: Iterable[tuple[str, str]]) -> str:
    """A JSON object of texts that are JSON already."""
    return "{" + ", ".join(f"{json.dumps(key)}: {text}" for key, text in items) + "}"
