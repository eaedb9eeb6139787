"""Trainings whose result is known exactly, while their durable parameter servers are killed.

    python -m tests.durability.kills --kills 1000 [--level host] [--seed N] [--pause SECONDS]

Each confirmed step adds known amounts: to dense and sparse variables, by reference and as resources, to the global
step, and by Momentum and Adam, whose slots are compared with those of a training without kills. The sums must be exact,
the program must see no exception, and its session must never be made again.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import dtf as tf
from tests.durability.elastic_kills import ElasticWorkers, counted
from tests.durability.servers import Places, Servers

__all__ = [
    "Killer", "Outcome", "count_exactly", "elastic_exactly", "objects_exactly", "queue_exactly", "synchronous_exactly",
    "train_exactly",
]  # fmt: skip


_STEP_WAIT_S = 30.0
_END_S = 10.0


class Killer:
    """Kills a ps each time that `pause_s()` says how long to wait, until it is stopped or has killed `count` times.

    Attributes:
      kill: kills and starts again; called with the number of the kill.
      steps: how many steps the program has confirmed: each kill waits for another one, so that each finds steps that
        run, however slow the machine is.
      is_done: whether that was the last one.
    """

    def __init__(self, servers: Servers, count: int, pause_s: Callable[[], float]) -> None:
        tasks = len(servers.cluster["ps"])
        self.kill: Callable[[int], None] = lambda turn: servers.restart(turn % tasks)
        self.steps: Callable[[], int] | None = None
        self._count = count
        self._pause_s = pause_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer")
        self.is_done = threading.Event()
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            for turn in range(self._count):
                self._wait_for_step()
                if self._is_over.wait(self._pause_s()):
                    break
                self.kill(turn)
        except BaseException as error:
            self.error = error
        finally:
            self.is_done.set()

    def _wait_for_step(self) -> None:
        if self.steps is not None:
            before, until = self.steps(), time.monotonic() + _STEP_WAIT_S
            while self.steps() == before and time.monotonic() < until and not self._is_over.wait(0.005):
                pass

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self.error is not None:
            raise self.error


def killer(servers: Servers, count: int, seed: int, pause_s_max: float = 1.0) -> Killer:
    """One whose pauses are random, and the same for each seed."""
    pauses = random.Random(seed)
    return Killer(servers, count, lambda: pauses.uniform(0.0, pause_s_max))


class Outcome:
    """What a training has come to.

    Attributes:
      steps: how many were confirmed.
      sessions: how often a session was made.
      pause_s: the longest step.
      wrong: what differs, in words.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.sessions = 0
        self.pause_s = 0.0
        self.wrong: list[str] = []


class _Sessions(tf.train.SessionRunHook):
    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def after_create_session(self, session, coord):
        self._outcome.sessions += 1


def count_exactly(servers: Servers, threads: int, killer: Killer, steps_min: int = 20) -> Outcome:
    """Threads of one worker add integers to variables of all ps until the killer is done."""
    outcome = Outcome()
    killer.steps = lambda: outcome.steps
    tasks = len(servers.cluster["ps"])
    with tf.train.Server(servers.cluster, "worker", 0, config=servers.config) as server, tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=tasks, worker_device="/job:worker/task:0")):
            step = tf.train.get_or_create_global_step()
            amount = tf.placeholder(tf.float32, [])
            dense = [tf.Variable(tf.zeros([3000]), name=f"dense{i}") for i in range(tasks)]
            resources = [
                tf.get_variable(f"resource{i}", [40, 50], initializer=tf.zeros_initializer(), use_resource=True)
                for i in range(tasks)
            ]
            tables = [tf.Variable(tf.zeros([900, 8]), name=f"table{i}") for i in range(tasks)]
            small = [tf.Variable(0, dtype=tf.int64, name=f"small{i}") for i in range(tasks)]
            updates = [each.assign_add(tf.fill([3000], amount)) for each in dense]
            updates += [each.assign_add(tf.fill([40, 50], amount)) for each in resources]
            updates += [tf.scatter_add(each, [3, 5, 3], tf.fill([3, 8], amount)) for each in tables]
            updates += [each.assign_add(2) for each in small]
            updates.append(step.assign_add(1))
            train = tf.group(*updates)
            everything = dense, resources, tables, small, step
        amounts = [0] * threads
        failures: list[BaseException] = []
        with tf.train.MonitoredTrainingSession(
            server.target, hooks=[_Sessions(outcome)], log_step_count_steps=None
        ) as session:
            raw = session._tf_sess() if hasattr(session, "_tf_sess") else session

            def work(number: int) -> None:
                random_amounts = random.Random(number)
                try:
                    while not killer.is_done.is_set() or outcome.steps < steps_min:
                        value = random_amounts.randrange(1, 4)
                        began = time.monotonic()
                        raw.run(train, {amount: float(value)})
                        outcome.pause_s = max(outcome.pause_s, time.monotonic() - began)
                        amounts[number] += value
                        with lock:
                            outcome.steps += 1
                except BaseException as error:
                    failures.append(error)

            lock = threading.Lock()
            with killer:
                workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
            if failures:
                raise failures[0]
            found = raw.run(everything)
        total = sum(amounts)
        for place in range(tasks):
            _compare(outcome, f"dense{place}", found[0][place], total)
            _compare(outcome, f"resource{place}", found[1][place], total)
            _compare(outcome, f"table{place}[5]", found[2][place][5], total)
            _compare(outcome, f"table{place}[3]", found[2][place][3], 2 * total)
            _compare(outcome, f"small{place}", found[3][place], 2 * outcome.steps)
        _compare(outcome, "global_step", found[4], outcome.steps)
    return outcome


