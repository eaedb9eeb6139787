"""Variables begin with the values of a checkpoint, in the order of the words of a new vocabulary."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.build.initializers import PartitionInfo
from dtf.contrib import framework


@pytest.fixture
def old(tmp_path):
    """A checkpoint with one row of `weights` for each of three words, and the file of these words."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", initializer=[[1.0], [2.0], [3.0]])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "old" / "model"))
    (tmp_path / "old.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "new.txt").write_text("blue\nviolet\nred\n")
    return path


def test_biases_follow_their_classes(old, tmp_path):
    load = framework.load_linear_multiclass_bias_initializer(
        old, "weights", 3, str(tmp_path / "old.txt"), str(tmp_path / "new.txt"), num_class_oov_buckets=1
    )
    with tf.Graph().as_default(), tf.Session() as session:
        bias = tf.get_variable("bias", [4, 1], initializer=load, partitioner=tf.fixed_size_partitioner(3))
        session.run(tf.global_variables_initializer())
        assert session.run(tf.convert_to_tensor(bias)).ravel().tolist() == [3.0, 0.0, 1.0, 0.0]


def test_a_slot_has_the_part_of_its_variable(old, tmp_path):
    files = {"old_row_vocab_file": str(tmp_path / "old.txt"), "new_row_vocab_file": str(tmp_path / "new.txt")}
    with tf.Graph().as_default(), tf.Session() as session:
        for part, expected in ((None, [3.0, 0.0]), (PartitionInfo([3, 1], [1, 0]), [0.0, 1.0])):
            load = framework.load_variable_slot_initializer(old, "weights", part, 3, 1, **files)
            assert session.run(load([2, 1])).ravel().tolist() == expected


def test_columns_beyond_the_old_matrix_are_refused(old):
    with tf.Graph().as_default(), tf.Session() as session:
        for given in ({"row_remapping": [3], "col_remapping": []}, {"row_remapping": [0], "col_remapping": [2]}):
            made = tf.raw_ops.LoadAndRemapMatrix(
                ckpt_path=old, old_tensor_name="weights", initializing_values=[], num_rows=1, num_cols=1, **given
            )
            with pytest.raises(tf.errors.InvalidArgumentError, match="_remapping refers to"):
                session.run(made)


def test_an_estimator_starts_with_the_rows_of_known_words(old, tmp_path):
    def model(features, labels, mode):
        weights = tf.get_variable("weights", [4, 1])
        loss = tf.reduce_sum(tf.gather(weights, features))
        step = tf.assign_add(tf.train.get_global_step(), 1).op
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    info = tf.estimator.VocabInfo(
        str(tmp_path / "new.txt"), 3, 1, str(tmp_path / "old.txt"), backup_initializer=tf.ones_initializer()
    )
    settings = tf.estimator.WarmStartSettings(old, ".*", {"weights": info})
    estimator = tf.estimator.Estimator(model, str(tmp_path / "new"), warm_start_from=settings)
    estimator.train(lambda: (tf.constant([0, 1]), None), steps=1)
    assert np.ravel(estimator.get_variable_value("weights")).tolist() == [3.0, 1.0, 1.0, 1.0]
