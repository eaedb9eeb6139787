"""Names, scopes, devices, control dependencies, collections: what surrounds the nodes of a graph."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_names_are_made_unique_by_suffixes():
    assert [tf.constant(1, name="c").op.name for _ in range(3)] == ["c", "c_1", "c_2"]


def test_names_that_differ_in_case_only_count_as_the_same():
    tf.constant(1, name="c")
    assert tf.constant(1, name="C").op.name == "C_1"


def test_a_suffix_that_is_taken_is_skipped():
    names = [tf.constant(1, name=name).op.name for name in ("c", "c_1", "c", "c")]
    assert names == ["c", "c_1", "c_2", "c_3"]


def test_a_name_scope_is_made_unique_and_can_be_entered_again():
    with tf.name_scope("a") as first, tf.name_scope("b"):
        assert tf.constant(1, name="c").name == "a/b/c:0"
    with tf.name_scope("a"):
        assert tf.constant(1, name="c").name == "a_1/c:0"
    with tf.name_scope(first):
        assert tf.constant(1, name="c").name == "a/c:0"
    with tf.name_scope("a"), tf.name_scope(None):
        assert tf.constant(1, name="c").name == "c:0"


@pytest.mark.parametrize("name", ["a b", "_a", "-x", "ä"])
def test_an_invalid_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a valid"):
        tf.constant(1, name=name)


def test_an_op_function_opens_a_scope_for_the_constants_it_makes(graph):
    x = tf.placeholder(tf.float32, name="x")
    assert (x + 1.0).op.inputs[1].name == "add/y:0"
    assert tf.name_scope(None, "default").__enter__() == "default/"


def test_a_device_block_fills_in_what_inner_blocks_leave_open():
    with tf.device("/job:ps/task:1"):
        with tf.device("/cpu:0"):
            assert tf.constant(1).device == "/job:ps/task:1/device:CPU:0"
        with tf.device("/job:worker/gpu:2"):
            assert tf.constant(1).device == "/job:worker/task:1/device:GPU:2"
        with tf.device(None):
            assert tf.constant(1).device == ""


def test_a_device_function_sees_the_operation_and_what_inner_blocks_asked_for():
    seen = []

    def choose(op):
        seen.append((op.type, op.device))
        return "/job:ps/task:0" if op.type == "VariableV2" else op.device

    with tf.device(choose), tf.device("/cpu:0"):
        value = tf.constant(1.0)
        assert value.device == "/device:CPU:0"
        variable = tf.Variable(value)
    assert ("Const", "/device:CPU:0") in seen
    assert variable.device == "/job:ps/task:0"


def test_an_outer_string_fills_in_what_a_function_returned():
    with tf.device("/job:worker"), tf.device(lambda op: "/task:3"):
        assert tf.constant(1).device == "/job:worker/task:3"


def test_colocation_beats_devices_and_writes_the_class_attribute():
    with tf.device("/job:ps/task:0"):
        anchor = tf.constant(1.0, name="anchor")
    with tf.device("/job:worker"), tf.colocate_with(anchor):
        follower = tf.constant(2.0)
    assert follower.device == "/job:ps/task:0"
    assert follower.op.get_attr("_class") == [b"loc:@anchor"]
    assert follower.op.colocation_groups() == [b"loc:@anchor"]
    with pytest.raises(ValueError, match="ignore_existing"), tf.colocate_with(None):
        pass


def test_control_dependencies_skip_ops_whose_inputs_were_made_inside(graph):
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    with tf.control_dependencies([a, b.op]):
        c = tf.constant(3, name="c")
        d = tf.identity(c)
        e = tf.identity(a)
    assert [op.name for op in c.op.control_inputs] == ["a", "b"]
    assert d.op.control_inputs == []
    assert [op.name for op in e.op.control_inputs] == ["b"]
    assert list(c.op.node_def.input) == ["^a", "^b"]
    with tf.control_dependencies([a]), tf.control_dependencies(None):
        assert tf.no_op().control_inputs == []
    with pytest.raises(TypeError, match="Can not convert a int"), tf.control_dependencies([3]):
        pass


def test_elements_are_found_by_name_and_what_is_not_there_is_named(graph):
    a = tf.constant(1, name="a")
    assert graph.get_tensor_by_name("a:0") is a
    assert graph.get_operation_by_name("a") is a.op
    assert graph.as_graph_element("a") is a.op
    for name, error, words in [
        ("b:0", KeyError, "'b', does not exist in the graph"),
        ("a:1", KeyError, "exists but only has 1 outputs"),
        ("a", ValueError, "refers to an Operation, not a Tensor"),
        ("a:x", ValueError, '"<op_name>:<output_index>"'),
    ]:
        with pytest.raises(error, match=words):
            graph.get_tensor_by_name(name)
    with pytest.raises(KeyError, match="refers to an Operation not in the graph"):
        graph.get_operation_by_name("b")
    with pytest.raises(TypeError, match="Can not convert a float into a Tensor or Operation"):
        graph.as_graph_element(1.0)


def test_elements_of_another_graph_are_refused(graph):
    a = tf.constant(1.0, name="a")
    with tf.Graph().as_default() as other:
        b = tf.constant(1.0, name="b")
        with pytest.raises(ValueError, match="is not an element of this graph"):
            other.as_graph_element(a)
    with pytest.raises(ValueError, match="must be from the same graph as"):
        a + b


def test_ops_are_made_in_the_graph_of_their_inputs(graph):
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        assert tf.add(a, 1.0).graph is graph


def test_a_finalized_graph_cannot_grow(graph):
    graph.finalize()
    with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
        tf.constant(1)
    with pytest.raises(RuntimeError):
        graph.add_to_collection("x", 1)


def test_collections_are_filtered_by_scope(graph):
    with tf.name_scope("a"):
        x = tf.constant(1)
    tf.add_to_collection("c", x)
    tf.add_to_collection("c", "text")
    assert tf.get_collection("c") == [x, "text"]
    assert tf.get_collection("c", "a") == [x]
    assert tf.get_collection("c", "b") == []
    tf.get_collection("c").append(1)
    assert len(tf.get_collection("c")) == 2
    tf.get_collection_ref("c").append(1)
    assert len(tf.get_collection("c")) == 3
    assert graph.get_all_collection_keys() == ["c"]
    graph.clear_collection("c")
    assert tf.get_collection("c") == []


def test_only_what_is_new_goes_into_a_partial_graph_def(graph):
    tf.constant(1, name="a")
    version = graph.version
    tf.constant([1.0, 2.0], name="b")
    assert [node.name for node in graph.as_graph_def(from_version=version).node] == ["b"]
    shapes = graph.as_graph_def(add_shapes=True).node[1].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shapes[0].dim] == [2]
    assert graph.as_graph_def().versions.producer == 134


def test_the_default_graph_is_each_threads_own(graph):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(tf.get_default_graph()))
    thread.start()
    thread.join()
    assert seen[0] is not graph
    with pytest.raises(AssertionError, match="nested graphs"):
        tf.reset_default_graph()


def test_containers_reach_stateful_ops_only():
    with tf.get_default_graph().container("box"):
        assert tf.Variable(1.0).op.get_attr("container") == b"box"
        assert "container" not in tf.constant(1).op.node_def.attr


def test_a_tensor_is_equal_only_to_itself_and_has_no_truth():
    a, b = tf.constant(1), tf.constant(1)
    assert a == a and a != b and len({a, b}) == 2
    with pytest.raises(TypeError, match="Python `bool`"):
        bool(a)
    with pytest.raises(TypeError, match="iterating over `tf.Tensor` is not allowed"):
        list(a)
    with pytest.raises(TypeError):
        len(a)
    with pytest.raises(ValueError, match="No default session is registered"):
        a.eval()
    with pytest.raises(ValueError, match="No default session is registered"):
        a.op.run()


def test_tensors_and_operations_print():
    a = tf.constant([1.0, 2.0], name="a")
    assert str(a) == 'Tensor("a:0", shape=(2,), dtype=float32)'
    assert repr(a) == "<tf.Tensor 'a:0' shape=(2,) dtype=float32>"
    assert repr(a.op) == "<tf.Operation 'a' type=Const>"


def test_operators_make_tensorflows_ops():
    x = tf.placeholder(tf.float32, [2, 3])
    n = tf.placeholder(tf.int32, [])
    p = tf.placeholder(tf.bool, [])
    made = {
        "AddV2": x + 1, "Sub": 1 - x, "Mul": x * 2, "RealDiv": x / 2, "FloorDiv": x // 2, "FloorMod": x % 2,
        "Pow": x**2, "Neg": -x, "Abs": abs(x), "Less": x < 1, "GreaterEqual": x >= 1, "LogicalNot": ~p,
        "LogicalAnd": p & True, "BitwiseOr": n | 1, "StridedSlice": x[0],
    }  # fmt: skip
    assert {name: tensor.op.type for name, tensor in made.items()} == {name: name for name in made}
    assert (np.ones(3, np.float32) + x).op.type == "AddV2"
    assert (n / 2).dtype == tf.float64
    assert (x @ tf.ones([3, 1])).shape.as_list() == [2, 1]


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (0, [4, 5]), ((slice(None), -1), [3, 5]), ((Ellipsis, 2), [3, 4]), ((None, 1), [1, 4, 5]),
        (slice(1, None), [2, 4, 5]), ((slice(None, None, 2), slice(1, 3)), [2, 2, 5]), ((), [3, 4, 5]),
    ],
)  # fmt: skip
def test_an_index_has_numpys_shape(index, shape):
    x = tf.placeholder(tf.float32, [3, 4, 5])
    assert x[index].shape.as_list() == shape == list(np.zeros([3, 4, 5])[index].shape)


def test_a_tensor_may_be_an_index_and_nonsense_may_not():
    x = tf.placeholder(tf.float32, [3, 4])
    n = tf.placeholder(tf.int32, [])
    assert x[n].shape.as_list() == [4]
    with pytest.raises(TypeError, match="valid indices"):
        x["a"]
    with pytest.raises(TypeError, match="valid indices"):
        x[1.5]


def test_shape_errors_name_the_op_and_its_input_shapes():
    a, b = tf.ones([2, 3]), tf.ones([4, 5])
    with pytest.raises(ValueError, match=r"'mine' \(op: 'MatMul'\) with input shapes: \[2,3\], \[4,5\]"):
        tf.matmul(a, b, name="mine")
    assert "mine" not in [op.name for op in a.graph.get_operations()]


def test_attributes_are_read_as_python_values():
    op = tf.placeholder(tf.float32, [None, 2]).op
    assert op.get_attr("dtype") == tf.float32
    assert op.get_attr("shape").as_list() == [None, 2]
    with pytest.raises(ValueError, match="has no attr named 'x'"):
        op.get_attr("x")
