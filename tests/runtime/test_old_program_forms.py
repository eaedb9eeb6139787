"""Forms of TensorFlow 1.x that old programs use: values made of tensors in branches and loops, slices of variables."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def fetch(value, feed_dict=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(value, feed_dict)


SPARSE = ([[0, 0], [1, 1]], [1.0, 2.0], [2, 3])


@pytest.mark.parametrize(("taken", "expected"), [(True, 1.0), (False, 4.0)])
def test_a_branch_returns_a_sparse_tensor(taken, expected):
    given = tf.SparseTensor(*SPARSE)
    chosen = tf.cond(tf.placeholder_with_default(taken, []), lambda: given, lambda: given * 4.0)
    assert fetch(chosen).values[0] == expected


def test_a_branch_returns_a_tensor_array_and_slices():
    array = tf.TensorArray(tf.float32, 2).write(1, 5.0)
    chosen = tf.cond(tf.placeholder_with_default(True, []), lambda: array.write(0, 1.0), lambda: array.write(0, 2.0))
    np.testing.assert_array_equal(fetch(chosen.stack()), [1.0, 5.0])
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([3]))
    whole = tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([4]), tf.constant([5, 2]))
    chosen = tf.cond(tf.placeholder_with_default(False, []), lambda: slices, lambda: whole)
    assert fetch(chosen.indices) == [4] and chosen.dense_shape is None


def test_a_loop_carries_a_sparse_tensor_whose_elements_change_in_number():
    def body(i, sparse):
        more = tf.SparseTensor([[0, 2]], tf.reshape(tf.to_float(i), [1]), [2, 3])
        return i + 1, tf.sparse_add(sparse, more)

    _, summed = tf.while_loop(lambda i, sparse: i < 4, body, (1, tf.SparseTensor(*SPARSE)))
    np.testing.assert_array_equal(fetch(tf.sparse_tensor_to_dense(summed)), [[1, 0, 6], [0, 2, 0]])


def test_a_loop_refuses_a_body_that_makes_a_sparse_tensor_dense():
    with pytest.raises(TypeError, match="enters the loop as SparseTensor"):
        tf.while_loop(lambda sparse: True, lambda sparse: tf.constant(1.0), [tf.SparseTensor(*SPARSE)])


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_slice_of_a_variable_is_assigned(use_resource):
    variable = tf.get_variable("v", initializer=tf.zeros([3, 2]), use_resource=use_resource)
    np.testing.assert_array_equal(fetch(variable[1].assign([5.0, 6.0])), [[0, 0], [5, 6], [0, 0]])
    np.testing.assert_array_equal(fetch(variable[:, 1].assign(np.arange(3.0))), [[0, 0], [0, 1], [0, 2]])
    with pytest.raises(ValueError, match="only supported for variables"):
        variable.value()[1].assign([5.0, 6.0])


def test_a_changed_variable_is_a_variable():
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    added = variable.assign_add(1.0)
    assert added.op.type == "AssignAddVariableOp" and added.name == added.op.name
    assert fetch([added.read_value(), added.assign_add(2.0), added + 1.0])[1] == 4.0
    assert fetch(tf.scatter_update(tf.get_variable("w", initializer=[1.0, 2.0], use_resource=True), [0], [7.0]).value()
                 )[0] == 7.0  # fmt: skip


def test_a_sparse_placeholder_of_a_known_shape_is_fed_with_it():
    for shape in ([2, 3], tf.constant([2, 3], tf.int64)):
        sparse = tf.sparse_placeholder(tf.float32, shape)
        assert sparse.shape.as_list() == [2, 3]
        assert fetch(tf.sparse_reduce_sum(sparse), {sparse: SPARSE}) == 3.0


def test_the_dtype_of_a_variable_is_a_dtype_of_values():
    variable = tf.Variable(tf.zeros([3]))
    assert tf.one_hot([1], 3, dtype=variable.dtype).dtype == tf.float32
    assert tf.convert_to_tensor(1, variable.dtype).dtype == tf.float32


def test_filters_of_less_depth_see_groups_of_channels():
    random = np.random.RandomState(0)
    images = tf.constant(random.rand(2, 5, 5, 6).astype(np.float32))
    filters = tf.constant(random.rand(3, 3, 2, 6).astype(np.float32))
    grouped = tf.nn.conv2d(images, filters, [1, 2, 2, 1], "SAME")
    parts = zip(tf.split(images, 3, 3), tf.split(filters, 3, 3), strict=True)
    apart = tf.concat([tf.nn.conv2d(image, part, [1, 2, 2, 1], "SAME") for image, part in parts], 3)
    one, other = fetch([[y, *tf.gradients(y * y, [images, filters])] for y in (grouped, apart)])
    for ours, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="must be equal"):
        tf.nn.conv2d(images, tf.ones([3, 3, 4, 6]), [1, 1, 1, 1], "SAME")


def test_an_operation_names_its_contract_as_a_message_does():
    contract = tf.add(1, 2).op.op_def
    assert [each.name for each in contract.input_arg] == ["x", "y"] and contract.output_arg[0].name == "z"


def test_padded_shapes_may_say_minus_one():
    batches = tf.data.Dataset.range(1, 4).map(lambda i: tf.fill([i], i)).padded_batch(3, [-1])
    batch = fetch(tf.data.make_one_shot_iterator(batches).get_next())
    np.testing.assert_array_equal(batch, [[1, 0, 0], [2, 2, 0], [3, 3, 3]])


def test_a_linear_model_gives_the_variables_of_its_columns():
    age, kind = tf.feature_column.numeric_column("age"), tf.feature_column.categorical_column_with_identity("kind", 3)
    found = {}
    tf.feature_column.linear_model(
        {"age": [[1.0]], "kind": [[1]]}, [age, kind], cols_to_vars=found, weight_collections=["mine"])  # fmt: skip
    assert [found[key][0].op.name for key in (age, kind, "bias")] == [
        "linear_model/age/weights", "linear_model/kind/weights", "linear_model/bias_weights",
    ]  # fmt: skip
    assert len(tf.get_collection("mine")) == 3


def test_cells_are_built_for_shapes_and_named_activations():
    cell = tf.nn.rnn_cell.BasicLSTMCell(4, activation="relu")
    cell.build((None, 4))
    assert cell.trainable_variables[0].shape.as_list() == [8, 16]
    strings = tf.get_variable("s", [2], tf.string)
    assert fetch(strings).tolist() == [b"", b""]
