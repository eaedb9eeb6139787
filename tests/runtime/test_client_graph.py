"""What a client may add to a session's graph, and how tensors of it are connected for one callable."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf.run.master.client_graph import ClientGraph
from dtf.run.passes.connect import connect
from dtf.wire import errors
from dtf.wire.pb import graph_pb2, types_pb2

FLOAT, INT = types_pb2.DT_FLOAT, types_pb2.DT_INT32


def graph_def(*nodes):
    """(name, op, inputs, {attribute: type}, device) for each node."""
    result = graph_pb2.GraphDef()
    for name, op, inputs, types, *device in nodes:
        node = result.node.add(name=name, op=op, input=inputs, device=device[0] if device else "")
        for key, value in types.items():
            node.attr[key].type = value
    return result


def placeholder(name, dtype=FLOAT, device=""):
    return name, "Placeholder", [], {"dtype": dtype}, device


def add(name, *inputs, dtype=FLOAT):
    return name, "AddV2", inputs, {"T": dtype}


def test_a_graph_grows_by_versions():
    graph = ClientGraph()
    graph.add(graph_def(placeholder("x")))
    assert graph.extend(graph_def(add("y", "x", "x")), 0) == 1
    with pytest.raises(errors.AbortedError, match="Current version is 1 but caller expected 0"):
        graph.extend(graph_def(add("z", "x", "x")), 0)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([placeholder("x"), placeholder("x")], "has a node 'x' already"),
        ([placeholder("")], "not a valid name"),
        ([placeholder("a b")], "not a valid name"),
        ([placeholder("_a")], "not a valid name"),
        ([placeholder("a", 0)], "invalid dtype 0"),
        ([placeholder("a", 77)], "invalid dtype 77"),
        ([placeholder("a", FLOAT, "/rubbish")], "Malformed device"),
        ([placeholder("x"), add("y", "x")], "takes 2 inputs here, but 1"),
        ([placeholder("x"), add("y", "x", "x", "x")], "takes 2 inputs here, but 3"),
        ([placeholder("x"), add("y", "x", "nowhere")], "Unknown input node 'nowhere'"),
        ([placeholder("x"), add("y", "x", "x", "^nowhere")], "Unknown input node"),
        ([placeholder("x"), add("y", "x", "x:1")], "does not have"),
        ([placeholder("x"), add("y", "^x", "x", "x")], "comes after a control input"),
        ([placeholder("x", INT), add("y", "x", "x")], "was passed int32 from x:0 incompatible with expected float"),
        ([placeholder("b", types_pb2.DT_BOOL), add("y", "b", "b", dtype=types_pb2.DT_BOOL)], "not in the list"),
        ([placeholder("x"), add("a", "b", "x"), add("b", "a", "x")], "cycle"),
        ([placeholder("x"), add("a", "a", "x")], "cycle"),
    ],
)
def test_nodes_that_cannot_be_are_refused_all_together(nodes, words):
    graph = ClientGraph()
    with pytest.raises(errors.InvalidArgumentError, match=words):
        graph.add(graph_def(placeholder("good"), *nodes))
    graph.add(graph_def(placeholder("good")))


def test_a_missing_attribute_is_not_found():
    with pytest.raises(errors.NotFoundError, match="No attr named 'dtype'"):
        ClientGraph().add(graph_def(("x", "Placeholder", [], {})))


def test_a_graph_for_a_newer_runtime_is_refused():
    newer = graph_def(placeholder("x"))
    newer.versions.min_consumer = 1 << 30
    with pytest.raises(errors.InvalidArgumentError, match="above current version 2474"):
        ClientGraph().add(newer)


def test_loops_are_no_cycles_and_unknown_ops_are_passed_over():
    graph = ClientGraph()
    with tf.Graph().as_default() as client:
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        graph.add(client.as_graph_def())
    graph.add(graph_def(("strange", "NoSuchOp", [], {}), add("y", "strange", "strange:4")))


def connected(*connections, feeds=()):
    nodes = graph_def(placeholder("x"), placeholder("c"), add("d", "c", "c"), add("y", "x", "d")).node
    result = connect({node.name: node for node in nodes}, connections, feeds)
    return {name: list(node.input) for name, node in result.items() if node.input}


def test_a_connection_gives_consumers_another_source():
    assert connected(("c:0", "x:0")) == {"d": ["c", "c"], "y": ["c", "d"]}
    assert connected(("c:0", "d:0")) == {"d": ["c", "c"], "y": ["x", "c"]}


@pytest.mark.parametrize(
    ("connections", "feeds", "kind"),
    [
        ([("nowhere:0", "x:0")], [], errors.InvalidArgumentError),
        ([("c:0", "nowhere:0")], [], errors.NotFoundError),
        ([("y:0", "x:0")], [], errors.InvalidArgumentError),
        ([("c:0", "x:0")], ["x:0"], errors.InvalidArgumentError),
        ([("c:0", "x:0"), ("d:0", "x:0")], [], errors.InvalidArgumentError),
    ],
)
def test_connections_that_cannot_be_are_refused(connections, feeds, kind):
    with pytest.raises(kind):
        connected(*connections, feeds=feeds)
