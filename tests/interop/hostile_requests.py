"""Graphs that no program writes, as `bad_requests`: hostile names, attributes of the wrong kind, impossible calls.

A family gives {name: [code of CreateSession, code of a step that fetches a:0]}, or the code of RegisterGraph.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dtf.wire import codec
from dtf.wire.pb import attr_value_pb2, graph_pb2, types_pb2, worker_pb2
from tests.interop.bad_requests import FLOAT, WORKER, Caller, Session, add, const, graph

INT = types_pb2.DT_INT32
TEXTS = (
    "a\nb", "a b", "é", "a>>b", "a\\b", "a:b", "^a", "", "a\x00b", "a'b", 'a"b', "a\u2028b", "-a", "a;b", "%s",
    "..", "a>b", "a-b", "0a", "a/_b", "a" * 3000,
)  # fmt: skip
DEVICES = (
    "/cpu:0", "/rubbish", "/job:a\nb", "/job:é", "/job:/task:0", "cpu:0", "/job:worker/task:00", "/job:*/task:*",
    "/device:CPU", "/device:CPU:*", "/", "//", "/job:worker/", "/CPU:0", "/cpu", "/task:x",
    "/job:worker/replica:0/task:0/gpu:0 ",
    "/job:worker//task:0", "/job:worker/task:99999999999",
)  # fmt: skip


def function(name: str = "f", body: str = "b", argument: str = "x", result: str = "y", device: str = "") -> Any:
    """A FunctionDef that gives -x."""
    made = graph_pb2.GraphDef().library.function.add()
    made.signature.name = name
    made.signature.input_arg.add(name=argument, type=FLOAT)
    made.signature.output_arg.add(name=result, type=FLOAT)
    made.node_def.add(name=body, op="Neg", input=[argument], device=device).attr["T"].type = FLOAT
    made.ret[result] = f"{body}:y:0"
    return made


def calling(*functions: Any, name: str = "", op: str = "PartitionedCall", direct: bool = False) -> graph_pb2.GraphDef:
    """A graph whose node "a" calls the function `name`, by default the first one, with a constant."""
    made = graph(const("c"))
    made.library.function.extend(functions)
    call = made.node.add(name="a", op=op, input=["c"])
    name = name or functions[0].signature.name
    if direct:
        call.op = name
        return made
    call.attr["Tin"].list.type.append(FLOAT)
    call.attr["Tout"].list.type.append(FLOAT)
    call.attr["f"].func.name = name
    return made


def _answers(call: Caller, graphs: dict[str, graph_pb2.GraphDef]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, graph_def in graphs.items():
        session = Session(call, graph_def)
        found[name] = [session.created]
        if session.created == "OK":
            found[name].append(session.run(["a:0"]))
            session.close()
    return found


def names(call: Caller) -> dict[str, Any]:
    """Texts that are no names, in every place where a name can stand."""
    graphs: dict[str, graph_pb2.GraphDef] = {}
    for text in TEXTS:
        shown = repr(text[:10])
        graphs[f"node {shown}"] = graph(const("a"), const(text))
        graphs[f"input {shown}"] = graph(const("c"), add("a", "c", text))
        graphs[f"control input {shown}"] = graph(const("a", input=[f"^{text}"]))
        graphs[f"op {shown}"] = graph(const("c"), {"name": "a", "op": text})
        graphs[f"body {shown}"] = calling(function(body=text))
        graphs[f"argument {shown}"] = calling(function(argument=text))
        graphs[f"result {shown}"] = calling(function(result=text))
        graphs[f"colocated {shown}"] = graph(const("a"))
        graphs[f"colocated {shown}"].node[0].attr["_class"].list.s.append(b"loc:@" + text.encode())
    for text in DEVICES:
        graphs[f"device {text!r}"] = graph(const("a", device=text))
        graphs[f"body's device {text!r}"] = calling(function(device=text))
    return _answers(call, graphs)


def registered(call: Caller) -> dict[str, Any]:
    """The same, from a master."""
    found = {}
    _, status = call("GetStatus", worker_pb2.GetStatusRequest(), service=WORKER)
    device = status.device_attributes[0].name
    call("CreateWorkerSession", worker_pb2.CreateWorkerSessionRequest(session_handle="hostile"), service=WORKER)

    def register(name: str, graph_def: graph_pb2.GraphDef) -> None:
        for node in graph_def.node:
            node.device = node.device or device
        request = worker_pb2.RegisterGraphRequest(
            session_handle="hostile", create_worker_session_called=True, graph_def=graph_def
        )
        found[name] = call("RegisterGraph", request, service=WORKER)[0]

    for text in (*TEXTS, "_a"):
        register(f"node {text[:10]!r}", graph(const(text)))
        register(f"input {text[:10]!r}", graph(const("c"), add("a", "c", text)))
    for text in DEVICES:
        register(f"device {text!r}", graph(const("a", device=text)))
    return found


def attributes(call: Caller) -> dict[str, Any]:
    """Attributes of another kind than the contract's."""
    kinds = {
        "int": attr_value_pb2.AttrValue(i=3),
        "float": attr_value_pb2.AttrValue(f=1.5),
        "bool": attr_value_pb2.AttrValue(b=True),
        "string": attr_value_pb2.AttrValue(s=b"x"),
        "type": attr_value_pb2.AttrValue(type=FLOAT),
        "shape": attr_value_pb2.AttrValue(shape={}),
        "tensor": attr_value_pb2.AttrValue(tensor=codec.array_to_proto(np.float32(1))),
        "func": attr_value_pb2.AttrValue(func={"name": "f"}),
        "placeholder": attr_value_pb2.AttrValue(placeholder="T"),
        "nothing": attr_value_pb2.AttrValue(),
        "empty list": attr_value_pb2.AttrValue(list={}),
        "list of int": attr_value_pb2.AttrValue(list={"i": [1]}),
        "list of type": attr_value_pb2.AttrValue(list={"type": [FLOAT]}),
        "list of string": attr_value_pb2.AttrValue(list={"s": [b"x"]}),
        "list of both": attr_value_pb2.AttrValue(list={"i": [1], "type": [FLOAT]}),
        "list of unknown types": attr_value_pb2.AttrValue(list={"type": [77]}),
        "unknown type": attr_value_pb2.AttrValue(type=77),
        "type of a reference": attr_value_pb2.AttrValue(type=101),
        "shape of a negative size": attr_value_pb2.AttrValue(shape={"dim": [{"size": -5}]}),
        "shape of a great size": attr_value_pb2.AttrValue(shape={"dim": [{"size": 1 << 62}, {"size": 1 << 62}]}),
        "shape of many": attr_value_pb2.AttrValue(shape={"dim": [{"size": 1}] * 300}),
        "negative int": attr_value_pb2.AttrValue(i=-1),
        "great int": attr_value_pb2.AttrValue(i=1 << 62),
        "tensor of a negative size": attr_value_pb2.AttrValue(tensor=_tensor(-3)),
        "tensor of a great size": attr_value_pb2.AttrValue(tensor=_tensor(1 << 40, 1 << 40)),
        "tensor of an unknown type": attr_value_pb2.AttrValue(tensor={"dtype": 77}),
        "tensor of no type": attr_value_pb2.AttrValue(tensor={}),
    }
    declared = {
        "int": ({"op": "Pack", "input": ["c"], "T": FLOAT}, "N"),
        "float": ({"op": "LeakyRelu", "input": ["c"], "T": FLOAT}, "alpha"),
        "bool": ({"op": "MatMul", "input": ["m", "m"], "T": FLOAT}, "transpose_a"),
        "string": ({"op": "VariableV2", "dtype": FLOAT, "shape": attr_value_pb2.AttrValue(shape={})}, "container"),
        "allowed string": ({"op": "MaxPool", "input": ["four"], "T": FLOAT, **_WINDOW}, "padding"),
        "type": ({"op": "Neg", "input": ["c"]}, "T"),
        "shape": ({"op": "Placeholder", "dtype": FLOAT}, "shape"),
        "tensor": ({"op": "Const", "dtype": FLOAT}, "value"),
        "list of int": ({"op": "Squeeze", "input": ["m"], "T": FLOAT}, "squeeze_dims"),
        "list of type": ({"op": "IdentityN", "input": ["c"]}, "T"),
        "list of shape": ({"op": "FIFOQueueV2", "component_types": _TYPES}, "shapes"),
        "func": ({"op": "PartitionedCall", "input": ["c"], "Tin": _TYPES, "Tout": _TYPES}, "f"),
        "list of func": ({"op": "Case", "input": ["i", "c"], "Tin": _TYPES, "Tout": _TYPES}, "branches"),
    }
    before = [
        const("c"), const("m", [[1.0]]), const("four", [[[[1.0]]]]),
        {"name": "i", "op": "Const", "dtype": INT, "value": np.array(0, np.int32)},
    ]  # fmt: skip
    graphs = {}
    for (wanted, (node, attr)), (given, value) in itertools.product(declared.items(), kinds.items()):
        made = graphs[f"{wanted}: {given}"] = graph(*before, {"name": "a", **node, attr: value})
        made.library.function.append(function())
    return _answers(call, graphs)


def _tensor(*sizes: int) -> dict[str, Any]:
    return {"dtype": FLOAT, "tensor_shape": {"dim": [{"size": size} for size in sizes]}}


_TYPES = attr_value_pb2.AttrValue(list={"type": [FLOAT]})
_ONES = attr_value_pb2.AttrValue(list={"i": [1, 1, 1, 1]})
_WINDOW = {"ksize": _ONES, "strides": _ONES}
