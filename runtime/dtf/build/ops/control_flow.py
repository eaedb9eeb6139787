"""Choice and repetition: `cond`, `case`, `while_loop`, `Assert`, and the shape rules of their ops.

Owns the public functions. `control_flow_context` handles operations made inside a branch or a loop; their gradients
are in `control_flow_grad`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtf.build import composites, nest
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, get_default_graph, name_scope
from dtf.build.graph import Operation, Tensor
from dtf.build.graph_keys import GraphKeys
from dtf.build.ops.control_flow_context import CondContext, WhileContext
from dtf.build.ops.control_flow_context import merge as _merge_tensors
from dtf.build.ops.ordering import no_op
from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unchanged, unknown
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "Assert", "case", "cond", "while_loop",
]  # fmt: skip


def switch(data: Any, pred: Any, name: str | None = None) -> Any:
    """(output_false, output_true): `data` on the side that `pred` chooses, a dead tensor on the other."""
    if isinstance(data, IndexedSlices | SparseTensor):
        with name_scope(name, "Switch", [pred]):
            sides = [None if part is None else switch(part, pred) for part in _parts(data)]
            kind: type[Any] = type(data)
            return tuple(kind(*(pair and pair[side] for pair in sides)) for side in (0, 1))
    data = convert_to_tensor(data, name="data", as_ref=True)
    return apply_op("Switch", name, data=data, pred=pred)


def _parts(value: Any) -> tuple[Any, ...]:
    """The tensors of IndexedSlices or of a SparseTensor, in the order of the constructor's arguments."""
    if isinstance(value, IndexedSlices):
        return value.values, value.indices, value.dense_shape
    return value.indices, value.values, value.dense_shape


