"""A cell unrolled over a list of inputs, one tensor [batch, size] or [batch] of ids per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = ["embed_greatest", "embedding_rnn_decoder", "rnn_decoder"]


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


def embed_greatest(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Any, int], Any]:
    """A loop function: the embedded id of the last output's greatest value.

    Args:
      embedding: [symbols, size].
      output_projection: (weights, biases) that make logits of outputs, or None.
      update_embedding: whether gradients reach the embedding through these inputs.
    """

    def loop(before: Any, _: int) -> Any:
        if output_projection is not None:
            before = tf.nn.xw_plus_b(before, output_projection[0], output_projection[1])
        found = tf.nn.embedding_lookup(embedding, tf.argmax(before, 1))
        return found if update_embedding else tf.stop_gradient(found)

    return loop


def embedding_rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, num_symbols: int, embedding_size: int,
    output_projection: Any = None, feed_previous: bool = False, update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`rnn_decoder` of ids, which it embeds.

    Args:
      decoder_inputs: a list of int32 ids [batch].
      output_projection: (weights [output, symbols], biases [symbols]) for the ids that are fed back.
      feed_previous: whether each input after the first is the greatest of the last output.

    Raises:
      ValueError: the projection has other shapes.
    """
    with tf.variable_scope(scope or "embedding_rnn_decoder") as own:
        if output_projection is not None:
            dtype = getattr(own, "dtype", None) or tf.float32
            tf.convert_to_tensor(output_projection[0], dtype=dtype).get_shape().assert_is_compatible_with(
                [None, num_symbols]
            )
            tf.convert_to_tensor(output_projection[1], dtype=dtype).get_shape().assert_is_compatible_with([num_symbols])
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = embed_greatest(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop)
