"""Why a step took as long as it did: the chain of operations and messages from its end back to its start. Pure.

From the last operation the walk goes to what that had to wait for: an input, what the same task did just before, or
for a received tensor the task that sent it. The parts of the path lie end to end, so their lengths add up to the step.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

from dtfctl.trace.model import Node, Step

COMPUTE, SERVE, TRANSFER, WAIT, FEED, OVERHEAD = KINDS = ("compute", "serve", "transfer", "wait", "feed", "overhead")
"""An operation of the client's task; of another task; a tensor on its way; an op that waits for others; values that
the client feeds; all else that dtf does: requests, answers, pauses between operations."""


@dataclass(frozen=True)
class Part:
    """`task` is where it happens; of a transfer the sender, and `to` the receiver. `variable` is known of some."""

    kind: str
    task: str
    start_us: float
    end_us: float
    name: str = ""
    op: str = ""
    to: str = ""
    bytes: int = 0
    variable: str = ""

    @property
    def duration_us(self) -> float:
        return self.end_us - self.start_us


def critical_path(step: Step) -> tuple[Part, ...]:
    """The parts in the order of time, from the start to the end of the step; none is empty."""
    return tuple(part for part in reversed(list(_Walk(step).parts())) if part.duration_us > 0)


class _Walk:
    def __init__(self, step: Step) -> None:
        self._step = step
        self._by_name = {(node.task, node.name): node for node in step.nodes}
        self._senders = {node.edge: node for node in step.nodes if node.is_send and node.edge is not None}
        self._ended: dict[str, list[Node]] = {}
        for node in sorted(step.nodes, key=lambda each: each.end_us):
            self._ended.setdefault(node.task, []).append(node)
        self._ends = {task: [node.end_us for node in nodes] for task, nodes in self._ended.items()}

    def parts(self) -> Iterable[Part]:
        """From the end to the start."""
        step = self._step
        at_us = step.end_us
        node = max(step.nodes, key=lambda each: each.end_us, default=None)
        seen: set[Node] = set()
        where = step.client
        while node is not None and node not in seen and at_us > step.start_us:
            seen.add(node)
            where = node.task
            if node.end_us < at_us:
                yield Part(OVERHEAD, where, max(node.end_us, step.start_us), at_us)
                at_us = max(node.end_us, step.start_us)
            variable = self._variable(node)
            if node.is_receive and node.edge is not None:
                sender = self._senders.get(node.edge)
                if sender is None or sender.task == node.task:
                    yield Part(FEED, step.client, step.start_us, at_us, node.name, node.op, node.task, node.bytes)
                    return
                sent_us = min(max(sender.start_us, step.start_us), at_us)
                yield Part(
                    TRANSFER, sender.task, sent_us, at_us, node.edge.tensor, node.op, node.task, node.bytes, variable
                )
                at_us, node = sent_us, self._before(sender, seen)
                continue
            began_us = min(max(node.start_us, step.start_us), at_us)
            if node.is_send and node.edge is not None and node.edge.destination != node.task:
                to, name = node.edge.destination, node.edge.tensor
                yield Part(TRANSFER, where, began_us, at_us, name, node.op, to, node.bytes, variable)
            else:
                kind = WAIT if node.waits else COMPUTE if node.task == step.client else SERVE
                yield Part(kind, where, began_us, at_us, node.name, node.op, "", node.bytes, variable)
            at_us, node = began_us, self._before(node, seen)
        if at_us > step.start_us:
            yield Part(OVERHEAD, where, step.start_us, at_us)

    def _before(self, node: Node, seen: set[Node]) -> Node | None:
        """What had to end before a node began, as late as anything: an input of it, or what its task did before. A task
        runs its operations in few threads, and begins a part of a graph when all has come that the part needs."""
        inputs = [self._by_name.get((node.task, name.lstrip("^"))) for name in node.inputs]
        found = [each for each in inputs if each is not None and each not in seen]
        ended, ends = self._ended.get(node.task, []), self._ends.get(node.task, [])
        place = bisect.bisect_right(ends, node.start_us)
        while place > 0 and (ended[place - 1] in seen or ended[place - 1] is node):
            place -= 1
        if place > 0:
            found.append(ended[place - 1])
        return max(found, key=lambda each: min(each.end_us, node.start_us), default=None)

    def _variable(self, node: Node) -> str:
        names = self._step.variables
        if node.edge is not None and node.edge.tensor in names:
            return names[node.edge.tensor]
        return names.get(node.name, "") or (node.inputs[0] if node.op.startswith(_UPDATES) and node.inputs else "")


_UPDATES = ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply", "Assign", "Scatter")
