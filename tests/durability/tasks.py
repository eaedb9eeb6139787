"""A durable task without a network: a real worker, whose steps run in the caller's thread.

    graphs = Graphs(graph, {"train": train_op, "value": variable})
    task = Task(folder, graphs)
    task.run("train", {"amount:0": np.float32(2)}, slot=0, number=1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import dtf as tf
from dtf.run.durability.durable_resources import DurableResources
from dtf.run.durability.kept import mark_once
from dtf.run.durability.once import StepName
from dtf.run.exchange.rendezvous import make_key
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.interfaces import Device, Value
from dtf.run.worker.worker import LocalWorker
from dtf.run.worker.worker_session import RegisteredGraph
from dtf.wire.pb import graph_pb2

__all__ = ["Answer", "Graphs", "Task"]

PS, CLIENT = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
SESSION = "session-of-the-test"


class Graphs:
    """The partitions of a task, by name: each computes one fetch, a tensor or an operation.

    Attributes:
      parts: name -> (graph, keys of feeds by tensor name, key of the fetch or "").
      compiled: name -> what the first task has made of the graph; it has no state, so that others share it.
    """

    def __init__(self, graph: tf.Graph, fetches: Mapping[str, tf.Tensor | tf.Operation]) -> None:
        self.parts: dict[str, tuple[graph_pb2.GraphDef, dict[str, str], str]] = {}
        whole = graph.as_graph_def()
        for name, fetch in fetches.items():
            self.parts[name] = _partition(whole, fetch)
        mark_once(graph_def for graph_def, _, _ in self.parts.values())
        self.compiled: dict[str, RegisteredGraph] = {}


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

    def take(self, values: Sequence[np.ndarray] = (), error: tf.errors.OpError | None = None) -> None:
        """The step has ended."""
        assert not self.is_over
        self.is_over, self.values, self.error = True, list(values), error


class Task:
    """A process of a durable task."""

    def __init__(self, folder: Path, graphs: Graphs) -> None:
        self.resources = DurableResources(folder)
        self._graphs = graphs
        self._worker = LocalWorker([Device(PS, incarnation=1)], durable=self.resources)
        self._handles: dict[tuple[str, str], str] = {}

    def start(
        self, name: str, feeds: Mapping[str, Value] | None = None, *, slot: int, number: int, attempt: int = 0
    ) -> Answer:
        """Starts a step, which may wait."""
        answer = Answer()
        self.send(SESSION, StepName(1, slot, number, attempt).step_id, name, feeds or {}, answer.take)
        return answer

    def send(
        self, session: str, step_id: int, name: str, feeds: Mapping[str, Value], done: Callable[..., None]
    ) -> None:
        """Starts a step of a session: done([value of the fetch]) or done(error=...)."""
        _, keys, fetch = self._graphs.parts[name]

        def over(result: object = None, error: tf.errors.OpError | None = None) -> None:
            if error is not None:
                done(error=error)
            else:
                done([result.values[fetch]] if fetch else [])

        sends = [(keys[key], value) for key, value in feeds.items()]
        try:
            handle = self._handle(session, name)
            self._worker.run_graph(session, handle, step_id, sends, [fetch] if fetch else [], None, over)
        except tf.errors.OpError as error:
            done(error=error)

    def stop(self, step_id: int) -> None:
        """Cancels a step, as its master does when another part of it has failed."""
        running = self._worker._running.find(step_id)
        if running is not None:
            running.cancel(tf.errors.AbortedError(None, None, "the master has ended the step"))

    def _handle(self, session: str, name: str) -> str:
        handle = self._handles.get((session, name))
        if handle is None:
            self._worker.create_worker_session(session, None, False)
            compiled = self._graphs.compiled.get(name)
            if compiled is None:
                handle = self._worker.register_graph(session, self._graphs.parts[name][0])
                compiled = self._graphs.compiled[name] = self._worker._sessions[session].graphs[handle]
                program = compiled.executor._program
                if isinstance(program, FlatProgram):
                    program.long_ns = math.inf  # no segment goes to another thread
            else:
                handle = name
                self._worker._sessions[session].graphs[handle] = compiled
            self._handles[session, name] = handle
        return handle

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
