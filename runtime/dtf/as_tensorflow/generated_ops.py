"""The functions of TensorFlow's gen_*_ops modules: one op each, inputs and attributes by position or by name.

    gen_nn_ops.max_pool_grad(orig_input, orig_output, grad, ksize, strides, padding)

Owns the way from a function's name to its op. Inputs come in the contract's order, then the attributes that have to be
given, then the others, then the name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dtf.wire import opdef

__all__: list[str] = []


@functools.cache
def __getattr__(name: str) -> Callable[..., Any]:
    op_type = _by_plain_name().get(name.strip("_").replace("_", "").lower())
    if op_type is None or name.startswith("__"):
        raise AttributeError(f"no op matches the function {name!r}")
    from dtf import raw_ops

    order = _arguments(op_type)
    make_op = getattr(raw_ops, op_type)

    def make(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(order):
            raise TypeError(f"{name}() takes {len(order)} positional arguments but {len(args)} were given")
        return make_op(**dict(zip(order, args, strict=False)), **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The op {opdef.get(op_type)}."
    return make


def forget_names() -> None:
    """To be called after contracts were added to the table: their functions are found from then on."""
    _by_plain_name.cache_clear()


@functools.cache
def _by_plain_name() -> dict[str, str]:
    """Names in small letters, without underscores -> ops."""
    return {each.lower(): each for each in opdef.names() if not each.startswith("_")}


def _arguments(op_type: str) -> tuple[str, ...]:
    op_def = opdef.get(op_type)
    implied = {
        name
        for arg in op_def.inputs
        for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)
        if name
    }
    given = [attr for attr in op_def.attrs if attr.name not in implied]
    needed = [attr.name for attr in given if not attr.has_default]
    others = [attr.name for attr in given if attr.has_default]
    return (*(arg.name for arg in op_def.inputs), *needed, *others, "name")
