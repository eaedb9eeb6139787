"""Variables of both kinds: the nodes they add, what they convert to, and what sessions do with them."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def initialized_session():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def test_a_reference_variable_adds_tensorflows_nodes(graph):
    tf.Variable([1.0], name="v")
    assert [(op.name, op.type) for op in graph.get_operations()] == [
        ("v/initial_value", "Const"),
        ("v", "VariableV2"),
        ("v/Assign", "Assign"),
        ("v/read", "Identity"),
    ]


def test_a_resource_variable_adds_tensorflows_nodes(graph):
    tf.Variable([1.0], name="v", use_resource=True)
    assert [(op.name, op.type) for op in graph.get_operations()] == [
        ("v/Initializer/initial_value", "Const"),
        ("v", "VarHandleOp"),
        ("v/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp"),
        ("v/Assign", "AssignVariableOp"),
        ("v/Read/ReadVariableOp", "ReadVariableOp"),
    ]


@KINDS
def test_a_variable_is_described_by_its_properties(use_resource):
    v = tf.Variable([1.0, 2.0], name="v", use_resource=use_resource, trainable=False)
    assert v.name == "v:0" and v.op.name == "v" and v.shape.as_list() == [2]
    assert v.dtype.base_dtype == tf.float32
    assert v.initializer.name == "v/Assign"
    assert tf.trainable_variables() == [] and tf.global_variables() == [v]
    assert isinstance(v, tf.Variable) and v == v and len({v}) == 1
    assert hasattr(v, "handle") == use_resource
    with pytest.raises(TypeError):
        bool(v)
    with pytest.raises(TypeError):
        iter(v)


@KINDS
def test_a_variable_keeps_what_is_assigned(use_resource):
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    with initialized_session() as session:
        assert session.run(v + 1.0).tolist() == [2.0, 3.0]
        assert session.run(v.assign([3.0, 4.0])).tolist() == [3.0, 4.0]
        assert session.run(v.assign_add([1.0, 1.0])).tolist() == [4.0, 5.0]
        session.run(v.assign_sub([2.0, 2.0], read_value=False))
        assert v.eval().tolist() == [2.0, 3.0]
        v.load([7.0, 8.0])
        assert session.run([v, v.read_value(), v[0]])[1].tolist() == [7.0, 8.0]


@KINDS
def test_rows_are_changed_by_indexed_slices(use_resource):
    v = tf.Variable(tf.zeros([3, 2]), use_resource=use_resource)
    slices = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([0, 2]))
    with initialized_session() as session:
        assert session.run(v.scatter_add(slices)).tolist() == [[1, 1], [0, 0], [1, 1]]
        assert session.run(v.scatter_sub(slices)).tolist() == [[0, 0], [0, 0], [0, 0]]
        assert session.run(v.scatter_update(slices)).tolist() == [[1, 1], [0, 0], [1, 1]]
        assert session.run(v.sparse_read([1, 2])).tolist() == [[0, 0], [1, 1]]
    with pytest.raises(TypeError, match="is not IndexedSlices"):
        v.scatter_add(tf.ones([2, 2]))


def test_an_uninitialized_variable_is_an_error_that_names_it():
    v = tf.Variable(1.0, name="v")
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            session.run(v + 1.0)
        assert session.run(tf.report_uninitialized_variables()).tolist() == [b"v"]
        session.run(v.initializer)
        assert session.run(tf.report_uninitialized_variables()).tolist() == []
        assert session.run(tf.is_variable_initialized(v))


def test_a_variable_computed_from_another_one_waits_for_its_value():
    a = tf.Variable(3.0, name="a")
    b = tf.Variable(a * 2.0 + 1.0, name="b")
    c = tf.Variable(b.initialized_value() + 1.0, name="c")
    with initialized_session() as session:
        assert session.run([b, c]) == [7.0, 8.0]


def test_initial_values_from_functions_are_made_outside_of_branches():
    made = []

    def branch():
        made.append(tf.Variable(lambda: tf.constant(1.0), name="inner"))
        return made[0] + 1.0

    result = tf.cond(tf.constant(True), branch, lambda: tf.constant(0.0))
    with initialized_session() as session:
        assert session.run(result) == 2.0


def test_a_variable_needs_a_value_of_known_shape():
    with pytest.raises(ValueError, match="initial_value must be specified"):
        tf.Variable()
    with pytest.raises(ValueError, match="initial_value must have a shape specified"):
        tf.Variable(tf.placeholder(tf.float32, [None]))
    assert tf.Variable(tf.placeholder(tf.float32, [None]), validate_shape=False).shape.ndims is None


@KINDS
def test_a_variable_returns_from_its_message(use_resource, graph):
    v = tf.Variable([1.0], name="v", use_resource=use_resource, trainable=False)
    same = tf.Variable.from_proto(v.to_proto())
    assert same.op is v.op and same.initializer is v.initializer and not same.trainable
    assert same.shape.as_list() == [1] and same.value().dtype == tf.float32
    imported = graph.as_graph_def()
    with tf.Graph().as_default():
        tf.import_graph_def(imported, name="scope")
        other = tf.Variable.from_proto(v.to_proto(), import_scope="scope")
        assert other.name == "scope/v:0"
        assert other.to_proto(export_scope="scope").variable_name == "v:0"


def test_a_caching_device_keeps_the_copy():
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, caching_device="/job:worker/task:1")
    assert v.device == "/job:ps/task:0"
    assert v.value().device == "/job:worker/task:1"
    assert tf.Variable(1.0, name="w").value().op.get_attr("_class") == [b"loc:@w"]


def test_conversion_checks_the_dtype():
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="Incompatible type conversion requested to type 'int32'"):
        tf.convert_to_tensor(v, tf.int32)
    assert tf.convert_to_tensor(v).dtype == tf.float32
    assert tf.convert_to_tensor(v, as_ref=True).dtype == tf.float32_ref


def test_resource_variables_can_be_the_default():
    tf.enable_resource_variables()
    try:
        assert tf.Variable(1.0).dtype == tf.float32
        assert hasattr(tf.get_variable("v", initializer=1.0), "handle")
    finally:
        tf.disable_resource_variables()
    assert not hasattr(tf.Variable(1.0), "handle")


def test_counting_up_ends_with_out_of_range():
    v = tf.Variable(0)
    count = v.count_up_to(2)
    with initialized_session() as session:
        assert [session.run(count), session.run(count)] == [0, 1]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(count)


@pytest.mark.parametrize(
    ("initializer", "check"),
    [
        (tf.zeros_initializer(), lambda x: (x == 0).all()),
        (tf.ones_initializer(), lambda x: (x == 1).all()),
        (tf.constant_initializer(3.0), lambda x: (x == 3).all()),
        (tf.random_uniform_initializer(-1, 1, seed=1), lambda x: abs(x).max() <= 1 and x.std() > 0.4),
        (tf.random_normal_initializer(1.0, 0.1, seed=1), lambda x: abs(x.mean() - 1) < 0.02),
        (tf.truncated_normal_initializer(0.0, 1.0, seed=1), lambda x: abs(x).max() <= 2),
        (tf.glorot_uniform_initializer(seed=1), lambda x: abs(x).max() <= np.sqrt(6 / 80)),
        (tf.glorot_normal_initializer(seed=1), lambda x: abs(x.std() - np.sqrt(2 / 80)) < 0.01),
        (tf.variance_scaling_initializer(2.0, seed=1), lambda x: abs(x.std() - np.sqrt(2 / 50)) < 0.02),
        (tf.uniform_unit_scaling_initializer(seed=1), lambda x: abs(x).max() <= np.sqrt(3 / 50)),
        (tf.initializers.he_normal(seed=1), lambda x: abs(x.std() - np.sqrt(2 / 50)) < 0.02),
        (tf.initializers.lecun_uniform(seed=1), lambda x: abs(x).max() <= np.sqrt(3 / 50)),
        (tf.orthogonal_initializer(seed=1), lambda x: np.allclose(x.T @ x, np.eye(30), atol=1e-5)),
        (tf.initializers.identity(2.0), lambda x: (x == 2 * np.eye(50, 30)).all()),
        (tf.contrib.layers.xavier_initializer(seed=1), lambda x: abs(x).max() <= np.sqrt(6 / 80)),
    ],
)
def test_an_initializer_keeps_its_promise(initializer, check):
    value = initializer([50, 30])
    assert value.shape.as_list() == [50, 30] and value.dtype == tf.float32
    with tf.Session() as session:
        assert check(session.run(value))
