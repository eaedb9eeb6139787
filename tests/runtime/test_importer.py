"""GraphDefs that become nodes of the default graph."""

from __future__ import annotations

import pytest

import dtf as tf


def graph_def_of(build):
    with tf.Graph().as_default() as graph:
        build()
        return graph.as_graph_def()


def addition():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.constant([1.0, 2.0], name="y")
    z = tf.constant(0, name="z")
    with tf.control_dependencies([z]):
        tf.add(x, y, name="sum")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def nodes_without_prefix(graph_def, prefix):
    nodes = {}
    for node in graph_def.node:
        copied = tf.NodeDef()
        copied.CopyFrom(node)
        copied.name = node.name.removeprefix(prefix)
        del copied.input[:]
        copied.input.extend(entry.replace(prefix, "") for entry in node.input)
        if "_class" in copied.attr:
            groups = [group.replace(prefix.encode(), b"") for group in copied.attr["_class"].list.s]
            copied.attr["_class"].list.s[:] = groups
        nodes[copied.name] = copied
    return nodes


def test_elements_are_returned_under_a_prefix():
    total, x = tf.import_graph_def(graph_def_of(addition), return_elements=["sum:0", "x"])
    assert total.name == "import/sum:0" and x.name == "import/x"
    assert total.shape.as_list() == [2]
    assert [op.name for op in total.op.control_inputs] == ["import/z"]
    assert tf.import_graph_def(graph_def_of(addition), return_elements=["sum"])[0].name == "import_1/sum"
    assert tf.import_graph_def(graph_def_of(addition), name="") is None
    [again] = tf.import_graph_def(graph_def_of(addition), name="", return_elements=["sum:0"])
    assert again.name == "sum_1:0" and again.op.inputs[0].op.name == "x_1"


def test_names_that_were_imported_are_taken():
    tf.import_graph_def(graph_def_of(addition), name="")
    assert tf.constant(1, name="sum").op.name == "sum_1"
    tf.import_graph_def(graph_def_of(addition), name="scope")
    with tf.name_scope("scope") as scope:
        assert scope == "scope_1/"


def test_inputs_can_be_replaced():
    mine = tf.constant([5.0, 6.0])
    total = tf.import_graph_def(graph_def_of(addition), {"x": mine}, ["sum:0"])[0]
    assert total.op.inputs[0] is mine
    with tf.Session() as session:
        assert session.run(total).tolist() == [6.0, 8.0]
    with pytest.raises(ValueError, match=r"not found in graph_def: \[nothing:0\]"):
        tf.import_graph_def(graph_def_of(addition), {"nothing:0": mine})


def model(device="/job:ps/task:0"):
    with tf.device(device):
        v = tf.Variable([1.0, 2.0], name="v")
        r = tf.Variable([1.0, 2.0], name="r", use_resource=True)
    p = tf.placeholder(tf.bool, [], name="p")
    y = tf.cond(p, lambda: v * 2.0, lambda: r + 1.0)
    _, z = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * y), [0, y])
    tf.gradients(z, [v, r])
    tf.global_variables_initializer()


def test_whole_models_return_as_they_were(graph):
    original = graph_def_of(model)
    tf.import_graph_def(original, name="again")
    assert nodes_without_prefix(graph.as_graph_def(), "again/") == nodes_without_prefix(original, "again/")


def test_an_imported_loop_runs():
    original = graph_def_of(lambda: model("/cpu:0"))
    init, last, p = tf.import_graph_def(original, return_elements=["init", "while/Exit_1:0", "p:0"])
    with tf.Session() as session:
        session.run(init)
        assert session.run(last, {p: True}).tolist() == [16.0, 256.0]


def test_device_blocks_fill_in_what_the_nodes_leave_open():
    with tf.device("/job:worker/task:1"):
        v, p = tf.import_graph_def(graph_def_of(model), return_elements=["v", "p"])
    assert v.device == "/job:ps/task:0" and p.device == "/job:worker/task:1"
    assert v.graph.get_operation_by_name("import/v/read").get_attr("_class") == [b"loc:@import/v"]


def node(**changes):
    graph_def = graph_def_of(addition)
    target = next(entry for entry in graph_def.node if entry.name == "sum")
    if "op" in changes:
        target.op = changes["op"]
    if "input" in changes:
        target.input[:] = changes["input"]
    if "without" in changes:
        del target.attr[changes["without"]]
    if "attr" in changes:
        target.attr[changes["attr"]].i = 1
    return graph_def


@pytest.mark.parametrize(
    ("graph_def", "words"),
    [
        (node(op="NoSuchOp"), "Op type not registered 'NoSuchOp'.*'sum'"),
        (node(without="T"), "NodeDef missing attr 'T'.*'sum'"),
        (node(attr="strange"), "attr 'strange' not in Op<name="),
        (node(input=["x"]), "expected inputs 'float, float' do not match 1 inputs specified"),
        (node(input=["x", "nowhere"]), "'sum': Unknown input node 'nowhere'"),
        (node(input=["x", "y:3"]), "invalid output 3 of source node y"),
        (node(input=["x", "sum"]), "cycle"),
    ],
)
def test_what_is_wrong_with_a_graph_is_said(graph_def, words):
    with pytest.raises(ValueError, match=words):
        tf.import_graph_def(graph_def)


def test_types_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Input 0 of node import/sum was passed int32 .*expected float"):
        tf.import_graph_def(graph_def_of(addition), {"x": tf.constant([1, 2])})
    with pytest.raises(TypeError, match="must be a GraphDef proto"):
        tf.import_graph_def("text")
    with pytest.raises(ValueError, match="return_element 'nothing' not found"):
        tf.import_graph_def(graph_def_of(addition), return_elements=["nothing"])


def test_defaults_are_filled_in_and_unknown_underscored_attributes_kept(graph):
    graph_def = tf.GraphDef()
    added = graph_def.node.add(name="v", op="VariableV2")
    added.attr["dtype"].type = 1
    added.attr["shape"].shape.SetInParent()
    added.attr["_mark"].i = 3
    [op] = tf.import_graph_def(graph_def, return_elements=["v"])
    assert op.get_attr("container") == b"" and op.get_attr("_mark") == 3


def test_imported_operations_have_the_order_of_the_graph_def_as_far_as_producers_come_first():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.add(tf.square(x, name="square"), tf.constant(1.0, name="one"), name="y")
        tf.multiply(y, tf.constant(3.0, name="three"), name="last")
    nodes = graph.as_graph_def().node
    backwards = tf.GraphDef(node=reversed(nodes))
    orders = []
    for graph_def in (graph.as_graph_def(), backwards):
        with tf.Graph().as_default() as imported:
            tf.import_graph_def(graph_def, name="")
        orders.append([op.name for op in imported.get_operations()])
    assert orders == [[node.name for node in nodes], ["three", "one", "x", "square", "y", "last"]]
