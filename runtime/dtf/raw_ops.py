"""The namespace tf.raw_ops: every op as a function of its contract's inputs and attributes, by keyword.

    tf.raw_ops.Unpack(value=x, num=3, axis=1)

Owns nothing: `build.apply` makes the node. Source: https://www.tensorflow.org/api_docs/python/tf/raw_ops
"""

from __future__ import annotations

import functools
from typing import Any

from dtf.build import shape_rules
from dtf.build.apply import apply_op
from dtf.wire import opdef


@functools.cache
def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in opdef.names():
        raise AttributeError(f"there is no op {name!r}")

    def make(*, name: str | None = None, **arguments: Any) -> Any:
        return apply_op(op_type, name, **arguments)

    shape_rules.load()  # those of the rare families too
    op_type = make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The op {opdef.get(name)}."
    return make


def __dir__() -> list[str]:
    return [name for name in opdef.names() if not name.startswith("_")]
