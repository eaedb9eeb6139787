"""tensorflow.python.framework.op_def_registry: the contracts of ops as messages."""

from __future__ import annotations

from typing import Any

from dtf.wire import opdef, opdef_proto

__all__ = ["get", "get_registered_ops", "register_op_list", "sync"]


def get(name: str) -> Any:
    """The OpDef of an op, or None."""
    return opdef_proto.op_def(opdef.get(name)) if opdef.exists(name) else None


def get_registered_ops() -> dict[str, Any]:
    """Names of ops -> their OpDefs."""
    return {name: opdef_proto.op_def(opdef.get(name)) for name in opdef.names()}


def register_op_list(op_list: Any) -> None:
    """Asserts that the ops are in the table with these contracts.

    Raises:
      TypeError: not an OpList.
      ValueError: an op has another contract, or none.
    """
    from dtf.wire.pb import op_def_pb2

    if not isinstance(op_list, op_def_pb2.OpList):
        raise TypeError(f"{op_list} is {type(op_list)}, not an op_def_pb2.OpList")
    for each in op_list.op:
        known = get(each.name)
        if known is None or [arg.name for arg in known.input_arg] != [arg.name for arg in each.input_arg]:
            raise ValueError(f"Registered op_def for {each.name} ({known}) not equal to op_def to register ({each})")


def sync() -> None:
    """Does nothing: the table is always complete."""
