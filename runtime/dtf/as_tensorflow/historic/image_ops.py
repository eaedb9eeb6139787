"""tensorflow.python.ops.image_ops: resizing with version 2's methods, which tests and models of 1.15 import.

Pixels have their centres at half integers here, unlike in `tf.image.resize_images`.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, image, image_functions, joining, math
from dtf.build.ops.image_functions import ResizeMethod as ResizeMethodV1
from dtf.build.ops.image_functions import _fitting as _size_of_same_ratio
from dtf.build.ops.image_functions import pad_to_bounding_box
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

__all__ = ["ResizeMethod", "ResizeMethodV1", "resize_image_with_pad_v2", "resize_images_v2"]


class ResizeMethod:
    """How `resize_images_v2` finds values between pixels."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_KERNELS = {
    "bilinear": "triangle", "lanczos3": "lanczos3", "lanczos5": "lanczos5", "bicubic": "keyscubic",
    "gaussian": "gaussian", "mitchellcubic": "mitchellcubic",
}  # fmt: skip


def resize_images_v2(
    images: Any,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images of another size [height, width]: float32, or of their own dtype for the nearest neighbour.

    Args:
      images: [batch, height, width, channels] or [height, width, channels].
      size: [height, width].
      method: a ResizeMethod.
      preserve_aspect_ratio: the size is the greatest that keeps the ratio.
      antialias: average over the pixels that a smaller image merges.
      name: a name scope.

    Raises:
      ValueError: the method is unknown, or the images or the size have a wrong shape.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        if images.shape.ndims is None:
            raise ValueError("'images' contains no shape.")
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        is_single = images.shape.ndims == 3
        batch = array.expand_dims(images, 0) if is_single else images
        if preserve_aspect_ratio:
            size = _size_of_same_ratio(batch, size)
        try:
            size = convert_to_tensor(size, dtypes.int32, name="size")
        except (TypeError, ValueError):
            raise ValueError("'size' must be a 1-D int32 Tensor") from None
        if not size.shape.is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        made = _resized(batch, size, method, antialias)
        return array.squeeze(made, [0]) if is_single else made


def _resized(images: Tensor, size: Tensor, method: str, antialias: bool) -> Tensor:
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        return image.resize_nearest_neighbor(images, size, half_pixel_centers=True)
    if method == ResizeMethod.AREA:
        return image.resize_area(images, size)
    if method in (ResizeMethod.BILINEAR, ResizeMethod.BICUBIC) and not antialias:
        resize = image.resize_bilinear if method == ResizeMethod.BILINEAR else image.resize_bicubic
        return resize(images, size, half_pixel_centers=True)
    if method not in _KERNELS:
        raise ValueError("Resize method is not implemented.")
    scale = math.cast(size, dtypes.float32) / math.cast(array.shape_of(images)[1:3], dtypes.float32)
    return apply_op(
        "ScaleAndTranslate",
        None,
        images=images,
        size=size,
        scale=scale,
        translation=[0.0, 0.0],
        kernel_type=_KERNELS[method],
        antialias=antialias,
    )


def resize_image_with_pad_v2(
    image: Any, target_height: Any, target_width: Any, method: str = ResizeMethod.BILINEAR, antialias: bool = False
) -> Tensor:
    """Resized without a change of the aspect ratio, and padded with zeros to the given size."""
    with name_scope(None, "resize_image_with_pad", [image]):
        images = image_functions._single_if_unknown(image)
        is_single = images.shape.ndims == 3
        batch = array.expand_dims(images, 0) if is_single else images
        shape = math.cast(array.shape_of(batch)[1:3], dtypes.float32)
        target = joining.stack([math.cast(each, dtypes.float32) for each in (target_height, target_width)])
        ratio = shape / target
        exact = shape / math.maximum(ratio[0], ratio[1])
        margins = math.cast(math.maximum(math.floor((target - exact) / 2), 0), dtypes.int32)
        resized = _resized(batch, math.cast(math.floor(exact), dtypes.int32), method, antialias)
        made = pad_to_bounding_box(resized, margins[0], margins[1], target_height, target_width)
        return array.squeeze(made, [0]) if is_single else made
