"""What grows bit by bit, and kernels whose results are larger than their inputs, must stop before memory ends."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run.kernels.linalg import _einsum_shape
from dtf.run.lib import growth
from dtf.run.lib.growth import Growth
from dtf.wire import errors, limits


@pytest.fixture
def full_memory(monkeypatch):
    """A machine without free memory, which is looked at often."""
    monkeypatch.setattr(growth, "LOOKED_AT_EACH_BYTES", 1 << 16)
    monkeypatch.setattr(limits, "available_bytes", lambda: 1000)


def test_only_what_a_container_has_not_held_before_is_counted(full_memory):
    grown = Growth("a pile")
    for _ in range(10_000):
        grown.add((np.zeros(100),), 5)
    with pytest.raises(errors.ResourceExhaustedError, match="a pile cannot grow: only 1000 of memory are free"):
        for size in range(1000):
            grown.add((np.zeros(100),), size)


def test_where_memory_is_free_containers_grow(monkeypatch):
    monkeypatch.setattr(growth, "LOOKED_AT_EACH_BYTES", 1 << 16)
    grown = Growth("a pile")
    for size in range(1000):
        grown.add((np.zeros(100),), size)


ENDLESS = {
    "a batch": lambda data: data.batch(1 << 40),
    "a shuffle buffer": lambda data: data.shuffle(1 << 40),
    "a cache": lambda data: data.cache().skip(1 << 40),
    "a window": lambda data: data.window(1 << 40).flat_map(lambda x: x),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_a_dataset_that_keeps_an_endless_source_fails(full_memory, what):
    with tf.Graph().as_default(), tf.Session() as session:
        data = ENDLESS[what](tf.data.Dataset.range(10).repeat())
        element = tf.data.make_one_shot_iterator(data).get_next()
        with pytest.raises(errors.ResourceExhaustedError, match=f"{what} cannot grow"):
            session.run(element)


def kept_in_a_queue():
    return tf.FIFOQueue(-1, tf.float32, name="q").enqueue(tf.zeros([3000]))


def kept_in_a_padding_queue():
    return tf.PaddingFIFOQueue(10**9, tf.float32, [[None]], name="q").enqueue_many(tf.zeros([5, 3000]))


def kept_in_a_staging_area():
    return tf.contrib.staging.StagingArea([tf.float32]).put([tf.zeros([3000])])


def kept_by_the_session():
    return tf.get_session_handle(tf.zeros([3000]))


def kept_in_a_table():
    keys = tf.range(1000, dtype=tf.int64) + tf.cast(tf.assign_add(tf.Variable(0, name="n"), 1000), tf.int64)
    return tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, 0).insert(keys, keys)


def kept_in_a_stack():
    stack = apply_op("StackV2", "s", max_size=-1, elem_type=tf.float32, stack_name="s")
    condition, body = lambda i: i < 1000, lambda i: _pushed(stack, i)
    return tf.while_loop(condition, body, [0])


def _pushed(stack, i):
    with tf.control_dependencies([apply_op("StackPushV2", None, handle=stack, elem=tf.zeros([3000]))]):
        return i + 1


def kept_in_an_accumulator():
    kept = tf.SparseConditionalAccumulator(tf.float32, [None, 3000], name="a")
    return kept.apply_grad(np.array([1], np.int64), np.zeros([1, 3000], np.float32))


KEPT = (
    kept_in_a_queue, kept_in_a_padding_queue, kept_in_a_staging_area, kept_by_the_session, kept_in_a_table,
    kept_in_a_stack, kept_in_an_accumulator,
)  # fmt: skip


@pytest.mark.parametrize("keep", KEPT)
def test_what_steps_leave_behind_cannot_fill_the_memory(full_memory, keep):
    with tf.Graph().as_default(), tf.Session() as session:
        fetch = keep()
        session.run(tf.global_variables_initializer())
        with pytest.raises(errors.ResourceExhaustedError, match=r"cannot grow|no room|OOM"):
            for _ in range(1000):
                session.run(fetch)


HUGE = 1 << 18


def outer_product():
    return tf.einsum("i,j->ij", tf.zeros([HUGE]), tf.zeros([HUGE]))


def crossed(sparse, dense=()):
    """sparse: (indices, values, shape) of each column."""
    indices, values, shapes = zip(*sparse, strict=True) if sparse else ((), (), ())
    return apply_op(
        "SparseCross", None, indices=indices, values=values, shapes=shapes, dense_inputs=dense, hashed_output=True,
        num_buckets=100, hash_key=1, out_type=tf.int64, internal_type=tf.int64,
    )[1]  # fmt: skip


def rows_of_an_empty_cross():
    return crossed([(np.zeros([0, 2], np.int64), np.zeros([0], np.int64), np.int64([1 << 40, 1]))] * 2)


def crosses_of_a_row():
    return crossed([], [np.arange(1 << 10)[None]] * 3)


def wide_beams():
    return tf.nn.ctc_beam_search_decoder(tf.zeros([9, 1, 200]), [9], beam_width=1 << 30)[1]


@pytest.mark.parametrize("make", [outer_product, rows_of_an_empty_cross, crosses_of_a_row, wide_beams])
def test_a_result_that_no_memory_holds_is_refused_before_it_is_made(make, monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: 1 << 28)
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(errors.ResourceExhaustedError, match="OOM"):
        session.run(make())


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij->", [(2, 3)]),
        ("i,j->ji", [(2,), (3,)]),
        ("...ij,...jk->...ik", [(7, 1, 2, 3), (5, 3, 4)]),
        ("a...b,b->...a", [(2, 5, 6, 3), (3,)]),
        ("...,...->...", [(3, 1), (4,)]),
    ],
)
def test_the_shape_of_a_contraction_is_known_before_it_is_computed(equation, shapes):
    operands = [np.zeros(shape) for shape in shapes]
    assert _einsum_shape(equation, operands) == np.einsum(equation, *operands).shape
