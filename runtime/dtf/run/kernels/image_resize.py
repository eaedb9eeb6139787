"""Kernels that resize images, cut pieces out of them and warp them, and the gradients of these.

Resizing is separable: each output row (and column) is a weighted sum of a few input rows. `_Taps` says which, and with
what weights; a gradient is the same sum the other way round. Images are [batch, height, width, channels]; what is
interpolated is computed in float32 (float64 for float64).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, room, scalar
from dtf.run.value_types import Array, NumpyType
from dtf.wire import errors

Array = Array
_float = np.float32


class _Taps:
    """indices and weights, both [outputs, taps]: output i is the sum of weights[i] * inputs[indices[i]]."""

    def __init__(self, indices: np.ndarray, weights: np.ndarray, inputs: int) -> None:
        self.indices = indices
        self.weights = weights.astype(np.float32)
        self.inputs = inputs

    def apply(self, images: np.ndarray, axis: int) -> np.ndarray:
        shape = [-1 if at == axis else 1 for at in range(images.ndim)]
        total = None
        for index, weight in zip(self.indices.T, self.weights.T, strict=True):
            part = images.take(index, axis) * weight.reshape(shape).astype(images.dtype)
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        return total

    def apply_transposed(self, grads: np.ndarray, axis: int) -> np.ndarray:
        matrix = np.zeros((self.inputs, len(self.indices)), grads.dtype)
        for index, weight in zip(self.indices.T, self.weights.T, strict=True):
            np.add.at(matrix, (index, np.arange(len(index))), weight.astype(grads.dtype))
        return np.moveaxis(np.tensordot(matrix, grads, (1, axis)), 0, axis)


def _scale(inputs: int, outputs: int, align_corners: bool) -> np.float32:
    cut = 1 if align_corners and outputs > 1 else 0
    return _float(inputs - cut) / _float(outputs - cut)


def _positions(inputs: int, outputs: int, align_corners: bool, half_pixel: bool) -> np.ndarray:
    """Where the outputs lie among the inputs, float32."""
    at = np.arange(outputs, dtype=np.float32)
    scale = _scale(inputs, outputs, align_corners)
    return (at + _float(0.5)) * scale - _float(0.5) if half_pixel else at * scale


@functools.lru_cache(maxsize=64)
def _bilinear_taps(inputs: int, outputs: int, align_corners: bool, half_pixel: bool) -> _Taps:
    position = _positions(inputs, outputs, align_corners, half_pixel)
    low = np.floor(position)
    weight = position - low
    indices = np.stack([np.maximum(low, 0), np.minimum(np.ceil(position), inputs - 1)], 1).astype(np.int64)
    return _Taps(indices, np.stack([1 - weight, weight], 1), inputs)


@functools.lru_cache(maxsize=64)
def _bicubic_taps(inputs: int, outputs: int, align_corners: bool, half_pixel: bool) -> _Taps:
    """Four taps; the fraction is rounded to 1/1024. With half-pixel centers the cubic is Keys's (a = -0.5) and taps
    outside the image have no weight, else a = -0.75 and they repeat the border.
    """
    position = _positions(inputs, outputs, align_corners, half_pixel)
    low = np.floor(position)
    fraction = np.rint((position - low) * _float(1024)) / 1024
    a = -0.5 if half_pixel else -0.75
    distance = np.stack([fraction + 1, fraction, 1 - fraction, 2 - fraction], 1)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    weights = np.where(distance <= 1, near, far)
    wanted = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    indices = np.clip(wanted, 0, inputs - 1)
    if half_pixel:
        weights = np.where(indices == wanted, weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return _Taps(indices, weights, inputs)


@functools.lru_cache(maxsize=64)
def _area_taps(inputs: int, outputs: int, align_corners: bool) -> _Taps:
    scale = _scale(inputs, outputs, align_corners)
    start = np.arange(outputs, dtype=np.float32) * scale
    stop = np.arange(1, outputs + 1, dtype=np.float32) * scale
    first = np.floor(start).astype(np.int64)
    count = int(np.max(np.ceil(stop).astype(np.int64) - first, initial=1))
    cells = first[:, None] + np.arange(count)
    overlap = np.maximum(np.minimum(cells + 1, stop[:, None]) - np.maximum(cells, start[:, None]), 0)
    weights = overlap / scale if scale else np.ones_like(overlap)  # 0: all outputs are the one input
    return _Taps(np.clip(cells, 0, inputs - 1), weights, inputs)


def _wide(dtype: NumpyType) -> type[np.floating]:
    return np.float64 if np.dtype(dtype) == np.float64 else np.float32


def _checked(images: np.ndarray, size: np.ndarray, may_be_empty: bool = False) -> tuple[int, int]:
    if images.ndim != 4:
        raise invalid(f"input must be 4-dimensional{list(images.shape)}")
    if size.shape != (2,):
        raise invalid(f"shape_t must be 1-dimensional and have two elements, got shape {list(size.shape)}")
    height, width = size.tolist()
    if height <= 0 or width <= 0:
        raise invalid("output dimensions must be positive")
    if 0 in images.shape[1:] and not may_be_empty:
        raise invalid("input image must be of non-zero size")
    room((images.shape[0], height, width, images.shape[3]), np.float32)
    return height, width


def _way(node: KernelNode) -> tuple[bool, bool]:
    way = node.attr("align_corners"), node.attr("half_pixel_centers")
    if all(way):
        raise invalid("If half_pixel_centers is True, align_corners must be False.")
    return way


def _resizer(op: str, taps: Callable[..., _Taps]) -> None:
    @kernel(op)
    def forward(node: KernelNode) -> Function:
        way = _way(node)

        def resize(images: np.ndarray, size: np.ndarray) -> np.ndarray:
            height, width = _checked(images, size)
            wide = images.astype(np.float32, copy=False)
            across = taps(images.shape[2], width, *way).apply(wide, 2)
            return taps(images.shape[1], height, *way).apply(across, 1)

        return resize

    @kernel(f"{op}Grad")
    def backward(node: KernelNode) -> Function:
        way = _way(node)

        def resize_grad(grads: np.ndarray, original: np.ndarray) -> np.ndarray:
            if grads.ndim != 4 or original.ndim != 4:
                raise invalid(f"input_grad and the image must be 4-dimensional: {grads.shape}, {original.shape}")
            if 0 in grads.shape[1:3] or 0 in original.shape[1:3]:
                raise invalid("resized dimensions must be positive")
            _, height, width, _ = original.shape
            wide = grads.astype(_wide(original.dtype), copy=False)
            across = taps(width, grads.shape[2], *way).apply_transposed(wide, 2)
            return taps(height, grads.shape[1], *way).apply_transposed(across, 1).astype(original.dtype)

        return resize_grad


_resizer("ResizeBilinear", _bilinear_taps)
_resizer("ResizeBicubic", _bicubic_taps)


@kernel("ResizeArea")
def _(node: KernelNode) -> Function:
    align_corners = node.attr("align_corners")

    def resize_area(images: np.ndarray, size: np.ndarray) -> np.ndarray:
        height, width = _checked(images, size)
        across = _area_taps(images.shape[2], width, align_corners).apply(images.astype(np.float32, copy=False), 2)
        return _area_taps(images.shape[1], height, align_corners).apply(across, 1)

    return resize_area


def _nearest(inputs: int, outputs: int, align_corners: bool, half_pixel: bool) -> np.ndarray:
    at = np.arange(outputs, dtype=np.float32)
    position = (at + _float(0.5) if half_pixel else at) * _scale(inputs, outputs, align_corners)
    chosen = np.floor(position + _float(0.5)) if align_corners else np.floor(position)
    return np.clip(chosen.astype(np.int64), 0, inputs - 1)


@kernel("ResizeNearestNeighbor")
def _(node: KernelNode) -> Function:
    way = _way(node)

    def resize_nearest(images: np.ndarray, size: np.ndarray) -> np.ndarray:
        height, width = _checked(images, size)
        rows, columns = _nearest(images.shape[1], height, *way), _nearest(images.shape[2], width, *way)
        return images.take(rows, 1).take(columns, 2)

    return resize_nearest


@kernel("ResizeNearestNeighborGrad")
def _(node: KernelNode) -> Function:
    way = node.attr("align_corners"), node.attr("half_pixel_centers")

    def resize_nearest_grad(grads: np.ndarray, size: np.ndarray) -> np.ndarray:
        height, width = _checked(grads, size, may_be_empty=True)
        rows, columns = _nearest(height, grads.shape[1], *way), _nearest(width, grads.shape[2], *way)
        out = np.zeros((grads.shape[0], height, width, grads.shape[3]), grads.dtype)
        everywhere = np.s_[:, rows[:, None], columns[None, :]]
        np.add.at(out, everywhere, grads)  # type: ignore[arg-type]  # numpy's stub knows no slices here
        return out

    return resize_nearest_grad


# -- scaling and translating with any kernel


def _lanczos(radius: float) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    return radius, lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


def _cubic(b: float, c: float) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    """Mitchell and Netravali's family."""

    def weights(x: np.ndarray) -> np.ndarray:
        near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + 6 - 2 * b) / 6
        far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + 8 * b + 24 * c) / 6
        return np.where(x < 1, near, np.where(x < 2, far, 0))

    return 2.0, weights


