"""tensorflow.python.framework.test_ops: ops that exist for unit tests of graphs, one function each.

Their contracts are added to the table at import. Few have kernels (`test_kernels`): most graphs of them can be built
and imported, but not run.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from dtf.as_tensorflow import generated_ops
from dtf.as_tensorflow.historic.op_def_library import OpDefLibrary
from dtf.wire import opdef

__all__: list[str] = []

opdef.register(Path(__file__).parent.parent / "test_ops.txt")
generated_ops.forget_names()
importlib.import_module("dtf.as_tensorflow.test_kernels")  # after their contracts
_op_def_lib = OpDefLibrary()


def __getattr__(name: str) -> Any:
    return getattr(generated_ops, name)
