"""StepStats: when each node of a traced step ran, and what it made.

Owns the collecting and the message that RunMetadata carries. Nobody collects unless a step asks for a trace.
"""

from __future__ import annotations

import numpy as np

from dtf.run.devices.backends import CPU, device_type_of
from dtf.run.interfaces import Value
from dtf.wire import dtypes
from dtf.wire.pb import graph_pb2, node_def_pb2, step_stats_pb2

__all__ = ["StepStatsCollector"]


class StepStatsCollector:
    """A `step.Collector`. `record` only appends, which threads may do at the same time; `step_stats` makes the
    message.
    """

    def __init__(self, device_name: str) -> None:
        self._device_name = device_name
        self._records: list[tuple[str, str, int, int, list[tuple[int, Value, tuple[int, ...], int]]]] = []

    def record(self, node_name: str, op: str, start_ns: int, end_ns: int, outputs: tuple[Value, ...]) -> None:
        """See `step.Collector`. Keeps dtypes, shapes and sizes, not the values."""
        described = [
            (slot, value.dtype, np.shape(value), value.nbytes)
            for slot, value in enumerate(outputs)
            if isinstance(value, (np.ndarray, np.generic))
        ]
        self._records.append((node_name, op, start_ns, end_ns, described))

    def step_stats(self, graph_def: graph_pb2.GraphDef | None = None) -> step_stats_pb2.StepStats:
        """All records so far, in the order in which the nodes started; times in microseconds of the wall clock.

        The label of a node is "name = Op(inputs)", and for what goes between devices also " tensor from A to B", as
        far as `graph_def`, the partition, tells.
        """
        stats = step_stats_pb2.StepStats()
        nodes = {node.name: node for node in graph_def.node} if graph_def is not None else {}
        devices = {self._device_name: stats.dev_stats.add(device=self._device_name)}
        for name, op, start_ns, end_ns, outputs in sorted(self._records, key=lambda record: record[2]):
            micros = max(1, (end_ns - start_ns) // 1000)
            where = nodes[name].device if name in nodes else ""
            kind = device_type_of(where)
            if kind == CPU and "device:CPU:" not in where:
                where = self._device_name
            if where not in devices:
                devices[where] = stats.dev_stats.add(device=where)
            node = devices[where].node_stats.add(
                node_name=name,
                all_start_micros=start_ns // 1000,
                op_end_rel_micros=micros,
                all_end_rel_micros=micros,
                timeline_label=_label(name, op, nodes.get(name)),
            )
            for slot, dtype, shape, size in outputs:
                output = node.output.add(slot=slot)
                output.tensor_description.dtype = dtypes.as_dtype(dtype).as_datatype_enum  # type: ignore[assignment]
                for extent in shape:
                    output.tensor_description.shape.dim.add(size=extent)
                allocation = output.tensor_description.allocation_description
                allocation.requested_bytes = size
                allocation.allocator_name = kind.lower()
        return stats


def _label(name: str, op: str, node: node_def_pb2.NodeDef | None) -> str:
    if node is None:
        return f"{name} = {op}()"
    label = f"{name} = {op}({', '.join(node.input)})"
    if "send_device" not in node.attr:
        return label
    tensor, source, destination = (
        node.attr[key].s.decode() for key in ("tensor_name", "send_device", "recv_device")
    )
    return f"{label} {tensor} from {source} to {destination}"
