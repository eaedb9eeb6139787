"""Variables in parts: what the partitioners give, and that one that does not fit is told by name.

The parts are those that TensorFlow 2.21 makes for the same arguments.
"""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def parts(partitioner, shape=(10, 4), **more):
    return [part.shape.as_list() for part in tf.get_variable("v", shape, partitioner=partitioner, **more)]


def rows(*counts, width=4):
    return [[count, width] for count in counts]


@pytest.mark.parametrize(
    ("partitioner", "expected"),
    [
        (tf.fixed_size_partitioner(3), rows(4, 3, 3)),
        (tf.fixed_size_partitioner(20), rows(*[1] * 10)),
        (tf.fixed_size_partitioner(2, axis=-1), [[10, 2], [10, 2]]),
        (tf.variable_axis_size_partitioner(48), rows(3, 3, 2, 2)),
        (tf.variable_axis_size_partitioner(48, axis=1), [[10, 1]] * 4),
        (tf.variable_axis_size_partitioner(3), rows(*[1] * 10)),
        (tf.variable_axis_size_partitioner(16, max_shards=3), rows(4, 3, 3)),
        (tf.min_max_variable_partitioner(4, min_slice_size=32), rows(3, 3, 2, 2)),
        (tf.min_max_variable_partitioner(4, min_slice_size=64), rows(4, 3, 3)),
        (tf.min_max_variable_partitioner(4), rows(10)),
    ],
)
def test_a_variable_is_cut_as_its_partitioner_says(partitioner, expected):
    assert parts(partitioner) == expected


def test_strings_count_by_the_bytes_that_are_given_for_one():
    partitioner = tf.min_max_variable_partitioner(4, min_slice_size=64, bytes_per_string_element=8)
    assert parts(partitioner, dtype=tf.string, initializer=tf.constant_initializer(b"")) == rows(3, 3, 2, 2)[:4]


@pytest.mark.parametrize(
    ("partitioner", "words"),
    [
        (tf.fixed_size_partitioner(2, axis=2), r"shape \(10, 4\) cannot be partitioned along axis 2: it has 2 axes"),
        (tf.variable_axis_size_partitioner(48, axis=5), "cannot be partitioned along axis 5"),
        (tf.min_max_variable_partitioner(4, axis=-3), "cannot be partitioned along axis -3"),
        (tf.fixed_size_partitioner(0), r"zero partitions for some axes: \[0, 1\]"),
        (lambda shape, dtype: [2, 2], "Can only slice a variable along one dimension"),
        (lambda shape, dtype: [2], "does not match the Variable's rank"),
        (lambda shape, dtype: [11, 1], r"v of shape \(10, 4\) is too small for the parts .*: \[11, 1\]"),
        (lambda shape, dtype: 2, "must return a sequence"),
        (3, "The partitioner of v is not a function"),
    ],
)
def test_a_partitioner_that_does_not_fit_is_told_by_name(partitioner, words):
    with pytest.raises(ValueError, match=words):
        parts(partitioner)


def test_bounds_that_are_not_positive_and_other_parts_than_there_are_are_refused():
    for make in (
        lambda: tf.min_max_variable_partitioner(0),
        lambda: tf.min_max_variable_partitioner(2, min_slice_size=0),
        lambda: tf.variable_axis_size_partitioner(0),
    ):
        with pytest.raises(ValueError, match="must be positive"):
            make()
    parts(tf.fixed_size_partitioner(2))
    words = r"partitioned variable v, but its partitioner gives \[5, 1\], and it has \[2, 1\]"
    with tf.variable_scope("", reuse=True), pytest.raises(ValueError, match=words):
        parts(tf.fixed_size_partitioner(5))


def test_a_lookup_for_ids_as_they_come_leaves_out_what_does_not_count():
    values = tf.constant(np.arange(6, dtype=np.float32)[:, np.newaxis])
    table = tf.get_variable("v", initializer=values, partitioner=tf.fixed_size_partitioner(2))
    ids = tf.sparse_placeholder(tf.int64)
    zeros = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum")
    fifths = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum", default_id=5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        given = {ids: ([[0, 0], [0, 1], [2, 0]], [1, 3, -1], [4, 2])}
        assert session.run(zeros, given).ravel().tolist() == [4, 0, 0, 0]
        assert session.run(fifths, given).ravel().tolist() == [4, 5, 5, 5]
    with pytest.raises(ValueError, match="Missing embedding_weights"):
        tf.nn.safe_embedding_lookup_sparse(None, ids)


@pytest.mark.parametrize("optimizer", [tf.train.AdamOptimizer, tf.train.AdagradOptimizer, tf.train.FtrlOptimizer])
def test_sparse_gradients_reach_only_the_rows_that_were_used(optimizer):
    table = tf.get_variable("v", [6, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2))
    ids = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], np.array([1, 4, 1]), [2, 2])
    loss = tf.reduce_sum(tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum", partition_strategy="div") ** 2)
    train_op = optimizer(0.1).minimize(loss)
    assert all(isinstance(gradient, tf.IndexedSlices) for gradient in tf.gradients(loss, list(table)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        after = session.run(table.as_tensor())
    changed = np.any(after != 1.0, axis=1)
    assert changed.tolist() == [False, True, False, False, True, False]
