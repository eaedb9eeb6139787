"""Images through JPEG of a given quality: `adjust_jpeg_quality` and `random_jpeg_quality`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image/adjust_jpeg_quality
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.image_functions import convert_image_dtype
from dtf.build.ops.random import random_uniform
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["adjust_jpeg_quality", "random_jpeg_quality"]


def adjust_jpeg_quality(
    image: TensorLike, jpeg_quality: Any, dct_method: str = "", name: str | None = None
) -> Tensor:
    """An RGB or grey image after encoding as a JPEG of quality 0 to 100, a Python number, and decoding it.

    Args:
      image: [height, width, channels] of uint8, or of a floating dtype in [0, 1].
      jpeg_quality: a Python number.
      dct_method: as in tf.image.decode_jpeg.
      name: the name scope.

    Returns:
      An image of the shape and dtype of `image`.

    Raises:
      TypeError: `jpeg_quality` is a tensor; the quality is an attribute of the op.
    """
    if isinstance(jpeg_quality, Tensor):
        raise TypeError("jpeg_quality must be a Python number: the op of a quality that is a tensor is not supported")
    with name_scope(name, "adjust_jpeg_quality", [image]):
        images = convert_to_tensor(image, name="image")
        channels = images.shape.as_list()[-1]
        original = images.dtype
        as_bytes = convert_image_dtype(images, dtypes.uint8, saturate=True)
        encoded = apply_op("EncodeJpeg", image=as_bytes, quality=int(jpeg_quality))
        decoded = apply_op("DecodeJpeg", contents=encoded, channels=channels, dct_method=dct_method)
        decoded.set_shape(images.shape)
        return convert_image_dtype(decoded, original, saturate=True)


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` with a quality of [min, max), drawn in each step.

    Raises:
      ValueError: a quality outside of [0, 100], or an empty interval.
    """
    from dtf.build.ops.newer_names import switch_case

    if not (0 <= min_jpeg_quality <= 100 and 0 <= max_jpeg_quality <= 100):
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    drawn = random_uniform([], 0, max_jpeg_quality - min_jpeg_quality, dtypes.int32, seed)
    qualities = [int(each) for each in np.arange(min_jpeg_quality, max_jpeg_quality)]
    return switch_case(drawn, [lambda quality=each: adjust_jpeg_quality(image, quality) for each in qualities])
