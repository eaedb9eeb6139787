"""What turns a client's graph into the parts that tasks run: prune -> place -> optimize -> partition.

Each pass is a pure function. Between passes a graph is a `Nodes`: NodeDefs by name, in the order in which they were
added. NodeDefs are shared between passes and never changed in place; a pass that changes one copies it. (GraphDef
messages would copy every constant at every pass; only `partition` builds them.)

This module owns the few words that all passes share: how a NodeDef spells its inputs and which dtypes run along its
edges. It does not know devices, sessions or tasks.

    needed = prune(nodes, feeds=["x:0"], fetches=["y:0"], targets=[])
    placed = place(needed, ...)
    parts  = partition(optimize(placed), ...)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from dtf.run.value_types import AttrValue
from dtf.wire import dtypes, errors, opdef
from dtf.wire.names import CONTROL, parse_tensor_name, tensor_name
from dtf.wire.pb import node_def_pb2

__all__ = [
    "CONTROL", "Nodes", "NodesView", "base_type", "input_types", "is_handle", "op_def", "output_types",
    "parse_tensor_name", "set_type", "tensor_name", "types_of", "with_inputs",
]  # fmt: skip

Nodes = dict[str, node_def_pb2.NodeDef]
NodesView = Mapping[str, node_def_pb2.NodeDef]

_REFERENCE = 100  # a reference dtype's enum is its base dtype's plus this
_RESOURCE = dtypes.resource.as_datatype_enum


def output_types(node: node_def_pb2.NodeDef) -> list[int]:
    """The DataType enum of each output; reference outputs have 100 added.

    Raises:
      NotFoundError: the op type is not known here.
    """
    return _types(node, op_def(node).outputs)


def input_types(node: node_def_pb2.NodeDef) -> list[int]:
    """The DataType enum of each data input as the op declares it; reference inputs have 100 added."""
    return _types(node, op_def(node).inputs)


def is_handle(enum: int) -> bool:
    """Whether values of this dtype stand for state that lives on one device: a reference or a resource."""
    return enum > _REFERENCE or enum == _RESOURCE


def base_type(enum: int) -> int:
    """The DataType enum without its reference mark."""
    return enum - _REFERENCE if enum > _REFERENCE else enum


def op_def(node: node_def_pb2.NodeDef) -> opdef.OpDef:
    """The contract of the node's op.

    Raises:
      NotFoundError: the op type is not known here.
    """
    try:
        return opdef.get(node.op)
    except KeyError as error:
        raise errors.NotFoundError(node, None, f"{error.args[0]} (node {node.name})") from None


def set_type(node: node_def_pb2.NodeDef, attr: str, enum: int) -> None:
    """Sets a type attribute to a DataType enum."""
    node.attr[attr].type = enum  # type: ignore[assignment]


def types_of(node: node_def_pb2.NodeDef, argument: opdef.ArgDef) -> list[int]:
    """The DataType enum of each tensor of one argument of a node; reference ones have 100 added."""
    mark = _REFERENCE if argument.is_ref else 0
    if argument.type_list_attr:
        name = argument.type_list_attr
        listed = node.attr[name].list.type if name in node.attr else _default(node.op, name)
        return [enum + mark for enum in listed]
    enum = _type(node, argument)
    number = argument.number_attr
    count = 1 if not number else node.attr[number].i if number in node.attr else _default(node.op, number)
    return [enum + mark] * count


def _types(node: node_def_pb2.NodeDef, arguments: tuple[opdef.ArgDef, ...]) -> list[int]:
    types: list[int] = []
    for argument in arguments:
        types += types_of(node, argument)
    return types


def _type(node: node_def_pb2.NodeDef, argument: opdef.ArgDef) -> int:
    if argument.type is not None:
        return argument.type.as_datatype_enum
    name = argument.type_attr
    assert name is not None
    return node.attr[name].type if name in node.attr else _default(node.op, name)


def with_inputs(node: node_def_pb2.NodeDef, inputs: list[str]) -> node_def_pb2.NodeDef:
    """The node with these inputs: the node itself where it has them, else a copy."""
    if inputs == list(node.input):
        return node
    changed = node_def_pb2.NodeDef()
    changed.CopyFrom(node)
    changed.input[:] = inputs
    return changed


@functools.cache
def _default(op: str, name: str) -> AttrValue:
    """The default of an attribute of dtypes or of a number, which a model file may leave out; nothing without one."""
    attr = next(each for each in opdef.get(op).attrs if each.name == name)
    if attr.type == "type":
        return attr.default.as_datatype_enum if attr.has_default else 0
    if attr.type == "list(type)":
        return tuple(each.as_datatype_enum for each in attr.default) if attr.has_default else ()
    return attr.default if attr.has_default else 0
