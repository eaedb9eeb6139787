"""tf.keras.layers: Bidirectional and TimeDistributed, which call other layers; and layers of single functions.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/Bidirectional
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf import layers
from dtf.build.ops import activations as functions
from dtf.build.ops.array import reshape, shape_of
from dtf.build.ops.joining import concat
from dtf.build.ops.math import cast, maximum, minimum
from dtf.build.ops.random import random_normal
from dtf.build.ops.rearranging import reverse
from dtf.build.tensor import Tensor
from dtf.keras import activations, initializers
from dtf.keras.layers import Recipe, _Function, _input_shape, _recipe, recipe_of
from dtf.keras.recurrent import _Recurrent

__all__ = [
    "AveragePooling1D", "Bidirectional", "Conv2DTranspose", "ELU", "GaussianNoise", "MaxPooling1D", "ReLU",
    "SeparableConv2D", "Softmax", "SpatialDropout1D", "ThresholdedReLU", "TimeDistributed",
]  # fmt: skip


def Bidirectional(  # noqa: N802
    layer: Any, merge_mode: str | None = "concat", name: str | None = None, **kwargs: Any
) -> Recipe:
    """A recurrent layer over sequences in both directions.

    Args:
      layer: an LSTM, GRU or SimpleRNN.
      merge_mode: "concat", "sum", "mul", "ave", or None for a list of both outputs.
    """
    if merge_mode not in ("concat", "sum", "mul", "ave", None):
        raise ValueError(f"merge_mode must be concat, sum, mul, ave or None, not {merge_mode!r}")
    recipe = recipe_of(layer)
    shape = _input_shape(kwargs) or recipe.input_shape
    return Recipe("bidirectional", lambda name: _Bidirectional(recipe, merge_mode, name), name, shape)


def TimeDistributed(layer: Any, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """A layer applied to each step of [batch, time, ...]."""
    recipe = recipe_of(layer)
    return Recipe("time_distributed", lambda name: _TimeDistributed(recipe, name), name, _input_shape(kwargs))


def SeparableConv2D(  # noqa: N802
    filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid", activation: Any = None,
    use_bias: bool = True, depth_multiplier: int = 1, name: str | None = None, **kwargs: Any,
) -> Recipe:  # fmt: skip
    """A convolution of each channel, then one across channels."""
    function = activations.get(activation)

    def make(name: str) -> layers.Layer:
        return layers.SeparableConv2D(
            filters, kernel_size, strides, padding, depth_multiplier=depth_multiplier, activation=function,
            use_bias=use_bias, name=name)  # fmt: skip

    return _recipe("separable_conv2d", make, name, kwargs)


def Conv2DTranspose(  # noqa: N802
    filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid", activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", name: str | None = None, **kwargs: Any,
) -> Recipe:  # fmt: skip
    """The transpose of a convolution."""
    function, initializer = activations.get(activation), initializers.get(kernel_initializer)

    def make(name: str) -> layers.Layer:
        return layers.Conv2DTranspose(
            filters, kernel_size, strides, padding, activation=function, use_bias=use_bias,
            kernel_initializer=initializer, name=name)  # fmt: skip

    return _recipe("conv2d_transpose", make, name, kwargs)


def MaxPooling1D(  # noqa: N802
    pool_size: int = 2, strides: int | None = None, padding: str = "valid", name: str | None = None, **kwargs: Any
) -> Recipe:
    """The maximum of each window of steps."""
    window = (pool_size, strides or pool_size, padding)
    return _recipe("max_pooling1d", lambda name: layers.MaxPooling1D(*window, name=name), name, kwargs)


def AveragePooling1D(  # noqa: N802
    pool_size: int = 2, strides: int | None = None, padding: str = "valid", name: str | None = None, **kwargs: Any
) -> Recipe:
    """The mean of each window of steps."""
    window = (pool_size, strides or pool_size, padding)
    return _recipe("average_pooling1d", lambda name: layers.AveragePooling1D(*window, name=name), name, kwargs)


def ReLU(max_value: float | None = None, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """max(x, 0), and at most `max_value`."""

    def function(x: Tensor) -> Tensor:
        return functions.relu(x) if max_value is None else minimum(functions.relu(x), max_value)

    return _of_function("re_lu", function, name, kwargs)


def ELU(alpha: float = 1.0, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """x above 0, alpha * (exp(x) - 1) below."""
    return _of_function("elu", lambda x: maximum(x, 0.0) + alpha * functions.elu(minimum(x, 0.0)), name, kwargs)


def ThresholdedReLU(theta: float = 1.0, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """x above theta, else 0."""

    return _of_function("thresholded_re_lu", lambda x: x * cast(x > theta, x.dtype), name, kwargs)


def Softmax(axis: int = -1, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """Probabilities along an axis."""
    return _of_function("softmax", lambda x: functions.softmax(x, axis), name, kwargs)


def GaussianNoise(stddev: float, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """While training, adds normal numbers."""
    return _recipe("gaussian_noise", lambda name: _Noise(stddev, name), name, kwargs)


def SpatialDropout1D(rate: float, name: str | None = None, **kwargs: Any) -> Recipe:  # noqa: N802
    """While training, zeroes whole channels of [batch, time, channels]."""

    def make(name: str) -> layers.Layer:
        return _ChannelDropout(rate, name=name)

    return _recipe("spatial_dropout1d", make, name, kwargs)


def _of_function(kind: str, function: Callable[[Any], Any], name: str | None, kwargs: dict[str, Any]) -> Recipe:
    return _recipe(kind, lambda name: _Function(function, name), name, kwargs)


class _ChannelDropout(layers.Dropout):
    def _get_noise_shape(self, inputs: Any) -> Any:
        shape = shape_of(inputs)
        return concat([shape[:1], [1], shape[2:]], 0)


class _Noise(layers.Layer):
    def __init__(self, stddev: float, name: str) -> None:
        super().__init__(name=name)
        self._stddev = stddev

    def call(self, inputs: Any, training: Any = False) -> Any:

        noise = random_normal(shape_of(inputs), 0.0, self._stddev, inputs.dtype.base_dtype)
        return inputs + noise * cast(training, inputs.dtype.base_dtype)


class _Wrapper(layers.Layer):
    def _take_variables(self, *inner: layers.Layer) -> None:
        self._own_trainable = [each for layer in inner for each in layer._own_trainable]
        self._own_fixed = [each for layer in inner for each in layer._own_fixed]


class _Bidirectional(_Wrapper):
    def __init__(self, recipe: Recipe, merge_mode: str | None, name: str) -> None:
        super().__init__(name=name)
        forward, backward = recipe.make("forward"), recipe.make("backward")
        if not isinstance(forward, _Recurrent) or not isinstance(backward, _Recurrent):
            raise ValueError(f"Bidirectional takes an LSTM, GRU or SimpleRNN, not {type(forward).__name__}")
        self.forward_layer, self.backward_layer = forward, backward
        self._merge_mode = merge_mode
        settings = self.backward_layer._settings
        self.backward_layer._settings = {**settings, "go_backwards": not settings["go_backwards"]}

    def call(self, inputs: Any) -> Any:
        settings = self.forward_layer._settings
        first, second = self.forward_layer(inputs), self.backward_layer(inputs)
        self._take_variables(self.forward_layer, self.backward_layer)
        states: list[Any] = []
        if settings["return_state"]:
            states = [*first[1:], *second[1:]]
            first, second = first[0], second[0]
        if settings["return_sequences"]:
            second = reverse(second, [1])
        merged = {
            "concat": lambda: concat([first, second], -1),
            "sum": lambda: first + second,
            "mul": lambda: first * second,
            "ave": lambda: (first + second) / 2.0,
            None: lambda: [first, second],
        }[self._merge_mode]()
        if not states:
            return merged
        return [*(merged if isinstance(merged, list) else [merged]), *states]


class _TimeDistributed(_Wrapper):
    def __init__(self, recipe: Recipe, name: str) -> None:
        super().__init__(name=name)
        self.layer = recipe.make("layer")

    def call(self, inputs: Any) -> Any:
        sizes, shape = inputs.shape.as_list(), shape_of(inputs)
        flat = reshape(inputs, concat([[-1], shape[2:]], 0))
        flat.set_shape([None, *sizes[2:]])
        outputs = self.layer(flat)
        self._take_variables(self.layer)
        result = reshape(outputs, concat([shape[:2], shape_of(outputs)[1:]], 0))
        result.set_shape([*sizes[:2], *outputs.shape.as_list()[1:]])
        return result
