"""tf.contrib.sparsemax: a softmax that can be zero.

Source: Martins and Astudillo (2016), https://arxiv.org/abs/1602.02068
"""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = ["sparsemax", "sparsemax_loss"]


def sparsemax(logits: Any, name: str | None = None) -> Any:
    """The point of the simplex nearest to each row of logits [batch, classes]."""
    with tf.name_scope(name, "sparsemax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        classes = tf.shape(logits)[1]
        z = logits - tf.reduce_mean(logits, axis=1, keepdims=True)
        descending, _ = tf.nn.top_k(z, k=classes)
        sums = tf.cumsum(descending, axis=-1)
        counts = tf.cast(tf.range(1, classes + 1), logits.dtype)
        support = tf.reduce_sum(tf.cast(1 + counts * descending > sums, tf.int32), axis=1)
        last = tf.stack([tf.range(tf.shape(logits)[0]), tf.maximum(support, 1) - 1], axis=1)
        threshold = (tf.gather_nd(sums, last) - 1) / tf.cast(support, logits.dtype)
        result = tf.maximum(tf.zeros((), logits.dtype), z - threshold[:, tf.newaxis])
        result.set_shape(logits.shape)
        return result


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Any:
    """The loss [batch] whose gradient is sparsemax - labels.

    Args:
      logits: [batch, classes].
      sparsemax: the result of `sparsemax(logits)`.
      labels: [batch, classes], with rows that add up to 1.
    """
    with tf.name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        logits = tf.convert_to_tensor(logits, name="logits")
        shifted = logits - tf.reduce_mean(logits, axis=1, keepdims=True)
        support = tf.cast(sparsemax > 0, sparsemax.dtype)
        inner = support * sparsemax * (shifted - 0.5 * sparsemax)
        return tf.reduce_sum(inner + labels * (0.5 * labels - shifted), axis=1)