_KERNELS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "lanczos1": _lanczos(1.0),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x**2), 0)),
    "box": (1.0, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0))),
    "triangle": (1.0, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": _cubic(0, 0.5),
    "mitchellcubic": _cubic(1 / 3, 1 / 3),
}


def _kernel_taps(kind: str, antialias: bool, inputs: int, outputs: int, scale: float, translation: float) -> _Taps:
    if kind not in _KERNELS:
        raise invalid(f"Unrecognized kernel type: {kind}")
    if scale <= 0:
        raise invalid(f"scale must be positive, got {scale}")
    radius, weights_at = _KERNELS[kind]
    inverse = _float(1) / _float(scale)
    stretch = max(inverse, _float(1)) if antialias else _float(1)
    # In float32, because what stands at the edge of a kernel's radius is in or out by the last bit.
    sample = (np.arange(outputs, dtype=np.float32) + _float(0.5)) * inverse - inverse * _float(translation)
    count = int(2 * radius * stretch) + 3
    wanted = np.ceil(sample - radius * stretch - 0.5).astype(np.int64)[:, None] + np.arange(count)
    weights = weights_at(np.abs(wanted.astype(np.float32) + _float(0.5) - sample[:, None]) / stretch)
    outside = (sample < 0) | (sample > inputs)
    weights = np.where((wanted >= 0) & (wanted < inputs) & ~outside[:, None], weights, 0)
    total = weights.sum(1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=np.abs(total) > 1e-35)
    return _Taps(np.clip(wanted, 0, inputs - 1), weights, inputs)