def train_exactly(servers: Servers, killer: Killer, steps_min: int = 10) -> Outcome:
    """One worker trains with Momentum and Adam, dense and sparse, and takes its amounts from a queue of its own; each
    bit must be that of the same training in one process.
    """
    outcome = Outcome()
    killer.steps = lambda: outcome.steps
    tasks = len(servers.cluster["ps"])
    with tf.train.Server(servers.cluster, "worker", 0, config=servers.config) as server, tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=tasks, worker_device="/job:worker/task:0")):
            train, variables = _optimizers(fed := tf.placeholder(tf.float32, []))
        with (
            tf.train.MonitoredTrainingSession(
                server.target, hooks=[_Sessions(outcome)], log_step_count_steps=None
            ) as session,
            killer,
        ):
            while not killer.is_done.is_set() or outcome.steps < steps_min:
                began = time.monotonic()
                session.run(train, {fed: outcome.steps % 7})
                outcome.pause_s = max(outcome.pause_s, time.monotonic() - began)
                outcome.steps += 1
            found = session.run(variables)
    with tf.Graph().as_default(), tf.Session() as session:
        train, variables = _optimizers(fed := tf.placeholder(tf.float32, []))
        session.run(tf.global_variables_initializer())
        for number in range(outcome.steps):
            session.run(train, {fed: number % 7})
        for name, value in session.run(variables).items():
            if not np.array_equal(found[name], value):
                outcome.wrong.append(f"{name} is {found[name]!r}, not {value!r}")
    return outcome


def queue_exactly(servers: Servers, killer: Killer, steps_min: int = 20) -> Outcome:
    """One thread adds numbers to a queue of a ps, alone and in threes; another takes them and adds them up there. Each
    number must come once and in order.
    """
    outcome = Outcome()
    killer.steps = lambda: outcome.steps
    taken: list[int] = []
    with tf.train.Server(servers.cluster, "worker", 0, config=servers.config) as server, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(7, tf.int64, shapes=[[]], shared_name="numbers")
            total = tf.Variable(0, dtype=tf.int64)
            number = tf.placeholder(tf.int64, [])
            add, add_three = queue.enqueue(number), queue.enqueue_many(tf.stack([number, number + 1, number + 2]))
            value = queue.dequeue()
            count = total.assign_add(value)
        failures: list[BaseException] = []
        with tf.Session(server.target) as session:
            session.run(total.initializer)
            outcome.sessions = 1
            last = threading.Event()

            def produce() -> None:
                added = 0
                try:
                    while not killer.is_done.is_set() or added < steps_min:
                        session.run(add, {number: added})
                        session.run(add_three, {number: added + 1})
                        added += 4
                    session.run(add, {number: -1})
                except BaseException as error:
                    failures.append(error)
                last.set()

            producer = threading.Thread(target=produce)
            with killer:
                producer.start()
                while not failures:
                    began = time.monotonic()
                    found, _ = session.run([value, count])
                    outcome.pause_s = max(outcome.pause_s, time.monotonic() - began)
                    if found < 0:
                        break
                    taken.append(int(found))
                    outcome.steps += 1
                producer.join()
            if failures:
                raise failures[0]
            if taken != list(range(len(taken))):
                outcome.wrong.append(f"the numbers came as {taken}")
            _compare(outcome, "total", session.run(total), sum(taken) - 1)
    return outcome


