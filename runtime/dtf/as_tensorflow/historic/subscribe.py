"""tensorflow.python.framework.subscribe: side effects, such as logging, that run whenever a tensor is computed.

A subscribed tensor has an Identity of the same value, which waits for the side effects; all consumers of the tensor,
and the operations that wait for it, take that Identity in its place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dtf.build import nest
from dtf.build.graph import Operation, Tensor
from dtf.build.ops.array import identity

__all__ = ["subscribe"]

_SCOPE = "subscription"


def subscribe(tensors: Any, side_effects: Any) -> Any:
    """Adds side effects to tensors.

    Args:
      tensors: a tensor, or lists of them.
      side_effects: a function of a tensor, or a list of them, that returns an operation, a tensor or a list of them.

    Returns:
      The tensors that replace the given ones, in the same structure.

    Raises:
      TypeError: a value is not a tensor, or is not in a list.
    """
    effects = list(side_effects) if isinstance(side_effects, list | tuple) else [side_effects]
    subscribed: list[Tensor] = []
    return _each(tensors, lambda tensor: _subscribe(tensor, effects, subscribed))


def _each(tensors: Any, apply: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(tensors, Tensor):
        return apply(tensors)
    if isinstance(tensors, tuple) and hasattr(tensors, "_fields"):
        return type(tensors)(*(_each(each, apply) for each in tensors))
    if isinstance(tensors, list | tuple):
        return type(tensors)(_each(each, apply) for each in tensors)
    if isinstance(tensors, dict):
        return {key: _each(value, apply) for key, value in tensors.items()}
    raise TypeError(f"subscribe() requires `tensors` to be a Tensor or a structure of them, not {type(tensors)}")


def _subscribe(tensor: Tensor, effects: list[Callable[[Tensor], Any]], done: list[Tensor]) -> Tensor:
    known = _subscription(tensor)
    if known is not None and known is not tensor and any(known is each for each in done):
        return known
    if known is not None:
        source = known.op.inputs[0]
        known.op._add_control_inputs(_made(effects, source))
        done.append(known)
        return known
    if not tensor.op.inputs and not tensor.graph.is_fetchable(tensor):
        return tensor
    consumers = [(op, index) for op in tensor.consumers() for index, each in enumerate(op.inputs) if each is tensor]
    waiting = list(tensor.op._control_outputs)
    graph = tensor.graph
    made = _made(effects, tensor)
    with _beside(tensor), graph.control_dependencies(made), graph.colocate_with(tensor.op):
        result = identity(tensor)
    for op, index in consumers:
        op._update_input(index, result)
    for op in waiting:
        if op not in made and op is not result.op:
            kept = [each for each in op.control_inputs if each is not tensor.op]
            op._remove_all_control_inputs()
            op._add_control_inputs([*kept, result.op])
    done.append(result)
    return result


def _subscription(tensor: Tensor) -> Tensor | None:
    """The Identity of an earlier subscription: the tensor itself, or one made for it."""
    def is_one(op: Operation) -> bool:
        source = op.inputs[0].op.name if op.type == "Identity" and op.inputs else None
        return source is not None and op.name.startswith(f"{source}/{_SCOPE}/Identity")

    if is_one(tensor.op):
        return tensor
    found = [op for op in tensor.consumers() if is_one(op) and op.inputs[0] is tensor]
    return found[0].outputs[0] if found else None


def _made(effects: list[Callable[[Tensor], Any]], tensor: Tensor) -> list[Operation]:
    with _beside(tensor):
        results = nest.flatten([effect(tensor) for effect in effects])
    return [each if isinstance(each, Operation) else each.op for each in results if each is not None]


@contextlib.contextmanager
def _beside(tensor: Tensor) -> Iterator[None]:
    """A block whose operations are in the tensor's loop or branch, and named after it."""
    graph = tensor.graph
    before = graph._get_control_flow_context()
    graph._set_control_flow_context(tensor.op._get_control_flow_context())
    try:
        scope = f"{tensor.op.name}/{_SCOPE}/"
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(scope):
            yield
    finally:
        graph._set_control_flow_context(before)
