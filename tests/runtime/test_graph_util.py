"""tf.graph_util: graphs cut out, frozen and thinned must compute what they computed."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf import graph_util


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def model():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0]]))
    r = tf.get_variable("r", initializer=tf.constant([1.0]), use_resource=True)
    table = tf.get_variable("table", initializer=tf.ones([3, 2]), use_resource=True)
    looked_up = tf.reduce_sum(tf.gather(table, tf.constant([0, 2])))
    y = tf.add(tf.check_numerics(tf.matmul(x, w) + r, "bad"), looked_up, name="y")
    tf.add(y, 1.0, name="beyond")
    return y


def run(graph_def):
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(graph_def, return_elements=["y:0"], name="")
        return session.run(y, {"x:0": [[1.0, 2.0]]}).tolist()


def test_a_part_has_what_its_outputs_need_and_nothing_else(graph):
    model()
    whole = graph.as_graph_def()
    part = graph_util.extract_sub_graph(whole, ["MatMul"])
    assert [node.name for node in part.node] == ["x", "w", "w/read", "MatMul"]
    assert part.versions == whole.versions
    with pytest.raises(AssertionError, match="nowhere is not in graph"):
        graph_util.extract_sub_graph(whole, ["nowhere"])
    with pytest.raises(TypeError, match="iterable of strings"):
        graph_util.extract_sub_graph(whole, "MatMul")


def test_a_frozen_graph_needs_no_variables(graph):
    model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        frozen = graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        kept = graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), ["y"], variable_names_blacklist=["r"]
        )
    assert not {"VariableV2", "VarHandleOp", "ReadVariableOp", "ResourceGather"} & {node.op for node in frozen.node}
    assert run(frozen) == [[10.0]]
    assert [node.name for node in kept.node if node.op == "VarHandleOp"] == ["r"]
    small = graph_util.remove_training_nodes(frozen, ["y"])
    assert not {"CheckNumerics", "Identity"} & {node.op for node in small.node}
    assert run(small) == [[10.0]]


def test_a_variable_without_a_value_cannot_be_frozen(graph):
    model()
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="w"):
        graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["MatMul"])


def test_an_identity_that_orders_steps_stays(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    watched = tf.identity(tf.identity(x, name="gone"), name="watched")
    with tf.control_dependencies([watched]):
        tf.add(x, 1.0, name="y")
    small = graph_util.remove_training_nodes(graph.as_graph_def(), ["y"])
    assert [node.name for node in small.node if node.op == "Identity"] == ["watched"]
    assert next(list(node.input) for node in small.node if node.name == "watched") == ["x"]


def test_small_questions_are_answered(graph):
    model()
    assert graph_util.tensor_shape_from_node_def_name(graph, "x").as_list() == [None, 2]
    assert graph_util.must_run_on_cpu(tf.constant("a").op) and not graph_util.must_run_on_cpu(tf.constant(1.0).op)
    variable = graph.get_operation_by_name("w")
    assert not graph_util.must_run_on_cpu(variable) and graph_util.must_run_on_cpu(variable, pin_variables_on_cpu=True)
