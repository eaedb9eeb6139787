"""Prints op contracts of the installed TensorFlow in the line format of runtime/dtf/wire/opdefs.

Runs under TensorFlow's Python, apart from the project's: `python opdef_lines.py [--json] [OP ...]`; without
names it prints all ops that the wheel registers. The format is described in `dtf.wire.opdef`, which parses it.
"""

from __future__ import annotations

import json
import sys

from tensorflow.core.framework import attr_value_pb2, op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import dtypes, op_def_registry, tensor_util

SKIPPED_PREFIXES = ("Tpu", "TPU", "Xla", "_Mkl", "_Nccl", "BoostedTrees", "Dataset", "DefaultAttrs")


def type_name(enum: int) -> str:
    return dtypes.as_dtype(enum).name


def argument(arg) -> str:
    if arg.type_list_attr:
        kind = f"[{arg.type_list_attr}]"
    else:
        kind = arg.type_attr or type_name(arg.type)
        if arg.number_attr:
            kind = f"{arg.number_attr}*{kind}"
    if arg.is_ref:
        kind = f"Ref({kind})"
    return f"{arg.name}: {kind}"


def scalar(value: attr_value_pb2.AttrValue, kind: str) -> str:
    which = value.WhichOneof("value")
    if which == "type" or kind == "type":
        return type_name(value.type)
    if which == "s" or kind == "string":
        return json.dumps(value.s.decode("latin1"))
    if which == "i" or kind == "int":
        return str(value.i)
    if which == "f" or kind == "float":
        return repr(value.f) if value.f != float("inf") else "inf"
    if which == "b" or kind == "bool":
        return "true" if value.b else "false"
    if which == "shape" or kind == "shape":
        shape = value.shape
        return "?" if shape.unknown_rank else "[" + ", ".join(str(dim.size) for dim in shape.dim) + "]"
    if which == "tensor":
        array = tensor_util.MakeNdarray(value.tensor)
        return f"tensor({array.dtype.name}, {array.tolist()})"
    raise NotImplementedError(which)


def default(value: attr_value_pb2.AttrValue, kind: str) -> str:
    if not kind.startswith("list("):
        return scalar(value, kind)
    inner = kind[5:-1]
    fields = {"type": "type", "string": "s", "int": "i", "float": "f", "bool": "b", "shape": "shape"}
    items = []
    for item in getattr(value.list, fields[inner]):
        one = attr_value_pb2.AttrValue()
        if inner == "shape":
            one.shape.CopyFrom(item)
        else:
            setattr(one, fields[inner], item)
        items.append(scalar(one, inner))
    return "[" + ", ".join(items) + "]"


def attribute(attr) -> str:
    text = f"{attr.name}: {attr.type}"
    if attr.HasField("allowed_values"):
        values = attr.allowed_values.list
        names = [type_name(t) for t in values.type] or [json.dumps(s.decode()) for s in values.s]
        text += " in [" + ", ".join(names) + "]"
    if attr.has_minimum:
        text += f" >= {attr.minimum}"
    if attr.HasField("default_value") and attr.default_value.WhichOneof("value") != "func":
        text += " = " + default(attr.default_value, attr.type)
    return text


def line(op) -> str:
    inputs = ", ".join(argument(arg) for arg in op.input_arg)
    outputs = ", ".join(argument(arg) for arg in op.output_arg)
    attrs = ", ".join(attribute(attr) for attr in op.attr)
    text = f"{op.name}({inputs}) -> ({outputs})"
    if attrs:
        text += " {" + attrs + "}"
    for flag in ("is_stateful", "is_commutative", "is_aggregate", "allows_uninitialized_input"):
        if getattr(op, flag):
            text += " " + flag
    return text


def registered_names() -> list[str]:
    op_list = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return sorted(op.name for op in op_list.op if not op.name.startswith(SKIPPED_PREFIXES))


def main() -> None:
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or registered_names()
    ops = {name: op_def_registry.get(name) for name in names}
    lines = {name: line(op) if op else None for name, op in ops.items()}
    if "--json" in sys.argv:
        json.dump(lines, sys.stdout)
    else:
        print("\n".join(text for text in lines.values() if text))


if __name__ == "__main__":
    main()
