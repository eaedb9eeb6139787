"""Connects tensors of a graph for one signature, as `CallableOptions.tensor_connection` asks: the consumers of one
tensor read another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dtf.run.passes import CONTROL, Nodes, NodesView, output_types, parse_tensor_name, tensor_name, with_inputs
from dtf.wire import errors
from dtf.wire.pb import node_def_pb2

_BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})


def connect(nodes: NodesView, connections: Iterable[tuple[str, str]], feeds: Sequence[str]) -> Nodes:
    """The graph in which the value of `source` takes the place of `target` for each (source, target).

    Raises:
      NotFoundError: a target is not in the graph.
      InvalidArgumentError: a source is not, a target is connected twice or fed, or the values would wait for each
        other.
    """
    replaced: dict[tuple[str, int], tuple[str, int]] = {}
    fed = {parse_tensor_name(feed) for feed in feeds}
    for source, target in connections:
        sender, receiver = parse_tensor_name(source), parse_tensor_name(target)
        if not _exists(nodes, sender):
            raise errors.InvalidArgumentError.of(f"A connection begins at {source}, which does not exist.")
        if not _exists(nodes, receiver):
            raise errors.NotFoundError.of(f"A connection leads to {target}, which does not exist.")
        if receiver in replaced or receiver in fed:
            raise errors.InvalidArgumentError.of(f"{target} is connected twice, or fed as well.")
        replaced[receiver] = sender
    result = {name: _redirected(node, replaced) for name, node in nodes.items()}
    for (target, _), (source, _) in replaced.items():
        if _reaches(result, source, source):
            raise errors.InvalidArgumentError.of(
                f"The connection from {source} to {target} makes a cycle: {source} would wait for itself."
            )
    return result


def _exists(nodes: NodesView, tensor: tuple[str, int]) -> bool:
    name, index = tensor
    return name in nodes and 0 <= index < len(output_types(nodes[name]))


def _redirected(
    node: node_def_pb2.NodeDef, replaced: dict[tuple[str, int], tuple[str, int]]
) -> node_def_pb2.NodeDef:
    inputs = []
    for text in node.input:
        name, index = parse_tensor_name(text)
        inputs.append(tensor_name(*replaced.get((name, index), (name, index))) if index != CONTROL else text)
    return with_inputs(node, inputs)


def _reaches(nodes: NodesView, start: str, wanted: str) -> bool:
    """Whether `start` needs `wanted`, back edges of loops aside."""
    seen: set[str] = set()
    stack = [start]
    while stack:
        node = nodes[stack.pop()]
        if node.op in _BACK_EDGES:
            continue
        for text in node.input:
            source = parse_tensor_name(text)[0]
            if source == wanted:
                return True
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return False
