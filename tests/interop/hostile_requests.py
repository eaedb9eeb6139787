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
    return _answers(call, _with_attributes(is_deadly=False))


def deadly_attributes(call: Caller) -> dict[str, Any]:
    """Those that TensorFlow's server does not survive: for ours only."""
    return _answers(call, _with_attributes(is_deadly=True))


def _with_attributes(is_deadly: bool) -> dict[str, graph_pb2.GraphDef]:
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
        if (given in _DEADLY or (wanted, given) == ("allowed string", "placeholder")) != is_deadly:
            continue
        made = graphs[f"{wanted}: {given}"] = graph(*before, {"name": "a", **node, attr: value})
        made.library.function.append(function())
    return graphs


_DEADLY = ("tensor of a negative size", "tensor of a great size")


def _tensor(*sizes: int) -> dict[str, Any]:
    return {"dtype": FLOAT, "tensor_shape": {"dim": [{"size": size} for size in sizes]}}


_TYPES = attr_value_pb2.AttrValue(list={"type": [FLOAT]})
_ONES = attr_value_pb2.AttrValue(list={"i": [1, 1, 1, 1]})
_WINDOW = {"ksize": _ONES, "strides": _ONES}


def calls(call: Caller) -> dict[str, Any]:
    """Functions that do not fit their calls, or cannot be."""
    graphs = {"good": calling(function()), "good, by name": calling(function(), direct=True)}

    def case(name: str, direct: bool = False) -> tuple[graph_pb2.GraphDef, Any, Any]:
        made = graphs[name] = calling(function(), direct=direct)
        return made, made.library.function[0], made.node[1]

    case("unknown function")[2].attr["f"].func.name = "nowhere"
    case("no function")[2].attr["f"].func.name = ""
    made, _, node = case("too many arguments")
    node.input.append("c")
    node.attr["Tin"].list.type.append(FLOAT)
    made, _, node = case("too few arguments")
    del node.input[:], node.attr["Tin"].list.type[:]
    node.attr["Tin"].list.SetInParent()
    case("too many results")[2].attr["Tout"].list.type.append(FLOAT)
    made, _, node = case("too few results")
    node.attr["Tout"].list.type.pop()
    node.attr["Tout"].list.SetInParent()
    case("another result")[2].attr["Tout"].list.type[0] = INT
    made, f, node = case("another argument")
    f.signature.input_arg[0].type = INT
    case("by name with too few arguments", True)[2].input.pop()
    case("by name with too many arguments", True)[2].input.append("c")
    case("result that is nowhere")[1].ret["y"] = "nowhere:y:0"
    case("result of an output that is not there")[1].ret["y"] = "b:y:5"
    case("result of a rubbish output")[1].ret["y"] = "b:z:0"
    case("result of a rubbish number")[1].ret["y"] = "b:y:x"
    case("result that is not given")[1].ret.pop("y")
    case("result of another type")[1].signature.output_arg[0].type = INT
    case("input that is nowhere")[1].node_def[0].input[0] = "nowhere"
    case("control input that is nowhere")[1].node_def[0].input.append("^nowhere")
    case("too few inputs in the body")[1].node_def[0].input.pop()
    case("too many inputs in the body")[1].node_def[0].input.append("x")
    case("type in the body that does not fit")[1].node_def[0].attr["T"].type = INT
    case("type in the body that is not known")[1].node_def[0].attr["T"].type = 77
    case("attribute of the wrong kind in the body")[1].node_def[0].attr["T"].i = 3
    case("missing attribute in the body")[1].node_def[0].attr.pop("T")
    case("placeholder without a value")[1].node_def[0].attr["T"].placeholder = "T"
    case("unknown op in the body")[1].node_def[0].op = "NoSuchOp"
    made, f, _ = case("cycle in the body")
    f.node_def[0].input[0] = "b:y:0"
    made, f, _ = case("two of one name in the body")
    f.node_def.add().CopyFrom(f.node_def[0])
    made, f, _ = case("node with the argument's name")
    f.node_def[0].name = "x"
    made, f, _ = case("two arguments of one name")
    f.signature.input_arg.add(name="x", type=FLOAT)
    made, f, _ = case("argument without a type")
    f.signature.input_arg[0].type = 0
    made, f, _ = case("argument of an unknown type")
    f.signature.input_arg[0].type = 77
    made, f, _ = case("number of arguments without a value")
    f.signature.input_arg[0].number_attr = "N"
    made, f, node = case("great number of arguments")
    f.signature.input_arg[0].number_attr = "N"
    node.attr["f"].func.attr["N"].i = 1 << 40
    made, f, _ = case("two functions of one name")
    made.library.function.add().CopyFrom(f)
    made, f, _ = case("two different functions of one name")
    made.library.function.add().CopyFrom(f)
    made.library.function[1].node_def[0].op = "Abs"
    case("name of an op")[1].signature.name = "Neg"
    for kind in ("If", "Case", "While"):
        for fault in ("", "unknown", "argument", "result", "condition"):
            if (kind, fault) == ("While", "condition"):
                continue  # it runs for ever
            graphs[f"{kind} {fault}"] = _control(kind, fault)
    return _answers(call, graphs)


