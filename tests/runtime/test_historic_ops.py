"""Names of tensorflow.python.ops.* that TensorFlow's unit tests of kernels use, and public functions do not cover."""

import numpy as np
import pytest

import dtf as tf
from dtf.as_tensorflow.historic import (
    control_flow_ops,
    data_convert,
    data_options,
    data_sparse,
    data_structures,
    embedding_ops,
    functional_ops,
    list_ops,
    lookup_ops,
    map_defun,
    random_ops,
)
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


def test_elements_of_datasets_become_tensors_and_come_back():
    sparse = tf.SparseTensor([[0]], [1], [2])
    element = {"a": tf.constant([1.0, 2.0]), "b": sparse}
    spec = {name: data_structures.type_spec_from_value(value) for name, value in element.items()}
    tensors = data_structures.to_tensor_list(spec, element)
    assert [each.dtype for each in tensors] == data_structures.get_flat_tensor_types(spec)
    back = data_structures.from_tensor_list(spec, tensors)
    assert [part.tolist() for part in run(back["a"], back["b"].values)] == [[1.0, 2.0], [1]]
    assert data_structures.are_compatible(spec, spec)
    assert not data_structures.are_compatible(spec, {"a": spec["a"], "b": spec["a"]})
    with pytest.raises(ValueError, match="is not compatible with the structure"):
        data_structures.to_tensor_list(spec["a"], tf.constant([1, 2]))
    with pytest.raises(ValueError, match="nested structure"):
        data_structures.to_tensor_list(spec, [element["a"]])
    with pytest.raises(ValueError, match="Expected 2 tensors but got 1"):
        data_structures.from_tensor_list(spec, tensors[:1])


def test_sparse_tensors_of_an_element_are_variants_between_kernels():
    element = (tf.SparseTensor([[1]], [5], [2]), tf.constant(3))
    classes = data_sparse.get_classes(element)
    assert classes == (tf.SparseTensor, tf.Tensor)
    assert data_sparse.any_sparse(classes) and not data_sparse.any_sparse(tf.Tensor)
    assert data_sparse.as_dense_types((tf.int32, tf.int32), classes) == (tf.variant, tf.int32)
    shapes = (tf.TensorShape([2]), tf.TensorShape([]))
    assert data_sparse.as_dense_shapes(shapes, classes)[0].ndims is None
    stored = data_sparse.serialize_sparse_tensors(element)
    back = data_sparse.deserialize_sparse_tensors(stored, (tf.int32, tf.int32), shapes, classes)
    assert [part.tolist() for part in run(back[0].indices, back[0].values, back[1])] == [[[1]], [5], 3]


def test_options_have_types_defaults_and_are_merged():
    class Inner(data_options.OptionsBase):
        y = data_options.create_option(name="y", ty=float, docstring="A number.")

    class Outer(data_options.OptionsBase):
        x = data_options.create_option(name="x", ty=int, docstring="A number.", default_factory=lambda: 42)
        inner = data_options.create_option(name="inner", ty=Inner, docstring="More.", default_factory=Inner)

    one, other = Outer(), Outer()
    assert one == other and one.x == 42 and one.inner.y is None
    one.x, other.inner.y = 0, 1.5
    merged = data_options.merge_options(one, other)
    assert one != other and (merged.inner.y, Outer().inner.y) == (1.5, None)
    with pytest.raises(TypeError, match="must be of type"):
        one.x = 3.14
    with pytest.raises(AttributeError, match="Cannot set the property wrong"):
        one.wrong = 1
    with pytest.raises(TypeError, match="Incompatible options type"):
        data_options.merge_options(one, Inner())


def test_shapes_and_optional_arguments_of_datasets_become_tensors():
    for shape in (tf.TensorShape([1, None]), (1, None), [1, None]):
        assert run(data_convert.partial_shape_to_tensor(shape))[0].tolist() == [1, -1]
    assert run(data_convert.partial_shape_to_tensor(tf.constant([3], tf.int64)))[0].tolist() == [3]
    with pytest.raises(ValueError, match="must be a 1-D tensor"):
        data_convert.partial_shape_to_tensor(tf.constant([[1]], tf.int64))
    assert run(data_convert.optional_param_to_tensor("count", None, -1)) == [-1]


def test_rows_of_embeddings_pass_through_a_function():
    pieces = [tf.constant([[1.0], [2.0]]), tf.constant([[3.0], [4.0]])]
    rows = embedding_ops._embedding_lookup_and_transform(pieces, [[0, 3], [3, 1]], "div", transform_fn=lambda x: x * 10)
    assert rows.shape.as_list() == [2, 2, 1]
    assert run(rows)[0].ravel().tolist() == [10.0, 40.0, 40.0, 20.0]


def test_a_truncated_normal_keeps_the_bounds_of_its_parameters():
    [values] = run(
        random_ops.parameterized_truncated_normal([2, 50], [0.0, 9.0], 1.0, [-1.0, 8.0], [1.0, 10.0], seed=3)
    )
    assert (np.abs(values - [[0.0], [9.0]]) <= 1).all()


def test_a_rank_that_is_no_scalar_is_refused():
    x = tf.placeholder_with_default(1.0, None)
    with pytest.raises(ValueError, match="Rank must be a scalar"):
        tf.assert_rank(x, np.array([], np.int32))
    with pytest.raises(TypeError, match="must be of type"):
        tf.assert_rank(x, 0.5)
    wanted = tf.placeholder_with_default([0, 1], None)
    with pytest.raises(errors.InvalidArgumentError, match="Rank must be a scalar"):
        run(tf.assert_rank(x, wanted))
    with pytest.raises(ValueError, match="Dimensions must be equal"):
        tf.assert_equal(tf.constant([1, 1, 1]), tf.constant([1, 1]))


def test_a_function_of_rows_is_stacked():
    [doubled, total] = map_defun.map_defun(
        lambda x, y: (x * 2, x[0] + y), [tf.constant([[1, 2], [3, 4]]), [5, 6]], [tf.int32, tf.int32], [(2,), ()]
    )
    assert [part.tolist() for part in run(doubled, total)] == [[[2, 4], [6, 8]], [6, 9]]
    assert doubled.shape.as_list() == [2, 2]
    with pytest.raises(ValueError, match="must be a list of tensors"):
        map_defun.map_defun(lambda x: x, tf.constant([1]), [tf.int32], [()])


def test_a_vocabulary_that_is_missing_is_named():
    for make in (lookup_ops.index_table_from_tensor, lookup_ops.index_to_string_table_from_tensor):
        with pytest.raises(ValueError, match="vocabulary_list must be specified"):
            make(vocabulary_list=None)
    table = lookup_ops.index_table_from_tensor(vocabulary_list=["a", "b"])
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(table.lookup(tf.constant(["b", "c"]))).tolist() == [1, -1]


def test_a_shared_barrier_with_other_components_is_refused():
    def barrier(types, shapes):
        return tf.raw_ops.Barrier(component_types=types, shapes=shapes, shared_name="shared")

    with tf.Session() as session:
        session.run(barrier([tf.float32], [[2]]))
        with pytest.raises(errors.InvalidArgumentError, match="component types"):
            session.run(barrier([tf.int32], [[2]]))
        with pytest.raises(errors.InvalidArgumentError, match="component shapes"):
            session.run(barrier([tf.float32], []))
