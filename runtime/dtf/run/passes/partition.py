"""Cuts a placed graph into one GraphDef per task.

An edge between two tasks becomes a `_Send` and a `_Recv` that agree on a rendezvous key; there is one pair for each
(node, output, destination task), however many consumers there are. Control edges need a message too, an empty tensor,
but one for all that a node waits for on one task, and none where a value goes the same way anyway. Constants are copied
instead of sent, and a feed is given to each task that uses it, so that the master talks to the consumers directly.

A loop may span tasks: each that takes part gets a control loop (see `loop_frames`), which makes its _Recv nodes come
round; a constant of a loop is sent once, outside of it, and enters on each task.

Keys: "source device;incarnation;destination device;tensor name;frame:iteration" (`rendezvous.make_key`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dtf.run.exchange.rendezvous import make_key
from dtf.run.interfaces import Device
from dtf.run.passes import CONTROL, Nodes, base_type, output_types, parse_tensor_name, set_type, tensor_name
from dtf.run.passes.loop_frames import ControlLoop, Frame, LoopFrames
from dtf.wire.device import task_of
from dtf.wire.dtypes import float32
from dtf.wire.pb import graph_pb2, node_def_pb2

_COPIED_CONSTANT_BYTES_MAX = 1 << 20
_SWITCHES = frozenset({"Switch", "RefSwitch"})


@dataclass
class Partition:
    """What one task runs.

    Attributes:
      task: "/job:ps/replica:0/task:0".
      graph_def: its nodes, all with full device names.
      feeds: rendezvous key of each fed tensor ("x:0") that this task uses.
      fetches: rendezvous key of each fetched tensor that this task produces.
    """

    task: str
    graph_def: graph_pb2.GraphDef = field(default_factory=graph_pb2.GraphDef)
    feeds: dict[str, str] = field(default_factory=dict)
    fetches: dict[str, str] = field(default_factory=dict)


def partition(
    nodes: Nodes,
    devices: Mapping[str, Sequence[Device]],
    client_device: Device | None = None,
    edge_numbers: Iterator[int] | None = None,
) -> dict[str, Partition]:
    """The parts by task name.

    Args:
      nodes: a pruned and placed graph: every node but the endpoints of feeds and fetches has a full device name.
      devices: the devices of the tasks that occur, with their incarnations.
      client_device: None when the caller hands over all feeds at the start and takes all fetches at the end. Else the
        device where it sends and receives them one by one, as the parts of a partial run do.
      edge_numbers: numbers for the edges between tasks, those of the session: TensorFlow's workers keep the kernel of
        a _Send or _Recv by the name of its node, so that no name may come twice in a session. From 0 if None.
    """
    return _Partitioner(nodes, devices, client_device, edge_numbers or itertools.count()).run()


class _Partitioner:
    def __init__(
        self,
        nodes: Nodes,
        devices: Mapping[str, Sequence[Device]],
        client_device: Device | None,
        edge_numbers: Iterator[int],
    ) -> None:
        self._nodes = nodes
        self._client = client_device
        self._incarnations = {device.name: device.incarnation for there in devices.values() for device in there}
        self._host = {task: _first_cpu(there) for task, there in devices.items()}
        self._parts: dict[str, Partition] = {}
        self._task = {name: task_of(node.device) for name, node in nodes.items() if node.device}
        self._frames = LoopFrames(nodes)
        self._control_loops: dict[tuple[Frame, str], ControlLoop] = {}
        self._received: dict[tuple[str, int, str], str] = {}
        self._types: dict[str, int] = {}
        self._may_be_dead = any(node.op in _SWITCHES for node in nodes.values())
        self._edge_numbers = edge_numbers
        self._crossing_control: list[tuple[node_def_pb2.NodeDef, str, list[str]]] = []
        for name, node in nodes.items():
            if node.op == "_Send" and not node.device:
                self._task[name] = self._task.get(parse_tensor_name(node.input[0])[0], "")

    def run(self) -> dict[str, Partition]:
        for name, node in self._nodes.items():
            task = self._task.get(name)
            if task is None or self._is_constant_enter(name):
                continue  # a feed, or a constant of a loop: its consumers make their own
            copy = self._part(task).graph_def.node.add()
            copy.CopyFrom(node)
            if not copy.device:
                self._finish_fetch(copy, task)
            self._connect(copy, task)
            self._take_part(node, task)
        # After all data edges are known, so that a value that goes the same way serves a control edge as well.
        for node, task, sources in self._crossing_control:
            for signal in dict.fromkeys(self._signals(sources, task)):
                node.input.append("^" + (self._visible(signal, task) if self._may_be_dead else signal))
        return self._parts

    def _connect(self, node: node_def_pb2.NodeDef, task: str) -> None:
        inputs: list[str] = []
        control: list[str] = []
        for text in node.input:
            source, index = parse_tensor_name(text)
            source_task = self._task.get(source)
            if source_task is None:
                inputs.append(tensor_name(self._feed(source, task), index))
                continue
            if self._is_constant_enter(source):
                inputs.append(tensor_name(self._copy_enter(source, task), index))
                continue
            if source_task == task:
                inputs.append(text)
                continue
            if self._is_small_constant(source):
                inputs.append(tensor_name(self._copy_constant(source, task), index))
            elif index == CONTROL:
                control.append(source)
            else:
                inputs.append(self._receive(source, index, source_task, task))
        if inputs != list(node.input):
            node.input[:] = inputs
        if control:
            self._crossing_control.append((node, task, control))

    def _receive(self, source: str, index: int, source_task: str, task: str) -> str:
        name = self._received.get((source, index, task))
        if name is None:
            node = self._nodes[source]
            enum = base_type(output_types(node)[index])
            name = self._pair(source, tensor_name(source, index), enum, node.device, source_task, task)
            self._received[source, index, task] = name
        return name

    def _signals(self, sources: list[str], task: str) -> list[str]:
        """The _Recv nodes that tell `task` that all of `sources` have run: one for each task that they are on."""
        signals: list[str] = []
        silent: dict[tuple[str, Frame], list[str]] = {}
        for source in sources:
            outputs = range(len(output_types(self._nodes[source])))
            if self._nodes[source].op in _SWITCHES:
                outputs = range(0)  # one of them is dead although the node has run
            known = (self._received.get((source, index, task)) for index in outputs)
            signal = next(filter(None, known), None)
            if signal is not None:
                signals.append(signal)
            else:
                silent.setdefault((self._task[source], self._frames.of.get(source, ())), []).append(source)
        return signals + [self._receive_token(group, there, task) for (there, _), group in silent.items()]

    def _visible(self, recv: str, task: str) -> str:
        """A node that is dead when what `recv` brings is: to a TensorFlow worker, the _Recv itself is alive then."""
        name = f"{recv}_I"
        if (recv, CONTROL, task) not in self._received:
            self._received[recv, CONTROL, task] = name
            graph_def = self._part(task).graph_def
            node = graph_def.node.add(name=name, op="Identity", device=self._host[task], input=[recv])
            set_type(node, "T", self._types[recv])
        return name

    def _receive_token(self, sources: list[str], source_task: str, task: str) -> str:
        """An empty tensor that is sent when all of `sources`, nodes of one task, have run."""
        key = ("^".join(sorted(sources)), CONTROL, task)
        name = self._received.get(key)
        if name is None:
            device = self._nodes[sources[0]].device
            edge = next(self._edge_numbers)
            token = self._part(source_task).graph_def.node.add(
                name=f"{sources[0]}_C{edge}",
                op="Const",
                device=device,
                input=["^" + source for source in sources],
            )
            enum = float32.as_datatype_enum
            set_type(token, "dtype", enum)
            token.attr["value"].tensor.dtype = enum  # type: ignore[assignment]
            token.attr["value"].tensor.tensor_shape.dim.add(size=0)
            name = self._pair(sources[0], token.name, enum, device, source_task, task, edge)
            self._received[key] = name
        return name

    def _pair(
        self, source: str, value: str, enum: int, device: str, source_task: str, task: str, edge: int | None = None
    ) -> str:
        """A _Send of `value` on `device` and its _Recv at the destination's CPU; returns the name of the _Recv."""
        edge = next(self._edge_numbers) if edge is None else edge
        label = f"edge_{edge}_{source}"
        there = self._host[task]
        send = self._part(source_task).graph_def.node.add(
            name=f"{source}_S{edge}", op="_Send", device=device, input=[value]
        )
        set_type(send, "T", enum)
        recv = self._part(task).graph_def.node.add(name=f"{source}_R{edge}", op="_Recv", device=there)
        set_type(recv, "tensor_type", enum)
        self._types[recv.name] = enum
        for node in (send, recv):
            _set_key(node, label, device, self._incarnations[device], there, client_terminated=False)
        frame = self._frames.of.get(source, ())
        if frame:
            recv.input.append("^" + self._control_loop(frame, task).trigger)
        return recv.name

    def _take_part(self, node: node_def_pb2.NodeDef, task: str) -> None:
        """Lets the task come round with the loop that `node` is in, if that is decided elsewhere."""
        frame = self._frames.runs_in(node)
        if frame and self._task.get(self._frames.conditions.get(frame, ""), task) != task:
            self._control_loop(frame, task)

    def _control_loop(self, frame: Frame, task: str) -> ControlLoop:
        loop = self._control_loops.get((frame, task))
        if loop is not None:
            return loop
        outside = self._control_loop(frame[:-1], task).trigger if frame[1:] else None
        condition = self._frames.conditions.get(frame)
        loop = self._control_loops[frame, task] = ControlLoop.add(
            self._part(task).graph_def,
            f"{'/'.join(frame)}/_control_loop_{len(self._control_loops)}",
            self._host[task],
            frame[-1],
            self._frames.parallel_iterations[frame],
            outside,
        )
        if condition is not None:
            there = self._task[condition]
            turned_by = condition if there == task else self._receive(condition, 0, there, task)
            loop.turn(self._part(task).graph_def, turned_by)
        return loop

    def _feed(self, endpoint: str, task: str) -> str:
        if (endpoint, 0, task) not in self._received:
            part = self._part(task)
            node = part.graph_def.node.add()
            node.CopyFrom(self._nodes[endpoint])
            label = node.attr["tensor_name"].s.decode()
            part.feeds[label] = self._client_key(node, label, task)
            self._received[endpoint, 0, task] = endpoint
        return endpoint

    def _finish_fetch(self, node: node_def_pb2.NodeDef, task: str) -> None:
        label = node.attr["tensor_name"].s.decode()
        self._part(task).fetches[label] = self._client_key(node, label, task)

    def _client_key(self, node: node_def_pb2.NodeDef, label: str, task: str) -> str:
        node.device = source = destination = self._host[task]
        incarnation = self._incarnations[source]
        if self._client is not None:
            if node.op == "_Recv":
                source, incarnation = self._client.name, self._client.incarnation
            else:
                destination = self._client.name
        _set_key(node, label, source, incarnation, destination, client_terminated=self._client is None)
        return make_key(source, incarnation, destination, label)

    def _is_small_constant(self, name: str) -> bool:
        node = self._nodes[name]
        return node.op == "Const" and not node.input and node.ByteSize() <= _COPIED_CONSTANT_BYTES_MAX

    def _copy_constant(self, source: str, task: str) -> str:
        if (source, 0, task) not in self._received:
            copy = self._part(task).graph_def.node.add()
            copy.CopyFrom(self._nodes[source])
            copy.device = self._host[task]
            self._received[source, 0, task] = source
        return source

    def _is_constant_enter(self, name: str) -> bool:
        node = self._nodes[name]
        return node.op == "Enter" and node.attr["is_constant"].b

    def _copy_enter(self, source: str, task: str) -> str:
        name = self._received.get((source, 0, task))
        if name is None:
            name = self._received[source, 0, task] = source
            copy = self._part(task).graph_def.node.add()
            copy.CopyFrom(self._nodes[source])
            if self._task[source] != task:
                copy.device = self._host[task]
            self._connect(copy, task)
        return name

    def _part(self, task: str) -> Partition:
        part = self._parts.get(task)
        if part is None:
            part = self._parts[task] = Partition(task)
        return part


def _set_key(
    node: node_def_pb2.NodeDef, label: str, source: str, incarnation: int, destination: str, client_terminated: bool
) -> None:
    node.attr["tensor_name"].s = label.encode()
    node.attr["send_device"].s = source.encode()
    node.attr["recv_device"].s = destination.encode()
    node.attr["send_device_incarnation"].i = incarnation - (1 << 64) if incarnation >> 63 else incarnation
    node.attr["client_terminated"].b = client_terminated


def _first_cpu(devices: Sequence[Device]) -> str:
    return next(device.name for device in devices if device.device_type == "CPU")

