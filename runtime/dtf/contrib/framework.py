"""tf.contrib.framework: default arguments of functions, variables with collections, and aliases of public names."""

# ruff: noqa: F401, F403
from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.as_tensorflow.historic.decorators import deprecated, deprecated_arg_values, deprecated_args
from dtf.as_tensorflow.historic.layer_utils import smart_cond, smart_constant_value
from dtf.as_tensorflow.historic.tensor_util import is_tensor
from dtf.build.convolution_initializers import (
    convolutional_delta_orthogonal,
    convolutional_orthogonal_1d,
    convolutional_orthogonal_2d,
    convolutional_orthogonal_3d,
)
from dtf.contrib import nest
from dtf.contrib.arg_scopes import (
    add_arg_scope,
    arg_scope,
    arg_scope_func_key,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from dtf.contrib.scoped_variables import *
from dtf.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)
from dtf.train.vocabulary_loading import (
    load_and_remap_matrix_initializer,
    load_embedding_initializer,
    load_linear_multiclass_bias_initializer,
    load_variable_slot_initializer,
)

argsort = tf.argsort
sort = tf.sort
init_from_checkpoint = tf.train.init_from_checkpoint
list_variables = tf.train.list_variables
load_checkpoint = tf.train.load_checkpoint
load_variable = tf.train.load_variable
py_func = tf.py_func
CriticalSection = getattr(tf, "CriticalSection", None)


def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """An op that sets a variable to zeros."""
    return tf.assign(ref, tf.zeros(ref.get_shape(), ref.dtype.base_dtype), use_locking=use_locking, name=name)


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The dtype that all tensors have; float32 of none.

    Raises:
      ValueError: they differ, or it is not a floating-point type.
    """
    found = {tf.as_dtype(each.dtype).base_dtype for each in tensors or () if each is not None}
    found |= {tf.as_dtype(dtype).base_dtype} if dtype is not None else set()
    if len(found) > 1:
        raise ValueError(f"tensors have different dtypes: {sorted(each.name for each in found)}")
    only = found.pop() if found else tf.float32
    if not only.is_floating:
        raise ValueError(f"Expected floating point type, got {only.name}.")
    return only


def reduce_sum_n(tensors: Any, name: str | None = None) -> Any:
    """The sum of all elements of all tensors, a scalar.

    Raises:
      ValueError: `tensors` is empty.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with tf.name_scope(name, "reduce_sum_n", tensors):
        return tf.add_n([each if each.get_shape().ndims == 0 else tf.reduce_sum(each) for each in tensors])


def remove_squeezable_dimensions(predictions: Any, labels: Any, name: str | None = None) -> tuple[Any, Any]:
    """Both, one without its last dimension of 1 where it has one dimension more than the other."""
    with tf.name_scope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        left, right = predictions.get_shape().ndims, labels.get_shape().ndims
        if left is not None and right is not None:
            if left - right == 1:
                predictions = tf.squeeze(predictions, [-1])
            elif right - left == 1:
                labels = tf.squeeze(labels, [-1])
        return predictions, labels


def with_shape(expected_shape: Any, tensor: Any) -> Any:
    """The tensor, with a static shape.

    Raises:
      ValueError: it has another one.
    """
    tensor = tf.convert_to_tensor(tensor)
    tensor.set_shape(expected_shape)
    return tensor


def with_same_shape(expected_tensor: Any, tensor: Any) -> Any:
    """The tensor, with the static shape of another one.

    Raises:
      ValueError: it has another one.
    """
    return with_shape(expected_tensor.get_shape(), tensor)


def get_name_scope() -> str:
    """The name scope that is open, without a trailing slash."""
    return tf.get_default_graph().get_name_scope()


def get_placeholders(graph: Any) -> list[Any]:
    """The outputs of a graph's placeholders."""
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    """The graph of the first input that has a graph, else the default graph."""
    for each in op_input_list if graph is None else ():
        if hasattr(each, "graph"):
            return each.graph
    return graph or tf.get_default_graph()


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """The name without its leading scope."""
    return name.removeprefix(f"{export_scope}/") if export_scope else name


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """The name with a scope before it."""
    return f"{import_scope}/{name}" if import_scope else name
