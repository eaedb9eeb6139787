"""tf.keras.layers: layers that join tensors, functions as layers, user-defined layers, and shapes of images.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dtf import layers
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import activations as activations_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import normalization as normalization_ops
from dtf.build.ops.array import expand_dims, reshape
from dtf.build.ops.joining import concat, pad, tile
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.reductions import reduce_max, reduce_mean, reduce_sum
from dtf.build.tensor import Tensor
from dtf.keras import initializers
from dtf.keras.calls import applied, recorded
from dtf.keras.layers import Recipe, _Function, _input_shape, _recipe

__all__ = [
    "Add", "Average", "Concatenate", "Dot", "GlobalAveragePooling1D", "GlobalMaxPooling1D", "GlobalMaxPooling2D",
    "Lambda", "Layer", "LeakyReLU", "Maximum", "Multiply", "Permute", "RepeatVector", "Subtract", "UpSampling2D",
    "ZeroPadding2D", "add", "average", "concatenate", "maximum", "multiply", "subtract",
]  # fmt: skip


class Layer(layers.Layer):
    """The base class of user-defined layers: subclasses write `build` and `call`.

    Args:
      trainable: whether training changes its variables.
      name: the layer's name; by default the class name in snake case.
      dtype: of its variables.
      kwargs: input_shape, the shape of one example.
    """

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        self.batch_input_shape = _input_shape(kwargs)
        super().__init__(trainable=trainable, name=name, dtype=dtype)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Builds if that is to be done, and calls; the call is kept, so that a model finds the layer."""
        if isinstance(inputs, list | tuple):
            inputs = [convert_to_tensor(each) for each in inputs]
        else:
            inputs = convert_to_tensor(inputs)
        if args:
            return super().__call__(inputs, *args, **kwargs)
        call = functools.partial(super().__call__, inputs)
        phased = applied(_Called(self, call), inputs, kwargs)
        return recorded(self, inputs, kwargs, phased)

    def add_weight(  # type: ignore[override]
        self,
        name: str | None = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        **kwargs: Any,
    ) -> Any:
        """A variable of this layer; initializers may be names."""
        return super().add_weight(
            name or f"weight_{len(self.weights)}",
            () if shape is None else shape,
            dtype,
            initializers.get(initializer),
            regularizer,
            trainable,
            constraint,
            **kwargs,
        )


class _Called:
    """A layer's call, for `applied`."""

    def __init__(self, layer: Layer, call: Callable[..., Any]) -> None:
        self.call = layer.call
        self._call = call

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        return self._call(**arguments)


def Lambda(  # noqa: N802
    function: Callable[..., Any],
    output_shape: Any = None,
    arguments: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """A function of tensors as a layer; it makes no variables. `output_shape` follows from the function."""
    bound = functools.partial(function, **(arguments or {}))
    return _recipe("lambda", lambda name: _Function(bound, name), name, kwargs)


def _joining(kind: str, function: Callable[[list[Tensor]], Tensor]) -> Callable[..., Recipe]:
    def make(name: str | None = None, **kwargs: Any) -> Recipe:
        return _recipe(kind, lambda name: _Function(function, name), name, kwargs)

    make.__name__ = kind.title()
    make.__doc__ = f"{kind.title()} of a list of tensors, element by element."
    return make


def _fold(function: Callable[[Any, Any], Any]) -> Callable[[list[Tensor]], Tensor]:
    return lambda values: functools.reduce(function, values)


Add = _joining("add", _fold(math_ops.add))
Multiply = _joining("multiply", _fold(math_ops.multiply))
Maximum = _joining("maximum", _fold(math_ops.maximum))
Subtract = _joining("subtract", _fold(math_ops.subtract))
Average = _joining("average", lambda values: functools.reduce(math_ops.add, values) / float(len(values)))


def Concatenate(axis: int = -1, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The tensors one after the other along `axis`."""
    return _recipe("concatenate", lambda name: _Function(lambda values: concat(values, axis), name), name, kwargs)


def Dot(axes: int, normalize: bool = False, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The dot products of two tensors [batch, n] along axis 1: [batch, 1].

    Raises:
      ValueError: `axes` is neither 1 nor -1.
    """
    if axes not in (1, -1, (1, 1), [1, 1]):
        raise ValueError(f"Dot is supported for axes=1 of tensors [batch, n], not for {axes!r}; use Lambda")

    def dot(values: list[Tensor]) -> Tensor:
        one, other = (normalization_ops.l2_normalize(each, -1) for each in values) if normalize else values
        return reduce_sum(one * other, -1, keepdims=True)

    return _recipe("dot", lambda name: _Function(dot, name), name, kwargs)


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


def average(inputs: Any, **kwargs: Any) -> Any:
    """The mean of tensors."""
    return Average(**kwargs)(inputs)


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """The tensors one after the other along `axis`."""
    return Concatenate(axis, **kwargs)(inputs)


def _function(kind: str, function: Callable[[Any], Any], name: str | None, kwargs: dict[str, Any]) -> Recipe:
    return _recipe(kind, lambda name: _Function(function, name), name, kwargs)


def LeakyReLU(alpha: float = 0.3, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """x where it is positive, alpha * x elsewhere."""
    return _function("leaky_re_lu", lambda x: activations_ops.leaky_relu(x, alpha), name, kwargs)


def GlobalMaxPooling1D(name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The maximum over the steps of sequences [steps, channels]."""
    return _function("global_max_pooling1d", lambda x: reduce_max(x, [1]), name, kwargs)


def GlobalMaxPooling2D(name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The maximum of each channel of images [height, width, channels]."""
    return _function("global_max_pooling2d", lambda x: reduce_max(x, [1, 2]), name, kwargs)


def GlobalAveragePooling1D(name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The mean over the steps of sequences [steps, channels]."""
    return _function("global_average_pooling1d", lambda x: reduce_mean(x, [1]), name, kwargs)


def RepeatVector(n: int, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """A vector [features] `n` times: [n, features]."""
    return _function("repeat_vector", lambda x: tile(expand_dims(x, 1), [1, n, 1]), name, kwargs)


def Permute(dims: Any, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The dimensions of an example, numbered from 1, in another order."""
    return _function("permute", lambda x: transpose(x, [0, *dims]), name, kwargs)


def UpSampling2D(size: Any = 2, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """Each row and column of images `size` times."""
    rows, columns = (size, size) if isinstance(size, int) else size

    def larger(x: Tensor) -> Tensor:
        height, width, channels = (each.value for each in x.shape[1:])
        repeated = tile(expand_dims(expand_dims(x, 2), 4), [1, 1, rows, 1, columns, 1])


        return reshape(repeated, [-1, height * rows, width * columns, channels])

    return _function("up_sampling2d", larger, name, kwargs)


def ZeroPadding2D(padding: Any = 1, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """Zeros around images: one number, (rows, columns), or ((top, bottom), (left, right))."""
    sides = (padding, padding) if isinstance(padding, int) else padding
    rows, columns = ((each, each) if isinstance(each, int) else tuple(each) for each in sides)
    return _function("zero_padding2d", lambda x: pad(x, [(0, 0), rows, columns, (0, 0)]), name, kwargs)
