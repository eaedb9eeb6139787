"""Functions of tf.image composed of other ops: flips, crops, padding and color changes, fixed and random.

Images are [height, width, channels] or [batch, height, width, channels].

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import image as image_ops
from dtf.build.ops import joining, rearranging, reductions
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import random as random_ops
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "central_crop", "convert_image_dtype", "crop_to_bounding_box", "flip_left_right", "flip_up_down",
    "grayscale_to_rgb", "is_jpeg", "pad_to_bounding_box", "per_image_standardization", "random_brightness",
    "random_contrast", "random_flip_left_right", "random_flip_up_down", "random_hue", "random_saturation", "resize",
    "resize_image_with_crop_or_pad", "resize_image_with_pad", "resize_images", "resize_with_crop_or_pad",
    "rgb_to_grayscale", "rot90", "transpose", "transpose_image",
]  # fmt: skip

# -- kinds and colors


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """The image in another dtype with its values scaled: integers span their range, floating-point numbers [0, 1]."""
    image = convert_to_tensor(image, name="image")
    dtype = dtypes.as_dtype(dtype)
    if dtype == image.dtype:
        return array_ops.identity(image, name=name)
    with name_scope(name, "convert_image", [image]) as name:
        cast = math_ops.saturate_cast if saturate else math_ops.cast
        if image.dtype.is_integer and dtype.is_integer:
            given, wanted = int(image.dtype.max), int(dtype.max)
            if given > wanted:
                return cast(apply_op("FloorDiv", x=image, y=(given + 1) // (wanted + 1)), dtype, name=name)
            factor = (wanted + 1) // (given + 1)
            return math_ops.multiply(math_ops.cast(image, dtype), factor, name=name)
        if image.dtype.is_floating and dtype.is_floating:
            return math_ops.cast(image, dtype, name=name)
        if image.dtype.is_integer:
            return math_ops.multiply(math_ops.cast(image, dtype), 1.0 / float(image.dtype.max), name=name)
        return cast(image * (float(dtype.max) + 0.5), dtype, name=name)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """The brightness of colors, with one channel."""
    with name_scope(name, "rgb_to_grayscale", [images]) as name:
        images = convert_to_tensor(images, name="images")
        floating = convert_image_dtype(images, dtypes.float32)
        gray = reductions.reduce_sum(floating * [0.2989, 0.5870, 0.1140], axis=-1, keepdims=True)
        return convert_image_dtype(gray, images.dtype, name=name)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Images of one channel with that repeated three times."""
    with name_scope(name, "grayscale_to_rgb", [images]) as name:
        images = _checked_grayscale(convert_to_tensor(images, name="images"))
        rank = array_ops.rank(images)
        multiples = joining.concat([filling_ops.ones(array_ops.expand_dims(rank - 1, 0), dtypes.int32), [3]], 0)
        made = joining.tile(images, multiples, name=name)
        if images.shape.ndims is not None:
            made.set_shape([*images.shape.as_list()[:-1], 3])
        return made


def _checked_grayscale(images: Tensor) -> Tensor:
    """The images, whose last dimension must be 1; the step checks it where it is unknown."""
    if images.shape.ndims is None:
        is_gray = math_ops.equal(array_ops.shape(images)[-1], 1)
        return _with_checks(images, [_required(is_gray, "Last dimension of a grayscale image should be size 1.")])
    if images.shape.ndims < 2:
        raise ValueError(f"A grayscale image (shape {images.shape}) must be at least two-dimensional.")
    channels = images.shape.as_list()[-1]
    has_one: Any = channels == 1 if channels is not None else math_ops.equal(array_ops.shape(images)[-1], 1)
    return _with_checks(images, [_required(has_one, "Last dimension of a grayscale image should be size 1.")])


def _required(condition: Any, message: str) -> Any:
    """None where the condition is known to hold, else an operation that checks it in the step.

    Raises:
      ValueError: the condition is known not to hold.
    """
    known = constant_value(condition) if isinstance(condition, Tensor) else condition
    if known is None:
        return control_flow_ops.Assert(condition, [message])
    if not known:
        raise ValueError(message)
    return None


