"""The cluster's memory: one SQLite file that is right after any SIGKILL.

Holds the present run (plan, addresses, environment, outcome), the status of each task, and the history of events.
The daemon writes; the command line reads it when no daemon is there. Private to the user, for the environment may
hold secrets.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dtfctl import hints
from dtfctl.errors import StoreError, StoreUnwritable
from dtfctl.values import state
from dtfctl.values import task as tasks
from dtfctl.values.history import Happening
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus
from dtfctl.wire.messages import BadMessage, checked
from dtfctl.wire.typed import from_document, shape_of
from dtfctl.wording import reason_of

SCHEMA_VERSION = 4
EVENTS_MAX = 10_000
UNWRITABLE = ("disk is full", "readonly", "disk I/O", "unable to open")
"""In what SQLite says of a disk that takes nothing more."""

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS run (only INTEGER PRIMARY KEY CHECK (only = 1), document TEXT NOT NULL);
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
        except sqlite3.Error as error:
            self._database.close()
            raise self._error(error) from None
        except StoreError:
            self._database.close()
            raise

    def load(self) -> tuple[Run, dict[str, TaskStatus]] | None:
        """The present or last run, or None before the first."""
        try:
            row = self._database.execute("SELECT document FROM run").fetchone()
            rows = self._database.execute("SELECT document FROM tasks ORDER BY position").fetchall()
            if row is None:
                return None
            run = from_document(Run, checked(row[0], shape_of(Run)))
            statuses = [from_document(TaskStatus, checked(text, shape_of(TaskStatus))) for (text,) in rows]
            if any(status.state not in state.STATES for status in statuses):
                raise BadMessage("a task has an unknown state")
            return run, {status.name: status for status in statuses}
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise self._error(error) from None

    def begin(self, run: Run, statuses: Iterable[TaskStatus]) -> None:
        """A new run takes the place of the former one. Raises StoreUnwritable, and then all is as it was."""
        with self._writing(run):
            self._database.execute("DELETE FROM tasks")
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
            self._database.execute("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (EVENTS_MAX,))

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
            plain = replace(
                run,
                environment=dict(run.environment),
                secrets=dict(run.secrets),
                addresses=dict(run.addresses),
                held=dict(run.held),
                generations=dict(run.generations),
                hosts={name: replace(host, found=dict(host.found)) for name, host in run.hosts.items()},
                moves=dict(run.moves),
            )
            document = json.dumps(asdict(plain))
            self._database.execute("INSERT OR REPLACE INTO run VALUES (1, ?)", (document,))
            order = {task.name: position for position, task in enumerate((*run.plan.tasks(), *run.leaving))}
            if order != self._positions:
                rows = [(position, name) for name, position in order.items()]
                self._database.executemany("UPDATE tasks SET position = ? WHERE name = ?", rows)
                self._positions = order
        self._database.executemany(
            "INSERT INTO tasks VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET document = excluded.document",
            [(status.name, self._positions[status.name], json.dumps(tasks.to_json(status))) for status in statuses],
        )

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
