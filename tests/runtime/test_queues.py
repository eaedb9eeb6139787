"""Queues must gather piece by piece, and let nobody wait whose turn has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dtf.run.state.accumulators import Accumulator, DenseSum
from dtf.run.state.queues import FifoStorage, PriorityStorage, Queue, ShuffleStorage
from dtf.run.state.staging import Barrier
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape

SCALAR = TensorShape([])


class Ended:
    """What an operation reported, if it has."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: errors.OpError | None = None
        self.is_over = False

    def __call__(self, value: Any = (), error: errors.OpError | None = None) -> None:
        assert not self.is_over
        self.value, self.error, self.is_over = value, error, True


def started(method: Callable[..., None], *arguments: Any, cancellation: CancellationManager | None = None) -> Ended:
    ended = Ended()
    method(*arguments, cancellation, ended)
    return ended


STORAGES = {
    "FIFOQueue": FifoStorage,
    "PaddingFIFOQueue": FifoStorage,
    "RandomShuffleQueue": lambda: ShuffleStorage(2, 1),
}


@pytest.fixture(params=sorted(STORAGES))
def queue(request):
    return Queue(request.param, "q", STORAGES[request.param](), 10, [dtypes.int32], [SCALAR])


@pytest.mark.parametrize("taker_first", [False, True])
@pytest.mark.parametrize("allow_fewer", [False, True])
def test_more_than_its_room_goes_through_a_queue_in_one_operation(queue, taker_first, allow_fewer):
    if taker_first:
        taking = started(queue.dequeue_many, 20)
    filling = started(queue.enqueue_many, (np.arange(62, dtype=np.int32),))
    if not taker_first:
        taking = Ended()
        queue.dequeue_many(20, None, taking, allow_fewer)
    more = [started(queue.dequeue_many, 20) for _ in range(2)]
    assert filling.is_over
    got = np.concatenate([each.value[0] for each in (taking, *more)])
    assert len(got) == 60 and len(queue) == 2
    if queue.kind != "RandomShuffleQueue":
        np.testing.assert_array_equal(got, np.arange(60))


def test_a_close_behind_an_enqueue_comes_when_that_has_ended_or_is_cancelled(queue):
    for cancelled in (False, True):
        each = Queue(queue.kind, "q", STORAGES[queue.kind](), 3, [dtypes.int32], [SCALAR])
        cancellation = CancellationManager()
        filling = started(each.enqueue_many, (np.arange(5, dtype=np.int32),), cancellation=cancellation)
        closing, again = started(each.shut, False), started(each.shut, False)
        assert not (filling.is_over or closing.is_over or again.is_over)
        if cancelled:
            cancellation.start_cancel()
        else:
            assert len(started(each.dequeue_many, 3).value[0]) == 3
        assert isinstance(filling.error, errors.CancelledError if cancelled else type(None))
        assert closing.is_over and closing.error is None and each.is_closed
        assert isinstance(again.error, errors.CancelledError)


def test_what_a_cancelled_taker_has_gathered_comes_first_again():
    queue = Queue("FIFOQueue", "q", FifoStorage(), 10, [dtypes.int32], [SCALAR])
    cancellation = CancellationManager()
    large = started(queue.dequeue_many, 5, cancellation=cancellation)
    behind = started(queue.dequeue)
    started(queue.enqueue_many, (np.arange(3, dtype=np.int32),))
    assert not behind.is_over and len(queue) == 0
    cancellation.start_cancel()
    assert isinstance(large.error, errors.CancelledError)
    assert behind.value[0] == 0 and len(queue) == 2


def test_a_priority_queue_gives_the_least_of_all_that_are_there_at_the_end():
    queue = Queue("PriorityQueue", "q", PriorityStorage(), 10, [dtypes.int64], [SCALAR])
    started(queue.enqueue_many, (np.array([5, 4]),))
    taking = started(queue.dequeue_many, 3)
    assert len(queue) == 2
    started(queue.enqueue_many, (np.array([9, 1]),))
    assert taking.value[0].tolist() == [1, 4, 5]


def test_who_stands_behind_a_cancelled_taker_of_an_accumulator_gets_its_turn():
    total = Accumulator("ConditionalAccumulator", "a", dtypes.float32, SCALAR, "SUM", DenseSum(SCALAR))
    cancellation = CancellationManager()
    large = started(total.take, 5, cancellation=cancellation)
    small = started(total.take, 1)
    total.apply(0, np.float32(2))
    assert not small.is_over
    cancellation.start_cancel()
    assert isinstance(large.error, errors.CancelledError) and small.value == 2


def test_a_closed_barrier_waits_for_what_began_before():
    barrier = Barrier("b", [np.int32, np.int32], [(), ()])
    barrier.insert_many(0, [b"a", b"b"], np.array([1, 2], np.int32))
    barrier.insert_many(1, [b"a"], np.array([10], np.int32))
    taking = started(barrier.take_many, 2, False)
    barrier.shut(False)
    assert not taking.is_over
    assert isinstance(started(barrier.take_many, 3, False).error, errors.OutOfRangeError)
    barrier.insert_many(1, [b"b"], np.array([20], np.int32))
    indices, keys, *values = taking.value
    assert indices[0] == indices[1]
    assert keys.tolist() == [b"a", b"b"] and [each.tolist() for each in values] == [[1, 2], [10, 20]]
    with pytest.raises(errors.CancelledError):
        barrier.shut(False)
