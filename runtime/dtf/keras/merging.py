"""tf.keras.layers: layers that join tensors, and the functions of the same names.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

import functools
from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.ops import normalization as normalization_ops
from dtf.build.ops.array import expand_dims, reshape, shape_of
from dtf.build.ops.joining import concat
from dtf.build.ops.linalg import matmul
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.reductions import reduce_sum
from dtf.build.tensor import Tensor
from dtf.keras.base import Layer

__all__ = [
    "Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract", "add", "average",
    "concatenate", "dot", "maximum", "minimum", "multiply", "subtract",
]  # fmt: skip


class _Joining(Layer):
    """One tensor out of a list, element by element."""

    supports_masking = True

    def call(self, inputs: Any) -> Any:
        """The joined tensor."""
        values = list(inputs)
        if len(values) < 2:
            raise ValueError(f"A layer {type(self).__name__} joins a list of at least 2 tensors, not {len(values)}")
        ranks = {each.shape.ndims for each in values}
        if len(ranks) > 1 and None not in ranks:  # Keras adds dimensions after the batch's
            most = max(rank for rank in ranks if rank is not None)
            for index, each in enumerate(values):
                while values[index].shape.ndims < most:
                    values[index] = expand_dims(values[index], 1)
                del each
        return self._joined(values)

    def _joined(self, values: list[Tensor]) -> Tensor:
        raise NotImplementedError


class Add(_Joining):
    """The sum of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.add, values)


class Multiply(_Joining):
    """The product of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.multiply, values)


class Maximum(_Joining):
    """The maximum of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.maximum, values)


class Minimum(_Joining):
    """The minimum of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.minimum, values)


class Subtract(_Joining):
    """The difference of two tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        if len(values) != 2:
            raise ValueError(f"Subtract takes 2 tensors, not {len(values)}")
        return math_ops.subtract(values[0], values[1])


class Average(_Joining):
    """The mean of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.add, values) / float(len(values))


class Concatenate(Layer):
    """The tensors one after the other along `axis`."""

    def __init__(self, axis: int = -1, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        """The tensors in one."""
        return concat(list(inputs), self.axis)


class Dot(Layer):
    """The dot products of two tensors along one axis of each, for each example."""

    def __init__(self, axes: Any, normalize: bool = False, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.axes, self.normalize = axes, normalize

    def call(self, inputs: Any) -> Any:
        """The products: of [batch, n] along 1 [batch, 1]."""
        one, other = inputs
        axes = [self.axes] * 2 if isinstance(self.axes, int) else list(self.axes)
        axes = [axis % each.shape.ndims for axis, each in zip(axes, (one, other), strict=True)]
        if self.normalize:
            one = normalization_ops.l2_normalize(one, axes[0])
            other = normalization_ops.l2_normalize(other, axes[1])
        return batch_dot(one, other, axes)


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """The products of two tensors along one axis of each, for each example.

    Args:
      x, y: [batch, ...], of rank 2 or more.
      axes: the axes that are summed; by default the last one of x and the last but one of y.

    Returns:
      A Tensor [batch, the rest of x, the rest of y]; [batch, 1] where nothing is left.
    """
    if axes is None:
        axes = [x.shape.ndims - 1, max(1, y.shape.ndims - 2)]
    first, second = [axes] * 2 if isinstance(axes, int) else list(axes)
    first, second = first % x.shape.ndims, second % y.shape.ndims
    if x.shape.ndims == 2 and y.shape.ndims == 2:
        return reduce_sum(x * y, 1, keepdims=True)
    rest = [axis for axis in range(1, x.shape.ndims) if axis != first]
    others = [axis for axis in range(1, y.shape.ndims) if axis != second]
    left = transpose(x, [0, *rest, first])
    right = transpose(y, [0, second, *others])
    sizes, counts = shape_of(left), shape_of(right)
    flat = reshape(left, [sizes[0], -1, sizes[x.shape.ndims - 1]])
    product = matmul(flat, reshape(right, [counts[0], counts[1], -1]))
    if not rest and not others:
        return reshape(product, [-1, 1])
    outputs = reshape(product, concat([sizes[:-1], counts[2:]], 0))
    static = [x.shape[0].value, *[x.shape[axis].value for axis in rest], *[y.shape[axis].value for axis in others]]
    outputs.set_shape(static)
    return outputs


def add(inputs: Any, **kwargs: Any) -> Any:
    """The sum of tensors."""
    return Add(**kwargs)(inputs)


def multiply(inputs: Any, **kwargs: Any) -> Any:
    """The product of tensors."""
    return Multiply(**kwargs)(inputs)


def subtract(inputs: Any, **kwargs: Any) -> Any:
    """The difference of two tensors."""
    return Subtract(**kwargs)(inputs)


def maximum(inputs: Any, **kwargs: Any) -> Any:
    """The maximum of tensors."""
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Any, **kwargs: Any) -> Any:
    """The minimum of tensors."""
    return Minimum(**kwargs)(inputs)


def average(inputs: Any, **kwargs: Any) -> Any:
    """The mean of tensors."""
    return Average(**kwargs)(inputs)


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """The tensors one after the other along `axis`."""
    return Concatenate(axis, **kwargs)(inputs)


def dot(inputs: Any, axes: Any, normalize: bool = False, **kwargs: Any) -> Any:
    """The dot products of two tensors."""
    return Dot(axes, normalize, **kwargs)(inputs)
