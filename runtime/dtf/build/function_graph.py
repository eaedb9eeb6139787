"""Functions traced from Python functions: `trace` runs one once in a graph of its own and makes a FunctionDef of the
nodes.

Owns `FunctionGraph`, and how the body uses tensors of the surrounding graph: they become arguments, or their nodes are
copied. Also owns the conversion of nodes to a FunctionDef, the reverse of `wire.functions`. Does not call
functions: an op with an attribute of kind func does, or `call` here.

    function = trace(lambda x: x * factor, [tf.TensorSpec([], tf.float32)], "scale")
    results = function.call([argument])                     # PartitionedCall(argument, factor, f=scale)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, Operation, Tensor
from dtf.wire import errors, opdef
from dtf.wire.dtypes import DType
from dtf.wire.pb import attr_value_pb2, function_pb2
from dtf.wire.tensor_shape import TensorShape

__all__ = ["FunctionGraph", "TracedFunction", "call_by_name", "output_names", "trace"]


@dataclass(frozen=True)
class TracedFunction:
    """A function in the library of a graph.

    Attributes:
      name: its name there.
      captured: tensors of the surrounding graph that it takes after its own arguments.
      results: the body's tensors that it gives, for their dtypes and static shapes.
      structure: the result of the Python function.
      is_stateful: whether a node of it has state.
      result_names: the names of the results in the library; result_0 and so on if empty.
    """

    name: str
    captured: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    structure: Any
    is_stateful: bool
    result_names: tuple[str, ...] = ()

    @property
    def reference(self) -> attr_value_pb2.NameAttrList:
        """The value for an attribute of kind func."""
        return attr_value_pb2.NameAttrList(name=self.name)

    def call(self, arguments: Sequence[Any], name: str | None = None, own_op: bool = False) -> list[Tensor]:
        """The results for these arguments, of a call in the default graph.

        Args:
          arguments: tensors, or values that become tensors.
          name: the name of the call.
          own_op: whether the function's name is the op of the call, as in TensorFlow 1.x; PartitionedCall otherwise.
        """
        given = [*arguments, *self.captured]
        types = [tensor.dtype.base_dtype for tensor in self.results]
        if own_op:
            outputs = call_by_name(self.name, given, types, name, self.result_names, self.is_stateful).outputs
        else:
            op_type = "StatefulPartitionedCall" if self.is_stateful else "PartitionedCall"
            made = apply_op(op_type, name, args=given, Tout=types, f=self.reference)
            outputs = [] if isinstance(made, Operation) else made
        for output, result in zip(outputs, self.results, strict=True):
            output.set_shape(result.shape)
        return list(outputs)


def call_by_name(
    function: str,
    arguments: Sequence[Any],
    types: Sequence[DType],
    name: str | None,
    result_names: Sequence[str] = (),
    is_stateful: bool = False,
) -> Operation:
    """A node whose op is the name of a function; the library of the graph may get the function later."""
    results = result_names or [f"result_{index}" for index in range(len(types))]
    graph = get_default_graph()
    inputs = [convert_to_tensor(each) for each in arguments]
    contract = opdef.OpDef(
        function,
        tuple(opdef.ArgDef(f"arg_{index}", type=each.dtype.base_dtype) for index, each in enumerate(inputs)),
        tuple(opdef.ArgDef(result, type=dtype) for result, dtype in zip(results, types, strict=True)),
        (),
        is_stateful=is_stateful,
    )
    # A reference is read before the call.
    inputs = [apply_op("Identity", None, input=each) if each.dtype._is_ref_dtype else each for each in inputs]
    return graph.create_op(function, inputs, list(types), name=name, op_def=contract)


def trace(
    function: Callable[..., Any],
    arguments: Sequence[tuple[DType, TensorShape]],
    name: str,
    results_of: Callable[[Any], Sequence[Any]] | None = None,
    by_value: bool = False,
    argument_names: Sequence[str] | None = None,
    exact_name: bool = False,
    result_names: Sequence[str] | None = None,
    name_of: Callable[[function_pb2.FunctionDef], str] | None = None,
) -> TracedFunction:
    """Runs `function` once with placeholders and adds what it builds to the default graph's library.

    Args:
      arguments: dtype and static shape of each.
      name: the start of the function's name, which is made unique in the library.
      results_of: a function from the Python function's result to the flat list of values to return; called in the
        body's graph. By default that is a list of values, or one value.
      by_value: copy the nodes of captured tensors into the body, so that the function captures nothing.
      argument_names: the names of the arguments in the library.
      exact_name: whether the function's name is `name` itself.
      result_names: the names of the results in the library; result_0 and so on by default.
      name_of: makes the name, in place of `name`, from the definition without one; a function that the library has
        already under that name, and that is equal, is used again.

    Raises:
      InvalidArgumentError: with `name_of`, the library has another function of that name.
      ValueError: with `by_value`, a captured tensor comes from a node with state, or from a placeholder.
      Any error of the function.
    """
    outer = get_default_graph()
    graph = FunctionGraph(outer, by_value)
    with graph.as_default():
        names = argument_names or [f"arg_{index}" for index in range(len(arguments))]
        placeholders = [graph.add_argument(each, *kind) for each, kind in zip(names, arguments, strict=True)]
        structure = function(*placeholders)
        flat = results_of(structure) if results_of else structure if isinstance(structure, list) else [structure]
        results = [convert_to_tensor(each) for each in flat]
        results = [each if each.graph is graph else graph._taken_in(each, name) for each in results]
    proto = graph.function_def(name if exact_name or name_of else _unused_name(outer, name), results, result_names)
    known = None
    if name_of is not None:
        proto.signature.name = name_of(proto)
        known = next((each for each in outer._library.function if each.signature.name == proto.signature.name), None)
    if known is None:
        outer._library.function.append(proto)
    elif known != proto:
        raise errors.InvalidArgumentError.of(
            f"Cannot add function '{proto.signature.name}' because a different function with the same name already "
            "exists."
        )
    return TracedFunction(
        proto.signature.name, tuple(graph.captured), tuple(results), structure, proto.signature.is_stateful,
        tuple(each.name for each in proto.signature.output_arg),
    )  # fmt: skip


def _unused_name(graph: Graph, name: str) -> str:
    known = {each.signature.name for each in graph._library.function}
    number = len(known)
    while f"{name}_{number}" in known:
        number += 1
    return f"{name}_{number}"


class FunctionGraph(Graph):
    """The body of a function under construction. Its library is the surrounding graph's library.

    Attributes:
      captured: tensors of the surrounding graph that the body uses, in the order of its last arguments.
      outer_variables: variables of the surrounding graph that the body has asked for by name.
    """

    def __init__(self, outer: Graph, by_value: bool = False) -> None:
        super().__init__()
        self.outer = outer
        self.captured: list[Tensor] = []
        self.outer_variables: list[Any] = []
        self.seed = outer.seed
        self._library = outer._library
        self._building_function = True
        self._by_value = by_value
        self._arguments: list[Tensor] = []
        self._stand_ins: dict[Tensor, Tensor] = {}
        self._copies: dict[Operation, Operation] = {}

    @property
    def outermost(self) -> Graph:
        return self.outer.outermost

    def add_argument(self, name: str, dtype: DType, shape: TensorShape) -> Tensor:
        """A placeholder that becomes the next argument."""
        with self.name_scope(None):  # arguments' names have no slashes
            op = self.create_op("Placeholder", [], name=name, attrs={"dtype": dtype.base_dtype, "shape": shape})
        tensor = op.outputs[0]
        tensor.set_shape(shape)
        self._arguments.append(tensor)
        return tensor

    def _taken_in(self, tensor: Tensor, name: str | None) -> Tensor:
        found = self._stand_ins.get(tensor)
        if found is None:
            found = self._copy(tensor.op).outputs[tensor.value_index] if self._by_value else self._capture(tensor)
            self._stand_ins[tensor] = found
        return found

    def _capture(self, tensor: Tensor) -> Tensor:
        if tensor.dtype._is_ref_dtype:
            raise ValueError(
                f"A function cannot take the variable behind {tensor.name} by reference: read it outside of the "
                "function, or make it with use_resource=True"
            )
        # Out of the blocks that the caller is in: arguments belong to none of them.
        with self.control_dependencies(None), self.device(None):
            stand_in = self.add_argument(f"captured_{len(self.captured)}", tensor.dtype, tensor.shape)
        for name in ("_handle_data", "_handle_types"):
            if hasattr(tensor, name):
                setattr(stand_in, name, getattr(tensor, name))
        self.captured.append(tensor)
        return stand_in

    def _copy(self, op: Operation) -> Operation:
        found = self._copies.get(op)
        if found is not None:
            return found
        # Their contracts declare datasets stateful, but datasets are values.
        if op._op_def is not None and op._op_def.is_stateful and "Dataset" not in op.type:
            raise ValueError(f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value.")
        if op.type in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault"):
            raise ValueError(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
        inputs = [each if each.graph is self else self._taken_in(each, op.name) for each in op.inputs]
        with self.control_dependencies(None), self.device(None):
            copied = self.create_op(
                op.type,
                inputs,
                [each.dtype for each in op.outputs],
                name=op.name,
                attrs={name: value for name, value in op._attrs.items() if name != "_class"},
                op_def=op._op_def,
            )
        self._copies[op] = copied
        return copied

    def function_def(
        self, name: str, results: Sequence[Tensor], result_names: Sequence[str] | None = None
    ) -> function_pb2.FunctionDef:
        """The FunctionDef of this body."""
        proto = function_pb2.FunctionDef()
        proto.signature.name = name
        arguments = {tensor.op for tensor in self._arguments}
        names: dict[Tensor, str] = {}
        for tensor in self._arguments:
            proto.signature.input_arg.add(name=tensor.op.name, type=tensor.dtype.as_datatype_enum)
            names[tensor] = tensor.op.name
        for op in self.get_operations():
            if op in arguments:
                continue
            names.update(zip(op.outputs, output_names(op), strict=True))
        for op in self.get_operations():
            if op in arguments:
                continue
            node = op.node_def
            del node.input[:]
            node.input.extend(names[tensor] for tensor in op.inputs)
            node.input.extend(f"^{each.name}" for each in op.control_inputs if each not in arguments)
            proto.node_def.append(node)
            if op._op_def is not None and op._op_def.is_stateful and op._get_control_flow_context() is None:
                proto.signature.is_stateful = True
                proto.signature.control_output.append(op.name)
                proto.control_ret[op.name] = op.name
        result_names = result_names or [f"result_{index}" for index in range(len(results))]
        for result, tensor in zip(result_names, results, strict=True):
            proto.signature.output_arg.add(name=result, type=tensor.dtype.base_dtype.as_datatype_enum)
            proto.ret[result] = names[tensor]
        return proto


def output_names(op: Operation) -> list[str]:
    """Of each output, how a function's body refers to it: "node:output:index"."""
    op_def = op._op_def if op._op_def is not None else opdef.get(op.type)
    names = []
    for output in op_def.outputs:
        count = 1
        if output.type_list_attr is not None:
            count = len(op.get_attr(output.type_list_attr))
        elif output.number_attr is not None:
            count = op.get_attr(output.number_attr)
        names += [f"{op.name}:{output.name}:{index}" for index in range(count)]
    return names
