"""The Inception network with batch normalization.

Source: Ioffe and Szegedy, "Batch Normalization" (2015), https://arxiv.org/abs/1502.03167
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.contrib import slim
from dtf.contrib.slim.nets import inception_tables

__all__ = ["inception_v2", "inception_v2_arg_scope", "inception_v2_base"]

inception_v2_arg_scope = inception_tables.inception_arg_scope

_TABLE = """
Conv2d_1a_7x7:
MaxPool_2a_3x3: max 2a_3x3 s2
Conv2d_2b_1x1: 2b_1x1 64
Conv2d_2c_3x3: 2c_3x3 192
MaxPool_3a_3x3: max 3a_3x3 s2
Mixed_3b: 0a_1x1 64 | 0a_1x1 64, 0b_3x3 64 | 0a_1x1 64, 0b_3x3 96, 0c_3x3 96 | avg 0a_3x3, 0b_1x1 32
Mixed_3c: 0a_1x1 64 | 0a_1x1 64, 0b_3x3 96 | 0a_1x1 64, 0b_3x3 96, 0c_3x3 96 | avg 0a_3x3, 0b_1x1 64
Mixed_4a: 0a_1x1 128, 1a_3x3 160 s2 | 0a_1x1 64, 0b_3x3 96, 1a_3x3 96 s2 | max 1a_3x3 s2
Mixed_4b: 0a_1x1 224 | 0a_1x1 64, 0b_3x3 96 | 0a_1x1 96, 0b_3x3 128, 0c_3x3 128 | avg 0a_3x3, 0b_1x1 128
Mixed_4c: 0a_1x1 192 | 0a_1x1 96, 0b_3x3 128 | 0a_1x1 96, 0b_3x3 128, 0c_3x3 128 | avg 0a_3x3, 0b_1x1 128
Mixed_4d: 0a_1x1 160 | 0a_1x1 128, 0b_3x3 160 | 0a_1x1 128, 0b_3x3 160, 0c_3x3 160 | avg 0a_3x3, 0b_1x1 96
Mixed_4e: 0a_1x1 96 | 0a_1x1 128, 0b_3x3 192 | 0a_1x1 160, 0b_3x3 192, 0c_3x3 192 | avg 0a_3x3, 0b_1x1 96
Mixed_5a: 0a_1x1 128, 1a_3x3 192 s2 | 0a_1x1 192, 0b_3x3 256, 1a_3x3 256 s2 | max 1a_3x3 s2
Mixed_5b: 0a_1x1 352 | 0a_1x1 192, 0b_3x3 320 | 0a_1x1 160, 0b_3x3 224, 0c_3x3 224 | avg 0a_3x3, 0b_1x1 128
Mixed_5c: 0a_1x1 352 | 0a_1x1 192, 0b_3x3 320 | 0a_1x1 192, 0b_3x3 224, 0c_3x3 224 | max 0a_3x3, 0b_1x1 128
"""


def inception_v2_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", min_depth: int = 16, depth_multiplier: float = 1.0,
    scope: Any = None, use_separable_conv: bool = True,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(the output at `final_endpoint`, the outputs by name) of images [batch, 224, 224, 3].

    Args:
      min_depth: the least number of filters.
      depth_multiplier: a factor of all numbers of filters.
      use_separable_conv: whether the first convolution is a depthwise one.

    Raises:
      ValueError: the factor is not positive, or the endpoint is unknown.
    """
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")

    def depth(filters: int) -> int:
        return max(int(filters * depth_multiplier), min_depth)

    def first(net: Any) -> Any:
        normal = tf.truncated_normal_initializer(stddev=1.0)
        if not use_separable_conv:
            return slim.conv2d(net, depth(64), [7, 7], stride=2, weights_initializer=normal, scope="Conv2d_1a_7x7")
        factor = min(int(depth(64) / 3), 8)
        return slim.separable_conv2d(
            net, depth(64), [7, 7], depth_multiplier=factor, stride=2, padding="SAME", weights_initializer=normal,
            scope="Conv2d_1a_7x7",
        )  # fmt: skip

    with tf.variable_scope(scope, "InceptionV2", [inputs]):
        return inception_tables.base(_TABLE, inputs, final_endpoint, depth, "SAME", first)


def inception_v2(
    inputs: Any, num_classes: int | None = 1000, is_training: Any = True, dropout_keep_prob: float = 0.8,
    min_depth: int = 16, depth_multiplier: float = 1.0, prediction_fn: Callable[..., Any] = slim.softmax,
    spatial_squeeze: bool = True, reuse: Any = None, scope: str = "InceptionV2", global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(logits [batch, num_classes], the outputs by name) of images [batch, 224, 224, 3]."""
    with tf.variable_scope(scope, "InceptionV2", [inputs], reuse=reuse) as own:  # noqa: SIM117
        with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training):
            net, end_points = inception_v2_base(
                inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=own
            )
            names = ("AvgPool_1a_7x7", "Dropout_1b", "Conv2d_1c_1x1")
            return inception_tables.with_logits(
                net, end_points, num_classes, None if global_pool else [7, 7], names, is_training, dropout_keep_prob,
                prediction_fn, spatial_squeeze,
            )  # fmt: skip


inception_v2.default_image_size = 224  # type: ignore[attr-defined]
