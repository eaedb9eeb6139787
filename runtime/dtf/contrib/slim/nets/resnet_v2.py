"""Residual networks, second version: normalization and activation come first.

Source: He et al., "Identity Mappings in Deep Residual Networks" (2016), https://arxiv.org/abs/1603.05027
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import dtf as tf
from dtf.contrib import slim
from dtf.contrib.slim.nets import resnet_utils

__all__ = [
    "bottleneck", "resnet_arg_scope", "resnet_v2", "resnet_v2_101", "resnet_v2_152", "resnet_v2_200", "resnet_v2_50",
    "resnet_v2_block",
]  # fmt: skip

resnet_arg_scope = resnet_utils.resnet_arg_scope


@slim.add_arg_scope
def bottleneck(
    inputs: Any, depth: int, depth_bottleneck: int, stride: int, rate: int = 1, outputs_collections: Any = None,
    scope: Any = None,
) -> Any:  # fmt: skip
    """shortcut + three convolutions of the normalized inputs, with `depth` channels."""
    with tf.variable_scope(scope, "bottleneck_v2", [inputs]) as sc:
        before = slim.batch_norm(inputs, activation_fn=tf.nn.relu, scope="preact")
        if depth == inputs.get_shape()[-1].value:
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = slim.conv2d(
                before, depth, [1, 1], stride=stride, normalizer_fn=None, activation_fn=None, scope="shortcut"
            )
        residual = slim.conv2d(before, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = resnet_utils.conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = slim.conv2d(residual, depth, [1, 1], stride=1, normalizer_fn=None, activation_fn=None, scope="conv3")
        return slim.utils.collect_named_outputs(outputs_collections, sc.name, shortcut + residual)


def resnet_v2(
    inputs: Any, blocks: Sequence[Any], num_classes: int | None = None, is_training: Any = True,
    global_pool: bool = True, output_stride: int | None = None, include_root_block: bool = True, reuse: Any = None,
    scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(the output, the outputs by name).

    Args:
      num_classes: None for no logits.
      global_pool: whether pixels are averaged before the logits.
      output_stride: the ratio of input to output size; None: the product of the blocks' strides.
      include_root_block: whether there is a convolution of 7 x 7 first.

    Raises:
      ValueError: the output stride cannot be reached.
    """
    return resnet_utils.resnet(
        "resnet_v2", bottleneck, _root, _finish, inputs, blocks, num_classes, is_training, global_pool,
        output_stride, include_root_block, reuse, scope,
    )  # fmt: skip


def _root(net: Any) -> Any:
    with slim.arg_scope([slim.conv2d], activation_fn=None, normalizer_fn=None):
        return resnet_utils.conv2d_same(net, 64, 7, stride=2, scope="conv1")


def _finish(net: Any) -> Any:
    return slim.batch_norm(net, activation_fn=tf.nn.relu, scope="postnorm")


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> resnet_utils.Block:
    """A block of units; the last one strides."""
    return resnet_utils.block_of_units(bottleneck, scope, base_depth, num_units, stride)


_network = functools.partial(resnet_utils.network, resnet_v2, resnet_v2_block)
resnet_v2_50 = _network("resnet_v2_50", (3, 4, 6, 3))
resnet_v2_101 = _network("resnet_v2_101", (3, 4, 23, 3))
resnet_v2_152 = _network("resnet_v2_152", (3, 8, 36, 3))
resnet_v2_200 = _network("resnet_v2_200", (3, 24, 36, 3))
