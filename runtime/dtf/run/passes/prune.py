"""Prunes a graph to what one step needs, and puts endpoints where values enter and leave.

A feed `x:0` becomes a node `_recv_x_0`, a `_Recv` with client_terminated = true, and takes over the edges of that
output. A fetch `y:0` becomes `_send_y_0`, a `_Send` with client_terminated = true. Their devices and keys are filled in
by `partition`. The names are TensorFlow's, so that a real worker's error messages read as its users know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dtf.run.passes import (
    CONTROL,
    Nodes,
    NodesView,
    base_type,
    output_types,
    parse_tensor_name,
    set_type,
    tensor_name,
    with_inputs,
)
from dtf.wire import errors
from dtf.wire.pb import node_def_pb2

_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})


def prune(nodes: NodesView, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> Nodes:
    """The subgraph that computes `fetches` and runs `targets` when `feeds` are given.

    Args:
      nodes: the whole graph.
      feeds: tensor names ("x:0") whose values the caller supplies.
      fetches: tensor names whose values the caller wants.
      targets: node names to run for their effect.

    Returns:
      the needed nodes, inputs before consumers where the graph has no loop. A feed that nothing needs has no endpoint.

    Raises:
      NotFoundError: a name is not in the graph, or an op type is not known.
      InvalidArgumentError: an output index is out of range, a name is given twice, a tensor is both fed and
        fetched, or there is nothing to run.
    """
    _check(nodes, feeds, fetches, targets)
    feed_edges: dict[tuple[str, int], str] = {}
    endpoints: Nodes = {}
    for feed in feeds:
        name, index = parse_tensor_name(feed)
        endpoint = _endpoint(nodes, "_Recv", feed)
        endpoints[endpoint.name] = endpoint
        feed_edges[name, index] = endpoint.name
        if nodes[name].op in _PLACEHOLDERS:
            feed_edges[name, CONTROL] = endpoint.name
    for fetch in fetches:
        endpoint = _endpoint(nodes, "_Send", fetch)
        endpoints[endpoint.name] = endpoint
    fed = _Fed(nodes, endpoints, feed_edges)
    wanted = [name for name, node in endpoints.items() if node.op == "_Send"]
    wanted += _without_joins(nodes, targets, feed_edges)
    return _reachable(fed, wanted)


class _Fed:
    """The graph with fed edges redirected, computed node by node as the walk reaches them."""

    def __init__(self, nodes: NodesView, endpoints: Nodes, feed_edges: dict[tuple[str, int], str]):
        self._nodes, self._endpoints, self._feed_edges = nodes, endpoints, feed_edges

    def get(self, name: str) -> node_def_pb2.NodeDef:
        node = self._endpoints.get(name) or self._nodes[name]
        if not self._feed_edges:
            return node
        return with_inputs(node, [self._redirect(text) for text in node.input])

    def _redirect(self, text: str) -> str:
        name, index = parse_tensor_name(text)
        endpoint = self._feed_edges.get((name, index))
        return text if endpoint is None else tensor_name(endpoint, CONTROL if index == CONTROL else 0)


def _reachable(graph: _Fed, wanted: Iterable[str]) -> Nodes:
    """Depth first, without recursion; a node is emitted after its inputs."""
    result: Nodes = {}
    visited: set[str] = set()
    stack: list[tuple[str, node_def_pb2.NodeDef | None]] = [(name, None) for name in reversed(list(wanted))]
    while stack:
        name, finished = stack.pop()
        if finished is not None:
            result[name] = finished
            continue
        if name in visited:
            continue
        visited.add(name)
        try:
            node = graph.get(name)
        except KeyError:
            raise errors.InvalidArgumentError.of(f"The graph has no node '{name}', an input") from None
        stack.append((name, node))
        for text in node.input:
            source = parse_tensor_name(text)[0]
            if source not in visited:
                stack.append((source, None))
    return result


def _without_joins(
    nodes: NodesView, targets: Sequence[str], feed_edges: Mapping[tuple[str, int], str]
) -> list[str]:
    """Replaces targets that only wait for others (a NoOp with control inputs) by what they wait for.

    A step ends when everything in it has run, so the join itself would only cost a message per task. A placeholder that
    is fed need not be waited for.
    """
    result: dict[str, None] = {}
    seen: set[str] = set()
    stack = list(reversed(targets))
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        node = nodes[name]
        if node.op == "NoOp" and node.input:
            inputs = [parse_tensor_name(text)[0] for text in reversed(node.input)]
            stack.extend(source for source in inputs if (source, CONTROL) not in feed_edges)
        else:
            result[name] = None
    return list(result)


def _endpoint(nodes: NodesView, op: str, tensor: str) -> node_def_pb2.NodeDef:
    name, index = parse_tensor_name(tensor)
    types = output_types(nodes[name])
    if index >= len(types):
        raise errors.InvalidArgumentError(
            nodes[name], None, f"{tensor}: output index too large, must be < {len(types)}"
        )
    endpoint = node_def_pb2.NodeDef(op=op)
    if op == "_Recv":
        endpoint.name = f"_recv_{name}_{index}"
        set_type(endpoint, "tensor_type", base_type(types[index]))
    else:
        endpoint.name = f"_send_{name}_{index}"
        set_type(endpoint, "T", base_type(types[index]))
        endpoint.input.append(tensor_name(name, index))
    endpoint.attr["tensor_name"].s = tensor.encode()
    endpoint.attr["client_terminated"].b = True
    return endpoint


def _check(nodes: NodesView, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> None:
    seen: dict[tuple[str, int], str] = {}  # "y", "y:0" and "y:00" are one endpoint
    for kind, tensors in (("fed", feeds), ("fetched", fetches)):
        for tensor in tensors:
            endpoint = parse_tensor_name(tensor)
            if endpoint[0] not in nodes:
                what = "FeedInputs: unable to find feed output" if kind == "fed" else "FetchOutputs: unable to find"
                raise errors.NotFoundError.of(f"{what} {tensor}")
            former = seen.get(endpoint)
            if former == kind:
                raise errors.InvalidArgumentError.of(f"An endpoint is {kind} more than once: {', '.join(tensors)}")
            if former is not None:
                raise errors.InvalidArgumentError.of(f"Tensor {tensor} is both fed and fetched.")
            seen[endpoint] = kind
    missing = [name for name in targets if name not in nodes]
    if missing:
        raise errors.NotFoundError.of(f"Target nodes not found in the graph: {', '.join(missing)}")
    if not fetches and not targets:
        raise errors.InvalidArgumentError.of("Must specify at least one target to fetch or execute.")
