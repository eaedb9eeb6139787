"""tensorflow.python.framework.graph_to_function_def: the nodes of a plain graph as a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.function_graph import output_names
from dtf.wire.pb import function_pb2

__all__ = ["graph_to_function_def"]


def graph_to_function_def(
    graph: Any, operations: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], out_names: Any = None
) -> function_pb2.FunctionDef:
    """A FunctionDef without a name.

    Args:
      graph: the graph of the operations.
      operations: the body; operations of the inputs are left out.
      inputs: the tensors that become arguments.
      outputs: the tensors that become results.
      out_names: the names of the results; those of the tensors by default.

    Raises:
      ValueError: `out_names` has another length than `outputs`, or a name twice.
    """
    if out_names is not None and len(out_names) != len(outputs):
        raise ValueError(f"output names must be either empty or equal in size to outputs. output names size = "
                         f"{len(out_names)} outputs size = {len(outputs)}")  # fmt: skip
    if out_names and len(set(out_names)) != len(out_names):
        raise ValueError(f"Must not have duplicates in out_names: {', '.join(out_names)}")
    function = function_pb2.FunctionDef()
    function.signature.SetInParent()
    names: dict[Any, str] = {}
    taken: dict[str, int] = {}

    def unique(tensor: Any) -> str:
        base = _make_argname_from_tensor_name(tensor.name)
        taken[base] = taken.get(base, -1) + 1
        return base if not taken[base] else f"{base}_{taken[base]}"

    for tensor in inputs:
        names[tensor] = unique(tensor)
        function.signature.input_arg.add(name=names[tensor], type=tensor.dtype.base_dtype.as_datatype_enum)
    arguments = {tensor.op for tensor in inputs}
    body = [op for op in operations if op not in arguments]
    for op in body:
        names.update(zip(op.outputs, output_names(op), strict=True))
    for op in body:
        node = op.node_def
        del node.input[:]
        node.input.extend(names[tensor] for tensor in op.inputs)
        node.input.extend(f"^{each.name}" for each in op.control_inputs if each not in arguments)
        function.node_def.append(node)
        if op._is_stateful:
            function.signature.is_stateful = True
    for index, tensor in enumerate(outputs):
        name = out_names[index] if out_names else unique(tensor)
        function.signature.output_arg.add(name=name, type=tensor.dtype.base_dtype.as_datatype_enum)
        function.ret[name] = names[tensor]
    return function


def _make_argname_from_tensor_name(name: str) -> str:
    return name.replace(":0", "").replace(":", "_").replace("/", "_")
