"""Sequence columns give a vector for each step of an example, and the number of its steps."""

from __future__ import annotations

import pytest

import dtf as tf

WORDS = [[0, 0], [0, 1], [2, 0]]


@pytest.fixture(autouse=True)
def _a_graph_of_its_own():
    with tf.Graph().as_default():
        yield


def _run(values):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return [each.tolist() for each in session.run(list(values))]


def test_steps_have_the_vectors_of_their_classes_and_numbers():
    column = tf.feature_column
    words = column.sequence_categorical_column_with_vocabulary_list("word", ["a", "b"])
    table = tf.constant_initializer([[1.0, 2.0], [3.0, 4.0]])
    features = {
        "word": tf.SparseTensor(WORDS, ["a", "b", "b"], [3, 2]),
        "size": tf.SparseTensor(WORDS, [10.0, 20.0, 30.0], [3, 2]),
    }
    columns = [
        column.embedding_column(words, 2, initializer=table),
        column.sequence_numeric_column("size", default_value=-1.0),
    ]
    values, lengths = _run(tf.contrib.feature_column.sequence_input_layer(features, columns))
    assert values == [
        [[10, 1, 2], [20, 3, 4]], [[-1, 0, 0], [-1, 0, 0]], [[30, 3, 4], [-1, 0, 0]]
    ]  # fmt: skip
    assert lengths == [2, 0, 1]


def test_an_indicator_counts_the_classes_of_each_step():
    ids = tf.feature_column.sequence_categorical_column_with_identity("id", 3)
    features = {"id": tf.SparseTensor(WORDS, tf.constant([0, 2, 1], tf.int64), [3, 2])}
    layer = tf.contrib.feature_column.sequence_input_layer(features, [tf.feature_column.indicator_column(ids)])
    values, lengths = _run(layer)
    assert values[0] == [[1, 0, 0], [0, 0, 1]] and values[1] == [[0, 0, 0]] * 2 and lengths == [2, 0, 1]


def test_sequence_columns_are_refused_elsewhere():
    ids = tf.feature_column.sequence_categorical_column_with_identity("id", 3)
    features = {"id": tf.SparseTensor(WORDS, tf.constant([0, 2, 1], tf.int64), [3, 2])}
    with pytest.raises(ValueError, match="sequence_input_layer only"):
        tf.feature_column.input_layer(features, [tf.feature_column.indicator_column(ids)])
    with pytest.raises(ValueError, match="must be of type"):
        tf.contrib.feature_column.sequence_input_layer(features, [tf.feature_column.numeric_column("id")])


def test_an_embedding_column_cuts_long_vectors_and_reads_checkpoints(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        vectors = tf.get_variable("vectors", initializer=[[3.0, 4.0], [0.3, 0.4]])
        session.run(vectors.initializer)
        path = tf.train.Saver([vectors]).save(session, str(tmp_path / "model"))
    ids = tf.feature_column.categorical_column_with_identity("id", 2)
    column = tf.feature_column.embedding_column(
        ids, 2, ckpt_to_load_from=path, tensor_name_in_ckpt="vectors", max_norm=1.0
    )
    layer = tf.feature_column.input_layer({"id": tf.constant([[0], [1]])}, [column])
    assert _run([layer])[0] == [pytest.approx([0.6, 0.8]), pytest.approx([0.3, 0.4])]
