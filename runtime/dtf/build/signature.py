"""The dtypes of an op's inputs and outputs, from its contract and known attributes.

Owns the expansion of `N*T`, `[Tlist]` and `Ref(T)`; does not convert or check values (`apply` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.opdef import ArgDef, AttrDef, OpDef

GetAttr = Callable[[str], Any]


def argument_types(args: Iterable[ArgDef], get_attr: GetAttr) -> list[DType]:
    """One dtype per tensor of `args`, lists flattened; `get_attr(name)` gives attribute values."""
    return [dtype for arg in args for dtype in types_of(arg, get_attr)]


def input_types(op_def: OpDef, get_attr: GetAttr) -> list[DType]:
    """The dtypes that the contract requires of the inputs."""
    return argument_types(op_def.inputs, get_attr)


def output_types(op_def: OpDef, get_attr: GetAttr) -> list[DType]:
    """The dtypes of the outputs."""
    return argument_types(op_def.outputs, get_attr)


def types_from_inputs(op_def: OpDef, dtypes: list[DType]) -> dict[str, DType]:
    """The type attributes that the inputs' dtypes determine; nothing if an input is a list or one is missing."""
    if any(arg.is_list for arg in op_def.inputs) or len(dtypes) != len(op_def.inputs):
        return {}
    pairs = zip(op_def.inputs, dtypes, strict=True)
    return {arg.type_attr: dtype.base_dtype for arg, dtype in pairs if arg.type_attr is not None}


def types_of(arg: ArgDef, get_attr: GetAttr) -> list[DType]:
    """The dtypes of one argument: a single one unless it is a list."""
    if arg.type_list_attr is not None:
        types = list(get_attr(arg.type_list_attr))
    else:
        one = arg.type if arg.type is not None else get_attr(str(arg.type_attr))
        types = [one] * (get_attr(arg.number_attr) if arg.number_attr is not None else 1)
    return [dtype._as_ref for dtype in types] if arg.is_ref else types


def argument_lengths(args: Iterable[ArgDef], get_attr: GetAttr) -> list[int | None]:
    """How many tensors each argument has; None for one that is not a list."""
    lengths: list[int | None] = []
    for arg in args:
        if arg.number_attr is not None:
            lengths.append(get_attr(arg.number_attr))
        elif arg.type_list_attr is not None:
            lengths.append(len(get_attr(arg.type_list_attr)))
        else:
            lengths.append(None)
    return lengths


def contract_of_function(message: Any) -> OpDef:
    """The contract of a call of a library function, from the OpDef message that is its signature."""

    def argument(arg: Any) -> ArgDef:
        return ArgDef(
            arg.name,
            type=as_dtype(arg.type) if arg.type else None,
            type_attr=arg.type_attr or None,
            number_attr=arg.number_attr or None,
            type_list_attr=arg.type_list_attr or None,
            is_ref=arg.is_ref,
        )

    return OpDef(
        message.name,
        tuple(argument(arg) for arg in message.input_arg),
        tuple(argument(arg) for arg in message.output_arg),
        tuple(AttrDef(attr.name, attr.type) for attr in message.attr),
        is_stateful=message.is_stateful,
    )
