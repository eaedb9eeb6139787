"""An encoder and a decoder over lists of steps: the decoder begins with the encoder's last state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import dtf as tf
from dtf.build import nest
from dtf.contrib.legacy_seq2seq.attention import embedding_attention_decoder
from dtf.contrib.legacy_seq2seq.decoders import embed_greatest, embedding_rnn_decoder, rnn_decoder
from dtf.contrib.rnn import EmbeddingWrapper, OutputProjectionWrapper

__all__ = [
    "basic_rnn_seq2seq", "embedding_attention_seq2seq", "embedding_rnn_seq2seq", "embedding_tied_rnn_seq2seq",
    "one2many_rnn_seq2seq", "tied_rnn_seq2seq",
]  # fmt: skip


def basic_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, dtype: Any = tf.float32, scope: Any = None
) -> tuple[list[Any], Any]:
    """(outputs, last state): a decoder that begins with the last state of an encoder of its own."""
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


def embedding_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, num_encoder_symbols: int, num_decoder_symbols: int,
    embedding_size: int, output_projection: Any = None, feed_previous: Any = False, dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`basic_rnn_seq2seq` of ids, which both sides embed.

    Args:
      encoder_inputs, decoder_inputs: lists of int32 ids [batch].
      output_projection: (weights, biases) that make logits of outputs. By default the outputs are logits.
      feed_previous: a bool, or a bool tensor: whether the decoder reads its own outputs.

    Returns:
      (outputs, the last state).
    """
    with tf.variable_scope(scope or "embedding_rnn_seq2seq") as own:
        if dtype is not None:
            own.set_dtype(dtype)
        else:
            dtype = own.dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feed: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(
                decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection, feed
            )

        return _decoded(decode, feed_previous, state)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, num_symbols: int, embedding_size: int,
    num_decoder_symbols: int | None = None, output_projection: Any = None, feed_previous: Any = False,
    dtype: Any = None, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`tied_rnn_seq2seq` of ids, with one embedding for both sides. See `embedding_rnn_seq2seq`."""
    with tf.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as own:
        dtype = own.dtype
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size], dtype=dtype)
        encoder = [tf.nn.embedding_lookup(embedding, each) for each in encoder_inputs]
        decoder = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(feed: bool) -> tuple[list[Any], Any]:
            loop = embed_greatest(embedding, output_projection) if feed else None
            return tied_rnn_seq2seq(encoder, decoder, cell, loop, dtype)

        state = cell.zero_state(tf.shape(encoder[0])[0], dtype)
        return _decoded(decode, feed_previous, state)


def embedding_attention_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, num_encoder_symbols: int, num_decoder_symbols: int,
    embedding_size: int, num_heads: int = 1, output_projection: Any = None, feed_previous: Any = False,
    dtype: Any = None, scope: Any = None, initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`embedding_rnn_seq2seq` whose decoder attends to the encoder's outputs. See `attention_decoder`."""
    with tf.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as own:
        dtype = own.dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        states = tf.concat([tf.reshape(each, [-1, 1, cell.output_size]) for each in outputs], 1)
        size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            size = num_decoder_symbols

        def decode(feed: bool) -> tuple[list[Any], Any]:
            return embedding_attention_decoder(
                decoder_inputs, state, states, cell, num_decoder_symbols, embedding_size, num_heads, size,
                output_projection, feed, initial_state_attention=initial_state_attention,
            )  # fmt: skip

        return _decoded(decode, feed_previous, state)


def one2many_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs_dict: Mapping[str, Any], enc_cell: Any, dec_cells_dict: Mapping[str, Any],
    num_encoder_symbols: int, num_decoder_symbols_dict: Mapping[str, int], embedding_size: int,
    feed_previous: Any = False, dtype: Any = None, scope: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """One encoder and several decoders by name: ({name: outputs}, {name: last state})."""
    outputs, states = {}, {}
    with tf.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as own:
        dtype = own.dtype
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with tf.variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(
                    feed: bool, inputs: Any = inputs, cell: Any = cell, symbols: int = symbols
                ) -> tuple[list[Any], Any]:
                    return embedding_rnn_decoder(inputs, state, cell, symbols, embedding_size, feed_previous=feed)

                outputs[name], states[name] = _decoded(decode, feed_previous, state)
    return outputs, states


def _decoded(decode: Callable[[bool], tuple[list[Any], Any]], feed_previous: Any, like: Any) -> tuple[list[Any], Any]:
    """What a decoder gives; a tensor chooses between both ways when the graph runs."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)

    def branch(feed: bool) -> list[Any]:
        with tf.variable_scope(tf.get_variable_scope(), reuse=None if feed else True):
            outputs, state = decode(feed)
        counts.append(len(outputs))
        return [*outputs, *nest.flatten(state)]

    counts: list[int] = []
    flat = tf.cond(feed_previous, lambda: branch(True), lambda: branch(False))
    return flat[: counts[0]], nest.pack_sequence_as(like, flat[counts[0] :])
