"""tf.contrib.legacy_seq2seq: losses and decoders over lists of steps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/legacy_seq2seq
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = [
    "basic_rnn_seq2seq", "embedding_rnn_decoder", "model_with_buckets", "rnn_decoder", "sequence_loss",
    "sequence_loss_by_example", "tied_rnn_seq2seq",
]  # fmt: skip


def rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """(the outputs of the cell, its last state) over a list of inputs.

    Args:
      loop_function: makes the next input of (the output, the step), instead of the list.
    """
    with tf.variable_scope(scope or "rnn_decoder"):
        state, outputs, before = initial_state, [], None
        for index, inputs in enumerate(decoder_inputs):
            if loop_function is not None and before is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(before, index)
            if index > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
            if loop_function is not None:
                before = output
        return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, dtype: Any = tf.float32, scope: Any = None
) -> tuple[list[Any], Any]:
    """(outputs, last state): a decoder that begins with the last state of an encoder of its own."""
    import copy

    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf.nn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, loop_function: Any = None, dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`basic_rnn_seq2seq`, whose encoder and decoder share their variables."""
    with tf.variable_scope("combined_tied_rnn_seq2seq"):  # noqa: SIM117
        with tf.variable_scope(scope or "tied_rnn_seq2seq"):
            _, state = tf.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=tf.get_variable_scope())
            tf.get_variable_scope().reuse_variables()
            outputs: list[Any] = []
            before = None
            for index, inputs in enumerate(decoder_inputs):
                if loop_function is not None and before is not None:
                    inputs = loop_function(before, index)
                output, state = cell(inputs, state)
                outputs.append(output)
                before = output
            return outputs, state


def embedding_rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, num_symbols: int, embedding_size: int,
    output_projection: Any = None, feed_previous: bool = False, update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`rnn_decoder` of ids, which it embeds; with `feed_previous` each is the last output's greatest."""
    with tf.variable_scope(scope or "embedding_rnn_decoder"):
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])

        def loop(before: Any, _: int) -> Any:
            if output_projection is not None:
                before = tf.nn.xw_plus_b(before, *output_projection)
            found = tf.nn.embedding_lookup(embedding, tf.argmax(before, 1))
            return found if update_embedding_for_previous else tf.stop_gradient(found)

        inputs = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop if feed_previous else None)


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
