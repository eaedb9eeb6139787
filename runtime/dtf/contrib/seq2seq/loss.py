"""The loss of sequences.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq/sequence_loss
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = ["sequence_loss"]


def sequence_loss(
    logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
    average_across_batch: bool = True, softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The weighted cross entropy of logits [batch, time, classes] with targets [batch, time].

    Args:
      weights: [batch, time].
      average_across_timesteps, average_across_batch: which dimensions are averaged; the others are kept.

    Raises:
      ValueError: the ranks are others.
    """
    for argument, tensor, rank in (("Logits", logits, 3), ("Targets", targets, 2), ("Weights", weights, 2)):
        if tf.convert_to_tensor(tensor).get_shape().ndims not in (rank, None):
            raise ValueError(f"{argument} must be a {rank}-D tensor")
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        logits, weights = tf.convert_to_tensor(logits), tf.convert_to_tensor(weights)
        classes = tf.shape(logits)[2]
        flat = tf.reshape(logits, tf.stack([-1, classes]))
        flat.set_shape([None, logits.get_shape()[2].value])
        wanted = tf.reshape(targets, [-1])
        if softmax_loss_function is None:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=flat)
        else:
            losses = softmax_loss_function(labels=wanted, logits=flat)
        losses = tf.reshape(losses * tf.reshape(weights, [-1]), tf.shape(logits)[:2])
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(losses) / (tf.reduce_sum(weights) + 1e-12)
        if average_across_timesteps or average_across_batch:
            axis = 1 if average_across_timesteps else 0
            return tf.reduce_sum(losses, axis) / (tf.reduce_sum(weights, axis) + 1e-12)
        return losses
