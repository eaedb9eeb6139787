"""tf.contrib.losses.metric_learning: losses of embeddings, small for those of one class.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/losses/metric_learning
"""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = ["contrastive_loss", "npairs_loss", "triplet_semihard_loss"]


def contrastive_loss(labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0) -> Any:
    """The mean of d^2 for pairs of one class (label 1), and of max(margin - d, 0)^2 for others (label 0)."""
    squared = tf.reduce_sum(tf.square(embeddings_anchor - embeddings_positive), 1)
    distances = tf.sqrt(squared)
    same = tf.to_float(labels)
    apart = tf.square(tf.maximum(margin - distances, 0.0))
    return tf.reduce_mean(same * tf.square(distances) + (1.0 - same) * apart, name="contrastive_loss")


def npairs_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Any:  # fmt: skip
    """The softmax cross entropy of the products of anchors and positives, and a penalty of their lengths."""
    del print_losses
    lengths = tf.reduce_mean(tf.reduce_sum(tf.square(embeddings_anchor), 1))
    lengths += tf.reduce_mean(tf.reduce_sum(tf.square(embeddings_positive), 1))
    penalty = tf.multiply(0.25 * reg_lambda, lengths, name="l2loss")
    products = tf.matmul(embeddings_anchor, embeddings_positive, transpose_b=True)
    column = tf.reshape(labels, [-1, 1])
    same = tf.to_float(tf.equal(column, tf.transpose(column)))
    same /= tf.reduce_sum(same, 1, keepdims=True)
    entropy = tf.nn.softmax_cross_entropy_with_logits(logits=products, labels=same)
    return penalty + tf.reduce_mean(entropy, name="xentropy")


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Any:
    """The triplet loss with the nearest negative farther than the positive, or else the farthest negative.

    Args:
      labels: int [batch].
      embeddings: [batch, size], usually of length 1.
    """
    distances = _squared_distances(embeddings)
    batch = tf.shape(embeddings)[0]
    column = tf.reshape(labels, [-1, 1])
    same = tf.equal(column, tf.transpose(column))
    # [positive of each anchor, anchor, negative]
    negatives = tf.tile(tf.expand_dims(tf.logical_not(same), 0), [batch, 1, 1])
    to_negative = tf.tile(tf.expand_dims(distances, 0), [batch, 1, 1])
    to_positive = tf.expand_dims(tf.transpose(distances), 2)
    usable = tf.logical_and(negatives, to_negative > to_positive)
    largest = tf.reduce_max(distances) + 1.0
    outside = tf.reduce_min(tf.where(usable, to_negative, tf.fill(tf.shape(usable), largest)), 2)
    smallest = tf.reduce_min(distances, 1, keepdims=True)
    other = tf.to_float(tf.logical_not(same))
    inside = tf.reduce_max((distances - smallest) * other, 1, keepdims=True) + smallest
    chosen = tf.where(tf.reduce_any(usable, 2), outside, tf.tile(tf.transpose(inside), [batch, 1]))
    positives = tf.to_float(same) - tf.eye(batch)
    losses = tf.maximum((tf.transpose(distances) - chosen + margin) * positives, 0.0)
    return tf.truediv(tf.reduce_sum(losses), tf.reduce_sum(positives), name="triplet_semihard_loss")


def _squared_distances(embeddings: Any) -> Any:
    squares = tf.reduce_sum(tf.square(embeddings), 1, keepdims=True)
    distances = squares + tf.transpose(squares) - 2.0 * tf.matmul(embeddings, embeddings, transpose_b=True)
    return tf.maximum(distances, 0.0) * (1.0 - tf.eye(tf.shape(embeddings)[0]))
