"""Inception networks from tables of their layers. Owns the tables' grammar.

A line is an endpoint and its layers; `|` separates parallel branches, whose results are joined, `,` the layers of one.

    0a_3x3 64        a convolution Conv2d_0a_3x3 with 64 filters; kernel size and name are one word
    max 3a_3x3 s2    a pool (max or avg) MaxPool_3a_3x3; s2 is its stride
    ... valid, same  without or with padding, instead of the default
    ... k3x3         another kernel than the name says
    ... =Conv_1      another name
    a / b            two convolutions of the same input, joined
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import dtf as tf
from dtf.contrib import slim

__all__ = ["base", "inception_arg_scope", "reduced_kernel", "with_logits"]

_POOLS = {"max": ("MaxPool", "max_pool2d"), "avg": ("AvgPool", "avg_pool2d")}


def inception_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001, activation_fn: Any = tf.nn.relu,
    batch_norm_updates_collections: Any = tf.GraphKeys.UPDATE_OPS, batch_norm_scale: bool = False,
) -> Any:  # fmt: skip
    """The defaults of their layers."""
    params = {
        "decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "fused": None, "scale": batch_norm_scale,
        "updates_collections": batch_norm_updates_collections,
    }  # fmt: skip
    normalizer = {"normalizer_fn": slim.batch_norm, "normalizer_params": params} if use_batch_norm else {}
    regularizer = slim.l2_regularizer(weight_decay)
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=regularizer), slim.arg_scope(
        [slim.conv2d], weights_initializer=slim.variance_scaling_initializer(), activation_fn=activation_fn,
        **normalizer,
    ) as scope:  # fmt: skip
        return scope


def base(
    table: str, inputs: Any, final_endpoint: str, depth: Callable[[int], int], padding: str,
    first: Callable[[Any], Any] | None = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(the output at `final_endpoint`, the outputs by name) of a table's layers.

    Args:
      depth: the filters of a convolution, of the table's number.
      padding: of layers outside of branches.
      first: makes the first layer, whose line in the table is then only its name.

    Raises:
      ValueError: the table has no such endpoint.
    """
    net, end_points = inputs, {}
    for line in table.strip().splitlines():
        name, layers = (part.strip() for part in line.split(":"))
        if not layers and first is not None:
            net = first(net)
        elif "|" not in layers:
            net = _layer(net, layers, depth, padding)
        else:
            with tf.variable_scope(name):
                branches = []
                for index, branch in enumerate(layers.split("|")):
                    with tf.variable_scope(f"Branch_{index}"):
                        found = net
                        for layer in branch.split(","):
                            found = _layer(found, layer, depth, "SAME")
                    branches.append(found)
                net = tf.concat(branches, 3)
        end_points[name] = net
        if name == final_endpoint:
            return net, end_points
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def with_logits(
    net: Any, end_points: dict[str, Any], num_classes: int | None, pool: list[int] | None, names: tuple[str, str, str],
    is_training: Any, dropout_keep_prob: float, prediction_fn: Callable[..., Any], spatial_squeeze: bool,
    keeps_pre_logits: bool = False,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """(logits, the outputs by name) of the last layer, or (the pooled layer, ...) without classes.

    Args:
      pool: the size of the last pool; the whole image if None.
      names: of the pool, the dropout and the convolution.
      keeps_pre_logits: whether the layer before the logits is among the outputs.
    """
    with tf.variable_scope("Logits"):
        if pool is None:
            net = tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
            end_points["global_pool"] = net
        else:
            net = slim.avg_pool2d(net, reduced_kernel(net, pool), stride=1, padding="VALID", scope=names[0])
        if not num_classes:
            return net, end_points
        net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope=names[1])
        if keeps_pre_logits:
            end_points["PreLogits"] = net
        logits = slim.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=names[2])
        if spatial_squeeze:
            logits = tf.squeeze(logits, [1, 2], name="SpatialSqueeze")
    end_points["Logits"] = logits
    end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def reduced_kernel(net: Any, size: Iterable[int]) -> list[int]:
    """A kernel of at most the image's size."""
    height, width = net.get_shape().as_list()[1:3]
    return [want if has is None else min(has, want) for has, want in zip((height, width), size, strict=True)]


def _layer(net: Any, text: str, depth: Callable[[int], int], padding: str) -> Any:
    if "/" in text:
        return tf.concat([_layer(net, each, depth, padding) for each in text.split("/")], 3)
    words = text.split()
    pool = _POOLS.get(words[0])
    name = words[1] if pool else words[0]
    sizes = re.search(r"(\d+)x(\d+)$", next((word for word in words[1:] if word.startswith("k")), name))
    assert sizes is not None, text
    kernel = [int(sizes[1]), int(sizes[2])]
    stride = next((int(word[1:]) for word in words[1:] if re.fullmatch(r"s\d", word)), 1)
    scope = next((word[1:] for word in words if word.startswith("=")), f"{pool[0] if pool else 'Conv2d'}_{name}")
    padding = next((word.upper() for word in words if word in ("valid", "same")), padding)
    taken = {"stride": stride, "padding": padding, "scope": scope}
    if pool:
        return getattr(slim, pool[1])(net, kernel, **taken)
    return slim.conv2d(net, depth(int(words[1])), kernel, **taken)
