"""A program of either runtime: queues, barriers, accumulators and staging areas that wait, end, and give back.

    python queue_programs.py dtf|tensorflow.compat.v1 values.npz

Prints as JSON what each step of each scenario gave: values, the name of an error, or "waits".
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from typing import Any

import numpy as np

PATIENCE_S = 10


class Background:
    """A step that runs in a thread of its own."""

    def __init__(self, bench: Bench, fetch: Any) -> None:
        self._outcome: Any = "waits"
        self._bench, self._fetch = bench, fetch
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._outcome = self._bench.run(self._fetch)

    def ended(self) -> Any:
        self._thread.join(PATIENCE_S)
        return self._outcome


class Bench:
    """A session whose steps give values or the names of errors."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf
        self.session = tf.Session()

    def run(self, fetch: Any, limit_ms: int = 1000 * PATIENCE_S) -> Any:
        options = self.tf.RunOptions(timeout_in_ms=limit_ms)
        try:
            return plain(self.session.run(fetch, options=options))
        except self.tf.errors.OpError as error:
            return type(error).__name__

    def waits(self, fetch: Any) -> Any:
        """What a step gives that is cancelled after a while; "waits" when it was."""
        found = self.run(fetch, limit_ms=400)
        return "waits" if found == "DeadlineExceededError" else found

    def later(self, fetch: Any) -> Background:
        return Background(self, fetch)

    def until(self, fetch: Any, wanted: Any) -> None:
        """Waits for a value to be what it must become."""
        tries = 0
        while self.run(fetch) != wanted:
            tries += 1
            assert tries < 20000, f"{fetch} never became {wanted}: {self.run(fetch)}"


