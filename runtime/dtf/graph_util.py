"""tf.graph_util: reduces GraphDefs to the nodes that inference needs.

Owns cutting a part out of a GraphDef, freezing variables into it, and removing nodes that only
training has. `run.passes` prunes graphs for a session's steps.

    frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["predictions"])

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/graph_util
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtf.build.graph import Graph
from dtf.build.importer import import_graph_def
from dtf.wire import dtypes
from dtf.wire.codec import array_to_proto
from dtf.wire.pb import graph_pb2, node_def_pb2
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "import_graph_def", "must_run_on_cpu",
    "remove_training_nodes", "tensor_shape_from_node_def_name",
]  # fmt: skip

_VARIABLES = ("Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp")
_HANDLE_CARRIERS = ("Identity", "Enter", "Switch")
_INT32: Any = dtypes.int32.as_datatype_enum
_RUN_ON_CPU = ("DynamicStitch", "ParameterServer")


def extract_sub_graph(graph_def: Any, dest_nodes: Iterable[str]) -> Any:
    """The part of a GraphDef that the nodes `dest_nodes` depend on, in its original order.

    Raises:
      TypeError: `graph_def` is none, or `dest_nodes` is a single string.
      AssertionError: a node is not in the graph.
    """
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, but got type {type(graph_def)}.")
    if isinstance(dest_nodes, str):
        raise TypeError(f"dest_nodes must be an iterable of strings, but got type {type(dest_nodes)}.")
    nodes = {node.name: node for node in graph_def.node}
    wanted = list(dest_nodes)
    for name in wanted:
        assert name in nodes, f"{name} is not in graph"
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted.extend(_source(text) for text in nodes[name].input)
    return _same_but_nodes(graph_def, [node for node in graph_def.node if node.name in needed])


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:
    """The part of a GraphDef that the outputs need, with each variable a constant of its value in `sess`.

    Args:
      sess: a session of a graph that has the variables.
      input_graph_def: the GraphDef.
      output_node_names: names of nodes to keep; their inputs are kept too.
      variable_names_whitelist: which variables to convert; all by default.
      variable_names_blacklist: which ones to leave.

    Raises:
      AssertionError: an output is not in the graph.
      FailedPreconditionError: a variable has no value.
    """
    part = extract_sub_graph(input_graph_def, output_node_names)
    left = set(variable_names_blacklist or ())
    chosen = None if variable_names_whitelist is None else set(variable_names_whitelist)
    variables = {
        node.name: node
        for node in part.node
        if node.op in _VARIABLES and node.name not in left and (chosen is None or node.name in chosen)
    }
    reads = {
        name: (_read_of(sess.graph, name) if node.op == "VarHandleOp" else f"{name}:0")
        for name, node in variables.items()
    }
    values = sess.run(reads)
    carried = _carriers_of(part, variables)
    nodes: list[Any] = []
    added: list[Any] = []
    for node in part.node:
        source = carried.get(_source(node.input[0])) if node.input else None
        if node.name in variables:
            nodes.append(_constant(node.name, values[node.name], variables[node.name].attr["dtype"].type))
        elif node.name in carried:
            nodes.append(_retyped(node, "T", variables[carried[node.name]].attr["dtype"].type))
        elif source is None or variables[source].op != "VarHandleOp":
            nodes.append(node)
        else:
            converted, constants = _without_handle(node, variables[source].attr["dtype"].type)
            nodes.append(converted)
            added.extend(constants)
    return _same_but_nodes(part, [*nodes, *added])


def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """An equivalent GraphDef without CheckNumerics and without Identity nodes that no control edge touches.

    Args:
      input_graph: the GraphDef.
      protected_nodes: names of nodes to keep, such as the outputs.
    """
    protected = set(protected_nodes or ())
    after = {text[1:] for node in input_graph.node for text in node.input if text.startswith("^")}
    spliced: dict[str, str] = {}
    for node in input_graph.node:
        if node.name in protected or node.name in after or len(node.input) != 1 or node.input[0].startswith("^"):
            continue
        if node.op in ("Identity", "CheckNumerics"):
            spliced[node.name] = node.input[0]
    kept = []
    for node in input_graph.node:
        if node.name in spliced:
            continue
        copied = node_def_pb2.NodeDef()
        copied.CopyFrom(node)
        for position, text in enumerate(node.input):
            while text.removesuffix(":0") in spliced:
                text = spliced[text.removesuffix(":0")]
            copied.input[position] = text
        kept.append(copied)
    return _same_but_nodes(input_graph, kept)


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node (an Operation or NodeDef) has to be on a CPU, wherever the others are."""
    node_def = node if isinstance(node, node_def_pb2.NodeDef) else node.node_def
    if pin_variables_on_cpu and node_def.op in _VARIABLES:
        return True
    if node_def.op == "Const":
        return node_def.attr["dtype"].type in (dtypes.string.as_datatype_enum, dtypes.int32.as_datatype_enum)
    return node_def.op in _RUN_ON_CPU


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The shape of the tensor "name" or "name:output" of a graph."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape


