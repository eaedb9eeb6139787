"""tf.keras.layers: the layers of a Sequential model.

A layer here is a recipe. A model makes it, in each graph that it needs, locally or on a cluster, as a layer of
`tf.layers` that does the computation. A `tf.layers.Layer` of your own that was not called yet serves as a recipe too.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtf import late, layers
from dtf.build.ops.array import reshape
from dtf.build.ops.embedding import embedding_lookup
from dtf.build.ops.math import cast
from dtf.keras import activations, initializers
from dtf.keras.calls import Input, call
from dtf.wire import dtypes

__all__ = [
    "Activation", "AveragePooling2D", "BatchNormalization", "Conv1D", "Conv2D", "Dense", "Dropout", "Embedding",
    "Flatten", "GlobalAveragePooling2D", "Input", "InputLayer", "MaxPool2D", "MaxPooling2D", "Recipe", "Reshape",
    "recipe_of",
]  # fmt: skip


@dataclass(eq=False)
class Recipe:
    """How a layer is made.

    Attributes:
      kind: the default name; a number is appended if several layers share it.
      make: makes the layer of `tf.layers` with a name.
      name: its name, if it was given one.
      input_shape: of one example, None for dimensions of any size; None if not given.
      takes_ids: whether it takes integers.
      trainable: whether training changes its variables.
    """

    kind: str
    make: Callable[[str], layers.Layer]
    name: str | None = None
    input_shape: tuple[int | None, ...] | None = None
    takes_ids: bool = False
    trainable: bool = True

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        """The outputs of the layer for tensors, or a structure of tensors; the first call makes its variables."""
        return call(self, self.make, self.kind, self.name, inputs, arguments)


def recipe_of(layer: Any) -> Recipe:
    """The recipe of an object added to a model: the object itself, or copies of an uncalled `tf.layers.Layer`.

    Raises:
      TypeError: it is neither.
      ValueError: the layer has variables already.
    """
    if isinstance(layer, Recipe):
        return layer
    if not isinstance(layer, layers.Layer):
        raise TypeError(f"A model consists of layers, but this is a {type(layer).__name__}: {layer!r}")
    if layer.built:
        raise ValueError(f"Layer {layer.name} has already been called; pass a new layer, which the model calls itself")

    def make(name: str) -> layers.Layer:
        made = copy.deepcopy(layer)
        made._base_name = made._name = name
        return made

    return Recipe(layer._base_name, make)


def InputLayer(input_shape: Any, dtype: Any = None, name: str | None = None) -> Recipe:  # noqa: N802
    """Tells the shape of one example. An integer `dtype` says that ids are taken."""
    takes_ids = dtype is not None and dtypes.as_dtype(dtype).is_integer
    return Recipe("input", lambda name: layers.Layer(name=name), name, tuple(input_shape), takes_ids)


def Dense(  # noqa: N802
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = "glorot_uniform",
    bias_initializer: Any = "zeros",
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """activation(inputs @ kernel + bias)."""
    arguments = _weighted(activation, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer)
    return _recipe(
        "dense",
        lambda name: layers.Dense(units, use_bias=use_bias, name=name, **arguments),
        name,
        kwargs,
    )


def Conv1D(filters: int, kernel_size: Any, **kwargs: Any) -> Recipe:  # noqa: N802
    """Convolution over sequences; the arguments are as in Conv2D."""
    return _convolution("conv1d", layers.Conv1D, filters, kernel_size, **kwargs)


def Conv2D(  # noqa: N802
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = "glorot_uniform",
    bias_initializer: Any = "zeros",
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """Filters over images [height, width, channels]."""
    return _convolution(
        "conv2d",
        layers.Conv2D,
        filters,
        kernel_size,
        strides,
        padding,
        data_format,
        dilation_rate,
        activation,
        use_bias,
        kernel_initializer,
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
        name,
        **kwargs,
    )


def MaxPooling2D(  # noqa: N802
    pool_size: Any = 2,
    strides: Any = None,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """The maximum of each window; `strides` are the window's size by default."""
    return _pooling("max_pooling2d", layers.MaxPooling2D, pool_size, strides, padding, data_format, name, kwargs)


MaxPool2D = MaxPooling2D