def merge(inputs: Sequence[Any], name: str | None = None) -> Any:
    """(output, value_index) of the one input that is live.

    Raises:
      ValueError: an input is None.
    """
    if any(each is None for each in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    for kind in (IndexedSlices, SparseTensor):
        if any(isinstance(each, kind) for each in inputs):
            return _merge_parts(kind, inputs, name)
    tensors = [convert_to_tensor(each, as_ref=True) for each in inputs]
    is_ref = all(tensor.dtype._is_ref_dtype for tensor in tensors)
    return apply_op("RefMerge" if is_ref else "Merge", name, inputs=tensors)


def _all_rows(value: Any) -> IndexedSlices:
    tensor = convert_to_tensor(value)
    sizes = apply_op("Shape", input=tensor)
    rows = apply_op("Range", start=0, limit=apply_op("Gather", params=sizes, indices=0), delta=1)
    return IndexedSlices(tensor, rows, sizes)


def _merge_parts(kind: type[Any], inputs: Sequence[Any], name: str | None) -> Any:
    """`merge` of IndexedSlices (tensors among them have all rows) or of SparseTensors."""
    with name_scope(name, "Merge"):
        if kind is IndexedSlices:
            inputs = [each if isinstance(each, IndexedSlices) else _all_rows(each) for each in inputs]
        columns = list(zip(*(_parts(each) for each in inputs), strict=True))
        merged = [None if any(part is None for part in column) else merge(column) for column in columns]
        index = next(pair for pair in merged if pair is not None)[1]
        return kind(*(pair and pair[0] for pair in merged)), index


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Returns the result of `true_fn` if `pred` is true, else the result of `false_fn`.

    Operations made inside a function run only if it is chosen; those made outside always run.

    Args:
      pred: a scalar bool tensor.
      true_fn, false_fn: functions without arguments; both return tensors in the same structure, or operations.
      strict: return a list or tuple of one entry unchanged, not as its entry.
      fn1, fn2: old names of the functions.

    Returns:
      The result of the chosen function, in its structure.

    Raises:
      TypeError: `pred` is a Python bool, a function cannot be called, or the dtypes differ.
      ValueError: the functions return different structures, or nothing.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/cond
    """
    true_fn = fn1 if true_fn is None else true_fn
    false_fn = fn2 if false_fn is None else false_fn
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    with name_scope(name, "cond", [pred]):
        pivots = switch(pred, pred)
        pivot_true = apply_op("Identity", "switch_t", input=pivots[1])
        pivot_false = apply_op("Identity", "switch_f", input=pivots[0])
        pred = apply_op("Identity", "pred_id", input=pred)
        for tensor in (*pivots, pivot_true, pivot_false, pred):
            tensor.op.graph.prevent_fetching(tensor.op)
        if_true, if_false = CondContext(pred, pivot_true, 1), CondContext(pred, pivot_false, 0)
        original, true_results = _branch(if_true, true_fn, "true_fn")
        other, false_results = _branch(if_false, false_fn, "false_fn")
        if if_true.outer is None:
            for context in (if_true, if_false):
                get_default_graph().add_to_collection(GraphKeys.COND_CONTEXT, context)
        _check_branches(original, true_results, other, false_results)
        merged = [_merge_results(pair) for pair in zip(false_results, true_results, strict=True)]
        structure = original if nest.is_nested(original) else [original]
        packed = nest.pack_sequence_as(structure, merged)
    if strict and nest.is_nested(original):
        return packed
    return packed[0] if isinstance(packed, list | tuple) and len(packed) == 1 else packed


def _branch(context: CondContext, function: Callable[[], Any], what: str) -> Any:
    context.enter()
    try:
        original, results = context.build_branch(function)
        if original is None:
            raise ValueError(f"{what} must have a return value.")
        context.exit_result(results)
    finally:
        context.exit()
    return original, results


def _alone(result: Any) -> Any:
    """The entry of a list or tuple of one entry, in any depth; anything else itself."""
    while type(result) in (list, tuple) and len(result) == 1:
        result = result[0]
    return result


def _check_branches(original: Any, true_results: list[Any], other: Any, false_results: list[Any]) -> None:
    if len(true_results) != len(false_results):
        raise ValueError(f"true_fn and false_fn must return the same number of tensors: {original} and {other}.")
    original, other = _alone(original), _alone(other)
    try:
        nest.assert_same_structure(original, other)
    except (ValueError, TypeError) as error:
        raise type(error)(f"Incompatible return types of true_fn and false_fn: {error}") from None
    for first, second in zip(true_results, false_results, strict=True):
        if isinstance(first, Operation) or isinstance(second, Operation):
            continue
        if first.dtype.base_dtype != second.dtype.base_dtype:
            raise ValueError(
                "Outputs of true_fn and false_fn must have the same type: "
                f"{first.dtype.name}, {second.dtype.name}"
            )


def _merge_results(pair: Any) -> Any:
    false_result, true_result = pair
    if isinstance(true_result, Operation) or isinstance(false_result, Operation):
        raise TypeError("An operation and a tensor were returned from true_fn and false_fn.")
    halves = composites.parts_of(false_result), composites.parts_of(true_result)
    if isinstance(true_result, IndexedSlices) and len(halves[0]) != len(halves[1]):
        halves = halves[0][:2], halves[1][:2]  # only one branch knows the dense shape
    if len(halves[0]) != len(halves[1]):
        raise TypeError(f"true_fn and false_fn must return the same kind of value: {true_result}, {false_result}")
    merged = [_merge_tensors([false, true])[0] for false, true in zip(*halves, strict=True)]
    result = composites.with_parts(true_result, merged)
    if isinstance(result, SparseTensor):
        shapes = false_result.get_shape(), true_result.get_shape()
        if shapes[0].ndims is not None and shapes[0].ndims == shapes[1].ndims:
            sizes = zip(*(each.as_list() for each in shapes), strict=True)
            result._partial_shape = TensorShape([one if one == other else None for one, other in sizes])
    return result


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Returns the result of the function of the first true predicate.

    Args:
      pred_fn_pairs: a list of (scalar bool tensor, function), or a dict of them, which is in no order.
      default: the function if none is true; without it that is an error when it runs.
      exclusive: make it an error when it runs that several are true.

    Returns:
      The result of the chosen function, in its structure.

    Raises:
      TypeError, ValueError: the pairs have another form.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/case
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in pred_fn_pairs must be a 2-tuple. Received {pair}.")
        if not isinstance(pair[0], Tensor) or pair[0].dtype != dtypes.bool:
            raise TypeError(f"pred must be Tensor of type bool: {pair[0]}")
        if not callable(pair[1]):
            raise TypeError(f"fn for pred {pair[0].name} must be callable.")
    if not pairs and default is None:
        raise ValueError("At least one pair or a default is needed.")
    predicates = [pair[0] for pair in pairs]
    with name_scope(name, "case", predicates):
        if default is None:
            *pairs, (last, action) = pairs
            default = _guarded(predicates, last, action)
        if not pairs:
            return default()
        checks = [_at_most_one(predicates)] if exclusive else []
        function = default
        for predicate, action in reversed(pairs):
            function = functools.partial(cond, predicate, action, function, strict)
        with control_dependencies(checks):
            return function()


def _guarded(predicates: list[Tensor], last: Tensor, action: Callable[[], Any]) -> Callable[[], Any]:
    def guarded() -> Any:
        words = "Input error: None of conditions evaluated as True: " + ", ".join(p.name for p in predicates)
        with control_dependencies([Assert(last, [words])]):
            return action()

    return guarded


def _at_most_one(predicates: list[Tensor]) -> Operation:
    flags = apply_op("Cast", None, x=apply_op("Pack", "stack", values=predicates), DstT=dtypes.int32)
    true_count = apply_op("Sum", "num_true_conds", input=flags, reduction_indices=[0])
    words = "Input error: exclusive=True: more than 1 conditions evaluated as True: "
    return Assert(
        apply_op("Less", "at_most_one_true_cond", x=true_count, y=2),
        [words + ", ".join(predicate.name for predicate in predicates)],
    )


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` is true.

    Args:
      cond: from the loop variables to a scalar bool tensor.
      body: a function from the loop variables to new ones, in the same structure and with the same dtypes.
      loop_vars: a list or tuple, nested, of tensors and TensorArrays.
      shape_invariants: shapes that hold in all iterations; by default the shapes of `loop_vars`.
      parallel_iterations: how many iterations may be under way at once.
      back_prop: whether gradients are wanted.
      swap_memory: accepted; dtf does not swap memory.
      maximum_iterations: an upper bound on the iterations.
      return_same_structure: return a list of one variable unchanged, not as its entry.

    Returns:
      The loop variables after the last iteration, in their structure.

    Raises:
      TypeError, ValueError: functions or variables have the wrong form, dtypes or shapes.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/while_loop
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if not loop_vars:
        raise ValueError("No loop variables provided")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    with name_scope(name, "while", nest.flatten(loop_vars)):
        if maximum_iterations is None:
            context = WhileContext(parallel_iterations, back_prop, swap_memory)
            return context.build_loop(cond, body, loop_vars, shape_invariants, return_same_structure)
        limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
        if limit.shape.ndims not in (None, 0):
            raise ValueError(f"maximum_iterations must be a scalar, saw shape: {limit.shape}")
        counter = convert_to_tensor(0, limit.dtype, name="iteration_counter")

        def counted_cond(i: Tensor, *values: Any) -> Tensor:
            return apply_op("LogicalAnd", None, x=apply_op("Less", None, x=i, y=limit), y=cond(*values))

        def counted_body(i: Tensor, *values: Any) -> Any:
            result = body(*values)
            return [apply_op("AddV2", "add", x=i, y=1), *(result if isinstance(result, list | tuple) else [result])]

        context = WhileContext(parallel_iterations, back_prop, swap_memory, maximum_iterations=maximum_iterations)
        invariants = None if shape_invariants is None else [TensorShape([]), *shape_invariants]
        results = context.build_loop(counted_cond, counted_body, [counter, *loop_vars], invariants, True)[1:]
        if len(results) == 1 and not return_same_structure:
            return results[0]
        return nest.pack_sequence_as(loop_vars, nest.flatten(results))


def Assert(
    condition: TensorLike, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails with InvalidArgumentError and shows `data` if `condition` is false.

    Args:
      condition: a scalar bool tensor.
      data: tensors to print.
      summarize: how many elements of each; 3 by default.

    Returns:
      An Operation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/debugging/Assert
    """
    with name_scope(name, "Assert", [condition, *data]):
        tensors = [convert_to_tensor(each) for each in data]
        if all(tensor.dtype in (dtypes.string, dtypes.int32) for tensor in tensors):
            return apply_op("Assert", "Assert", condition=condition, data=list(data), summarize=summarize)
        condition = convert_to_tensor(condition, name="Condition")

        def fail() -> Operation:
            return apply_op("Assert", "Assert", condition=condition, data=tensors, summarize=summarize)

        return cond(condition, no_op, fail, name="AssertGuard").op


shape_rule("NoOp", "Assert", "Abort", "ControlTrigger")(no_outputs)
shape_rule("Exit", "RefExit", "NextIteration", "RefNextIteration")(unchanged)
shape_rule("Switch", "RefSwitch")(unchanged)
shape_rule("LoopCond", "ToBool")(scalar)
shape_rule("FakeParam")(unknown)
shape_rule("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase")(unknown)
shape_rule("PartitionedCall", "StatefulPartitionedCall")(unknown)


@shape_rule("Enter", "RefEnter")
def _enter_shape(op: Operation) -> list[TensorShape]:
    # A loop variable may change its shape; a constant of the loop may not.
    return [op.inputs[0].shape if op.get_attr("is_constant") else TensorShape(None)]


@shape_rule("Merge", "RefMerge")
def _merge_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    for tensor in op.inputs[1:]:
        shape = shape.most_specific_compatible_shape(tensor.shape)
    return [shape, TensorShape([])]


@shape_rule("RefSelect")
def _ref_select_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[1].shape
    for tensor in op.inputs[2:]:
        shape = shape.most_specific_compatible_shape(tensor.shape)
    return [shape]