def _source(text: str) -> str:
    """The name of the node that an input of a NodeDef comes from."""
    return text.removeprefix("^").split(":")[0]


def _same_but_nodes(graph_def: Any, nodes: Iterable[Any]) -> Any:
    made = graph_pb2.GraphDef(versions=graph_def.versions)
    made.library.CopyFrom(graph_def.library)
    made.node.extend(nodes)
    return made


def _read_of(graph: Graph, name: str) -> Any:
    """A tensor with the value of the resource variable whose handle is the node `name`."""
    handle = graph.get_operation_by_name(name)
    for op in handle.outputs[0].consumers():
        if op.type == "ReadVariableOp" and not op.control_inputs:
            return op.outputs[0]
    raise ValueError(f"The graph of the session has no op that reads the variable {name}")


def _carriers_of(graph_def: Any, variables: dict[str, Any]) -> dict[str, str]:
    """{name: variable} of the nodes that are handles of the variables, or hand one on."""
    carried = {name: name for name in variables}
    grown = True
    while grown:
        grown = False
        for node in graph_def.node:
            if node.name in carried or node.op not in _HANDLE_CARRIERS or not node.input:
                continue
            variable = carried.get(_source(node.input[0]))
            if variable is not None and variables[variable].op == "VarHandleOp":
                carried[node.name] = variable
                grown = True
    return carried


def _constant(name: str, value: Any, dtype: Any) -> Any:
    made = node_def_pb2.NodeDef(name=name, op="Const")
    made.attr["dtype"].type = dtype
    made.attr["value"].tensor.CopyFrom(array_to_proto(value, dtypes.as_dtype(dtype)))
    return made


def _retyped(node: Any, attr: str, dtype: Any) -> Any:
    made = node_def_pb2.NodeDef()
    made.CopyFrom(node)
    made.attr[attr].type = dtype
    return made


def _without_handle(node: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A node that reads a resource variable as one that takes its value, and the constants that it needs.

    Raises:
      ValueError: the op does more than read.
    """
    made = node_def_pb2.NodeDef(name=node.name, device=node.device)
    made.input.extend(node.input)
    _copy_attr(node, made, "_class")
    if node.op == "ReadVariableOp":
        made.op = "Identity"
        made.attr["T"].type = dtype
        return made, []
    if node.op == "VariableShape":
        made.op = "Shape"
        made.attr["T"].type = dtype
        _copy_attr(node, made, "out_type")
        return made, []
    if node.op == "ResourceGather":
        axis = f"{node.name}/axis"
        batch_dims = node.attr["batch_dims"].i if "batch_dims" in node.attr else 0
        made.op = "GatherV2"
        made.input.insert(2, axis)
        made.attr["Tparams"].type = dtype
        _copy_attr(node, made, "Tindices")
        made.attr["Taxis"].type = _INT32
        _copy_attr(node, made, "batch_dims")
        return made, [_constant(axis, np.int32(batch_dims), _INT32)]
    raise ValueError(f"{node.name}: cannot convert the variable op {node.op}: it does more than read the variable")


def _copy_attr(source: Any, target: Any, name: str) -> None:
    if name in source.attr:
        target.attr[name].CopyFrom(source.attr[name])
