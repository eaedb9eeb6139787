"""Control flow contexts: the rules for operations made inside a branch or a loop.

Owns `CondContext` and `WhileContext`, and how outside values enter: through a Switch into a branch, through a constant
Enter into a loop. The public functions that build branches and loops are in `control_flow`. A graph knows its current
context and shows it each new operation (`add_op`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build import composites, nest
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, get_default_graph
from dtf.build.graph import Operation, Tensor
from dtf.build.graph_keys import GraphKeys
from dtf.build.ops.ordering import with_dependencies
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.build.tensor_spec import TypeSpec
from dtf.wire.tensor_shape import TensorShape

_EXITS = ("Exit", "RefExit")


def is_loop_exit(op: Operation) -> bool:
    """Whether `op` hands a value out of a loop."""
    return op.type in _EXITS


def is_loop_constant_enter(op: Operation) -> bool:
    """Whether `op` passes a loop-invariant value into a loop."""
    return op.type in ("Enter", "RefEnter") and op.get_attr("is_constant")


def output_context(op: Operation) -> Any:
    """The context of the outputs of `op`: the context around the loop if `op` is an exit."""
    context = op._get_control_flow_context()
    return context.outer if context is not None and is_loop_exit(op) else context


def enclosing_while(op: Operation) -> Any:
    """The innermost WhileContext that `op` is in, or None."""
    context = op._get_control_flow_context()
    return None if context is None else context.while_context()


class CondContext:
    """One branch of a conditional.

    Args:
      pred: the scalar bool.
      pivot: a value that is live only if this branch is taken; operations without inputs wait for it.
      branch: 1 for the true branch, 0 for the false branch.
    """

    def __init__(self, pred: Tensor, pivot: Tensor, branch: int, name: str = "cond_text") -> None:
        graph = get_default_graph()
        self.outer: Any = graph._get_control_flow_context()
        # The context that was current at each `enter` that is still open.
        self._around: list[Any] = []
        self.name = graph.unique_name(name)
        self.pred = pred
        self.pivot = pivot
        self.branch = branch
        self.grad_state: Any = None
        self.values: set[str] = {pred.name, pivot.name}
        self.external: dict[str, Tensor] = {}
        self.nested: list[Any] = []
        if self.outer is not None:
            self.outer.nested.append(self)

    def enter(self) -> None:
        """Makes this the context of new operations."""
        graph = get_default_graph()
        self._around.append(graph._get_control_flow_context())
        graph._set_control_flow_context(self)

    def exit(self) -> None:
        """Puts the context around this one back."""
        get_default_graph()._set_control_flow_context(self._around.pop())

    def while_context(self) -> Any:
        """The innermost loop around this branch."""
        return None if self.outer is None else self.outer.while_context()

    def control_pivot(self) -> Tensor | None:
        """The pivot."""
        return self.pivot

    def is_inside(self, context: Any) -> bool:
        """Whether this context is `context` or inside of it."""
        return self is context or self.outer is not None and self.outer.is_inside(context)

    def add_value(self, tensor: Tensor) -> Tensor:
        """The form of `tensor` in this branch: the tensor itself, or the output of a Switch."""
        if tensor.name in self.values:
            return self.external.get(tensor.name, tensor)
        result = tensor
        self.values.add(tensor.name)
        if self.outer is not None:
            result = self.outer.add_value(tensor)
            self.values.add(result.name)
            self.external[result.name] = result
        with control_dependencies(None):
            result = switch_ref_or_tensor(result, self.pred)[self.branch]
        result.graph.prevent_fetching(result.op)
        result.graph.prevent_feeding(result)
        result.op._set_control_flow_context(self)
        _mark_as_seen(self, [result.name])
        self.external[tensor.name] = result
        return result

    def add_op(self, op: Operation) -> None:
        """Adds a new operation: routes its inputs, and makes it wait for the pivot if it has none."""
        if op._inputs:
            for index, tensor in enumerate(op.inputs):
                inside = self.add_value(tensor)
                if inside is not tensor:
                    op._update_input(index, inside)
            _remove_external_control_inputs(self, op)
        else:
            _remove_external_control_inputs(self, op)
            if not any(_is_inside(control_input, self) for control_input in op.control_inputs):
                op._add_control_input(self.pivot.op)
        _mark_as_seen(self, [tensor.name for tensor in op.outputs])
        _protect(op, self)

    def build_branch(self, function: Callable[[], Any]) -> tuple[Any, list[Any]]:
        """Calls `function` in this branch.

        Returns:
          The returned value (None without one), and its flat list of tensors of this branch.
        """
        result = function()
        if result is None:
            return None, []
        return result, [self._output(leaf) for leaf in nest.flatten(result)]

    def _output(self, leaf: Any) -> Any:
        if isinstance(leaf, Operation):
            return with_dependencies([leaf], self.pivot)
        parts = [self._output_tensor(convert_to_tensor(part)) for part in composites.parts_of(leaf)]
        return composites.with_parts(leaf, parts)

    def _output_tensor(self, tensor: Tensor) -> Tensor:
        if tensor.name not in self.values:
            # A function that returns what was made outside, unchanged.
            return self.add_value(tensor)
        return self.external.get(tensor.name, tensor)

    def exit_result(self, results: list[Any]) -> None:
        """Makes the results known to the context around."""
        if self.outer is not None:
            self.outer.values.update(
                part.name for leaf in results for part in composites.parts_of(leaf) if isinstance(part, Tensor)
            )


class WhileContext:
    """One loop. `build_loop` adds its nodes; the graph calls `add_op` for the nodes of the condition and the body."""

    def __init__(
        self,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        maximum_iterations: Any = None,
        grad_state: Any = None,
    ) -> None:
        if not isinstance(parallel_iterations, int) or parallel_iterations <= 0:
            raise ValueError(f"`parallel_iterations` must be a positive integer: {parallel_iterations}")
        graph = get_default_graph()
        self.outer: Any = graph._get_control_flow_context()
        # The context that was current at each `enter` that is still open.
        self._around: list[Any] = []
        self.name = graph.unique_name(name)
        self.parallel_iterations = parallel_iterations
        self.back_prop = back_prop
        self.swap_memory = swap_memory
        self.maximum_iterations = maximum_iterations
        self.grad_state = grad_state
        self.values: set[str] = set()
        self.external: dict[str, Tensor] = {}
        self.pivot: Tensor | None = None
        self.pivot_for_pred: Tensor | None = None
        self.pivot_for_body: Tensor | None = None
        self.loop_enters: list[Tensor] = []
        self.loop_exits: list[Tensor] = []
        self.nested: list[Any] = []
        if self.outer is not None and grad_state is None:
            self.outer.nested.append(self)

    def enter(self) -> None:
        """Makes this the context of new operations."""
        graph = get_default_graph()
        self._around.append(graph._get_control_flow_context())
        graph._set_control_flow_context(self)

    def exit(self) -> None:
        """Puts the context around this one back."""
        get_default_graph()._set_control_flow_context(self._around.pop())

    def while_context(self) -> Any:
        """This one."""
        return self

    def control_pivot(self) -> Tensor | None:
        """A value that is live in each iteration that reaches the point where the loop is being built."""
        return self.pivot_for_body if self.pivot_for_body is not None else self.pivot_for_pred

    def is_inside(self, context: Any) -> bool:
        """Whether this context is `context` or inside of it."""
        return self is context or self.outer is not None and self.outer.is_inside(context)

    def add_value(self, tensor: Tensor) -> Tensor:
        """The form of `tensor` in this loop: the tensor itself, or the output of a constant Enter."""
        if tensor.name in self.values or tensor.op._get_control_flow_context() is self:
            return self.external.get(tensor.name, tensor)
        self.values.add(tensor.name)
        saved = self._saved_by_forward_loop(tensor)
        if saved is not None:
            self.external[tensor.name] = saved
            return saved
        result = tensor if self.outer is None else self.outer.add_value(tensor)
        with control_dependencies(None):
            entered = enter_frame(result, self.name, True, self.parallel_iterations)
        entered.graph.prevent_feeding(entered)
        self._fix_enters([entered])
        self.values.add(entered.name)
        self.external[tensor.name] = entered
        return entered

    def _saved_by_forward_loop(self, tensor: Tensor) -> Tensor | None:
        """For the loop of a gradient: the value that `tensor` of the forward loop had in the matching iteration."""
        current = get_default_graph()._get_control_flow_context()
        gradient_loop = None if current is None else current.while_context()
        if gradient_loop is None or gradient_loop.grad_state is None:
            return None
        state = gradient_loop.grad_state
        context = output_context(tensor.op)
        forward = None if context is None else context.while_context()
        return state.real_value(tensor) if forward is state.forward else None

    def add_op(self, op: Operation) -> None:
        """Adds a new operation: routes its inputs, and makes it wait for the pivot if no input starts it."""
        if op._inputs:
            for index, tensor in enumerate(op.inputs):
                inside = self.add_value(tensor)
                if inside is not tensor:
                    op._update_input(index, inside)
            external = _remove_external_control_inputs(self, op)
            if not op._control_inputs and all(is_loop_constant_enter(tensor.op) for tensor in op._inputs):
                # Constants of the loop are live even in iterations that never happen.
                self._tie_to_pivot(op)
        else:
            external = _remove_external_control_inputs(self, op)
            if not op._control_inputs:
                self._tie_to_pivot(op)
        self.values.update(tensor.name for tensor in op.outputs)
        # A control input from outside comes in as a data input does.
        sources = [source.outputs[0] for source in external if source.outputs]
        if sources:
            with control_dependencies(None):
                self.enter()
                op._add_control_inputs([apply_op("Identity", None, input=source).op for source in sources])
                self.exit()
        _protect(op, self)

    def _tie_to_pivot(self, op: Operation) -> None:
        pivot = self.control_pivot()
        if pivot is not None:
            op._add_control_input(pivot.op)

    def build_loop(
        self,
        pred: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Any,
        shape_invariants: Any,
        return_same_structure: bool,
    ) -> Any:
        """Adds the nodes of `while pred(*loop_vars): loop_vars = body(*loop_vars)`.

        Returns:
          The loop variables after the loop, in their structure.

        Raises:
          TypeError, ValueError: the body's results differ from the loop variables in structure, dtypes or shapes.
        """
        flat = [convert_to_tensor(part) for part in composites.flatten(loop_vars)]
        self.enter()
        try:
            exits, body_result = self._build(pred, body, loop_vars, flat, shape_invariants)
        finally:
            self.exit()
        if self.outer is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, self)
        else:
            self.outer.values.update(tensor.name for tensor in exits)
        # As TensorFlow does: in the structure of what the body returned.
        packed = composites.pack(body_result if nest.is_nested(body_result) else [body_result], exits)
        if return_same_structure or not isinstance(packed, list | tuple):
            return packed
        return packed[0] if len(packed) == 1 else packed

    def _build(
        self, pred: Any, body: Any, loop_vars: Any, flat: list[Tensor], shape_invariants: Any
    ) -> tuple[list[Tensor], Any]:
        real = [self.outer.add_value(tensor) for tensor in flat] if self.outer is not None else flat
        with control_dependencies(None):
            enters = [enter_frame(tensor, self.name, False, self.parallel_iterations, False) for tensor in real]
            for tensor in enters:
                tensor.graph.prevent_feeding(tensor)
        _set_invariants(nest.flatten(loop_vars), flat, real, enters, shape_invariants)
        self._fix_enters(enters)
        self.values = {tensor.name for tensor in enters}
        self.loop_enters = enters
        merges = [merge([tensor, tensor])[0] for tensor in enters]
        self.pivot_for_pred = merges[0]
        condition = convert_to_tensor(pred(*composites.pack(loop_vars, merges)))
        self.pivot = apply_op("LoopCond", "LoopCond", input=condition)
        switches = [switch_ref_or_tensor(tensor, self.pivot) for tensor in merges]
        for_body = [_identity(switch[1]) for switch in switches]
        self.pivot_for_body = for_body[0]
        result = body(*composites.pack(loop_vars, for_body))
        if not nest.is_nested(result):
            result = [result]
        expected = list(loop_vars) if isinstance(loop_vars, tuple | list) else loop_vars
        nest.assert_same_structure(expected, list(result) if isinstance(result, tuple | list) else result)
        for before, after in zip(nest.flatten(loop_vars), nest.flatten(result), strict=True):
            if len(composites.parts_of(before)) != len(composites.parts_of(after)):
                raise TypeError(f"A loop variable enters the loop as {before} and leaves its body as {after}.")
        for merged, part in zip(merges, composites.flatten(result), strict=True):
            add_back_edge(merged, convert_to_tensor(part, merged.dtype.base_dtype))
        self.loop_exits = [exit_frame(switch[0]) for switch in switches]
        return self.loop_exits, result

    def _fix_enters(self, enters: Sequence[Tensor]) -> None:
        """Gives Enter nodes this context, and the control inputs that are legal around the loop."""
        graph = get_default_graph()
        for tensor in enters:
            op = tensor.op
            kept = [
                control_input
                for control_input in graph._control_dependencies.for_inputs([op._inputs[0].op])
                if self._is_around(output_context(control_input))
            ]
            op._set_control_flow_context(self)
            op._add_control_inputs(kept)
            graph._control_dependencies.record(op)
            if self.outer is not None and is_loop_constant_enter(op._inputs[0].op):
                pivot = self.outer.control_pivot()
                if pivot is not None:
                    op._add_control_input(pivot.op)

    def _is_around(self, context: Any) -> bool:
        """Whether `context` is around this loop, and not outside of the loop around this one."""
        outer_loop = None if self.outer is None else self.outer.while_context()
        around = self.outer
        while around is not context:
            if around is None or around is outer_loop:
                return False
            around = around.outer
        return True


def switch_ref_or_tensor(data: Tensor, pred: Tensor, name: str = "Switch") -> Any:
    """(output_false, output_true) of a Switch for `data`; references remain references."""
    with colocate_with(data.op, ignore_existing=True):
        return apply_op("RefSwitch" if data.dtype._is_ref_dtype else "Switch", name, data=data, pred=pred)


def merge(inputs: Sequence[Tensor]) -> Any:
    """(output, value_index) of the input that is live."""
    is_ref = all(tensor.dtype._is_ref_dtype for tensor in inputs)
    return apply_op("RefMerge" if is_ref else "Merge", "Merge", inputs=list(inputs))


def enter_frame(
    data: Tensor, frame_name: str, is_constant: bool, parallel_iterations: int, keep_shape: bool = True
) -> Tensor:
    """`data` inside the loop `frame_name`."""
    entered = apply_op(
        "RefEnter" if data.dtype._is_ref_dtype else "Enter",
        None,
        data=data,
        frame_name=frame_name,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
    )
    if keep_shape:
        entered.set_shape(data.shape)
    return entered


def exit_frame(data: Tensor) -> Tensor:
    """`data` outside of its loop."""
    return apply_op("RefExit" if data.dtype._is_ref_dtype else "Exit", None, data=data)


def add_back_edge(merged: Tensor, value: Tensor, check_shape: bool = True) -> Tensor:
    """Makes `value` what the Merge output `merged` is in the next iteration.

    Raises:
      ValueError: the static shape of `value` is less definite than the shape of `merged`.
    """
    following = apply_op(
        "RefNextIteration" if value.dtype._is_ref_dtype else "NextIteration", None, data=value
    )
    if check_shape and not _is_at_least(following.shape, merged.shape):
        entered = merged.op._inputs[0]
        raise ValueError(
            f"The shape for {merged.name} is not an invariant for the loop. It enters the loop with shape "
            f"{entered.shape}, but has shape {following.shape} after one iteration. Provide shape invariants using "
            "either the `shape_invariants` argument of tf.while_loop or set_shape() on the loop variables."
        )
    merged.op._update_input(1, following)
    return following


def _set_invariants(
    leaves: list[Any], flat: list[Tensor], real: list[Tensor], enters: list[Tensor], shape_invariants: Any
) -> None:
    """Gives the Enter nodes the shapes that hold in all iterations: those of the values, unless others are given.

    The number of elements of a SparseTensor may always change.
    """
    if shape_invariants is None:
        shapes = [
            each
            for leaf in leaves
            for each in (
                composites.part_shapes(leaf, leaf.shape) if isinstance(leaf, SparseTensor)
                else [None] * len(composites.parts_of(leaf))
            )
        ]  # fmt: skip
        for tensor, entered, known in zip(real, enters, shapes, strict=True):
            entered.set_shape(tensor.shape if known is None else known)
        return
    given = _flat_shapes(shape_invariants)
    if len(given) != len(leaves):
        raise ValueError(f"{len(given)} shape invariants were given for {len(leaves)} loop variables.")
    invariants = [
        each
        for leaf, shape in zip(leaves, given, strict=True)
        for each in composites.part_shapes(leaf, TensorShape(shape))
    ]
    for value, entered, shape in zip(flat, enters, invariants, strict=True):
        if not _is_at_least(value.shape, shape):
            raise ValueError(
                f"The shape invariant specified for {value.name} is not compatible with the initial shape of the loop "
                f"variable. It enters the loop with shape {value.shape}, but the specified shape invariant is {shape}."
            )
        entered.set_shape(shape)


def _flat_shapes(shapes: Any) -> list[Any]:
    """The leaves of a structure of TensorShapes; a TensorShape can be iterated, but is a leaf."""
    if isinstance(shapes, TensorShape) or shapes is None:
        return [shapes]
    if isinstance(shapes, TypeSpec):
        return [shapes.shape]  # type: ignore[attr-defined]
    return [leaf for child in shapes for leaf in _flat_shapes(child)]


def _is_at_least(shape: TensorShape, general: TensorShape) -> bool:
    """Whether every tensor of `shape` is one of the shape `general`."""
    if general.ndims is None:
        return True
    if shape.ndims != general.ndims:
        return False
    return all(wide is None or wide == size for size, wide in zip(shape.as_list(), general.as_list(), strict=True))


def _identity(value: Any) -> Any:
    if isinstance(value, IndexedSlices):
        return IndexedSlices(
            _identity(value.values),
            _identity(value.indices),
            None if value.dense_shape is None else _identity(value.dense_shape),
        )
    if hasattr(value, "flow"):
        return _with_flow(value, _identity(value.flow))
    value = convert_to_tensor(value)
    if value.dtype._is_ref_dtype:
        return apply_op("RefIdentity", None, input=value)
    return apply_op("Identity", None, input=value)


def _with_flow(array: Any, flow: Tensor) -> Any:
    from dtf.build.ops import tensor_array

    return tensor_array.build_ta_with_new_flow(array, flow)


def _is_inside(op: Operation, context: Any) -> bool:
    own = op._get_control_flow_context()
    return own is not None and own.is_inside(context)


def _mark_as_seen(context: Any, names: list[str]) -> None:
    while context is not None:
        context.values.update(names)
        context = context.outer


def _remove_external_control_inputs(context: Any, op: Operation) -> list[Operation]:
    """Takes away the control inputs that are outside of the innermost loop, and returns them."""
    loop = context.while_context()
    if loop is None:
        return []
    external = []
    for control_input in op.control_inputs:
        own = output_context(control_input)
        if own is None or own.while_context() is not loop:
            external.append(control_input)
    if external:
        internal = [control_input for control_input in op.control_inputs if control_input not in external]
        op._remove_all_control_inputs()
        op._add_control_inputs(internal)
    return external


def _protect(op: Operation, context: Any) -> None:
    """Forbids feeding and fetching tensors that are live only in some iterations or branches."""
    if context.outer is not None or not is_loop_exit(op):
        op.graph.prevent_fetching(op)
        for tensor in op.outputs:
            op.graph.prevent_feeding(tensor)
