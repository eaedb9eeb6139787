"""Gradients: the table of gradient functions and the reverse walk over the graph, `tf.gradients`.

A gradient function takes an operation and one gradient per output (a Tensor or IndexedSlices) and returns one per
input, None where nothing flows. The gradients of an op family are in `ops/<family>_grad.py`; these modules are
imported when gradients are first requested. `ops.control_flow_grad` handles gradients around loops; the walk calls it
at each node.

    @gradient("Sin")
    def sin(op, grad):
        return [grad * tf.cos(op.inputs[0])]

    not_differentiable("Shape")
"""

from __future__ import annotations

import contextlib
import enum
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, get_default_graph, name_scope
from dtf.build.function_calls import is_call, open_call
from dtf.build.graph import Operation, Tensor
from dtf.build.ops import load_gradients
from dtf.build.ops.control_flow_context import is_loop_exit
from dtf.build.ops.loop_gradients import LoopGradients, is_loop_switch
from dtf.build.sparse import IndexedSlices, convert_to_tensor_or_indexed_slices
from dtf.wire import dtypes
from dtf.wire.registry import Table

__all__ = [
    "AggregationMethod", "NoGradient", "NotDifferentiable", "RegisterGradient", "UnconnectedGradients", "gradients",
    "no_gradient",
]  # fmt: skip

GradientFunction = Callable[..., Any]

#: Op type (or name of an override) -> gradient function; None for an op that has no gradient to give.
table: Table[GradientFunction | None] = Table("gradient")
gradient = table

_SCOPE = "gradients"
_CUSTOM_KEY = ("__custom_gradients",)


class RegisterGradient:
    """A decorator: the function computes the gradients of an op, from the operation and the gradients of its outputs.

    Args:
      op_type: the op type, or a name for `Graph.gradient_override_map`.

    Raises:
      TypeError: `op_type` is not a string.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: GradientFunction) -> GradientFunction:
        load()
        if self._op_type in table:
            raise KeyError(f"Registering two gradient with name '{self._op_type}'!")
        table.add(self._op_type, f)
        return f


class AggregationMethod:
    """How the gradients of a tensor with several uses are added; all give AddN here."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(enum.Enum):
    """The result of `gradients` for an x that no y depends on."""

    NONE = "none"
    ZERO = "zero"


def not_differentiable(*op_types: str) -> None:
    """Says that nothing flows back through ops of these types.

    Raises:
      TypeError: a type is not a string.
    """
    if not all(isinstance(op_type, str) for op_type in op_types):
        raise TypeError("op_type must be a string")
    for op_type in op_types:
        table.add(op_type, None)


NotDifferentiable = not_differentiable
NoGradient = not_differentiable
no_gradient = not_differentiable


def load() -> None:
    """Fills the table."""
    load_gradients()


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = _SCOPE,
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """The derivatives of the sum of `ys` with respect to each of `xs`.

    Args:
      ys: a tensor or a list of them.
      xs: a tensor or variable, or a list of them.
      grad_ys: the gradient of each y; None, or None in the list, means ones.
      name: the name scope of the new operations.
      colocate_gradients_with_ops: put them on the devices of the operations that they are the gradients of.
      gate_gradients: finish all gradients of an operation before any of them is used.
      aggregation_method: one of AggregationMethod.
      stop_gradients: tensors that count as constants.
      unconnected_gradients: None or zeros for an x that no y depends on.

    Returns:
      One Tensor or IndexedSlices per x, of the shape of x, or None.

    Raises:
      LookupError: an operation in between has no gradient function; the message names it.
      TypeError: a `grad_ys` does not have the kind of type of its y.
      ValueError: a gradient function or an argument has the wrong number of entries.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/gradients
    """
    load()
    ys, xs, stops = _as_list(ys), _as_list(xs), _as_list(stop_gradients)
    given = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(given) != len(ys):
        raise ValueError(f"Passed {len(given)} grad_ys for {len(ys)} ys")
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid aggregation_method specified {aggregation_method}.")
    with name_scope(name, _SCOPE, [*ys, *xs, *stops, *given]) as scope:
        targets = [convert_to_tensor_or_indexed_slices(y, name="y") for y in ys]
        sources = [_source(x) for x in xs]
        constants = [_source(stop) for stop in stops]
        place = colocate_with if colocate_gradients_with_ops else _anywhere
        pairs = zip(given, targets, strict=True)
        seeds = [_seed_gradient(seed, y, index, place) for index, (seed, y) in enumerate(pairs)]
        if len(targets) > 1:
            targets = [apply_op("Identity", None, input=y) if y.consumers() else y for y in targets]
        _open_calls(targets, sources)
        walk = _Walk(targets, sources, constants, place, gate_gradients, scope)
        walk.run(targets, seeds)
        found = [walk.gradient_of(x) for x in sources]
        if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
            found = [_zeros_like(x) if grad is None else grad for x, grad in zip(sources, found, strict=True)]
    return found


