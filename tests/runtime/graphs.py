"""GraphDefs written by hand, for tests of what runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.wire import codec, dtypes, opdef
from dtf.wire.pb import graph_pb2
from dtf.wire.tensor_shape import TensorShape


class GraphBuilder:
    """Adds nodes to `graph_def`; each method returns the node's name, to be the input of others.

    >>> g = GraphBuilder()
    >>> x = g.const(np.float32(1))
    >>> y = g.node("Neg", x, T=dtypes.float32)
    """

    def __init__(self, device: str = "") -> None:
        self.graph_def = graph_pb2.GraphDef()
        self._device = device

    def node(self, op: str, *inputs: str, name: str = "", **attrs: Any) -> str:
        node = self.graph_def.node.add(name=name or f"{op}_{len(self.graph_def.node)}", op=op, input=inputs)
        node.device = self._device
        types = opdef.get(op).attr_by_name
        for key, value in attrs.items():
            node.attr[key].CopyFrom(codec.python_to_attr(value, types[key].type))
        return node.name

    def const(self, value: Any, name: str = "") -> str:
        array = np.asarray(value)
        return self.node("Const", name=name, dtype=dtypes.as_dtype(array.dtype), value=array)

    def variable(self, name: str, shape: list[int], dtype: Any = dtypes.float32) -> str:
        return self.node("VariableV2", name=name, dtype=dtype, shape=TensorShape(shape))

    def send(self, value: str, key: str, dtype: Any = dtypes.float32, to: str = "", **attrs: Any) -> str:
        return self._communicate("_Send", value, key=key, peer=to, T=dtype, **attrs)

    def recv(
        self, key: str, dtype: Any = dtypes.float32, source: str = "", controls: tuple[str, ...] = (), **attrs: Any
    ) -> str:
        return self._communicate("_Recv", *controls, key=key, peer=source, tensor_type=dtype, **attrs)

    def _communicate(self, op: str, *inputs: str, key: str, peer: str, incarnation: int = 1, **attrs: Any) -> str:
        here = self._device or "/job:localhost/replica:0/task:0/device:CPU:0"
        send_device, recv_device = (here, peer or here) if op == "_Send" else (peer or here, here)
        return self.node(
            op,
            *inputs,
            tensor_name=key.encode(),
            send_device=send_device.encode(),
            recv_device=recv_device.encode(),
            send_device_incarnation=incarnation,
            **attrs,
        )
