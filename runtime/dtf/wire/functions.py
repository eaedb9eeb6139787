"""Functions of a graph's library: from a FunctionDef and attribute values to the nodes of its body.

A body may be run as it is (`run.functions`), put in the place of its call (`run.passes.lower`), or added to a graph
under construction (`build.function_calls`). Inside of a function an input reads "argument", "argument:1" or
"node:output_name:index"; in the result, as in any GraphDef, "node:number".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dtf.wire import errors, opdef
from dtf.wire.names import shown
from dtf.wire.node_checks import OUTPUTS_MAX, check_attributes, check_function
from dtf.wire.pb import graph_pb2, node_def_pb2

__all__ = [
    "argument_types", "callees", "endless", "instantiate", "passed_on", "plain_call", "reachable", "result_types",
]  # fmt: skip

Library = Mapping[str, Any]
"""FunctionDefs by name."""

_CHOICES = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"})
_SWITCHES = frozenset({"Switch", "RefSwitch"})


def instantiate(function: Any, attrs: Mapping[str, Any], library: Library) -> Any:
    """The GraphDef, without a library, of a FunctionDef's body with _Arg and _Retval nodes.

    Attribute placeholders get their values from `attrs`.

    Raises:
      InvalidArgumentError: an attribute has no value or a wrong one, a name is malformed or comes twice, an edge leads
        nowhere.
      NotFoundError: an op that nobody declared.
    """
    check_function(function)
    result = graph_pb2.GraphDef()
    names: dict[str, str] = {}
    argument_index = 0
    for argument in function.signature.input_arg:
        for number in range(_argument_count(argument, attrs)):
            node = result.node.add(name=f"_arg_{argument.name}_{number}", op="_Arg")
            node.attr["index"].i = argument_index
            node.attr["T"].type = _argument_type(argument, attrs, number)  # type: ignore[assignment]
            names[f"{argument.name}:{number}"] = f"{node.name}:0"
            argument_index += 1
    nodes = []
    bodies: set[str] = set()
    for template in function.node_def:
        node = result.node.add()
        node.CopyFrom(template)
        for name, value in node.attr.items():
            if value.WhichOneof("value") == "placeholder":
                node.attr[name].CopyFrom(_attribute(attrs, value.placeholder))
        if node.name in bodies:
            raise errors.InvalidArgumentError.of(
                f"Function {function.signature.name} has two nodes with the name '{node.name}'"
            )
        bodies.add(node.name)
        if node.op not in library and opdef.exists(node.op):
            check_attributes(node)
        nodes.append(node)
        number = 0
        for output_name, count in _outputs(node, library):
            for position in range(count):
                names[f"{node.name}:{output_name}:{position}"] = f"{node.name}:{number}"
                number += 1
        if node.op in library:
            node.CopyFrom(plain_call(node, library))

    def resolve(text: str) -> str:
        if text.startswith("^"):
            argument = text[1:]
            if f"{argument}:0" in names:
                return f"^_arg_{argument}_0"
            if argument in bodies:
                return text
        for candidate in (text, f"{text}:0"):
            if candidate in names:
                return names[candidate]
        raise errors.InvalidArgumentError.of(f"Function {function.signature.name} has no tensor {shown(text)}")

    for node in nodes:
        for index, text in enumerate(node.input):
            node.input[index] = resolve(text)
    result_index = 0
    for argument in function.signature.output_arg:
        for number in range(_argument_count(argument, attrs)):
            text = function.ret[argument.name]
            if _argument_count(argument, attrs) > 1:
                text = f"{text.rpartition(':')[0]}:{number}"
            node = result.node.add(name=f"_retval_{argument.name}_{number}", op="_Retval", input=[resolve(text)])
            node.attr["index"].i = result_index
            node.attr["T"].type = _argument_type(argument, attrs, number)  # type: ignore[assignment]
            result_index += 1
    return result


def argument_types(function: Any, attrs: Mapping[str, Any]) -> list[int]:
    """The DataType of each tensor that a function takes. Errors as `instantiate`."""
    return _types(function.signature.input_arg, attrs)


def result_types(function: Any, attrs: Mapping[str, Any]) -> list[int]:
    """The DataType of each tensor that a function gives. Errors as `instantiate`."""
    return _types(function.signature.output_arg, attrs)


def callees(node: Any, library: Library) -> list[str]:
    """The functions that a node calls or hands to others, by the attributes that it has itself."""
    found = [node.op] if node.op in library else []
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            found.append(value.func.name)
        elif kind == "list":
            found.extend(each.name for each in value.list.func)
    return found


def reachable(name: str, library: Library) -> set[str]:
    """The functions that a function calls, directly or not; it is one of them if it may call itself."""
    found: set[str] = set()
    pending = [name]
    while pending:
        function = library.get(pending.pop())
        for node in function.node_def if function is not None else ():
            new = set(callees(node, library)) - found
            found |= new
            pending.extend(new)
    return found


def endless(name: str, library: Library, ending: set[str]) -> bool:
    """Whether a function calls itself, or one that does, whatever its arguments are: not in a branch or a loop.

    Args:
      ending: functions that are known to end; further ones that are found to end are added.
    """
    calls: dict[str, set[str]] = {}
    pending = [name]
    while pending:
        caller = pending.pop()
        if caller not in ending and caller not in calls:
            calls[caller] = _unconditional_callees(library.get(caller), library)
            pending.extend(calls[caller])
    callers: dict[str, list[str]] = {}
    missing = {}
    for caller, called in calls.items():
        called -= ending
        missing[caller] = len(called)
        for each in called:
            callers.setdefault(each, []).append(caller)
    ready = [caller for caller, count in missing.items() if not count]
    while ready:
        ended = ready.pop()
        ending.add(ended)
        for caller in callers.get(ended, ()):
            missing[caller] -= 1
            if not missing[caller]:
                ready.append(caller)
    return name not in ending


def _unconditional_callees(function: Any, library: Library) -> set[str]:
    if function is None or any(node.op in _SWITCHES for node in function.node_def):
        return set()
    return {name for node in function.node_def if node.op not in _CHOICES for name in callees(node, library)}


def passed_on(graph_def: Any) -> frozenset[int]:
    """The arguments of an instantiated body that it gives back in their places, as they are."""
    nodes = {node.name: node for node in graph_def.node}
    found = set()
    for node in graph_def.node:
        if node.op == "_Retval":
            source = nodes[_node_of(node.input[0])]
            while source.op == "Identity" and len(source.input) == 1:
                source = nodes[_node_of(source.input[0])]
            if source.op == "_Arg" and source.attr["index"].i == node.attr["index"].i:
                found.add(node.attr["index"].i)
    return frozenset(found)


def plain_call(node: Any, library: Library) -> Any:
    """A node whose op is the name of a function, as a PartitionedCall of it."""
    function = library[node.op]
    signature = function.signature
    call = node_def_pb2.NodeDef(name=node.name, input=node.input, device=node.device)
    call.op = "StatefulPartitionedCall" if signature.is_stateful else "PartitionedCall"
    call.attr["f"].func.name = node.op
    for name, value in node.attr.items():
        target = call.attr[name] if name.startswith("_") else call.attr["f"].func.attr[name]
        target.CopyFrom(value)
    for key, arguments in (("Tin", signature.input_arg), ("Tout", signature.output_arg)):
        types = call.attr[key].list.type
        for argument in arguments:
            count = _argument_count(argument, node.attr)
            for number in range(count):
                types.append(_argument_type(argument, node.attr, number))  # type: ignore[arg-type]
        if not types:
            call.attr[key].list.SetInParent()
    return call


def _node_of(text: str) -> str:
    return text.partition(":")[0]


def _outputs(node: Any, library: Library) -> list[tuple[str, int]]:
    """Name and length of each output of a node."""
    if node.op in library:
        arguments = library[node.op].signature.output_arg
        return [(argument.name, _argument_count(argument, node.attr)) for argument in arguments]
    try:
        op_def = opdef.get(node.op)
    except KeyError as error:
        raise errors.NotFoundError.of(f"{error.args[0]} (node {node.name})") from None
    return [(output.name, _output_count(output, node)) for output in op_def.outputs]


def _attribute(attrs: Mapping[str, Any], name: str) -> Any:
    if name not in attrs:
        raise errors.InvalidArgumentError.of(f"Function attribute {shown(name)} has no value")
    return attrs[name]


def _types(arguments: Iterable[Any], attrs: Mapping[str, Any]) -> list[int]:
    return [
        _argument_type(argument, attrs, number)
        for argument in arguments
        for number in range(_argument_count(argument, attrs))
    ]


def _argument_count(argument: Any, attrs: Mapping[str, Any]) -> int:
    if argument.type_list_attr:
        return len(_attribute(attrs, argument.type_list_attr).list.type)
    count = _attribute(attrs, argument.number_attr).i if argument.number_attr else 1
    if not 0 <= count <= OUTPUTS_MAX:
        raise errors.InvalidArgumentError.of(f"Attr '{argument.number_attr}' is {count}, no number of tensors")
    return count


def _argument_type(argument: Any, attrs: Mapping[str, Any], number: int) -> int:
    if argument.type_list_attr:
        return _attribute(attrs, argument.type_list_attr).list.type[number]
    return _attribute(attrs, argument.type_attr).type if argument.type_attr else argument.type


def _output_count(output: opdef.ArgDef, node: Any) -> int:
    if output.type_list_attr is not None:
        return len(node.attr[output.type_list_attr].list.type)
    if output.number_attr is not None:
        return node.attr[output.number_attr].i
    return 1
