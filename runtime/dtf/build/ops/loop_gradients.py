"""Gradients around loops: for each `tf.while_loop`, a second loop that runs the iterations backwards.

Owns `LoopGradients`, which the reverse walk of `gradients` calls at each node, and `LoopGradient`, one per loop. The
forward loop gets a counter of its iterations, and pushes each value that the backward loop needs on a stack. The
backward loop counts down and pops. A loop-invariant value enters the backward loop directly; an accumulator sums its
gradient.

The nodes have TensorFlow's layout. Source: Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning" (EuroSys
2018, https://arxiv.org/abs/1805.01772), section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies
from dtf.build.graph import Operation, Tensor
from dtf.build.ops.control_flow_context import (
    CondContext,
    WhileContext,
    enclosing_while,
    is_loop_constant_enter,
    is_loop_exit,
    output_context,
    switch_ref_or_tensor,
)
from dtf.build.sparse import IndexedSlices
from dtf.wire import dtypes


def is_loop_switch(op: Operation) -> bool:
    """Whether `op` is the Switch of a loop variable."""
    return op.type in ("Switch", "RefSwitch") and op._inputs[1].op.type == "LoopCond"


class LoopGradients:
    """The loops that one call of `tf.gradients` goes through."""

    def __init__(self, pending: dict[Operation, int]) -> None:
        self._loops: dict[WhileContext, LoopGradient] = {}
        for op in list(pending):
            if is_loop_exit(op):
                self._add_loop(op, pending)

    def _add_loop(self, loop_exit: Operation, pending: dict[Operation, int]) -> None:
        forward = enclosing_while(loop_exit)
        if forward is None or forward in self._loops:
            return
        outer_loop = None if forward.outer is None else forward.outer.while_context()
        loop = LoopGradient(forward, self._loops.get(outer_loop) if outer_loop is not None else None)
        self._loops[forward] = loop
        # The backward loop contains all loop variables, even if the target depends on only one.
        for tensor in loop.exits:
            pending.setdefault(tensor.op, 0)

    def of(self, op: Operation, before: bool) -> LoopGradient | None:
        """The loop whose backward loop the gradient of `op` belongs in.

        Args:
          before: returns the gradients that arrive at `op`; gradients of an exit arrive outside of the loop.
        """
        if before and is_loop_exit(op):
            around = op._get_control_flow_context().outer
            forward = None if around is None else around.while_context()
        else:
            forward = enclosing_while(op)
        return None if forward is None else self._loops.get(forward)

    @contextmanager
    def inside(self, op: Operation, before: bool) -> Any:
        """A block in the backward loop for `op`, if there is one."""
        loop = self.of(op, before)
        if loop is None:
            yield
            return
        loop.backward.enter()
        try:
            yield
        finally:
            loop.backward.exit()

    def start(self, pending: dict[Operation, int], targets: Iterable[Operation], walk: Any) -> list[Operation]:
        """The exits that no target depends on, with zeros for gradients; the walk starts at them too."""
        unused: list[Tensor] = []
        for loop in self._loops.values():
            for tensor in loop.exits:
                if pending[tensor.op] == 0:
                    loop.pending_exits -= 1
                    if tensor.op not in targets:
                        loop.unused_exits.append(tensor)
            if loop.pending_exits == 0:
                unused.extend(loop.unused_exits)
        for tensor in unused:
            if walk.is_trainable(tensor):
                walk.send(tensor, self._zeros_for_exit(tensor))
        return [tensor.op for tensor in unused]

    def ready_exits(self, op: Operation, walk: Any) -> list[Operation]:
        """The ops to visit after the exit `op` has all its gradients: none until all exits of the loop have theirs."""
        loop = self.of(op, before=False)
        if loop is None:
            raise ValueError(
                f"no gradient passes the loop that {op.name} leaves: its nodes came from a GraphDef or a function "
                "without the loop's context; build the loop with tf.while_loop in this graph"
            )
        loop.deferred_exits.append(op.outputs[0])
        loop.pending_exits -= 1
        if loop.pending_exits:
            return []
        used = [tensor for tensor in loop.deferred_exits if walk.has_gradient(tensor)]
        unused = loop.unused_exits + [tensor for tensor in loop.deferred_exits if tensor not in used]
        if used:
            for tensor in unused:
                if walk.is_trainable(tensor):
                    walk.send(tensor, self._zeros_for_exit(tensor))
        return [tensor.op for tensor in used + unused]

    def _zeros_for_exit(self, tensor: Tensor) -> Tensor:
        from dtf.build.ops import filling

        forward = tensor.op._get_control_flow_context()
        around = None if forward.outer is None else forward.outer.while_context()
        outer = None if around is None else self._loops.get(around)
        if tensor.shape.is_fully_defined():
            if outer is None:
                return filling.zeros(tensor.shape, tensor.dtype)
            with _entered(outer.backward):
                return filling.zeros(tensor.shape, tensor.dtype)
        if outer is None:
            return filling.zeros_like(tensor, optimize=False)
        with _entered(forward.outer):
            shape = _shape_of(tensor)
        saved = outer.save(shape)
        with _entered(outer.backward):
            return filling.zeros(outer.restore(saved, shape), tensor.dtype)

    def zeros_like(self, op: Operation, index: int) -> Any:
        """Zeros for an output of `op` that no gradient has reached; called inside the backward loop, if any."""
        from dtf.build.ops import filling

        if is_loop_switch(op):
            return None
        loop = self.of(op, before=False)
        if loop is None:
            return zeros_outside_loops(op, index)
        tensor = op.outputs[index]
        context = op._get_control_flow_context()
        is_untaken_branch = op.type in ("Switch", "RefSwitch")
        if tensor.shape.is_fully_defined():
            zeros = constant(0, tensor.dtype.base_dtype, tensor.shape)
            if is_untaken_branch:
                pred = loop.saved.get(context.pred.name, context.pred)
                zeros = switch_ref_or_tensor(zeros, pred)[1 - context.branch]
            return zeros
        if is_untaken_branch:
            with _entered(context.outer):
                tensor = switch_ref_or_tensor(op._inputs[0], context.pred)[1 - context.branch]
                shape = _shape_of(tensor)
            tensor.op._set_control_flow_context(context)
            shape.op._set_control_flow_context(context)
        else:
            with _entered(context):
                shape = _shape_of(tensor)
        loop.backward.exit()
        saved = loop.save(shape, is_untaken_branch)
        loop.backward.enter()
        return filling.zeros(loop.restore(saved, shape, is_untaken_branch), tensor.dtype)

    def finish(self) -> None:
        """Closes the backward loops of variables that do not depend on their former value."""
        from dtf.build.ops import filling

        for loop in self._loops.values():
            for merge in loop.switch_merges.values():
                entering, around = merge.op._inputs
                if entering is not around:
                    continue
                if merge.shape.is_fully_defined():
                    with _entered(loop.backward):
                        following = _next(constant(0, merge.dtype, merge.shape))
                else:
                    with _entered(loop.backward.outer):
                        zeros = filling.zeros(_shape_of(entering.op._inputs[0]), merge.dtype)
                    with _entered(loop.backward):
                        following = _next(zeros)
                merge.op._update_input(1, following)


class LoopGradient:
    """One forward loop and its backward loop.

    Attributes:
      forward: the context of the forward loop.
      backward: the context of the backward loop.
      exits: the exits of the forward loop as it was, without its counter.
      saved: name of a forward tensor -> its value in the backward loop.
      switch_merges: Switch of a forward loop variable -> the Merge that starts the backward loop for it.
    """

    def __init__(self, forward: WhileContext, outer: LoopGradient | None) -> None:
        self.forward = forward
        self.outer = outer
        self.exits = list(forward.loop_exits)
        self.pending_exits = len(self.exits)
        self.deferred_exits: list[Tensor] = []
        self.unused_exits: list[Tensor] = []
        self.saved: dict[str, Tensor] = {}
        self.switch_merges: dict[Operation, Tensor] = {}
        self._forward_sync: Operation | None = None
        self._backward_sync: Operation | None = None
        around = outer.forward if outer is not None else forward.outer
        with _entered(around):
            count, self._forward_index = self._add_forward_counter()
        if outer is None:
            with _entered(around):
                self.backward = self._new_context()
                self._backward_index = self._add_backward_counter(count)
        else:
            around.values.add(count.name)
            saved_count = outer.save(count)
            with _entered(outer.backward):
                self.backward = self._new_context()
                self._backward_index = self._add_backward_counter(outer.restore(saved_count, count))

    def _new_context(self) -> WhileContext:
        forward = self.forward
        return WhileContext(
            forward.parallel_iterations, forward.back_prop, forward.swap_memory, forward.name, grad_state=self
        )

    def _add_forward_counter(self) -> tuple[Tensor, Tensor]:
        """Returns the number of iterations, outside, and the counter's NextIteration."""
        loop = self.forward
        start = constant(0, name="f_count")
        if self.outer is not None:
            # The pushes of one run of this loop must precede the pushes of the next run.
            start.op._add_control_input(self.outer._forward_index.op._inputs[0].op)
        with _entered(loop):
            entered = _enter(start, loop, "f_count")
            merged = apply_op("Merge", "Merge", inputs=[entered, entered])[0]
            switch = apply_op("Switch", "Switch", data=merged, pred=loop.pivot)
            following = _next(apply_op("AddV2", "Add", x=switch[1], y=1))
            merged.op._update_input(1, following)
            return _exit(switch[0], loop, "f_count"), following

    def _add_backward_counter(self, count: Tensor) -> Tensor:
        """Returns the counter's NextIteration."""
        loop = self.backward
        one = constant(1, name="b_count")
        with _entered(loop):
            entered = _enter(count, loop, "b_count")
            merged = apply_op("Merge", "Merge", inputs=[entered, entered])[0]
            loop.pivot_for_pred = merged
            going_on = apply_op("GreaterEqual", None, x=merged, y=one)
            loop.pivot = apply_op("LoopCond", "b_count", input=going_on)
            switch = apply_op("Switch", "Switch", data=merged, pred=loop.pivot)
            index = apply_op("Sub", None, x=switch[1], y=one)
            loop.pivot_for_body = index
            following = _next(index)
            merged.op._update_input(1, following)
            final = _exit(switch[0], loop, "b_count")
        if self.outer is not None:
            # The pops of one run of this loop must precede the pops of the next run.
            self.outer.backward_sync()._add_control_input(final.op)
        return following

    def forward_sync(self) -> Operation:
        """The ops that the next forward iteration waits for, besides the counter."""
        if self._forward_sync is None:
            with control_dependencies(None):
                self._forward_sync = apply_op("ControlTrigger", "f_sync")
            self._forward_sync._set_control_flow_context(self.forward)
            self._forward_index.op._add_control_input(self._forward_sync)
        return self._forward_sync

    def backward_sync(self) -> Operation:
        """The ops that the next backward iteration waits for, besides the counter."""
        if self._backward_sync is None:
            with control_dependencies(None):
                self._backward_sync = apply_op("ControlTrigger", "b_sync")
            self._backward_sync._set_control_flow_context(self.backward)
            self._backward_index.op._add_control_input(self._backward_sync)
        return self._backward_sync

    def save(self, tensor: Tensor, is_untaken_branch: bool = False) -> Tensor:
        """Makes the forward loop push `tensor` in each iteration; returns the handle of the stack."""
        with control_dependencies(None):
            with colocate_with(tensor.op):
                stack = apply_op("StackV2", "f_acc", max_size=constant(-1), elem_type=tensor.dtype.base_dtype)
            inside = self.forward.add_value(stack)
            context = output_context(tensor.op)
            # The shape for an untaken branch is made on the other one.
            with _entered(context.outer if is_untaken_branch else context):
                push = apply_op(
                    "StackPushV2", None, handle=inside, elem=tensor, swap_memory=self.forward.swap_memory
                ).op
            if context is self.forward:
                self._forward_index.op._add_control_input(push)
            else:
                push._set_control_flow_context(context)
                self.forward_sync()._add_control_input(push)
            push._add_control_input(self._forward_index.op._inputs[0].op)
        return stack

    def restore(self, stack: Tensor, tensor: Tensor, is_untaken_branch: bool = False) -> Tensor:
        """The value that was pushed for `tensor` in the matching iteration."""
        branch = _branch_between(tensor.op, stack.op)
        with control_dependencies(None), _entered(self.backward):
            handle = stack
            if branch is not None:
                side = 1 - branch.branch if is_untaken_branch else branch.branch
                handle = switch_ref_or_tensor(stack, self._saved_pred(branch))[side]
            popped = apply_op("StackPopV2", None, handle=handle, elem_type=tensor.dtype.base_dtype)
            popped.set_shape(tensor.shape)
        # Also with one iteration at a time: a pop without consumers in the loop would not be waited for.
        self.backward_sync()._add_control_input(popped.op)
        return popped

    def _saved_pred(self, branch: CondContext) -> Tensor:
        loop: LoopGradient | None = self
        while loop is not None:
            if branch.pred.name in loop.saved:
                return loop.saved[branch.pred.name]
            loop = loop.outer
        return branch.pred

    def real_value(self, tensor: Tensor) -> Tensor:
        """The forward loop's value of `tensor` in the iteration whose gradient is being computed."""
        if tensor.name not in self.saved:
            self.saved[tensor.name] = self._find_value(tensor)
        return self.saved[tensor.name]

    def _find_value(self, tensor: Tensor) -> Tensor:
        loop: LoopGradient = self
        while True:
            entered = _constant_enter(tensor)
            if entered is None:
                break
            tensor = entered.op._inputs[0]
            if loop.outer is None:
                # Invariant in all enclosing loops.
                return self.backward.add_value(tensor)
            loop = loop.outer
        known = constant_value(tensor) if tensor.op.type == "Const" else None
        if known is not None:
            return constant(known, tensor.dtype)
        self.backward.exit()
        stack = loop.save(tensor)
        self.backward.enter()
        value = loop.restore(stack, tensor)
        return value if loop is self else self.backward.add_value(value)

    def accumulate(self, op: Operation, grad: Any) -> Tensor:
        """The sum over all iterations of `grad`, the gradient of the constant Enter `op`; called in the loop."""
        from dtf.build.ops import filling

        loop = self.backward
        grad = convert_to_tensor(grad)
        loop.exit()
        if grad.shape.is_fully_defined():
            with _entered(loop.outer):
                start = constant(0, grad.dtype, grad.shape, name="b_acc")
        else:
            start = filling.zeros(self._outside_shape(op._inputs[0]), grad.dtype)
        loop.enter()
        entered = _enter(start, loop, "b_acc")
        merged = apply_op("Merge", "b_acc", inputs=[entered, entered])[0]
        switch = apply_op("Switch", "Switch", data=merged, pred=loop.pivot)
        following = _next(apply_op("AddV2", "Add", x=switch[1], y=grad))
        merged.op._update_input(1, following)
        result = _exit(switch[0], loop, "b_acc")
        if op._inputs[0].dtype != dtypes.resource:
            result.set_shape(op._inputs[0].shape)
        return result

    def _outside_shape(self, tensor: Tensor) -> Tensor:
        """The shape of a tensor outside of the forward loop, in the context around the backward loop."""
        if self.outer is None:
            with _entered(self.backward.outer):
                return _shape_of(tensor)
        with _entered(self.forward.outer):
            shape = _shape_of(tensor)
        saved = self.outer.save(shape)
        with _entered(self.backward.outer):
            return self.outer.restore(saved, shape)


