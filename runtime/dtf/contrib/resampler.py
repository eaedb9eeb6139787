"""tf.contrib.resampler: values of images at any points, by bilinear interpolation.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/resampler/resampler
"""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = ["resampler"]


def resampler(data: Any, warp: Any, name: str = "resampler") -> Any:
    """The values of images at points; outside of an image they fall to 0 within one pixel.

    Args:
      data: [batch, height, width, channels] of floating-point numbers.
      warp: [batch, ..., 2]: x and y of each point, in pixels.
      name: the name scope.

    Returns:
      A tensor [batch, ..., channels]; it has gradients for both arguments.
    """
    with tf.name_scope(name, "resampler", [data, warp]):
        data, warp = tf.convert_to_tensor(data, name="data"), tf.convert_to_tensor(warp, name="warp")
        shape, places = tf.shape(data), tf.shape(warp)
        points = tf.reshape(warp, tf.stack([places[0], -1, 2]))
        corner = tf.floor(points)
        part = points - corner
        # A border of zeros makes the pixels outside of the image.
        padded = tf.pad(data, [[0, 0], [1, 1], [1, 1], [0, 0]])
        rows = tf.tile(tf.range(shape[0])[:, None], tf.stack([1, tf.shape(points)[1]]))
        limits = tf.stack([shape[2], shape[1]])
        total: Any = 0.0
        for right in (0, 1):
            for below in (0, 1):
                pixel = tf.cast(corner, tf.int32) + [right, below]
                inside = tf.clip_by_value(pixel, -1, limits) + 1
                value = tf.gather_nd(padded, tf.stack([rows, inside[..., 1], inside[..., 0]], -1))
                by_x = part[..., 0] if right else 1 - part[..., 0]
                by_y = part[..., 1] if below else 1 - part[..., 1]
                total += value * tf.cast(by_x * by_y, data.dtype)[..., None]
        result = tf.reshape(total, tf.concat([places[:-1], shape[-1:]], 0))
        result.set_shape(warp.shape[:-1].concatenate(data.shape[-1:]))
        return result
