"""tf.train.Checkpoint and CheckpointManager: values by the places of objects."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_values_are_found_by_place_and_not_by_name(tmp_path):
    v = tf.Variable([1.0, 2.0], name="v")
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    step = optimizer.minimize(tf.reduce_sum(v * v))
    checkpoint = tf.train.Checkpoint(v=v, optimizer=optimizer)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = checkpoint.save(str(tmp_path / "ckpt"), session)
        session.run(step)
        expected = session.run(v)
    assert path == str(tmp_path / "ckpt-1") and tf.train.latest_checkpoint(str(tmp_path)) == path
    assert [name for name, _ in tf.train.list_variables(path)] == [
        "_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE", "v/.ATTRIBUTES/VARIABLE_VALUE",
        "v/.OPTIMIZER_SLOT/optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE",
    ]  # fmt: skip
    with tf.Graph().as_default(), tf.Session() as session:
        other = tf.Variable([0.0, 0.0], name="other", use_resource=True)
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        step = optimizer.minimize(tf.reduce_sum(other * other))
        status = tf.train.Checkpoint(v=other, optimizer=optimizer).restore(path)
        status.assert_consumed().run_restore_ops(session)
        session.run(step)
        np.testing.assert_allclose(session.run(other), expected, rtol=1e-6)


def test_layers_lists_and_checkpoints_inside(tmp_path):
    layer = tf.layers.Dense(2)
    layer(tf.zeros([1, 3]))
    v = tf.Variable(5.0)
    inner = tf.train.Checkpoint(layer=layer)
    checkpoint = tf.train.Checkpoint(inner=inner, table={"a/b": v}, all=[v, layer])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kernel = session.run(layer.kernel)
        path = checkpoint.write(str(tmp_path / "once"), session)
        names = [name for name, _ in tf.train.list_variables(path)]
        assert {"inner/layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", "table/a.Sb/.ATTRIBUTES/VARIABLE_VALUE"} <= set(names)
        session.run([layer.kernel.assign(tf.zeros([3, 2])), v.assign(0.0)])
        checkpoint.restore(path).initialize_or_restore(session)
        assert session.run(v) == 5.0
        np.testing.assert_array_equal(session.run(layer.kernel), kernel)


def test_a_manager_keeps_the_last_checkpoints(tmp_path):
    v = tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(tmp_path / "kept"), max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with session.as_default():
            paths = [manager.save() for _ in range(3)]
            paths.append(manager.save(checkpoint_number=10))
    assert manager.checkpoints == paths[2:] and manager.latest_checkpoint == paths[3] == str(tmp_path / "kept/ckpt-10")
    assert not tf.train.checkpoint_exists(paths[0]) and tf.train.checkpoint_exists(paths[2])
    again = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(tmp_path / "kept"), max_to_keep=2)
    assert again.checkpoints == paths[2:]


def test_mistakes_are_named(tmp_path):
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        by_name = tf.train.Saver([v]).save(session, str(tmp_path / "names"))
        path = tf.train.Checkpoint(v=v).save(str(tmp_path / "objects"), session)
    with pytest.raises(AssertionError, match=r"variables without values \['w/"):
        tf.train.Checkpoint(v=v, w=w).restore(path).assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=r"values without variables \['v/"):
        tf.train.Checkpoint().restore(path).assert_consumed()
    for error, words, make in (
        (ValueError, "was not written by tf.train.Checkpoint", lambda: tf.train.Checkpoint(v=v).restore(by_name)),
        (ValueError, "cannot save a int", lambda: tf.train.Checkpoint(v=1)),
        (ValueError, "needs a session", lambda: tf.train.Checkpoint(v=v).save(str(tmp_path / "x"))),
        (ValueError, "must be positive", lambda: tf.train.CheckpointManager(tf.train.Checkpoint(), "x", 0)),
    ):
        with pytest.raises(error, match=words):
            make()
