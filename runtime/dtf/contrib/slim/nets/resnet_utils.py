"""The parts of residual networks: blocks of units, with the stride at each block's end.

Source: He et al., "Deep Residual Learning" (2015), https://arxiv.org/abs/1512.03385
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dtf as tf
from dtf.contrib import slim

__all__ = [
    "Block", "block_of_units", "conv2d_same", "network", "resnet", "resnet_arg_scope", "stack_blocks_dense",
    "subsample",
]  # fmt: skip


class Block(NamedTuple):
    """Units of a network: their scope, the function, and the arguments of each."""

    scope: str
    unit_fn: Callable[..., Any]
    args: Sequence[Any]


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Every `factor`-th pixel."""
    return inputs if factor == 1 else slim.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None) -> Any:
    """A convolution whose padding does not depend on the size of the image."""
    if stride == 1:
        return slim.conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    begin = total // 2
    padded = tf.pad(inputs, [[0, 0], [begin, total - begin], [begin, total - begin], [0, 0]])
    return slim.conv2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@slim.add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: int | None = None, outputs_collections: Any = None
) -> Any:
    """The blocks one after another; beyond `output_stride` they dilate instead of striding.

    Raises:
      ValueError: the output stride cannot be reached.
    """
    current, rate = 1, 1
    for block in blocks:
        with tf.variable_scope(block.scope, "block", [net]) as sc:
            for index, unit in enumerate(block.args, 1):
                if output_stride is not None and current > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with tf.variable_scope(f"unit_{index}", values=[net]):
                    if output_stride is not None and current == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        current *= unit.get("stride", 1)
            net = slim.utils.collect_named_outputs(outputs_collections, sc.name, net)
    if output_stride is not None and current != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001, batch_norm_decay: float = 0.997, batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True, activation_fn: Any = tf.nn.relu, use_batch_norm: bool = True,
) -> Any:  # fmt: skip
    """The defaults of their layers."""
    params = {
        "decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "scale": batch_norm_scale,
        "updates_collections": tf.GraphKeys.UPDATE_OPS, "fused": None,
    }  # fmt: skip
    with slim.arg_scope(  # noqa: SIM117
        [slim.conv2d], weights_regularizer=slim.l2_regularizer(weight_decay),
        weights_initializer=slim.variance_scaling_initializer(), activation_fn=activation_fn,
        normalizer_fn=slim.batch_norm if use_batch_norm else None, normalizer_params=params,
    ):  # fmt: skip
        with slim.arg_scope([slim.batch_norm], **params):
            with slim.arg_scope([slim.max_pool2d], padding="SAME") as scope:
                return scope


def resnet(
    default_scope: str, bottleneck: Callable[..., Any], root: Callable[[Any], Any], finish: Callable[[Any], Any],
    inputs: Any, blocks: Sequence[Any], num_classes: int | None, is_training: Any, global_pool: bool,
    output_stride: int | None, include_root_block: bool, reuse: Any, scope: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """(the output, the outputs by name) of a residual network of either version.

    Args:
      default_scope: the scope where `scope` is None.
      bottleneck: the unit of the version.
      root: makes the layers before the blocks, if `include_root_block` is true.
      finish: makes the layers between the blocks and the pooling.
      inputs: the images; this and the following arguments are as in `resnet_v1`.

    Raises:
      ValueError: the output stride cannot be reached.
    """
    with tf.variable_scope(scope, default_scope, [inputs], reuse=reuse) as sc:
        collection = sc.name + "_end_points"
        with (
            slim.arg_scope([slim.conv2d, bottleneck, stack_blocks_dense], outputs_collections=collection),
            slim.arg_scope([slim.batch_norm], is_training=is_training),
        ):
            net = inputs
            if include_root_block:
                if output_stride is not None:
                    if output_stride % 4 != 0:
                        raise ValueError("The output_stride needs to be a multiple of 4.")
                    output_stride //= 4
                net = slim.max_pool2d(root(net), [3, 3], stride=2, scope="pool1")
            net = finish(stack_blocks_dense(net, blocks, output_stride))
            if global_pool:
                net = tf.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
            if num_classes is not None:
                net = slim.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
            end_points = slim.utils.convert_collection_to_dict(collection)
            if num_classes is not None:
                end_points["predictions"] = slim.softmax(net, scope="predictions")
            return net, end_points


def block_of_units(bottleneck: Callable[..., Any], scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """A block of units; the last one strides."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return Block(scope, bottleneck, [*[unit] * (num_units - 1), {**unit, "stride": stride}])


def network(
    resnet: Callable[..., tuple[Any, Any]], block: Callable[..., Block], name: str, units: tuple[int, ...]
) -> Callable[..., tuple[Any, Any]]:
    """The network of four blocks with so many units each, as a function of the images."""
    sizes = zip((64, 128, 256, 512), units, (2, 2, 2, 1), strict=True)
    blocks = [block(f"block{index}", *size) for index, size in enumerate(sizes, 1)]
    function = functools.partial(_of_blocks, resnet, blocks, name)
    function.default_image_size = 224  # type: ignore[attr-defined]
    return function


def _of_blocks(
    resnet: Callable[..., tuple[Any, Any]], blocks: Any, default_scope: str, inputs: Any,
    num_classes: int | None = None, is_training: Any = True, global_pool: bool = True,
    output_stride: int | None = None, reuse: Any = None, scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    return resnet(
        inputs, blocks, num_classes, is_training, global_pool, output_stride, True, reuse, scope or default_scope
    )
