"""Rows from the partitions of an RDD to the nodes' bounded queues, and results back.

A partition is fed over one connection: a block of rows, then the node's answer when they are in its queue, so a node
that is slow holds its feeders up. In a partition for inference the answers bring the results.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection
from typing import Any

from dtfctl.spark.registry import AT, ENDED, FAILED, Address, Server, ask, connect

QUEUE_ROWS_MAX = 1024
BLOCK_ROWS = 128
LOOK_S = 0.05
ASK_S = 0.2

INPUT, OUTPUT = "input", "output"
TERMINATING, STOPPED = "terminating", "stopped"
MORE, STOP, ERROR = "more", "stop", "error"


class EndPartition:
    """In a queue: the rows of a partition for inference end here."""


class FeedError(Exception):
    """Rows could not be fed, or results are not there."""


class Manager:
    """`ctx.mgr`: a node's queues, by name, and values that its map_fun may set. `state` is `terminating` after
    DataFeed.terminate."""

    def __init__(self, queues: Iterable[str] = (INPUT, OUTPUT, ERROR)) -> None:
        self._queues: dict[str, queue.Queue[Any]] = {
            name: queue.Queue(0 if name == OUTPUT else QUEUE_ROWS_MAX) for name in queues
        }
        self._values: dict[str, Any] = {"state": "running"}

    def get_queue(self, name: str) -> queue.Queue[Any]:
        return self._queues[name]

    def get(self, key: str) -> Any:
        return self._values.get(key)

    def set(self, key: str, value: object) -> None:
        self._values[key] = value

    @property
    def takes_rows(self) -> bool:
        return self.get("state") not in (TERMINATING, STOPPED)


class FeedServer:
    """A node's end."""

    def __init__(self, manager: Manager, host: str, key: bytes) -> None:
        self._manager = manager
        self._inference = threading.Lock()
        self._server = Server(host, key, self._take)

    @property
    def address(self) -> Address:
        return self._server.address

    def close(self) -> None:
        self._server.close()

    def _take(self, connection: Connection) -> None:
        do, name, timeout_s = connection.recv()
        try:
            if do == "train":
                self._train(connection, name, timeout_s)
            elif do == "infer":
                # Results have no names: those of two partitions must not mix.
                with self._inference:
                    self._infer(connection, name, timeout_s)
            elif do == "close":
                self._put(name, [None], timeout_s)
                connection.send((MORE, []))
        except FeedError as error:
            connection.send((ERROR, str(error)))

    def _train(self, connection: Connection, name: str, timeout_s: float) -> None:
        rows = self._manager.get_queue(name)
        while (block := connection.recv()) is not None:
            connection.send((MORE if self._put(name, block, timeout_s) else STOP, []))
        # A partition is done when its rows are: until then Spark would feed it again if this node should die.
        _until(lambda: not rows.unfinished_tasks or not self._manager.takes_rows, timeout_s, "the rows to be taken")
        connection.send((MORE, []))

    def _infer(self, connection: Connection, name: str, timeout_s: float) -> None:
        results = self._manager.get_queue(OUTPUT)
        sent = got = 0

        def there() -> list[Any]:
            nonlocal got
            found = []
            with contextlib.suppress(queue.Empty):
                while True:
                    found.append(results.get_nowait())
            got += len(found)
            return found

        while (block := connection.recv()) is not None:
            if not self._put(name, block, timeout_s):
                raise FeedError("the node has stopped taking rows")
            sent += len(block)
            connection.send((MORE, there()))
        self._put(name, [EndPartition()], timeout_s)
        deadline = time.monotonic() + timeout_s
        rest = there()
        while got < sent:
            if not self._manager.takes_rows:
                raise FeedError(f"the node has stopped after {got} results for {sent} rows")
            if time.monotonic() > deadline:
                raise FeedError(f"the node gave {got} results for {sent} rows within {timeout_s:g}s")
            with contextlib.suppress(queue.Empty):
                rest.append(results.get(timeout=LOOK_S))
                got += 1
        if got > sent:
            raise FeedError(f"the node gave {got} results for {sent} rows; batch_results must get one for each")
        connection.send((MORE, rest))

    def _put(self, name: str, rows: Iterable[Any], timeout_s: float) -> bool:
        """Whether the node takes rows at all."""
        target = self._manager.get_queue(name)
        deadline = time.monotonic() + timeout_s
        for row in rows:
            while True:
                if not self._manager.takes_rows:
                    return False
                try:
                    target.put(row, timeout=LOOK_S)
                    break
                except queue.Full:
                    if time.monotonic() > deadline:
                        raise FeedError(f"the node has taken no rows for {timeout_s:g}s") from None
        return True


def _until(condition: Any, timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise FeedError(f"waited {timeout_s:g}s for {what}")
        time.sleep(LOOK_S)


@dataclass(frozen=True)
class Feeder:
    """A partition's end, copied to executors: of `tasks` each partition has one, in turn."""

    registry: Address
    key: bytes
    tasks: tuple[str, ...]
    timeout_s: float
    queue: str = INPUT

    def train(self, partition: int, rows: Iterable[Any]) -> None:
        """Rows of nodes that have all ended are dropped."""
        found = self._node(partition)
        if found is None:
            for _ in rows:
                pass
            return
        task, address = found
        for _ in self._feed("train", task, address, rows):
            pass

    def infer(self, partition: int, rows: Iterable[Any]) -> Iterator[Any]:
        found = self._node(partition)
        if found is None:
            raise FeedError("all workers have ended, and none can infer")
        return self._feed("infer", *found, rows)

    def _node(self, partition: int) -> tuple[str, Address] | None:
        """The partition's task, or the next one that has not ended."""
        first = partition % len(self.tasks)
        deadline = time.monotonic() + self.timeout_s
        for task in (*self.tasks[first:], *self.tasks[:first]):
            while (reply := self._where(task))[0] != ENDED:
                if reply[0] == AT and reply[1] is not None:
                    return task, reply[1]
                if time.monotonic() > deadline:
                    raise FeedError(f"{task} does not run within {self.timeout_s:g}s")
                time.sleep(ASK_S)
        return None

    def _where(self, task: str) -> tuple[str, Any]:
        reply: tuple[str, Any] = ask(self.registry, self.key, "where", task)
        if reply[0] == FAILED:
            raise FeedError(reply[1])
        return reply

    def _feed(self, do: str, task: str, address: Address, rows: Iterable[Any]) -> Iterator[Any]:
        try:
            with connect(address, self.key) as connection:
                connection.send((do, self.queue, self.timeout_s))
                iterator = iter(rows)
                is_wanted = True
                while is_wanted and (block := list(itertools.islice(iterator, BLOCK_ROWS))):
                    connection.send(block)
                    kind, value = connection.recv()
                    if kind == ERROR:
                        raise FeedError(f"{task}: {value}")
                    is_wanted = kind == MORE
                    yield from value
                connection.send(None)
                kind, value = connection.recv()
                if kind == ERROR:
                    raise FeedError(f"{task}: {value}")
                yield from value
        except (OSError, EOFError, AuthenticationError):
            self._wait_for_change(task, address)
            raise FeedError(f"{task} was lost while it was fed; Spark feeds the partition again") from None

    def _wait_for_change(self, task: str, address: Address) -> None:
        """Spark repeats a failed partition at once, and only some times: the node must be there again by then."""
        deadline = time.monotonic() + self.timeout_s
        while self._where(task) == (AT, address) and time.monotonic() < deadline:
            time.sleep(ASK_S)
