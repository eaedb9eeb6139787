"""Timeline converts a step's trace (RunMetadata) to the format of chrome://tracing and Perfetto.

Owns the events. Each device of each task is a process whose ops are drawn in rows. Arrows lead from the op that makes
a tensor to its users, also between tasks. A curve shows the memory of live outputs. Collects nothing: the runtime does
so during the step, if its RunOptions request a FULL_TRACE.

    metadata = tf.RunMetadata()
    session.run(train_op, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    with open("timeline.json", "w") as file:
        file.write(Timeline(metadata.step_stats).generate_chrome_trace_format())

Times are from each task's own clock, in microseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AllocationMaximum", "StepStatsAnalysis", "Timeline"]

_SEND_OPS = ("_Send", "_HostSend")
_RECEIVE_OPS = ("_Recv", "_HostRecv")


@dataclass(frozen=True)
class AllocationMaximum:
    """The most memory that live outputs of one allocator used: when (microseconds), bytes, and names of tensors."""

    timestamp: int
    num_bytes: int
    tensors: frozenset[str]


@dataclass(frozen=True)
class ChromeTrace:
    """The events of a trace."""

    events: list[dict[str, Any]]

    def format_to_string(self, pretty: bool = False) -> str:
        """The trace as JSON; with `pretty` one value a line."""
        return json.dumps({"traceEvents": self.events}, indent=4 if pretty else None)


@dataclass(frozen=True)
class StepStatsAnalysis:
    """A trace, and the memory that each allocator used at most, by the allocator's name."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]


class Timeline:
    """The trace of one step.

    Args:
      step_stats: a StepStats message, dtf's or TensorFlow's.
      graph: a Graph whose ops supply inputs that the message does not name.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._devices = [_Device(number, stats.device) for number, stats in enumerate(step_stats.dev_stats)]
        for device, stats in zip(self._devices, step_stats.dev_stats, strict=True):
            device.slices = [_slice(device, node, graph) for node in stats.node_stats]
            device.slices.sort(key=lambda each: each.start)
            _put_in_rows(device.slices)

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON.

        Args:
          show_dataflow: whether to draw an arrow for each tensor.
          show_memory: whether to draw the memory of outputs that are still in use.
          op_time: accepted for compatibility; an op is drawn from its start to its end, as with
              "schedule".
        """
        return json.dumps({"traceEvents": self._events(show_dataflow, show_memory)}, indent=1)

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """The trace and the memory of each allocator. Arguments as in `generate_chrome_trace_format`."""
        return StepStatsAnalysis(ChromeTrace(self._events(show_dataflow, show_memory)), self._maximums())

    def _events(self, show_dataflow: bool, show_memory: bool) -> list[dict[str, Any]]:
        events = list(self._ops())
        if show_dataflow:
            events += self._arrows()
        if show_memory:
            events += self._memory()
        return events

    def _maximums(self) -> dict[str, AllocationMaximum]:
        changes: dict[str, list[tuple[int, int, str]]] = {}
        for device in self._devices:
            last_use = _last_uses(device.slices)
            for each in device.slices:
                if each.bytes:
                    of_allocator = changes.setdefault(each.allocator, [])
                    of_allocator += [
                        (each.end, each.bytes, each.name),
                        (last_use[each.name] + 1, -each.bytes, each.name),
                    ]
        return {allocator: _maximum(sorted(found)) for allocator, found in changes.items()}

    def _ops(self) -> Iterator[dict[str, Any]]:
        for device in self._devices:
            name = {"name": f"{device.name} Compute"}
            yield {"ph": "M", "name": "process_name", "pid": device.number, "args": name}
            yield {"ph": "M", "name": "process_sort_index", "pid": device.number, "args": {"sort_index": device.number}}
            for each in device.slices:
                arguments = {"name": each.name, "op": each.op}
                arguments |= {f"input{number}": name for number, name in enumerate(each.inputs)}
                if each.edge is not None:
                    arguments["tensor"] = str(each.edge)
                yield {
                    "ph": "X", "cat": "Op", "name": each.op, "pid": device.number, "tid": each.row, "ts": each.start,
                    "dur": each.end - each.start, "args": arguments,
                }  # fmt: skip

    def _arrows(self) -> Iterator[dict[str, Any]]:
        for number, (source, sink, tensor) in enumerate(self._flows()):
            # An arrow begins and ends within the slices that it joins.
            begin = max(source.start, source.end - 1)
            end = sink.end if sink.op in _RECEIVE_OPS else sink.start
            for phase, place, at in (("s", source, begin), ("t", sink, max(begin, end))):
                yield {
                    "ph": phase, "cat": "DataFlow", "name": tensor, "id": number, "pid": place.device.number,
                    "tid": place.row, "ts": at,
                }  # fmt: skip

    def _flows(self) -> Iterator[tuple[_Slice, _Slice, str]]:
        """(where a tensor is made, where it is used, its name), within devices and between them."""
        sent = {
            each.edge: each
            for device in self._devices
            for each in device.slices
            if each.edge is not None and each.op in _SEND_OPS
        }
        for device in self._devices:
            makers = {each.name: each for each in device.slices}
            for each in device.slices:
                for name in each.inputs:
                    maker = makers.get(_node_of(name))
                    if maker is not None and maker is not each:
                        yield maker, each, name
                if each.op in _RECEIVE_OPS and each.edge in sent:
                    yield sent[each.edge], each, str(each.edge)

    def _memory(self) -> Iterator[dict[str, Any]]:
        for device in self._devices:
            last_use = _last_uses(device.slices)
            changes: dict[int, int] = {}
            for each in device.slices:
                if each.bytes:
                    changes[each.end] = changes.get(each.end, 0) + each.bytes
                    changes[last_use[each.name]] = changes.get(last_use[each.name], 0) - each.bytes
            used = 0
            for at in sorted(changes):
                used += changes[at]
                yield {
                    "ph": "C", "cat": "Memory", "name": "bytes of outputs", "pid": device.number, "tid": 0, "ts": at,
                    "args": {"bytes": used},
                }  # fmt: skip


