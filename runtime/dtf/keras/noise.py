"""tf.keras.layers: noise and dropout while a model trains.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.ops.array import shape_of
from dtf.build.ops.control_flow import cond
from dtf.build.ops.joining import concat
from dtf.build.ops.nn import dropout
from dtf.build.ops.random import random_normal
from dtf.keras.base import Layer

__all__ = [
    "AlphaDropout", "GaussianDropout", "GaussianNoise", "SpatialDropout1D", "SpatialDropout2D",
]  # fmt: skip


class _Noise(Layer):
    supports_masking = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The inputs, changed while training."""
        return while_training(training, lambda: self._noisy(inputs), inputs)

    def _noisy(self, inputs: Any) -> Any:
        raise NotImplementedError


def while_training(training: Any, changed: Callable[[], Any], inputs: Any) -> Any:
    """changed() while training, else the inputs."""
    if isinstance(training, bool | int):
        return changed() if training else inputs
    outputs = cond(training, changed, lambda: math_ops.add(inputs, 0))
    outputs.set_shape(inputs.shape)
    return outputs


class GaussianNoise(_Noise):
    """While training, adds normal numbers."""

    def __init__(self, stddev: float, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.stddev = stddev

    def _noisy(self, inputs: Any) -> Any:
        return inputs + random_normal(shape_of(inputs), 0.0, self.stddev, inputs.dtype.base_dtype)


class GaussianDropout(_Noise):
    """While training, multiplies by normal numbers around 1."""

    def __init__(self, rate: float, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate

    def _noisy(self, inputs: Any) -> Any:
        deviation = (self.rate / (1.0 - self.rate)) ** 0.5
        return inputs * random_normal(shape_of(inputs), 1.0, deviation, inputs.dtype.base_dtype)


class AlphaDropout(_Noise):
    """A dropout that keeps mean and variance, for selu."""

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def _noisy(self, inputs: Any) -> Any:
        low = -1.6732632423543772 * 1.0507009873554805
        kept = dropout(inputs * 0 + 1.0, rate=self.rate, noise_shape=self.noise_shape, seed=self.seed) > 0
        a = ((1 - self.rate) * (1 + self.rate * low**2)) ** -0.5
        mask = math_ops.cast(kept, inputs.dtype)
        return a * (inputs * mask + low * (1 - mask)) - a * low * self.rate


class SpatialDropout1D(_Noise):
    """While training, zeroes whole channels of [batch, time, channels]."""

    def __init__(self, rate: float, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate

    def _noisy(self, inputs: Any) -> Any:
        sizes = shape_of(inputs)
        ones = [1] * (inputs.shape.ndims - 2)
        return dropout(inputs, rate=self.rate, noise_shape=concat([sizes[:1], ones, sizes[-1:]], 0))


class SpatialDropout2D(SpatialDropout1D):
    """While training, zeroes whole channels of images."""
