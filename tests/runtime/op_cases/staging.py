"""Cases of staging areas, barriers and mutexes."""

from __future__ import annotations

import threading

import numpy as np

import dtf as tf
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.data_flow import in_order
from tests.runtime.op_cases.io import raises

ops = tf.raw_ops
PAIR = {"dtypes": [tf.float32, tf.int32], "shared_name": "pairs"}


def a_staging_area_hands_on_in_order():
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = (ops.Stage(values=[tf.constant(1.5 * n), tf.constant(n)], shared_name="pairs") for n in (1, 2))
        peek = ops.StagePeek(index=1, **PAIR)
        take, size, clear = ops.Unstage(**PAIR), ops.StageSize(**PAIR), ops.StageClear(**PAIR)
        session.run(first)
        session.run(second)
        assert session.run(peek) == [3.0, 2]
        assert session.run(take) == [1.5, 1]
        assert session.run(size) == 1
        session.run(clear)
        assert session.run(size) == 0


def a_full_staging_area_lets_its_stager_wait():
    with tf.Graph().as_default(), tf.Session() as session:
        stage = ops.Stage(values=[tf.constant(1.0)], shared_name="one", capacity=1)
        take = ops.Unstage(dtypes=[tf.float32], shared_name="one", capacity=1)
        session.run(stage)
        second = threading.Thread(target=session.run, args=(stage,))
        second.start()
        assert session.run(take) == [1.0]
        second.join(10)
        assert session.run(take) == [1.0]


def a_map_area_hands_on_what_is_whole(kind):
    def op(name):
        return getattr(ops, kind + name)

    with tf.Graph().as_default(), tf.Session() as session:
        key = tf.placeholder(tf.int64, [])
        left = op("Stage")(key=key, indices=[0], values=[tf.constant(1.5)], **PAIR)
        right = op("Stage")(key=key, indices=[1], values=[tf.constant(5)], **PAIR)
        size, incomplete = op("Size")(**PAIR), op("IncompleteSize")(**PAIR)
        session.run(left, {key: 7})
        assert session.run([size, incomplete]) == [0, 1]
        with raises(tf.errors.InvalidArgumentError, "was already initialized"):
            session.run(left, {key: 7})
        session.run(right, {key: 7})
        assert session.run([size, incomplete]) == [1, 0]
        peek = op("Peek")(key=key, indices=[1], dtypes=[tf.int32], shared_name="pairs")
        assert session.run(peek, {key: 7}) == [5]
        assert session.run(op("Unstage")(key=key, indices=[0, 1], **PAIR), {key: 7}) == [1.5, 5]
        for number in (9, 3):
            session.run([left, right], {key: number})
        found, values = session.run(op("UnstageNoKey")(indices=[0, 1], **PAIR))
        assert found == (3 if kind == "OrderedMap" else 9) and values == [1.5, 5]
        session.run(op("Clear")(**PAIR))
        assert session.run(size) == 0


def make_barrier(**attrs):
    return ops.Barrier(component_types=[tf.float32, tf.int32], shapes=[(), (2,)], **attrs)


def a_barrier_gives_whole_tuples():
    with tf.Graph().as_default(), tf.Session() as session:
        barrier = make_barrier()
        sizes = []
        taken = in_order(
            lambda: ops.BarrierInsertMany(handle=barrier, keys=["a", "b"], values=[1.0, 2.0], component_index=0),
            lambda: ops.BarrierInsertMany(handle=barrier, keys=["b"], values=[[1, 2]], component_index=1),
            lambda: sizes.extend([ops.BarrierReadySize(handle=barrier), ops.BarrierIncompleteSize(handle=barrier)])
            or sizes,
            lambda: tf.nest.flatten(ops.BarrierTakeMany(
                handle=barrier, num_elements=1, component_types=[tf.float32, tf.int32])),
        )  # fmt: skip
        (indices, keys, first, second), counts = session.run([taken, sizes])
    assert counts == [1, 1]
    assert indices.tolist() == [-(2**63)] and keys.tolist() == [b"b"]
    np.testing.assert_array_equal(first, [2.0])
    np.testing.assert_array_equal(second, [[1, 2]])


def a_closed_barrier_takes_nothing_new_and_gives_what_it_has():
    with tf.Graph().as_default(), tf.Session() as session:
        barrier = ops.Barrier(component_types=[tf.float32], shapes=[()], shared_name="closing")
        insert = ops.BarrierInsertMany(handle=barrier, keys=["a"], values=[1.0], component_index=0)
        take = [
            ops.BarrierTakeMany(handle=barrier, num_elements=2, component_types=[tf.float32], allow_small_batch=small)
            for small in (False, True)
        ]
        session.run(insert)
        session.run(ops.BarrierClose(handle=barrier))
        with raises(tf.errors.CancelledError, "is closed.  Pending enqueues cancelled: 0.  Number of new"):
            session.run(insert)
        with raises(tf.errors.OutOfRangeError, "is closed and has insufficient elements (requested 2, total size 1)"):
            session.run(take[0])
        assert session.run(take[1].values) == [[1.0]]


def a_mutex_is_held_by_one_step_at_a_time():
    with tf.Graph().as_default(), tf.Session() as session:
        mutex = ops.MutexV2(shared_name="one")
        lock = ops.MutexLock(mutex=mutex)
        consume = ops.ConsumeMutexLock(mutex_lock=lock)
        for _ in range(2):
            session.run(consume)
        session.run(lock.op)  # a lock that nobody consumes ends with its step
        session.run(consume)


RUNS = {
    "Stage Unstage StagePeek StageSize StageClear": a_staging_area_hands_on_in_order,
    "Barrier BarrierInsertMany BarrierTakeMany BarrierReadySize BarrierIncompleteSize": a_barrier_gives_whole_tuples,
    "BarrierClose": a_closed_barrier_takes_nothing_new_and_gives_what_it_has,
    "MutexV2 MutexLock ConsumeMutexLock": a_mutex_is_held_by_one_step_at_a_time,
}
CASES = [
    *[Case(op, run=run) for names, run in RUNS.items() for op in names.split()],
    Case("Stage", run=a_full_staging_area_lets_its_stager_wait, name="full"),
    *[
        Case(kind + what, run=lambda kind=kind: a_map_area_hands_on_what_is_whole(kind))
        for kind in ("Map", "OrderedMap")
        for what in ("Stage", "Unstage", "UnstageNoKey", "Peek", "Size", "IncompleteSize", "Clear")
    ],
]