def objects_exactly(servers: Servers, killer: Killer, steps_min: int = 10) -> Outcome:
    """One thread changes a table, a shuffled queue, a queue by priority, a barrier, a staging area and a work queue of
    a ps; each must give what the same objects give without kills.
    """
    outcome = Outcome()
    killer.steps = lambda: outcome.steps
    outcome.sessions = 1

    def build() -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Operation], tf.Tensor]:
        number = tf.placeholder(tf.int64, [])
        key = tf.reshape(number % 7, [1])
        table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1)
        words = tf.contrib.lookup.index_table_from_tensor(tf.constant(["a", "b", "c"]))
        shuffled = tf.RandomShuffleQueue(20, 2, tf.int64, shapes=[[]], seed=3)
        ranked = tf.PriorityQueue(20, tf.int64, shapes=[[]])
        area = tf.contrib.staging.StagingArea([tf.int64], [[]])
        queue = tf.train.WorkQueue(["x", "y", "z"], None, lease_s=1000.0)
        puts = [
            table.insert(key, tf.reshape(number, [1])), shuffled.enqueue(number),
            ranked.enqueue((-number % 5, number)), area.put([number]),
        ]  # fmt: skip
        with tf.control_dependencies(puts):
            item = queue.take("a worker")
            gets = [
                table.lookup(key), table.size(), words.lookup(tf.constant("b")), ranked.dequeue()[1], area.get()[0],
                item.work, item.epoch, tf.random_poisson([3.0], [2], seed=5),
            ]  # fmt: skip
        with tf.control_dependencies([*gets[3:6]]):
            gets.append(queue.confirm(item.lease, 1, True))
        return number, gets, shuffled.dequeue(), tf.tables_initializer()

    def step(session: tf.Session, number: int) -> list[object]:
        values = session.run(gets, {fed: number})
        return [*(np.asarray(value).tolist() for value in values[:-1]), int(session.run(shuffled)) if number > 4 else 0]

    found = []
    with tf.train.Server(servers.cluster, "worker", 0, config=servers.config) as server, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            fed, gets, shuffled, initializer = build()
        with tf.Session(server.target) as session, killer:
            session.run(initializer)
            while not killer.is_done.is_set() or outcome.steps < steps_min:
                began = time.monotonic()
                found.append(step(session, outcome.steps))
                outcome.pause_s = max(outcome.pause_s, time.monotonic() - began)
                outcome.steps += 1
    with tf.Graph().as_default(), tf.Session() as session:
        fed, gets, shuffled, initializer = build()
        session.run(initializer)
        for number, value in enumerate(found):
            expected = step(session, number)
            if value != expected:
                outcome.wrong.append(f"step {number} gave {value}, not {expected}")
                break
    return outcome


def elastic_exactly(servers: Servers, killer: Killer, epochs: int) -> Outcome:
    """Workers take records of a work queue; they and the ps are killed in turn. Each record counts once an epoch."""
    outcome = Outcome()
    outcome.sessions = 1
    workers = ElasticWorkers(servers, epochs)
    tasks = 1 + len(servers.cluster["worker"])

    def kill(turn: int) -> None:
        if turn % tasks:
            workers.kill(turn % tasks - 1)
        else:
            servers.restart(0)

    killer.kill = kill
    try:
        with killer:
            workers.wait()
        outcome.wrong = counted(servers, epochs)
        outcome.wrong += [f"a worker ended with {code}" for code in workers.failed]
        outcome.steps = epochs
        servers.kills += workers.kills
    finally:
        workers.stop()
    return outcome


