"""Inserts copies where a value is wanted in another memory than it was made in: the host's, or another device's.

The last pass: a task makes it of the partition that a master gave it, for TensorFlow's masters cut graphs by tasks too.
Each value goes to each memory once, however many consumers it has there. References, resources, strings and variants
are objects of the runtime, which are not copied; the value that a reference stands for is.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtf.run import kernels
from dtf.run.devices.backends import CPU, device_type_of, has_accelerators
from dtf.run.devices.host_memory import (
    DEVICE,
    EVERYTHING,
    HOST,
    OBJECT,
    argument_names,
    is_computed_there,
    is_host_dtype,
    memories,
)  # fmt: skip
from dtf.run.passes import CONTROL, base_type, op_def, parse_tensor_name, set_type, tensor_name, types_of
from dtf.run.passes.device_types import type_attributes
from dtf.run.value_types import Library
from dtf.wire import opdef
from dtf.wire.device import task_of
from dtf.wire.functions import plain_call
from dtf.wire.pb import graph_pb2, node_def_pb2

__all__ = ["with_copies"]

_HOST = ""
_REFERENCE = 100


def with_copies(graph_def: graph_pb2.GraphDef, library: Library | None = None) -> graph_pb2.GraphDef:
    """The partition with its copies; itself where all of its nodes are on CPUs.

    Args:
      graph_def: a partition of one task, whose nodes have full device names; no name stands for the CPU.
      library: the functions that it may call, if it does not bring them itself.
    """
    if not has_accelerators() or all(device_type_of(node.device) == CPU for node in graph_def.node):
        return graph_def
    return _Copier(graph_def, library or {}).run()


class _Copier:
    def __init__(self, graph_def: graph_pb2.GraphDef, library: Library) -> None:
        functions = {function.signature.name: function for function in graph_def.library.function} | dict(library)
        self._nodes = {
            node.name: plain_call(node, functions) if node.op in functions else node for node in graph_def.node
        }
        self._result = graph_pb2.GraphDef()
        self._result.CopyFrom(graph_def)
        self._task = task_of(next(node.device for node in graph_def.node if device_type_of(node.device) != CPU))
        self._outputs: dict[str, tuple[list[int], list[str]]] = {}
        self._copies: dict[tuple[str, int, str], str] = {}

    def run(self) -> graph_pb2.GraphDef:
        for node in list(self._result.node):
            self._connect(node)
        return self._result

    def _connect(self, node: node_def_pb2.NodeDef) -> None:
        """Lets a node take its inputs from the memories where it wants them."""
        plain = self._nodes[node.name]
        types, memories_ = self._arguments(plain, op_def(plain).inputs)
        position = 0
        for at, text in enumerate(node.input):
            source, index = parse_tensor_name(text)
            if index == CONTROL or source not in self._nodes or position >= len(types):
                continue
            wanted, is_reference = memories_[position], types[position] > _REFERENCE
            position += 1
            made_types, made = self._made(source)
            if index >= len(made) or wanted == OBJECT or made[index] == OBJECT or made[index] == wanted:
                continue
            if is_reference and made_types[index] > _REFERENCE:
                continue
            node.input[at] = self._copy(source, index, made[index], wanted, base_type(made_types[index]))

    def _made(self, name: str) -> tuple[list[int], list[str]]:
        found = self._outputs.get(name)
        if found is None:
            node = self._nodes[name]
            found = self._outputs[name] = self._arguments(node, op_def(node).outputs)
        return found

    def _arguments(
        self, node: node_def_pb2.NodeDef, arguments: tuple[opdef.ArgDef, ...]
    ) -> tuple[list[int], list[str]]:
        """The DataTypes of a node's tensors, and the memories where they are: a device's name, _HOST or OBJECT."""
        types = [enum for argument in arguments for enum in types_of(node, argument)]
        device = node.device if device_type_of(node.device) != CPU else _HOST
        if device == _HOST:
            return types, [OBJECT if is_host_dtype(base_type(enum)) else _HOST for enum in types]

        def own(argument: opdef.ArgDef) -> Sequence[int]:
            return [base_type(enum) for enum in types_of(node, argument)]

        where = {HOST: _HOST, DEVICE: device, OBJECT: OBJECT}
        return types, [where[memory] for memory in memories(arguments, own, _host_arguments(node))]

    def _copy(self, source: str, index: int, here: str, there: str, enum: int) -> str:
        """The name of the node that brings an output to a memory."""
        found = self._copies.get((source, index, there))
        if found is None:
            number = len(self._copies)
            while (name := f"{source}_copy_{number}") in self._nodes:
                number += 1
            cpu = f"{self._task}/device:CPU:0"
            node = self._result.node.add(
                name=name, op="_DeviceCopy", device=there or cpu, input=[tensor_name(source, index)]
            )
            set_type(node, "T", enum)
            node.attr["source"].s, node.attr["target"].s = (here or cpu).encode(), (there or cpu).encode()
            found = self._copies[source, index, there] = name
        return found


def _host_arguments(node: node_def_pb2.NodeDef) -> frozenset[str]:
    """The names of a node's arguments that are in the host's memory, on a device beside the CPU."""
    types = type_attributes(node)
    if is_computed_there(node.op, types):
        return EVERYTHING
    for row in kernels.rows(node.op, device_type_of(node.device)):
        if row.host is not None and row.fits(types):
            return row.host
    return argument_names(node.op)
