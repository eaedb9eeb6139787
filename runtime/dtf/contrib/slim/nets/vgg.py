"""VGG networks of 11, 16 and 19 layers.

Source: Simonyan and Zisserman, "Very Deep Convolutional Networks" (2014), https://arxiv.org/abs/1409.1556
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.contrib import slim

__all__ = ["vgg_16", "vgg_19", "vgg_a", "vgg_arg_scope"]


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of their layers."""
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected], activation_fn=tf.nn.relu,
        weights_regularizer=slim.l2_regularizer(weight_decay), biases_initializer=tf.zeros_initializer(),
    ), slim.arg_scope([slim.conv2d], padding="SAME") as scope:  # fmt: skip
        return scope


def _network(name: str, repetitions: tuple[int, ...]) -> Callable[..., tuple[Any, Any]]:
    def vgg(
        inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True, scope: str = name, fc_conv_padding: str = "VALID",
    ) -> tuple[Any, Any]:  # fmt: skip
        """(logits [batch, num_classes], the outputs by name) of images [batch, 224, 224, 3]."""
        with tf.variable_scope(scope, name, [inputs]) as sc:
            collection = sc.name + "_end_points"
            with slim.arg_scope([slim.conv2d, slim.fully_connected, slim.max_pool2d], outputs_collections=collection):
                net = inputs
                for block, (count, filters) in enumerate(zip(repetitions, (64, 128, 256, 512, 512), strict=True), 1):
                    net = slim.repeat(net, count, slim.conv2d, filters, [3, 3], scope=f"conv{block}")
                    net = slim.max_pool2d(net, [2, 2], scope=f"pool{block}")
                net = slim.conv2d(net, 4096, [7, 7], padding=fc_conv_padding, scope="fc6")
                net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = slim.conv2d(net, 4096, [1, 1], scope="fc7")
                net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = slim.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8")
                end_points = slim.utils.convert_collection_to_dict(collection)
                if spatial_squeeze:
                    net = tf.squeeze(net, [1, 2], name="fc8/squeezed")
                    end_points[sc.name + "/fc8"] = net
                return net, end_points

    vgg.__name__ = name
    vgg.default_image_size = 224  # type: ignore[attr-defined]
    return vgg


vgg_a = _network("vgg_a", (1, 1, 2, 2, 2))
vgg_16 = _network("vgg_16", (2, 2, 3, 3, 3))
vgg_19 = _network("vgg_19", (2, 2, 4, 4, 4))
vgg_d, vgg_e = vgg_16, vgg_19
