"""tf.contrib.compiler.jit: a scope that programs open around parts to compile. Here it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["experimental_jit_scope"]


@contextmanager
def experimental_jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """Accepted: operations run as outside of the scope."""
    del compile_ops, separate_compiled_gradients
    yield