def _with_checks(image: Tensor, checks: list[Any]) -> Tensor:
    """The image, which is there once these checks have passed."""
    needed = [check for check in checks if check is not None]
    if not needed:
        return image
    with control_dependencies(needed):
        return array_ops.identity(image)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """`delta` added to images whose values are taken as numbers in [0, 1]."""
    return _in_floats("adjust_brightness", image, lambda images: images + math_ops.cast(delta, images.dtype))


def adjust_contrast(images: TensorLike, contrast_factor: Any) -> Tensor:
    """Images with the distance of each pixel to the mean of its channel multiplied."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as name:
        images = convert_to_tensor(images, name="images")
        original = images.dtype
        is_computable = original in (dtypes.float16, dtypes.float32)
        computed = images if is_computable else convert_image_dtype(images, dtypes.float32)
        factor = convert_to_tensor(contrast_factor, dtype=dtypes.float32)
        adjusted = apply_op("AdjustContrastv2", images=computed, contrast_factor=factor)
        return convert_image_dtype(adjusted, original, saturate=True, name=name)


def adjust_gamma(image: TensorLike, gamma: TensorLike = 1, gain: Any = 1) -> Tensor:
    """gain * image ** gamma, for images whose values are taken as numbers in [0, 1]."""
    is_allowed: Any = gamma >= 0 if isinstance(gamma, int | float) else convert_to_tensor(gamma) >= 0
    check = _required(is_allowed, "Gamma should be a non-negative real number.")
    return _in_floats("adjust_gamma", image, lambda images: gain * _with_checks(images, [check]) ** gamma)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Colors with their hue turned by delta in [-1, 1]."""
    return _in_floats("adjust_hue", image, lambda images: apply_op("AdjustHue", images=images, delta=delta), name)


