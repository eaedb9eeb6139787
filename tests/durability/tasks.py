"""A durable task without a network: a real worker, whose steps run in the caller's thread.

    graphs = Graphs(graph, {"train": train_op, "value": variable})
    task = Task(folder, graphs)
    task.run("train", {"amount:0": np.float32(2)}, slot=0, number=1)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import dtf as tf
from dtf.run.durability.durable_resources import DurableResources
from dtf.run.durability.kept import mark_once
from dtf.run.durability.once import StepName
from dtf.run.exchange.rendezvous import make_key
from dtf.run.interfaces import Device, Value
from dtf.run.worker.worker import LocalWorker
from dtf.wire.pb import graph_pb2

__all__ = ["Answer", "Graphs", "Task"]

PS, CLIENT = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
SESSION = "session-of-the-test"


class Graphs:
    """The partitions of a task, by name: each computes one fetch, a tensor or an operation.

    Attributes:
      parts: name -> (graph, keys of feeds by tensor name, key of the fetch or "").
    """

    def __init__(self, graph: tf.Graph, fetches: Mapping[str, tf.Tensor | tf.Operation]) -> None:
        self.parts: dict[str, tuple[graph_pb2.GraphDef, dict[str, str], str]] = {}
        whole = graph.as_graph_def()
        for name, fetch in fetches.items():
            self.parts[name] = _partition(whole, fetch)
        mark_once(graph_def for graph_def, _, _ in self.parts.values())


class Answer:
    """What a step has come to.

    Attributes:
      is_over: whether it has ended.
      values: what it fetched.
      error: what it failed with.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.values: list[np.ndarray] = []
        self.error: tf.errors.OpError | None = None


class Task:
    """A process of a durable task."""

    def __init__(self, folder: Path, graphs: Graphs) -> None:
        self.resources = DurableResources(folder)
        self._graphs = graphs
        self._worker = LocalWorker([Device(PS, incarnation=1)], durable=self.resources)
        self._worker.create_worker_session(SESSION, None, False)
        self._handles: dict[str, str] = {}

    def start(
        self, name: str, feeds: Mapping[str, Value] | None = None, *, slot: int, number: int, attempt: int = 0
    ) -> Answer:
        """Starts a step, which may wait."""
        graph_def, keys, fetch = self._graphs.parts[name]
        if name not in self._handles:
            self._handles[name] = self._worker.register_graph(SESSION, graph_def)
        answer = Answer()

        def done(result: object = None, error: tf.errors.OpError | None = None) -> None:
            assert not answer.is_over
            answer.is_over, answer.error = True, error
            if error is None and fetch:
                answer.values = [result.values[fetch]]

        sends = [(keys[key], value) for key, value in (feeds or {}).items()]
        step_id = StepName(1, slot, number, attempt).step_id
        try:
            self._worker.run_graph(SESSION, self._handles[name], step_id, sends, [fetch] if fetch else [], None, done)
        except tf.errors.OpError as error:
            done(error=error)
        return answer

    def run(
        self, name: str, feeds: Mapping[str, Value] | None = None, *, slot: int, number: int, attempt: int = 0
    ) -> list[np.ndarray]:
        """Runs a step to its end. Raises its error."""
        answer = self.start(name, feeds, slot=slot, number=number, attempt=attempt)
        assert answer.is_over, f"{name} waits"
        if answer.error is not None:
            raise answer.error
        return answer.values

    def close(self) -> None:
        """Ends the process."""
        self.resources.close()


def _partition(
    whole: graph_pb2.GraphDef, fetch: tf.Tensor | tf.Operation
) -> tuple[graph_pb2.GraphDef, dict[str, str], str]:
    by_name = {node.name: node for node in whole.node}
    part = graph_pb2.GraphDef(versions=whole.versions, library=whole.library)
    feeds: dict[str, str] = {}
    operation = fetch if isinstance(fetch, tf.Operation) else fetch.op
    wanted, seen = [operation.name], set()
    while wanted:
        name = wanted.pop().lstrip("^").partition(":")[0]
        if name in seen:
            continue
        seen.add(name)
        node = part.node.add()
        node.CopyFrom(by_name[name])
        node.device = PS
        if node.op == "Placeholder":
            dtype = node.attr["dtype"].type
            node.ClearField("attr")
            node.op = "_Recv"
            node.attr["tensor_type"].type = dtype
            _connect(node, CLIENT, PS, f"{name}:0")
            feeds[f"{name}:0"] = make_key(CLIENT, 1, PS, f"{name}:0")
        wanted += node.input
    if isinstance(fetch, tf.Operation):
        return part, feeds, ""
    node = part.node.add(name="_send", op="_Send", input=[fetch.name], device=PS)
    node.attr["T"].type = fetch.dtype.as_datatype_enum
    _connect(node, PS, CLIENT, fetch.name)
    return part, feeds, make_key(PS, 1, CLIENT, fetch.name)


def _connect(node: object, source: str, destination: str, tensor_name: str) -> None:
    node.attr["send_device"].s, node.attr["recv_device"].s = source.encode(), destination.encode()
    node.attr["send_device_incarnation"].i = 1
    node.attr["tensor_name"].s = tensor_name.encode()
    node.attr["client_terminated"].b = True
