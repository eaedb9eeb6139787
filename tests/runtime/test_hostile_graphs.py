"""Graphs made to do harm: nothing that a graph says becomes program, and every bad name is refused by name.

The source that partitions are compiled to is checked against an allow-list (`generated_source`).
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.run import kernels
from dtf.run.exchange.endpoint_binding import Push
from dtf.run.executor.executor import run_graph_def
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.executor.instructions import Instruction
from dtf.run.interfaces import Device
from dtf.run.kernels import KernelNode
from dtf.run.master.client_graph import ClientGraph
from dtf.run.worker.worker import LocalWorker
from dtf.wire import dtypes, errors
from dtf.wire.pb import graph_pb2, meta_graph_pb2
from tests.runtime.generated_source import check_source

F32 = dtypes.float32
PROGRAM = "import builtins; builtins.dtf_was_here = 1"
HOSTILE = [
    f"a\n{PROGRAM}", f"a\n    {PROGRAM}\n    #", f"a\r{PROGRAM}", f"a\x0c\n{PROGRAM}", f"a\u2028{PROGRAM}",
    f"a\u2029{PROGRAM}", f"a\x85{PROGRAM}", f"a\x0b{PROGRAM}", f"a\x1c{PROGRAM}", "a\x00b", "a'b", 'a"b',
    f"a');{PROGRAM}#", f'a");{PROGRAM}#', "a\\", "a\\\nb", 'a"""b', "a{b}", "{0.__class__}", "%s%n", "$(id)", "`id`",
    "../../etc/passwd b", "a b", "a;b", "é", "٣", "a" * 5000 + "\n", "", " ", "\n", "^", ":", "a:0", "^a", "-a", "/a",
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_was_executed():
    yield
    assert not hasattr(builtins, "dtf_was_here")


def instruction(index: int, op: str, text: str, *inputs: tuple[int, int], **more: Any) -> Instruction:
    """A node with `text` wherever a text can stand, past all checks."""
    node = KernelNode(text, op, text, {"T": F32, "dtype": F32, "shape": None, text: text}, more.get("outputs", 1), {})
    row = more.get("kernel") or kernels.lookup(op)
    function = more.get("function") or row.factory(node)
    return Instruction(index, node, row, function, inputs, (), (False,) * len(inputs), False)


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_the_source_says_nothing_that_a_graph_says_even_where_nobody_checks_names(text):
    pushing = kernels.lookup("NoOp")._replace(stateful=True)
    program = FlatProgram([
        instruction(0, "Placeholder", text),
        instruction(1, "Placeholder", text),
        instruction(2, "Switch", text, (0, 0), (1, 0), outputs=2),
        instruction(3, "Neg", text, (2, 1)),
        instruction(4, "_Send", text, (3, 0), kernel=pushing, function=Push(text, 3, "send")),
    ])  # fmt: skip
    for variant in itertools.product((False, True), repeat=2):
        check_source(program.variant(*variant).source)
    described = program.describe()
    assert described.replace("\n", "").isprintable()
    assert len(described.splitlines()) == len(program.plain.source.splitlines())


# What cannot be the name of a node, of a function or attribute, or a device.
NO_NODES = HOSTILE
NO_WORDS = [text for text in HOSTILE if text and (not text.isprintable() or set(text) & set(" '`\\\"\\\\"))]
NO_DEVICES = [f"/job:{text}/task:0" for text in HOSTILE] + [f"/device:CPU:0{text}" for text in HOSTILE if text]


def graph_of(text: str, place: str) -> graph_pb2.GraphDef:
    """A graph that computes a = -c by way of a function, with the text in one place; "" is the good one."""
    graph = graph_pb2.GraphDef()
    c = graph.node.add(name="c", op="Const")
    c.attr["dtype"].type = dtypes.float32.as_datatype_enum
    c.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(2)))
    function = graph.library.function.add()
    function.signature.name = text if place == "function" else "f"
    argument = text if place == "argument" else "x"
    function.signature.input_arg.add(name=argument, type=1)
    function.signature.output_arg.add(name=text if place == "result" else "y", type=1)
    body = function.node_def.add(name=text if place == "body" else "b", op="Neg", input=[argument])
    body.attr["T"].type = 1
    body.device = text if place == "body's device" else ""
    function.ret[text if place == "result" else "y"] = f"{body.name}:y:0"
    a = graph.node.add(name=text if place == "node" else "a", op="PartitionedCall", input=["c"])
    a.op = text if place == "op" else a.op
    a.device = text if place == "device" else ""
    a.input[0] = text if place == "input" else "c"
    if place == "control input":
        a.input.append("^" + text)
    a.attr["Tin"].list.type.append(1)
    a.attr["Tout"].list.type.append(1)
    a.attr["f"].func.name = function.signature.name
    if place == "attribute":
        a.attr[text].i = 1
    elif place == "attribute of a function":
        a.attr["f"].func.attr[text].i = 1
    elif place == "function in a function's attribute":
        a.attr["f"].func.attr["g"].list.func.add(name=text)
    elif place == "body's attribute":
        body.attr[text].i = 1
    elif place == "colocation":
        a.attr["_class"].list.s.append(b"loc:@\xff" + text.encode())
    return graph


