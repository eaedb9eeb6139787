"""The namespace tf.raw_ops: every op as a function of its contract's inputs and attributes, by keyword.

    tf.raw_ops.Unpack(value=x, num=3, axis=1)

`build.apply` makes the nodes. Source: https://www.tensorflow.org/api_docs/python/tf/raw_ops
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from dtf import late
from dtf.build.apply import apply_op
from dtf.build.ops import load_shape_rules
from dtf.wire import opdef
from dtf.wire.tensor_shape import TensorShape

_REDUCED = {"reduction_indices": "axis"}
#: op -> the contract's argument -> its name in tf.raw_ops.
_RENAMED = {
    **dict.fromkeys(("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"), _REDUCED),
    "ExpandDims": {"dim": "axis"},
    "Select": {"t": "x", "e": "y"},
    "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"},
    "Squeeze": {"squeeze_dims": "axis"},
    "Where": {"input": "condition"},
}


@functools.cache
def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in opdef.names():
        raise late.missing(__name__, name)

    def make(*, name: str | None = None, **arguments: Any) -> Any:
        return apply_op(op_type, name, **{own.get(key, key): value for key, value in arguments.items()})

    own = {newer: old for old, newer in _RENAMED.get(name, {}).items()}
    load_shape_rules()  # those of the rare families too
    make.__signature__ = _signature(opdef.get(name))  # type: ignore[attr-defined]
    op_type = make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The op {opdef.get(name)}."
    return make


def _signature(op_def: opdef.OpDef) -> inspect.Signature:
    """The inputs, then the attributes that no input implies, those with defaults last."""
    implied = {
        attr for arg in op_def.inputs for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) if attr
    }
    attrs = [attr for attr in op_def.attrs if attr.name not in implied]
    names = [(each.name, inspect.Parameter.empty) for each in op_def.inputs]
    names += [(each.name, inspect.Parameter.empty) for each in attrs if not each.has_default]
    names += [(each.name, _shown(each)) for each in attrs if each.has_default]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter(_RENAMED.get(op_def.name, {}).get(each, each), kind, default=default)
            for each, default in [*names, ("name", None)]
        ]
    )


def _shown(attr: opdef.AttrDef) -> Any:
    """A default value in the form that callers pass."""
    if isinstance(attr.default, TensorShape):
        return None if attr.default.ndims is None else attr.default.as_list()
    if isinstance(attr.default, float):
        return float(str(np.float32(attr.default)))
    if isinstance(attr.default, list):
        return [float(str(np.float32(each))) if isinstance(each, float) else each for each in attr.default]
    return attr.default.decode() if isinstance(attr.default, bytes) else attr.default


def __dir__() -> list[str]:
    return [name for name in opdef.names() if not name.startswith("_")]
