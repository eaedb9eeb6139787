"""The global step: a variable that counts the updates of a model, found through the GLOBAL_STEP collection."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, GraphKeys
from dtf.build.initializers import zeros_initializer
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable
from dtf.build.variables import Variable, VariableAggregation
from dtf.wire import dtypes

_GLOBAL_STEP_READ = "global_step_read_op_cache"  # TensorFlow's name of the collection

__all__ = [
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
]


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of a global step in a session.

    Args:
      sess: a session that has initialised the variable.
      global_step_tensor: the variable or tensor.

    Returns:
      A Python integer.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/global_step
    """
    return step_number(sess.run(global_step_tensor))


def step_number(value: Any) -> int:
    """A global step's value as an int; the value may be of any number type, and an array of one element.

    Raises:
      TypeError: the value has more than one element, or none.
    """
    if isinstance(value, int):
        return value
    array = np.asarray(value)
    if array.size != 1:
        raise TypeError(f"The value of a global step must be a scalar, but has shape {array.shape}.")
    return int(array.reshape(-1)[0])


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of the graph (the default graph if None): a variable or tensor, or None if missing.

    Args:
      graph: a Graph; the default one by default.

    Returns:
      A variable or tensor, or None.

    Raises:
      TypeError: the global step is not an integer scalar.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/get_global_step
    """
    step = find_global_step(graph)
    if step is not None:
        assert_global_step(step)
    return step


def find_global_step(graph: Graph | None = None) -> Any:
    """The global step as `get_global_step` finds it, of any type and shape, or None."""
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise ValueError(f"Multiple tensors in global_step collection: {found}")
    if found:
        return found[0]
    try:
        return graph.get_tensor_by_name("global_step:0")
    except KeyError:
        return None


def required_global_step_read(hook: str) -> Any:
    """A tensor with the value that the global step has before a run updates it, made once for each graph.

    The variable itself, fetched with an update, has the value from before or from after it. Hooks count from the value
    before, as TensorFlow's do.

    Raises:
      RuntimeError: the graph has no global step; the message names `hook`.
    """
    graph = get_default_graph()
    known = graph.get_collection(_GLOBAL_STEP_READ)
    if known:
        return known[0]
    step = get_global_step(graph)
    if step is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    place = graph.colocate_with(step.op)
    with graph.name_scope(None), graph.name_scope(f"{step.op.name}/"), graph.control_dependencies(None), place:
        read = convert_to_tensor(step) + 0  # the sum is a copy, where the read may be the variable's own memory
    graph.add_to_collection(_GLOBAL_STEP_READ, read)
    return read


def global_step_read(graph: Graph | None = None) -> Any:
    """The tensor that `required_global_step_read` made, or None."""
    graph = graph or get_default_graph()
    known = graph.get_collection(_GLOBAL_STEP_READ)
    if len(known) > 1:
        raise RuntimeError(f"There are multiple items in collection {_GLOBAL_STEP_READ}. There should be only one.")
    return known[0] if known else None


def get_or_create_global_step_read(graph: Graph | None = None) -> Any:
    """The value of the global step before a run updates it, made once; None if the graph has no global step."""
    graph = graph or get_default_graph()
    known = global_step_read(graph)
    if known is not None or find_global_step(graph) is None:
        return known
    with graph.as_default():
        return required_global_step_read("this function")


def increment_global_step(increment: int, graph: Graph | None = None) -> Any:
    """An op that adds to the global step after it has been read.

    Raises:
      ValueError: the graph has no global step.
    """
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by tf.train.get_or_create_global_step before calling "
                         "increment.")
    read = get_or_create_global_step_read(graph)
    with graph.as_default(), graph.control_dependencies([read]):
        return step.assign_add(increment)


def create_global_step(graph: Graph | None = None) -> Variable:
    """Makes the global step: an int64 scalar variable "global_step" that starts at 0 and is not trained.

    Args:
      graph: a Graph; the default one by default.

    Returns:
      A variable.

    Raises:
      ValueError: the graph has one already.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/create_global_step
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=zeros_initializer(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The global step of the graph; made if missing.

    Args:
      graph: a Graph; the default one by default.

    Returns:
      A variable or tensor.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/get_or_create_global_step
    """
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError unless the tensor or variable is an integer scalar."""
    is_variable = hasattr(global_step_tensor, "initializer")
    if not (is_variable or isinstance(global_step_tensor, Tensor)):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')
