"""Costs of the nodes of some steps of a session, as `GraphOptions.build_cost_model` asks for them.

Owns which steps are measured, and the CostGraphDef made of a step's trace and partitions. The session runs such a step
with a full trace.

Source: CostGraphDef and GraphOptions in TensorFlow's protocol buffers (cost_graph.proto, config.proto).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.wire.names import parse_tensor_name
from dtf.wire.pb import config_pb2, cost_graph_pb2

__all__ = ["CostModel"]


class CostModel:
    """Counts the steps of each signature of a session.

    Args:
      options: the GraphOptions of the session.
    """

    def __init__(self, options: config_pb2.GraphOptions) -> None:
        self._every = int(options.build_cost_model)
        self._after = int(options.build_cost_model_after)
        self._steps: dict[Sequence[str], int] = {}

    def is_due(self, signature: Sequence[str]) -> bool:
        """Counts one step; whether it is to be measured.

        Args:
          signature: the names of the fetches and targets.
        """
        if self._every <= 0:
            return False
        count = self._steps.get(signature, 0)
        self._steps[signature] = count + 1
        measured = count - self._after
        return measured >= 0 and (measured + 1) % self._every == 0

    @staticmethod
    def measured(options: Any) -> config_pb2.RunOptions:
        """The options of a step that is measured, from the caller's own."""
        full = config_pb2.RunOptions()
        if options is not None:
            full.CopyFrom(options)
        full.trace_level = config_pb2.RunOptions.FULL_TRACE
        full.output_partition_graphs = True
        return full

    @staticmethod
    def add_costs(metadata: config_pb2.RunMetadata, options: Any) -> None:
        """Gives the metadata of a measured step its costs, and removes the parts that its caller did not ask for."""
        metadata.cost_graph.CopyFrom(_cost_graph(metadata))
        if options is None or options.trace_level == config_pb2.RunOptions.NO_TRACE:
            metadata.ClearField("step_stats")
        if options is None or not options.output_partition_graphs:
            metadata.ClearField("partition_graphs")


def _cost_graph(metadata: config_pb2.RunMetadata) -> cost_graph_pb2.CostGraphDef:
    stats = {node.node_name: node for device in metadata.step_stats.dev_stats for node in device.node_stats}
    graph = cost_graph_pb2.CostGraphDef()
    for partition in metadata.partition_graphs:
        numbers = {node.name: len(graph.node) + position for position, node in enumerate(partition.node)}
        for node in partition.node:
            cost = graph.node.add(name=node.name, device=node.device, id=numbers[node.name])
            for text in node.input:
                source, port = parse_tensor_name(text)
                if source not in numbers:
                    continue
                if port < 0:
                    cost.control_input.append(numbers[source])
                else:
                    cost.input_info.add(preceding_node=numbers[source], preceding_port=port)
            measured = stats.get(node.name)
            if measured is None:
                cost.inaccurate = True
                continue
            cost.compute_cost = cost.compute_time = measured.op_end_rel_micros - measured.op_start_rel_micros
            for output in measured.output:
                description = output.tensor_description
                info = cost.output_info.add(size=description.allocation_description.requested_bytes)
                info.alias_input_port = -1
                info.dtype = description.dtype
                info.shape.CopyFrom(description.shape)
    return graph
