"""Convolutions, products, normalisations, softmax and Adam by oneDNN, where installed: faster, else the same.

Owns the rows above numpy's, and for which of them that pays; how oneDNN is called is in `onednn`. All else stays with
numpy's kernels: other types than float32, channels before rows, empty arrays, what is an error, and the shapes for
which numpy's matrix products are as fast (measured; the table is in tests/bench/README.md):

- windows of one element, which are nothing but a matrix product;
- the filters' gradient from 32 input channels on, where the processor has no AVX-512;
- batch normalisations and softmax of fewer than 2 ** 14 elements, gradients of Relu of fewer than 2 ** 16;
- products of fewer than 2 ** 20 multiplications, and updates of fewer than 2 ** 14 elements.

The library is loaded by the first node that convolves or pools, and by the first product, update or normalisation of
enough elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import cast

import numpy as np

from dtf.run.kernels import ONEDNN, Function, KernelNode, below, kernel, with_into
from dtf.run.kernels.arguments import room
from dtf.run.kernels.conv import Convolution, ConvolutionSettings, convolution_settings
from dtf.run.kernels.nn import moved_statistics
from dtf.run.kernels.pooling import PoolingSettings, pooling_settings, pooling_window
from dtf.run.kernels.training import Rule, adam_rate, adam_rule, of_references, of_resources
from dtf.run.lib import onednn, onednn_norms
from dtf.run.threads.blas_threads import threads_taken
from dtf.run.value_types import Array, ArrayFunction
from dtf.wire import dtypes
from dtf.wire.window_shapes import Extent, channel_axis

_CHANNELS_OF_FILTER_GRADIENT_MAX = 31
_MULTIPLICATIONS_MIN = 1 << 20
_UPDATED_MIN = 1 << 14
_NORMALIZED_MIN = 1 << 14
_RECTIFIED_MIN = 1 << 16
_ALL_AT_ONCE = 1 << 62
_Sizes = tuple[int, ...]
_Pair = tuple[int, int]
_ConvolutionProgram = Callable[[_Sizes, _Sizes, "_Sizes | None", int], "onednn.Program | None"]
_PoolingProgram = Callable[[_Sizes, "_Sizes | None", int], "onednn.Program | None"]

_PROGRAMS_PER_NODE_MAX = 16
"""How many shapes of its inputs a node remembers; oneDNN itself remembers its code."""


@kernel("Conv2D", "DepthwiseConv2dNative", priority=ONEDNN)
def _(node: KernelNode) -> Function | None:
    program = _convolution_programs(node, onednn.FORWARD)
    if program is None:
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def convolve(images: Array, filters: Array) -> Array:
        if _are_float32(images, filters):
            compute = program(images.shape, filters.shape, None, threads_taken())
            if compute is not None:
                return compute(_packed(images), _packed(filters))
        return plain(images, filters)

    return convolve


@kernel("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput", priority=ONEDNN)
def _(node: KernelNode) -> Function | None:
    program = _convolution_programs(node, onednn.BACK_TO_IMAGES)
    if program is None:
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def back_to_images(sizes: Array, filters: Array, gradient: Array) -> Array:
        if _are_float32(filters, gradient):
            compute = program(tuple(sizes.tolist()), filters.shape, gradient.shape, threads_taken())
            if compute is not None:
                return compute(_packed(gradient), _packed(filters))
        return plain(sizes, filters, gradient)

    return back_to_images


@kernel("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter", priority=ONEDNN)
def _(node: KernelNode) -> Function | None:
    program = _convolution_programs(node, onednn.BACK_TO_FILTERS)
    if program is None:
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def back_to_filters(images: Array, sizes: Array, gradient: Array) -> Array:
        if _are_float32(images, gradient):
            compute = program(images.shape, tuple(sizes.tolist()), gradient.shape, threads_taken())
            if compute is not None:
                return compute(_packed(images), _packed(gradient))
        return plain(images, sizes, gradient)

    return back_to_filters


@kernel("MaxPool", "AvgPool", priority=ONEDNN)
def _(node: KernelNode) -> Function | None:
    program = _pooling_programs(node, onednn.pooling)
    if program is None:
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def pool(images: Array) -> Array:
        if _are_float32(images):
            compute = program(images.shape, None, threads_taken())
            if compute is not None:
                return compute(_packed(images))
        return plain(images)

    return pool


@kernel("MaxPoolGrad", priority=ONEDNN)
def _(node: KernelNode) -> Function | None:
    program = _pooling_programs(node, onednn.pooling_gradient)
    if program is None:
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def max_pool_back(images: Array, pooled: Array, gradient: Array) -> Array:
        if _are_float32(images, pooled, gradient) and pooled.shape == gradient.shape:
            compute = program(images.shape, gradient.shape, threads_taken())
            if compute is not None:
                return compute(_packed(images), _packed(gradient))
        return plain(images, pooled, gradient)

    return max_pool_back


@kernel("AvgPoolGrad", priority=ONEDNN)
def _(node: KernelNode) -> Function | None:
    program = _pooling_programs(node, onednn.pooling_gradient)
    if program is None:
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def avg_pool_back(shape: Array, gradient: Array) -> Array:
        if _are_float32(gradient):
            compute = program(tuple(shape.tolist()), gradient.shape, threads_taken())
            if compute is not None:
                return compute(_packed(gradient))
        return plain(shape, gradient)

    return avg_pool_back


@kernel("MatMul", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    return _products(node, node.attr("transpose_a"), node.attr("transpose_b"))


@kernel("BatchMatMul", "BatchMatMulV2", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    return _products(node, node.attr("adj_x"), node.attr("adj_y"))


def _products(node: KernelNode, transpose_left: bool, transpose_right: bool) -> Function | None:
    if onednn.is_switched_off():
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))
    rank_max = 2 if node.op == "MatMul" else _PRODUCT_RANK_MAX

    def multiply(left: Array, right: Array) -> Array:
        if type(left) is np.ndarray and type(right) is np.ndarray and 2 <= left.ndim == right.ndim <= rank_max:
            rows, inner = left.shape[-2:][:: -1 if transpose_left else 1]
            columns = right.shape[-2 if transpose_right else -1]
            if (
                rows * inner * columns * math.prod(left.shape[:-2]) >= _MULTIPLICATIONS_MIN
                and left.shape[:-2] == right.shape[:-2]
                and right.shape[-1 if transpose_right else -2] == inner
                and rows > 1 < columns
            ):
                left, turn_left = _in_rows(left)
                right, turn_right = _in_rows(right)
                turned = transpose_left != turn_left, transpose_right != turn_right
                compute = _matmul(left.shape, right.shape, *turned, threads_taken())
                if compute is not None:
                    room((*left.shape[:-2], rows, columns), np.float32)
                    return compute(left, right)
                left = left.T if turn_left else left
                right = right.T if turn_right else right
        return plain(left, right)

    return multiply


_PRODUCT_RANK_MAX = 5
_matmul = functools.lru_cache(256)(onednn.matmul)
_adam = functools.lru_cache(256)(onednn.adam)


def _in_rows(array: Array) -> tuple[Array, bool]:
    """The array, or its transpose, as oneDNN reads it, row by row; and whether it is the transpose."""
    if array.flags.c_contiguous:
        return array, False
    if array.ndim == 2 and array.flags.f_contiguous:
        return array.T, True
    return np.ascontiguousarray(array), False


@kernel("ApplyAdam", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    rule = _fast_adam(node)
    return None if rule is None else of_references(node, rule, _ALL_AT_ONCE)


@kernel("ResourceApplyAdam", priority=ONEDNN, types={"T": [dtypes.float32]}, stateful=True)
def _(node: KernelNode) -> Function | None:
    rule = _fast_adam(node)
    return None if rule is None else of_resources(node, rule, _ALL_AT_ONCE)


def _fast_adam(node: KernelNode) -> Rule | None:
    if onednn.is_switched_off() or node.attr("use_nesterov"):
        return None
    plain = adam_rule(node)

    def adam(var: Array, m: Array, v: Array, grad: Array, *scalars: Array) -> None:
        arrays = var, m, v, grad
        if grad.size >= _UPDATED_MIN and _are_float32(*arrays) and all(each.flags.c_contiguous for each in arrays):
            beta1_power, beta2_power, lr, beta1, beta2, epsilon = scalars
            apply = _adam(grad.size, float(beta1), float(beta2), float(epsilon), threads_taken())
            if apply is not None:
                apply(*arrays, np.array([-adam_rate(lr, beta1_power, beta2_power)], np.float32))
                return
        plain(*arrays, *scalars)

    return adam


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    if onednn.is_switched_off() or channel_axis(node.attr("data_format").decode(), 4) != 3:
        return None
    plain = cast(NormalizationFunction, below(node, ONEDNN))
    epsilon, is_training = node.attr("epsilon"), node.attr("is_training")
    factor = node.attr("exponential_avg_factor")
    reserved: tuple[Array, ...] = (np.zeros((), np.float32),) if node.op == "FusedBatchNormV3" else ()

    def normalize(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
        statistics = (mean, variance) if not is_training or factor != 1 else ()
        if _can_normalize(x, scale, offset, *statistics) and np.ndim(mean) == 1 == np.ndim(variance):
            compute = _batch_norm(_in_four(x.shape), epsilon, is_training, threads_taken())
            if compute is not None:
                room(x.shape, np.float32)
                vectors = (scale, offset) if is_training else (scale, offset, mean, variance)
                y, used_mean, used_variance = compute(_packed(x), *map(_packed, vectors))
                if not is_training:
                    return y, mean, variance, mean, variance, *reserved
                count = x.size // x.shape[-1]
                moved = moved_statistics(used_mean, used_variance, mean, variance, count, factor)
                return y, *moved, used_mean, used_variance, *reserved
        return plain(x, scale, offset, mean, variance)

    return normalize


@kernel(
    "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
    priority=ONEDNN, types={"T": [dtypes.float32]},
)  # fmt: skip
def _(node: KernelNode) -> Function | None:
    if onednn.is_switched_off() or channel_axis(node.attr("data_format").decode(), 4) != 3:
        return None
    plain = cast(NormalizationFunction, below(node, ONEDNN))
    epsilon, is_training = node.attr("epsilon"), node.attr("is_training")

    def normalize_back(
        y_backprop: Array, x: Array, scale: Array, mean: Array, variance: Array, *reserved: Array
    ) -> tuple[Array, ...]:
        if _can_normalize(x, scale, mean, variance) and _are_float32(y_backprop) and y_backprop.shape == x.shape:
            compute = _batch_norm_gradient(_in_four(x.shape), epsilon, is_training, threads_taken())
            if compute is not None:
                room(x.shape, np.float32)
                gradients = compute(*map(_packed, (y_backprop, x, scale, mean, variance)))
                return *gradients, np.zeros(0, np.float32), np.zeros(0, np.float32)
        return plain(y_backprop, x, scale, mean, variance, *reserved)

    return normalize_back


@kernel("ReluGrad", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    if onednn.is_switched_off():
        return None
    plain = cast(ArrayFunction, below(node, ONEDNN))

    def fast(gradients: Array, features: Array) -> Callable[[Array, Array, Array], Array] | None:
        if gradients.size < _RECTIFIED_MIN or not _are_float32(gradients, features):
            return None
        if gradients.shape != features.shape or not (gradients.flags.c_contiguous and features.flags.c_contiguous):
            return None
        return _relu_gradient(gradients.size, threads_taken())

    def relu_back(gradients: Array, features: Array) -> Array:
        compute = fast(gradients, features) if gradients.size >= _RECTIFIED_MIN else None
        if compute is None:
            return plain(gradients, features)
        return compute(gradients, features, np.empty(gradients.shape, np.float32))

    def into(out: Array, gradients: Array, features: Array) -> Array | None:
        compute = fast(gradients, features)
        return None if compute is None else compute(gradients, features, out)

    return with_into(relu_back, into)


@kernel("Softmax", "LogSoftmax", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    if onednn.is_switched_off():
        return None
    plain, is_log = cast(ArrayFunction, below(node, ONEDNN)), node.op == "LogSoftmax"

    def softmax(logits: Array) -> Array:
        compute = _softmax_of(logits, is_log) if np.ndim(logits) else None
        if compute is None:
            return plain(logits)
        return compute(logits, np.empty(logits.shape, np.float32))

    return softmax


def _softmax_of(logits: Array, is_log: bool) -> Callable[[Array, Array], Array] | None:
    """A function of these logits, or None where numpy computes: oneDNN passes over elements that are not finite."""
    if logits.size < _SOFTMAX_MIN or not _are_float32(logits) or not logits.flags.c_contiguous:
        return None
    if not np.isfinite(np.max(logits)):
        return None
    columns = logits.shape[-1]
    return _softmax(logits.size // columns, columns, is_log, threads_taken())


_SOFTMAX_MIN = 1 << 14
_softmax = functools.lru_cache(256)(onednn.softmax)


@kernel("SparseSoftmaxCrossEntropyWithLogits", priority=ONEDNN, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    if onednn.is_switched_off():
        return None
    plain = cast("Callable[[Array, Array], tuple[Array, Array]]", below(node, ONEDNN))

    def loss_and_backprop(features: Array, labels: Array) -> tuple[Array, Array]:
        compute = None
        if np.ndim(features) == 2 and np.shape(labels) == features.shape[:1] and features.size >= _SOFTMAX_MIN:
            rows, classes = features.shape
            if labels.min() >= 0 and labels.max() < classes:
                compute = _softmax_of(features, False)
        if compute is None:
            return plain(features, labels)
        probability = compute(features, np.empty(features.shape, np.float32))
        at = np.arange(rows), labels
        # The largest probability is one over the sum that all of a row are divided by.
        loss = np.max(features, axis=-1) - features[at]
        loss -= np.log(np.max(probability, axis=-1))
        probability[at] -= 1
        return loss, probability

    return loss_and_backprop


_relu_gradient = functools.lru_cache(256)(onednn.relu_gradient)
NormalizationFunction = Callable[..., tuple[Array, ...]]
_batch_norm = functools.lru_cache(256)(onednn_norms.batch_norm)
_batch_norm_gradient = functools.lru_cache(256)(onednn_norms.batch_norm_gradient)


def _can_normalize(x: Array, *vectors: Array) -> bool:
    return (
        _are_float32(x, *vectors)
        and x.ndim in (4, 5)
        and x.size >= _NORMALIZED_MIN
        and all(vector.shape == x.shape[-1:] for vector in vectors)
    )


def _in_four(shape: _Sizes) -> _Sizes:
    """Three spatial dimensions as two: each element of a channel counts the same."""
    return shape if len(shape) == 4 else (shape[0], shape[1] * shape[2], *shape[3:])


def _convolution_programs(node: KernelNode, direction: str) -> _ConvolutionProgram | None:
    """None, or f(shape of images, of filters, of the outputs' gradient or None, threads) -> a program or None."""
    settings = convolution_settings(node)
    if settings.channels_first or not onednn.is_there():
        return None
    depthwise = node.op.startswith("Depthwise")

    @functools.lru_cache(_PROGRAMS_PER_NODE_MAX)
    def program(
        images: _Sizes, filters: _Sizes, outputs: _Sizes | None, threads: int
    ) -> onednn.Program | None:
        convolution = _worthwhile(settings, direction, images, filters, depthwise)
        if convolution is None:
            return None
        depth = filters[2] * filters[3] if depthwise else filters[3]
        expected = (*convolution.output_positions, depth)
        if not all(expected) or outputs not in (None, expected):
            return None
        size, (rows, columns) = (filters[0], filters[1]), (convolution.rows, convolution.columns)
        window = _window(size, settings.stride, settings.dilation, rows, columns)
        return onednn.convolution(direction, images, filters, expected, window, threads, depthwise)

    return program


def _worthwhile(
    settings: ConvolutionSettings, direction: str, images: _Sizes, filters: _Sizes, depthwise: bool
) -> Convolution | None:
    """The convolution if oneDNN is faster at it than numpy."""
    if len(images) != 4 or len(filters) != 4 or images[3] != filters[2] or not all((*images, *filters)):
        return None
    if not depthwise:
        if filters[:2] == (1, 1):
            return None
        is_for_numpy = direction == onednn.BACK_TO_FILTERS and filters[2] > _CHANNELS_OF_FILTER_GRADIENT_MAX
        if is_for_numpy and not onednn.has_avx512():
            return None
    return settings.convolution(images, filters)


def _pooling_programs(
    node: KernelNode, make: Callable[[int, _Sizes, _Sizes, onednn.Window, int], onednn.Program | None]
) -> _PoolingProgram | None:
    """None, or f(shape of images, of the outputs' gradient or None, threads) -> a program or None."""
    settings: PoolingSettings = pooling_settings(node)
    if settings.is_channels_first or not onednn.is_there():
        return None
    kind = onednn.MAXIMUM if node.op.startswith("Max") else onednn.AVERAGE
    ksize, strides = node.attr("ksize"), node.attr("strides")

    @functools.lru_cache(_PROGRAMS_PER_NODE_MAX)
    def program(images: _Sizes, outputs: _Sizes | None, threads: int) -> onednn.Program | None:
        if len(images) != 4 or not all(images) or ksize[3] != 1:  # numpy pools over the depth
            return None
        pooling = pooling_window(images, settings, ksize, strides)
        if not all(pooling.output_shape) or outputs not in (None, pooling.output_shape):
            return None
        window = _window(pooling.size, pooling.stride, (1, 1), pooling.rows, pooling.columns)
        return make(kind, images, pooling.output_shape, window, threads)

    return program


def _window(size: _Pair, stride: _Pair, dilation: _Pair, rows: Extent, columns: Extent) -> onednn.Window:
    before, after = (rows.before, columns.before), (rows.after, columns.after)
    return onednn.Window(size, stride, dilation, before, after)


def _are_float32(*arrays: Array) -> bool:
    return all(isinstance(array, np.ndarray) and array.dtype == np.float32 for array in arrays)


def _packed(array: np.ndarray) -> np.ndarray:
    """Contiguous, since oneDNN is told no strides."""
    return np.ascontiguousarray(array)
