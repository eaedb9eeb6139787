"""The public op functions, their shape rules and gradients, one module per family of ops.

`<family>.py` has the functions and the static shapes, `<family>_grad.py` the gradients.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable


@functools.cache
def load_gradients() -> None:
    """Imports the modules of gradients, which fill the table of `gradients`."""
    _load(lambda name: name.endswith("_grad"))


@functools.cache
def load_shape_rules() -> None:
    """Imports the modules of all families, which fill the table of `shape_rules`."""
    _load(lambda name: not name.endswith("_grad"))


def _load(is_wanted: Callable[[str], bool]) -> None:
    for module in pkgutil.iter_modules(__path__):
        if is_wanted(module.name):
            importlib.import_module(f"{__name__}.{module.name}")


import dtf.build.ops.operators  # noqa: E402, F401 code that makes ops needs tensors with operators
