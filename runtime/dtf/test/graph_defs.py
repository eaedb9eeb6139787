"""`tf.test.assert_equal_graph_def`: whether two GraphDefs have the same nodes, in any order."""

from __future__ import annotations

from typing import Any

from dtf.wire.pb import graph_pb2

__all__ = ["assert_equal_graph_def"]

_TEMPORARY_NAME = "_temp"


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Compares nodes by name; ignores versions, and the order of nodes and control inputs.

    Args:
      checkpoint_v2: whether the names of temporary checkpoint files may differ.
      hash_table_shared_name: whether the shared names of lookup tables may differ.

    Raises:
      TypeError: an argument is no GraphDef.
      AssertionError: they differ; the message names the first node that does.
    """
    for name, graph_def in (("actual", actual), ("expected", expected)):
        if not isinstance(graph_def, graph_pb2.GraphDef):
            raise TypeError(f"Expected {name} to be a GraphDef, got {type(graph_def).__name__}")
    nodes = [
        {node.name: _comparable(node, checkpoint_v2, hash_table_shared_name) for node in graph_def.node}
        for graph_def in (actual, expected)
    ]
    for more, where in ((nodes[0].keys() - nodes[1].keys(), "actual"), (nodes[1].keys() - nodes[0].keys(), "expected")):
        if more:
            raise AssertionError(f"Only the {where} graph has the nodes {sorted(more)}")
    for name, found in nodes[0].items():
        wanted = nodes[1][name]
        if found != wanted:
            raise AssertionError(f"The graphs differ in node {name!r}:\nactual:\n{found}\nexpected:\n{wanted}")


def _comparable(node: Any, checkpoint_v2: bool, hash_table_shared_name: bool) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    data = [each for each in node.input if not each.startswith("^")]
    del copy.input[:]
    copy.input.extend([*data, *sorted(each for each in node.input if each.startswith("^"))])
    if checkpoint_v2 and node.op == "Const" and _TEMPORARY_NAME in str(node.attr["value"]):
        del copy.attr["value"]
    if hash_table_shared_name and "HashTable" in node.op:
        del copy.attr["shared_name"]
    return copy
