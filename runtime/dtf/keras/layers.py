"""tf.keras.layers: the layers that models of most programs have.

Each class is `base.Layer` in front of the layer of `tf.layers` that does the computation. This module has those with
weights and windows; the modules of `_FAMILIES` have the others. A `Recipe` makes a layer again in
another graph, for clusters and Estimators.

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
from dtf.build.ops.math import cast, not_equal
from dtf.keras import activations, constraints, initializers, regularizers
from dtf.keras.base import Layer
from dtf.keras.calls import Input, InputLayer
from dtf.layers.base import InputSpec
from dtf.wire import dtypes

__all__ = [
    "Activation", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "AvgPool1D", "AvgPool2D", "AvgPool3D",
    "BatchNormalization", "Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Convolution1D",
    "Convolution2D", "Convolution2DTranspose", "Convolution3D", "Dense", "Dropout", "Embedding", "Flatten", "Input",
    "InputLayer", "InputSpec", "Layer", "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxPooling1D", "MaxPooling2D",
    "MaxPooling3D", "Recipe", "Reshape", "SeparableConv1D", "SeparableConv2D", "SeparableConvolution2D", "recipe_of",
]  # fmt: skip


@dataclass(eq=False)
class Recipe:
    """How a layer is made in another graph.

    Attributes:
      kind: the default name; a number is appended if several layers share it.
      make: makes the layer with a name.
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


def recipe_of(layer: Any) -> Recipe:
    """The recipe of a layer of tf.keras, or of a `tf.layers.Layer`.

    Raises:
      TypeError: it is neither.
    """
    if isinstance(layer, Recipe):
        return layer
    if isinstance(layer, InputLayer):
        shape = layer.batch_input_shape
        return Recipe("input", lambda name: layers.Layer(name=name), layer.name, None if shape is None else shape[1:],
                      layer.dtype.is_integer)  # fmt: skip
    if isinstance(layer, Layer):
        shape = layer.batch_input_shape
        kind = layer.name.rstrip("0123456789").rstrip("_") if not layer._is_named else layer.name
        return Recipe(
            kind, layer.fresh, layer.name if layer._is_named else None, None if shape is None else shape[1:],
            isinstance(layer, Embedding), layer.trainable,
        )  # fmt: skip
    if not isinstance(layer, layers.Layer):
        raise TypeError(f"A model consists of layers, but this is a {type(layer).__name__}: {layer!r}")

    def make(name: str) -> layers.Layer:
        made = uncalled(layer)
        made._base_name = made._name = name
        return made

    return Recipe(layer._base_name, make)


def uncalled(layer: layers.Layer) -> Any:
    """A layer of tf.layers with the settings of another one, without variables."""
    made = copy.copy(layer)
    made._graph, made._scope, made.built = None, None, False
    made._own_trainable, made._own_fixed, made._own_losses, made._own_updates = [], [], [], []
    return made


