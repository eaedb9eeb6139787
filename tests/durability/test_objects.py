"""Queues, tables and other objects of a durable task: after any restart they go on as if nothing had happened.

Each test runs random operations on an object that is kept, and on one that is not. The task of the first restarts every
few operations, from a copy of its folder. Both must always give the same.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dtf.run.durability import journal
from dtf.run.durability.durable_resources import DurableResources
from dtf.run.durability.durable_streams import kept_stream
from dtf.run.state.accumulators import Accumulator, DenseSum, SparseSum
from dtf.run.state.lookup_tables import LookupTable
from dtf.run.state.queues import FifoStorage, PriorityStorage, Queue, ShuffleStorage
from dtf.run.state.resources import ResourceManager
from dtf.run.state.staging import Barrier, MapStagingArea, StagingArea
from dtf.run.state.work_queue import WorkQueue
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape

VECTOR = [TensorShape([]), TensorShape([2])]


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(journal, "_RECORDS_BYTES", 4096)


class Both:
    """A kept object and a plain one."""

    def __init__(self, folder: Path, kind: type, make: Callable[[], object]) -> None:
        self.folder, self.kind, self.make = folder, kind, make
        self.plain = ResourceManager()
        self.kept = DurableResources(folder)
        self.restarts = 0

    def restart(self) -> None:
        """The process of the kept object is killed."""
        copy = self.folder.with_name(f"copy-{self.restarts}")
        self.restarts += 1
        shutil.copytree(self.folder, copy)
        self.kept.close()
        self.folder = copy
        self.kept = DurableResources(copy)

    def run(self, call: Callable[[object], object]) -> object:
        """What call(object) gives for either, which must be the same."""
        found = []
        for manager in (self.plain, self.kept):
            with manager.update_lock:
                thing = manager.lookup_or_create("", "thing", self.kind, self.make)
                try:
                    found.append(shown(call(thing)))
                except errors.OpError as error:
                    found.append(error.message)
        assert found[0] == found[1]
        return found[0]


def shown(value: object) -> object:
    """A value that can be compared."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.name, value.tolist()
    if isinstance(value, tuple | list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return value


def answered(start: Callable[..., None]) -> object:
    """What an operation gives at once; one that would wait is cancelled."""
    cancellation = CancellationManager()
    outcome: list[object] = []

    def done(value: object = None, error: errors.OpError | None = None) -> None:
        outcome.append(type(error).__name__ if error is not None else value)

    start(cancellation, done)
    cancellation.start_cancel()
    assert len(outcome) == 1
    return outcome[0]


def element(number: int) -> tuple[np.ndarray, ...]:
    return np.int64(number % 5), np.array([number, -number], np.float32)


def queue(kind: str, storage: Callable[[], object]) -> Callable[[], Queue]:
    types = [dtypes.int64, dtypes.float32]

    def make() -> Queue:
        made = Queue(kind, "thing", storage(), 9, types, VECTOR)
        made.is_whole = True
        return made

    return make


def of_queue(number: int, draw: random.Random) -> Callable[[Queue], object]:
    match draw.randrange(6):
        case 0 | 1:
            return lambda each: answered(lambda *rest: each.enqueue(element(number), *rest))
        case 2:
            many = tuple(np.stack([part, part]) for part in element(number))
            return lambda each: answered(lambda *rest: each.enqueue_many(many, *rest))
        case 3 if number > 150:
            return lambda each: answered(lambda *rest: each.shut(False, *rest))
        case 4:
            return lambda each: answered(lambda *rest: each.dequeue_many(2, *rest, allow_fewer=number % 2 == 0))
    return lambda each: answered(each.dequeue)


Chooser = Callable[[int, random.Random], Callable[[Accumulator], object]]


def of_accumulator(gradient: Callable[[int], object]) -> Chooser:
    def choose(number: int, draw: random.Random) -> Callable[[Accumulator], object]:
        match draw.randrange(5):
            case 0:
                return lambda each: answered(lambda *rest: each.take(2, *rest))
            case 1 if number % 4 == 0:
                return lambda each: each.set_global_step(number // 40)
        return lambda each: (each.apply(number // 20, gradient(number)), each.num_accumulated, each.global_step)

    return choose


def sparse(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = np.full([3, 2], number, np.float32)
    return np.array([number % 3, 4, 4]), values, np.array([9, 2])


def of_table(number: int, draw: random.Random) -> Callable[[LookupTable], object]:
    keys = np.array([draw.randrange(30) for _ in range(40)], np.int64)
    values = np.stack([keys * number, -keys], 1).astype(np.float32)
    match draw.randrange(6):
        case 0:
            return lambda each: each.insert(keys[:3], values[:3], replace_all=number % 5 == 0)
        case 1:
            return lambda each: each.remove(keys[:2])
        case 2:
            return lambda each: (len(each), sorted(zip(*(part.tolist() for part in each.export()), strict=True)))
        case 3:
            return lambda each: each.find(keys, np.zeros(2, np.float32))
    return lambda each: each.insert(keys, values)


def of_constant_table(number: int, draw: random.Random) -> Callable[[LookupTable], object]:
    keys = np.array([b"a", b"b", b"\0\xff"], object)
    if number % 7 == 3:
        return lambda each: each.initialize(keys, np.arange(3) + number // 100)
    return lambda each: (each.find(keys, np.int64(-1)), len(each))


def of_area(number: int, draw: random.Random) -> Callable[[StagingArea], object]:
    match draw.randrange(12):
        case 0:
            return lambda each: each.clear()
        case 1 | 2 | 3:
            return lambda each: answered(each.take)
        case 4:
            return lambda each: answered(lambda *rest: each.peek(1, *rest))
    return lambda each: (answered(lambda *rest: each.put(element(number), *rest)), len(each))


def of_map_area(number: int, draw: random.Random) -> Callable[[MapStagingArea], object]:
    key, value = draw.randrange(6), element(number)
    match draw.randrange(16):
        case 0:
            return lambda each: each.clear()
        case 1 | 2 | 3:
            return lambda each: answered(lambda *rest: each.take(None, [0, 1], number % 2 == 0, *rest))
        case 4:
            return lambda each: answered(lambda *rest: each.take(key, [1], False, *rest))
        case 5:
            return lambda each: answered(lambda *rest: each.put(key, [0, 1], value, *rest))
        case 6 | 7:
            return lambda each: (len(each), each.incomplete_size, answered(lambda *rest: each.peek(key, [0], *rest)))
    place = draw.randrange(2)
    return lambda each: answered(lambda *rest: each.put(key, [place], [value[place]], *rest))


def of_barrier(number: int, draw: random.Random) -> Callable[[Barrier], object]:
    keys = [f"key {draw.randrange(12)}".encode(), f"key {12 + number}".encode()]
    match draw.randrange(5):
        case 0 | 1:
            return lambda each: answered(lambda *rest: each.take_many(1 + number % 2, number % 3 == 0, *rest))
        case 2 if number > 150:
            return lambda each: each.shut(number > 180)
    component = draw.randrange(2)
    values = [np.float32(number), np.float32(-number)]
    return lambda each: (each.insert_many(component, keys, values), each.ready_size, each.incomplete_size)


def of_work_queue(number: int, draw: random.Random) -> Callable[[WorkQueue], object]:
    def settled(each: WorkQueue) -> object:
        if number == 0:
            each.restore(np.array([3, 0, 1, 5]))
        each.create([b"a", b"b", b"c", b"d"], 6, 7, 1000.0)
        held = sorted(each._held)
        chosen = held[number % len(held)] if held else 1
        match choice:
            case 0 | 1 | 2:
                lease = answered(lambda *rest: each.take("worker", *rest))
                return lease[1:] if isinstance(lease, tuple) else lease
            case 3:
                return each.release(chosen) if held else None
            case 4 if number % 9 == 0:
                return each.restore(each.export())
        if held:
            each.confirm(chosen, each._held[chosen].item.position + 2, choice == 5)
        return each.export()

    choice = draw.randrange(8)
    return settled


KINDS = {
    "fifo": (Queue, queue("FIFOQueue", FifoStorage), of_queue),
    "padding": (Queue, queue("PaddingFIFOQueue", FifoStorage), of_queue),
    "priority": (Queue, queue("PriorityQueue", PriorityStorage), of_queue),
    "shuffled": (Queue, queue("RandomShuffleQueue", lambda: ShuffleStorage(1, 5)), of_queue),
    "dense accumulator": (
        Accumulator,
        lambda: Accumulator("A", "thing", dtypes.float32, VECTOR[1], "MEAN", DenseSum(VECTOR[1])),
        of_accumulator(lambda number: np.array([number, 1], np.float32)),
    ),
    "sparse accumulator": (
        Accumulator,
        lambda: Accumulator("S", "thing", dtypes.float32, TensorShape([9, 2]), "SUM", SparseSum(TensorShape([9, 2]))),
        of_accumulator(sparse),
    ),
    "table": (LookupTable, lambda: LookupTable("thing", dtypes.int64, dtypes.float32, True, [2]), of_table),
    "dense table": (
        LookupTable,
        lambda: LookupTable("thing", dtypes.int64, dtypes.float32, True, [2], {-1: "empty_key"}, 4),
        of_table,
    ),
    "constant table": (
        LookupTable, lambda: LookupTable("thing", dtypes.string, dtypes.int64, False), of_constant_table,
    ),
    "staging area": (StagingArea, lambda: StagingArea(4, 0), of_area),
    "map staging area": (MapStagingArea, lambda: MapStagingArea(4, 0, 2), of_map_area),
    "barrier": (Barrier, lambda: Barrier("thing", [np.float32] * 2, [[], []]), of_barrier),
    "work queue": (WorkQueue, lambda: WorkQueue("thing"), of_work_queue),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_an_object_must_go_on_after_any_restart_as_if_nothing_had_happened(tmp_path, name):
    kind, make, choose = KINDS[name]
    both = Both(tmp_path / "state", kind, make)
    draw = random.Random(name)
    answers = []
    for number in range(200):
        answers.append(both.run(choose(number, draw)))
        if draw.randrange(8) == 0:
            both.restart()
    both.kept.close()
    assert both.restarts > 10
    assert sum(answer not in (None, "CancelledError") for answer in answers) > 20


def test_a_record_of_a_long_queue_must_hold_what_was_added_and_not_the_queue(tmp_path):
    resources = DurableResources(tmp_path / "state")
    made = resources.lookup_or_create("", "q", Queue, queue("FIFOQueue", FifoStorage))
    made.capacity = None
    large = np.int64(1), np.zeros(2, np.float32)
    sizes = []
    for _ in range(200):
        with resources.update_lock:
            before = resources.journal.bytes_written
            made.enqueue(large, None, lambda *_, **__: None)
        sizes.append(resources.journal.bytes_written - before)
    resources.close()
    assert sorted(sizes)[150] < 200


def test_an_object_without_a_shared_name_lives_as_long_as_its_session(tmp_path):
    def found(resources: DurableResources, session: str) -> int:
        state = resources.session_state(session)
        for name in ("function f",):
            state = state.node_state(name, type(state).__bases__[0])
        with resources.update_lock:
            made = state.node_state("queue", queue("FIFOQueue", FifoStorage))
            made.enqueue(element(1), None, lambda *_, **__: None)
        return len(made)

    for turn in (1, 2):
        resources = DurableResources(tmp_path / "state")
        assert found(resources, "first") == turn
        assert found(resources, "second") == turn
        resources.close()
    resources = DurableResources(tmp_path / "state")
    resources.steps.entries["first", 0] = None
    resources.steps.forget_session("first")
    assert found(resources, "second") == 3
    resources.close()
    resources = DurableResources(tmp_path / "state")
    assert found(resources, "first") == 1
    resources.close()


def test_a_generator_of_numpy_goes_on_at_its_position():
    def generator() -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=np.array([3, 4], np.uint64)))

    class Course:
        def begins(self, position):
            return position

        def moved(self, position):
            positions.append(position)

    positions = [None]
    drawn = []
    for _ in range(6):
        stream = kept_stream(generator(), positions[-1], Course())
        drawn.append(stream.poisson(5.0, [3]).tolist())
        drawn.append(stream.integers(0, 9, 3, np.int32).tolist())
    plain = generator()
    for both in zip(drawn[::2], drawn[1::2], strict=True):
        assert both == (plain.poisson(5.0, [3]).tolist(), plain.integers(0, 9, 3, np.int32).tolist())


def test_an_object_that_was_removed_stays_removed(tmp_path):
    resources = DurableResources(tmp_path / "state")
    with resources.update_lock:
        made = resources.lookup_or_create("", "area", StagingArea, lambda: StagingArea(4, 0))
        made.put(element(1), None, lambda *_, **__: None)
    resources.delete("", "area", StagingArea)
    resources.close()
    again = DurableResources(tmp_path / "state")
    assert len(again.lookup_or_create("", "area", StagingArea, lambda: StagingArea(4, 0))) == 0
    again.close()
