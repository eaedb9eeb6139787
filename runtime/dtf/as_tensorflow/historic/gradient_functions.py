"""tensorflow.python.ops.*_grad: the gradient functions by TensorFlow's names, such as `_MulGrad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Callable[..., Any]:
    from dtf.build import gradients

    op_type = name.strip("_").removesuffix("Gradient").removesuffix("Grad")
    if name.startswith("__") or not name.endswith(("Grad", "Gradient")):
        raise AttributeError(f"no gradient function is named {name!r}")
    gradients.load()
    if op_type not in gradients.table:
        raise AttributeError(f"no gradient is registered for the op {op_type!r}")
    found = gradients.table[op_type]
    if found is None:
        raise AttributeError(f"the op {op_type!r} has no gradient")
    return found
