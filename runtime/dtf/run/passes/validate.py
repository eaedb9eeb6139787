"""Refuses nodes that cannot be part of a graph, when a client adds them and before any step needs them.

Looks at edges and cycles; what can be said of a node alone is `wire.node_checks`'. Does not know kernels or devices.
An op that is not known here is passed over: another task may run it, and the first step that needs it here says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from dtf.run.passes import CONTROL, NodesView, base_type, input_types, output_types, parse_tensor_name
from dtf.wire import dtypes, errors, opdef
from dtf.wire.names import shown
from dtf.wire.node_checks import check_attributes, check_node
from dtf.wire.node_checks import refused as _invalid
from dtf.wire.pb import node_def_pb2

_BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})
_NAMES_OF_CYCLE_MAX = 5


def validate(added: Sequence[node_def_pb2.NodeDef], known: NodesView) -> None:
    """Checks nodes that are to be added to the nodes of a graph.

    Raises:
      InvalidArgumentError: a name is malformed or taken, an attribute is not allowed, an input does not exist or is of
        another dtype, there are too few or too many inputs, a device is malformed, or nodes wait for each other.
      NotFoundError: an attribute without a default is missing.
    """
    graph = dict(known)
    for node in added:
        check_node(node)
        if node.name in graph:
            raise errors.InvalidArgumentError.of(
                f"The graph has a node '{node.name}' already; it cannot be added again."
            )
        graph[node.name] = node
    outputs: dict[str, list[int] | None] = {}
    for node in added:
        if opdef.exists(node.op):
            _check_attrs(node)
    for node in added:
        _check_inputs(node, graph, outputs)
    _check_cycles(added)


def check_edges(nodes: Iterable[node_def_pb2.NodeDef]) -> None:
    """Checks the inputs of the nodes of a whole graph, such as a function's body: that they exist and have the types
    that their consumers want.

    Raises:
      InvalidArgumentError: one does not.
    """
    graph = {node.name: node for node in nodes}
    outputs: dict[str, list[int] | None] = {}
    for node in graph.values():
        _check_inputs(node, graph, outputs)


def _check_attrs(node: node_def_pb2.NodeDef) -> None:
    check_attributes(node)
    if node.op == "Const" and "value" in node.attr and node.attr["value"].tensor.dtype != node.attr["dtype"].type:
        raise _invalid(node, "The dtype of the constant is not that of its value")
    for name in _required_attrs(node.op):
        if name not in node.attr:
            raise errors.NotFoundError(node, None, f"No attr named '{name}' in NodeDef '{node.name}' ({node.op})")


@functools.cache
def _required_attrs(op: str) -> tuple[str, ...]:
    return tuple(attr.name for attr in opdef.get(op).attrs if not attr.has_default)


def _check_inputs(
    node: node_def_pb2.NodeDef, graph: Mapping[str, node_def_pb2.NodeDef], outputs: dict[str, list[int] | None]
) -> None:
    given: list[int | None] = []
    is_behind_control = False
    for text in node.input:
        source, index = parse_tensor_name(text)
        if source not in graph:
            raise _invalid(node, f"Unknown input node {shown(text)}")
        if index == CONTROL:
            is_behind_control = True
            continue
        if is_behind_control:
            raise _invalid(node, f"The input '{text}' comes after a control input")
        if source not in outputs:
            outputs[source] = output_types(graph[source]) if opdef.exists(graph[source].op) else None
        types = outputs[source]
        if types is None:
            given.append(None)
        elif index >= len(types):
            raise _invalid(node, f"The input '{text}' asks for an output that '{source}' does not have")
        else:
            given.append(types[index])
    if not opdef.exists(node.op):
        return
    wanted = input_types(node)
    if len(given) != len(wanted):
        raise _invalid(node, f"{node.op} takes {len(wanted)} inputs here, but {len(given)} are given")
    for position, (want, give) in enumerate(zip(wanted, given, strict=True)):
        if give is not None and base_type(give) != base_type(want):
            raise _invalid(
                node,
                f"Input {position} of node {node.name} was passed {_type_name(give)} from "
                f"{_with_output(node.input[position])} incompatible with expected {_type_name(want)}",
            )


def _check_cycles(added: Sequence[node_def_pb2.NodeDef]) -> None:
    """Only nodes that come together can wait for each other: earlier ones were whole without the later."""
    sources = {
        node.name: {parse_tensor_name(text)[0] for text in node.input} for node in added if node.op not in _BACK_EDGES
    }
    waiting_for: dict[str, int] = {}
    consumers: dict[str, list[str]] = {}
    for name, names in sources.items():
        inner = [source for source in names if source in sources]
        waiting_for[name] = len(inner)
        for source in inner:
            consumers.setdefault(source, []).append(name)
    ready = [name for name, count in waiting_for.items() if not count]
    finished = 0
    while ready:
        finished += 1
        for consumer in consumers.get(ready.pop(), ()):
            waiting_for[consumer] -= 1
            if not waiting_for[consumer]:
                ready.append(consumer)
    if finished < len(sources):
        stuck = sorted(name for name, count in waiting_for.items() if count)
        more = ", ..." if len(stuck) > _NAMES_OF_CYCLE_MAX else ""
        raise errors.InvalidArgumentError.of(
            f"Graph is invalid, contains a cycle with {len(stuck)} nodes, including: "
            f"{', '.join(stuck[:_NAMES_OF_CYCLE_MAX])}{more}"
        )


@functools.lru_cache(maxsize=256)
def _dtype(enum: int) -> dtypes.DType | None:
    try:
        return dtypes.as_dtype(enum) if enum else None
    except TypeError:
        return None


def _type_name(enum: int) -> str:
    dtype = _dtype(base_type(enum))
    return f"dtype {enum}" if dtype is None else dtypes.runtime_name(dtype)


def _with_output(text: str) -> str:
    """The input of a NodeDef with the number of the output, also where that is 0."""
    name, index = parse_tensor_name(text)
    return f"{name}:{index}"