def zeros_outside_loops(op: Operation, index: int) -> Tensor:
    """Zeros for an output of `op` that no gradient has reached, where no loop is concerned."""
    from dtf.build.ops import filling

    tensor = op.outputs[index]
    context = op._get_control_flow_context()
    if op.type not in ("Switch", "RefSwitch") or not isinstance(context, CondContext):
        if tensor.dtype == dtypes.resource:
            return filling.zeros(apply_op("VariableShape", None, input=tensor), _handle_dtype(tensor))
        return filling.zeros_like(tensor, optimize=False)
    # Zeros for the branch that was not taken must be alive where the gradient of the other branch is dead.
    other = apply_op("Switch", "Switch", data=op._inputs[0], pred=context.pred)[1 - context.branch]
    pivot = apply_op("Identity", None, input=other)
    if tensor.dtype == dtypes.resource:
        with control_dependencies([pivot]):
            return filling.zeros(apply_op("VariableShape", None, input=other), _handle_dtype(tensor))
    shape = _shape_of(other)
    with control_dependencies([pivot]):
        return filling.zeros(shape, tensor.dtype)


def _handle_dtype(handle: Tensor) -> Any:
    op = handle.op
    while op.type != "VarHandleOp":
        op = op._inputs[0].op
    return op.get_attr("dtype")


