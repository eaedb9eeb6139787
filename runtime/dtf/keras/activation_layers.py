"""tf.keras.layers: activations with arguments, as layers.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

from typing import Any

from dtf.build.ops import activations as activations_ops
from dtf.build.ops import math as math_ops
from dtf.keras import activations, constraints, initializers, regularizers
from dtf.keras.base import Layer

__all__ = [
    "ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax", "ThresholdedReLU",
]  # fmt: skip


class LeakyReLU(Layer):
    """x where it is positive, alpha * x elsewhere."""

    supports_masking = True

    def __init__(self, alpha: float = 0.3, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.alpha = float(alpha)

    def call(self, inputs: Any) -> Any:
        """The activated inputs."""
        return activations_ops.leaky_relu(inputs, self.alpha)


class PReLU(Layer):
    """x where it is positive, elsewhere x times a weight alpha."""

    supports_masking = True

    def __init__(
        self, alpha_initializer: Any = "zeros", alpha_regularizer: Any = None, alpha_constraint: Any = None,
        shared_axes: Any = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.alpha_initializer = initializers.get(alpha_initializer)
        self.alpha_regularizer = regularizers.get(alpha_regularizer)
        self.alpha_constraint = constraints.get(alpha_constraint)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else shared_axes

    def build(self, input_shape: Any) -> None:
        """Makes alpha, of the shape of one example; 1 along the shared axes."""
        shape = [each.value for each in input_shape[1:]]
        for axis in self.shared_axes or ():
            shape[axis - 1] = 1
        self.alpha = self.add_weight(
            "alpha", shape, initializer=self.alpha_initializer, regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
        )  # fmt: skip
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """The activated inputs."""
        return activations_ops.relu(inputs) - self.alpha * activations_ops.relu(-inputs)


class ReLU(Layer):
    """max(x, 0), and at most `max_value`."""

    supports_masking = True

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0, threshold: float = 0, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Any) -> Any:
        """The activated inputs."""
        return activations.relu_of(inputs, self.negative_slope, self.max_value, self.threshold)


class ELU(Layer):
    """x above 0, alpha * (exp(x) - 1) below."""

    supports_masking = True

    def __init__(self, alpha: float = 1.0, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.alpha = float(alpha)

    def call(self, inputs: Any) -> Any:
        """The activated inputs."""
        return activations.elu_of(inputs, self.alpha)


class ThresholdedReLU(Layer):
    """x above theta, else 0."""

    supports_masking = True

    def __init__(self, theta: float = 1.0, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.theta = float(theta)

    def call(self, inputs: Any) -> Any:
        """The activated inputs."""
        return inputs * math_ops.cast(inputs > self.theta, inputs.dtype)


class Softmax(Layer):
    """Probabilities along an axis."""

    supports_masking = True

    def __init__(self, axis: int = -1, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        """The probabilities."""
        return activations_ops.softmax(inputs, self.axis)
