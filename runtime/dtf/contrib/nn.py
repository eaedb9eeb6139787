"""tf.contrib.nn: variants of functions of tf.nn.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/nn
"""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = [
    "alpha_dropout", "conv1d_transpose", "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits", "nth_element", "sampled_sparse_softmax_loss",
    "scaled_softplus",
]  # fmt: skip

conv1d_transpose = tf.nn.conv1d_transpose
_SELU_FLOOR = -1.7580993408473766
"""The least value of SELU: -scale * alpha."""


def alpha_dropout(x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Dropout that keeps mean and variance of the outputs of `tf.nn.selu`.

    Args:
      keep_prob: the probability of each element to stay; 1 keeps all.

    Raises:
      ValueError: a number that is not in (0, 1].

    Source: Klambauer et al. (2017), https://arxiv.org/abs/1706.02515
    """
    with tf.name_scope(name, "alpha_dropout", [x]):
        x = tf.convert_to_tensor(x, name="x")
        if isinstance(keep_prob, int | float):
            if not 0.0 < keep_prob <= 1.0:
                raise ValueError(
                    f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {float(keep_prob):g}"
                )
            if keep_prob == 1.0:
                return x
        keep = tf.convert_to_tensor(keep_prob, dtype=x.dtype, name="keep_prob")
        uniform = tf.random_uniform(tf.shape(x) if noise_shape is None else noise_shape, seed=seed, dtype=x.dtype)
        stays = tf.floor(keep + uniform)
        mixed = x * stays + _SELU_FLOOR * (1 - stays)
        scale = tf.pow(keep + keep * (1 - keep) * _SELU_FLOOR**2, -0.5)
        shift = -scale * _SELU_FLOOR * (1 - keep)
        result = scale * mixed + shift
        result.set_shape(x.get_shape())
        return result


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits` with its arguments of TensorFlow 0."""
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with its arguments of TensorFlow 0."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: str | None = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with its arguments of TensorFlow 0."""
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Any:  # noqa: A002
    """The n-th smallest element of each row, or with `reverse` the n-th largest. Counts from 0."""
    return tf.gather(tf.sort(input, direction="DESCENDING" if reverse else "ASCENDING"), n, axis=-1, name=name)


def sampled_sparse_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    sampled_values: Any = None, remove_accidental_hits: bool = True, partition_strategy: str = "mod",
    name: str = "sampled_sparse_softmax_loss",
) -> Any:  # fmt: skip
    """`tf.nn.sampled_softmax_loss` with one label per example: labels are [batch, 1] or [batch]."""
    rows = tf.reshape(labels, [-1, 1])
    return tf.nn.sampled_softmax_loss(
        weights, biases, rows, inputs, num_sampled, num_classes, 1, sampled_values, remove_accidental_hits,
        partition_strategy, name,
    )  # fmt: skip


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Any:
    """alpha * softplus(x / alpha), at most `clip`: close to relu for a small alpha."""
    with tf.name_scope(name, "scaled_softplus", [x, alpha]):
        x = tf.convert_to_tensor(x, name="x")
        alpha = tf.convert_to_tensor(alpha, dtype=x.dtype, name="alpha")
        result = alpha * tf.nn.softplus(x / alpha)
        return result if clip is None else tf.minimum(result, tf.convert_to_tensor(clip, dtype=x.dtype))
