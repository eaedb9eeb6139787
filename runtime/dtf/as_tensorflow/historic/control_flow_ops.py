"""tensorflow.python.ops.control_flow_ops: its non-public names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.as_tensorflow.historic.control_flow_contexts import (
    ControlFlowContext,
    XLAControlFlowContext,
    from_control_flow_context_def,
)
from dtf.as_tensorflow.historic.layer_utils import smart_cond
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.ops.control_flow_context import switch_ref_or_tensor as _SwitchRefOrTensor  # noqa: N812
from dtf.build.ops.ordering import with_dependencies
from dtf.build.sparse import IndexedSlices, SparseTensor

__all__ = [
    "ControlFlowContext", "XLAControlFlowContext", "_SwitchRefOrTensor", "from_control_flow_context_def",
    "get_enclosing_xla_context", "smart_cond", "with_dependencies",
    "_Enter", "_Identity", "_NextIteration",
]  # fmt: skip


def get_enclosing_xla_context() -> Any:
    """The innermost context of a compiled cluster that new operations are in, or None."""
    context = get_default_graph()._get_control_flow_context()
    while context is not None and not context.IsXLAContext():
        context = context.outer_context
    return context


def _Identity(data: Any, name: str | None = None) -> Any:  # noqa: N802
    """`data` itself as a tensor of its own; a variable's reference stays a reference."""
    return _by_parts(data, lambda part: apply_op(_for_ref("Identity", part), name, input=part))


def _NextIteration(data: Any, name: str | None = None) -> Any:  # noqa: N802
    """`data` in the next iteration of the loop."""
    return _by_parts(data, lambda part: apply_op(_for_ref("NextIteration", part), name, data=part))


def _Enter(  # noqa: N802
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`data` inside the frame of a loop.

    Args:
      use_ref: keep a variable's reference.
      use_input_shape: give the result the static shape of `data`.
    """
    attrs = {"frame_name": frame_name, "is_constant": is_constant, "parallel_iterations": parallel_iterations}

    def enter(part: Any) -> Any:
        result = apply_op(_for_ref("Enter", part) if use_ref else "Enter", name, data=part, **attrs)
        if use_input_shape:
            result.set_shape(part.get_shape())
        return result

    return _by_parts(data, enter)


def _for_ref(op_type: str, tensor: Any) -> str:
    return f"Ref{op_type}" if tensor.dtype._is_ref_dtype else op_type


def _by_parts(data: Any, make: Callable[[Any], Any]) -> Any:
    """`make` of a tensor, or of each tensor of IndexedSlices and SparseTensors."""
    if isinstance(data, IndexedSlices):
        shape = None if data.dense_shape is None else make(data.dense_shape)
        return IndexedSlices(make(data.values), make(data.indices), shape)
    if isinstance(data, SparseTensor):
        return SparseTensor(make(data.indices), make(data.values), make(data.dense_shape))
    return make(convert_to_tensor(data, as_ref=True))
