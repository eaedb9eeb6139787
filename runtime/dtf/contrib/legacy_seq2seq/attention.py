"""Decoders that attend to a sequence of states, with additive attention over several heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.build import nest
from dtf.contrib.legacy_seq2seq.decoders import embed_greatest

__all__ = ["attention_decoder", "embedding_attention_decoder"]


def attention_decoder(
    decoder_inputs: Any, initial_state: Any, attention_states: Any, cell: Any, output_size: int | None = None,
    num_heads: int = 1, loop_function: Callable[[Any, int], Any] | None = None, dtype: Any = None, scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """(outputs, last state) of a cell that sees its input and a weighted mean of the attention states.

    Args:
      decoder_inputs: a list of [batch, size].
      attention_states: [batch, length, size], with known length and size.
      output_size: of each output; the cell's by default.
      num_heads: how many means are read.
      loop_function: makes the next input of (the last output, the step), instead of the list.
      initial_state_attention: whether the first mean is read with the initial state; zeros otherwise.

    Raises:
      ValueError: there is no input, less than one head, or the states' shape is unknown.

    Source: Bahdanau et al. (2014), https://arxiv.org/abs/1409.0473; Vinyals et al. (2014)
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    length, size = attention_states.get_shape().as_list()[1:]
    if size is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.get_shape()}")
    output_size = output_size or cell.output_size
    with tf.variable_scope(scope or "attention_decoder", dtype=dtype) as own:
        dtype = own.dtype
        batch = tf.shape(decoder_inputs[0])[0]
        length = tf.shape(attention_states)[1] if length is None else length
        hidden = tf.reshape(attention_states, [-1, length, 1, size])
        features, vectors = [], []
        for head in range(num_heads):
            kernel = tf.get_variable(f"AttnW_{head}", [1, 1, size, size], dtype=dtype)
            features.append(tf.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
            vectors.append(tf.get_variable(f"AttnV_{head}", [size], dtype=dtype))

        def attend(state: Any) -> list[Any]:
            parts = nest.flatten(state)
            query = tf.concat(parts, 1) if len(parts) > 1 else parts[0]
            means = []
            for head in range(num_heads):
                with tf.variable_scope(f"Attention_{head}"):
                    moved = tf.reshape(_linear([query], size), [-1, 1, 1, size])
                    scores = tf.reduce_sum(vectors[head] * tf.tanh(features[head] + moved), [2, 3])
                    weights = tf.reshape(tf.nn.softmax(tf.cast(scores, tf.float32)), [-1, length, 1, 1])
                    mean = tf.reduce_sum(tf.cast(weights, dtype) * hidden, [1, 2])
                    means.append(tf.reshape(mean, [-1, size]))
            return means

        state, outputs, before = initial_state, [], None
        means = [tf.zeros(tf.stack([batch, size]), dtype=dtype) for _ in range(num_heads)]
        for each in means:
            each.set_shape([None, size])
        if initial_state_attention:
            means = attend(initial_state)
        for index, inputs in enumerate(decoder_inputs):
            if index > 0:
                tf.get_variable_scope().reuse_variables()
            if loop_function is not None and before is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(before, index)
            width = inputs.get_shape().with_rank(2)[1].value
            if width is None:
                raise ValueError(f"Could not infer input size from input: {inputs.name}")
            output, state = cell(_linear([inputs, *means], width), state)
            if index == 0 and initial_state_attention:
                with tf.variable_scope(tf.get_variable_scope(), reuse=True):
                    means = attend(state)
            else:
                means = attend(state)
            with tf.variable_scope("AttnOutputProjection"):
                output = _linear([output, *means], output_size)
            if loop_function is not None:
                before = output
            outputs.append(output)
        return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Any, initial_state: Any, attention_states: Any, cell: Any, num_symbols: int, embedding_size: int,
    num_heads: int = 1, output_size: int | None = None, output_projection: Any = None, feed_previous: bool = False,
    update_embedding_for_previous: bool = True, dtype: Any = None, scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`attention_decoder` of ids, which it embeds. See `embedding_rnn_decoder`."""
    output_size = output_size or cell.output_size
    if output_projection is not None:
        tf.convert_to_tensor(output_projection[1]).get_shape().assert_is_compatible_with([num_symbols])
    with tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = embed_greatest(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        return attention_decoder(
            inputs, initial_state, attention_states, cell, output_size, num_heads, loop,
            initial_state_attention=initial_state_attention,
        )  # fmt: skip


def _linear(parts: list[Any], size: int) -> Any:
    """A product with variables `kernel` and `bias` of the current scope, of all parts beside each other."""
    inputs = parts[0] if len(parts) == 1 else tf.concat(parts, 1)
    width = inputs.get_shape().as_list()[1]
    kernel = tf.get_variable("kernel", [width, size], dtype=inputs.dtype)
    bias = tf.get_variable("bias", [size], dtype=inputs.dtype, initializer=tf.zeros_initializer())
    return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
