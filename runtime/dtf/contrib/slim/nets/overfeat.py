"""The OverFeat network.

Source: Sermanet et al., "OverFeat" (2013), https://arxiv.org/abs/1312.6229
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.contrib import slim

__all__ = ["overfeat", "overfeat_arg_scope"]


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of its layers."""
    with slim.arg_scope(  # noqa: SIM117
        [slim.conv2d, slim.fully_connected], activation_fn=tf.nn.relu,
        weights_regularizer=slim.l2_regularizer(weight_decay), biases_initializer=tf.zeros_initializer(),
    ):  # fmt: skip
        with slim.arg_scope([slim.conv2d], padding="SAME"):
            with slim.arg_scope([slim.max_pool2d], padding="VALID") as scope:
                return scope


def overfeat(
    inputs: Any, num_classes: int | None = 1000, is_training: Any = True, dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True, scope: str = "overfeat", global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(logits [batch, num_classes], the outputs by name) of images [batch, 231, 231, 3]."""
    with tf.variable_scope(scope, "overfeat", [inputs]) as sc:
        collection = sc.original_name_scope + "_end_points"
        with slim.arg_scope([slim.conv2d, slim.fully_connected, slim.max_pool2d], outputs_collections=collection):
            net = slim.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = slim.max_pool2d(net, [2, 2], scope="pool1")
            net = slim.conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
            net = slim.max_pool2d(net, [2, 2], scope="pool2")
            for index, filters in ((3, 512), (4, 1024), (5, 1024)):
                net = slim.conv2d(net, filters, [3, 3], scope=f"conv{index}")
            net = slim.max_pool2d(net, [2, 2], scope="pool5")
            with slim.arg_scope(
                [slim.conv2d], weights_initializer=tf.truncated_normal_initializer(0.0, 0.005),
                biases_initializer=tf.constant_initializer(0.1),
            ):  # fmt: skip
                net = slim.conv2d(net, 3072, [6, 6], padding="VALID", scope="fc6")
                net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = slim.conv2d(net, 4096, [1, 1], scope="fc7")
                end_points = slim.utils.convert_collection_to_dict(collection)
                if global_pool:
                    net = tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
                    end_points["global_pool"] = net
                if num_classes:
                    net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                    net = slim.conv2d(
                        net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
                        biases_initializer=tf.zeros_initializer(), scope="fc8",
                    )  # fmt: skip
                    if spatial_squeeze:
                        net = tf.squeeze(net, [1, 2], name="fc8/squeezed")
                    end_points[sc.name + "/fc8"] = net
            return net, end_points


overfeat.default_image_size = 231  # type: ignore[attr-defined]
