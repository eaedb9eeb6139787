"""Softmax and its losses, bias, batch normalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from dtf.run.devices.pytorch.arrays import COMPUTED
from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.wire.window_shapes import channel_axis


@computes("Softmax", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    return lambda logits: torch.softmax(_at_least_a_vector(logits), -1)


@computes("LogSoftmax", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    return lambda logits: torch.log_softmax(_at_least_a_vector(logits), -1)


def _at_least_a_vector(logits: Tensor) -> Tensor:
    if not logits.dim():
        raise Unsuited
    return in_wide(logits)


@computes("SoftmaxCrossEntropyWithLogits", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    def loss_and_backprop(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        features, labels = torch.broadcast_tensors(in_wide(features), in_wide(labels))
        if features.dim() != 2:
            raise Unsuited
        logarithm = torch.log_softmax(features, -1)
        return -(logarithm * labels).sum(-1), torch.exp(logarithm) - labels

    return loss_and_backprop


@computes("SparseSoftmaxCrossEntropyWithLogits", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    def loss_and_backprop(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        if features.dim() != 2 or labels.shape != features.shape[:1]:
            raise Unsuited
        classes = features.shape[1]
        is_wrong = (labels < 0) | (labels >= classes)
        if not features.is_cuda and bool(is_wrong.any()):
            raise Unsuited
        logarithm = torch.log_softmax(in_wide(features), -1)
        at = labels.long().clamp(0, max(classes - 1, 0))[:, None]
        loss = -logarithm.gather(1, at)[:, 0]
        backprop = torch.exp(logarithm).scatter_add(1, at, logarithm.new_full((1, 1), -1.0).expand(at.shape))
        if features.is_cuda:  # as TensorFlow's kernel for GPUs: NaN where a label is no class
            nan = float("nan")
            loss, backprop = loss.masked_fill(is_wrong, nan), backprop.masked_fill(is_wrong[:, None], nan)
        return loss, backprop

    return loss_and_backprop


@computes("BiasAdd", "BiasAddV1")
def _(node: KernelNode) -> TensorFunction:
    data_format = node.attr("data_format").decode() if node.op == "BiasAdd" else "NHWC"

    def bias_add(value: Tensor, bias: Tensor) -> Tensor:
        axis = channel_axis(data_format, value.dim())
        if bias.dim() != 1 or value.shape[axis] != bias.shape[0]:
            raise Unsuited
        return value + (bias if axis == value.dim() - 1 else bias.reshape(-1, *[1] * (value.dim() - 2)))

    return bias_add


@computes("BiasAddGrad", types=COMPUTED)
def _(node: KernelNode) -> TensorFunction:
    data_format = node.attr("data_format").decode()

    def bias_add_grad(gradient: Tensor) -> Tensor:
        if gradient.dim() < 2:
            raise Unsuited
        axis = channel_axis(data_format, gradient.dim())
        others = [each for each in range(gradient.dim()) if each != axis]
        return gradient.sum(others, dtype=gradient.dtype)

    return bias_add_grad


def _channels(x: Tensor, data_format: str, *vectors: Tensor) -> tuple[list[int], tuple[int, ...]]:
    """The axes that a channel's statistics are taken over, and the shape of one number per channel."""
    if x.dim() not in (4, 5) or not x.numel():
        raise Unsuited
    axis = channel_axis(data_format, x.dim())
    if any(vector.dim() != 1 or len(vector) != x.shape[axis] for vector in vectors):
        raise Unsuited
    around = tuple(-1 if each == axis else 1 for each in range(x.dim()))
    return [each for each in range(x.dim()) if each != axis], around


@computes("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    data_format = node.attr("data_format").decode()
    epsilon, training, factor = node.attr("epsilon"), node.attr("is_training"), node.attr("exponential_avg_factor")
    reserves_third = node.op == "FusedBatchNormV3"

    def fused_batch_norm(
        x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, ...]:
        needed = () if training and factor == 1 else (mean, variance)
        if mean.dim() != 1 or variance.dim() != 1:
            raise Unsuited
        axes, around = _channels(x, data_format, scale, offset, *needed)
        wide = x.to(scale.dtype)
        if training:
            count = x.numel() // len(scale)
            used_variance, used_mean = torch.var_mean(wide, axes, correction=0)
            new_mean, new_variance = used_mean, used_variance * (count / max(count - 1, 1))
            if factor != 1:
                new_mean = (1 - factor) * mean + factor * new_mean
                new_variance = (1 - factor) * variance + factor * new_variance
        else:
            new_mean = used_mean = mean
            new_variance = used_variance = variance
        slope = scale * torch.rsqrt(used_variance + epsilon)
        y = torch.addcmul((offset - used_mean * slope).reshape(around), wide, slope.reshape(around))
        outputs = (y, new_mean, new_variance, used_mean, used_variance)
        return (*outputs, scale.new_zeros(())) if reserves_third else outputs

    return fused_batch_norm


@computes("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    data_format = node.attr("data_format").decode()
    epsilon, training = node.attr("epsilon"), node.attr("is_training")

    def fused_batch_norm_grad(
        dy: Tensor, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, *_: Tensor
    ) -> tuple[Tensor, ...]:
        axes, around = _channels(x, data_format, scale, mean, variance)
        if dy.shape != x.shape:
            raise Unsuited
        gradient, inverse = dy.to(scale.dtype), torch.rsqrt(variance + epsilon)
        normal = (x.to(scale.dtype) - mean.reshape(around)) * inverse.reshape(around)
        offset_sum, scale_sum = gradient.sum(axes), (gradient * normal).sum(axes)
        if training:
            count = x.numel() // len(scale)
            gradient = gradient - (offset_sum / count).reshape(around) - normal * (scale_sum / count).reshape(around)
        empty = scale.new_zeros(0)
        return gradient * (scale * inverse).reshape(around), scale_sum, offset_sum, empty, empty

    return fused_batch_norm_grad