def adjust_saturation(image: TensorLike, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Colors with their saturation multiplied."""
    return _in_floats(
        "adjust_saturation",
        image,
        lambda images: apply_op("AdjustSaturation", images=images, scale=saturation_factor),
        name,
    )


def _in_floats(scope: str, image: Any, change: Callable[[Tensor], Tensor], name: str | None = None) -> Tensor:
    """Applies a function of floating-point images to images of any dtype."""
    with name_scope(name, scope, [image]) as name:
        image = convert_to_tensor(image, name="image")
        floating = image.dtype in (dtypes.float16, dtypes.float32)
        computed = image if floating else convert_image_dtype(image, dtypes.float32)
        return convert_image_dtype(change(computed), image.dtype, saturate=True, name=name)


def per_image_standardization(image: TensorLike) -> Tensor:
    """Images with mean 0 and variance 1 each; the deviation is taken to be at least 1 / sqrt(elements).

    Args:
      image: [height, width, channels], or a batch of images.

    Returns:
      A float32 Tensor of the shape of `image`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image/per_image_standardization
    """
    with name_scope(None, "per_image_standardization", [image]) as name:
        image = math_ops.cast(convert_to_tensor(image, name="image"), dtypes.float32)
        axes = [-1, -2, -3]
        count = math_ops.cast(reductions.reduce_prod(array_ops.shape(image)[-3:]), dtypes.float32)
        mean = reductions.reduce_mean(image, axis=axes, keepdims=True)
        variance = reductions.reduce_mean(math_ops.square(image - mean), axis=axes, keepdims=True)
        least = math_ops.rsqrt(count)
        return math_ops.divide(image - mean, math_ops.maximum(math_ops.sqrt(variance), least), name=name)


# -- random changes


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a random number in [-max_delta, max_delta)."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a random factor in [lower, upper)."""
    _check_range(lower, upper)
    return adjust_contrast(image, random_ops.random_uniform([], lower, upper, seed=seed))


def _check_range(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a random number in [-max_delta, max_delta)."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a random factor in [lower, upper)."""
    _check_range(lower, upper)
    return adjust_saturation(image, random_ops.random_uniform([], lower, upper, seed=seed))


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Mirrored or not, each as likely; each image of a batch for itself.

    Args:
      image: [height, width, channels], or a batch of images.
      seed: the seed of this operation.

    Returns:
      A Tensor of the shape and dtype of `image`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image/random_flip_left_right
    """
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Upside down or not, each as likely; each image of a batch for itself."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def _random_flip(image: Any, axis: int, seed: int | None, scope: str) -> Tensor:
    with name_scope(None, scope, [image]) as name:
        image = convert_to_tensor(image, name="image")
        rank = _at_least_3(image)
        if rank not in (None, 3, 4):
            raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
        if rank is None:
            return control_flow_ops.cond(
                math_ops.equal(array_ops.rank(image), 3),
                lambda: _flip_or_not(image, axis, seed, None),
                lambda: _flip_each_or_not(image, axis, seed, None),
                name=name,
            )
        return (_flip_or_not if rank == 3 else _flip_each_or_not)(image, axis, seed, name)


def _flip_or_not(image: Tensor, axis: int, seed: int | None, name: str | None) -> Tensor:
    stays = random_ops.random_uniform([], 0, 1.0, seed=seed) >= 0.5
    made = control_flow_ops.cond(stays, lambda: image, lambda: rearranging.reverse(image, [axis]), name=name)
    made.set_shape(image.shape)
    return made


def _flip_each_or_not(images: Tensor, axis: int, seed: int | None, name: str | None) -> Tensor:
    chance = random_ops.random_uniform(array_ops.shape(images)[:1], seed=seed)
    flips = math_ops.cast(array_ops.reshape(math_ops.round(chance), [-1, 1, 1, 1]), images.dtype)
    turned = rearranging.reverse(images, [axis + 1])
    return math_ops.add(flips * turned, (1 - flips) * images, name=name)


# -- turning


def flip_left_right(image: TensorLike) -> Tensor:
    """Mirrored."""
    return _turned(image, lambda image, first: rearranging.reverse(image, [first + 1]))


def flip_up_down(image: TensorLike) -> Tensor:
    """Upside down."""
    return _turned(image, lambda image, first: rearranging.reverse(image, [first]))


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Rows and columns exchanged."""
    return _turned(image, _exchange)


transpose_image = transpose


def rot90(image: TensorLike, k: Any = 1, name: str | None = None) -> Tensor:
    """Turned counter-clockwise by k times 90 degrees; k is a scalar of integers, a tensor's too."""

    def turn(image: Tensor, first: int, times: int) -> Tensor:
        if times == 1:
            return _exchange(rearranging.reverse(image, [first + 1]), first)
        if times == 2:
            return rearranging.reverse(image, [first, first + 1])
        return rearranging.reverse(_exchange(image, first), [first + 1]) if times == 3 else image

    def turned(image: Tensor, first: int) -> Tensor:
        number = convert_to_tensor(k, dtype=dtypes.int32, name="k")
        number.shape.assert_has_rank(0)
        times = constant_value(number)
        if times is not None:
            return turn(image, first, int(times) % 4)
        number = math_ops.mod(number, 4)
        branches = [(math_ops.equal(number, times), partial(turn, image, first, times)) for times in (1, 2, 3)]
        made = control_flow_ops.case(branches, default=lambda: image, exclusive=True)
        if image.shape.ndims is not None:
            sizes = image.shape.as_list()
            sizes[first : first + 2] = [None, None]
            made.set_shape(sizes)
        return made

    with name_scope(name, "rot90", [image, k]):
        return _turned(image, turned)


def _exchange(image: Tensor, first: int) -> Tensor:
    return rearranging.transpose(image, [1, 0, 2] if first == 0 else [0, 2, 1, 3])


def _turned(image: Any, turn: Callable[[Tensor, int], Tensor]) -> Tensor:
    image = convert_to_tensor(image, name="image")
    rank = _at_least_3(image)
    if rank is None:
        is_batch = math_ops.equal(array_ops.rank(image), 4)
        return control_flow_ops.cond(is_batch, lambda: turn(image, 1), lambda: turn(image, 0))
    if rank not in (3, 4):
        raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
    return turn(image, rank - 3)


# -- cropping and padding


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """The middle of an image: this fraction of its height and width."""
    known = constant_value(central_fraction) if isinstance(central_fraction, Tensor) else central_fraction
    if known is not None and not 0 < known <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    image = convert_to_tensor(image, name="image")
    if known is None:
        return _central_part(image, central_fraction)
    central_fraction = float(known)
    if central_fraction == 1:
        return image
    if _at_least_3(image) is None:
        raise ValueError(f"central_crop needs an image of known rank, got {image!r}")
    height, width = _size(image)
    offsets, sizes = [], []
    for size in (height, width):
        if isinstance(size, int):
            start = int((size - size * central_fraction) / 2)
            offsets.append(start)
            sizes.append(size - 2 * start)
        else:
            exact = math_ops.cast(size, dtypes.float64)
            start = math_ops.cast((exact - exact * central_fraction) / 2, dtypes.int32)
            offsets.append(start)
            sizes.append(size - start * 2)
    return crop_to_bounding_box(image, offsets[0], offsets[1], sizes[0], sizes[1])


def _central_part(image: Tensor, fraction: Any) -> Tensor:
    """central_crop for a fraction that is a tensor: the sizes of the result are known to the step only."""
    if _at_least_3(image) is None:
        raise ValueError(f"central_crop needs an image of known rank, got {image!r}")
    fraction = math_ops.cast(fraction, dtypes.float64)
    offsets, sizes = [], []
    for size in _size(image):
        exact = math_ops.cast(size, dtypes.float64)
        start = math_ops.cast((exact - exact * fraction) / 2, dtypes.int32)
        offsets.append(start)
        sizes.append(size - start * 2)
    return crop_to_bounding_box(image, *offsets, *sizes)


def crop_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of an image that begins at the offsets."""
    with name_scope(None, "crop_to_bounding_box", [image]):
        image = _single_if_unknown(image)
        rank = _at_least_3(image)
        assert rank is not None
        image = _with_checks(image, _checks_of_part(image, offset_height, offset_width, target_height, target_width))
        batch = [0] * (rank - 3)
        made = apply_op(
            "Slice",
            input=image,
            begin=joining.stack([*batch, offset_height, offset_width, 0]),
            size=joining.stack([*(-1 for _ in batch), target_height, target_width, -1]),
        )
        made.set_shape(_with_size(image, target_height, target_width))
        return made


def _at_least_3(image: Tensor) -> int | None:
    """The rank of an image, or of a batch of images.

    Raises:
      ValueError: it has less than three dimensions, or none of some size.
    """
    rank = image.shape.ndims
    if rank is not None and rank < 3:
        raise ValueError(f"'image' (shape {image.shape}) must be at least three-dimensional.")
    if rank is not None and 0 in image.shape.as_list()[-3:]:
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {image.shape}")
    return rank


def _checks_of_part(image: Tensor, top: Any, left: Any, height: Any, width: Any) -> list[Any]:
    """The checks that a part lies inside of the image; those that can be made now are."""
    sizes = _size(image)
    offsets, targets = ((left, "width"), (top, "height")), ((width, "width"), (height, "height"))
    checks = [_required(start >= 0, f"offset_{what} must be >= 0.") for start, what in offsets]
    checks += [_required(size > 0, f"target_{what} must be > 0.") for size, what in targets]
    for start, count, size, what in ((left, width, sizes[1], "width"), (top, height, sizes[0], "height")):
        checks.append(_required(size >= start + count, f"{what} must be >= target + offset."))
    return checks


def pad_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The image at the offsets of an image of zeros."""
    with name_scope(None, "pad_to_bounding_box", [image]):
        image = _single_if_unknown(image)
        rank = _at_least_3(image)
        assert rank is not None
        height, width = _size(image)
        after = target_height - offset_height - height, target_width - offset_width - width
        places = (offset_height, after[0], "height"), (offset_width, after[1], "width")
        checks = [_required(start >= 0, f"offset_{what} must be >= 0") for start, _, what in places]
        checks += [_required(rest >= 0, f"{what} must be <= target - offset") for _, rest, what in reversed(places)]
        image = _with_checks(image, checks)
        margins = [[0, 0]] * (rank - 3) + [[offset_height, after[0]], [offset_width, after[1]], [0, 0]]
        flat = joining.stack([each for pair in margins for each in pair])
        made = joining.pad(image, array_ops.reshape(flat, [rank, 2]))
        made.set_shape(_with_size(image, target_height, target_width))
        return made


def resize_image_with_crop_or_pad(image: TensorLike, target_height: Any, target_width: Any) -> Tensor:
    """Cut around the middle, or padded evenly with zeros, to the given size."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        image = _single_if_unknown(image)
        if image.shape.ndims not in (3, 4):
            raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
        _at_least_3(image)
        checks = [_required(target_width > 0, "target_width must be > 0."),
                  _required(target_height > 0, "target_height must be > 0.")]  # fmt: skip
        image = _with_checks(image, checks)
        height, width = _size(image)
        more_height, more_width = target_height - height, target_width - width
        cropped = crop_to_bounding_box(
            image,
            _larger(_half(-more_height), 0),
            _larger(_half(-more_width), 0),
            _smaller(target_height, height),
            _smaller(target_width, width),
        )
        return pad_to_bounding_box(
            cropped, _larger(_half(more_height), 0), _larger(_half(more_width), 0), target_height, target_width
        )


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def _half(value: Any) -> Any:
    return value // 2


def _larger(first: Any, second: Any) -> Any:
    both = isinstance(first, int) and isinstance(second, int)
    return max(first, second) if both else math_ops.maximum(first, second)


def _smaller(first: Any, second: Any) -> Any:
    both = isinstance(first, int) and isinstance(second, int)
    return min(first, second) if both else math_ops.minimum(first, second)


def _single_if_unknown(image: Any) -> Tensor:
    """The image as a tensor; one of unknown rank is taken for a single image, and the step refuses a batch."""
    image = convert_to_tensor(image, name="image")
    if image.shape.ndims is None:
        image = array_ops.identity(image)
        image.set_shape([None, None, None])
    return image


def _size(image: Tensor) -> tuple[Any, Any]:
    """Height and width: Python numbers if known, else int32 scalars."""
    rank = image.shape.ndims
    assert rank is not None
    known = image.shape.as_list()[rank - 3 : rank - 1]
    shape = array_ops.shape(image) if None in known else None
    height, width = (size if size is not None else shape[rank - 3 + at] for at, size in enumerate(known))  # type: ignore[index]
    return height, width


def _with_size(image: Tensor, height: Any, width: Any) -> TensorShape:
    sizes = image.shape.as_list()
    found = [constant_value(size) if isinstance(size, Tensor) else size for size in (height, width)]
    known = [None if size is None else int(size) for size in found]
    return TensorShape([*sizes[:-3], *known, sizes[-1]])


# -- resizing


class ResizeMethod:
    """How `resize_images` finds values between pixels."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def resize_images(
    images: TensorLike,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images of another size [height, width]: float32, or of their own dtype for the nearest neighbour.

    method: a ResizeMethod, or "bilinear", "nearest", "bicubic", "area". Images that already have the size are not
        changed.

    Args:
      images: [batch, height, width, channels] or [height, width, channels].
      size: [height, width], an int32 vector.
      method: a ResizeMethod, or "bilinear", "nearest", "bicubic", "area".
      align_corners: align the centres of the corner pixels.
      preserve_aspect_ratio: the size is the greatest that keeps the ratio.
      name: a name scope.

    Returns:
      A Tensor of the given size; float32, except with nearest-neighbour interpolation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image/resize_images
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        if images.shape.ndims is None:
            raise ValueError("'images' contains no shape.")
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        is_single = images.shape.ndims == 3
        batch = array_ops.expand_dims(images, 0) if is_single else images
        known = batch.shape.with_rank(4).as_list()[1:3]
        if preserve_aspect_ratio:
            size = _fitting(batch, size)
        if not isinstance(size, Tensor) and any(isinstance(each, Tensor) for each in size):
            size = joining.stack(size)
        try:
            size = convert_to_tensor(size, dtypes.int32, name="size")
        except TypeError as error:
            raise ValueError(f"'size' must be a 1-D int32 Tensor: {error}") from None
        if not size.shape.is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        wanted = constant_value(size)
        if wanted is not None and wanted.tolist() == known:
            return images
        made = _resize(batch, size, method, align_corners)
        return array_ops.squeeze(made, [0]) if is_single else made


resize = resize_images


def _resize(images: Tensor, size: Any, method: Any, align_corners: bool) -> Tensor:
    if method in (ResizeMethod.BILINEAR, "bilinear"):
        return image_ops.resize_bilinear(images, size, align_corners)
    if method in (ResizeMethod.NEAREST_NEIGHBOR, "nearest"):
        return image_ops.resize_nearest_neighbor(images, size, align_corners)
    if method in (ResizeMethod.BICUBIC, "bicubic"):
        return image_ops.resize_bicubic(images, size, align_corners)
    if method in (ResizeMethod.AREA, "area"):
        return image_ops.resize_area(images, size, align_corners)
    raise ValueError(f"Resize method is not implemented: {method!r}")


def _fitting(images: Tensor, size: Any) -> Tensor:
    """The largest size of the images' aspect ratio within `size`."""
    known, asked = images.shape.as_list()[1:3], constant_value(convert_to_tensor(size, dtypes.int32))
    sides = np.array([size or 0 for size in known], np.float32)
    if asked is not None and np.all(sides > 0):
        scale = np.min(asked.astype(np.float32) / sides)
        return constant(np.rint(sides * scale).astype(np.int32))
    shape = math_ops.cast(array_ops.shape(images)[1:3], dtypes.float32)
    wanted = math_ops.cast(convert_to_tensor(size, dtypes.int32), dtypes.float32)
    factor = reductions.reduce_min(wanted / shape)
    return math_ops.cast(math_ops.round(shape * factor), dtypes.int32)


def resize_image_with_pad(
    image: TensorLike,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """Resized without a change of the aspect ratio, and padded with zeros to the given size."""
    with name_scope(None, "resize_image_with_pad", [image]):
        image = _single_if_unknown(image)
        if image.shape.ndims not in (3, 4):
            raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
        checks = [_required(target_width > 0, "target_width must be > 0."),
                  _required(target_height > 0, "target_height must be > 0.")]  # fmt: skip
        image = _with_checks(image, checks)
        is_single = image.shape.ndims == 3
        batch = array_ops.expand_dims(image, 0) if is_single else image
        shape = math_ops.cast(array_ops.shape(batch)[1:3], dtypes.float32)
        target = joining.stack([math_ops.cast(each, dtypes.float32) for each in (target_height, target_width)])
        factor = reductions.reduce_max(shape / target)
        exact = shape / factor
        margins = math_ops.maximum(math_ops.floor((target - exact) / 2), 0)
        before = math_ops.cast(margins, dtypes.int32)
        resized = _resize(batch, math_ops.cast(math_ops.floor(exact), dtypes.int32), method, align_corners)
        made = pad_to_bounding_box(resized, before[0], before[1], target_height, target_width)
        return array_ops.squeeze(made, [0]) if is_single else made


# -- files


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether the contents of a file begin as a JPEG file does."""
    with name_scope(name, "is_jpeg"):
        return math_ops.equal(apply_op("Substr", input=contents, pos=0, len=3), b"\xff\xd8\xff", name=name)


# -- linear color spaces

_TO_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
_TO_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_FROM_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _mixed(images: Any, matrix: Any) -> Tensor:
    images = convert_to_tensor(images, name="images")
    rank = images.shape.ndims
    if rank is None:
        shape = array_ops.shape(images)
        colors = array_ops.reshape(images, [-1, 3])
        return array_ops.reshape(apply_op("MatMul", a=colors, b=convert_to_tensor(matrix, images.dtype)), shape)
    return linalg_ops.tensordot(images, convert_to_tensor(matrix, images.dtype), [[rank - 1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Colors in the space of NTSC television."""
    return _mixed(images, _TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yiq`."""
    return _mixed(images, _FROM_YIQ)


def rgb_to_yuv(images: Any) -> Tensor:
    """Colors in the space of PAL television."""
    return _mixed(images, _TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yuv`."""
    return _mixed(images, _FROM_YUV)


__all__ += ["rgb_to_yiq", "rgb_to_yuv", "yiq_to_rgb", "yuv_to_rgb"]
