"""AttrValue as Python values, and back."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2
from dtf.wire.python_values import as_bytes
from dtf.wire.tensor_proto import make_tensor_proto, proto_to_array
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = ["attr_to_python", "python_to_attr"]


def attr_to_python(attr: Any) -> Any:
    """The Python value of an AttrValue: bytes, int, float, bool, DType, TensorShape, array, NameAttrList, or a list.

    A placeholder gives its name (str); an AttrValue without a value, and DT_INVALID, give None.
    """
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind == "list":
        for field, values in attr.list.ListFields():
            return [_attr_element(field.name, each) for each in values]
        return []
    return _attr_element(kind, getattr(attr, kind))



def python_to_attr(value: Any, attr_type: str | None = None) -> attr_value_pb2.AttrValue:
    """The AttrValue of a Python value.

    Args:
      value: what attr_to_python gives, and what converts to it: names of dtypes, lists for shapes, str, numpy scalars,
        values of tensors, the name of a function. An AttrValue is returned as it is.
      attr_type: the type as an OpDef names it: "int", "float", "bool", "string", "type", "shape", "tensor", "func" or
        "list(...)" of one; by default the type of `value`.

    Raises:
      TypeError: `value` is not of type `attr_type`.
    """
    if hasattr(value, "WhichOneof") and hasattr(value, "placeholder"):
        return value
    attr = attr_value_pb2.AttrValue()
    kind = attr_type or _guess_attr_type(value)
    if kind.startswith("list("):
        element = kind[5:-1]
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise TypeError(f"Expected {kind}, got {value!r} of type {type(value).__name__!r} instead.")
        attr.list.SetInParent()
        field = getattr(attr.list, _ATTR_FIELD[element])
        field.extend(_attr_value(each, element) for each in value)
        return attr
    converted = _attr_value(value, kind)
    if kind in ("shape", "tensor", "func"):
        getattr(attr, kind).CopyFrom(converted)
    else:
        setattr(attr, _ATTR_FIELD[kind], converted)
    return attr



_ATTR_FIELD = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}



def _attr_element(kind: str, value: Any) -> Any:
    if kind == "type":
        return as_dtype(value) if value else None
    if kind == "shape":
        return TensorShape(value)
    if kind == "tensor":
        return proto_to_array(value)
    return value



def _attr_value(value: Any, kind: str) -> Any:
    try:
        if kind == "int":
            return operator.index(value)
        if kind == "float":
            if isinstance(value, (str, bytes)):
                raise TypeError
            return float(value)
        if kind == "bool":
            if not isinstance(value, (bool, np.bool_)) and value not in (0, 1):
                raise TypeError
            return bool(value)
        if kind == "string":
            return as_bytes(value)
        if kind == "shape":
            return as_shape(value).as_proto()
        if kind == "func":
            return attr_value_pb2.NameAttrList(name=value) if isinstance(value, str) else value
    except (TypeError, ValueError):
        raise TypeError(f"Expected {kind}, got {value!r} of type {type(value).__name__!r} instead.") from None
    if kind == "type":
        return 0 if value is None else as_dtype(value).as_datatype_enum
    if kind == "tensor":
        return make_tensor_proto(value)
    raise TypeError(f"Unknown attribute type {kind!r}.")



def _guess_attr_type(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, (str, bytes)):
        return "string"
    if isinstance(value, DType):
        return "type"
    if isinstance(value, TensorShape) or hasattr(value, "unknown_rank"):
        return "shape"
    if isinstance(value, np.ndarray) or hasattr(value, "tensor_content"):
        return "tensor"
    if isinstance(value, (list, tuple)):
        return f"list({_guess_attr_type(value[0])})" if value else "list(string)"
    if hasattr(value, "attr") and hasattr(value, "name"):
        return "func"
    raise TypeError(f"{value!r} of type {type(value).__name__!r} is not an attribute value.")
