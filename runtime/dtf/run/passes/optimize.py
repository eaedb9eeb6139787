"""Makes a placed graph cheaper without changing what it computes.

Stateless nodes of the same op, attributes, inputs and device become one (common subexpressions). A NoOp that only joins
control edges gives way to the edges, which spares the messages by way of the task that it was placed on. Both are
switched off by `GraphOptions.optimizer_options.opt_level = L0`, as in TensorFlow.
"""

from __future__ import annotations

from collections import Counter

from dtf.run.passes import (
    Nodes,
    input_types,
    is_handle,
    op_def,
    output_types,
    parse_tensor_name,
    tensor_name,
    with_inputs,
)
from dtf.wire import errors, opdef
from dtf.wire.pb import config_pb2, node_def_pb2

# These carry deadness, loops or the names of what they stand for; two of them are never the same.
_NEVER_MERGED = frozenset("Placeholder PlaceholderV2 Enter Exit NextIteration Merge LoopCond NoOp".split())
_INHERITED_MAX = 64
"""What a joint may wait for by way of other joints."""
_CONSTANT_BYTES_MAX = 1 << 16


def optimize(nodes: Nodes, options: config_pb2.GraphOptions | None = None) -> Nodes:
    """The graph with common subexpressions merged, and without joints. Nodes keep their names; some are gone."""
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
    return _without_joints(result)


def _without_joints(nodes: Nodes) -> Nodes:
    """The graph without NoOps that others wait for: who waited for one waits for all that it waited for."""
    users = Counter(source for node in nodes.values() for source in map(_source, node.input))
    joints = {
        name
        for name, node in nodes.items()
        if node.op == "NoOp" and node.input and 0 < users[name] * len(node.input) <= users[name] + len(node.input) + 16
    }
    if not joints:
        return nodes
    sources: dict[str, list[str]] = {}
    waiting = list(joints)
    while waiting:
        name = waiting[-1]
        inputs = [_source(text) for text in nodes[name].input]
        missing = [each for each in inputs if each in joints and each not in sources]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        flat = list(dict.fromkeys(each for text in inputs for each in sources.get(text, (text,))))
        if len(flat) > len(inputs) + _INHERITED_MAX:
            joints.discard(name)  # else a chain of joints would take memory by the square of its length
        else:
            sources[name] = flat

    result: Nodes = {}
    for name, node in nodes.items():
        if name in joints:
            continue
        if any(_source(text) in joints for text in node.input):
            changed = node_def_pb2.NodeDef()
            changed.CopyFrom(node)
            data = [text for text in node.input if not text.startswith("^")]
            waits = [each for text in node.input if text.startswith("^") for each in sources.get(text[1:], (text[1:],))]
            changed.input[:] = [*data, *("^" + each for each in dict.fromkeys(waits))]
            node = changed
        result[name] = node
    return result


def _source(text: str) -> str:
    return parse_tensor_name(text)[0]


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
        if not name.startswith("_") or name == opdef.LABEL
    )
    return node.op, node.device, tuple(node.input), attrs


def _redirected(node: node_def_pb2.NodeDef, replaced: dict[str, str]) -> node_def_pb2.NodeDef:
    if not replaced:
        return node
    inputs = []
    for text in node.input:
        source, index = parse_tensor_name(text)
        inputs.append(tensor_name(replaced[source], index) if source in replaced else text)
    return with_inputs(node, inputs)
