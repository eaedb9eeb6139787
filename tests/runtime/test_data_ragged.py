"""tf.data: ragged tensors as elements, and batches of tensors whose sizes differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dtf as tf

Dataset, experimental = tf.data.Dataset, tf.data.experimental
ROWS = [[1, 2], [], [3]]
DEEP = [[[1], [2, 3]], [], [[4]]]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def all_of(dataset: Dataset) -> list[Any]:
    following = dataset.make_one_shot_iterator().get_next()
    taken = []
    with tf.Session() as session:
        while True:
            try:
                taken.append(plain(session.run(following)))
            except tf.errors.OutOfRangeError:
                return taken


def plain(value: Any) -> Any:
    if isinstance(value, tuple) and not isinstance(value, tf.SparseTensorValue):
        return tuple(map(plain, value))
    return value.to_list() if hasattr(value, "to_list") else np.asarray(value).tolist()


def test_a_ragged_tensor_is_an_element_and_its_rows_are_elements() -> None:
    ragged = tf.ragged.constant(DEEP)
    assert all_of(Dataset.from_tensors(ragged)) == [DEEP]
    assert all_of(Dataset.from_tensor_slices((ragged, [7, 8, 9]))) == [
        ([[1], [2, 3]], 7), ([], 8), ([[4]], 9)
    ]  # fmt: skip
    assert all_of(Dataset.from_tensors(ragged).unbatch().unbatch()) == [[1], [2, 3], [4]]
    assert all_of(Dataset.from_tensors(tf.ragged.constant_value(ROWS))) == [ROWS]


def test_a_function_takes_and_gives_ragged_tensors() -> None:
    rows = Dataset.from_tensor_slices(tf.ragged.constant(DEEP))
    assert all_of(rows.map(lambda row: tf.reduce_sum(row * 2, axis=1))) == [[2, 10], [], [8]]
    assert all_of(Dataset.range(2).map(lambda n: tf.RaggedTensor.from_row_lengths([1, 2, 3], [n + 1, 2 - n]))) == [
        [[1], [2, 3]], [[1, 2], [3]]
    ]  # fmt: skip


def test_batches_of_ragged_rows_are_the_ragged_tensor_again() -> None:
    rows = Dataset.from_tensor_slices(tf.ragged.constant(DEEP))
    assert rows.batch(3).element_spec == tf.RaggedTensorSpec([None, None, None], tf.int32, 2)
    assert all_of(rows.batch(3)) == [DEEP]
    assert all_of(rows.batch(2)) == [DEEP[:2], DEEP[2:]]
    with pytest.raises(TypeError, match="nor of ragged ones"):
        rows.padded_batch(2)


def test_tensors_of_several_lengths_make_a_ragged_batch() -> None:
    lengths = Dataset.range(4).map(tf.range)
    ragged = lengths.apply(experimental.dense_to_ragged_batch(3, row_splits_dtype=tf.int32))
    assert ragged.element_spec == tf.RaggedTensorSpec([None, None], tf.int64, 1, tf.int32)
    assert all_of(ragged) == [[[], [0], [0, 1]], [[0, 1, 2]]]
    assert all_of(lengths.ragged_batch(3, drop_remainder=True)) == [[[], [0], [0, 1]]]
    squares = Dataset.range(1, 3).map(lambda n: {"a": tf.ones([n, n]), "b": n})
    batch = squares.ragged_batch(2)
    assert batch.element_spec["a"].ragged_rank == 2 and batch.element_spec["b"].shape.ndims == 1
    found = batch.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(found["a"]).to_list() == [[[1]], [[1, 1], [1, 1]]]


def test_the_rows_of_a_sparse_tensor_are_elements_of_three_parts_or_sparse_tensors() -> None:
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [7, 8], [3, 2])
    assert all_of(Dataset.from_sparse_tensor_slices(sparse)) == [
        ([[1]], [7], [2]), ([], [], [2]), ([[0]], [8], [2])
    ]  # fmt: skip
    with pytest.raises(TypeError, match="must be a `tf.SparseTensor`"):
        Dataset.from_sparse_tensor_slices([1])
    rows = Dataset.from_tensors((sparse, [1, 2, 3])).unbatch().map(lambda row, n: (tf.sparse_tensor_to_dense(row), n))
    assert all_of(rows) == [([0, 7], 1), ([0, 0], 2), ([8, 0], 3)]
