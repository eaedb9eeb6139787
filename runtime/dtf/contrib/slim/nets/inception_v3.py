"""The third Inception network, with factorized convolutions and a second classifier for training.

Source: Szegedy et al., "Rethinking the Inception Architecture" (2015), https://arxiv.org/abs/1512.00567
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.contrib import slim
from dtf.contrib.slim.nets import inception_tables

__all__ = ["inception_v3", "inception_v3_arg_scope", "inception_v3_base"]

inception_v3_arg_scope = inception_tables.inception_arg_scope

_THREE = "0a_1x1 64, 0b_3x3 96, 0c_3x3 96"
_SMALLER = "0a_1x1 192, 0b_1x7 192, 0c_7x1 192, 1a_3x3 192 s2 valid"
_SPLIT = "0a_1x1 448, 0b_3x3 384, 0c_1x3 384 / 0d_3x1 384"
_SEVEN = (
    "0a_1x1 192 | 0a_1x1 {0}, 0b_1x7 {0}, 0c_7x1 192"
    " | 0a_1x1 {0}, 0b_7x1 {0}, 0c_1x7 {0}, 0d_7x1 {0}, 0e_1x7 192 | avg 0a_3x3, 0b_1x1 192"
)
_TABLE = f"""
Conv2d_1a_3x3: 1a_3x3 32 s2
Conv2d_2a_3x3: 2a_3x3 32
Conv2d_2b_3x3: 2b_3x3 64 same
MaxPool_3a_3x3: max 3a_3x3 s2
Conv2d_3b_1x1: 3b_1x1 80
Conv2d_4a_3x3: 4a_3x3 192
MaxPool_5a_3x3: max 5a_3x3 s2
Mixed_5b: 0a_1x1 64 | 0a_1x1 48, 0b_5x5 64 | {_THREE} | avg 0a_3x3, 0b_1x1 32
Mixed_5c: 0a_1x1 64 | 0b_1x1 48, 0c_5x5 64 =Conv_1_0c_5x5 | {_THREE} | avg 0a_3x3, 0b_1x1 64
Mixed_5d: 0a_1x1 64 | 0a_1x1 48, 0b_5x5 64 | {_THREE} | avg 0a_3x3, 0b_1x1 64
Mixed_6a: 1a_1x1 384 k3x3 s2 valid | 0a_1x1 64, 0b_3x3 96, 1a_1x1 96 k3x3 s2 valid | max 1a_3x3 s2 valid
Mixed_6b: {_SEVEN.format(128)}
Mixed_6c: {_SEVEN.format(160)}
Mixed_6d: {_SEVEN.format(160)}
Mixed_6e: {_SEVEN.format(192)}
Mixed_7a: 0a_1x1 192, 1a_3x3 320 s2 valid | {_SMALLER} | max 1a_3x3 s2 valid
Mixed_7b: 0a_1x1 320 | 0a_1x1 384, 0b_1x3 384 / 0b_3x1 384 | {_SPLIT} | avg 0a_3x3, 0b_1x1 192
Mixed_7c: 0a_1x1 320 | 0a_1x1 384, 0b_1x3 384 / 0c_3x1 384 | {_SPLIT} | avg 0a_3x3, 0b_1x1 192
"""


def inception_v3_base(
    inputs: Any, final_endpoint: str = "Mixed_7c", min_depth: int = 16, depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(the output at `final_endpoint`, the outputs by name) of images [batch, 299, 299, 3].

    Raises:
      ValueError: the factor is not positive, or the endpoint is unknown.
    """
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")

    def depth(filters: int) -> int:
        return max(int(filters * depth_multiplier), min_depth)

    with tf.variable_scope(scope, "InceptionV3", [inputs]):
        return inception_tables.base(_TABLE, inputs, final_endpoint, depth, "VALID")


def inception_v3(
    inputs: Any, num_classes: int | None = 1000, is_training: Any = True, dropout_keep_prob: float = 0.8,
    min_depth: int = 16, depth_multiplier: float = 1.0, prediction_fn: Callable[..., Any] = slim.softmax,
    spatial_squeeze: bool = True, reuse: Any = None, create_aux_logits: bool = True, scope: str = "InceptionV3",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(logits [batch, num_classes], the outputs by name) of images [batch, 299, 299, 3].

    Args:
      create_aux_logits: whether `AuxLogits`, the logits of the second classifier, are among the outputs.
    """
    with tf.variable_scope(scope, "InceptionV3", [inputs], reuse=reuse) as own:  # noqa: SIM117
        with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training):
            net, end_points = inception_v3_base(
                inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=own
            )
            if create_aux_logits and num_classes:
                end_points["AuxLogits"] = _auxiliary(
                    end_points["Mixed_6e"], num_classes, lambda count: max(int(count * depth_multiplier), min_depth),
                    spatial_squeeze,
                )  # fmt: skip
            names = ("AvgPool_1a_8x8", "Dropout_1b", "Conv2d_1c_1x1")
            return inception_tables.with_logits(
                net, end_points, num_classes, None if global_pool else [8, 8], names, is_training, dropout_keep_prob,
                prediction_fn, spatial_squeeze, keeps_pre_logits=True,
            )  # fmt: skip


inception_v3.default_image_size = 299  # type: ignore[attr-defined]


def _auxiliary(net: Any, num_classes: int, depth: Callable[[int], int], spatial_squeeze: bool) -> Any:
    normal = tf.truncated_normal_initializer
    with slim.arg_scope([slim.conv2d, slim.max_pool2d, slim.avg_pool2d], stride=1, padding="SAME"):  # noqa: SIM117
        with tf.variable_scope("AuxLogits"):
            net = slim.avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
            net = slim.conv2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
            kernel = inception_tables.reduced_kernel(net, [5, 5])
            net = slim.conv2d(
                net, depth(768), kernel, weights_initializer=normal(0.0, 0.01), padding="VALID",
                scope=f"Conv2d_2a_{kernel[0]}x{kernel[1]}",
            )  # fmt: skip
            net = slim.conv2d(
                net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
                weights_initializer=normal(0.0, 0.001), scope="Conv2d_2b_1x1",
            )  # fmt: skip
            return tf.squeeze(net, [1, 2], name="SpatialSqueeze") if spatial_squeeze else net
