"""Kernels of colors: hue, saturation, contrast, and boxes drawn into images. The last dimension is the channels."""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, scalar
from dtf.wire import errors


@kernel("RGBToHSV")
def _(node: KernelNode) -> Function:
    def rgb_to_hsv(images: np.ndarray) -> np.ndarray:
        _check_channels(images, errors.FailedPreconditionError)
        wide = _computable(images)
        return np.stack(_hsv(wide), -1).astype(images.dtype)

    return rgb_to_hsv


@kernel("HSVToRGB")
def _(node: KernelNode) -> Function:
    def hsv_to_rgb(images: np.ndarray) -> np.ndarray:
        _check_channels(images, errors.FailedPreconditionError)
        wide = _computable(images)
        return _rgb(wide[..., 0], wide[..., 1], wide[..., 2]).astype(images.dtype)

    return hsv_to_rgb


@kernel("AdjustHue")
def _(node: KernelNode) -> Function:
    def adjust_hue(images: np.ndarray, delta: np.ndarray) -> np.ndarray:
        scalar(delta, "delta")
        _check_channels(images)
        wide = _computable(images)
        hue, _, high = _hsv(wide)
        low = wide.min(-1)
        shifted = (hue + np.float32(delta)) % 1
        return (low[..., None] + _mask(shifted) * (high - low)[..., None]).astype(images.dtype)

    return adjust_hue


@kernel("AdjustSaturation")
def _(node: KernelNode) -> Function:
    def adjust_saturation(images: np.ndarray, scale: np.ndarray) -> np.ndarray:
        scalar(scale, "scale")
        _check_channels(images)
        hue, saturation, value = _hsv(_computable(images))
        return _rgb(hue, np.clip(saturation * np.float32(scale), 0, 1), value).astype(images.dtype)

    return adjust_saturation


@kernel("AdjustContrastv2")
def _(node: KernelNode) -> Function:
    def adjust_contrast(images: np.ndarray, factor: np.ndarray) -> np.ndarray:
        scalar(factor, "contrast_factor")
        if images.ndim < 3:
            raise invalid(f"input must be at least 3-D, got shape{list(images.shape)}")
        wide = _computable(images)
        mean = wide.mean((-3, -2), keepdims=True)
        return ((wide - mean) * np.float32(factor) + mean).astype(images.dtype)

    return adjust_contrast


def _check_channels(images: np.ndarray, error: type[errors.OpError] = errors.InvalidArgumentError) -> None:
    if images.ndim < 1:
        raise invalid("input must be at least 1D, got a scalar")
    channels = images.shape[-1]
    if channels != 3:
        raise error.of(f"input must have 3 channels but instead has {channels} channels.")


def _computable(images: np.ndarray) -> np.ndarray:
    return images if images.dtype.itemsize >= 4 else images.astype(np.float32)


def _hsv(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    red, green, blue = (images[..., channel] for channel in range(3))
    value = images.max(-1)
    spread = value - images.min(-1)
    saturation = np.divide(spread, value, out=np.zeros_like(value), where=value > 0)
    part = np.divide(1, 6 * spread, out=np.zeros_like(value), where=spread > 0)
    third = images.dtype.type(1 / 3)
    hue = np.where(green == value, part * (blue - red) + third, part * (red - green) + 2 * third)
    hue = np.where(red == value, part * (green - blue), hue)
    hue = np.where(spread > 0, hue, 0)
    return np.where(hue < 0, hue + 1, hue).astype(images.dtype), saturation, value


def _mask(hue: np.ndarray) -> np.ndarray:
    """How much of each channel a hue has, [..., 3]."""
    sixths = hue * 6
    channels = [np.abs(sixths - 3) - 1, 2 - np.abs(sixths - 2), 2 - np.abs(sixths - 4)]
    return np.clip(np.stack(channels, -1), 0, 1)


def _rgb(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    return ((1 - saturation)[..., None] + saturation[..., None] * _mask(hue)) * value[..., None]


# -- drawing

_COLORS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ],
    np.float32,
)  # fmt: skip


@kernel("DrawBoundingBoxes")
def _(node: KernelNode) -> Function:
    return lambda images, boxes: _draw(images, boxes, _COLORS if images.shape[-1] > 1 else np.ones((1, 1)))


@kernel("DrawBoundingBoxesV2")
def _(node: KernelNode) -> Function:
    def draw(images: np.ndarray, boxes: np.ndarray, colors: np.ndarray) -> np.ndarray:
        if not colors.size:
            return _draw(images, boxes, _COLORS if images.shape[-1] > 1 else np.ones((1, 1)))
        return _draw(images, boxes, colors)

    return draw


def _draw(images: np.ndarray, boxes: np.ndarray, colors: np.ndarray) -> np.ndarray:
    if images.ndim != 4 or images.shape[-1] not in (1, 3, 4):
        raise invalid(f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got shape {list(images.shape)}")
    if boxes.ndim != 3 or boxes.shape[0] != images.shape[0] or boxes.shape[2] != 4:
        raise invalid(f"boxes must be [batch, boxes, 4], got {list(boxes.shape)}")
    out = images.copy()
    _, height, width, channels = images.shape
    scale = np.array([height - 1, width - 1, height - 1, width - 1], np.float32)
    corners = np.trunc(np.nan_to_num(boxes.astype(np.float32)) * scale).astype(np.int64)
    for image, of_image in zip(out, corners.tolist(), strict=True):
        for number, (top, left, bottom, right) in enumerate(of_image):
            if bottom < top or right < left or top >= height or bottom < 0 or left >= width or right < 0:
                continue
            color = colors[number % len(colors)][:channels].astype(images.dtype)
            rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
            for row in (top, bottom):
                if 0 <= row < height:
                    image[row, columns] = color
            for column in (left, right):
                if 0 <= column < width:
                    image[rows, column] = color
    return out

