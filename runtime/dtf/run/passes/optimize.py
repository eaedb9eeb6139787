"""Makes a placed graph cheaper without changing what it computes.

One rewrite so far: stateless nodes of the same op, attributes, inputs and device become one (common subexpressions).
It is switched off by `GraphOptions.optimizer_options.opt_level = L0`, as in TensorFlow.
"""

from __future__ import annotations

from dtf.run.passes import Nodes, input_types, is_handle, op_def, output_types, parse_tensor_name, tensor_name
from dtf.wire import errors
from dtf.wire.pb import config_pb2, node_def_pb2

# These carry deadness, loops or the names of what they stand for; two of them are never the same.
_NEVER_MERGED = frozenset("Placeholder PlaceholderV2 Enter Exit NextIteration Merge LoopCond NoOp".split())
_CONSTANT_BYTES_MAX = 1 << 16


def optimize(nodes: Nodes, options: config_pb2.GraphOptions | None = None) -> Nodes:
    """The graph with common subexpressions merged. Nodes keep their names; those that were merged are gone."""
    if options is not None and options.optimizer_options.opt_level == config_pb2.OptimizerOptions.L0:
        return nodes
    replaced: dict[str, str] = {}
    seen: dict[tuple[object, ...], str] = {}
    result: Nodes = {}
    for name, node in nodes.items():
        node = _redirected(node, replaced)
        key = _identity(node)
        if key is not None:
            first = seen.setdefault(key, name)
            if first != name:
                replaced[name] = first
                continue
        result[name] = node
    if replaced:  # back edges of loops point at nodes that came later
        result = {name: _redirected(node, replaced) for name, node in result.items()}
    return result


def _identity(node: node_def_pb2.NodeDef) -> tuple[object, ...] | None:
    """What two nodes must agree in to be one; None for a node that must stay."""
    if node.op in _NEVER_MERGED or node.op.startswith("_") or node.ByteSize() > _CONSTANT_BYTES_MAX:
        return None
    try:
        if op_def(node).is_stateful or any(map(is_handle, input_types(node) + output_types(node))):
            return None
    except errors.NotFoundError:
        return None
    attrs = tuple(
        (name, node.attr[name].SerializeToString(deterministic=True))
        for name in sorted(node.attr)
        if not name.startswith("_")
    )
    return node.op, node.device, tuple(node.input), attrs


def _redirected(node: node_def_pb2.NodeDef, replaced: dict[str, str]) -> node_def_pb2.NodeDef:
    if not replaced:
        return node
    inputs = []
    for text in node.input:
        source, index = parse_tensor_name(text)
        inputs.append(tensor_name(replaced[source], index) if source in replaced else text)
    if inputs == list(node.input):
        return node
    changed = node_def_pb2.NodeDef()
    changed.CopyFrom(node)
    changed.input[:] = inputs
    return changed
