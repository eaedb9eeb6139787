"""The first Inception network (GoogLeNet).

Source: Szegedy et al., "Going Deeper with Convolutions" (2014), https://arxiv.org/abs/1409.4842
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.contrib import slim
from dtf.contrib.slim.nets import inception_tables

__all__ = ["inception_v1", "inception_v1_arg_scope", "inception_v1_base"]

inception_v1_arg_scope = inception_tables.inception_arg_scope

_TABLE = """
Conv2d_1a_7x7: 1a_7x7 64 s2
MaxPool_2a_3x3: max 2a_3x3 s2
Conv2d_2b_1x1: 2b_1x1 64
Conv2d_2c_3x3: 2c_3x3 192
MaxPool_3a_3x3: max 3a_3x3 s2
Mixed_3b: 0a_1x1 64 | 0a_1x1 96, 0b_3x3 128 | 0a_1x1 16, 0b_3x3 32 | max 0a_3x3, 0b_1x1 32
Mixed_3c: 0a_1x1 128 | 0a_1x1 128, 0b_3x3 192 | 0a_1x1 32, 0b_3x3 96 | max 0a_3x3, 0b_1x1 64
MaxPool_4a_3x3: max 4a_3x3 s2
Mixed_4b: 0a_1x1 192 | 0a_1x1 96, 0b_3x3 208 | 0a_1x1 16, 0b_3x3 48 | max 0a_3x3, 0b_1x1 64
Mixed_4c: 0a_1x1 160 | 0a_1x1 112, 0b_3x3 224 | 0a_1x1 24, 0b_3x3 64 | max 0a_3x3, 0b_1x1 64
Mixed_4d: 0a_1x1 128 | 0a_1x1 128, 0b_3x3 256 | 0a_1x1 24, 0b_3x3 64 | max 0a_3x3, 0b_1x1 64
Mixed_4e: 0a_1x1 112 | 0a_1x1 144, 0b_3x3 288 | 0a_1x1 32, 0b_3x3 64 | max 0a_3x3, 0b_1x1 64
Mixed_4f: 0a_1x1 256 | 0a_1x1 160, 0b_3x3 320 | 0a_1x1 32, 0b_3x3 128 | max 0a_3x3, 0b_1x1 128
MaxPool_5a_2x2: max 5a_2x2 s2
Mixed_5b: 0a_1x1 256 | 0a_1x1 160, 0b_3x3 320 | 0a_1x1 32, 0a_3x3 128 | max 0a_3x3, 0b_1x1 128
Mixed_5c: 0a_1x1 384 | 0a_1x1 192, 0b_3x3 384 | 0a_1x1 48, 0b_3x3 128 | max 0a_3x3, 0b_1x1 128
"""


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1", include_root_block: bool = True
) -> tuple[Any, dict[str, Any]]:
    """(the output at `final_endpoint`, the outputs by name) of images [batch, 224, 224, 3]."""
    lines = _TABLE.strip().splitlines()
    table = "\n".join(lines if include_root_block else lines[5:])
    normal = tf.truncated_normal_initializer(0.0, 0.01)
    with tf.variable_scope(scope, "InceptionV1", [inputs]):  # noqa: SIM117
        with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_initializer=normal):
            return inception_tables.base(table, inputs, final_endpoint, int, "SAME")


def inception_v1(
    inputs: Any, num_classes: int | None = 1000, is_training: Any = True, dropout_keep_prob: float = 0.8,
    prediction_fn: Callable[..., Any] = slim.softmax, spatial_squeeze: bool = True, reuse: Any = None,
    scope: str = "InceptionV1", global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(logits [batch, num_classes], the outputs by name) of images [batch, 224, 224, 3]."""
    with tf.variable_scope(scope, "InceptionV1", [inputs], reuse=reuse) as own:  # noqa: SIM117
        with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training):
            net, end_points = inception_v1_base(inputs, scope=own)
            names = ("AvgPool_0a_7x7", "Dropout_0b", "Conv2d_0c_1x1")
            return inception_tables.with_logits(
                net, end_points, num_classes, None if global_pool else [7, 7], names, is_training, dropout_keep_prob,
                prediction_fn, spatial_squeeze,
            )  # fmt: skip


inception_v1.default_image_size = 224  # type: ignore[attr-defined]
