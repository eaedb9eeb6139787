"""A few steps of a training as they ran, over all tasks, on one clock. Pure.

Times are microseconds of the wall clock of the machine that asked. A step is one run of a session; `client` is the
task in whose process the session is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

SEND_OPS = frozenset({"_Send", "_HostSend"})
RECEIVE_OPS = frozenset({"_Recv", "_HostRecv"})
WAITING_OPS = (
    "QueueDequeue", "QueueEnqueue", "AccumulatorTakeGradient", "SparseAccumulatorTakeGradient", "Barrier", "Collective",
    "IteratorGetNext", "MapUnstage", "Unstage", "OrderedMapUnstage", "Stage",
)  # fmt: skip
"""The beginnings of the names of ops that wait for others: for elements, gradients, peers."""


@dataclass(frozen=True)
class Edge:
    """A tensor on its way between devices; tasks by their short names."""

    tensor: str
    source: str
    destination: str


@dataclass(frozen=True, eq=False)
class Node:
    """One op as it ran on a task. `bytes` are those of its outputs, `inputs` names of nodes, "^" before those that it
    only comes after."""

    task: str
    name: str
    op: str
    start_us: float
    end_us: float
    bytes: int = 0
    inputs: tuple[str, ...] = ()
    edge: Edge | None = None

    @property
    def is_send(self) -> bool:
        return self.op in SEND_OPS

    @property
    def is_receive(self) -> bool:
        return self.op in RECEIVE_OPS

    @property
    def waits(self) -> bool:
        return self.op.startswith(WAITING_OPS)


@dataclass(frozen=True, eq=False)
class Step:
    client: str
    number: int
    fetches: tuple[str, ...]
    start_us: float
    end_us: float
    nodes: tuple[Node, ...]
    is_main: bool = True

    @property
    def duration_us(self) -> float:
        return self.end_us - self.start_us

    @cached_property
    def variables(self) -> dict[str, str]:
        """Name of a receiving or sending node -> the variable whose value or gradient it moves, where that is plain."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if node.op.startswith(_UPDATE_OPS) and node.inputs:
                for name in node.inputs:
                    if not name.startswith("^"):
                        found.setdefault(name, node.inputs[0])
        for node in self.nodes:
            if node.edge is None:
                continue
            tensor = _EDGE_PREFIX.sub("", node.edge.tensor)
            if tensor.endswith("/read") or "/read/" in tensor:
                found[node.edge.tensor] = tensor.partition("/read")[0]
            elif node.name in found and node.is_receive:
                found[node.edge.tensor] = found[node.name]
        return found


@dataclass(frozen=True)
class Client:
    """One task's sessions: the traced steps, and how long a step takes without tracing (None: unknown). `pause_s` is
    what passes between two steps outside of the session."""

    task: str
    steps: tuple[Step, ...]
    untraced_s: float | None = None
    pause_s: float = 0.0

    @property
    def main_steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.is_main)


@dataclass(frozen=True)
class Clock:
    """A task's clock beside the one here: `offset_us` ahead, known within `error_us`."""

    task: str
    host: str
    offset_us: float = 0.0
    error_us: float = 0.0


@dataclass(frozen=True)
class Trace:
    """`missing` are tasks that train and gave no trace. `helpers` are the parameter servers' tasks."""

    cluster: str
    clients: tuple[Client, ...]
    clocks: tuple[Clock, ...] = ()
    missing: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for client in self.clients for step in client.steps)


_UPDATE_OPS = ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply", "Assign", "ScatterAdd", "ScatterSub",
               "ScatterUpdate", "AccumulatorApplyGradient", "SparseAccumulatorApplyGradient")  # fmt: skip
_EDGE_PREFIX = re.compile(r"^edge_\d+_")