@kernel("ScaleAndTranslate")
def _(node: KernelNode) -> Function:
    way = as_text(node.attr("kernel_type")), node.attr("antialias")

    def scale_and_translate(
        images: np.ndarray, size: np.ndarray, scale: np.ndarray, translation: np.ndarray
    ) -> np.ndarray:
        height, width = _checked(images, size)
        wide = images.astype(np.float32, copy=False)
        down = _kernel_taps(*way, images.shape[1], height, float(scale[0]), float(translation[0])).apply(wide, 1)
        return _kernel_taps(*way, images.shape[2], width, float(scale[1]), float(translation[1])).apply(down, 2)

    return scale_and_translate


@kernel("ScaleAndTranslateGrad")
def _(node: KernelNode) -> Function:
    way = as_text(node.attr("kernel_type")), node.attr("antialias")

    def scale_and_translate_grad(
        grads: np.ndarray, original: np.ndarray, scale: np.ndarray, translation: np.ndarray
    ) -> np.ndarray:
        _, height, width, _ = original.shape
        if not original.size:
            return np.zeros(original.shape, original.dtype)
        down = _kernel_taps(*way, height, grads.shape[1], float(scale[0]), float(translation[0]))
        across = _kernel_taps(*way, width, grads.shape[2], float(scale[1]), float(translation[1]))
        return across.apply_transposed(down.apply_transposed(grads, 1), 2).astype(original.dtype)

    return scale_and_translate_grad


# -- pieces


_Sides = tuple[np.ndarray, np.ndarray]


