"""Checks of one NodeDef or FunctionDef that comes from outside: its names, its device, the kinds of its attributes.

Owns what can be said of a node by itself, with the contract of its op; edges between nodes are the business of who has
the graph (`run.passes.validate`, `build.importer`). What is refused is named in quotes, on one line and cut where it is
long (`names.shown`).

    check_node(node)                      # as a client adds it
    check_node(node, internal=True)       # as a master or the body of a function has it: names may begin with "_"
    check_attributes(node)                # against the contract, where the op is known
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dtf.wire import codec, dtypes, errors, opdef
from dtf.wire.names import is_device_name, is_node_name, is_word, shown
from dtf.wire.tensor_shape import TENSORFLOW_RANK_MAX

__all__ = ["OUTPUTS_MAX", "check_attributes", "check_function", "check_node", "refused"]

OUTPUTS_MAX = 1 << 16
"""How many tensors one argument of a node may stand for, where its inputs do not show it."""
_BASE_TYPES_MAX = 100
_ELEMENTS_MAX = (1 << 63) - 1
_DEVICE_ATTRS = frozenset({"send_device", "recv_device"})
_TEXT_ATTRS = frozenset({"tensor_name", "frame_name"}) | _DEVICE_ATTRS
_FIELDS = {
    "int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape", "tensor": "tensor",
    "func": "func",
}  # fmt: skip


def check_node(node: Any, internal: bool = False) -> None:
    """Checks the texts of a NodeDef.

    Raises:
      InvalidArgumentError: its name, its device, or the name of an attribute or of a function in one is malformed.
      NotFoundError: what stands for its op cannot be the name of one.
    """
    if not is_node_name(node.name, internal):
        raise errors.InvalidArgumentError.of(f"{shown(node.name)} is not a valid name of a node")
    if not is_word(node.op):
        raise errors.NotFoundError.of(f"Op type not registered {shown(node.op)} (node {shown(node.name)})")
    if node.device and not is_device_name(node.device):
        raise refused(node, f"Malformed device specification {shown(node.device)}")
    for name, value in node.attr.items():
        if not is_word(name):
            raise refused(node, f"Malformed name of an attribute: {shown(name)}")
        kind = value.WhichOneof("value")
        if kind == "func":
            _check_reference(node, value.func)
        elif kind == "list":
            for each in value.list.func:
                _check_reference(node, each)
            if name == "_class":
                for each in value.list.s:
                    _check_text(node, name, each)
        elif kind == "s" and name in _TEXT_ATTRS:
            _check_text(node, name, value.s)


def check_function(function: Any) -> None:
    """Checks the texts of a FunctionDef: its name, its arguments and the nodes of its body.

    Raises:
      InvalidArgumentError, NotFoundError: one of them is malformed; see `check_node`.
    """
    signature = function.signature
    if not is_word(signature.name):
        raise errors.InvalidArgumentError.of(f"Malformed name of a function: {shown(signature.name)}")
    for argument in (*signature.input_arg, *signature.output_arg):
        if not is_node_name(argument.name, internal=True):
            raise errors.InvalidArgumentError.of(
                f"Function {shown(signature.name)}: Malformed name of an argument: {shown(argument.name)}"
            )
    for attr in signature.attr:
        if not is_word(attr.name):
            raise errors.InvalidArgumentError.of(
                f"Function {shown(signature.name)}: Malformed name of an attribute: {shown(attr.name)}"
            )
    for node in function.node_def:
        check_node(node, internal=True)


def check_attributes(node: Any, may_lack_values: bool = False) -> dict[str, Any]:
    """Checks the attributes of a NodeDef, whose op is known, against the op's contract; missing ones are not sought.

    `may_lack_values`: an attribute without a value stands for its default. That is what a look at an attribute that a
    message does not have leaves behind.

    Returns:
      the Python values of attributes that the contract does not have, which are kept: to check one is to read it.

    Raises:
      InvalidArgumentError: one is of another kind than declared, or has a value that is not allowed.
    """
    surplus: dict[str, Any] = {}
    expected = _expected(node.op)
    for name, value in node.attr.items():
        want = expected.get(name)
        if want is None:
            surplus[name] = _surplus_value(node, name, value)
        else:
            kind = value.WhichOneof("value")
            if kind == "type" and value.type in want.good_types:
                continue
            if kind is None and want.attr.has_default and (may_lack_values or want.field == "list"):
                continue
            refusal = _refusal(want, value, kind, len(node.input))
            if refusal is not None:
                raise refused(node, refusal)
            if kind == "type":
                want.good_types.add(value.type)
    return surplus


def _surplus_value(node: Any, name: str, value: Any) -> Any:
    try:
        return codec.attr_to_python(value)
    except (TypeError, ValueError) as error:
        raise refused(node, f"Attr '{name}' has a value that cannot be read: {error}") from None


def refused(node: Any, message: str) -> errors.InvalidArgumentError:
    """The error for a node, named in TensorFlow's way; its name has been checked."""
    return errors.InvalidArgumentError(node, None, f"{message}\n\t [[{{{{node {node.name}}}}}]]")


