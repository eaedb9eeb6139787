"""Which operations wait for which: `no_op`, `group`, `tuple`, and values that wait for operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build import nest
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, device, name_scope
from dtf.build.graph import Operation, Tensor
from dtf.build.sparse import IndexedSlices

__all__ = ["group", "no_op", "tuple"]


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; use it for its control dependencies.

    Returns:
      An Operation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/no_op
    """
    return apply_op("NoOp", name)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that is done when all of `inputs` (operations, tensors, variables, nested) are.

    One NoOp per device gathers the inputs on that device, so that a step needs one message per task instead of one per
    input.

    Args:
      *inputs: operations, tensors, variables, or nested lists of them.
      name: the name of the operation.

    Returns:
      An Operation.

    Raises:
      TypeError: an input is nothing of the kind.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/group
    """
    flat = nest.flatten(list(inputs))
    with name_scope(name, "group_deps", flat) as scope:
        by_device: dict[str, list[Any]] = {}
        for entry in flat:
            if entry is None:
                continue
            if not hasattr(entry, "device"):
                raise TypeError(f"Expected tf.group() expected Tensor objects not None with type '{type(entry)}'")
            by_device.setdefault(entry.device, []).append(entry)
        if not by_device:
            return no_op(scope)
        if len(by_device) == 1:
            [(place, entries)] = by_device.items()
            return _gather(place, entries, scope)
        gathered = [_gather(place, by_device[place], None) for place in sorted(by_device)]
        with control_dependencies(gathered):
            return no_op(scope)


def _gather(place: str, entries: Sequence[Any], name: str | None) -> Operation:
    with control_dependencies(entries), device(place or ""):
        return no_op(name)


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor`, available only when all of `dependencies` are done.

    Raises:
      TypeError: `output_tensor` is neither a tensor nor IndexedSlices.
    """
    with name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope:
        if isinstance(output_tensor, IndexedSlices):
            with colocate_with(output_tensor.op), control_dependencies(dependencies):
                values = _identity(output_tensor.values, scope)
                return IndexedSlices(values, output_tensor.indices, output_tensor.dense_shape)
        tensor = convert_to_tensor(output_tensor)
        with colocate_with(tensor.op), control_dependencies(dependencies):
            return _identity(tensor, scope)


def _identity(tensor: Tensor, name: str | None = None) -> Tensor:
    return apply_op("RefIdentity" if tensor.dtype._is_ref_dtype else "Identity", name, input=tensor)


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The same tensors (None stays None), each available only after all of them.

    Args:
      tensors: tensors or IndexedSlices.
      control_inputs: more operations or tensors to wait for.

    Returns:
      A list like `tensors`.

    Raises:
      ValueError: there is no tensor.
      TypeError: a control input is neither an operation nor a tensor.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/tuple
    """
    with name_scope(name, "tuple", [each for each in tensors if each is not None]):
        tensors = [
            each if each is None or hasattr(each, "op") else convert_to_tensor(each) for each in tensors
        ]
        gates = [each.op for each in tensors if each is not None]
        for entry in control_inputs or []:
            if not isinstance(entry, Operation | Tensor):
                raise TypeError(f"Control input must be Operation or Tensor: {entry}")
            gates.append(entry.op if isinstance(entry, Tensor) else entry)
        if not gates:
            raise ValueError(f"Must have at least one Tensor: {tensors}")
        gate = group(*sorted(set(gates), key=lambda op: op._id))
        return [None if each is None else with_dependencies([gate], each) for each in tensors]


# Choice
