"""EndpointNames: gives each _Send and _Recv of a session's partitions a name that stands for one key only.

TensorFlow's worker keeps the kernels of stateful nodes for the whole session, by the node's name: a second graph with a
_Send of the same name but another key would send where the first one did. So a name that is taken for another key gets
a number.
"""

from __future__ import annotations

import threading

from dtf.run.executor.instructions import RECVS, SENDS
from dtf.run.passes import parse_tensor_name, tensor_name
from dtf.wire.pb import graph_pb2

_ENDPOINTS = SENDS | RECVS
_KEY_ATTRS = ("tensor_name", "send_device", "send_device_incarnation", "recv_device")
_Key = tuple[str, ...]


class EndpointNames:
    """The names that one session has used at its tasks. Its lock guards them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str], _Key] = {}

    def settle(self, task: str, graph_def: graph_pb2.GraphDef) -> None:
        """Renames the endpoints of a partition, which is not registered yet, where their names are taken."""
        renamed: dict[str, str] = {}
        with self._lock:
            for node in graph_def.node:
                if node.op in _ENDPOINTS:
                    key = tuple(str(node.attr[name]) for name in _KEY_ATTRS)
                    name = self._free_name(task, node.name, key)
                    if name != node.name:
                        renamed[node.name] = node.name = name
        if renamed:
            for node in graph_def.node:
                for position, text in enumerate(node.input):
                    source, index = parse_tensor_name(text)
                    if source in renamed:
                        node.input[position] = tensor_name(renamed[source], index)

    def _free_name(self, task: str, name: str, key: _Key) -> str:
        candidate, number = name, 0
        while self._keys.setdefault((task, candidate), key) != key:
            number += 1
            candidate = f"{name}_K{number}"
        return candidate
