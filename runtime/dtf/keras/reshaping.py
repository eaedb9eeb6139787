"""tf.keras.layers: global pools, repetition, padding and cropping.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.ops.array import expand_dims, reshape, shape_of
from dtf.build.ops.joining import concat, pad, tile
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.reductions import reduce_max, reduce_mean, reduce_sum
from dtf.keras.base import Layer

__all__ = [
    "Cropping1D", "Cropping2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D",
    "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D",
    "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "Permute", "RepeatVector", "UpSampling1D",
    "UpSampling2D", "ZeroPadding1D", "ZeroPadding2D",
]  # fmt: skip


class _Global(Layer):
    _axes: Sequence[int]
    _reduce: Callable[..., Any]

    def __init__(self, data_format: str | None = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.data_format = data_format or "channels_last"

    def call(self, inputs: Any) -> Any:
        """One number for each channel."""
        first = 2 if self.data_format == "channels_first" else 1
        return type(self)._reduce(inputs, [axis - 1 + first for axis in self._axes])


class GlobalMaxPooling1D(_Global):
    """The maximum over the steps of sequences [steps, channels]."""

    _axes, _reduce = (1,), staticmethod(reduce_max)


class GlobalMaxPooling2D(_Global):
    """The maximum of each channel of images [height, width, channels]."""

    _axes, _reduce = (1, 2), staticmethod(reduce_max)


class GlobalMaxPooling3D(_Global):
    """The maximum of each channel of volumes."""

    _axes, _reduce = (1, 2, 3), staticmethod(reduce_max)


class GlobalAveragePooling1D(_Global):
    """The mean over the steps of sequences [steps, channels]; masked steps do not count."""

    _axes, _reduce = (1,), staticmethod(reduce_mean)
    supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """One number for each channel."""
        if mask is None:
            return super().call(inputs)
        weights = expand_dims(math_ops.cast(mask, inputs.dtype), -1)
        return reduce_sum(inputs * weights, [1]) / reduce_sum(weights, [1])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: the steps are gone."""
        return None


class GlobalAveragePooling2D(_Global):
    """The mean of each channel of images [height, width, channels]."""

    _axes, _reduce = (1, 2), staticmethod(reduce_mean)


class GlobalAveragePooling3D(_Global):
    """The mean of each channel of volumes."""

    _axes, _reduce = (1, 2, 3), staticmethod(reduce_mean)


GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = (
    GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D,
)  # fmt: skip


GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D


class RepeatVector(Layer):
    """A vector [features] `n` times: [n, features]."""

    def __init__(self, n: int, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.n = n

    def call(self, inputs: Any) -> Any:
        """The vectors."""
        return tile(expand_dims(inputs, 1), [1, self.n, 1])


class Permute(Layer):
    """The dimensions of an example, numbered from 1, in another order."""

    def __init__(self, dims: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.dims = tuple(dims)

    def call(self, inputs: Any) -> Any:
        """The transposed examples."""
        return transpose(inputs, [0, *self.dims])


class UpSampling1D(Layer):
    """Each step of sequences `size` times."""

    def __init__(self, size: int = 2, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.size = size

    def call(self, inputs: Any) -> Any:
        """The longer sequences."""
        return _repeated(inputs, 1, self.size)


class UpSampling2D(Layer):
    """Each row and column of images `size` times; interpolation is "nearest" or "bilinear"."""

    def __init__(
        self, size: Any = 2, data_format: str | None = None, interpolation: str = "nearest", name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.data_format = data_format or "channels_last"
        self.interpolation = interpolation

    def call(self, inputs: Any) -> Any:
        """The larger images."""
        first = 2 if self.data_format == "channels_first" else 1
        if self.interpolation == "bilinear":
            from dtf.build.ops.image import resize_bilinear

            sizes = shape_of(inputs)[1:3] * list(self.size)
            outputs = resize_bilinear(inputs, sizes)
            static = [
                None if each.value is None else each.value * factor
                for each, factor in zip(inputs.shape[1:3], self.size, strict=True)
            ]
            outputs.set_shape([inputs.shape[0].value, *static, inputs.shape[3].value])
            return outputs
        return _repeated(_repeated(inputs, first, self.size[0]), first + 1, self.size[1])


def _repeated(inputs: Any, axis: int, count: int) -> Any:
    """Each slice along `axis` `count` times."""
    sizes, rank = shape_of(inputs), inputs.shape.ndims
    copies = [1] * (rank + 1)
    copies[axis + 1] = count
    outputs = reshape(
        tile(expand_dims(inputs, axis + 1), copies), concat([sizes[:axis], [sizes[axis] * count], sizes[axis + 1 :]], 0)
    )
    static = inputs.shape.as_list()
    static[axis] = None if static[axis] is None else static[axis] * count
    outputs.set_shape(static)
    return outputs


class ZeroPadding1D(Layer):
    """Zeros around sequences: one number, or (before, after)."""

    def __init__(self, padding: Any = 1, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.padding = (padding, padding) if isinstance(padding, int) else tuple(padding)

    def call(self, inputs: Any) -> Any:
        """The longer sequences."""
        return pad(inputs, [(0, 0), self.padding, (0, 0)])


class ZeroPadding2D(Layer):
    """Zeros around images: one number, (rows, columns), or ((top, bottom), (left, right))."""

    def __init__(
        self, padding: Any = 1, data_format: str | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.padding = _sides(padding)
        self.data_format = data_format or "channels_last"

    def call(self, inputs: Any) -> Any:
        """The larger images."""
        rows, columns = self.padding
        if self.data_format == "channels_first":
            return pad(inputs, [(0, 0), (0, 0), rows, columns])
        return pad(inputs, [(0, 0), rows, columns, (0, 0)])


class Cropping1D(Layer):
    """Sequences without their first and last steps."""

    def __init__(self, cropping: Any = (1, 1), name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.cropping = (cropping, cropping) if isinstance(cropping, int) else tuple(cropping)

    def call(self, inputs: Any) -> Any:
        """The shorter sequences."""
        before, after = self.cropping
        return inputs[:, before : -after if after else None]


class Cropping2D(Layer):
    """Images without their edges: one number, (rows, columns), or ((top, bottom), (left, right))."""

    def __init__(
        self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.cropping = _sides(cropping)
        self.data_format = data_format or "channels_last"

    def call(self, inputs: Any) -> Any:
        """The smaller images."""
        (top, bottom), (left, right) = self.cropping
        rows, columns = slice(top, -bottom if bottom else None), slice(left, -right if right else None)
        return inputs[:, :, rows, columns] if self.data_format == "channels_first" else inputs[:, rows, columns]


def _sides(padding: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    sides = (padding, padding) if isinstance(padding, int) else padding
    rows, columns = ((each, each) if isinstance(each, int) else tuple(each) for each in sides)
    return rows, columns
