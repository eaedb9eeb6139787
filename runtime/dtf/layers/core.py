"""Dense, dropout and flatten: the layers without windows.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.initializers import zeros_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import joining, rearranging
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import nn as nn_ops
from dtf.build.tensor import Tensor
from dtf.layers.base import InputSpec, Layer, layer_function
from dtf.layers.choices import Activation, checked_activation, either, is_channels_first, known_size, static_bool
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["Dense", "Dropout", "Flatten", "dense", "dropout", "flatten"]


class Dense(Layer):
    """activation(inputs @ kernel + bias), over the last dimension of inputs of any rank from 1.

    The variables are kernel [size of the last dimension, units] and bias [units].

    Raises, when called:
      ValueError: the last dimension is not known.
      TypeError: the inputs are not of a floating dtype.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/Dense
    """

    def __init__(
        self,
        units: int,
        activation: Activation | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = zeros_initializer(),  # noqa: B008 - as TensorFlow's signature shows it
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        if self.units <= 0:
            raise ValueError(f"Received an invalid value for `units`, expected a positive integer. Received: {units}")
        self.activation = checked_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        input_shape = TensorShape(input_shape)
        if self.dtype is not None and not (self.dtype.is_floating or self.dtype.is_complex):
            raise TypeError(f"Layer {self.name} takes inputs of a floating dtype, not {self.dtype}: cast them first.")
        width = known_size(input_shape, -1, self.name)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: width})
        self.kernel = self.add_weight(
            "kernel",
            [width, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        rank = inputs.shape.ndims
        assert rank is not None
        if rank == 2:
            outputs = linalg_ops.matmul(inputs, self.kernel)
        else:
            outputs = linalg_ops.tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape([*inputs.shape.as_list()[:-1], self.units])
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return self.activation(outputs) if self.activation else outputs


dense = layer_function(Dense, "dense")


class Dropout(Layer):
    """tf.nn.dropout with `rate` while training; otherwise returns the inputs."""

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs, unchanged."""
        return input_shape

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """`training`: a Python bool or a bool scalar tensor."""
        return either(
            training,
            static_bool(training),
            lambda: [nn_ops.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)],
            lambda: [array_ops.identity(inputs)],
        )[0]


def dropout(
    inputs: TensorLike,
    rate: TensorLike = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """tf.nn.dropout with `rate` while `training` (a Python bool or a bool scalar tensor); otherwise returns the
    inputs.

    Args:
      inputs: a tensor of floating-point numbers.
      rate: the probability that an element becomes 0.
      noise_shape: an int32 vector; dimensions of size 1 are kept or dropped as a whole.
      seed: the seed of the operation.
      training: a Python bool or a bool scalar tensor.
      name: the name of the layer.

    Returns:
      A Tensor of the shape and dtype of `inputs`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/dropout
    """
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)


class Flatten(Layer):
    """[batch, ...] as [batch, elements]; channels that come first are moved to the end before."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = data_format or "channels_last"
        self._channels_first = is_channels_first(self.data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:
        rank = inputs.shape.ndims
        if rank is not None and rank > 2 and self._channels_first:
            inputs = rearranging.transpose(inputs, [0, *range(2, rank), 1])
        elements = inputs.shape[1:].num_elements() if rank is not None else None
        if rank == 1:
            elements = 1
        if elements is not None:
            outputs = array_ops.reshape(inputs, [-1, elements])
        else:
            outputs = array_ops.reshape(inputs, joining.stack([array_ops.shape(inputs)[0], -1]))
        outputs.set_shape([inputs.shape[0] if rank is not None else None, elements])
        return outputs


def flatten(inputs: TensorLike, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """[batch, ...] as [batch, elements]; channels that come first are moved to the end before.

    Args:
      inputs: a tensor [batch, ...].
      name: the name of the layer.
      data_format: "channels_last" or "channels_first".

    Returns:
      A Tensor [batch, elements].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/flatten
    """
    return Flatten(data_format, name=name)(inputs)
