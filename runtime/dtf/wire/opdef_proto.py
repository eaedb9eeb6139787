"""Op contracts as OpDef messages, as MetaGraphDefs carry them for readers that know other versions of the ops.

Owns the message form; the contracts are `opdef`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from dtf.wire import opdef
from dtf.wire.codec import python_to_attr
from dtf.wire.pb import op_def_pb2


def op_list(names: Iterable[str]) -> op_def_pb2.OpList:
    """The contracts of ops as one message, sorted by name; ops without a contract here are left out."""
    return op_def_pb2.OpList(op=[op_def(opdef.get(name)) for name in sorted(set(names)) if opdef.exists(name)])


def op_def(contract: opdef.OpDef) -> op_def_pb2.OpDef:
    """One contract as a message."""
    message = op_def_pb2.OpDef(name=contract.name)
    for arguments, field in ((contract.inputs, message.input_arg), (contract.outputs, message.output_arg)):
        for argument in arguments:
            made = field.add(name=argument.name, is_ref=argument.is_ref)
            if argument.type is not None:
                made.type = cast(Any, argument.type.as_datatype_enum)
            made.type_attr = argument.type_attr or ""
            made.number_attr = argument.number_attr or ""
            made.type_list_attr = argument.type_list_attr or ""
    for attr in contract.attrs:
        described = message.attr.add(name=attr.name, type=attr.type)
        if attr.has_default:
            described.default_value.CopyFrom(python_to_attr(attr.default, attr.type))
        if attr.minimum is not None:
            described.has_minimum, described.minimum = True, attr.minimum
        if attr.allowed is not None:
            described.allowed_values.CopyFrom(_list_of(attr.allowed, attr.type))
    message.is_stateful = contract.is_stateful
    message.is_commutative = contract.is_commutative
    message.is_aggregate = contract.is_aggregate
    message.allows_uninitialized_input = contract.allows_uninitialized_input
    return message


def _list_of(values: Iterable[Any], kind: str) -> Any:
    element = kind if not kind.startswith("list(") else kind[5:-1]
    return python_to_attr(list(values), f"list({element})")
