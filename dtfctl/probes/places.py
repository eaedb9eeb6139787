"""The places of durable parameter servers (`durability: host`): their states, and the orders that they need from here.

A place is asked over its second port, one line of JSON each way (runtime/durability.md has the words). The places agree
among themselves which one serves; a loss of the primary needs nothing from here. After the end of a backup the primary
waits for proof that no other process may serve: `PlaceWatch` gives that proof when a keeper has seen the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dtfctl.plan.backups import other_place, peer_of
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values import hosts, state
from dtfctl.values.task import TaskStatus

LOOK_S = 1.0
ANSWER_S = 2.0
ORDER_S = 20.0
ATTEMPT_PAUSE_S = 0.02
ATTEMPTS = 150
"""So often it is looked whether a primary waits, after the end of the other place."""
LINE_BYTES_MAX = 1 << 16
BYTES_SHOWN_MIN = 1_000_000


@dataclass(frozen=True)
class PlaceState:
    """What a place says of itself."""

    role: str
    mode: str = ""
    is_paused: bool = False
    has_right: bool = False
    term: int = 0
    backup: str = ""
    bytes_left: int = 0
    reason: str = ""
    bytes: int = 0
    lag: int = 0

    @property
    def is_ready(self) -> bool:
        return (self.role == "primary" and not self.is_paused) or (self.role == "backup" and self.has_right)

    def __str__(self) -> str:
        """For tables and events, without what changes all the time: the size of a backup counts when it is filled."""
        size = f", {self.bytes / 1e6:,.0f} MB" if self.bytes >= BYTES_SHOWN_MIN else ""
        if self.role == "primary":
            with_backup = {"in sync": "backup in sync", "filling": "a backup is filled"}.get(self.backup, "no backup")
            paused = f", paused: {self.reason}" if self.is_paused else ""
            return f"primary{size}, term {self.term}, {with_backup}{paused}"
        if self.role == "backup":
            if self.has_right:
                return f"backup{size}, term {self.term}, in sync"
            return f"backup, term {self.term}, being filled"
        return f"{self.role}: {self.reason}" if self.reason else self.role


class PlaceError(Exception):
    """A place does not answer, or refuses an order; the text says which."""


async def ask(
    address: str, question: Mapping[str, object], timeout_s: float = ANSWER_S, tls: ssl.SSLContext | None = None
) -> PlaceState:
    """Asks the second port of a place. Raises PlaceError."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        return await asyncio.wait_for(_ask(host, int(port), question, tls), timeout_s)
    except asyncio.TimeoutError:
        raise PlaceError(f"{address} does not answer within {timeout_s:g}s") from None
    except (OSError, EOFError, asyncio.IncompleteReadError):
        raise PlaceError(f"{address} is not open yet") from None
    except (ValueError, KeyError, TypeError, asyncio.LimitOverrunError):
        raise PlaceError(f"{address} is used by another program") from None


async def _ask(host: str, port: int, question: Mapping[str, object], tls: ssl.SSLContext | None) -> PlaceState:
    reader, writer = await asyncio.open_connection(
        host, port, limit=LINE_BYTES_MAX, ssl=tls, server_hostname=host if tls else None
    )
    try:
        writer.write(json.dumps({"dtf": 1, **question}).encode() + b"\n")
        reply: Any = json.loads(await reader.readuntil(b"\n"))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    found = _read(reply["state"])
    if not reply["ok"]:
        raise PlaceError(str(reply.get("error", "refused"))[:500])
    return found


def _read(said: Any) -> PlaceState:
    if not isinstance(said, dict) or not isinstance(said.get("backup") or {}, dict):
        raise TypeError("the state is not an object")
    backup = said.get("backup") or {}
    return PlaceState(
        str(said["role"]),
        str(said.get("mode", "")),
        said.get("is_paused") is True,
        said.get("has_right") is True,
        int(said.get("term", 0)),
        str(backup.get("state", "")),
        int(backup.get("bytes_left", 0)),
        str(said.get("reason", ""))[:300],
        int(said.get("bytes", 0)),
        int(backup.get("lag", 0)),
    )


def _has_ended(status: TaskStatus) -> bool:
    """Whether a keeper has seen the end of its process. One that outlived SIGKILL, or was lost, may still live."""
    found = status.exit
    return status.generation > 0 and found is not None and (found.code is not None or found.signal is not None)


class PlaceWatch:
    """Looks at all places of a run, and gives primaries the proof that their backups have ended.

    `wake` is called when the status of a task has changed. One asyncio task for each place.
    """

    def __init__(self, supervisor: Supervisor, wake: Callable[[], None], tls: ssl.SSLContext | None) -> None:
        self._supervisor = supervisor
        self._wake = wake
        self._tls = tls
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._proving: dict[str, asyncio.Task[None]] = {}

    def look_after(self, names: Iterable[str]) -> None:
        """Begins and ends looks as the states of these tasks now demand."""
        run = self._supervisor.run
        for name in names:
            status = self._supervisor.statuses.get(name)
            if status is None or not run.plan.has_task(name) or peer_of(name) not in run.addresses:
                self._end(name)
                continue
            other = other_place(run.plan, name)
            if status.state in state.WITH_PROCESS and not self._is_fenced(name):
                if name not in self._looking:
                    self._looking[name] = asyncio.ensure_future(self._look(name))
            elif other and not run.outcome and (self._is_fenced(name) or _has_ended(status)):
                self._end(name)
                present = self._proving.get(name)
                if present is None or present.done():
                    self._proving[name] = asyncio.ensure_future(self._prove(name, other, status.generation))

    def close(self) -> None:
        for task in (*self._looking.values(), *self._proving.values()):
            task.cancel()

    def _end(self, name: str) -> None:
        present = self._looking.pop(name, None)
        if present is not None:
            present.cancel()

    def _is_fenced(self, name: str) -> bool:
        """Whether the host of a task is lost, and has ended its tasks by now because it heard nothing."""
        run = self._supervisor.run
        host = run.hosts.get(run.task(name).host.name)
        return run.plan.fence_after_s > 0 and host is not None and host.state == hosts.LOST

    async def _look(self, name: str) -> None:
        while True:
            status = self._supervisor.statuses.get(name)
            address = self._supervisor.run.addresses.get(peer_of(name), "")
            with contextlib.suppress(PlaceError):
                found = await ask(address, {"ask": "state"}, tls=self._tls)
                if status is not None and self._supervisor.note_place(name, status.generation, str(found)):
                    self._wake()
            await asyncio.sleep(LOOK_S)

    async def _prove(self, ended: str, other: str, generation: int) -> None:
        """Its process has ended, so it holds no right: the other place may go on alone, if it waits for this one."""
        for _ in range(ATTEMPTS):
            status = self._supervisor.statuses.get(ended)
            if status is None or status.generation != generation:
                return  # the new process of the place connects by itself
            address = self._supervisor.run.addresses.get(peer_of(other), "")
            with contextlib.suppress(PlaceError):
                found = await ask(address, {"ask": "state"}, tls=self._tls)
                if found.role == "primary" and found.mode == "alone":
                    return
                if found.role == "primary" and found.is_paused:
                    await ask(address, {"ask": "alone", "term": found.term, "fenced": True}, tls=self._tls)
                    self._supervisor.note_event(other, "place", f"goes on without its backup: {ended} has ended")
                    self._wake()
                    return
            await asyncio.sleep(ATTEMPT_PAUSE_S)
