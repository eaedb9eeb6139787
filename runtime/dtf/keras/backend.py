"""tf.keras.backend: the session that functional models run in, the learning phase, and values of variables.

    tf.keras.backend.set_session(tf.Session(server.target))
    outputs = tf.keras.backend.get_session().run(model.outputs, {model.inputs[0]: x})

Owns the session of models: the default session, else the session of `set_session`, else a session of the
default graph. `get_session` initialises variables that have no value yet.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/backend
"""

from __future__ import annotations

import builtins
import importlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf import late
from dtf.build.default_graph import get_default_graph, get_default_session, reset_default_graph
from dtf.build.ops.activations import relu, softmax
from dtf.build.ops.array import placeholder as _placeholder
from dtf.build.ops.array import placeholder_with_default
from dtf.build.ops.joining import concat as _concat
from dtf.build.ops.linalg import matmul
from dtf.build.ops.math import abs, cast, equal, exp, log, pow, sigmoid, sqrt, square, tanh
from dtf.build.ops.ordering import group
from dtf.build.ops.reductions import argmax, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum
from dtf.build.tensor import Tensor
from dtf.build.variable_collections import global_variables, local_variables
from dtf.build.variables import Variable, is_variable_initialized
from dtf.session import Session

__all__ = [
    "abs", "argmax", "batch_get_value", "batch_set_value", "cast", "clear_session", "concatenate", "dot", "epsilon",
    "equal", "exp", "floatx", "get_session", "get_value", "image_data_format", "int_shape", "learning_phase", "log",
    "max", "mean", "min", "ndim", "placeholder", "pow", "prod", "relu", "set_epsilon", "set_floatx",
    "set_image_data_format", "set_learning_phase",
    "set_session",
    "set_value", "sigmoid", "softmax", "sqrt", "square", "sum", "tanh", "variable",
]  # fmt: skip

_PHASE = ("__keras_learning_phase",)
_session: Any = None
_settings: dict[str, Any] = {"epsilon": 1e-7}
_initialized: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()

def dot(x: Any, y: Any) -> Tensor:
    """The product of the last axis of x and the last but one of y."""
    if x.shape.ndims is not None and x.shape.ndims > 2 or (y.shape.ndims or 0) > 2:
        from dtf.build.ops.linalg import tensordot

        return tensordot(x, y, [[x.shape.ndims - 1], [builtins.max(y.shape.ndims - 2, 0)]])
    return matmul(x, y)


def get_session(op_input_list: Any = ()) -> Any:
    """The session of models; variables of its graph that have no value yet are initialised first.

    Returns:
      The default session, else the session of `set_session`, else a new Session of the default graph.
    """
    global _session
    session = get_default_session()
    if session is None:
        if _session is None or _session.graph is not get_default_graph():
            _session = Session()
        session = _session
    initialize(session)
    return session


def set_session(session: Any) -> None:
    """Uses `session` for functional models; its graph must be the default graph when they run."""
    global _session
    _session = session


def clear_session() -> None:
    """Closes the session and puts an empty graph in the place of the process-wide default one.

    Raises:
      AssertionError: called inside `with graph.as_default()`.
    """
    global _session
    reset_default_graph()
    if _session is not None and getattr(_session, "close", None) is not None:
        _session.close()
    _session = None


def initialize(session: Any) -> None:
    """Initialises those variables of the session's graph that have no value in it."""
    done = _initialized.setdefault(session, set())
    with session.graph.as_default():
        new = [each for each in [*global_variables(), *local_variables()] if each.op.name not in done]
        if not new:
            return
        have = session.run([is_variable_initialized(each) for each in new])
        session.run(group(*[each.initializer for each, has in zip(new, have, strict=True) if not has]))
    done.update(each.op.name for each in new)


def learning_phase() -> Any:
    """The scalar bool tensor of the default graph that is True while a model trains; feed it to choose."""
    phases = get_default_graph().get_collection_ref(_PHASE)
    if not phases:
        phases.append(placeholder_with_default(np.array(False), [], name="keras_learning_phase"))
    return phases[0]


def set_learning_phase(value: int | bool) -> None:
    """Fixes the learning phase of layers that are called from now on: 0 for use, 1 for training.

    Raises:
      ValueError: it is neither.
    """
    if value not in (0, 1):
        raise ValueError(f"The learning phase must be 0 or 1, not {value!r}")
    get_default_graph().get_collection_ref(_PHASE)[:] = [bool(value)]


def placeholder(shape: Any = None, ndim: int | None = None, dtype: Any = "float32", name: str | None = None) -> Tensor:
    """A placeholder of `shape`, the batch included, or of `ndim` unknown dimensions."""
    return _placeholder(dtype, [None] * ndim if shape is None and ndim else shape, name)


def variable(
    value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None
) -> Variable:
    """A variable that begins with `value`."""
    if isinstance(value, Tensor):
        return Variable(value, dtype=dtype, name=name, constraint=constraint)
    return Variable(np.asarray(value, dtype or "float32"), name=name, constraint=constraint)


def get_value(x: Any) -> Any:
    """The value of a variable or tensor."""
    return get_session().run(x)


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of variables or tensors."""
    return get_session().run(list(tensors)) if tensors else []


def set_value(x: Any, value: Any) -> None:
    """Gives a variable a value."""
    with x.graph.as_default():
        x.load(np.asarray(value, x.dtype.base_dtype.as_numpy_dtype), get_session())


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Gives each variable of (variable, value) its value."""
    for each, value in tuples:
        set_value(each, value)


def int_shape(x: Any) -> tuple[int | None, ...] | None:
    """The static shape as a tuple; None if the rank is not known."""
    return None if x.shape.ndims is None else tuple(x.shape.as_list())


def ndim(x: Any) -> int | None:
    """The rank."""
    return x.shape.ndims


def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite: 1e-7 by default."""
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Sets `epsilon()`; layers and losses keep 1e-7."""
    _settings["epsilon"] = float(value)


def floatx() -> str:
    """The dtype of layers: "float32"."""
    return "float32"


def set_floatx(value: str) -> None:
    """Accepts "float32".

    Raises:
      ValueError: it is another dtype.
    """
    if value != "float32":
        raise ValueError(f"Layers compute in float32; set_floatx({value!r}) is not supported, pass dtype to each layer")


def image_data_format() -> str:
    """The order of dimensions of images: "channels_last"."""
    return "channels_last"


def set_image_data_format(data_format: str) -> None:
    """Accepts "channels_last".

    Raises:
      ValueError: it is another order.
    """
    if data_format != "channels_last":
        raise ValueError(f"Images are channels_last by default, not {data_format!r}; pass data_format to each layer")


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Tensor:
    """The tensors one after the other along `axis`."""
    return _concat(list(tensors), axis)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean along `axis`."""
    return reduce_mean(x, axis, keepdims)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along `axis`."""
    return reduce_sum(x, axis, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The maximum along `axis`."""
    return reduce_max(x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The minimum along `axis`."""
    return reduce_min(x, axis, keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product along `axis`."""
    return reduce_prod(x, axis, keepdims)


def __dir__() -> list[str]:
    return sorted({*globals(), *importlib.import_module("dtf.keras.more_backend").__all__})


def __getattr__(name: str) -> Any:
    more = importlib.import_module("dtf.keras.more_backend")
    if name in more.__all__:
        return getattr(more, name)
    raise late.missing("dtf.keras.backend", name)