PLACES = {
    "node": NO_NODES, "body": NO_NODES, "argument": NO_NODES, "result": NO_NODES, "input": NO_NODES,
    "control input": NO_NODES, "op": NO_WORDS, "function": NO_WORDS, "attribute": NO_WORDS,
    "attribute of a function": NO_WORDS, "function in a function's attribute": NO_WORDS, "body's attribute": NO_WORDS,
    "device": NO_DEVICES, "body's device": NO_DEVICES, "colocation": ["x"],
}  # fmt: skip


def created(graph: graph_pb2.GraphDef) -> None:
    ClientGraph().extend(graph, 0)


def registered_and_run(graph: graph_pb2.GraphDef) -> None:
    worker = LocalWorker([Device("/job:w/replica:0/task:0/device:CPU:0", incarnation=1)])
    handle = worker.register_graph("", graph)
    answers: list[errors.OpError | None] = []
    worker.run_graph("", handle, 7, [], [], None, lambda _=None, error=None: answers.append(error))
    if answers[0] is not None:
        raise answers[0]


def run_alone(graph: graph_pb2.GraphDef) -> None:
    run_graph_def(graph, ["a:0"] if any(node.name == "a" for node in graph.node) else [f"{graph.node[1].name}"])


def imported(graph: graph_pb2.GraphDef) -> None:
    with tf.Graph().as_default():
        tf.import_graph_def(graph, name="")


def imported_as_meta_graph(graph: graph_pb2.GraphDef) -> None:
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta_graph_pb2.MetaGraphDef(graph_def=graph))


ENTRIES: dict[Callable[[graph_pb2.GraphDef], None], Any] = {
    created: errors.OpError,
    registered_and_run: errors.OpError,
    run_alone: errors.OpError,
    imported: ValueError,
    imported_as_meta_graph: ValueError,
}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_a_good_graph_is_taken_by_every_entry(entry):
    entry(graph_of("", ""))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_a_text_that_is_no_name_is_refused_at_every_entry_and_named_on_one_line(entry, place):
    for text in PLACES[place]:
        if entry is run_alone and place in ("node", "input", "control input"):
            continue  # there it is the name of what is fetched
        with pytest.raises(ENTRIES[entry]) as refusal:
            entry(graph_of(text, place))
        error = refusal.value
        if isinstance(error, errors.OpError):
            assert error.error_code in (errors.INVALID_ARGUMENT, errors.NOT_FOUND), (text, error)
        message = error.message if isinstance(error, errors.OpError) else str(error)
        words = message.replace("\n\t [[{{node a}}]]", "").replace("\n\t [[{{node b}}]]", "")
        assert words.isprintable(), (text, message)
        assert len(words) < 1000


@pytest.mark.parametrize("sizes", [[1, 0, 1, 1, 1], [1, 1, -1, 1, 1], [0, 0, 0, 0, 0], [-1, 1, 1, -1, -1]])
@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax"])
def test_a_window_without_positions_is_refused_in_words(op, sizes):
    rank = 4 if op == "MaxPoolWithArgmax" else 5
    graph_def = graph_pb2.GraphDef()
    shape = [2] * rank
    constant = graph_def.node.add(name="x", op="Const")
    constant.attr["dtype"].type = F32.as_datatype_enum
    constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.ones(shape, np.float32)))
    node = graph_def.node.add(name="y", op=op, input=["x"])
    node.attr["T"].type = F32.as_datatype_enum
    node.attr["padding"].s = b"SAME"
    node.attr["strides"].list.i.extend([1] * rank)
    node.attr["ksize"].list.i.extend(sizes[:rank])
    with pytest.raises(errors.InvalidArgumentError):
        run_graph_def(graph_def, ["y:0"])
