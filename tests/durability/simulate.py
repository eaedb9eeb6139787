"""A deterministic simulation of durable parameter servers: the real code, a fake network and a fake clock.

    python -m tests.durability.simulate --hours 2          random schedules; the seeds of failures are printed
    python -m tests.durability.simulate --seed 17          one schedule, with its events

One thread runs everything. Real are the worker with its executor, queues, tables and steps, the records and the journal
on files, and the master's slots and its decision to send a step again. Clients are generators; the network delivers,
loses, repeats and delays their requests and the answers, in an order that follows from the seed. A kill comes between
two events, or at any line of the code that writes: the folder is copied there, what the process does afterwards counts
for nothing, and the next process has the copy.

Each confirmed step must count once at each ps, a step of a client that died once or not at all; each number of a queue
comes once and in order.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dtf as tf
from dtf.run.durability import (
    durable_objects,
    durable_resources,
    durable_variable,
    journal,
    once,
    transaction_lock,
)
from dtf.run.interfaces import Value
from dtf.run.master import durable_steps
from dtf.run.master.durable_steps import DurableSteps, Recovery, Slot
from tests.durability.tasks import Graphs, Task

__all__ = ["World", "compiled_graphs", "simulate"]

_TRACED = {
    module.__file__
    for module in (durable_objects, durable_resources, durable_variable, journal, once, transaction_lock)
}
_SERVERS = 2
_EVENTS_MAX = 5000
_LOSSES_OF_STEP_MAX = 2
"""A master gives a step up when it loses connections again and again although nothing has restarted."""
_Client = Generator[None, None, None]


class Message(NamedTuple):
    """A request, or an answer, that has been sent: `deliver()` brings it, `lose()` breaks its connection."""

    what: str
    deliver: Callable[[], None]
    lose: Callable[[], None] | None


class World:
    """One schedule. Everything random comes from `draw`.

    Attributes:
      wrong: what contradicts the promise, in words.
      log: the events.
    """

    def __init__(self, seed: int, folder: Path, graphs: Graphs) -> None:
        self.draw = random.Random(seed)
        self.wrong: list[str] = []
        self.log: list[str] = []
        self.folder = folder
        self.network: list[Message] = []
        self.kills_left = self.draw.randrange(5)
        self._graphs = graphs
        self._copies = 0
        self._servers = [Server(self, number) for number in range(_SERVERS)]
        self.lineages = [server.start() for server in self._servers]

    def server(self, number: int) -> Server:
        return self._servers[number]

    def new_task(self, folder: Path) -> Task:
        return Task(folder, self._graphs)

    def new_folder(self) -> Path:
        self._copies += 1
        return self.folder / f"{self._copies}"

    def run(self, clients: Iterator[_Client]) -> None:
        """Runs the clients to their ends."""
        waiting = list(clients)
        for _ in range(_EVENTS_MAX):
            if not waiting:
                break
            choice = self.draw.random()
            if choice < 0.03 and self.kills_left:
                self.server(self.draw.randrange(_SERVERS)).kill()
            elif choice < 0.5 and self.network:
                self._network_event()
            else:
                client = waiting[self.draw.randrange(len(waiting))]
                if next(client, client) is client:
                    waiting.remove(client)
        else:
            self.wrong.append(f"nothing ends after {_EVENTS_MAX} events")
        while self.network:  # late messages, when all is over
            self._network_event()

    def _network_event(self) -> None:
        message = self.network.pop(self.draw.randrange(len(self.network)))
        fate = self.draw.random()
        if fate < 0.08 and message.lose is not None:
            self.log.append(f"lost: {message.what}")
            message.lose()
            if fate < 0.05:  # the connection broke, but the message may still come
                self.network.append(message._replace(lose=None))
            return
        if fate > 0.95:
            self.network.append(message._replace(what=f"again {message.what}", lose=None))
        self.log.append(message.what)
        message.deliver()

    def close(self) -> None:
        for server in self._servers:
            server.kill(is_counted=False)


class Server:
    """A ps: a process, or none, and the folder that outlives it."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._folder = world.new_folder()
        self.number = number
        self.incarnation = 0
        self.task: Task | None = None

    def start(self) -> str:
        """Starts a process if none runs; the lineage of its state."""
        if self.task is None:
            self.incarnation += 1
            self.task = self._world.new_task(self._folder)
        return self.task.resources.lineage

    def kill(self, is_counted: bool = True) -> None:
        """Kills the process, between two events."""
        if self.task is None:
            return
        if is_counted:
            self._world.log.append(f"kill of ps {self.number}")
            self._world.kills_left -= 1
        self._take_over(self._copied() if is_counted else self._folder)

    def receive(
        self, session: str, step_id: int, name: str, feeds: Mapping[str, Value], done: Callable[..., None]
    ) -> None:
        """A request comes: done(values) or done(error=...), by and by, unless the process is killed before."""
        task, incarnation = self.task, self.incarnation
        if task is None:
            done(error=tf.errors.UnavailableError(None, None, "connection refused"))
            return

        def answer(values: object = None, error: tf.errors.OpError | None = None) -> None:
            if self.incarnation == incarnation and self.task is task:
                done(values, error)

        line = self._world.draw.randrange(1, 500) if self._world.kills_left and self._world.draw.random() < 0.2 else 0
        if line:
            self._killed_at(line, lambda: task.send(session, step_id, name, feeds, answer))
        else:
            task.send(session, step_id, name, feeds, answer)

    def _killed_at(self, line: int, act: Callable[[], None]) -> None:
        """Acts, and kills the process when the code that writes has come to its `line`th line, or at the end."""
        task, self.task = self.task, None  # what it answers now does not leave
        assert task is not None
        left, copy = line, None

        def trace(frame: object, event: str, _: object) -> object:
            nonlocal left, copy
            if frame.f_code.co_filename not in _TRACED:
                return None
            left -= 1
            if left == 0:
                copy = self._copied()
                self._world.log.append(
                    f"kill of ps {self.number} at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                )
            return trace

        sys.settrace(trace)
        try:
            act()
        finally:
            sys.settrace(None)
        if copy is None:
            copy = self._copied()
            self._world.log.append(f"kill of ps {self.number} after its event")
        self._world.kills_left -= 1
        self.task = task
        self._take_over(copy)

    def _copied(self) -> Path:
        copy = self._world.new_folder()
        shutil.copytree(self._folder, copy)
        return copy

    def _take_over(self, folder: Path) -> None:
        assert self.task is not None
        self.task.close()
        if folder != self._folder:
            shutil.rmtree(self._folder)
        self.task, self._folder = None, folder


class Tasks:
    """What a master knows of the tasks, as `Recovery` asks for it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._joined = [world.server(number).incarnation for number in range(_SERVERS)]

    def forget_restarted(self, timeout_s: float) -> bool:
        """See `SessionTasks.forget_restarted`. The clock goes on until all servers run."""
        lineages = [self._world.server(number).start() for number in range(_SERVERS)]
        if lineages != self._world.lineages:
            raise tf.errors.AbortedError(None, None, "another lineage")
        now = [self._world.server(number).incarnation for number in range(_SERVERS)]
        has_changed, self._joined = now != self._joined, now
        return has_changed


class Client:
    """A master with one session."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.session = f"client-{number}"
        self.slots = DurableSteps()
        self.slots._session = number
        self.recovery = Recovery(Tasks(world))

    def run(
        self, parts: Mapping[int, tuple[str, Mapping[str, Value]]], outcome: dict[int, list[np.ndarray]]
    ) -> _Client:
        """One step, with a part for each ps; `outcome` gets what they fetch. As `MasterSession` runs it."""
        with self.slots.slot() as slot:
            losses = 0
            while True:
                seen = self.recovery.count
                answers = Answers()
                for number, (name, feeds) in parts.items():
                    self._send(number, slot, name, feeds, answers, losses < _LOSSES_OF_STEP_MAX)
                while answers.error is None and len(answers.values) < len(parts):
                    yield
                if answers.error is None:
                    outcome.update(answers.values)
                    return
                losses += answers.was_lost
                for number in parts:
                    self._stop(number, slot.step_id)
                if not self.recovery.may_go_on(answers.error, slot, seen, None):
                    raise answers.error

    def _send(
        self, number: int, slot: Slot, name: str, feeds: Mapping[str, Value], answers: Answers, may_be_lost: bool
    ) -> None:
        world, step_id = self.world, slot.step_id
        what = f"{self.session} {name} to ps {number}, attempt {slot.attempt}"
        connection = world.server(number).incarnation

        def lose() -> None:
            answers.fail(tf.errors.UnavailableError(None, None, f"lost: {what}"), True)

        def done(values: object = None, error: tf.errors.OpError | None = None) -> None:
            def bring() -> None:
                if error is not None:
                    answers.fail(error, False)
                else:
                    answers.values.setdefault(number, values)

            world.network.append(Message(f"answer of {what}", bring, lose if may_be_lost else None))

        was_delivered = False

        def deliver() -> None:
            nonlocal was_delivered
            server = world.server(number)
            if server.incarnation != connection:
                lose()
            server.receive(self.session, step_id, name, feeds, _nobody if was_delivered else done)
            was_delivered = True

        world.network.append(Message(what, deliver, lose if may_be_lost else None))
        self._watch(number, connection, lose, answers)

    def _watch(self, number: int, connection: int, lose: Callable[[], None], answers: Answers) -> None:
        """A process that dies breaks its connections."""
        answers.connections.append((self.world.server(number), connection, lose))

    def _stop(self, number: int, step_id: int) -> None:
        def deliver() -> None:
            task = self.world.server(number).task
            if task is not None:
                task.stop(step_id)

        self.world.network.append(Message(f"{self.session} stops a step at ps {number}", deliver, lambda: None))


class Answers:
    """Of one attempt.

    Attributes:
      values: by ps.
      error: the first one.
      was_lost: whether a connection was cut.
      connections: (server, incarnation, call when that is gone).
    """

    def __init__(self) -> None:
        self.values: dict[int, list[np.ndarray]] = {}
        self._error: tf.errors.OpError | None = None
        self.was_lost = False
        self.connections: list[tuple[Server, int, Callable[[], None]]] = []

    @property
    def error(self) -> tf.errors.OpError | None:
        if self._error is None:
            for server, incarnation, lose in self.connections:
                if (server.task is None or server.incarnation != incarnation) and server.number not in self.values:
                    lose()
        return self._error

    def fail(self, error: tf.errors.OpError, was_lost: bool) -> None:
        if self._error is None:
            self._error, self.was_lost = error, was_lost


def _nobody(values: object = None, error: tf.errors.OpError | None = None) -> None:
    """Takes the answer of a request that came twice."""


def compiled_graphs(folder: Path) -> Graphs:
    """The graphs, compiled: no schedule does it, since its lines would count."""
    made = _graphs()
    task = Task(folder / "first", made)
    amount = {"amount:0": np.int64(1)}
    for number, name in enumerate(made.parts):
        task.run(name, amount if name in ("update", "put") else {}, slot=0, number=number)
    task.close()
    shutil.rmtree(folder / "first")
    return made


def _graphs() -> Graphs:
    """What steps do at one ps."""
    with tf.Graph().as_default() as graph:
        amount = tf.placeholder(tf.int64, [], name="amount")
        value = tf.cast(amount, tf.float32)
        dense = tf.get_variable("dense", [1100], initializer=tf.zeros_initializer())
        rows = tf.get_variable("rows", [550, 2], initializer=tf.zeros_initializer(), use_resource=True)
        count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
        taken = tf.get_variable("taken", [4], tf.int64, tf.zeros_initializer())
        table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, shared_name="table")
        queue = tf.FIFOQueue(4, tf.int64, shapes=[[]], shared_name="queue")
        counted = count.assign_add(tf.minimum(amount, 1))  # with the other updates in one transaction
        with tf.control_dependencies(
            [
                dense.assign_add(tf.fill([1100], value)), tf.scatter_add(rows, [3, 7, 3], tf.fill([3, 2], value)),
                table.insert(tf.reshape(amount, [1]), tf.reshape(amount, [1])),
            ]
        ):  # fmt: skip
            update = tf.identity(counted)
        element = queue.dequeue()
        with tf.control_dependencies([tf.assign_add(taken, tf.fill([4], element))]):
            take = tf.identity(element)
        initialize = [variable.initializer for variable in (dense, rows, count, taken)]
        state = [
            tf.reduce_min(dense), tf.reduce_max(dense), rows[3, 0] / 2, rows[7, 1], tf.to_float(count),
            tf.to_float(table.size()), tf.to_float(taken[0]), tf.to_float(queue.size()),
        ]  # fmt: skip
        return Graphs(
            graph,
            {
                "initialize": tf.group(*initialize),
                "update": update,
                "put": queue.enqueue(amount),
                "take": take,
                "state": tf.stack(state),
            },
        )


