"""Which nodes must share a device: disjoint groups, and the state that a node uses.

Owns no decision; `place` and `device_types` decide where a group is.
"""

from __future__ import annotations

from dtf.run.passes import input_types, is_handle, parse_tensor_name
from dtf.wire import errors
from dtf.wire.pb import node_def_pb2

__all__ = ["Groups", "handle_sources"]


class Groups:
    """Disjoint sets of names. The leader of a joined set is the leader of the first argument's."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def add(self, name: str) -> None:
        self._parent.setdefault(name, name)

    def has(self, name: str) -> bool:
        """Whether a name is in a group."""
        return name in self._parent

    def leader(self, name: str) -> str:
        parent = self._parent
        root = name
        while parent[root] != root:
            root = parent[root]
        while parent[name] != root:
            parent[name], name = root, parent[name]
        return root

    def join(self, first: str, second: str) -> None:
        self.add(first)
        self.add(second)
        self._parent[self.leader(second)] = self.leader(first)


def handle_sources(node: node_def_pb2.NodeDef) -> list[str]:
    """The producers of the references and resources that a node takes."""
    if not node.input:
        return []
    try:
        types = input_types(node)
    except errors.NotFoundError:
        return []  # an op that only a foreign worker knows, or that no step may need
    return [
        parse_tensor_name(text)[0] for text, enum in zip(node.input, types, strict=False) if is_handle(enum)
    ]