def recursion(call: Caller) -> dict[str, Any]:
    """Functions that call themselves, and others that TensorFlow's server does not survive: for ours only."""
    negative = calling(function())
    graphs = {"direct": recursive("f"), "mutual": recursive("f", "g"), "negative number of arguments": negative}
    negative.library.function[0].signature.input_arg[0].number_attr = "N"
    negative.node[1].attr["f"].func.attr["N"].i = -1
    return _answers(call, graphs)


def recursive(*names: str, device: str = "") -> graph_pb2.GraphDef:
    """Functions each of which calls the next one, the last one the first."""
    functions = [function(name) for name in names]
    for made, following in zip(functions, (*names[1:], names[0]), strict=True):
        add_call(made.node_def[0], following, device)
        made.ret["y"] = "b:output:0"
    return calling(*functions)


def doubling(depth: int, device: str = "") -> graph_pb2.GraphDef:
    """Functions each of which calls the next one twice, `depth` of them."""
    functions = [function(f"f{number}") for number in range(depth)]
    for number, made in enumerate(functions[:-1]):
        add_call(made.node_def[0], f"f{number + 1}", device)
        again = made.node_def.add(name="again")
        again.CopyFrom(made.node_def[0])
        again.name = "again"
        again.input[0] = "b:output:0"
        made.ret["y"] = "again:output:0"
    functions[-1].node_def[0].device = device
    return calling(*functions)


def add_call(node: Any, name: str, device: str = "") -> None:
    node.Clear()
    node.name, node.op, node.device = "b", "PartitionedCall", device
    node.input.append("x")
    node.attr["Tin"].list.type.append(FLOAT)
    node.attr["Tout"].list.type.append(FLOAT)
    node.attr["f"].func.name = name


def _control(op: str, fault: str) -> graph_pb2.GraphDef:
    """An If, Case or While of functions, one of which has a fault."""
    made = graph(const("c"), {"name": "p", "op": "Const", "dtype": types_pb2.DT_BOOL, "value": np.array(False)})
    if op == "Case":
        made.node[1].CopyFrom(graph({"name": "p", "op": "Const", "dtype": INT, "value": np.array(0, np.int32)}).node[0])
    good, other = function("f"), function("g")
    if fault == "argument":
        other.signature.input_arg.add(name="z", type=FLOAT)
    elif fault == "result":
        other.signature.output_arg.add(name="z", type=FLOAT)
        other.ret["z"] = "x"
    made.library.function.extend([good, other])
    node = made.node.add(name="a", op=op, input=["p", "c"])
    if op == "While":
        condition = made.library.function.add()
        condition.signature.name = "h"
        condition.signature.input_arg.add(name="x", type=FLOAT)
        condition.signature.output_arg.add(name="y", type=types_pb2.DT_BOOL)
        value = condition.node_def.add(name="v", op="Const")
        value.attr["dtype"].type = types_pb2.DT_BOOL
        value.attr["value"].tensor.CopyFrom(codec.array_to_proto(np.array(False)))
        condition.ret["y"] = "v:output:0"
        del node.input[0]
        node.attr["T"].list.type.append(FLOAT)
        node.attr["cond"].func.name = "f" if fault == "condition" else "h"
        node.attr["body"].func.name = "nowhere" if fault == "unknown" else "g"
        if fault == "condition":
            condition.signature.output_arg.add(name="z", type=FLOAT)
        return made
    node.attr["Tin"].list.type.append(FLOAT)
    node.attr["Tout"].list.type.append(FLOAT)
    names = ["nowhere" if fault == "unknown" else "f", "g"]
    if op == "If":
        node.attr["Tcond"].type = types_pb2.DT_STRING if fault == "condition" else types_pb2.DT_BOOL
        node.attr["then_branch"].func.name, node.attr["else_branch"].func.name = reversed(names)
    else:
        for name in names if fault != "condition" else []:
            node.attr["branches"].list.func.add(name=name)
        if fault == "condition":
            node.attr["branches"].list.SetInParent()
    return made


FAMILIES = (names, registered, attributes, calls)
