"""Functions: the bodies that PartitionedCall, If, Case and While run.

Owns the way from a FunctionDef and attribute values to a GraphDef with _Arg and _Retval nodes, and the compiled body.
Bodies are compiled when they are first called, since a function may call itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dtf.run.step import StepContext
from dtf.wire import errors, opdef
from dtf.wire.pb import graph_pb2

if TYPE_CHECKING:
    from dtf.run.executor import Executor

__all__ = ["FunctionBody", "instantiate"]


class FunctionBody:
    """A function with its attributes, ready to be called. Its lock guards the compilation."""

    def __init__(self, reference: Any, library: Mapping[str, Any]) -> None:
        """`reference` is the NameAttrList of a func attribute, `library` the functions of the graph.

        Raises:
          NotFoundError: the library has no such function.
        """
        if reference.name not in library:
            raise errors.NotFoundError(None, None, f"Function {reference.name} is not defined.")
        self._reference = reference
        self._library = library
        self._lock = threading.Lock()
        self._executor: Executor | None = None
        self._result_count = 0

    def call(self, step: StepContext, arguments: tuple[Any, ...], done: Callable[..., None]) -> None:
        """Runs the body within a step: done(tuple of results), or done(error=OpError)."""
        try:
            executor = self._compiled()
        except errors.OpError as error:
            done(error=error)
            return
        frame = step.call_frame(arguments)
        token = step.cancellation.register(frame.cancellation.start_cancel)
        if token is None:
            done(error=errors.CancelledError(None, None, "Function call was cancelled"))
            return

        def finish(error: errors.OpError | None) -> None:
            step.cancellation.deregister(token)
            if error is not None:
                done(error=error)
            else:
                assert frame.results is not None
                done(tuple(frame.results[index] for index in range(self._result_count)))

        executor.run_async(frame, finish)

    def _compiled(self) -> Executor:
        with self._lock:
            if self._executor is None:
                from dtf.run.executor import Executor

                function = self._library[self._reference.name]
                graph_def = instantiate(function, self._reference.attr, self._library)
                self._result_count = len(function.signature.output_arg)
                for argument in function.signature.output_arg:
                    self._result_count += _argument_count(argument, self._reference.attr) - 1
                self._executor = Executor(graph_def)
            return self._executor


def instantiate(function: Any, attrs: Mapping[str, Any], library: Mapping[str, Any]) -> Any:
    """The GraphDef of a FunctionDef's body with _Arg and _Retval nodes; attribute placeholders get their values from
    `attrs`.

    Inside of a function an input reads "argument", "argument:1" or "node:output_name:index"; in the result, as in any
    GraphDef, "node:number".

    Raises:
      InvalidArgumentError: an attribute has no value, an edge leads nowhere.
    """
    result = graph_pb2.GraphDef()
    for each in library.values():
        result.library.function.add().CopyFrom(each)
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
    for template in function.node_def:
        node = result.node.add()
        node.CopyFrom(template)
        for name, value in node.attr.items():
            if value.WhichOneof("value") == "placeholder":
                node.attr[name].CopyFrom(_attribute(attrs, value.placeholder))
        nodes.append(node)
        number = 0
        for output in opdef.get(node.op).outputs:
            for position in range(_output_count(output, node)):
                names[f"{node.name}:{output.name}:{position}"] = f"{node.name}:{number}"
                number += 1

    def resolve(text: str) -> str:
        if text.startswith("^"):
            argument = text[1:]
            return f"^_arg_{argument}_0" if f"{argument}:0" in names else text
        for candidate in (text, f"{text}:0"):
            if candidate in names:
                return names[candidate]
        raise errors.InvalidArgumentError(None, None, f"Function {function.signature.name} has no tensor '{text}'")

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


def _attribute(attrs: Mapping[str, Any], name: str) -> Any:
    if name not in attrs:
        raise errors.InvalidArgumentError(None, None, f"Function attribute '{name}' has no value")
    return attrs[name]


def _argument_count(argument: Any, attrs: Mapping[str, Any]) -> int:
    if argument.type_list_attr:
        return len(_attribute(attrs, argument.type_list_attr).list.type)
    return _attribute(attrs, argument.number_attr).i if argument.number_attr else 1


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
