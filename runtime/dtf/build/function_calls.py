"""Calls of functions in a graph under construction: opens those whose gradient is wanted.

A function of the library, as graphs of TensorFlow's `tf.function` and control flow v2 bring them, has no gradient of
its own here. Before the reverse walk goes through a call, the call is *opened*: the nodes of the body are added to the
graph. An If or a Case is added as `tf.cond` would add it, a While as `tf.while_loop` would. The call itself becomes an
IdentityN of their results, under its own name. The graph's results do not change.

A session that has already received the call keeps calling it; the opened nodes then run in addition, for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import control_dependencies, device, get_default_graph
from dtf.build.graph import Operation, Tensor
from dtf.build.importer import import_graph_def
from dtf.wire import dtypes, errors, opdef
from dtf.wire.codec import python_to_attr
from dtf.wire.functions import instantiate, passed_on
from dtf.wire.pb import attr_value_pb2, graph_pb2
from dtf.wire.tensor_shape import TensorShape

__all__ = ["CALLS", "is_call", "open_call"]

_BRANCHES = frozenset({"If", "StatelessIf"})
_CASES = frozenset({"Case", "StatelessCase"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_PLAIN = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
CALLS = _BRANCHES | _CASES | _LOOPS | _PLAIN


def is_call(op: Operation) -> bool:
    """Whether `open_call` takes the operation: it calls functions, or its op is the name of one."""
    return op.type in CALLS or not opdef.exists(op.type) and op.graph._is_function(op.type)


def open_call(op: Operation) -> None:
    """Puts the body of a call into the graph, and makes `op` an IdentityN of its results.

    Raises:
      ValueError: the graph's library lacks the function, or its body is not valid.
    """
    graph = op.graph
    functions = {function.signature.name: function for function in graph._library.function}

    def body(reference: Any) -> Callable[..., list[Tensor]]:
        return lambda *arguments: _body(functions, reference, arguments)

    with (
        graph.as_default(),
        graph.name_scope(f"{op.name}/opened/"),
        # Out of every block that the caller of tf.gradients is in ...
        control_dependencies(None),
        device(op.device or None),
    ):
        # ... and into the branch or loop that the call is in.
        graph._set_control_flow_context(op._get_control_flow_context())
        results = _results(op, body)
        graph._set_control_flow_context(None)
    _become_identity(op, results)


def _results(op: Operation, body: Callable[[Any], Callable[..., list[Tensor]]]) -> list[Tensor]:
    from dtf.build.ops.control_flow import cond

    inputs = op.inputs
    if op.type in _PLAIN:
        return body(op.get_attr("f"))(*inputs)
    if op.type not in CALLS:
        attrs = {key: value for key, value in op._attrs.items() if not key.startswith("_")}
        return body(attr_value_pb2.NameAttrList(name=op.type, attr=attrs))(*inputs)
    if op.type in _BRANCHES:
        pred, *arguments = inputs
        if pred.dtype != dtypes.bool:
            pred = apply_op("ToBool", None, input=pred)
        then, otherwise = body(op.get_attr("then_branch")), body(op.get_attr("else_branch"))
        return _as_list(cond(pred, lambda: then(*arguments), lambda: otherwise(*arguments), strict=True))
    if op.type in _CASES:
        index, *arguments = inputs
        return _case(index, arguments, [body(branch) for branch in op.get_attr("branches")])
    return _loop(op, body(op.get_attr("cond")), body(op.get_attr("body")))


def _loop(op: Operation, test: Callable[..., list[Tensor]], turn: Callable[..., list[Tensor]]) -> list[Tensor]:
    """Makes a loop whose variables are the inputs that change; its functions use the other inputs directly."""
    from dtf.build.ops.control_flow import while_loop

    inputs = op.inputs
    library = {function.signature.name: function for function in op.graph._library.function}
    reference = op.get_attr("body")
    constants = passed_on(instantiate(library[reference.name], reference.attr, library))
    variables = [index for index in range(len(inputs)) if index not in constants]

    def all_of(values: Sequence[Tensor]) -> list[Tensor]:
        changed = dict(zip(variables, values, strict=True))
        return [changed.get(index, tensor) for index, tensor in enumerate(inputs)]

    def next_of(*values: Tensor) -> list[Tensor]:
        results = turn(*all_of(values))
        return [results[index] for index in variables]

    shapes = op.get_attr("output_shapes") or [TensorShape(None)] * len(inputs)
    exits = while_loop(
        lambda *values: _truth(test(*all_of(values))[0]),
        next_of,
        [inputs[index] for index in variables],
        # Shapes that the call declares hold in all iterations, if the initial values fit them.
        shape_invariants=[
            inputs[index].shape.most_specific_compatible_shape(TensorShape(shapes[index])) for index in variables
        ],
        parallel_iterations=op.get_attr("parallel_iterations"),
        return_same_structure=True,
    )
    return all_of(_as_list(exits))


def _case(index: Tensor, arguments: Sequence[Tensor], branches: Sequence[Callable[..., list[Tensor]]]) -> list[Tensor]:
    """The branch of that number; the last one for a number that is none."""
    from dtf.build.ops.control_flow import cond

    if len(branches) == 1:
        return branches[0](*arguments)
    # From the second on they are numbered from the second on; a negative index means the last one.
    count = len(branches)
    is_last = apply_op(
        "LogicalOr",
        None,
        x=apply_op("Less", None, x=index, y=0),
        y=apply_op("GreaterEqual", None, x=index, y=count - 1),
    )

    def choose(number: int) -> list[Tensor]:
        if number == count - 2:
            return branches[number](*arguments)
        return _as_list(
            cond(
                apply_op("Equal", None, x=index, y=number),
                lambda: branches[number](*arguments),
                lambda: choose(number + 1),
                strict=True,
            )
        )

    return _as_list(cond(is_last, lambda: branches[-1](*arguments), lambda: choose(0), strict=True))


def _truth(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == dtypes.bool else apply_op("ToBool", None, input=tensor)


def _body(functions: dict[str, Any], reference: Any, arguments: Sequence[Tensor]) -> list[Tensor]:
    """Adds the nodes of a function where the caller is; returns its results."""
    function = functions.get(reference.name)
    if function is None:
        raise ValueError(f"Function {reference.name} is not in the library of the graph.")
    try:
        instance = instantiate(function, reference.attr, functions)
    except errors.OpError as error:
        raise ValueError(f"Function {reference.name}: {error.message}") from error
    mapped: dict[str, Any] = {}
    results: dict[int, str] = {}
    for node in instance.node:
        if node.op == "_Arg":
            mapped[f"{node.name}:0"] = arguments[node.attr["index"].i]
            mapped[f"^{node.name}"] = arguments[node.attr["index"].i].op
        elif node.op == "_Retval":
            results[node.attr["index"].i] = node.input[0]
    graph_def = _needed(instance, [*results.values(), *function.control_ret.values()])
    read = {text for node in graph_def.node for text in node.input}
    made = sorted({text for text in results.values() if text not in mapped})
    tensors = import_graph_def(
        graph_def,
        input_map={name: value for name, value in mapped.items() if name in read},
        return_elements=made,
        name=get_default_graph().unique_name(reference.name) + "/",
    )
    given = {**mapped, **dict(zip(made, tensors or (), strict=True))}
    return [given[results[index]] for index in sorted(results)]


def _needed(instance: Any, results: Sequence[str]) -> Any:
    """The nodes of a body that its results and effects need, without arguments and results themselves."""
    nodes = {node.name: node for node in instance.node if node.op not in ("_Arg", "_Retval")}
    waiting = [text.partition(":")[0] for text in results]
    waiting += [name for name, node in nodes.items() if opdef.exists(node.op) and opdef.get(node.op).is_stateful]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in seen:
            seen.add(name)
            waiting += [text.removeprefix("^").partition(":")[0] for text in nodes[name].input]
    return graph_pb2.GraphDef(node=[node for name, node in nodes.items() if name in seen])


def _become_identity(op: Operation, results: Sequence[Tensor]) -> None:
    """Makes a call of an operation one that only passes on the results. Its outputs and its name do not change."""
    for tensor in set(op._inputs):
        tensor._consumers.remove(op)
    op._inputs = list(results)
    for tensor in results:
        tensor._add_consumer(op)
    op._type = "IdentityN"
    op._op_def = opdef.get("IdentityN")
    for name in list(op._attrs):
        op._clear_attr(name)
    op._set_attr("T", python_to_attr([tensor.dtype for tensor in results], "list(type)"))
    op._remove_all_control_inputs()


def _as_list(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, list | tuple) else [value]