class Training:
    """What the clients of a schedule have confirmed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.amounts: list[int] = []
        self.in_doubt: list[int] = []
        self.counts: list[int] = []
        self.put: list[int] = []
        self.taken: list[int] = []
        self._is_ready = False

    def clients(self) -> Iterator[_Client]:
        draw = self._world.draw
        yield self._initializes(Client(self._world, 1))
        for number in range(2, 2 + draw.randrange(1, 4)):
            dies_at = draw.randrange(6) if draw.random() < 0.2 else None
            yield self._updates(Client(self._world, number), [number * 100 + turn for turn in range(5)], dies_at)
        puts, takes = Client(self._world, 8), Client(self._world, 9)
        yield self._puts(puts)
        yield self._takes(takes)

    def check(self) -> None:
        """Compares what the servers have."""
        wrong = self._world.wrong
        for number in range(_SERVERS):
            server = self._world.server(number)
            server.start()
            found = server.task.run("state", slot=0, number=1)[0].tolist()
            low, high, twice, row, count, entries, taken, left = found
            total, steps = sum(self.amounts), len(self.amounts)
            allowed = {(total, steps)}
            for amount in self.in_doubt:
                allowed |= {(total + amount, steps + 1) for total, steps in allowed}
            if (low, count) not in allowed or {low, high, twice, row} != {low} or count != entries:
                wrong.append(f"ps {number} has {found}, not one of {sorted(allowed)}")
            if number == 0 and (taken != sum(self.taken) or left):
                wrong.append(f"{taken} was taken, not {sum(self.taken)}; {left} elements are left")
        if len(set(self.counts)) != len(self.counts):
            wrong.append(f"two steps have the same count: {sorted(self.counts)}")
        if self.taken != self.put:
            wrong.append(f"the queue gave {self.taken}, not {self.put}")

    def _initializes(self, client: Client) -> _Client:
        yield from client.run(dict.fromkeys(range(_SERVERS), ("initialize", {})), {})
        self._is_ready = True

    def _updates(self, client: Client, amounts: list[int], dies_at: int | None) -> _Client:
        while not self._is_ready:
            yield
        for turn, amount in enumerate(amounts):
            outcome: dict[int, list[np.ndarray]] = {}
            parts = dict.fromkeys(range(_SERVERS), ("update", {"amount:0": np.int64(amount)}))
            self.in_doubt.append(amount)
            running = client.run(parts, outcome)
            for events, _ in enumerate(running):
                if turn == dies_at and events > self._world.draw.randrange(20):
                    self._world.log.append(f"{client.session} dies")
                    return
                yield
            self.in_doubt.remove(amount)
            self.amounts.append(amount)
            self.counts.append(int(outcome[0][0]))

    def _puts(self, client: Client) -> _Client:
        while not self._is_ready:
            yield
        for number in range(1, 7):
            yield from client.run({0: ("put", {"amount:0": np.int64(number)})}, {})
            self.put.append(number)

    def _takes(self, client: Client) -> _Client:
        while not self._is_ready:
            yield
        for _ in range(6):
            outcome: dict[int, list[np.ndarray]] = {}
            yield from client.run({0: ("take", {})}, outcome)
            self.taken.append(int(outcome[0][0]))


def simulate(seed: int, folder: Path, made: Graphs) -> World:
    """Runs one schedule; its `wrong` is empty if all is well."""
    inside = folder / str(seed)
    inside.mkdir()
    world = World(seed, inside, made)
    try:
        training = Training(world)
        world.run(training.clients())
        training.check()
    except Exception as error:  # a fault of the code under test, with its seed
        world.wrong.append(f"{type(error).__name__}: {error}")
    finally:
        world.close()
        shutil.rmtree(inside)
    return world


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.simulate", description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--schedules", type=int, default=0, help="as an end, instead of hours")
    parser.add_argument("--first", type=int, default=0, help="the first seed", metavar="SEED")
    parser.add_argument("--seed", type=int, help="run one, and show its events")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    journal._RECORDS_BYTES, journal._UNDO_BYTES = 8192, 4096
    durable_steps._PAUSE_S_MAX = 0.0
    until = time.monotonic() + 3600 * chosen.hours
    failures = count = 0
    with tempfile.TemporaryDirectory(prefix="dtf-simulate-", dir="/dev/shm") as folder:
        made = compiled_graphs(Path(folder))
        if chosen.seed is not None:
            world = simulate(chosen.seed, Path(folder), made)
            print("\n".join([*world.log, *world.wrong]))
            return bool(world.wrong)
        while count < chosen.schedules or time.monotonic() < until:
            seed = chosen.first + count
            world = simulate(seed, Path(folder), made)
            count += 1
            if world.wrong:
                failures += 1
                print(f"seed {seed}: {'; '.join(world.wrong)}", flush=True)
    print(f"{count} schedules, {failures} wrong")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
