"""`tf.hessians`: second derivatives.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/hessians
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dtf.build.constant import constant
from dtf.build.default_graph import name_scope
from dtf.build.gradients import gradients
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining
from dtf.build.ops import math as math_ops
from dtf.build.ops.control_flow import while_loop
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

__all__ = ["hessians"]


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """For each x the second derivatives of the sum of `ys` by its elements, in the shape of x twice.

    Args: see `tf.gradients`. A loop differentiates each element of the gradient. A step therefore costs about as much
    as one gradient for each element of x.

    Raises:
      ValueError: `ys` do not depend on one of `xs`.
    """
    xs = list(xs) if isinstance(xs, list | tuple) else [xs]
    derive = functools.partial(
        gradients,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
    )
    firsts = derive(ys, xs)
    found = []
    for first, x in zip(firsts, xs, strict=True):
        if first is None:
            raise ValueError(f"ys have no second derivative with respect to {x.name}: they do not depend on it.")
        with name_scope(name, "hessians", [first]):
            flat = array_ops.reshape(first, [-1])
            count = array_ops.size(x)

            def body(i: Tensor, rows: TensorArray, flat: Tensor = flat, x: Any = x) -> tuple[Tensor, TensorArray]:
                (second,) = derive(flat[i], x)
                row = filling_ops.zeros_like(x) if second is None else second
                return i + 1, rows.write(i, row)

            _, rows = while_loop(
                lambda i, _, count=count: i < count,
                body,
                [constant(0, dtypes.int32), TensorArray(x.dtype.base_dtype, count)],
            )
            shape = array_ops.shape(x)
            second = array_ops.reshape(rows.stack(), joining.concat([shape, shape], 0))
            second.set_shape(x.shape.concatenate(x.shape))
            found.append(second)
    return found


def _hessian_vector_product(ys: Any, xs: Sequence[Any], v: Sequence[Any]) -> list[Any]:
    """The product of the second derivatives of the sum of `ys` by `xs` with vectors, without the whole matrix.

    Args:
      ys: a tensor, or a list.
      xs: tensors.
      v: a tensor of its shape for each x.

    Raises:
      ValueError: the numbers of `xs` and `v` differ.
    """
    if len(v) != len(xs):
        raise ValueError(f"xs and v must have the same length: {len(xs)} and {len(v)}.")
    firsts = gradients(ys, list(xs))
    products = [
        math_ops.multiply(first, array_ops.stop_gradient(each))
        for first, each in zip(firsts, v, strict=True)
        if first is not None
    ]
    return gradients(products, list(xs))
