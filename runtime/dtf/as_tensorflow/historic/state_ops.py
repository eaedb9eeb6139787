"""tensorflow.python.ops.state_ops: the raw ops of variables held by reference."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.ops.state import assign
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape, unknown_shape

__all__ = ["init_variable", "variable_op", "variable_op_v2"]


def variable_op_v2(
    shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = ""
) -> Tensor:
    """A variable's buffer, without an initial value."""
    return apply_op("VariableV2", name, shape=shape, dtype=dtype, container=container, shared_name=shared_name)


def variable_op(
    shape: Any, dtype: Any, name: str = "Variable", set_shape: bool = True, container: str = "", shared_name: str = ""
) -> Tensor:
    """As `variable_op_v2`; without `set_shape` its static shape is unknown."""
    made = variable_op_v2(shape if set_shape else unknown_shape(), dtype, name, container, shared_name)
    if set_shape:
        made.set_shape(TensorShape(shape))
    return made


def init_variable(v: Any, init: Any, name: str = "init") -> Any:
    """The op that gives a variable its first value, from a function of shape and dtype or a tensor."""
    value = init(v.get_shape().as_list(), v.dtype.base_dtype) if callable(init) else init
    return assign(v, value, name=name)