class _Crops:
    """Where the samples of crops lie in their images: positions, corners around them, and which are inside."""

    def __init__(self, shape: tuple[int, ...], boxes: np.ndarray, box_ind: np.ndarray, rows: int, columns: int) -> None:
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise invalid(f"boxes must have 4 columns, got shape {list(boxes.shape)}")
        if box_ind.shape != boxes.shape[:1]:
            raise invalid("box_ind has incompatible shape with boxes")
        if box_ind.size and (box_ind.min() < 0 or box_ind.max() >= shape[0]):
            raise errors.OutOfRangeError.of(f"box_index has values outside [0, batch_size); batch_size is {shape[0]}")
        self.height, self.width = int(shape[1]), int(shape[2])
        self.images = box_ind
        self.y = self._positions(boxes[:, 0], boxes[:, 2], self.height, rows)
        self.x = self._positions(boxes[:, 1], boxes[:, 3], self.width, columns)
        inside_y = (self.y >= 0) & (self.y <= self.height - 1)
        inside_x = (self.x >= 0) & (self.x <= self.width - 1)
        self.inside = (inside_y[:, :, None] & inside_x[:, None, :])[..., None]
        self.safe_y, self.safe_x = np.where(inside_y, self.y, 0), np.where(inside_x, self.x, 0)

    @staticmethod
    def _positions(first: np.ndarray, last: np.ndarray, size: int, count: int) -> np.ndarray:
        top = _float(size - 1)
        if count == 1:
            return (_float(0.5) * (first + last) * top)[:, None]
        step = (last - first) * top / _float(count - 1)
        return first[:, None] * top + np.arange(count, dtype=np.float32) * step[:, None]

    def corners(self) -> tuple[_Sides, _Sides, np.ndarray, np.ndarray]:
        """((top, bottom) rows, (left, right) columns, weight of the bottom, weight of the right)."""
        top, left = np.floor(self.safe_y), np.floor(self.safe_x)
        rows = top.astype(np.int64), np.ceil(self.safe_y).astype(np.int64)
        columns = left.astype(np.int64), np.ceil(self.safe_x).astype(np.int64)
        return rows, columns, (self.safe_y - top)[:, :, None, None], (self.safe_x - left)[:, None, :, None]

    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        return np.floor(self.safe_y + 0.5).astype(np.int64), np.floor(self.safe_x + 0.5).astype(np.int64)

    def at(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The index of these pixels in a batch of images."""
        return self.images[:, None, None], rows[:, :, None], columns[:, None, :]


@kernel("CropAndResize")
def _(node: KernelNode) -> Function:
    method, outside = as_text(node.attr("method")), node.attr("extrapolation_value")

    def crop_and_resize(
        images: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray, crop_size: np.ndarray
    ) -> np.ndarray:
        if images.ndim != 4:
            raise invalid(f"input image must be 4-D{list(images.shape)}")
        rows, columns = crop_size.tolist()
        if rows <= 0 or columns <= 0:
            raise invalid("crop dimensions must be positive")
        room((len(boxes), rows, columns, images.shape[3]), np.float32)
        if not np.isfinite(boxes).all():
            raise invalid("Boxes contains at least one element that is not finite")
        crops = _Crops(images.shape, boxes, box_ind, rows, columns)
        if method == "nearest":
            values = images[crops.at(*crops.nearest())].astype(np.float32)
        else:
            (top, bottom), (left, right), down, across = crops.corners()
            upper = _between(images, crops, top, left, right, across)
            lower = _between(images, crops, bottom, left, right, across)
            values = upper + (lower - upper) * down
        return np.where(crops.inside, values, _float(outside)).astype(np.float32)

    return crop_and_resize


def _between(
    images: np.ndarray, crops: _Crops, rows: Array, left: Array, right: Array, across: np.ndarray
) -> np.ndarray:
    first, second = (images[crops.at(rows, columns)].astype(np.float32) for columns in (left, right))
    return first + (second - first) * across


@kernel("CropAndResizeGradImage")
def _(node: KernelNode) -> Function:
    method, dtype = as_text(node.attr("method")), node.attr("T").as_numpy_dtype

    def crop_and_resize_grad_image(
        grads: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray, image_size: np.ndarray
    ) -> np.ndarray:
        if grads.ndim != 4 or image_size.shape != (4,) or grads.shape[3] != image_size[3]:
            raise invalid(f"image_size and grads are incompatible: {image_size} and {list(grads.shape)}")
        crops = _Crops(image_size.tolist(), boxes, box_ind, *grads.shape[1:3])
        out = np.zeros(room(image_size.tolist(), np.float32), np.float32)
        grads = np.where(crops.inside, grads, 0)
        if method == "nearest":
            np.add.at(out, crops.at(*crops.nearest()), grads)
            return out.astype(dtype)
        rows, columns, down, across = crops.corners()
        for row, vertical in zip(rows, (1 - down, down), strict=True):
            for column, horizontal in zip(columns, (1 - across, across), strict=True):
                np.add.at(out, crops.at(row, column), grads * vertical * horizontal)
        return out.astype(dtype)

    return crop_and_resize_grad_image


@kernel("CropAndResizeGradBoxes")
def _(node: KernelNode) -> Function:
    def crop_and_resize_grad_boxes(
        grads: np.ndarray, images: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray
    ) -> np.ndarray:
        if grads.ndim != 4 or images.ndim != 4 or grads.shape[3] != images.shape[3]:
            raise invalid(f"image and grads depth differ: {list(images.shape)} and {list(grads.shape)}")
        rows, columns = grads.shape[1:3]
        if 0 in grads.shape[1:3]:
            raise invalid("image and grads dimensions must be positive")
        crops = _Crops(images.shape, boxes, box_ind, rows, columns)
        (top, bottom), (left, right), down, across = crops.corners()
        corners = [[images[crops.at(y, x)].astype(np.float32) for x in (left, right)] for y in (top, bottom)]
        (top_left, top_right), (bottom_left, bottom_right) = corners
        kept = np.where(crops.inside, grads, 0)
        by_y = (kept * ((1 - across) * (bottom_left - top_left) + across * (bottom_right - top_right))).sum((2, 3))
        by_x = (kept * ((1 - down) * (top_right - top_left) + down * (bottom_right - bottom_left))).sum((1, 3))
        pairs = [_of_bounds(by_y, crops.height, rows), _of_bounds(by_x, crops.width, columns)]
        (y1, y2), (x1, x2) = pairs
        return np.stack([y1, x1, y2, x2], 1).astype(np.float32)

    return crop_and_resize_grad_boxes


def _of_bounds(by_position: np.ndarray, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of a box's first and last coordinate from those of the positions between them."""
    if count == 1:
        half = by_position.sum(1) * 0.5 * (size - 1)
        return half, half
    second = np.arange(count) * (size - 1) / (count - 1)
    return (by_position * (size - 1 - second)).sum(1), (by_position * second).sum(1)


@kernel("ExtractGlimpse", stateful=True)
@kernel("ExtractGlimpseV2", stateful=True)
def _(node: KernelNode) -> Function:
    centered, normalized = node.attr("centered"), node.attr("normalized")
    noise = as_text(node.attr("noise"))
    if node.attr("uniform_noise") and noise != "uniform":
        raise invalid("The uniform_noise should not be True when noise is not uniform")
    first_version = node.op == "ExtractGlimpse"
    if noise not in ("uniform", "gaussian", "zero"):
        raise invalid(f"Unknown noise {noise!r}")

    def extract_glimpse(step: StepContext, images: np.ndarray, size: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        if offsets.ndim != 2 or offsets.shape[1] != 2:
            raise invalid(f"second dimension should be of size 2 (y,x), got shape {list(offsets.shape)}")
        batch, height, width, channels = images.shape
        rows, columns = size.tolist()
        if min(rows, columns) < 0:
            raise invalid(f"glimpse sizes must not be negative, got {rows} x {columns}")
        out = _glimpse_noise(noise, images, room((batch, rows, columns, channels), np.float64))
        for image in range(batch):
            y, x = (float(value) for value in offsets[image])
            if normalized:
                y, x = y * height, x * width
            if centered:
                part = 2 if normalized or first_version else 1
                y, x = y / part + height / 2, x / part + width / 2
            if first_version or (centered and normalized):
                y, x = y - rows / 2, x - columns / 2
            top, left = (int(each) if np.isfinite(each) else height + width for each in (y, x))  # else: outside
            inner_rows = slice(max(top, 0), max(min(top + rows, height), 0))
            inner_columns = slice(max(left, 0), max(min(left + columns, width), 0))
            seen = images[image, inner_rows, inner_columns]
            if seen.size:
                at_row, at_column = inner_rows.start - top, inner_columns.start - left
                out[image, at_row : at_row + seen.shape[0], at_column : at_column + seen.shape[1]] = seen
        return out

    return extract_glimpse


def _glimpse_noise(kind: str, images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What shows where a glimpse leaves its image."""
    if kind == "zero":
        return np.zeros(shape, np.float32)
    generator = np.random.default_rng()
    if kind == "gaussian":
        return generator.normal(images.mean(), images.std(), shape).astype(np.float32)
    return generator.uniform(images.min(initial=0), images.max(initial=1), shape).astype(np.float32)


# -- projective transforms


@kernel("ImageProjectiveTransformV2")
def _(node: KernelNode) -> Function:
    warp = _warper(node)
    return lambda images, transforms, size: warp(images, transforms, size, _float(0))


@kernel("ImageProjectiveTransformV3")
def _(node: KernelNode) -> Function:
    return _warper(node)


def _warper(node: KernelNode) -> Function:
    interpolation, fill = as_text(node.attr("interpolation")), as_text(node.attr("fill_mode"))
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise invalid(f"Invalid interpolation {interpolation}. Supported types: NEAREST, BILINEAR")
    if fill not in _FOLDS:
        raise invalid(f"Invalid fill_mode {fill}. Supported: {', '.join(_FOLDS)}")
    fold = _FOLDS[fill]

    def warp(images: np.ndarray, transforms: np.ndarray, size: np.ndarray, fill_value: np.ndarray) -> np.ndarray:
        scalar(fill_value, "fill_value")
        if transforms.ndim != 2 or transforms.shape[1] != 8 or len(transforms) not in (1, len(images)):
            raise invalid(f"transforms must have shape [1 or batch, 8], got {list(transforms.shape)}")
        batch, height, width, channels = images.shape
        rows, columns = size.tolist()
        if rows <= 0 or columns <= 0:
            raise invalid("output dimensions must be positive")
        room((batch, rows, columns, max(channels, 4)), np.float64)
        y, x = np.arange(rows, dtype=np.float32)[None, :, None], np.arange(columns, dtype=np.float32)[None, None, :]
        a0, a1, a2, b0, b1, b2, c0, c1 = transforms.T[:, :, None, None]
        depth = c0 * x + c1 * y + 1
        with np.errstate(divide="ignore", invalid="ignore"):
            source_x = fold((a0 * x + a1 * y + a2) / depth, width)
            source_y = fold((b0 * x + b1 * y + b2) / depth, height)
        source_x, source_y = (np.broadcast_to(each, (batch, rows, columns)) for each in (source_x, source_y))
        number = np.arange(batch)[:, None, None]
        blank = np.array(fill_value).astype(images.dtype)

        def pixel(at_y: np.ndarray, at_x: np.ndarray) -> np.ndarray:
            inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
            safe_y, safe_x = (np.where(inside, at, 0).astype(np.int64) for at in (at_y, at_x))
            if not height or not width:
                return np.full((*inside.shape, channels), blank)
            return np.where(inside[..., None], images[number, safe_y, safe_x], blank)

        if interpolation == "NEAREST":
            out = pixel(_rounded(source_y), _rounded(source_x))
        else:
            low_y, low_x = np.floor(source_y), np.floor(source_x)
            down, across = (source_y - low_y)[..., None], (source_x - low_x)[..., None]
            wide = np.float32  # of images of float64 too
            top = (1 - across) * pixel(low_y, low_x).astype(wide) + across * pixel(low_y, low_x + 1).astype(wide)
            bottom = (1 - across) * pixel(low_y + 1, low_x).astype(wide) + across * pixel(low_y + 1, low_x + 1).astype(
                wide
            )
            out = ((1 - down) * top + down * bottom).astype(images.dtype)
        flat = np.broadcast_to(depth == 0, (batch, rows, columns))
        return np.where(flat[..., None], blank, out) if flat.any() else out

    return warp


def _rounded(position: np.ndarray) -> np.ndarray:
    """To the nearest whole number; halves away from zero."""
    return np.copysign(np.floor(np.abs(position) + _float(0.5)), position)


def _reflected(position: np.ndarray, size: int) -> np.ndarray:
    """d c b a | a b c d | d c b a"""
    if size <= 1:
        return np.zeros_like(position)
    period = _float(2 * size)
    negative = np.where(position < -period, position + period * np.trunc(-position / period), position)
    negative = np.where(negative < -size, negative + period, -negative - 1)
    positive = position - period * np.trunc(position / period)
    positive = np.where(positive >= size, period - positive - 1, positive)
    folded = np.where(position < 0, negative, np.where(position > size - 1, positive, position))
    return np.clip(folded, 0, size - 1)


def _wrapped(position: np.ndarray, size: int) -> np.ndarray:
    """a b c d | a b c d | a b c d"""
    if size <= 1:
        return np.zeros_like(position)
    negative = position + size * (np.trunc(-position / _float(size - 1)) + 1)
    positive = position - size * np.trunc(position / _float(size - 1))
    folded = np.where(position < 0, negative, np.where(position > size - 1, positive, position))
    return np.clip(folded, 0, size - 1)


_FOLDS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "CONSTANT": lambda position, size: position,
    "REFLECT": _reflected,
    "WRAP": _wrapped,
    "NEAREST": lambda position, size: np.clip(position, 0, size - 1),
}