class _Walk:
    """One reverse walk. `_grads` holds, for each tensor, the gradients that have arrived so far."""

    def __init__(
        self,
        targets: Sequence[Tensor],
        sources: Sequence[Tensor],
        constants: Sequence[Tensor],
        place: Callable[[Any], Any],
        gate: bool,
        scope: str,
    ) -> None:
        self._grads: dict[Tensor, list[Any]] = {}
        self._place = place
        self._gate = gate
        self._scope = scope
        self._targets = dict.fromkeys(y.op for y in targets)
        #: Operation on a path from a source to a target -> how many consumers it still waits for.
        self._pending = dict.fromkeys(_between(self._targets, [x.op for x in sources]), 0)
        self._loops = LoopGradients(self._pending)
        for op in self._pending:
            for tensor in op._inputs:
                if tensor.op in self._pending:
                    self._pending[tensor.op] += 1
        self._stop_ops = {stop.op for stop in constants}
        for x in sources:
            if all(self._pending.get(tensor.op, 0) <= 0 for tensor in x.op._inputs):
                self._stop_ops.add(x.op)

    def run(self, targets: Sequence[Tensor], seeds: Sequence[Any]) -> None:
        """Sends `seeds`, the gradients of the targets, back to the sources."""
        for y, seed in zip(targets, seeds, strict=True):
            self.send(y, seed)
        ready = deque(op for op in self._targets if self._pending.get(op) == 0)
        ready.extend(op for op in self._loops.start(self._pending, self._targets, self) if op not in ready)
        while ready:
            op = ready.popleft()
            with self._place(op):
                self._visit(op)
            for tensor in op._inputs:
                ready.extend(self._count_down(tensor.op))
        self._loops.finish()

    def send(self, tensor: Tensor, grad: Any) -> None:
        """Adds a gradient to the gradients collected for `tensor`."""
        self._grads.setdefault(tensor, []).append(grad)

    def has_gradient(self, tensor: Tensor) -> bool:
        """Whether a gradient has arrived at `tensor`."""
        return bool(self._grads.get(tensor))

    def is_trainable(self, tensor: Tensor) -> bool:
        """Whether the values of `tensor` can have a gradient."""
        return _carries_gradient(tensor)

    def gradient_of(self, tensor: Tensor) -> Any:
        """The sum of the gradients collected for `tensor`, or None."""
        with self._place(tensor.op), self._loops.inside(tensor.op, before=True):
            return self._added_up(tensor)

    def _count_down(self, op: Operation) -> list[Operation]:
        """Notes that one more consumer of `op` is done; returns what can be visited because of it."""
        if op not in self._pending:
            return []
        self._pending[op] -= 1
        # The Switch of a loop is visited twice: from the exit, to start the backward loop, and from the body.
        if self._pending[op] and not (self._pending[op] > 0 and is_loop_switch(op)):
            return []
        return self._loops.ready_exits(op, self) if is_loop_exit(op) else [op]

    def _visit(self, op: Operation) -> None:
        with self._loops.inside(op, before=True):
            out_grads = [self._added_up(tensor) for tensor in op.outputs]
        if op in self._stop_ops or all(grad is None for grad in out_grads):
            return
        function = self._function(op)
        if function is None:
            return
        with self._loops.inside(op, before=False):
            for index, (tensor, grad) in enumerate(zip(op.outputs, out_grads, strict=True)):
                if grad is None and _carries_gradient(tensor) and op.type != "IdentityN":
                    out_grads[index] = self._loops.zeros_like(op, index)
            in_grads = self._called(function, op, out_grads)
        for tensor, grad in zip(op.inputs, in_grads, strict=True):
            if grad is None:
                continue
            if isinstance(grad, Tensor) and tensor.dtype != dtypes.resource:
                self._check_shape(op, tensor, grad)
            self.send(tensor, grad)

    def _called(self, function: GradientFunction, op: Operation, out_grads: list[Any]) -> list[Any]:
        with get_default_graph().name_scope(op.name + "_grad"):
            in_grads = function(op, *out_grads)
            in_grads = list(in_grads) if isinstance(in_grads, list | tuple) else [in_grads]
            if len(in_grads) != len(op.inputs):
                raise ValueError(
                    f"Num gradients {len(in_grads)} generated for op {op.name} (op type: {op.type}) "
                    f"do not match num inputs {len(op.inputs)}"
                )
            # Gradients that lead to no source are dropped before the gate, which would make the others wait for them.
            # The first layer's gradient for its images costs as much as for its weights.
            in_grads = [
                grad if tensor.op in self._pending else None for tensor, grad in zip(op.inputs, in_grads, strict=True)
            ]
            if self._gate and sum(grad is not None for grad in in_grads) > 1:
                in_grads = _gated(in_grads)
        return in_grads

    def _check_shape(self, op: Operation, tensor: Tensor, grad: Tensor) -> None:
        try:
            grad.set_shape(tensor.shape)
        except ValueError:
            raise ValueError(
                f"Incompatible shapes between op input and calculated input gradient. Forward operation: {op.name}. "
                f"Input: {tensor.name}. Original input shape: {tensor.shape}. "
                f"Calculated input gradient shape: {grad.shape}"
            ) from None

    def _function(self, op: Operation) -> GradientFunction | None:
        name = op.type
        if "_gradient_op_type" in op._attrs:
            name = op.get_attr("_gradient_op_type").decode()
            own = custom_gradients_of(op.graph.outermost).get(name)
            if own is not None:
                return own
        if name not in table:
            raise LookupError(f"No gradient defined for operation '{op.name}' (op type: {op.type})")
        return table[name]

    def _added_up(self, tensor: Tensor) -> Any:
        grads = self._grads.get(tensor)
        if not grads:
            return None
        if len(grads) > 1:
            with get_default_graph().name_scope(self._scope):
                grads[:] = [add_gradients(grads)]
        return grads[0]


