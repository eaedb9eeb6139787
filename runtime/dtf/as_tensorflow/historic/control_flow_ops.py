"""tensorflow.python.ops.control_flow_ops: its non-public names."""

from __future__ import annotations

from typing import Any

from dtf.as_tensorflow.historic.control_flow_contexts import (
    ControlFlowContext,
    XLAControlFlowContext,
    from_control_flow_context_def,
)
from dtf.as_tensorflow.historic.layer_utils import smart_cond
from dtf.build.default_graph import get_default_graph
from dtf.build.ops.control_flow_context import switch_ref_or_tensor as _SwitchRefOrTensor  # noqa: N812
from dtf.build.ops.ordering import with_dependencies

__all__ = [
    "ControlFlowContext", "XLAControlFlowContext", "_SwitchRefOrTensor", "from_control_flow_context_def",
    "get_enclosing_xla_context", "smart_cond", "with_dependencies",
]  # fmt: skip


def get_enclosing_xla_context() -> Any:
    """The innermost context of a compiled cluster that new operations are in, or None."""
    context = get_default_graph()._get_control_flow_context()
    while context is not None and not context.IsXLAContext():
        context = context.outer_context
    return context
