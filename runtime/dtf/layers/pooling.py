"""Pooling over windows of sequences, images and volumes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/MaxPooling2D and the pages of the others
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dtf.build.ops import array as array_ops
from dtf.build.ops import conv as conv_ops
from dtf.build.ops import volume as volume_ops
from dtf.build.tensor import Tensor
from dtf.layers.base import InputSpec, Layer, layer_function
from dtf.layers.choices import is_channels_first, numbers, op_format, op_padding

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
]


class _Pooling(Layer):
    """One number out of every window of `pool_size`, every `strides` places, for each channel."""

    rank: ClassVar[int]
    pool: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = numbers(pool_size, self.rank, "pool_size")
        self.strides = numbers(strides, self.rank, "strides")
        self.padding = op_padding(padding)
        self.data_format = data_format
        self._channels_first = is_channels_first(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        pool = type(self).pool
        if self.rank > 1:
            return pool(inputs, self.pool_size, self.strides, self.padding, op_format(self.data_format, self.rank))
        # Sequences are images of width 1.
        width = 3 if self._channels_first else 2
        outputs = pool(
            array_ops.expand_dims(inputs, width),
            [*self.pool_size, 1],
            [*self.strides, 1],
            self.padding,
            op_format(self.data_format, 2),
        )
        return array_ops.squeeze(outputs, [width])


class MaxPooling1D(_Pooling):
    """The maximum over windows of sequences."""

    rank = 1
    pool = staticmethod(conv_ops.max_pool)


class MaxPooling2D(_Pooling):
    """The maximum over windows of images."""

    rank = 2
    pool = staticmethod(conv_ops.max_pool)


class MaxPooling3D(_Pooling):
    """The maximum over windows of volumes."""

    rank = 3
    pool = staticmethod(volume_ops.max_pool3d)


class AveragePooling1D(_Pooling):
    """The mean over windows of sequences."""

    rank = 1
    pool = staticmethod(conv_ops.avg_pool)


class AveragePooling2D(_Pooling):
    """The mean over windows of images."""

    rank = 2
    pool = staticmethod(conv_ops.avg_pool)


class AveragePooling3D(_Pooling):
    """The mean over windows of volumes."""

    rank = 3
    pool = staticmethod(volume_ops.avg_pool3d)


max_pooling1d = layer_function(MaxPooling1D, "max_pooling1d", scoped=False)
max_pooling2d = layer_function(MaxPooling2D, "max_pooling2d", scoped=False)
max_pooling3d = layer_function(MaxPooling3D, "max_pooling3d", scoped=False)
average_pooling1d = layer_function(AveragePooling1D, "average_pooling1d", scoped=False)
average_pooling2d = layer_function(AveragePooling2D, "average_pooling2d", scoped=False)
average_pooling3d = layer_function(AveragePooling3D, "average_pooling3d", scoped=False)
