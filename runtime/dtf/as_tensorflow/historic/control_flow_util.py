"""tensorflow.python.ops.control_flow_util: questions about operations of loops and branches."""

from __future__ import annotations

from typing import Any

import dtf.as_tensorflow.historic.control_flow_contexts  # noqa: F401 gives contexts their names
from dtf.build.ops import control_flow_context as contexts

__all__ = [
    "ENABLE_CONTROL_FLOW_V2", "CheckInputFromValidContext", "EnableControlFlowV2", "GetContainingCondContext",
    "GetContainingWhileContext", "GetContainingXLAContext", "GetLoopConstantEnter", "GetOutputContext",
    "GetWhileContext", "GraphOrParentsInXlaContext", "InXlaContext", "IsInWhileContext",
    "IsCondMerge", "IsCondSwitch", "IsContainingContext", "IsInCond",
    "IsInWhileLoop", "IsInXLAContext", "IsLoopConstantEnter", "IsLoopEnter", "IsLoopExit", "IsLoopMerge",
    "IsLoopSwitch", "IsMerge", "IsSwitch", "OpInContext", "TensorInContext", "enable_control_flow_v2",
]  # fmt: skip

ENABLE_CONTROL_FLOW_V2 = False
"""Loops and branches are Switch, Merge, Enter, Exit and NextIteration nodes."""

IsLoopExit = contexts.is_loop_exit
IsLoopConstantEnter = contexts.is_loop_constant_enter
GetOutputContext = contexts.output_context
GetWhileContext = contexts.enclosing_while


def EnableControlFlowV2(graph: Any) -> bool:  # noqa: N802
    """False: loops and branches are never single nodes."""
    return False


enable_control_flow_v2 = EnableControlFlowV2
GraphOrParentsInXlaContext = EnableControlFlowV2


def InXlaContext(graph: Any) -> bool:  # noqa: N802
    """Whether new operations of a graph are in the context of a compiled cluster."""
    return GetContainingXLAContext(graph._get_control_flow_context()) is not None


def IsInXLAContext(op: Any) -> bool:  # noqa: N802
    """Whether the operation is in the context of a compiled cluster."""
    return GetContainingXLAContext(op._get_control_flow_context()) is not None


def IsSwitch(op: Any) -> bool:  # noqa: N802
    """Whether the operation is a Switch."""
    return op.type in ("Switch", "RefSwitch")


def IsMerge(op: Any) -> bool:  # noqa: N802
    """Whether the operation is a Merge."""
    return op.type in ("Merge", "RefMerge")


def IsLoopEnter(op: Any) -> bool:  # noqa: N802
    """Whether the operation passes a value into a loop."""
    return op.type in ("Enter", "RefEnter")


def IsInWhileLoop(op: Any) -> bool:  # noqa: N802
    """Whether the operation is in a loop."""
    return contexts.enclosing_while(op) is not None


IsInWhileContext = IsInWhileLoop


def IsInCond(op: Any) -> bool:  # noqa: N802
    """Whether the operation is in a branch."""
    return GetContainingCondContext(op._get_control_flow_context()) is not None


def IsCondSwitch(op: Any) -> bool:  # noqa: N802
    """Whether the operation is a Switch of a branch."""
    return IsSwitch(op) and bool(op.outputs) and all(map(_is_of_branch, _consumers(op)))


def IsCondMerge(op: Any) -> bool:  # noqa: N802
    """Whether the operation is a Merge of two branches."""
    return IsMerge(op) and bool(op.inputs) and all(_is_of_branch(each.op) for each in op.inputs)


def IsLoopSwitch(op: Any) -> bool:  # noqa: N802
    """Whether the operation is a Switch of a loop."""
    context = op._get_control_flow_context()
    return IsSwitch(op) and isinstance(context, contexts.WhileContext) and not IsCondSwitch(op)


def IsLoopMerge(op: Any) -> bool:  # noqa: N802
    """Whether the operation is the Merge at a loop's start."""
    context = op._get_control_flow_context()
    return IsMerge(op) and isinstance(context, contexts.WhileContext) and not IsCondMerge(op)


def GetLoopConstantEnter(value: Any) -> Any:  # noqa: N802
    """The Enter that a value comes from unchanged, if it is a constant of the loop; otherwise None."""
    op = value.op
    while op.type in ("RefSwitch", "Switch", "Identity", "RefIdentity") and op.inputs:
        op = op.inputs[0].op
    return op if IsLoopConstantEnter(op) else None


def GetContainingWhileContext(ctxt: Any, stop_ctxt: Any = None) -> Any:  # noqa: N802
    """The innermost loop of a context; None without one, or if `stop_ctxt` is reached before."""
    return _containing(ctxt, contexts.WhileContext, stop_ctxt)


def GetContainingCondContext(ctxt: Any) -> Any:  # noqa: N802
    """The innermost branch of a context, or None."""
    return _containing(ctxt, contexts.CondContext, None)


def GetContainingXLAContext(ctxt: Any) -> Any:  # noqa: N802
    """The innermost context of a compiled cluster, or None."""
    while ctxt is not None and not ctxt.IsXLAContext():
        ctxt = ctxt.outer_context
    return ctxt


def IsContainingContext(ctxt: Any, maybe_containing_ctxt: Any) -> bool:  # noqa: N802
    """Whether the second context is the first, or around it."""
    while ctxt is not maybe_containing_ctxt:
        if ctxt is None:
            return False
        ctxt = ctxt.outer
    return True


def OpInContext(op: Any, ctxt: Any) -> bool:  # noqa: N802
    """Whether the operation is in the context."""
    return IsContainingContext(op._get_control_flow_context(), ctxt)


def TensorInContext(tensor: Any, ctxt: Any) -> bool:  # noqa: N802
    """Whether the operation that produces the tensor is in the context."""
    return OpInContext(tensor.op, ctxt)


def CheckInputFromValidContext(op: Any, input_op: Any) -> None:  # noqa: N802
    """Asserts that an operation outside of a loop takes no value from inside of it.

    Raises:
      ValueError: it does.
    """
    inside = GetContainingWhileContext(GetOutputContext(input_op))
    if inside is None or IsContainingContext(op._get_control_flow_context(), inside):
        return
    if op.type in ("Exit", "RefExit") or IsLoopEnter(op):
        return
    raise ValueError(
        f"Cannot use '{input_op.name}' as input to '{op.name}' because '{input_op.name}' is in a while loop."
    )


def _containing(context: Any, kind: type, stop: Any) -> Any:
    while context is not None and not isinstance(context, kind):
        if context is stop and stop is not None:
            return None
        context = context.outer
    return None if stop is not None and context is stop else context


def _consumers(op: Any) -> list[Any]:
    return [each for output in op.outputs for each in output.consumers()]


def _is_of_branch(op: Any) -> bool:
    context = GetOutputContext(op)
    return isinstance(context, contexts.CondContext)