def AveragePooling2D(  # noqa: N802
    pool_size: Any = 2,
    strides: Any = None,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """The mean of each window; `strides` are the window's size by default."""
    return _pooling(
        "average_pooling2d", layers.AveragePooling2D, pool_size, strides, padding, data_format, name, kwargs
    )


def GlobalAveragePooling2D(name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """The mean of each channel of images [height, width, channels]."""
    from dtf.build.ops.reductions import reduce_mean

    return _recipe(
        "global_average_pooling2d", lambda name: _Function(lambda x: reduce_mean(x, [1, 2]), name), name, kwargs
    )


def Flatten(name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """An example as one vector."""
    return _recipe("flatten", lambda name: layers.Flatten(name=name), name, kwargs)


def Reshape(target_shape: Any, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """An example in another shape; one dimension may be -1."""
    shape = [-1, *target_shape] if -1 not in target_shape else None

    def reshaped(inputs: Any) -> Any:
        if shape is not None:
            return reshape(inputs, shape)
        known = abs(_product(target_shape))
        rest = inputs.shape[1:].num_elements() // known
        return reshape(inputs, [-1, *(rest if size == -1 else size for size in target_shape)])

    return _recipe("reshape", lambda name: _Function(reshaped, name), name, kwargs)


def Dropout(rate: float, seed: int | None = None, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """While training, zeroes a part `rate` of the numbers, and makes the others larger by as much."""
    return _recipe("dropout", lambda name: layers.Dropout(rate, seed=seed, name=name), name, kwargs)


def Activation(activation: Any, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """A function of each number, or of each example, by its name."""
    function = activations.get(activation)
    if function is None:
        raise ValueError("An Activation needs a function or its name")
    return _recipe("activation", lambda name: _Function(function, name), name, kwargs)


def BatchNormalization(  # noqa: N802
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """Normalises by the batch while training, by moving statistics otherwise."""
    return _recipe(
        "batch_normalization",
        lambda name: layers.BatchNormalization(axis, momentum, epsilon, center, scale, name=name),
        name,
        kwargs,
    )


def Embedding(  # noqa: N802
    input_dim: int,
    output_dim: int,
    embeddings_initializer: Any = "uniform",
    embeddings_regularizer: Any = None,
    input_length: int | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    """A vector of `output_dim` numbers for each id from 0 to `input_dim` - 1."""
    initializer = initializers.get(embeddings_initializer)
    if kwargs.get("input_shape") is None and input_length is not None:
        kwargs["input_shape"] = (input_length,)
    shape = _input_shape(kwargs)
    return Recipe(
        "embedding",
        lambda name: _Embedding(input_dim, output_dim, initializer, embeddings_regularizer, name),
        name,
        shape,
        takes_ids=True,
    )


class _Function(layers.Layer):
    """A layer without variables."""

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        super().__init__(name=name)
        self._function = function

    def call(self, inputs: Any) -> Any:
        return self._function(inputs)


class _Embedding(layers.Layer):
    def __init__(self, count: int, width: int, initializer: Any, regularizer: Any, name: str) -> None:
        super().__init__(name=name, dtype=dtypes.float32)
        self._shape = [count, width]
        self._initializer, self._regularizer = initializer, regularizer

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            "embeddings", self._shape, initializer=self._initializer, regularizer=self._regularizer
        )
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        ids = inputs if inputs.dtype.base_dtype.is_integer else cast(inputs, dtypes.int32)
        return embedding_lookup(self.embeddings, ids)


def _convolution(
    kind: str,
    layer: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = "glorot_uniform",
    bias_initializer: Any = "zeros",
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Recipe:
    arguments = _weighted(activation, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer)
    window = (filters, kernel_size, strides, padding, data_format or "channels_last", dilation_rate)
    return _recipe(kind, lambda name: layer(*window, use_bias=use_bias, name=name, **arguments), name, kwargs)


def _pooling(
    kind: str,
    layer: Any,
    pool_size: Any,
    strides: Any,
    padding: str,
    data_format: str,
    name: str | None,
    kwargs: dict[str, Any],
) -> Recipe:
    window = (pool_size, pool_size if strides is None else strides, padding, data_format or "channels_last")
    return _recipe(kind, lambda name: layer(*window, name=name), name, kwargs)


def _weighted(activation: Any, kernel: Any, bias: Any, of_kernel: Any, of_bias: Any) -> dict[str, Any]:
    """The arguments of a layer with a kernel, a bias and an activation; names are looked up at once."""
    return {
        "activation": activations.get(activation),
        "kernel_initializer": initializers.get(kernel),
        "bias_initializer": initializers.get(bias),
        "kernel_regularizer": of_kernel,
        "bias_regularizer": of_bias,
    }


def _recipe(kind: str, make: Callable[[str], layers.Layer], name: str | None, kwargs: dict[str, Any]) -> Recipe:
    return Recipe(kind, make, name, _input_shape(kwargs))


def _input_shape(kwargs: dict[str, Any]) -> tuple[int | None, ...] | None:
    """The shape of one example among the other arguments of a layer.

    Raises:
      TypeError: there are arguments that no layer has.
    """
    given = dict(kwargs)
    shape = given.pop("input_shape", None)
    batch_shape = given.pop("batch_input_shape", None)
    width = given.pop("input_dim", None)
    given.pop("dtype", None)
    if given:
        raise TypeError(f"Unknown arguments of a layer: {sorted(given)}")
    if batch_shape is not None:
        return tuple(batch_shape[1:])
    if shape is None and width is not None:
        return (width,)
    return None if shape is None else tuple(shape)


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def __getattr__(name: str) -> Any:
    for module in ("dtf.keras.more_layers", "dtf.keras.recurrent", "dtf.keras.wrappers"):
        found = importlib.import_module(module)
        if name in found.__all__:
            return getattr(found, name)
    raise late.missing("dtf.keras.layers", name)
