"""Queues of names and batches must end, fail and begin anew as their QueueRunners' users expect."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def outcome(fetches, steps=50):
    """What the steps give up to the end of the input; any other error is raised."""
    taken = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop() and len(taken) < steps:
            taken.append(session.run(fetches))
    return taken


def numbers(count, **options):
    return tf.train.range_input_producer(count, num_epochs=1, **options).dequeue()


def test_a_monitored_session_ends_with_the_input():
    batch = tf.train.batch([numbers(5, shuffle=False)], 2, allow_smaller_final_batch=True)
    assert [each.tolist() for each in outcome(batch)] == [[0, 1], [2, 3], [4]]


def test_without_a_smaller_last_batch_the_rest_is_dropped():
    batch = tf.train.batch([numbers(5, shuffle=False)], 2)
    assert [each.tolist() for each in outcome(batch)] == [[0, 1], [2, 3]]


def test_a_seed_fixes_the_order():
    orders = []
    for _ in range(2):
        with tf.Graph().as_default():
            orders.append([int(each) for each in outcome(numbers(8, seed=3))])
    assert orders[0] == orders[1] != sorted(orders[0])


def test_shuffled_batches_hold_all_elements():
    batch = tf.train.shuffle_batch([numbers(20)], 5, 12, 4, num_threads=2, allow_smaller_final_batch=True)
    assert sorted(np.concatenate(outcome(batch)).tolist()) == list(range(20))


def test_several_sources_fill_one_queue():
    sources = [[numbers(3, shuffle=False, name=f"source_{index}") + 10 * index] for index in range(3)]
    batch = tf.train.shuffle_batch_join(sources, 3, 20, 2, allow_smaller_final_batch=True)
    assert sorted(np.concatenate(outcome(batch)).tolist()) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_sparse_tensors_are_batched_and_those_not_kept_do_not_stay():
    number = tf.cast(numbers(4, shuffle=False), tf.int64)
    sparse = tf.SparseTensor([[number]], [number], [5])
    batch = tf.train.maybe_batch({"sparse": sparse, "dense": number}, number > 1, 2)
    (only,) = outcome(batch)
    assert only["sparse"].indices.tolist() == [[0, 2], [1, 3]]
    assert only["sparse"].dense_shape.tolist() == [2, 5]
    assert only["dense"].tolist() == [2, 3]


def test_an_element_of_another_shape_fails_the_reading_step():
    size = numbers(3, shuffle=False)
    batch = tf.train.batch([tf.placeholder_with_default(tf.range(size), [None])], 2, shapes=[[0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="[Ss]hape"):
        outcome(batch)


def test_a_file_that_is_missing_fails_the_reading_step(tmp_path):
    names = tf.train.string_input_producer([str(tmp_path / "none")])
    _, line = tf.TextLineReader().read(names)
    with pytest.raises(tf.errors.NotFoundError, match="none; No such file"):
        outcome(tf.train.batch([line], 2))


def test_corrupt_records_fail_the_reading_step(tmp_path):
    path = tmp_path / "records"
    path.write_bytes(b"?" * 40)
    _, record = tf.TFRecordReader().read(tf.train.string_input_producer([str(path)]))
    with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0"):
        outcome(tf.train.batch([record], 2))


def test_a_queue_may_be_shared_by_name():
    batch = tf.train.batch([numbers(2)], 2, shared_name="batches")
    assert batch.op.inputs[0].op.get_attr("shared_name") == b"batches"


def test_how_full_a_queue_is_is_a_summary(graph):
    tf.train.shuffle_batch([numbers(20)], 5, 12, 4)
    assert [each.op.name for each in graph.get_collection("summaries")] == [
        "input_producer/fraction_of_32_full", "shuffle_batch/fraction_over_4_of_8_full",
    ]  # fmt: skip


def test_files_are_matched_when_local_variables_are_initialized(tmp_path):
    names = tf.train.match_filenames_once(str(tmp_path / "*.txt"))
    (tmp_path / "late.txt").write_text("x")
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(names).tolist() == [str(tmp_path / "late.txt").encode()]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tf.train.string_input_producer([]), ValueError, "non-null"),
        (lambda: tf.train.limit_epochs(1, 0), ValueError, "num_epochs must be > 0 not 0"),
        (lambda: tf.train.slice_input_producer([]), ValueError, "at least one tensor"),
        (lambda: tf.train.input_producer(tf.placeholder(tf.int32)), ValueError, "element_shape"),
        (lambda: tf.train.batch([], 2), ValueError, "at least one tensor"),
        (lambda: tf.train.batch([tf.placeholder(tf.int32)], 2), ValueError, "Cannot infer Tensor's rank"),
        (lambda: tf.train.batch([tf.placeholder(tf.int32, [None])], 2), ValueError, "fully defined"),
        (lambda: tf.train.batch_join([], 2), ValueError, "at least one set"),
        (lambda: tf.train.batch_join([[1], [1, 2]], 2), ValueError, "same number"),
        (lambda: tf.train.batch_join([[1], [1.0]], 2), TypeError, "int32 vs. float32"),
        (lambda: tf.train.maybe_batch([1], [True], 2), ValueError, "cannot be a vector"),
        (lambda: tf.train.shuffle_batch([1], 2, 2, 2), ValueError, "min_after_dequeue"),
    ],
)
def test_a_wrong_argument_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