def synchronous_exactly(servers: Servers, killer: Killer, steps_min: int = 10) -> Outcome:
    """Two workers of this process train with SyncReplicasOptimizer, dense and sparse: each step subtracts one."""
    outcome = Outcome()
    killer.steps = lambda: outcome.steps
    failures: list[BaseException] = []
    found: list[list[np.ndarray]] = []
    end = threading.Event()

    def work(index: int, server: tf.train.Server) -> None:
        with tf.Graph().as_default():
            setter = tf.train.replica_device_setter(
                ps_tasks=len(servers.cluster["ps"]), worker_device=f"/job:worker/task:{index}"
            )
            with tf.device(setter):
                step = tf.train.get_or_create_global_step()
                dense = tf.get_variable("dense", [3000], initializer=tf.zeros_initializer())
                table = tf.get_variable("table", [500, 4], initializer=tf.zeros_initializer())
                loss = tf.reduce_sum(dense) + tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([3, 9])))
                optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, 2)
                train = optimizer.minimize(loss, global_step=step)
            hooks = [optimizer.make_session_run_hook(index == 0), *([_Sessions(outcome)] if index == 0 else [])]
            try:
                with tf.train.MonitoredTrainingSession(
                    server.target, is_chief=index == 0, hooks=hooks, log_step_count_steps=None
                ) as session:
                    last = 0
                    while not end.is_set():
                        began = time.monotonic()
                        _, last = session.run([train, step])
                        if index == 0:
                            outcome.pause_s = max(outcome.pause_s, time.monotonic() - began)
                            outcome.steps += 1
                            if killer.is_done.is_set() and last >= steps_min:
                                found.append(session.run([dense, table, step]))
                                end.set()
            except BaseException as error:
                if not end.is_set():
                    failures.append(error)
                    end.set()

    with ExitStack() as stack:
        workers = [
            stack.enter_context(tf.train.Server(servers.cluster, "worker", index, config=servers.config))
            for index in range(2)
        ]
        threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(workers)]
        stack.enter_context(killer)
        for thread in threads:
            thread.start()
        threads[0].join()
        end.set()
        workers[1].stop()
        threads[1].join(_END_S)  # it may recover a session at the server that has just been stopped, and wait there
    if failures:
        raise failures[0]
    dense, table, step = found[0]
    # The chief may read between the update of the variables and that of the step.
    for name, value in (("dense", dense), ("table", table[[3, 9]])):
        if len(set(np.unique(value))) != 1 or -np.unique(value)[0] - step not in (0, 1):
            outcome.wrong.append(f"{name} has {np.unique(value)} at step {step}")
    return outcome


def _optimizers(amount: tf.Tensor) -> tuple[tf.Operation, dict[str, tf.Variable]]:
    step = tf.train.get_or_create_global_step()
    dense = tf.get_variable("dense", [1500], initializer=tf.zeros_initializer())
    table = tf.get_variable("table", [400, 8], initializer=tf.zeros_initializer(), use_resource=True)
    rows = tf.nn.embedding_lookup(table, tf.constant([1, 7, 1]))
    loss = tf.reduce_sum(dense * amount) + tf.reduce_sum(rows * rows * amount + rows)
    first = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    with tf.control_dependencies([first]):
        train = tf.train.MomentumOptimizer(0.5, 0.5).minimize(loss, var_list=[dense])
    return train, {each.op.name: each for each in tf.global_variables()}


def _compare(outcome: Outcome, name: str, value: np.ndarray, expected: int) -> None:
    if not (np.asarray(value) == expected).all():
        outcome.wrong.append(f"{name} has {np.unique(value)}, not {expected}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--level", choices=["process", "host"], default="process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between kills, at most", metavar="S")
    parser.add_argument("--epochs", type=int, default=4, help="of the work queue, whose kills end with it", metavar="N")
    parser.add_argument("--only", default="", help="a part of the names of trainings", metavar="TEXT")
    chosen = parser.parse_args(arguments)
    pauses = random.Random(chosen.seed)
    status = 0
    trainings = {
        "integers, 3 threads": lambda servers, each: count_exactly(servers, 3, each),
        "optimizers": train_exactly,
        "a queue": queue_exactly,
        "synchronous replicas": synchronous_exactly,
        "tables and other objects": objects_exactly,
        "a work queue, workers killed too": lambda servers, each: elastic_exactly(servers, each, chosen.epochs),
    }
    trainings = {what: run for what, run in trainings.items() if chosen.only in what}
    for what, run in trainings.items():
        folder = Path(tempfile.mkdtemp(prefix="dtf-durability-", dir="/dev/shm"))
        try:
            of_level = Servers if chosen.level == "process" else Places
            count = 1 if "objects" in what or "queue" in what else 2
            with of_level(folder, count=count, workers=2) as servers:
                each = Killer(servers, chosen.kills // len(trainings), lambda: pauses.uniform(0.0, chosen.pause))
                outcome = run(servers, each)
                print(
                    f"{what}: {servers.kills} kills, {outcome.steps} steps, {outcome.sessions} session, longest step "
                    f"{outcome.pause_s:.2f} s: {'; '.join(outcome.wrong) or 'exact'}",
                    flush=True,
                )
                status |= bool(outcome.wrong) or outcome.sessions != 1
        finally:
            shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
