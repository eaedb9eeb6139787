"""Losses over lists of steps, and models of several lengths. Owns no variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = ["model_with_buckets", "sequence_loss", "sequence_loss_by_example"]


def sequence_loss_by_example(
    logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The cross entropy of each sequence [batch], over lists of logits [batch, classes], targets and weights [batch].

    Raises:
      ValueError: the lists have different lengths.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with tf.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                flat = tf.reshape(target, [-1])
                entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=flat, logits=logit)
            else:
                entropy = softmax_loss_function(labels=target, logits=logit)
            losses.append(entropy * weight)
        total = tf.add_n(losses)
        return total / (tf.add_n(weights) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
    average_across_batch: bool = True, softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The sum of `sequence_loss_by_example`, by default divided by the batch size."""
    with tf.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        total = tf.reduce_sum(
            sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        )
        return total / tf.cast(tf.shape(targets[0])[0], total.dtype) if average_across_batch else total


def model_with_buckets(
    encoder_inputs: Any, decoder_inputs: Any, targets: Any, weights: Any, buckets: Any,
    seq2seq: Callable[[Any, Any], Any], softmax_loss_function: Any = None, per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """(outputs, losses) of a model for each bucket (lengths of encoder and decoder), with shared variables."""
    outputs, losses = [], []
    with tf.name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]):
        for index, (encoder, decoder) in enumerate(buckets):
            with tf.variable_scope(tf.get_variable_scope(), reuse=True if index > 0 else None):
                found, _ = seq2seq(encoder_inputs[:encoder], decoder_inputs[:decoder])
                outputs.append(found)
                loss = sequence_loss_by_example if per_example_loss else sequence_loss
                losses.append(
                    loss(found, targets[:decoder], weights[:decoder], softmax_loss_function=softmax_loss_function)
                )
    return outputs, losses