def custom_gradients_of(graph: Any) -> dict[str, GradientFunction]:
    """Gradient functions that belong to one graph, by the name that `gradient_override_map` gives to its ops."""
    entries = graph.get_collection_ref(_CUSTOM_KEY)
    if not entries:
        entries.append({})
    return entries[0]


def add_gradients(grads: Sequence[Any]) -> Any:
    """The sum of several gradients of one tensor; IndexedSlices only if all of them are."""
    if all(isinstance(grad, IndexedSlices) for grad in grads):
        values = [grad.values for grad in grads]
        indices = [grad.indices for grad in grads]
        if len({tensor.dtype for tensor in indices}) > 1:
            indices = [
                tensor if tensor.dtype == dtypes.int64 else apply_op("Cast", None, x=tensor, DstT=dtypes.int64)
                for tensor in indices
            ]
        return IndexedSlices(
            apply_op("ConcatV2", "concat", values=values, axis=0),
            apply_op("ConcatV2", "concat", values=indices, axis=0),
            grads[0].dense_shape,
        )
    by_device: dict[str, list[Tensor]] = {}
    for grad in grads:
        tensor = convert_to_tensor(grad)
        by_device.setdefault(tensor.device, []).append(tensor)
    sums = [_sum(by_device[device]) for device in sorted(by_device)]
    return sums[0] if len(sums) == 1 else apply_op("AddN", None, inputs=sums)


