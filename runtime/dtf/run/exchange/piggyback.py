"""Which values of a pushed step wait for each other, and so share a message and a wait.

Owns the whole of it: the master's decision (`mark`, a pass over the partitions), the node attributes that carry it to
the tasks, and how a task reads them (`Marks`). `push_exchange` has a method for each `SEND_METHODS`.

Between two waits a task runs straight through, so all that it sends to another one from there arrives at about the
same time. The receiver waits for all of it at once, which costs next to nothing, instead of for each value. So every
_Recv gets the number of a *group*: the waits of its value's sender. No two values of one group can ever wait for each
other.

A value that all its users use only together with a later one from the same task is *piggybacked*: it needs no message
of its own, so its _Send gets a mark too.

Large variables, and updates of them, stay alone: a node that needs the first need not wait for the last. Results
of much arithmetic stay alone too, where this task makes several: while another task uses the first result, this one
computes the next, as in a pipeline of micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dtf.run.executor.instructions import ALIASES, MERGES, RECVS, SENDS
from dtf.wire import dtypes
from dtf.wire.names import parse_tensor_name
from dtf.wire.pb import graph_pb2
from dtf.wire.pb.node_def_pb2 import NodeDef

if TYPE_CHECKING:
    from dtf.run.passes.partition import Partition

__all__ = ["GROUP_ATTR", "PIGGYBACK_ATTR", "SEND_METHODS", "Marks", "mark"]

GROUP_ATTR = "_comes_with"
"""An attribute of a _Recv and of its _Send: the same number stands at all whose values one segment there sends."""

PIGGYBACK_ATTR = "_rides"
"""An attribute of a _Send: all users of its value wait also for a later value from the same task."""

SEND_METHODS = frozenset({"send", "send_grouped", "send_piggybacked"})
"""The methods of a `StepExchange` that take a value, one for each way in which a value may wait for others."""


class Marks(NamedTuple):
    """The decisions about the endpoints of one partition, by the names of their nodes.

    Attributes:
      groups: of each _Recv and _Send that has one, the number of its group.
      piggybacked: the _Send nodes whose values are.
    """

    groups: Mapping[str, int]
    piggybacked: frozenset[str]

    @staticmethod
    def of(graph_def: graph_pb2.GraphDef) -> Marks:
        """The marks that the master has set."""
        groups = {node.name: node.attr[GROUP_ATTR].i for node in graph_def.node if GROUP_ATTR in node.attr}
        return Marks(groups, frozenset(node.name for node in graph_def.node if PIGGYBACK_ATTR in node.attr))

    def send_method(self, name: str) -> str:
        """The one of SEND_METHODS with which the _Send of this name sends."""
        if name in self.piggybacked:
            return "send_piggybacked"
        return "send_grouped" if name in self.groups else "send"


_Name = tuple[str, str]
"""The task and the name of a node."""

_Waits = frozenset[_Name | int]
"""The waits before a node: a _Recv or a node that may wait by its name, a group by its number."""

_APART_FROM_BYTES = 1 << 16
_LOOPS = frozenset({"NextIteration", "RefNextIteration"})
_VARIABLES = frozenset({"VariableV2", "Variable", "VarHandleOp"})
_ARITHMETIC = frozenset(
    "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum Conv2D Conv2DBackpropInput Conv2DBackpropFilter Conv3D "
    "Conv3DBackpropInputV2 Conv3DBackpropFilterV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput "
    "DepthwiseConv2dNativeBackpropFilter".split()
)


def mark(parts: Mapping[str, Partition], may_wait: Callable[[str], bool]) -> None:
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
    waited: dict[_Name, _Waits] = {}
    numbers: dict[tuple[str, _Waits], int] = {}
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
            node.attr[GROUP_ATTR].i = nodes[sender].attr[GROUP_ATTR].i = number
            waited[name] = frozenset([number])
            continue
        before = [waited[source] for source in sources[name]]
        if node.op in RECVS or may_wait(node.op):
            before.append(frozenset([name]))
        waited[name] = before[0] if len(set(before)) == 1 else frozenset[_Name | int]().union(*before)
    _mark_piggybacked(nodes, received, sources, users, waited)


def _mark_piggybacked(
    nodes: Mapping[_Name, NodeDef],
    received: Mapping[_Name, _Name],
    sources: Mapping[_Name, list[_Name]],
    users: Mapping[_Name, list[_Name]],
    waited: Mapping[_Name, _Waits],
) -> None:
    """Marks the _Send nodes whose values are of no use before a later one from the same task has come too."""

    def is_used_with_later(name: _Name, user: _Name) -> bool:
        if nodes[user].op in MERGES:
            return False
        sender = received[name]
        others = [received[other] for other in sources[user] if other != name and other in received]
        return any(other[0] == sender[0] and waited[other] > waited[sender] for other in others)

    for name, sender in received.items():
        if users[name] and all(is_used_with_later(name, user) for user in users[name]):
            nodes[sender].attr[PIGGYBACK_ATTR].b = True


def _sources(name: _Name, node: NodeDef, received: Mapping[_Name, _Name]) -> list[_Name]:
    if name in received:
        return [received[name]]
    return [(name[0], parse_tensor_name(text)[0]) for text in node.input]


def _users(sources: Mapping[_Name, list[_Name]]) -> dict[_Name, list[_Name]]:
    users: dict[_Name, list[_Name]] = {name: [] for name in sources}
    for name, before in sources.items():
        for source in before:
            users[source].append(name)
    return users


def _in_order(sources: Mapping[_Name, list[_Name]], users: Mapping[_Name, list[_Name]]) -> list[_Name]:
    """All nodes, each after its sources."""
    missing = {name: len(before) for name, before in sources.items()}
    order = [name for name, count in missing.items() if not count]
    for name in order:
        for user in users[name]:
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    return order


def _near_arithmetic(
    order: list[_Name], nexts: Mapping[_Name, list[_Name]], nodes: Mapping[_Name, NodeDef]
) -> set[_Name]:
    """The nodes that reach much arithmetic by `nexts`, which are before them in `order`, without leaving their task."""
    near: set[_Name] = set()
    for name in order:
        if nodes[name].op in _ARITHMETIC or any(each in near and each[0] == name[0] for each in nexts[name]):
            near.add(name)
    return near


def _is_apart(
    name: _Name,
    sender: _Name,
    nodes: Mapping[_Name, NodeDef],
    sources: Mapping[_Name, list[_Name]],
    users: Mapping[_Name, list[_Name]],
) -> bool:
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


def _variable_bytes(node: NodeDef) -> int:
    if node.op not in _VARIABLES or node.attr["shape"].shape.unknown_rank:
        return 0
    sizes: list[int] = [dim.size for dim in node.attr["shape"].shape.dim]
    return max(0, math.prod(sizes)) * (dtypes.as_dtype(node.attr["dtype"].type).size or 1)


def _crosses(node: NodeDef, ops: frozenset[str]) -> bool:
    return node.op in ops and not node.attr["client_terminated"].b


def _label(node: NodeDef) -> str:
    attr = node.attr
    return f"{attr['send_device'].s!r}{attr['recv_device'].s!r}{attr['tensor_name'].s!r}"
