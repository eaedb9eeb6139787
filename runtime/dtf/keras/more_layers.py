"""tf.keras.layers: layers that join tensors, functions as layers, global pools, padding, noise and attention.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.ops import activations as activations_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import normalization as normalization_ops
from dtf.build.ops.array import expand_dims, reshape, shape_of
from dtf.build.ops.control_flow import cond
from dtf.build.ops.conv import depthwise_conv2d
from dtf.build.ops.joining import concat, pad, tile
from dtf.build.ops.linalg import matmul
from dtf.build.ops.nn import bias_add, dropout
from dtf.build.ops.random import random_normal
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.reductions import reduce_any, reduce_max, reduce_mean, reduce_sum
from dtf.build.tensor import Tensor
from dtf.keras import activations, constraints, initializers, regularizers
from dtf.keras.base import Layer

__all__ = [
    "ActivityRegularization", "Add", "AlphaDropout", "Attention", "Average", "Concatenate", "Cropping1D", "Cropping2D",
    "DepthwiseConv2D", "Dot", "ELU", "GaussianDropout", "GaussianNoise", "GlobalAveragePooling1D",
    "GlobalAveragePooling2D", "GlobalAveragePooling3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "Lambda", "LayerNormalization",
    "LeakyReLU", "Masking", "Maximum", "Minimum", "Multiply", "PReLU", "Permute", "ReLU", "RepeatVector", "Softmax",
    "SpatialDropout1D", "SpatialDropout2D", "Subtract", "ThresholdedReLU", "UpSampling1D", "UpSampling2D",
    "ZeroPadding1D", "ZeroPadding2D", "add", "average", "concatenate", "dot", "maximum", "minimum", "multiply",
    "subtract",
]  # fmt: skip


class Lambda(Layer):
    """A function of tensors as a layer; it makes no variables. `output_shape` follows from the function."""

    def __init__(
        self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None, arguments: Any = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.function, self.mask = function, mask
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


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


class _Joining(Layer):
    """One tensor out of a list, element by element."""

    supports_masking = True

    def call(self, inputs: Any) -> Any:
        """The joined tensor."""
        values = list(inputs)
        if len(values) < 2:
            raise ValueError(f"A layer {type(self).__name__} joins a list of at least 2 tensors, not {len(values)}")
        ranks = {each.shape.ndims for each in values}
        if len(ranks) > 1 and None not in ranks:  # Keras adds dimensions after the batch's
            most = max(rank for rank in ranks if rank is not None)
            for index, each in enumerate(values):
                while values[index].shape.ndims < most:
                    values[index] = expand_dims(values[index], 1)
                del each
        return self._joined(values)

    def _joined(self, values: list[Tensor]) -> Tensor:
        raise NotImplementedError


class Add(_Joining):
    """The sum of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.add, values)


class Multiply(_Joining):
    """The product of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.multiply, values)


class Maximum(_Joining):
    """The maximum of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.maximum, values)


class Minimum(_Joining):
    """The minimum of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.minimum, values)


class Subtract(_Joining):
    """The difference of two tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        if len(values) != 2:
            raise ValueError(f"Subtract takes 2 tensors, not {len(values)}")
        return math_ops.subtract(values[0], values[1])


class Average(_Joining):
    """The mean of tensors."""

    def _joined(self, values: list[Tensor]) -> Tensor:
        return functools.reduce(math_ops.add, values) / float(len(values))


class Concatenate(Layer):
    """The tensors one after the other along `axis`."""

    def __init__(self, axis: int = -1, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        """The tensors in one."""
        return concat(list(inputs), self.axis)


class Dot(Layer):
    """The dot products of two tensors along one axis of each, for each example."""

    def __init__(self, axes: Any, normalize: bool = False, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.axes, self.normalize = axes, normalize

    def call(self, inputs: Any) -> Any:
        """The products: of [batch, n] along 1 [batch, 1]."""
        one, other = inputs
        axes = [self.axes] * 2 if isinstance(self.axes, int) else list(self.axes)
        axes = [axis % each.shape.ndims for axis, each in zip(axes, (one, other), strict=True)]
        if self.normalize:
            one = normalization_ops.l2_normalize(one, axes[0])
            other = normalization_ops.l2_normalize(other, axes[1])
        return batch_dot(one, other, axes)


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """The products of two tensors along one axis of each, for each example.

    Args:
      x, y: [batch, ...], of rank 2 or more.
      axes: the axes that are summed; by default the last one of x and the last but one of y.

    Returns:
      A Tensor [batch, the rest of x, the rest of y]; [batch, 1] where nothing is left.
    """
    if axes is None:
        axes = [x.shape.ndims - 1, max(1, y.shape.ndims - 2)]
    first, second = [axes] * 2 if isinstance(axes, int) else list(axes)
    first, second = first % x.shape.ndims, second % y.shape.ndims
    if x.shape.ndims == 2 and y.shape.ndims == 2:
        return reduce_sum(x * y, 1, keepdims=True)
    rest = [axis for axis in range(1, x.shape.ndims) if axis != first]
    others = [axis for axis in range(1, y.shape.ndims) if axis != second]
    left = transpose(x, [0, *rest, first])
    right = transpose(y, [0, second, *others])
    sizes, counts = shape_of(left), shape_of(right)
    flat = reshape(left, [sizes[0], -1, sizes[x.shape.ndims - 1]])
    product = matmul(flat, reshape(right, [counts[0], counts[1], -1]))
    if not rest and not others:
        return reshape(product, [-1, 1])
    outputs = reshape(product, concat([sizes[:-1], counts[2:]], 0))
    static = [x.shape[0].value, *[x.shape[axis].value for axis in rest], *[y.shape[axis].value for axis in others]]
    outputs.set_shape(static)
    return outputs


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


def minimum(inputs: Any, **kwargs: Any) -> Any:
    """The minimum of tensors."""
    return Minimum(**kwargs)(inputs)


def average(inputs: Any, **kwargs: Any) -> Any:
    """The mean of tensors."""
    return Average(**kwargs)(inputs)


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """The tensors one after the other along `axis`."""
    return Concatenate(axis, **kwargs)(inputs)


def dot(inputs: Any, axes: Any, normalize: bool = False, **kwargs: Any) -> Any:
    """The dot products of two tensors."""
    return Dot(axes, normalize, **kwargs)(inputs)


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


GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D
GlobalMaxPool1D, GlobalMaxPool2D = GlobalMaxPooling1D, GlobalMaxPooling2D


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
