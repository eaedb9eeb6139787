"""Gradients through branches and loops."""

from __future__ import annotations

from typing import Any

from dtf.apply import apply_op


def loop_state(between: list[Any]) -> Any:
    """What the reverse walk asks about loops; None if no operation of `between` is in one."""
    return None


def zeros_like_output(op: Any, index: int) -> Any:
    """Zeros for an output of `op` that no gradient has reached."""
    return apply_op("ZerosLike", "zeros_like", x=op.outputs[index])
