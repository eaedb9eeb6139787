"""Gradients of the control flow ops: a branch's gradient is a branch, a loop's is a loop (see `loop_gradients`)."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.graph import Operation
from dtf.build.ops import loop_gradients
from dtf.build.ops.control_flow_context import CondContext, WhileContext, add_back_edge, switch_ref_or_tensor
from dtf.build.sparse import IndexedSlices
from dtf.wire import dtypes

not_differentiable("NoOp", "Assert", "Abort", "ControlTrigger", "LoopCond", "RefSelect", "ToBool", "FakeParam")
# Calls on the way are opened before the walk (`function_calls`), so none of them needs a gradient.
not_differentiable("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase")
not_differentiable("PartitionedCall", "StatefulPartitionedCall")


@gradient("Switch", "RefSwitch")
def switch(op: Operation, *grads: Any) -> list[Any]:
    """The gradient for a branch's input comes from the side that was taken. Of a loop: one more turn of the backward
    loop."""
    context = op._get_control_flow_context()
    if isinstance(context, CondContext):
        if grads[1 - context.branch] is None:
            if op.inputs[0].dtype == dtypes.resource and grads[context.branch] is not None:
                grad = _dense(grads[context.branch])
                return [apply_op("Merge", "cond_resource_grad", inputs=[grad, grad])[0], None]
            return [None, None]
        return [apply_op("Merge", "cond_grad", inputs=[_dense(grad) for grad in grads])[0], None]
    if isinstance(context, WhileContext):
        backward = _backward_loop()
        assert backward is not None
        merges = backward.grad_state.switch_merges
        if op in merges:
            if grads[1] is not None:
                add_back_edge(merges[op], _dense(grads[1]), check_shape=False)
            return [None, None]
        if grads[0] is None:
            return [None, None]
        grad = _dense(grads[0])
        merges[op] = apply_op("Merge", "b_switch", inputs=[grad, grad])[0]
        return [merges[op], None]
    sides = [
        apply_op("Switch", None, data=_dense(grad), pred=op.inputs[1])[side] for side, grad in enumerate(grads)
    ]
    return [apply_op("Merge", None, inputs=sides)[0], None]


@gradient("Merge", "RefMerge")
def merge(op: Operation, grad: Any, _: Any) -> list[Any]:
    """The gradient goes to the side that supplied the value."""
    source = op.inputs[0].op
    context = source._get_control_flow_context()
    grad = _dense(grad)
    if source.type in ("Enter", "RefEnter", "NextIteration", "RefNextIteration"):
        backward = _backward_loop()
        assert backward is not None and backward.pivot is not None
        return list(switch_ref_or_tensor(grad, backward.pivot))
    if isinstance(context, CondContext):
        pred = context.pred
        backward = _backward_loop()
        if backward is not None:
            pred = backward.grad_state.real_value(pred)
        return list(switch_ref_or_tensor(grad, pred, "cond_grad"))
    chosen = [apply_op("Equal", None, x=op.outputs[1], y=index) for index in range(len(op.inputs))]
    return [apply_op("Switch", None, data=grad, pred=each)[1] for each in chosen]


@gradient("Exit", "RefExit")
def exit(op: Operation, grad: Any) -> list[Any]:
    """The gradient enters the backward loop."""
    backward = get_default_graph()._get_control_flow_context()
    if not backward.back_prop:
        return [None]
    if op._get_control_flow_context().grad_state is not None:
        raise TypeError(f"Second-order gradient for while loops not supported ({op.name}).")
    return [loop_gradients.enter_gradient(backward, grad)]


@gradient("Enter", "RefEnter")
def enter(op: Operation, grad: Any) -> list[Any]:
    """The gradient leaves the backward loop; the gradient of a loop constant is summed over the iterations."""
    backward = _backward_loop()
    if backward is None or not backward.back_prop:
        return [grad]
    if op.get_attr("is_constant"):
        return [backward.grad_state.accumulate(op, grad)]
    return [loop_gradients.leave_gradient(backward, grad)]


@gradient("NextIteration", "RefNextIteration")
def next_iteration(op: Operation, grad: Any) -> list[Any]:
    """The former iteration gets what the later one gives."""
    return [grad]


def _backward_loop() -> Any:
    """The context of the backward loop that is being built, or None."""
    context = get_default_graph()._get_control_flow_context()
    loop = None if context is None else context.while_context()
    return None if loop is None or loop.grad_state is None else loop


def _dense(grad: Any) -> Any:
    """Switch and Merge take one tensor; slices are made whole first."""
    return convert_to_tensor(grad) if isinstance(grad, IndexedSlices) else grad
