"""tf.contrib.image: rotations, shifts and other projective transforms of images.

A transform is 8 numbers a0 ... c1: the output at (x, y) comes from the input at
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), with k = c0 x + c1 y + 1.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/image
"""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = [
    "angles_to_projective_transforms", "compose_transforms", "flat_transforms_to_matrices",
    "matrices_to_flat_transforms", "rotate", "transform", "translate", "translations_to_projective_transforms",
]  # fmt: skip


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images turned counterclockwise round their middle; what comes in from outside is 0.

    Args:
      images: [batch, height, width, channels], [height, width, channels] or [height, width].
      angles: in radians: one, or one for each image.
      interpolation: "NEAREST" or "BILINEAR".

    Returns:
      A Tensor like `images`.
    """
    with tf.name_scope(name, "rotate", [images, angles]):
        images = tf.convert_to_tensor(images)
        shape = tf.shape(_batched(images))
        height, width = tf.to_float(shape[1]), tf.to_float(shape[2])
        return transform(images, angles_to_projective_transforms(angles, height, width), interpolation)


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images moved by (dx, dy) pixels: [2], or [batch, 2]."""
    with tf.name_scope(name, "translate", [images, translations]):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Any:
    """Transforms [n, 8] that turn images of a size by angles."""
    with tf.name_scope(name, "angles_to_projective_transforms"):
        angles = tf.reshape(tf.to_float(angles), [-1])
        sine, cosine = tf.sin(angles), tf.cos(angles)
        x, y = tf.to_float(image_width) - 1.0, tf.to_float(image_height) - 1.0
        x_offset = (x - (cosine * x - sine * y)) / 2.0
        y_offset = (y - (sine * x + cosine * y)) / 2.0
        zeros = tf.zeros_like(angles)
        return tf.stack([cosine, -sine, x_offset, sine, cosine, y_offset, zeros, zeros], 1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """Transforms [n, 8] that move images by (dx, dy)."""
    with tf.name_scope(name, "translations_to_projective_transforms"):
        moves = tf.reshape(tf.to_float(translations), [-1, 2])
        ones, zeros = tf.ones_like(moves[:, 0]), tf.zeros_like(moves[:, 0])
        return tf.stack([ones, zeros, -moves[:, 0], zeros, ones, -moves[:, 1], zeros, zeros], 1)


def flat_transforms_to_matrices(transforms: Any) -> Any:
    """[n, 8] -> [n, 3, 3]."""
    transforms = tf.reshape(tf.to_float(transforms), [-1, 8])
    return tf.reshape(tf.concat([transforms, tf.ones_like(transforms[:, :1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """[n, 3, 3] -> [n, 8], scaled so that the last element is 1."""
    flat = tf.reshape(transform_matrices, [-1, 9])
    return (flat / flat[:, 8:])[:, :8]


def compose_transforms(*transforms: Any) -> Any:
    """The transform [n, 8] of several, one after another.

    Raises:
      ValueError: none is given.
    """
    if not transforms:
        raise ValueError("transforms cannot be empty")
    composed = flat_transforms_to_matrices(transforms[0])
    for each in transforms[1:]:
        composed = tf.matmul(composed, flat_transforms_to_matrices(each))
    return matrices_to_flat_transforms(composed)


def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None, name: str | None = None
) -> Any:
    """Images [batch, height, width, channels] (or fewer dimensions) under transforms [8] or [batch, 8].

    Raises:
      ValueError: the interpolation is unknown.
    """
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"interpolation must be NEAREST or BILINEAR, got {interpolation!r}")
    with tf.name_scope(name, "transform", [images, transforms]):
        images = tf.convert_to_tensor(images)
        batched = _batched(images)
        count = tf.shape(batched)[0]
        size = tf.shape(batched)[1:3] if output_shape is None else tf.convert_to_tensor(output_shape)
        parts = tf.tile(tf.reshape(tf.to_float(transforms), [-1, 8]), [1, 1])
        parts = parts + tf.zeros(tf.stack([count, 1]))  # one transform serves all images
        x, y = tf.meshgrid(tf.to_float(tf.range(size[1])), tf.to_float(tf.range(size[0])))
        a0, a1, a2, b0, b1, b2, c0, c1 = (tf.reshape(each, [-1, 1, 1]) for each in tf.unstack(parts, axis=1))
        k = c0 * x + c1 * y + 1.0
        from_x, from_y = (a0 * x + a1 * y + a2) / k, (b0 * x + b1 * y + b2) / k
        if interpolation == "NEAREST":
            result = _pixels(batched, tf.round(from_x), tf.round(from_y))
        else:
            result = _between(batched, from_x, from_y)
        if output_shape is None:
            result.set_shape(batched.shape)
        rank = images.shape.ndims
        return result if rank == 4 else result[0] if rank == 3 else result[0, :, :, 0]


def _batched(images: Any) -> Any:
    rank = images.shape.ndims
    if rank not in (2, 3, 4):
        raise TypeError("Images should have rank between 2 and 4.")
    return images if rank == 4 else images[None] if rank == 3 else images[None, :, :, None]


def _between(images: Any, x: Any, y: Any) -> Any:
    left, top = tf.floor(x), tf.floor(y)
    result = tf.zeros([])
    for dx in (0.0, 1.0):
        for dy in (0.0, 1.0):
            weight = (1.0 - tf.abs(x - left - dx)) * (1.0 - tf.abs(y - top - dy))
            result += tf.expand_dims(weight, 3) * tf.to_float(_pixels(images, left + dx, top + dy))
    return tf.cast(result, images.dtype)


def _pixels(images: Any, x: Any, y: Any) -> Any:
    """The pixels at whole coordinates [batch, height, width]; 0 outside."""
    height, width = tf.shape(images)[1], tf.shape(images)[2]
    column, row = tf.to_int32(x), tf.to_int32(y)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    number = tf.reshape(tf.range(tf.shape(images)[0]), [-1, 1, 1]) + tf.zeros_like(column)
    places = [number, tf.clip_by_value(row, 0, height - 1), tf.clip_by_value(column, 0, width - 1)]
    found = tf.gather_nd(images, tf.stack(places, 3))
    return found * tf.cast(tf.expand_dims(inside, 3), images.dtype)
