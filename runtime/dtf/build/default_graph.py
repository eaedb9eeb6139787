"""The default graph and session of a thread, and the blocks and collections of the default graph.

Owns the functions of the tf namespace that work on the default graph; each calls the method of `graph.Graph` with its
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dtf.build.default_stack import default_graph_stack, default_session_stack
from dtf.build.graph import Graph

__all__ = [
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "container",
    "control_dependencies",
    "device",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "get_default_session",
    "init_scope",
    "name_scope",
    "reset_default_graph",
]

_global_default_graph = Graph()


def get_default_graph() -> Graph:
    """The default graph of this thread, or the process-wide one outside of `with graph.as_default()`.

    Returns:
      A Graph.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/get_default_graph
    """
    return default_graph_stack.top() or _global_default_graph


def get_default_session() -> Any:
    """The innermost default session of this thread, or None."""
    return default_session_stack.top()


def reset_default_graph() -> None:
    """Puts an empty graph in the place of the process-wide default one.

    Returns:
      Nothing.

    Raises:
      AssertionError: called inside `with graph.as_default()`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/reset_default_graph
    """
    global _global_default_graph
    if not default_graph_stack.is_empty():
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs.")
    _global_default_graph = Graph()


# Blocks on the default graph


@contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Iterable[Any] | None = None) -> Iterator[str]:
    """A block for the body of a function that makes ops; see `Graph.name_scope`.

    Args:
      name: the name that the caller of that function gave, or None.
      default_name: the name if `name` is None.
      values: tensors that the function got; the block makes their graph the default one.

    Returns:
      An iterator that gives the name of the scope, with its slash, to the block.

    Raises:
      ValueError: neither name is given, or `values` are of several graphs.
      TypeError: `default_name` is not a string.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/name_scope
    """
    if name is None and default_name is None and values is not None:
        raise ValueError(
            f"At least one of name ({name}) and default_name ({default_name}) must be provided."
        )
    if not (default_name is None or isinstance(default_name, str)):
        raise TypeError(f"`default_name` type ({type(default_name)}) is not a string type. You likely meant to pass "
                        "this into the `values` kwarg.")  # fmt: skip
    graph = graph_of(values or [])
    chosen = default_name if name is None else name
    if graph is get_default_graph():
        with graph.name_scope(chosen) as scope:
            yield scope
    else:
        with graph.as_default(), graph.name_scope(chosen) as scope:
            yield scope


def graph_of(values: Iterable[Any]) -> Graph:
    """The graph of the tensors, operations and variables in `values`; the default graph if `values` contains none.

    Raises:
      ValueError: they are of several graphs.
    """
    current = get_default_graph()
    if current.building_function:
        return current  # which captures tensors of another graph
    first: Any = None
    for value in values:
        graph = getattr(value, "graph", None)
        if not isinstance(graph, Graph):
            continue
        if first is None:
            first = value
        elif graph is not first.graph:
            raise ValueError(f"{value} must be from the same graph as {first}.")
    return current if first is None else first.graph


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """`Graph.device` of the default graph.

    Args:
      device_name_or_function: a name such as "/job:ps/task:0", a function from an operation to a name, or None.

    Returns:
      A context manager: operations made in its block are placed on the device.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/device
    """
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """`Graph.colocate_with` of the default graph."""
    return get_default_graph().colocate_with(op, ignore_existing)


def control_dependencies(control_inputs: Iterable[Any] | None) -> AbstractContextManager[None]:
    """`Graph.control_dependencies` of the default graph.

    Args:
      control_inputs: a list of operations or tensors; None clears the dependencies of the enclosing blocks.

    Returns:
      A context manager: operations made in its block wait for all of `control_inputs`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/control_dependencies
    """
    return get_default_graph().control_dependencies(control_inputs)


def container(container_name: str) -> AbstractContextManager[str]:
    """`Graph.container` of the default graph."""
    return get_default_graph().container(container_name)


@contextmanager
def init_scope() -> Iterator[None]:
    """A block outside every function, control flow construct and control dependency, in the same name scope.

    Inside a function's body it adds to the innermost graph around it that is no function's body. The devices are
    those of the innermost graph on the way that has device blocks.

    Raises:
      RuntimeError: every graph is the body of a function.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/init_scope
    """
    graph = get_default_graph()
    if not graph.building_function:
        with default_graph_stack.using(graph), graph.control_dependencies(None):
            yield
        return
    inner = [*reversed(default_graph_stack.entries()), _global_default_graph]
    outer = next((each for each in inner if not each.building_function), None)
    if outer is None:
        raise RuntimeError("All graphs are building functions, and no eager context was previously active.")
    devices = next((each._devices for each in inner[: inner.index(outer) + 1] if each._devices.blocks), None)
    scope = graph.get_name_scope()
    with outer.as_default(), outer.name_scope(f"{scope}/" if scope else None), outer.control_dependencies(None):
        old = None if devices is None else outer._devices.swap(devices.copy().swap([]))
        try:
            yield
        finally:
            if old is not None:
                outer._devices.swap(old)


def add_to_collection(name: Any, value: Any) -> None:
    """`Graph.add_to_collection` of the default graph.

    Args:
      name: the name of the collection, such as one of GraphKeys.
      value: any value.

    Returns:
      Nothing.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/add_to_collection
    """
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """`Graph.add_to_collections` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """`Graph.get_collection` of the default graph.

    Args:
      key: the name of the collection, such as one of GraphKeys.
      scope: a regular expression that the start of a value's name matches; all values by default.

    Returns:
      A list of the values in insertion order.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/get_collection
    """
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """`Graph.get_collection_ref` of the default graph."""
    return get_default_graph().get_collection_ref(key)