def weighted(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a layer with kernels and biases; names are looked up at once."""
    found = {}
    for name in list(kwargs):
        kinds = (("_initializer", initializers), ("_regularizer", regularizers), ("_constraint", constraints))
        for end, module in kinds:
            if name.endswith(end) and name != "activity_regularizer":
                found[name] = module.get(kwargs.pop(name))
    return found


class Dense(Layer, layers.Dense):
    """activation(inputs @ kernel + bias)."""

    supports_masking = True

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros", kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        started = self._started(name, {"activity_regularizer": activity_regularizer, **kwargs})
        layers.Dense.__init__(
            self, units, activations.get(activation), use_bias,
            kernel_initializer=initializers.get(kernel_initializer),
            bias_initializer=initializers.get(bias_initializer),
            kernel_regularizer=regularizers.get(kernel_regularizer),
            bias_regularizer=regularizers.get(bias_regularizer),
            kernel_constraint=constraints.get(kernel_constraint), bias_constraint=constraints.get(bias_constraint),
            **started,
        )  # fmt: skip


class _Convolution(Layer):
    """What convolutions of tf.keras have in common: names as arguments, and the padding that is shown."""

    _of: Any

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
        dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        started = self._started(name, {"activity_regularizer": activity_regularizer, **kwargs})
        rate = {} if "Transpose" in self._of.__name__ else {"dilation_rate": dilation_rate}
        padding = padding.lower()
        if padding == "causal":
            padding, self._causal = "valid", True
        self._of.__init__(
            self, filters, kernel_size, strides, padding, _format(data_format), activation=activations.get(activation),
            use_bias=use_bias, kernel_initializer=initializers.get(kernel_initializer),
            bias_initializer=initializers.get(bias_initializer),
            kernel_regularizer=regularizers.get(kernel_regularizer),
            bias_regularizer=regularizers.get(bias_regularizer),
            kernel_constraint=constraints.get(kernel_constraint), bias_constraint=constraints.get(bias_constraint),
            **rate, **started,
        )  # fmt: skip

    _causal = False


class Conv1D(_Convolution, layers.Conv1D):
    """A convolution of sequences [batch, length, channels]; padding="causal" looks back only."""

    _of = layers.Conv1D

    def call(self, inputs: Any) -> Any:
        if self._causal:
            from dtf.build.ops.joining import pad

            inputs = pad(inputs, [[0, 0], [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0], [0, 0]])
        return layers.Conv1D.call(self, inputs)


class Conv2D(_Convolution, layers.Conv2D):
    """A convolution of images [batch, rows, columns, channels]."""

    _of = layers.Conv2D


class Conv3D(_Convolution, layers.Conv3D):
    """A convolution of volumes [batch, depth, rows, columns, channels]."""

    _of = layers.Conv3D


class Conv2DTranspose(_Convolution, layers.Conv2DTranspose):
    """The transpose of Conv2D, which makes images larger."""

    _of = layers.Conv2DTranspose


class Conv3DTranspose(_Convolution, layers.Conv3DTranspose):
    """The transpose of Conv3D, which makes volumes larger."""

    _of = layers.Conv3DTranspose


class _Separable(Layer):
    _of: Any

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
        dilation_rate: Any = 1, depth_multiplier: int = 1, activation: Any = None, use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform", pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros", name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        given = weighted(kwargs)
        self._of.__init__(
            self, filters, kernel_size, strides, padding, _format(data_format), dilation_rate, depth_multiplier,
            activations.get(activation), use_bias, initializers.get(depthwise_initializer),
            initializers.get(pointwise_initializer), initializers.get(bias_initializer), **given,
            **self._started(name, kwargs),
        )  # fmt: skip


class SeparableConv1D(_Separable, layers.SeparableConv1D):
    """A convolution of each channel of sequences, then one across channels."""

    _of = layers.SeparableConv1D


class SeparableConv2D(_Separable, layers.SeparableConv2D):
    """A convolution of each channel of images, then one across channels."""

    _of = layers.SeparableConv2D


class _Pooling(Layer):
    _of: Any

    def __init__(
        self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", data_format: str | None = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        strides = pool_size if strides is None else strides
        started = self._started(name, kwargs)
        started.pop("activity_regularizer")
        self._of.__init__(self, pool_size, strides, padding.lower(), _format(data_format), **started)


class MaxPooling1D(_Pooling, layers.MaxPooling1D):
    """The maximum of each window of steps; `strides` are the window's size by default."""

    _of = layers.MaxPooling1D


class MaxPooling2D(_Pooling, layers.MaxPooling2D):
    """The maximum of each window of images."""

    _of = layers.MaxPooling2D


class MaxPooling3D(_Pooling, layers.MaxPooling3D):
    """The maximum of each window of volumes."""

    _of = layers.MaxPooling3D


class AveragePooling1D(_Pooling, layers.AveragePooling1D):
    """The mean of each window of steps; `strides` are the window's size by default."""

    _of = layers.AveragePooling1D


class AveragePooling2D(_Pooling, layers.AveragePooling2D):
    """The mean of each window of images."""

    _of = layers.AveragePooling2D


class AveragePooling3D(_Pooling, layers.AveragePooling3D):
    """The mean of each window of volumes."""

    _of = layers.AveragePooling3D


class Flatten(Layer, layers.Flatten):
    """An example as one vector."""

    def __init__(self, data_format: str | None = None, name: str | None = None, **kwargs: Any) -> None:
        layers.Flatten.__init__(self, data_format, **self._started(name, kwargs))


class Reshape(Layer):
    """An example in another shape; one dimension may be -1."""

    def __init__(self, target_shape: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Any) -> Any:
        """The inputs in the shape."""
        if -1 not in self.target_shape:
            return reshape(inputs, [-1, *self.target_shape])
        rest = inputs.shape[1:].num_elements()
        if rest is None:
            from dtf.build.ops.array import shape_of
            from dtf.build.ops.joining import concat

            outputs = reshape(inputs, concat([shape_of(inputs)[:1], list(self.target_shape)], 0))
            outputs.set_shape([None, *(None if size == -1 else size for size in self.target_shape)])
            return outputs
        known = abs(_product(self.target_shape))
        return reshape(inputs, [-1, *(rest // known if size == -1 else size for size in self.target_shape)])


class Dropout(Layer, layers.Dropout):
    """While training, zeroes a part `rate` of the numbers, and makes the others larger by as much."""

    supports_masking = True

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        layers.Dropout.__init__(self, rate, noise_shape, seed, **self._started(name, kwargs))


class Activation(Layer):
    """A function of each number, or of each example, by its name."""

    supports_masking = True

    def __init__(self, activation: Any, name: str | None = None, **kwargs: Any) -> None:
        function = activations.get(activation)
        if function is None:
            raise ValueError("An Activation needs a function or its name")
        super().__init__(name=name, **kwargs)
        self.activation = function

    def call(self, inputs: Any) -> Any:
        """The function of the inputs."""
        return self.activation(inputs)


class BatchNormalization(Layer, layers.BatchNormalization):
    """Normalises by the batch while training, by moving statistics otherwise."""

    supports_masking = True

    def __init__(
        self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones", beta_regularizer: Any = None, gamma_regularizer: Any = None,
        beta_constraint: Any = None, gamma_constraint: Any = None, renorm: bool = False, renorm_clipping: Any = None,
        renorm_momentum: float = 0.99, fused: bool | None = None, trainable: bool = True,
        virtual_batch_size: int | None = None, adjustment: Any = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        started = self._started(name, {"trainable": trainable, **kwargs})
        layers.BatchNormalization.__init__(
            self, axis, momentum, epsilon, center, scale, initializers.get(beta_initializer),
            initializers.get(gamma_initializer), initializers.get(moving_mean_initializer),
            initializers.get(moving_variance_initializer), regularizers.get(beta_regularizer),
            regularizers.get(gamma_regularizer), constraints.get(beta_constraint), constraints.get(gamma_constraint),
            renorm, renorm_clipping, renorm_momentum, fused, started.pop("trainable"), virtual_batch_size, adjustment,
            started.pop("name"), **started,
        )  # fmt: skip


class Embedding(Layer):
    """A vector of `output_dim` numbers for each id from 0 to `input_dim` - 1; `mask_zero` masks the id 0."""

    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None, activity_regularizer: Any = None, embeddings_constraint: Any = None,
        mask_zero: bool = False, input_length: Any = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if kwargs.get("input_shape") is None and kwargs.get("batch_input_shape") is None and input_length is not None:
            kwargs["input_shape"] = tuple(input_length) if isinstance(input_length, list | tuple) else (input_length,)
        kwargs.pop("dtype", None)
        super().__init__(name=name, dtype="float32", activity_regularizer=activity_regularizer, **kwargs)
        self.input_dim, self.output_dim = int(input_dim), int(output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)
        self.mask_zero, self.input_length = mask_zero, input_length

    def build(self, input_shape: Any) -> None:
        """Makes the embeddings [input_dim, output_dim]."""
        self.embeddings = self.add_weight(
            "embeddings", [self.input_dim, self.output_dim], initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer, constraint=self.embeddings_constraint,
        )  # fmt: skip
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """The vectors of ids."""
        ids = inputs if inputs.dtype.base_dtype.is_integer else cast(inputs, dtypes.int32)
        return embedding_lookup(self.embeddings, ids)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where ids are not 0, if `mask_zero`."""
        return not_equal(inputs, 0) if self.mask_zero else None


MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution2DTranspose, SeparableConvolution2D = Conv2DTranspose, SeparableConv2D


def _format(data_format: str | None) -> str:
    return data_format or "channels_last"


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


_FAMILIES = "merging activation_layers reshaping noise more_layers recurrent conv_recurrent wrappers"
_MORE = tuple(f"dtf.keras.{each}" for each in _FAMILIES.split())


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for each in _MORE for name in importlib.import_module(each).__all__)})


def __getattr__(name: str) -> Any:
    for module in _MORE:
        found = importlib.import_module(module)
        if name in found.__all__:
            return getattr(found, name)
    if name in ("serialize", "deserialize"):
        return getattr(importlib.import_module("dtf.keras.saving"), f"{name}_layer")
    raise late.missing("dtf.keras.layers", name)
