"""The switches between TensorFlow 1 and 2 behaviour of `compat.v1`: dtf always has version 1 behaviour.

The switch for resource variables, which does something, is in `variables`.
"""

from __future__ import annotations

__all__ = [
    "disable_control_flow_v2", "disable_eager_execution", "disable_tensor_equality", "disable_v2_behavior",
    "disable_v2_tensorshape", "executing_eagerly",
]  # fmt: skip


def disable_v2_behavior() -> None:
    """Does nothing: version 1's behavior is the only one."""


def disable_eager_execution() -> None:
    """Does nothing: there are only graphs."""


def disable_control_flow_v2() -> None:
    """Does nothing: conditionals and loops are version 1's."""


def disable_v2_tensorshape() -> None:
    """Does nothing: shapes are version 1's."""


def disable_tensor_equality() -> None:
    """Does nothing: tensors are equal only to themselves."""


def executing_eagerly() -> bool:
    """False: there are only graphs."""
    return False