def _branch_between(inner: Operation, outer: Operation) -> CondContext | None:
    """The innermost branch that `inner` is in and `outer` is not."""
    stop = outer._get_control_flow_context()
    context = inner._get_control_flow_context()
    while context is not None and context is not stop:
        if isinstance(context, CondContext):
            return context
        context = context.outer
    return None


def _constant_enter(tensor: Tensor) -> Tensor | None:
    """The constant Enter that `tensor` is a mere copy of."""
    while tensor.op.type in ("Switch", "RefSwitch", "Identity", "RefIdentity"):
        tensor = tensor.op._inputs[0]
    return tensor if is_loop_constant_enter(tensor.op) else None


@contextmanager
def _entered(context: Any) -> Any:
    """A block in `context`, or where the caller is if that is None."""
    if context is None:
        yield
        return
    context.enter()
    try:
        yield
    finally:
        context.exit()


def _enter(data: Tensor, loop: WhileContext, name: str) -> Tensor:
    loop.values.add(data.name)
    entered = apply_op(
        "Enter", name, data=data, frame_name=loop.name, is_constant=False, parallel_iterations=loop.parallel_iterations
    )
    entered.set_shape(data.shape)
    loop.loop_enters.append(entered)
    return entered


def _next(data: Tensor) -> Tensor:
    return apply_op("NextIteration", None, data=data)


def _exit(data: Tensor, loop: WhileContext, name: str | None = None) -> Tensor:
    result = apply_op("Exit", name, data=data)
    loop.loop_exits.append(result)
    if loop.outer is not None:
        loop.outer.values.add(result.name)
    return result


def _shape_of(tensor: Tensor) -> Tensor:
    if tensor.dtype == dtypes.resource:
        return apply_op("VariableShape", None, input=tensor)
    return apply_op("Shape", None, input=tensor)


def enter_gradient(backward: WhileContext, grad: Any) -> Tensor:
    """The gradient of an Exit: `grad` enters the backward loop."""
    return _enter(convert_to_tensor(grad) if isinstance(grad, IndexedSlices) else grad, backward, "b_exit")


def leave_gradient(backward: WhileContext, grad: Any) -> Tensor:
    """The gradient of an Enter of a loop variable: `grad` leaves the backward loop."""
    return _exit(convert_to_tensor(grad), backward)