def plain(value: Any) -> Any:
    """A fetched value as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value.item() if isinstance(value, np.generic) else value


# -- queues


def fifo(tf, capacity):
    return tf.FIFOQueue(capacity, tf.int32, [[]])


def padding(tf, capacity):
    return tf.PaddingFIFOQueue(capacity, tf.int32, [[]])


def shuffling(tf, capacity):
    return tf.RandomShuffleQueue(capacity, 0, tf.int32, [[]], seed=1)


def priority(tf, capacity):
    return tf.PriorityQueue(capacity, tf.int32, [[]])


KINDS = {"fifo": fifo, "padding": padding, "shuffling": shuffling, "priority": priority}


def components(tf, kind, values):
    """What a queue of this kind takes: with priorities, the values themselves."""
    return [tf.constant(values, tf.int64), tf.constant(values, tf.int32)] if kind == "priority" else tf.constant(values)


def ordered(kind, outcome):
    """Without the order, where that is left to chance."""
    return sorted(outcome) if kind == "shuffling" and isinstance(outcome, list) else outcome


def much_through_little(tf, kind, method):
    """More in one operation than there is room for, both ways; either side first."""
    bench, queue = Bench(tf), KINDS[kind](tf, 4)
    fill = queue.enqueue_many(components(tf, kind, list(range(24))))
    take = getattr(queue, method)(8)
    found = []
    for fill_first in (True, False):
        ahead = bench.later(fill if fill_first else take)
        if fill_first:
            bench.until(queue.size(), 4)
        behind = bench.later(take if fill_first else fill)
        filling, taking = (ahead, behind) if fill_first else (behind, ahead)
        got = [taking.ended(), bench.run(take), bench.run(take)]
        # The order of a queue that has to gather depends on what has come by then.
        found += [filling.ended(), sorted(np.ravel(got).tolist()) if kind != "fifo" else got]
    return [*found, bench.run(queue.size())]


def takers_behind_each_other(tf, kind, method):
    bench, queue = Bench(tf), KINDS[kind](tf, 3)
    bench.run(queue.enqueue_many(components(tf, kind, [1, 2, 3])))
    first = bench.later(getattr(queue, method)(5))
    bench.until(queue.size(), 0)
    bench.run(queue.enqueue(components(tf, kind, 4)))
    bench.until(queue.size(), 0)
    second = bench.later(queue.dequeue())
    bench.run(queue.enqueue_many(components(tf, kind, [5, 6])))
    return [ordered(kind, first.ended()), second.ended() is not None, bench.run(queue.size())]


def closed_with_some_left(tf, kind, method):
    """What a waiting taker has gathered, when the queue closes; what is there for those after it."""
    bench, queue = Bench(tf), KINDS[kind](tf, 10)
    bench.run(queue.enqueue_many(components(tf, kind, [1, 2, 3])))
    taking = bench.later(getattr(queue, method)(5))
    bench.until(queue.size(), 0)
    found = [bench.run(queue.close())]
    found += [ordered(kind, taking.ended()), bench.run(queue.size())]
    rest = bench.run(queue.dequeue_up_to(7))
    found += [ordered(kind, rest), bench.run(queue.dequeue()), bench.run(getattr(queue, method)(0))]
    found += [bench.run(queue.enqueue(components(tf, kind, 1))), bench.run(queue.is_closed())]
    found += [bench.run(queue.enqueue_many(components(tf, kind, [7])))]
    return [*found, bench.run(queue.close()), bench.run(queue.close(cancel_pending_enqueues=True))]


def closed_behind_a_filler(tf, kind, method):
    """A close waits for the enqueues before it; one behind it fails."""
    bench, queue = Bench(tf), KINDS[kind](tf, 2)
    filling = bench.later(queue.enqueue_many(components(tf, kind, [1, 2, 3, 4, 5])))
    bench.until(queue.size(), 2)
    closing = bench.later(queue.close())
    got = bench.run(getattr(queue, method)(3))
    found = [len(np.ravel(got)), filling.ended(), closing.ended(), bench.run(queue.is_closed())]
    return [*found, ordered(kind, bench.run(queue.dequeue_up_to(5))), bench.run(queue.dequeue())]


def closed_on_a_filler(tf, kind, method):
    """A close that cancels: what the filler has put in stays."""
    bench, queue = Bench(tf), KINDS[kind](tf, 2)
    filling = bench.later(queue.enqueue_many(components(tf, kind, [1, 2, 3, 4, 5])))
    bench.until(queue.size(), 2)
    found = [bench.run(queue.close(cancel_pending_enqueues=True)), filling.ended(), bench.run(queue.size())]
    return [*found, ordered(kind, bench.run(getattr(queue, method)(2))), bench.run(getattr(queue, method)(1))]


def cancelled_filler(tf, kind, method):
    """An enqueue that its step's limit ends halfway leaves what it has put in, and is in nobody's way."""
    bench, queue = Bench(tf), KINDS[kind](tf, 2)
    found = [bench.waits(queue.enqueue_many(components(tf, kind, [1, 2, 3, 4, 5]))), bench.run(queue.size())]
    found += [ordered(kind, bench.run(getattr(queue, method)(2))), bench.waits(getattr(queue, method)(1))]
    return [*found, bench.run(queue.enqueue(components(tf, kind, 9))), bench.run(queue.dequeue())]


def cancelled_before_those_behind(tf, kind, method):
    """Who waits behind a taker that is cancelled gets its turn."""
    bench, queue = Bench(tf), KINDS[kind](tf, 9)
    large = getattr(queue, method)(5)
    first = bench.waits(large)
    second = bench.later(queue.dequeue())
    bench.run(queue.enqueue(components(tf, kind, 3)))
    return [first, second.ended(), bench.run(queue.size())]


def bad_requests(tf, kind, method):
    bench, queue = Bench(tf), KINDS[kind](tf, 3)
    count = tf.placeholder_with_default(np.int32(-1), [])
    found = [bench.run(getattr(queue, method)(count)), bench.run(getattr(queue, method)(0))]
    found += [bench.run(queue.enqueue_many(components(tf, kind, np.zeros(0, np.int32)))), bench.run(queue.size())]
    wrong = tf.placeholder_with_default(np.zeros(2, np.int32), None)
    first = tf.constant(1, tf.int64)
    found += [bench.run(queue.enqueue([first, wrong] if kind == "priority" else wrong)), bench.run(queue.size())]
    return found


QUEUE_SCENARIOS = [
    much_through_little, takers_behind_each_other, closed_with_some_left, closed_behind_a_filler, closed_on_a_filler,
    cancelled_filler, cancelled_before_those_behind, bad_requests,
]  # fmt: skip


def shuffled_with_a_reserve(tf):
    """`min_after_dequeue` stay back until the queue is closed, for those that gather too."""
    bench, queue = Bench(tf), tf.RandomShuffleQueue(6, 3, tf.int32, [[]], seed=4)
    bench.run(queue.enqueue_many([[1, 2, 3, 4, 5]]))
    one = bench.run(queue.dequeue())
    found = [one in range(1, 6), bench.run(queue.size())]
    taking = bench.later(queue.dequeue_many(3))
    bench.until(queue.size(), 3)
    filling = bench.later(queue.enqueue_many([list(range(6, 11))]))
    found += [len(taking.ended()), filling.ended(), bench.run(queue.size())]
    bench.run(queue.close())
    found += [len(bench.run(queue.dequeue_up_to(10))), bench.run(queue.dequeue_up_to(1))]
    return found


def shuffled_beyond_its_room(tf):
    """A reserve that leaves room for one: twenty through it, gathered in tens."""
    bench, queue = Bench(tf), tf.RandomShuffleQueue(4, 3, tf.int32, [[]], seed=4)
    filling = bench.later(queue.enqueue_many([list(range(23))]))
    bench.until(queue.size(), 4)
    found = [len(bench.run(queue.dequeue_many(10))), len(bench.run(queue.dequeue_up_to(10)))]
    return [*found, filling.ended(), bench.run(queue.size())]


def padded(tf):
    """Elements of several lengths, more than there is room for."""
    bench, queue = Bench(tf), tf.PaddingFIFOQueue(2, [tf.int32, tf.string], [[None], [None, 1]])
    value = tf.placeholder(tf.int32, [None])
    put = queue.enqueue([value, tf.as_string(value)[:, None]])
    take = bench.later(queue.dequeue_many(5))
    for length in (1, 3, 0, 2, 1):
        bench.session.run(put, {value: list(range(length))})
    found = [take.ended()]
    for length in (2, 1):
        bench.session.run(put, {value: list(range(length))})
    few = bench.later(queue.dequeue_up_to(3))
    bench.until(queue.size(), 0)
    found += [bench.run(queue.close()), few.ended(), bench.run(queue.dequeue_up_to(3)), bench.run(queue.size())]
    return found


def prioritised(tf):
    """Gathered as they come, the least first among those that are there; equal ones in order."""
    bench, queue = Bench(tf), tf.PriorityQueue(10, tf.string, [[]])
    bench.run(queue.enqueue_many([tf.constant([5, 1, 5, 3], tf.int64), ["a", "b", "a", "d"]]))
    found = [bench.run(queue.dequeue_many(2)), bench.waits(queue.dequeue_many(3)), bench.run(queue.size())]
    bench.run(queue.enqueue_many([tf.constant([0, 2], tf.int64), ["e", "f"]]))
    found += [bench.run(queue.dequeue_up_to(3)), bench.run(queue.dequeue())]
    bench.run(queue.enqueue_many([tf.constant([9, 8, 9], tf.int64), ["x", "y", "x"]]))
    found += [bench.run(queue.dequeue()), bench.waits(queue.dequeue_up_to(3)), bench.run(queue.close())]
    # TensorFlow's loses what is left when a closed one is asked for up to more.
    return [*found, bench.run(queue.dequeue_many(3)), len(bench.run(queue.dequeue_many(2))[0])]


def without_shapes(tf):
    bench, queue = Bench(tf), tf.FIFOQueue(3, tf.int32)
    found = [bench.run(queue.enqueue([[1, 2]])), bench.run(queue.enqueue([[[3]]])), bench.run(queue.dequeue())]
    return [*found, bench.run(queue.dequeue()), bench.run(queue.dequeue_many(1)), bench.run(queue.dequeue_up_to(1))]


# -- barriers


class Barrier:
    """A barrier of two int32 components; each call is a step."""

    def __init__(self, tf: Any) -> None:
        self.tf, self.bench = tf, Bench(tf)
        self.handle = tf.raw_ops.Barrier(component_types=[tf.int32, tf.int32], shapes=[[], []])

    def insert(self, component: int, keys: list[str], values: list[int]) -> Any:
        return self.bench.run(
            self.tf.raw_ops.BarrierInsertMany(
                handle=self.handle, keys=self.tf.constant(keys, self.tf.string, [len(keys)]),
                values=self.tf.constant(values, self.tf.int32, [len(values)]), component_index=component,
            )
        )  # fmt: skip

    def taking(self, count: int, small: bool = False, incomplete: bool = False) -> Any:
        found = self.tf.raw_ops.BarrierTakeMany(
            handle=self.handle, num_elements=count, component_types=[self.tf.int32, self.tf.int32],
            allow_small_batch=small, wait_for_incomplete=incomplete,
        )  # fmt: skip
        # Of tuples that one insertion began, either may come first.
        order = self.tf.argsort(self.tf.strings.to_hash_bucket_fast(found.keys, 1000))
        return [self.tf.gather(each, order) for each in (found.indices, found.keys, *found.values)]

    def take(self, count: int, small: bool = False, incomplete: bool = False) -> Any:
        return self.bench.waits(self.taking(count, small, incomplete))

    def close(self, cancel: bool = False) -> Any:
        return self.bench.run(self.tf.raw_ops.BarrierClose(handle=self.handle, cancel_pending_enqueues=cancel))

    def size_tensors(self) -> list[Any]:
        raw = self.tf.raw_ops
        return [raw.BarrierReadySize(handle=self.handle), raw.BarrierIncompleteSize(handle=self.handle)]

    def sizes(self) -> Any:
        return self.bench.run(self.size_tensors())


def barrier_in_pieces(tf):
    """More is asked for than is ready; the taker gathers."""
    barrier = Barrier(tf)
    found = [barrier.insert(0, ["a", "b"], [1, 2]), barrier.insert(1, ["b"], [20]), barrier.sizes()]
    taking = barrier.bench.later(barrier.taking(3))
    found += [barrier.insert(0, ["c"], [3]), barrier.insert(1, ["c", "a"], [30, 10])]
    return [*found, sorted(np.transpose(taking.ended())[:, 1].tolist()), barrier.sizes()]


def barrier_indices(tf):
    """Whole tuples go in the order of the insertion that began them."""
    barrier = Barrier(tf)
    found = [barrier.insert(0, ["a", "b"], [1, 2]), barrier.insert(0, ["c"], [3]), barrier.insert(1, ["d"], [40])]
    found += [barrier.insert(1, ["c"], [30]), barrier.insert(0, ["d"], [4]), barrier.insert(1, ["b"], [20])]
    found += [barrier.insert(1, ["a"], [10]), barrier.take(3), barrier.take(1)]
    return [*found, barrier.insert(0, ["a"], [7]), barrier.insert(1, ["a"], [8]), barrier.take(1)]


def barrier_closed(tf, cancel):
    """What began before the close may be completed, unless cancelled; nothing new begins."""
    barrier = Barrier(tf)
    found = [barrier.insert(0, ["a", "b", "c"], [1, 2, 3]), barrier.insert(1, ["b"], [20])]
    found += [barrier.close(cancel), barrier.sizes(), barrier.insert(0, ["new"], [0]), barrier.sizes()]
    found += [barrier.insert(1, ["a"], [10]), barrier.sizes(), barrier.insert(1, ["new"], [9])]
    found += [barrier.sizes(), barrier.take(9), barrier.take(2), barrier.take(9, small=True), barrier.sizes()]
    found += [barrier.take(1), barrier.take(1, small=True), barrier.take(0), barrier.take(0, small=True)]
    found += [barrier.insert(1, [], []), barrier.close(), barrier.close(cancel=True), barrier.insert(0, ["z"], [1])]
    return found


def barrier_closed_under_takers(tf, small, incomplete):
    """A taker that waits when the barrier closes: with one tuple whole, one begun."""
    barrier = Barrier(tf)
    found = [barrier.insert(0, ["a", "b"], [1, 2]), barrier.insert(1, ["a"], [10])]
    taking = barrier.bench.later(barrier.taking(2, small, incomplete))
    found += [barrier.close(), barrier.insert(1, ["b"], [20])]
    got = taking.ended()
    # Whether the taker came before the close is left to chance; with small batches so is how many it gets.
    return [*found, got if not small else isinstance(got, list)]


def barrier_after_the_close(tf, small, incomplete):
    barrier = Barrier(tf)
    found = [barrier.insert(0, ["a", "b"], [1, 2]), barrier.insert(1, ["a"], [10]), barrier.close()]
    found += [barrier.take(3, small, incomplete), barrier.take(2, small, incomplete), barrier.sizes()]
    found += [barrier.insert(1, ["b"], [20]), barrier.sizes()]
    return [*found, barrier.take(2, small, incomplete), barrier.take(2, small, incomplete)]


def barrier_bad_requests(tf):
    barrier = Barrier(tf)
    found = [barrier.insert(0, ["a"], [1]), barrier.insert(0, ["a"], [2]), barrier.insert(1, ["a"], [3])]
    found += [barrier.insert(0, ["x", "a", "y", "x"], [4, 5, 6, 7]), barrier.sizes()]
    found += [barrier.take(2, small=True), barrier.take(1), barrier.sizes()]
    found += [barrier.insert(0, ["p"], [1]), barrier.sizes()]
    return found


BARRIER_SCENARIOS = {
    "in_pieces": barrier_in_pieces,
    "indices": barrier_indices,
    "closed": lambda tf: barrier_closed(tf, False),
    "closed_and_cancelled": lambda tf: barrier_closed(tf, True),
    **{
        f"{scenario.__name__}_{small}_{incomplete}": lambda tf, each=scenario, a=small, b=incomplete: each(tf, a, b)
        for scenario in (barrier_closed_under_takers, barrier_after_the_close)
        for small in (False, True)
        for incomplete in (False, True)
    },
    "bad_requests": barrier_bad_requests,
}


# -- accumulators


def accumulated(tf):
    bench = Bench(tf)
    total = tf.ConditionalAccumulator(tf.float32, [2], shared_name="one")
    step = tf.placeholder_with_default(np.int64(0), [])
    give = total.apply_grad([1.0, 3.0], step)
    found = [bench.run(give), bench.run(give), bench.run(total.num_accumulated()), bench.waits(total.take_grad(3))]
    # A taker that was cancelled is in nobody's way.
    found += [bench.run(total.take_grad(1)), bench.run(total.num_accumulated())]
    found += [bench.run(give), bench.run(total.num_accumulated()), bench.run(total.set_global_step(0))]
    found += [bench.run(give), bench.run(total.num_accumulated()), bench.run(total.take_grad(0))]
    found += [bench.run(total.take_grad(-1)), bench.run(total.set_global_step(7)), bench.run(total.take_grad(1))]
    found += [bench.session.run(give, {step: 7}), bench.run(total.num_accumulated())]
    found += [bench.session.run(give, {step: 8}), bench.run(total.num_accumulated()), bench.run(total.take_grad(1))]
    return found


def takers_in_a_row(tf):
    """Two that wait: the first gets what there is as soon as it is enough, the second what comes then."""
    bench = Bench(tf)
    total = tf.ConditionalAccumulator(tf.float32, [], reduction_type="SUM")
    give = total.apply_grad(2.0, 100)
    first, second = bench.later(total.take_grad(2)), bench.later(total.take_grad(2))
    for _ in range(4):
        bench.run(give)
    return [first.ended(), second.ended(), bench.run(total.num_accumulated())]


def sparse_accumulated(tf):
    bench = Bench(tf)
    found = []
    for reduction in ("MEAN", "SUM"):
        total = tf.SparseConditionalAccumulator(tf.float32, [4, 2], reduction_type=reduction)
        for rows in ([0, 2], [2], []):
            values = np.ones([len(rows), 2], np.float32) * (len(rows) + 1)
            found.append(bench.run(total.apply_grad(np.array(rows, np.int64), values, [4, 2], 0)))
        found += [bench.run(total.num_accumulated()), bench.waits(total.take_grad(4)), bench.run(total.take_grad(2))]
        found += [bench.run(total.apply_grad(np.array([1], np.int64), np.ones([1, 2], np.float32), [4, 2], 0))]
        found += [bench.run(total.num_accumulated()), bench.run(total.take_grad(0))]
        found += [bench.run(total.apply_grad(np.array([9], np.int64), np.ones([1, 2], np.float32), [5, 2], 9))]
        found += [bench.run(total.apply_grad(np.array([1, 2], np.int64), np.ones([1, 2], np.float32), [4, 2], 9))]
    return found


# -- staging areas


class Area:
    """A staging area of int32 vectors; each call is a step."""

    def __init__(self, tf: Any, name: str, capacity: int = 0, memory_limit: int = 0, kind: str = "") -> None:
        self.tf, self.bench, self.kind = tf, Bench(tf), kind
        self.options = {"dtypes": [tf.int32], "capacity": capacity, "memory_limit": memory_limit, "shared_name": name}
        if kind:
            self.options["dtypes"] = [tf.int32, tf.int32]

    def make(self, op: str, **arguments: Any) -> Any:
        # What is put tells its own types.
        options = {key: value for key, value in self.options.items() if op != "Stage" or key != "dtypes"}
        return getattr(self.tf.raw_ops, op)(**arguments, **options)

    def putting(self, *numbers: int) -> Any:
        return self.make("Stage", values=[self.tf.constant(list(numbers))])

    def put(self, *numbers: int) -> Any:
        return self.bench.waits(self.putting(*numbers))

    def take(self) -> Any:
        return self.bench.waits(self.make("Unstage"))

    def peek(self, index: int) -> Any:
        return self.bench.waits(self.make("StagePeek", index=index))

    def size(self) -> Any:
        return self.bench.run(self.make("StageSize"))

    # -- by key

    def put_parts(self, key: int, indices: list[int], values: list[int]) -> Any:
        options = dict(self.options)
        found = getattr(self.tf.raw_ops, f"{self.kind}Stage")(
            key=self.tf.constant(key, self.tf.int64), indices=self.tf.constant(indices, self.tf.int32, [len(indices)]),
            values=[self.tf.constant(value) for value in values], **options,
        )  # fmt: skip
        return self.bench.waits(found)

    def take_key(self, key: int, indices: tuple[int, ...] = (0, 1)) -> Any:
        return self._of_key("Unstage", key, indices)

    def peek_key(self, key: int, indices: tuple[int, ...] = (0, 1)) -> Any:
        return self._of_key("Peek", key, indices)

    def _of_key(self, op: str, key: int, indices: tuple[int, ...]) -> Any:
        options = {**self.options, "dtypes": [self.tf.int32] * len(indices)}
        if len(indices) < 2:
            options["dtypes"] = [self.tf.int32]
        made = getattr(self.tf.raw_ops, f"{self.kind}{op}")
        return self.bench.waits(made(key=self.tf.constant(key, self.tf.int64), indices=list(indices), **options))

    def take_any(self) -> Any:
        found = self.make(f"{self.kind}UnstageNoKey", indices=[0, 1])
        return self.bench.waits([found.key, *found.values])

    def sizes(self) -> Any:
        return self.bench.run([self.make(f"{self.kind}Size"), self.make(f"{self.kind}IncompleteSize")])

    def clear(self) -> Any:
        return self.bench.run(self.make(f"{self.kind}Clear" if self.kind else "StageClear"))


def staged(tf):
    """Only what ends: TensorFlow's staging areas do not mind a step's limit."""
    area = Area(tf, "plain")
    found = [area.put(1), area.put(2, 3), area.size(), area.peek(0), area.peek(1)]
    found += [area.take(), area.take(), area.size(), area.put(4), area.clear(), area.size()]
    waiting = area.bench.later(area.make("Unstage"))
    return [*found, area.put(5), waiting.ended(), area.size()]


def staged_within_bounds(tf):
    """By number and by bytes; what can never have room is refused, a waiter goes on when there is room again."""
    few = Area(tf, "few", capacity=2)
    found = [few.put(1), few.put(2), few.size()]
    waiting = few.bench.later(few.putting(4))
    found += [few.take(), waiting.ended(), few.size(), few.take(), few.take()]
    small = Area(tf, "small", memory_limit=12)
    found += [small.put(1, 2), small.put(5), small.put(1, 2, 3, 4), small.size()]
    waiting = small.bench.later(small.putting(7, 8, 9))
    found += [small.take(), small.take(), waiting.ended(), small.size()]
    both = Area(tf, "both", capacity=1, memory_limit=100)
    found += [both.put(1)]
    waiting = both.bench.later(both.putting(5))
    return [*found, both.clear(), waiting.ended(), both.take()]


def staged_by_key(tf, kind):
    area = Area(tf, "keys", kind=kind)
    found = [area.put_parts(5, [0], [1]), area.sizes(), area.put_parts(5, [1], [2]), area.sizes(), area.take_key(5)]
    found += [area.put_parts(7, [0, 1], [1, 2]), area.put_parts(3, [0, 1], [3, 4]), area.sizes(), area.peek_key(7)]
    found += [area.sizes(), sorted([area.take_any(), area.take_any()]), area.sizes()]
    found += [area.put_parts(1, [0], [1]), area.put_parts(1, [0], [2]), area.clear()]
    found += [area.sizes(), area.put_parts(4, [1, 0], [1, 2]), area.put_parts(4, [0, 1], [8, 9]), area.sizes()]
    return found


def scenarios() -> dict[str, Any]:
    found = {
        f"{scenario.__name__}/{kind}/{method}": lambda tf, each=scenario, a=kind, b=method: each(tf, a, b)
        for scenario in QUEUE_SCENARIOS
        for kind in KINDS
        # TensorFlow's priority queue spins for ever when asked for more than its room, and loses what a closed one has.
        if kind != "priority"
        or scenario
        not in (much_through_little, takers_behind_each_other, closed_with_some_left, closed_behind_a_filler)
        for method in ("dequeue_many", "dequeue_up_to")
    }
    others = [
        shuffled_with_a_reserve, shuffled_beyond_its_room, padded, prioritised, without_shapes,
        accumulated, takers_in_a_row, sparse_accumulated, staged, staged_within_bounds,
    ]  # fmt: skip
    found.update({each.__name__: each for each in others})
    found.update({f"barrier_{name}": scenario for name, scenario in BARRIER_SCENARIOS.items()})
    for kind in ("Map", "OrderedMap"):
        found[f"staged_by_key/{kind}"] = lambda tf, kind=kind: staged_by_key(tf, kind)
    return found


def main(runtime: str, path: str, only: str = "") -> None:
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    found = {}
    for name, scenario in scenarios().items():
        if only in name:
            with tf.Graph().as_default():
                found[name] = scenario(tf)
    np.savez(path)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
