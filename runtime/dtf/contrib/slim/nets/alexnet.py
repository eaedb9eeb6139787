"""AlexNet in its second form, without two columns.

Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014), https://arxiv.org/abs/1404.5997
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.contrib import slim

__all__ = ["alexnet_v2", "alexnet_v2_arg_scope"]


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of its layers."""
    with slim.arg_scope(  # noqa: SIM117
        [slim.conv2d, slim.fully_connected], activation_fn=tf.nn.relu,
        biases_initializer=tf.constant_initializer(0.1), weights_regularizer=slim.l2_regularizer(weight_decay),
    ):  # fmt: skip
        with slim.arg_scope([slim.conv2d], padding="SAME"):
            with slim.arg_scope([slim.max_pool2d], padding="VALID") as scope:
                return scope


def alexnet_v2(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True, scope: str = "alexnet_v2",
) -> tuple[Any, Any]:  # fmt: skip
    """(logits [batch, num_classes], the outputs by name) of images [batch, 224, 224, 3]."""
    with tf.variable_scope(scope, "alexnet_v2", [inputs]) as sc:
        collection = sc.name + "_end_points"
        with slim.arg_scope([slim.conv2d, slim.fully_connected, slim.max_pool2d], outputs_collections=[collection]):
            net = slim.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = slim.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = slim.conv2d(net, 192, [5, 5], scope="conv2")
            net = slim.max_pool2d(net, [3, 3], 2, scope="pool2")
            net = slim.conv2d(net, 384, [3, 3], scope="conv3")
            net = slim.conv2d(net, 384, [3, 3], scope="conv4")
            net = slim.conv2d(net, 256, [3, 3], scope="conv5")
            net = slim.max_pool2d(net, [3, 3], 2, scope="pool5")
            with slim.arg_scope(
                [slim.conv2d], weights_initializer=tf.truncated_normal_initializer(0.0, 0.005),
                biases_initializer=tf.constant_initializer(0.1),
            ):  # fmt: skip
                net = slim.conv2d(net, 4096, [5, 5], padding="VALID", scope="fc6")
                net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = slim.conv2d(net, 4096, [1, 1], scope="fc7")
                net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = slim.conv2d(
                    net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
                    biases_initializer=tf.zeros_initializer(), scope="fc8",
                )  # fmt: skip
            end_points = slim.utils.convert_collection_to_dict(collection)
            if spatial_squeeze:
                net = tf.squeeze(net, [1, 2], name="fc8/squeezed")
                end_points[sc.name + "/fc8"] = net
            return net, end_points


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]