class _Expected(NamedTuple):
    """What an attribute must be: the field of AttrValue, and of its list; whether the contract limits its values,
    whether it is a number of tensors, and the types that have been found good.
    """

    attr: opdef.AttrDef
    field: str
    element: str
    is_limited: bool
    is_number: bool
    good_types: set[int]


@functools.cache
def _expected(op: str) -> Mapping[str, _Expected]:
    contract = opdef.get(op)
    numbers = {argument.number_attr for argument in (*contract.inputs, *contract.outputs)}
    found = {}
    for attr in contract.attrs:
        is_list = attr.type.startswith("list(")
        element = _FIELDS[attr.type[5:-1] if is_list else attr.type]
        is_limited = attr.allowed is not None or attr.minimum is not None
        field = "list" if is_list else element
        found[attr.name] = _Expected(attr, field, element, is_limited, attr.name in numbers, set())
    return found


def _refusal(want: _Expected, value: Any, kind: str | None, input_count: int) -> str | None:
    attr, field, element, is_limited, is_number, _ = want
    if kind != field:
        return f"Attr '{attr.name}' must be of type {attr.type}, but its value is {_kind_words(value, kind)}"
    if field == "list":
        if any(other.name != element for other, _ in value.list.ListFields()):
            return f"Attr '{attr.name}' must be of type {attr.type}, but its value is {_kind_words(value, kind)}"
        if element in _ELEMENT_CHECKS:
            for each in getattr(value.list, element):
                refusal = _ELEMENT_CHECKS[element](each)
                if refusal is not None:
                    return f"Attr '{attr.name}' {refusal}"
    elif field in _ELEMENT_CHECKS:
        refusal = _ELEMENT_CHECKS[field](getattr(value, field))
        if refusal is not None:
            return f"Attr '{attr.name}' {refusal}"
    if is_number and not 0 <= value.i <= max(OUTPUTS_MAX, input_count):
        return f"Attr '{attr.name}' is a number of tensors, but its value is {value.i}"
    return attr.refusal(codec.attr_to_python(value)) if is_limited else None


@functools.lru_cache(maxsize=256)
def _type_refusal(enum: int) -> str | None:
    if 0 < enum <= _BASE_TYPES_MAX:
        try:
            dtypes.as_dtype(enum)
            return None
        except TypeError:
            pass
    return f"has the invalid dtype {enum}"


def _shape_refusal(shape: Any) -> str | None:
    sizes = [dim.size for dim in shape.dim]
    if len(sizes) > TENSORFLOW_RANK_MAX:
        return f"is a shape of {len(sizes)} dimensions; at most {TENSORFLOW_RANK_MAX} are possible"
    if any(size < -1 for size in sizes):
        return f"is a shape with the negative size {min(sizes)}"
    if math.prod(size for size in sizes if size > 0) > _ELEMENTS_MAX:
        return "is a shape of more than 2**63 - 1 elements"
    return None


def _tensor_refusal(tensor: Any) -> str | None:
    if any(dim.size < 0 for dim in tensor.tensor_shape.dim):
        return "is a tensor with a negative size"
    return _type_refusal(tensor.dtype) or _shape_refusal(tensor.tensor_shape)


_ELEMENT_CHECKS: Mapping[str, Any] = {
    "type": _type_refusal, "shape": _shape_refusal, "tensor": _tensor_refusal,
}  # fmt: skip


def _kind_words(value: Any, kind: str | None) -> str:
    if kind is None:
        return "missing"
    words = {field: name for name, field in _FIELDS.items()}
    if kind != "list":
        return f"of type {words.get(kind, kind)}"
    return f"of type list({', '.join(words.get(field.name, field.name) for field, _ in value.list.ListFields())})"


def _check_reference(node: Any, reference: Any) -> None:
    """A NameAttrList: the name of a function, and attributes, which may name further functions."""
    pending = [reference]
    while pending:
        function = pending.pop()
        if function.name and not is_word(function.name):  # "" where there is no function
            raise refused(node, f"Malformed name of a function: {shown(function.name)}")
        for name, value in function.attr.items():
            if not is_word(name):
                raise refused(node, f"Malformed name of an attribute: {shown(name)}")
            kind = value.WhichOneof("value")
            if kind == "func":
                pending.append(value.func)
            elif kind == "list":
                pending.extend(value.list.func)


def _check_text(node: Any, name: str, value: bytes) -> None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise refused(node, f"Attr '{name}' is not UTF-8: {shown(value)}") from None
    if name in _DEVICE_ATTRS and not is_device_name(text):
        raise refused(node, f"Malformed device specification {shown(text)} in attr '{name}'")
