"""tf.keras.layers: functions as layers, masks, normalization, depthwise convolutions and attention.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.ops import activations as activations_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.array import expand_dims, reshape, shape_of
from dtf.build.ops.conv import depthwise_conv2d
from dtf.build.ops.linalg import matmul
from dtf.build.ops.nn import bias_add
from dtf.build.ops.reductions import reduce_any, reduce_mean
from dtf.keras import activations, configs, constraints, initializers, regularizers
from dtf.keras.base import Layer

__all__ = [
    "ActivityRegularization", "Attention", "DepthwiseConv2D", "Lambda", "LayerNormalization", "Masking",
]  # fmt: skip


class Lambda(Layer):
    """A function of tensors as a layer; it makes no variables. `output_shape` follows from the function.

    A saved model has the function's name, not its code: give the function in custom_objects when you load the model.
    """

    def __init__(
        self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None, arguments: Any = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.function, self.mask = _function(function, self.name), mask
        self.arguments = dict(arguments or {})

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        """The function of the inputs."""
        given = dict(self.arguments)
        taken = _parameters(self.function)
        if "mask" in taken and "mask" not in given:
            given["mask"] = mask
        if "training" in taken and "training" not in given:
            given["training"] = training
        return self.function(inputs, **given)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask that was given."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask


def _function(function: Callable[..., Any] | str, layer: str) -> Callable[..., Any]:
    """The function, or the function of this name in custom_objects."""
    if not isinstance(function, str):
        return function
    if function not in configs.custom_objects:
        raise ValueError(
            f"the function {function!r} of the Lambda layer {layer!r} is unknown: a saved model has no code of "
            f"functions; pass custom_objects={{{function!r}: the function}}"
        )
    found: Callable[..., Any] = configs.custom_objects[function]
    return found


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


class Masking(Layer):
    """Masks the steps whose values are all `mask_value`."""

    def __init__(self, mask_value: float = 0.0, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.mask_value = mask_value

    def call(self, inputs: Any) -> Any:
        """The inputs, with zeros in masked steps."""
        kept = reduce_any(math_ops.not_equal(inputs, self.mask_value), -1, keepdims=True)
        return inputs * math_ops.cast(kept, inputs.dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The steps that count."""
        return reduce_any(math_ops.not_equal(inputs, self.mask_value), -1)


class ActivityRegularization(Layer):
    """Adds a loss of its inputs."""

    supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)
        self.l1, self.l2 = l1, l2

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        return inputs


class LayerNormalization(Layer):
    """Normalises each example along `axis`."""

    supports_masking = True

    def __init__(
        self, axis: Any = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", beta_regularizer: Any = None,
        gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.axis, self.epsilon, self.center, self.scale = axis, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = (
            initializers.get(beta_initializer), initializers.get(gamma_initializer))  # fmt: skip
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint

    def build(self, input_shape: Any) -> None:
        """Makes gamma and beta, of the sizes of the axes."""
        rank = len(input_shape)
        self._axes = sorted(axis % rank for axis in ([self.axis] if isinstance(self.axis, int) else self.axis))
        shape = [input_shape[axis].value for axis in self._axes]
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                "gamma", shape, initializer=self.gamma_initializer, regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint)  # fmt: skip
        if self.center:
            self.beta = self.add_weight(
                "beta", shape, initializer=self.beta_initializer, regularizer=self.beta_regularizer,
                constraint=self.beta_constraint)  # fmt: skip
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """The normalised inputs."""
        mean = reduce_mean(inputs, self._axes, keepdims=True)
        variance = reduce_mean(math_ops.squared_difference(inputs, mean), self._axes, keepdims=True)
        outputs = (inputs - mean) / math_ops.sqrt(variance + self.epsilon)
        rank = inputs.shape.ndims
        sizes = [inputs.shape[axis].value if axis in self._axes else 1 for axis in range(rank)]
        if self.gamma is not None:
            outputs = outputs * reshape(self.gamma, sizes)
        if self.beta is not None:
            outputs = outputs + reshape(self.beta, sizes)
        return outputs


class DepthwiseConv2D(Layer):
    """A convolution of each channel of images by itself."""

    def __init__(
        self, kernel_size: Any, strides: Any = 1, padding: str = "valid", depth_multiplier: int = 1,
        data_format: str | None = None, activation: Any = None, use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
        depthwise_constraint: Any = None, bias_constraint: Any = None, dilation_rate: Any = 1,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, activity_regularizer=activity_regularizer, **kwargs)
        if data_format == "channels_first":
            raise ValueError("DepthwiseConv2D is supported for data_format channels_last only; transpose the images")
        self.kernel_size, self.strides, self.dilation_rate = _two(kernel_size), _two(strides), _two(dilation_rate)
        self.padding, self.depth_multiplier, self.data_format = padding.lower(), depth_multiplier, "channels_last"
        self.activation, self.use_bias = activations.get(activation), use_bias
        self.depthwise_initializer = initializers.get(depthwise_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.depthwise_regularizer = regularizers.get(depthwise_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.depthwise_constraint = constraints.get(depthwise_constraint)
        self.bias_constraint = constraints.get(bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Makes depthwise_kernel [rows, columns, channels, depth_multiplier] and the bias."""
        channels = input_shape[-1].value
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer, regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )  # fmt: skip
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [channels * self.depth_multiplier], initializer=self.bias_initializer,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint)  # fmt: skip
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """The filtered images."""
        outputs = depthwise_conv2d(
            inputs, self.depthwise_kernel, [1, *self.strides, 1], self.padding.upper(), self.dilation_rate
        )
        if self.bias is not None:
            outputs = bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


def _two(size: Any) -> tuple[int, int]:
    one, other = (size, size) if isinstance(size, int) else size
    return one, other


class Attention(Layer):
    """Dot-product attention: softmax(query @ key) @ value.

    Called on [query, value] or [query, value, key], each [batch, steps, width].
    """

    def __init__(self, use_scale: bool = False, causal: bool = False, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.use_scale, self.causal = use_scale, causal

    def build(self, input_shape: Any) -> None:
        """Makes the scale, if it is wanted."""
        self.scale_weight = self.add_weight("scale", [], initializer="ones") if self.use_scale else None
        super().build(input_shape)

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The values that queries attend to [batch, steps of the query, width]."""
        query, value, key = inputs[0], inputs[1], inputs[-1]
        scores = matmul(query, key, transpose_b=True)
        if self.scale_weight is not None:
            scores = scores * self.scale_weight
        of_values = mask[1] if isinstance(mask, list | tuple) and len(mask) > 1 else None
        if of_values is not None:
            scores = scores - 1e9 * expand_dims(1.0 - math_ops.cast(of_values, scores.dtype), 1)
        if self.causal:
            from dtf.build.ops.diagonals import matrix_band_part
            from dtf.build.ops.filling import ones

            sizes = shape_of(scores)
            scores = scores - 1e9 * (1.0 - matrix_band_part(ones([sizes[1], sizes[2]]), -1, 0))
        return matmul(activations_ops.softmax(scores), value)
