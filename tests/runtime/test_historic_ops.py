"""Names of tensorflow.python.ops.* that TensorFlow's unit tests of kernels use, and public functions do not cover."""

import numpy as np
import pytest

import dtf as tf
from dtf.as_tensorflow.historic import control_flow_ops, functional_ops, list_ops
from dtf.build.defun import Defun
from dtf.build.ops import array, control_flow
from dtf.wire import errors


def run(*fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_a_reference_keeps_its_variable_through_identity_and_enter():
    variable = tf.Variable(7, use_resource=False)
    assert run(tf.assign(control_flow_ops._Identity(variable), 8)) == [8]
    entered = control_flow_ops._Enter(variable, "frame", is_constant=True)
    written = tf.assign(entered, control_flow_ops._Enter(tf.constant(9), "frame"))
    assert run(tf.raw_ops.Exit(data=written)) == [9]
    assert control_flow_ops._NextIteration(variable).op.type == "RefNextIteration"


def test_switch_and_merge_take_slices_and_sparse_tensors():
    slices = tf.IndexedSlices(tf.constant([1, 2]), tf.constant([0, 2]))
    merged, side = control_flow.merge(control_flow.switch(slices, tf.constant(True)))
    assert [part.tolist() for part in run(merged.values, merged.indices, side)] == [[1, 2], [0, 2], 1]
    sparse = tf.SparseTensor([[0, 1]], [5], [2, 2])
    merged, side = control_flow.merge(control_flow.switch(sparse, tf.constant(False)))
    assert [part.tolist() for part in run(merged.indices, merged.values, side)] == [[[0, 1]], [5], 0]
    rows, _ = control_flow.merge([control_flow.switch(slices, tf.constant(False))[1], tf.constant([4, 5])])
    assert [part.tolist() for part in run(rows.values, rows.indices)] == [[4, 5], [0, 1]]


def test_lists_of_tensors_take_element_shapes_in_every_form():
    for shape in ([], None, tf.TensorShape([]), tf.constant(-1)):
        items = list_ops.empty_tensor_list(shape, tf.float32)
        items = list_ops.tensor_list_set_item(items, 1, 3.0, resize_if_index_out_of_bounds=True)
        stacked = list_ops.tensor_list_stack(items, tf.float32, element_shape=[])
        assert run(stacked)[0].tolist() == [0.0, 3.0]
    pieces = list_ops.tensor_list_split(tf.ones([3, 2]), [None, 2], [1, 2])
    assert run(list_ops.tensor_list_concat(pieces, tf.float32, [None, 2]))[0].shape == (3, 2)
    scattered = list_ops.tensor_list_scatter([1.0, 2.0], [1, 0], [])
    assert run(list_ops.tensor_list_gather(scattered, [0, 1], tf.float32))[0].tolist() == [2.0, 1.0]
    assert run(
        list_ops.tensor_list_pop_back(scattered, tf.float32)[1], list_ops.tensor_list_get_item(scattered, 0, tf.float32)
    ) == [1.0, 2.0]


def test_the_gradient_of_a_function_is_a_function_of_its_arguments_and_gradients():
    @Defun(tf.float32, tf.float32)
    def product(a, b):
        return a * b

    assert run(*functional_ops.Gradient([tf.constant(2.0), tf.constant(3.0), tf.constant(1.0)], product)) == [3.0, 2.0]


def test_sizes_of_sparse_values_and_sizes_that_are_not_folded():
    value = tf.SparseTensorValue([[0, 1], [1, 0]], [42, 24], [2, 3])
    assert [part.tolist() for part in run(tf.shape(value), tf.size(value), tf.rank(value))] == [[2, 3], 6, 2]
    kinds = [make([1, 2], optimize=False).op.type for make in (array.shape_of, array.size_of, array.rank_of)]
    assert kinds == ["Shape", "Size", "Rank"]


def test_offsets_of_a_concatenation_name_the_vector_that_differs():
    def offsets(axis, *shapes):
        holders = [tf.placeholder_with_default(np.array(shape, np.int32), None) for shape in shapes]
        return run(*tf.raw_ops.ConcatOffset(concat_dim=axis, shape=holders))

    assert [each.tolist() for each in offsets(1, [2, 3], [2, 7])] == [[0, 0], [0, 3]]
    for shapes, words in (
        (([2], [[2, 7]]), "should be a vector"),
        (([2, 3], [2, 7, 5]), "should contain 2 elements, but got 3"),
        (([2, 3], [4, 7]), r"Input 1 has shape \[4 7\] and doesn't match input 0 with shape \[2 3\]"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            offsets(1, *shapes)
    with pytest.raises(errors.InvalidArgumentError, match="Concat dim is out of range: 4 vs. 2"):
        offsets(4, [2, 3], [2, 7])


def test_axes_that_do_not_fit_are_named():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="axis 2 is out of valid range"):
        tf.reverse(x, [2])
    with pytest.raises(ValueError, match="axis 0 specified more than once"):
        tf.reverse(x, [0, -2])
    with pytest.raises(errors.InvalidArgumentError, match="is out of valid range"):
        run(tf.reverse(x, tf.placeholder_with_default([5], None)))
    with pytest.raises(ValueError, match="must be a tensor with a single value"):
        tf.expand_dims(1, axis=[0, 1])
    with pytest.raises(ValueError, match="rank 1"):
        tf.TensorArray(tf.float32, 3).split([1.0], lengths=tf.constant(1))
    assert run(tf.boolean_mask([1, 2, 3], [True, False, True], axis=tf.constant(0)))[0].tolist() == [1, 3]
    nothing = tf.Dimension(None)
    assert run(tf.constant([1, 2])[nothing:nothing:nothing])[0].tolist() == [1, 2]
