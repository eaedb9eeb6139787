"""A variant of a case as the job that `runner` takes: the GraphDef's bytes, the arrays, what to fetch.

Owns the graph around one op: a placeholder per input (a variable per reference or handle), the attributes that the
inputs imply, and which gradients are asked for. Does not choose inputs (variants) nor compare (compare).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.signature import output_types
from dtf.wire import codec, dtypes, opdef
from dtf.wire.pb import graph_pb2
from dtf.wire.tensor_shape import TensorShape
from tests.interop.differential.variants import Variant
from tests.runtime.op_cases import Case

PRODUCER = 1882  # of TensorFlow 2.16: old enough for 2.21, young enough for ops that replaced others


def job(variant: Variant) -> dict[str, Any]:
    """The job of a variant.

    Raises:
      Unsuitable: the arrays do not fit the contract, so there is no such graph.
    """
    case = variant.case
    contract = opdef.get(case.op)
    attrs = attributes(case)
    graph = graph_pb2.GraphDef()
    graph.versions.producer = PRODUCER
    feeds: dict[str, np.ndarray] = {}
    inputs: list[str] = []
    xs: list[str] = []
    before: list[str] = []
    after: list[str] = []
    for arg, value in zip(contract.inputs, case.inputs, strict=True):
        for array in arrays_of(value):
            at = len(inputs)
            if arg.is_ref or arg.type == dtypes.resource:
                made = _variable(graph, array, f"v{at}", by_handle=not arg.is_ref)
                inputs.append(made[0])
                before.append(made[1])
                after.append(made[2])
                continue
            dtype = dtype_of(array)
            shape = TensorShape(array.shape if variant.static else None)
            _node(graph, "Placeholder", f"x{at}", [], {"dtype": dtype, "shape": shape})
            feeds[f"x{at}:0"] = array
            inputs.append(f"x{at}")
            if dtype.is_floating or dtype.is_complex:
                xs.append(f"x{at}:0")
    node = _node(graph, case.op, "op", inputs, attrs)
    complete = _with_defaults(contract, attrs)
    outputs = output_types(contract, complete.__getitem__)
    fetches = [f"op:{i}" for i, dtype in enumerate(outputs) if dtype != dtypes.resource and not dtype._is_ref_dtype]
    ys = [f"op:{i}" for i, dtype in enumerate(outputs) if dtype.is_floating or dtype.is_complex]
    for name, kind, value in variant.raw_attrs:
        node.attr[name].CopyFrom(codec.python_to_attr(value, kind))
    return {
        "graph_def": graph.SerializeToString(deterministic=True),
        "before": before,
        "feeds": feeds,
        "fetches": fetches,
        "dtypes": [outputs[int(fetch[3:])].name for fetch in fetches],
        "targets": [] if fetches else ["op"],
        "after": after,
        "gradients": {"xs": xs, "ys": ys} if variant.gradient and xs and ys and not after else None,
    }


def attributes(case: Case) -> dict[str, Any]:
    """The attributes of a case: those it gives, and those that its inputs imply."""
    contract = opdef.get(case.op)
    attrs = {name: dtypes.as_dtype(value) if contract.attr_by_name[name].type == "type" else value
             for name, value in case.attrs.items()}  # fmt: skip
    for arg, value in zip(contract.inputs, case.inputs, strict=True):
        types = [dtype_of(array) for array in arrays_of(value)]
        if arg.number_attr is not None:
            attrs[arg.number_attr] = len(types)
        if arg.type_list_attr is not None:
            attrs[arg.type_list_attr] = types
        elif arg.type_attr is not None and types:
            attrs[arg.type_attr] = types[0]
        elif arg.type == dtypes.resource and "dtype" in contract.attr_by_name:
            attrs["dtype"] = types[0]
    return attrs


def arrays_of(value: Any) -> list[np.ndarray]:
    """The arrays of one argument of a case."""
    return [each if isinstance(each, np.ndarray) else np.asarray(each)
            for each in (value if isinstance(value, list) else [value])]  # fmt: skip


def dtype_of(array: np.ndarray) -> dtypes.DType:
    return dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)


def _with_defaults(contract: opdef.OpDef, attrs: dict[str, Any]) -> dict[str, Any]:
    return {**{attr.name: attr.default for attr in contract.attrs if attr.has_default}, **attrs}


def _node(graph: Any, op: str, name: str, inputs: list[str], attrs: dict[str, Any]) -> Any:
    node = graph.node.add(op=op, name=name, input=inputs)
    types = opdef.get(op).attr_by_name
    for key, value in attrs.items():
        node.attr[key].CopyFrom(codec.python_to_attr(value, types[key].type))
    return node


def _variable(graph: Any, array: np.ndarray, name: str, by_handle: bool) -> tuple[str, str, str]:
    """A variable that begins with `array`: its node, the op that initializes it, the output that reads it."""
    dtype = dtype_of(array)
    described = {"dtype": dtype, "shape": TensorShape(array.shape)}
    _node(graph, "Const", f"{name}/value", [], {"dtype": dtype, "value": array})
    if by_handle:
        _node(graph, "VarHandleOp", name, [], {**described, "shared_name": name.encode()})
        _node(graph, "AssignVariableOp", f"{name}/assign", [name, f"{name}/value"], {"dtype": dtype})
        _node(graph, "ReadVariableOp", f"{name}/read", [name], {"dtype": dtype})
    else:
        _node(graph, "VariableV2", name, [], described)
        _node(graph, "Assign", f"{name}/assign", [name, f"{name}/value"], {"T": dtype})
        _node(graph, "Identity", f"{name}/read", [name], {"T": dtype})
    return name, f"{name}/assign", f"{name}/read:0"
