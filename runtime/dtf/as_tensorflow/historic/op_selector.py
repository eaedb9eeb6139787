"""tensorflow.python.ops.op_selector: walks over the operations of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dtf.build.graph import Graph, Operation, Tensor

__all__ = [
    "UnliftableError", "check_graphs", "concatenate_unique", "get_backward_walk_ops", "get_consuming_ops",
    "get_generating_ops", "get_tensors", "get_unique_graph", "graph_inputs", "is_differentiable", "is_iterable",
    "make_list_of_op", "make_list_of_t", "show_path",
]  # fmt: skip


class UnliftableError(Exception):
    """An operation cannot be moved into another graph."""


def is_differentiable(op: Any) -> bool:
    """Whether a gradient function is registered for the operation's type."""
    from dtf.as_tensorflow.historic.ops import gradient_registry

    try:
        return gradient_registry.lookup(op.type) is not None
    except LookupError:
        return False


def is_iterable(obj: Any) -> bool:
    """Whether `for each in obj` works; it does not for tensors."""
    if isinstance(obj, Tensor):
        return False
    try:
        iter(obj)
    except Exception:
        return False
    return True


def concatenate_unique(la: list[Any], lb: Iterable[Any]) -> list[Any]:
    """Adds the entries of `lb` that `la` lacks to `la`."""
    known = set(la)
    for each in lb:
        if each not in known:
            la.append(each)
            known.add(each)
    return la


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph.

    Raises:
      TypeError: it is not a graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"Expected a graph, got: {type(graph)}")
    return [tensor for op in graph.get_operations() for tensor in op.outputs]


def get_unique_graph(tops: Any, check_types: Any = None, none_if_empty: bool = False) -> Graph | None:
    """The graph of operations and tensors.

    Args:
      tops: a graph, an operation, a tensor, or a list of operations and tensors.
      check_types: the types that are allowed.
      none_if_empty: None for an empty list, in place of an error.

    Raises:
      TypeError: an entry is of another type.
      ValueError: the list is empty, or entries are of several graphs.
    """
    if isinstance(tops, Graph):
        return tops
    if not is_iterable(tops):
        raise TypeError(f"{type(tops)} is not iterable")
    kinds = (Operation, Tensor) if check_types is None else tuple(check_types) if is_iterable(check_types) else (
        check_types,
    )
    found = None
    for each in tops:
        if not isinstance(each, kinds):
            names = ", ".join(str(kind) for kind in kinds)
            raise TypeError(f"Expected a type in ({names}), got: {type(each)}")
        if found is None:
            found = each.graph
        elif found is not each.graph:
            raise ValueError(f"Operation {each} does not belong to given graph")
    if found is None and not none_if_empty:
        raise ValueError("Can't find the unique graph of an empty list")
    return found


def check_graphs(*args: Any) -> None:
    """Raises ValueError unless all arguments that are not None are of one graph."""
    graph = None
    for index, each in enumerate(args):
        if graph is None and each.graph is not None:
            graph = each.graph
        elif each.graph is not None and each.graph is not graph:
            raise ValueError(f"Argument {index} is not of the graph of the others")


def make_list_of_op(tops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False) -> Any:
    """Operations as a list: all of a graph, one, or those of a list.

    Raises:
      TypeError: an entry is not an operation.
    """
    if isinstance(tops, Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: cannot convert a graph")
        return tops.get_operations()
    tops = tops if is_iterable(tops) else [tops]
    if not tops:
        return []
    if check_graph:
        get_unique_graph(tops, None if ignore_ts else Operation)
    return [each for each in tops if not ignore_ts or isinstance(each, Operation)]


def make_list_of_t(tops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False) -> Any:
    """Tensors as a list: all of a graph, one, or those of a list.

    Raises:
      TypeError: an entry is not a tensor.
    """
    if isinstance(tops, Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: cannot convert a graph")
        return get_tensors(tops)
    tops = tops if is_iterable(tops) else [tops]
    if not tops:
        return []
    if check_graph:
        get_unique_graph(tops, None if ignore_ops else Tensor)
    return [each for each in tops if not ignore_ops or isinstance(each, Tensor)]


def get_generating_ops(ts: Any) -> list[Operation]:
    """The operations that produce tensors."""
    return [tensor.op for tensor in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The operations that take tensors, each once."""
    found: list[Operation] = []
    for tensor in make_list_of_t(ts, allow_graph=False):
        concatenate_unique(found, tensor.consumers())
    return found


def get_backward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable[[Any], bool] | None = None,
    stop_at_ts: Any = (),
    control_inputs: bool = False,
    only_differentiable: bool = False,
) -> list[Operation]:
    """The operations that `seed_ops` depend on.

    Args:
      seed_ops: operations or tensors.
      inclusive: whether the seeds are part of the result.
      within_ops: the operations that the walk stays in.
      within_ops_fn: whether the walk goes through an operation.
      stop_at_ts: tensors that the walk does not cross.
      control_inputs: whether the walk follows control inputs.
      only_differentiable: whether it follows only inputs of operations with gradients.

    Raises:
      TypeError: a seed is neither an operation nor a tensor.
    """
    inside = None if within_ops is None else set(make_list_of_op(within_ops, allow_graph=False))
    seeds = list(seed_ops) if is_iterable(seed_ops) else [seed_ops]
    first = get_generating_ops(seeds) if seeds and isinstance(seeds[0], Tensor) else make_list_of_op(
        seeds, allow_graph=False
    )
    stops = frozenset(make_list_of_t(stop_at_ts))

    def goes_through(op: Operation) -> bool:
        return (inside is None or op in inside) and (within_ops_fn is None or within_ops_fn(op))

    found: list[Operation] = []
    wave = list(first)
    while wave:
        concatenate_unique(found, wave)
        following: list[Operation] = []
        for op in wave:
            if only_differentiable and not is_differentiable(op):
                continue
            sources = [tensor.op for tensor in op.inputs if tensor not in stops]
            sources += op.control_inputs if control_inputs else []
            concatenate_unique(following, (each for each in sources if each not in found and goes_through(each)))
        wave = following
    return found if inclusive else [op for op in found if op not in first]


def graph_inputs(op: Operation) -> list[Operation]:
    """The operations whose results or ends an operation waits for."""
    return [*(tensor.op for tensor in op.inputs), *op.control_inputs]


def show_path(from_op: Any, tensors: Any, sources: Any) -> str:
    """A path from an operation to one of `sources`, for messages."""
    from_op = getattr(from_op, "op", from_op)
    ends = {getattr(each, "op", each) for each in sources}
    came: dict[Any, Any] = {from_op: None}
    queue = [from_op]
    while queue:
        op = queue.pop(0)
        if op in ends:
            names = []
            while op is not None:
                names.append(f"{op.name} ({op.type})")
                op = came[op]
            return " <- ".join(reversed(names))
        for each in graph_inputs(op):
            if each not in came:
                came[each] = op
                queue.append(each)
    return "??"