@dataclass(frozen=True)
class _Edge:
    """A tensor that goes from one device to another."""

    tensor: str
    source: str
    destination: str

    def __str__(self) -> str:
        return f"{self.tensor} from {self.source} to {self.destination}"


@dataclass(eq=False)
class _Device:
    number: int
    name: str
    slices: list[_Slice] = field(default_factory=list)


@dataclass(eq=False)
class _Slice:
    """One op as it ran; times in microseconds."""

    device: _Device
    name: str
    op: str
    inputs: list[str]
    edge: _Edge | None
    start: int
    end: int
    bytes: int
    allocator: str = ""
    row: int = 0


def _last_uses(slices: list[_Slice]) -> dict[str, int]:
    """Until when each node's outputs are in use."""
    last_use = {each.name: each.end for each in slices}
    for each in slices:
        for name in map(_node_of, each.inputs):
            if name in last_use:
                last_use[name] = max(last_use[name], each.end)
    return last_use


def _maximum(changes: list[tuple[int, int, str]]) -> AllocationMaximum:
    """The largest sum of `changes`: (time, bytes that come or go, node)."""
    used = 0
    live: set[str] = set()
    best = AllocationMaximum(0, 0, frozenset())
    for at, size, name in changes:
        used += size
        if size > 0:
            live.add(name)
        else:
            live.discard(name)
        if used > best.num_bytes:
            best = AllocationMaximum(at, used, frozenset(live))
    return best


def _slice(device: _Device, node: Any, graph: Any) -> _Slice:
    label = _LABEL.fullmatch(node.timeline_label)
    op = label["op"] if label else node.timeline_label or node.node_name
    inputs = [name.lstrip("^") for name in label["inputs"].split(", ") if name] if label and label["inputs"] else []
    if not inputs and graph is not None:
        inputs = _inputs_in(graph, node.node_name)
    edge = _Edge(label["tensor"], label["source"], label["destination"]) if label and label["tensor"] else None
    made = sum(output.tensor_description.allocation_description.requested_bytes for output in node.output)
    allocators = [output.tensor_description.allocation_description.allocator_name for output in node.output]
    end = node.all_start_micros + max(1, node.all_end_rel_micros)
    return _Slice(
        device, node.node_name, op, inputs, edge, node.all_start_micros, end, made, next(iter(allocators), "") or "cpu"
    )


def _inputs_in(graph: Any, name: str) -> list[str]:
    try:
        return [tensor.name for tensor in graph.get_operation_by_name(name).inputs]
    except (KeyError, ValueError):
        return []


def _put_in_rows(slices: list[_Slice]) -> None:
    """Gives each the first row that is free when it starts."""
    free_from: list[int] = []
    for each in slices:
        row = next((row for row, at in enumerate(free_from) if at <= each.start), len(free_from))
        free_from[row : row + 1] = [each.end]
        each.row = row


def _node_of(tensor: str) -> str:
    return tensor.partition(":")[0]


_LABEL = re.compile(
    r"(?P<name>\S+) = (?P<op>[\w>]+)(\((?P<inputs>.*?)\))?"
    r"( (?P<tensor>\S+) from (?P<source>\S+) to (?P<destination>\S+))?"
)
