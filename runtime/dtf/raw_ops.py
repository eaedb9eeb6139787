"""The namespace tf.raw_ops: every op as a function of its contract's inputs and attributes, by keyword.

    tf.raw_ops.Unpack(value=x, num=3, axis=1)

`build.apply` makes the nodes. Source: https://www.tensorflow.org/api_docs/python/tf/raw_ops
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.ops import load_shape_rules
from dtf.wire import opdef


@functools.cache
def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in opdef.names():
        raise AttributeError(f"there is no op {name!r}")

    def make(*, name: str | None = None, **arguments: Any) -> Any:
        return apply_op(op_type, name, **arguments)

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
        [inspect.Parameter(each, kind, default=default) for each, default in [*names, ("name", None)]]
    )


def _shown(attr: opdef.AttrDef) -> Any:
    """A default value in the form that callers pass."""
    return attr.default.decode() if isinstance(attr.default, bytes) else attr.default


def __dir__() -> list[str]:
    return [name for name in opdef.names() if not name.startswith("_")]
