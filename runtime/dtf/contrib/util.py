"""tf.contrib.util: tensors as arrays and messages, and constant values."""

from __future__ import annotations

from dtf.build.constant_value import constant_value
from dtf.wire.codec import make_ndarray, make_tensor_proto

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto", "ops_used_by_graph_def", "stripped_op_list_for_graph"]


def ops_used_by_graph_def(graph_def: object) -> set[str]:
    """The op types of a GraphDef and of its functions."""
    graph: object = graph_def
    nodes = list(graph.node)  # type: ignore[attr-defined]
    for function in graph.library.function:  # type: ignore[attr-defined]
        nodes += function.node_def
    return {node.op for node in nodes}


def stripped_op_list_for_graph(graph_def: object) -> list[str]:
    """The op types of a GraphDef, sorted."""
    return sorted(ops_used_by_graph_def(graph_def))
