"""Two-dimensional convolutions, depthwise convolutions, and their gradients.

torch wants [batch, channels, height, width] and filters [out, in, height, width]; both are views here, so that NHWC
images are torch's memory format "channels last". Uneven padding is an image of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.run.kernels.conv import Convolution, ConvolutionSettings, convolution_of, convolution_settings


class _Plan:
    """One convolution: its geometry, and the images and filters as torch wants them."""

    def __init__(self, settings: ConvolutionSettings, images: Sequence[int], filters: Sequence[int]) -> None:
        """For the shapes of images (in the node's data format) and filters.

        Raises:
          OpError: the shapes do not fit.
        """
        self.settings = settings
        self.shape = settings.shape_channels_last(images)
        plain = convolution_of(settings, self.shape, tuple(filters))
        found = plain if isinstance(plain, Convolution) else cast(Convolution, plain.one)
        self.groups = 1 if isinstance(plain, Convolution) else plain.groups
        self.rows, self.columns, self.filters = found.rows, found.columns, tuple(filters)
        if min(self.rows.output, self.columns.output, *self.shape, *filters) <= 0:
            raise Unsuited

    @property
    def padding(self) -> tuple[int, int] | None:
        """Even padding of height and width; None: it is uneven."""
        if self.rows.before == self.rows.after >= 0 and self.columns.before == self.columns.after >= 0:
            return self.rows.before, self.columns.before
        return None

    def first(self, images: Tensor) -> Tensor:
        """Images as [batch, channels, height, width], a view."""
        return images if self.settings.channels_first else images.permute(0, 3, 1, 2)

    def back(self, images: Tensor) -> Tensor:
        """Images of torch's order in the node's."""
        return images if self.settings.channels_first else images.permute(0, 2, 3, 1)

    def padded(self, images: Tensor) -> Tensor:
        """Images (channels first) with uneven padding."""
        around = (self.columns.before, self.columns.after, self.rows.before, self.rows.after)
        return images if self.padding is not None else functional.pad(images, around)

    @property
    def padded_shape(self) -> tuple[int, int, int, int]:
        batch, height, width, channels = self.shape
        if self.padding is None:
            height += self.rows.before + self.rows.after
            width += self.columns.before + self.columns.after
        return batch, channels, height, width

    def cropped(self, images: Tensor) -> Tensor:
        """What `padded` has taken."""
        if self.padding is not None:
            return images
        around = (-self.columns.before, -self.columns.after, -self.rows.before, -self.rows.after)
        return functional.pad(images, around)

    def check_gradient(self, gradient: Tensor, depth: int) -> None:
        wanted = (self.shape[0], depth, self.rows.output, self.columns.output)
        if tuple(self.first(gradient).shape) != wanted:
            raise Unsuited

    def gradients(
        self, gradient: Tensor, images: Tensor, filters: Tensor, groups: int, mask: list[bool]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """torch's gradients of images (channels first, padded) and filters; `mask` says which are wanted."""
        found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
            self.first(gradient), images, filters, None, list(self.settings.stride), list(self.padding or (0, 0)),
            list(self.settings.dilation), False, [0, 0], groups, mask,
        )  # fmt: skip
        return found


def _forward(plan: _Plan, images: Tensor, filters: Tensor, groups: int) -> Tensor:
    made = functional.conv2d(
        plan.padded(plan.first(images)), filters, None, plan.settings.stride, plan.padding or 0,
        plan.settings.dilation, groups,
    )  # fmt: skip
    return plan.back(made)


def _out_first(filters: Tensor) -> Tensor:
    """[height, width, in, out] as [out, in, height, width]."""
    return filters.permute(3, 2, 0, 1)


@computes("Conv2D", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings = convolution_settings(node)

    def conv2d(images: Tensor, filters: Tensor) -> Tensor:
        plan = _Plan(settings, images.shape, filters.shape)
        return _forward(plan, in_wide(images), _out_first(in_wide(filters)), plan.groups)

    return conv2d


@computes("Conv2DBackpropInput", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings = convolution_settings(node)

    def backprop_input(sizes: np.ndarray, filters: Tensor, gradient: Tensor) -> Tensor:
        plan = _Plan(settings, sizes.tolist(), filters.shape)
        plan.check_gradient(gradient, filters.shape[3])
        wide, weights = in_wide(gradient), _out_first(in_wide(filters))
        images = wide.new_empty(1).expand(plan.padded_shape)
        return plan.back(plan.cropped(plan.gradients(wide, images, weights, plan.groups, [True, False, False])[0]))

    return backprop_input


@computes("Conv2DBackpropFilter", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings = convolution_settings(node)

    def backprop_filter(images: Tensor, sizes: np.ndarray, gradient: Tensor) -> Tensor:
        shape = sizes.tolist()
        plan = _Plan(settings, images.shape, shape)
        plan.check_gradient(gradient, shape[3])
        padded = plan.padded(plan.first(in_wide(images)))
        weights = padded.new_empty(1).expand(shape[3], shape[2], shape[0], shape[1])
        found = plan.gradients(in_wide(gradient), padded, weights, plan.groups, [False, True, False])[1]
        return found.permute(2, 3, 1, 0)

    return backprop_filter


# -- depthwise: each channel has filters of its own


def _depthwise_plan(settings: ConvolutionSettings, images: Sequence[int], filters: Sequence[int]) -> _Plan:
    if len(filters) != 4 or len(images) != 4 or settings.shape_channels_last(images)[3] != filters[2]:
        raise Unsuited
    return _Plan(settings, images, filters)


def _each_first(filters: Tensor) -> Tensor:
    """[height, width, channels, multiplier] as [channels * multiplier, 1, height, width]."""
    height, width, channels, multiplier = filters.shape
    return filters.permute(2, 3, 0, 1).reshape(channels * multiplier, 1, height, width)


@computes("DepthwiseConv2dNative", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings = convolution_settings(node)

    def depthwise(images: Tensor, filters: Tensor) -> Tensor:
        plan = _depthwise_plan(settings, images.shape, filters.shape)
        return _forward(plan, in_wide(images), _each_first(in_wide(filters)), filters.shape[2])

    return depthwise


@computes("DepthwiseConv2dNativeBackpropInput", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings = convolution_settings(node)

    def backprop_input(sizes: np.ndarray, filters: Tensor, gradient: Tensor) -> Tensor:
        plan = _depthwise_plan(settings, sizes.tolist(), filters.shape)
        plan.check_gradient(gradient, filters.shape[2] * filters.shape[3])
        wide, weights = in_wide(gradient), _each_first(in_wide(filters))
        images = wide.new_empty(1).expand(plan.padded_shape)
        found = plan.gradients(wide, images, weights, filters.shape[2], [True, False, False])[0]
        return plan.back(plan.cropped(found))

    return backprop_input


@computes("DepthwiseConv2dNativeBackpropFilter", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings = convolution_settings(node)

    def backprop_filter(images: Tensor, sizes: np.ndarray, gradient: Tensor) -> Tensor:
        height, width, channels, multiplier = sizes.tolist()
        plan = _depthwise_plan(settings, images.shape, (height, width, channels, multiplier))
        plan.check_gradient(gradient, channels * multiplier)
        padded = plan.padded(plan.first(in_wide(images)))
        weights = padded.new_empty(1).expand(channels * multiplier, 1, height, width)
        found = plan.gradients(in_wide(gradient), padded, weights, channels, [False, True, False])[1]
        return found.reshape(channels, multiplier, height, width).permute(2, 3, 0, 1)

    return backprop_filter


