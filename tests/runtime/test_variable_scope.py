"""Sharing of variables by name."""

from __future__ import annotations

import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_variable_is_shared_where_reuse_is_set():
    with tf.variable_scope("a"):
        v = tf.get_variable("v", [2])
    with tf.variable_scope("a", reuse=True):
        assert tf.get_variable("v", [2]) is v
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v") is v
        assert tf.get_variable("w", [1]).name == "a/w:0"
    assert v.name == "a/v:0"


def test_what_is_wrong_with_reuse_is_said():
    with tf.variable_scope("a"):
        tf.get_variable("v", [2])
    with tf.variable_scope("a"), pytest.raises(ValueError, match="Variable a/v already exists, disallowed"):
        tf.get_variable("v", [2])
    with tf.variable_scope("a", reuse=True):
        with pytest.raises(ValueError, match="Variable a/w does not exist, or was not created with tf.get_variable"):
            tf.get_variable("w", [2])
        with pytest.raises(ValueError, match=r"specified shape \(3,\) and found shape \(2,\)"):
            tf.get_variable("v", [3])
        with pytest.raises(ValueError, match="specified dtype int32 and found dtype float32_ref"):
            tf.get_variable("v", [2], tf.int32)
    with pytest.raises(ValueError, match="must be fully defined"):
        tf.get_variable("x", [None])
    with pytest.raises(ValueError, match="do not specify shape"):
        tf.get_variable("x", [1], initializer=tf.constant([1.0]))
    with pytest.raises(ValueError, match="An initializer for variable s of .*resource.* is required"):
        tf.get_variable("s", [1], tf.resource)


def test_reuse_is_inherited():
    with tf.variable_scope("a"), tf.variable_scope("b"):
        v = tf.get_variable("v", [1])
    with tf.variable_scope("a", reuse=True), tf.variable_scope("b"):
        assert tf.get_variable("v", [1]) is v
    with tf.variable_scope("a") as scope:
        scope.reuse_variables()
        with tf.variable_scope("b"):
            assert tf.get_variable("v", [1]) is v


def test_a_scope_entered_again_keeps_variables_and_opens_a_new_name_scope():
    with tf.variable_scope("a") as scope:
        v = tf.get_variable("v", [1])
        assert tf.identity(v).name == "a/Identity:0"
        assert scope.original_name_scope == "a/"
    with tf.variable_scope("other"), tf.variable_scope(scope, reuse=True) as again:
        assert tf.get_variable("v", [1]) is v
        assert tf.identity(v).name == "other/a/Identity:0"
        assert again.original_name_scope == "a/"
    with tf.variable_scope(scope, auxiliary_name_scope=False):
        assert tf.identity(v).name == "Identity:0"
    assert not scope.reuse


def test_a_default_name_is_made_unique_among_scopes():
    names = []
    for _ in range(2):
        with tf.variable_scope(None, "layer"):
            names.append(tf.get_variable("v", [1]).name)
    with tf.variable_scope("outer"):
        for _ in range(2):
            with tf.variable_scope(None, default_name="layer"):
                names.append(tf.get_variable("v", [1]).name)
    assert names == ["layer/v:0", "layer_1/v:0", "outer/layer/v:0", "outer/layer_1/v:0"]
    with pytest.raises(ValueError, match="without a name_or_scope"), tf.variable_scope(None, "x", reuse=True):
        pass
    with pytest.raises(TypeError, match="name_or_scope is required"), tf.variable_scope(None):
        pass


def test_variable_names_do_not_depend_on_name_scopes():
    with tf.name_scope("n"), tf.variable_scope("a"):
        assert tf.get_variable("v", [1]).name == "a/v:0"
        assert tf.Variable(1.0, name="w").name == "n/a/w:0"


def test_defaults_come_from_the_scope_and_the_call_overrides_them():
    with tf.variable_scope("a", initializer=tf.ones_initializer(), dtype=tf.float64, use_resource=True):
        v = tf.get_variable("v", [2])
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer(), use_resource=False)
        with tf.variable_scope("b"):
            u = tf.get_variable("u", [2])
    assert v.dtype == u.dtype == tf.float64 and hasattr(v, "handle") and not hasattr(w, "handle")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [value.tolist() for value in session.run([v, w, u])] == [[1, 1], [0, 0], [1, 1]]


def test_a_regularizer_adds_its_loss_once():
    regularizer = tf.contrib.layers.l2_regularizer(0.5)
    for reuse in (False, True):
        with tf.variable_scope("a", regularizer=regularizer, reuse=reuse):
            tf.get_variable("v", initializer=[2.0, 0.0])
    [loss] = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name == "a/v/Regularizer/l2_regularizer:0"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(loss) == 1.0


def test_a_custom_getter_stands_before_the_true_one():
    def doubled(getter, name, *args, **kwargs):
        return getter(name + "_x", *args, **kwargs) * 2.0

    def suffixed(getter, name, *args, **kwargs):
        return getter(name + "_y", *args, **kwargs)

    with tf.variable_scope("a", custom_getter=doubled), tf.variable_scope("b", custom_getter=suffixed):
        value = tf.get_variable("v", [1])
    assert isinstance(value, tf.Tensor)
    assert [v.name for v in tf.global_variables()] == ["a/b/v_y_x:0"]


def test_a_partitioned_variable_is_made_of_slices():
    with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(3)):
        whole = tf.get_variable("v", [7, 2], initializer=tf.ones_initializer())
    assert [part.name for part in whole] == ["a/v/part_0:0", "a/v/part_1:0", "a/v/part_2:0"]
    assert [part.shape.as_list() for part in whole] == [[3, 2], [2, 2], [2, 2]]
    assert [part._get_save_slice_info().spec for part in whole] == ["7 2 0,3:0,2", "7 2 3,2:0,2", "7 2 5,2:0,2"]
    assert tf.convert_to_tensor(whole).shape.as_list() == [7, 2]
    with tf.variable_scope("a", reuse=True):
        assert tf.get_variable("v", [7, 2]) is whole
        assert tf.get_variable("v", [7, 2], partitioner=tf.fixed_size_partitioner(3)) is whole
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(whole.assign(tf.reshape(tf.range(14.0), [7, 2])))
        assert session.run(whole.as_tensor())[6].tolist() == [12.0, 13.0]


def test_partitioners_count_bytes():
    shape = tf.TensorShape([1024, 16])
    assert tf.variable_axis_size_partitioner(16 << 10)(shape=shape, dtype=tf.float32) == [4, 1]
    assert tf.variable_axis_size_partitioner(16 << 10, max_shards=3)(shape=shape, dtype=tf.float32) == [3, 1]
    assert tf.min_max_variable_partitioner(8, min_slice_size=32 << 10)(shape=shape, dtype=tf.float32) == [2, 1]
    assert tf.min_max_variable_partitioner(8)(shape=shape, dtype=tf.float32) == [1, 1]


def test_local_variables_are_neither_global_nor_trainable():
    v = tf.get_local_variable("v", [1])
    assert tf.local_variables() == [v] and tf.global_variables() == tf.trainable_variables() == []