def _sum(tensors: list[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0]
    with colocate_with(tensors[0].op, ignore_existing=True):
        return apply_op("AddN", None, inputs=tensors)


def _between(to_ops: Iterable[Operation], from_ops: Iterable[Operation]) -> dict[Operation, None]:
    """The operations on a path from a source to a target, targets first."""
    reached = set()
    queue = deque(from_ops)
    targets = dict.fromkeys(to_ops)
    while queue:
        op = queue.popleft()
        if op in reached:
            continue
        reached.add(op)
        if op in targets and not any(tensor.consumers() for tensor in op.outputs):
            continue
        for tensor in op.outputs:
            if _carries_gradient(tensor):
                queue.extend(tensor._consumers)
    between: dict[Operation, None] = {}
    queue = deque(targets)
    while queue:
        op = queue.popleft()
        if op in reached and op not in between:
            between[op] = None
            queue.extend(tensor.op for tensor in op._inputs)
    return between


def _open_calls(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Puts the bodies of the functions between sources and targets into the graph; the walk goes through them."""
    while True:
        between = _between([y.op for y in targets], [x.op for x in sources])
        calls = [op for op in between if is_call(op) and "_gradient_op_type" not in op._attrs]
        if not calls:
            return
        for op in calls:
            open_call(op)


def _carries_gradient(tensor: Tensor) -> bool:
    base = tensor.dtype.base_dtype
    return base.is_floating or base.is_complex or base in (dtypes.resource, dtypes.variant)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _source(x: Any) -> Tensor:
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor) and handle.dtype == dtypes.resource:
        return handle
    return convert_to_tensor(x, as_ref=True, name="x")


def _anywhere(op: Any) -> Any:
    return contextlib.nullcontext()


def _seed_gradient(seed: Any, y: Any, index: int, place: Callable[[Any], Any]) -> Any:
    dtype = y.dtype.base_dtype
    if seed is None:
        if dtype.is_complex:
            raise TypeError(f"Gradients of complex tensors must set grad_ys (y.dtype = {dtype.name})")
        with place(y.op):
            from dtf.build.ops import array

            shape = array.shape(y)
            with name_scope(f"grad_ys_{index}") as scope:
                return apply_op("Fill", scope, dims=shape, value=convert_to_tensor(1, dtype))
    seed = convert_to_tensor_or_indexed_slices(seed, name=f"grad_y_{index}")
    for kind in ("is_floating", "is_integer", "is_complex"):
        if getattr(dtype, kind) and not getattr(seed.dtype, kind):
            raise TypeError(
                f"Gradient type {seed.dtype.name} generated for tensor {y} with type {dtype.name} must be {kind[3:]}."
            )
    return seed


def _zeros_like(x: Tensor) -> Tensor:
    if x.dtype == dtypes.resource:
        x = apply_op("ReadVariableOp", None, resource=x, dtype=x.op.get_attr("dtype"))
    return apply_op("ZerosLike", "zeros_like", x=x)


def _gated(grads: list[Any]) -> list[Any]:
    from dtf.build.ops.ordering import tuple as tuple_of

    gated = iter(tuple_of([grad for grad in grads if grad is not None]))
    return [None if grad is None else next(gated) for grad in grads]
