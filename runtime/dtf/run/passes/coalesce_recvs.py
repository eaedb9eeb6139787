"""Marks the values that arrive at a task together.

Between two waits a task runs straight through, so all that it sends to another one from there arrives at about the
same time. Who receives it waits for all of it at once, which costs next to nothing, instead of for each value. So every
_Recv gets the number of what its value waited for where it was made; no two values with one number can ever wait for
each other.

What everybody who wants it wants together with something from the same task that comes later needs no message of its
own; so its _Send gets a mark too.

Large variables, and updates of them, are left apart: what needs the first need not wait for the last. So are results of
much arithmetic of which more is made here: while one task is at the first of them, the other makes the next, as in a
pipeline of micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dtf.run.exchange.endpoint_binding import COMES_WITH, RIDES
from dtf.run.executor.instructions import ALIASES, MERGES, RECVS, SENDS
from dtf.run.passes import parse_tensor_name
from dtf.wire import dtypes

__all__ = ["mark_arrivals"]

_APART_FROM_BYTES = 1 << 16
_LOOPS = frozenset({"NextIteration", "RefNextIteration"})
_VARIABLES = frozenset({"VariableV2", "Variable", "VarHandleOp"})
_ARITHMETIC = frozenset(
    "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum Conv2D Conv2DBackpropInput Conv2DBackpropFilter Conv3D "
    "Conv3DBackpropInputV2 Conv3DBackpropFilterV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput "
    "DepthwiseConv2dNativeBackpropFilter".split()
)


def mark_arrivals(parts: Mapping[str, Any], may_wait: Callable[[str], bool]) -> None:
    """Marks the _Recv nodes of the parts (task -> `partition.Partition`), unless there are loops.

    Args:
      may_wait: whether the kernel of an op may let others wait.
    """
    nodes = {(task, node.name): node for task, part in parts.items() for node in part.graph_def.node}
    if any(node.op in _LOOPS for node in nodes.values()):
        return
    senders = {_label(node): name for name, node in nodes.items() if _crosses(node, SENDS)}
    received = {
        name: senders[_label(node)]
        for name, node in nodes.items()
        if _crosses(node, RECVS) and _label(node) in senders
    }
    sources = {name: _sources(name, node, received) for name, node in nodes.items()}
    waited: dict[tuple[str, str], frozenset[Any]] = {}
    numbers: dict[tuple[str, frozenset[Any]], int] = {}
    users = _users(sources)
    order = _in_order(sources, users)
    computed = _near_arithmetic(order, sources, nodes)
    computes = _near_arithmetic(order[::-1], users, nodes)
    for name in order:
        node = nodes[name]
        if name in received:
            sender = received[name]
            if (sender in computed and name in computes) or _is_apart(name, sender, nodes, sources, users):
                waited[name] = frozenset([name])
                continue
            number = numbers.setdefault((sender[0], waited[sender]), len(numbers))
            node.attr[COMES_WITH].i = nodes[sender].attr[COMES_WITH].i = number
            waited[name] = frozenset([number])
            continue
        before = [waited[source] for source in sources[name]]
        if node.op in RECVS or may_wait(node.op):
            before.append(frozenset([name]))
        waited[name] = before[0] if len(set(before)) == 1 else frozenset().union(*before)
    _mark_riding(nodes, received, sources, users, waited)


def _mark_riding(nodes: Mapping[Any, Any], received: Mapping[Any, Any], sources: Any, users: Any, waited: Any) -> None:
    """Marks the _Send nodes whose values nobody can use before a later one from the same task has come too."""

    def is_used_with_later(name: Any, user: Any) -> bool:
        if nodes[user].op in MERGES:
            return False
        sender = received[name]
        others = [received[other] for other in sources[user] if other != name and other in received]
        return any(other[0] == sender[0] and waited[other] > waited[sender] for other in others)

    for name, sender in received.items():
        if users[name] and all(is_used_with_later(name, user) for user in users[name]):
            nodes[sender].attr[RIDES].b = True


def _sources(name: tuple[str, str], node: Any, received: Mapping[Any, tuple[str, str]]) -> list[tuple[str, str]]:
    if name in received:
        return [received[name]]
    return [(name[0], parse_tensor_name(text)[0]) for text in node.input]


def _users(sources: Mapping[Any, list[Any]]) -> dict[Any, list[Any]]:
    users: dict[Any, list[Any]] = {name: [] for name in sources}
    for name, before in sources.items():
        for source in before:
            users[source].append(name)
    return users


def _in_order(sources: Mapping[Any, list[Any]], users: Mapping[Any, list[Any]]) -> list[Any]:
    """All nodes, each after its sources."""
    missing = {name: len(before) for name, before in sources.items()}
    order = [name for name, count in missing.items() if not count]
    for name in order:
        for user in users[name]:
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    return order


def _near_arithmetic(order: list[Any], nexts: Mapping[Any, list[Any]], nodes: Mapping[Any, Any]) -> set[Any]:
    """The nodes that reach much arithmetic by `nexts`, which are before them in `order`, without leaving their task."""
    near = set()
    for name in order:
        if nodes[name].op in _ARITHMETIC or any(each in near and each[0] == name[0] for each in nexts[name]):
            near.add(name)
    return near


def _is_apart(name: Any, sender: Any, nodes: Mapping[Any, Any], sources: Any, users: Any) -> bool:
    """Whether a large variable is sent, or something that is applied to one."""
    origin = sources[sender][0] if sources[sender] else sender
    while nodes[origin].op in ALIASES and sources[origin]:
        origin = sources[origin][0]
    if _variable_bytes(nodes[origin]) >= _APART_FROM_BYTES:
        return True
    for user in users[name]:
        node = nodes[user]
        text = node.input[0] if node.input else "^"
        if not text.startswith("^"):
            target = nodes.get((user[0], parse_tensor_name(text)[0]))
            if target is not None and _variable_bytes(target) >= _APART_FROM_BYTES:
                return True
    return False


def _variable_bytes(node: Any) -> int:
    if node.op not in _VARIABLES or node.attr["shape"].shape.unknown_rank:
        return 0
    sizes = [dim.size for dim in node.attr["shape"].shape.dim]
    return max(0, math.prod(sizes)) * (dtypes.as_dtype(node.attr["dtype"].type).size or 1)


def _crosses(node: Any, ops: frozenset[str]) -> bool:
    return node.op in ops and not node.attr["client_terminated"].b


def _label(node: Any) -> str:
    attr = node.attr
    return f"{attr['send_device'].s}{attr['recv_device'].s}{attr['tensor_name'].s}"
