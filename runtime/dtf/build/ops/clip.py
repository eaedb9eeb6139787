"""Clipping of tensors and gradients: by value, by norm, by the norm of many tensors together.

Names, arguments and defaults are TensorFlow 1.x's. Made of ops of other families, except ClipByValue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.math import (
    add,
    cast,
    divide,
    greater,
    maximum,
    minimum,
    multiply,
    reciprocal,
    sqrt,
    subtract,
)
from dtf.build.ops.reductions import reduce_sum
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"]


@dispatched
def clip_by_value(t: TensorLike, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Elements outside two bounds are set to the bound.

    Args:
      t: a Tensor or IndexedSlices.
      clip_value_min: the lower bound, a scalar or of a shape that broadcasts to the shape of `t`.
      clip_value_max: the upper bound, likewise.
      name: the name of the operation.

    Returns:
      The clipped tensor, of the shape and dtype of `t`.

    Raises:
      ValueError: the result would not have the shape of `t`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/clip_by_value
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as name:
        values = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name="t")
        lesser = minimum(values, clip_value_max)
        values.shape.merge_with(lesser.shape)
        clipped = maximum(lesser, clip_value_min, name=name)
        values.shape.merge_with(clipped.shape)
        return IndexedSlices(clipped, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else clipped


def clip_by_norm(t: TensorLike, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales a tensor down to a euclidean norm where its norm is larger.

    Args:
      t: a Tensor or IndexedSlices, whose values are clipped and repeated indices counted apart.
      clip_norm: the greatest norm, a positive scalar.
      axes: the axes along which the norm is taken; all by default.
      name: the name of the operation.

    Returns:
      The clipped tensor, of the shape and dtype of `t`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/clip_by_norm
    """
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as name:
        values = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name="t")
        squares = reduce_sum(multiply(values, values), axes, keepdims=True)
        # The square root of 0 has no gradient; where the norm is 0 it is not looked at.
        positive = greater(squares, constant(0, dtype=values.dtype.base_dtype))
        safe = _where(positive, squares, apply_op("OnesLike", x=squares))
        norm = _where(positive, sqrt(safe), squares)
        bound = convert_to_tensor(clip_norm, dtype=None if isinstance(clip_norm, Tensor) else values.dtype.base_dtype)
        clipped = divide(multiply(values, bound), maximum(norm, bound), name=name)
        values.shape.merge_with(clipped.shape)
        return IndexedSlices(clipped, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else clipped


def clip_by_average_norm(t: TensorLike, clip_norm: Any, name: str | None = None) -> Tensor:
    """t scaled so that its euclidean norm per element (norm / number of elements) is at most `clip_norm`."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as name:
        t = convert_to_tensor(t, name="t")
        elements = cast(apply_op("Size", input=t), dtypes.float32)
        inverse_norm = reciprocal(sqrt(reduce_sum(multiply(t, t), keepdims=True)))
        scale = minimum(multiply(inverse_norm, elements), divide(constant(1.0), clip_norm))
        return multiply(multiply(t, clip_norm), scale, name=name)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scales tensors so that their global norm is at most a bound.

    Args:
      t_list: a sequence of Tensors, IndexedSlices and None.
      clip_norm: the greatest global norm, a positive scalar.
      use_norm: a global norm that was computed before.
      name: the name of the operation.

    Returns:
      (the scaled tensors, the global norm before). Where the norm is infinite or NaN every entry becomes NaN.

    Raises:
      TypeError: `t_list` is not a sequence.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/clip_by_global_norm
    """
    _check_sequence(t_list)
    entries = list(t_list)
    norm = global_norm(entries, name) if use_norm is None else use_norm
    with name_scope(name, "clip_by_global_norm", [*_values(entries), clip_norm]) as name:
        one = constant(1.0, dtype=norm.dtype.base_dtype)
        scale = multiply(clip_norm, minimum(divide(one, norm), divide(one, clip_norm)))
        # inf - inf is NaN and 0 - 0 is 0: the scale is spoilt exactly when the norm is not finite.
        scale = add(scale, subtract(norm, norm))
        clipped: list[Any] = []
        for index, entry in enumerate(entries):
            if entry is None:
                clipped.append(None)
                continue
            values = _values([entry])[0]
            with colocate_with(values):
                factor = cast(scale, values.dtype.base_dtype)
                scaled = apply_op("Identity", f"{name}_{index}", input=multiply(values, factor))
            is_slices = isinstance(entry, IndexedSlices)
            clipped.append(IndexedSlices(scaled, entry.indices, entry.dense_shape) if is_slices else scaled)
    return clipped, norm


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The euclidean norm of all elements of several tensors.

    Args:
      t_list: a sequence of Tensors, IndexedSlices (their values count) and None, which is skipped.
      name: the name of the operation.

    Returns:
      A scalar of the dtype of the tensors.

    Raises:
      TypeError: `t_list` is not a sequence.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/global_norm
    """
    _check_sequence(t_list)
    values = _values(t_list)
    with name_scope(name, "global_norm", values):
        halves = []
        for each in values:
            with colocate_with(each):
                halves.append(apply_op("L2Loss", t=each))
        total = reduce_sum(apply_op("Pack", values=halves) if halves else constant([], dtypes.float32))
        return sqrt(multiply(total, constant(2.0, dtype=total.dtype)), name="global_norm")


def _check_sequence(t_list: Any) -> None:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError("t_list should be a sequence")


def _values(t_list: Sequence[Any]) -> list[Tensor]:
    """The dense values of the entries that are not None."""
    return [
        convert_to_tensor(entry.values if isinstance(entry, IndexedSlices) else entry, name=f"t_{index}")
        for index, entry in enumerate(t_list)
        if entry is not None
    ]


def _where(condition: Tensor, if_true: Tensor, if_false: Tensor) -> Tensor:
    return apply_op("Select", condition=condition, t=if_true, e=if_false)
