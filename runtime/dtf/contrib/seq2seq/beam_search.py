"""Beam search: the most probable sequences, several for each example.

    decoder = seq2seq.BeamSearchDecoder(cell, table, start_tokens, end_token, state, beam_width, output_layer)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=50)
    outputs.predicted_ids    # [batch, time, beam_width], the best first

The cell's state is tiled by `tile_batch` before it comes here. Of two continuations with the same score, the one of
the lower beam and id is taken.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq/BeamSearchDecoder
"""

from __future__ import annotations

import collections
from typing import Any

import dtf as tf
from dtf.build import nest
from dtf.contrib.seq2seq.decoders import Decoder

__all__ = [
    "BeamSearchDecoder", "BeamSearchDecoderOutput", "BeamSearchDecoderState", "FinalBeamSearchDecoderOutput",
    "gather_tree", "tile_batch",
]  # fmt: skip

BeamSearchDecoderState = collections.namedtuple(
    "BeamSearchDecoderState", ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs")
)
BeamSearchDecoderOutput = collections.namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
FinalBeamSearchDecoderOutput = collections.namedtuple(
    "FinalBeamSearchDecoderOutput", ("predicted_ids", "beam_search_decoder_output")
)


class BeamSearchDecoder(Decoder):
    """Decodes with several beams.

    Args:
      cell: its state was tiled by `tile_batch`.
      embedding: a table, or a function of ids.
      start_tokens: int32 [batch].
      end_token: int32 scalar.
      initial_state: [batch * beam_width, ...].
      beam_width: how many sequences are kept for an example.
      output_layer: a layer over the cell's outputs.
      length_penalty_weight: 0 for none; (5 + length) ** weight / 6 ** weight divides the scores.
      coverage_penalty_weight: 0 only: other weights are not supported.
      reorder_tensor_arrays: whether the alignment history of the final state follows the beams.

    Raises:
      ValueError: the tokens have other shapes.
    """

    def __init__(
        self, cell: Any, embedding: Any, start_tokens: Any, end_token: Any, initial_state: Any, beam_width: int,
        output_layer: Any = None, length_penalty_weight: float = 0.0, coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:  # fmt: skip
        if coverage_penalty_weight:
            raise NotImplementedError("coverage_penalty_weight is not supported; leave it 0.0")
        self._cell, self._layer, self._beams = cell, output_layer, beam_width
        self._embed = embedding if callable(embedding) else lambda ids: tf.nn.embedding_lookup(embedding, ids)
        start = tf.convert_to_tensor(start_tokens, tf.int32, name="start_tokens")
        if start.get_shape().ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._end = tf.convert_to_tensor(end_token, tf.int32, name="end_token")
        if self._end.get_shape().ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._batch = start.get_shape()[0].value or tf.size(start)
        self._penalty, self._reorder = length_penalty_weight, reorder_tensor_arrays
        self._start = tf.tile(tf.expand_dims(start, 1), [1, beam_width])
        self._state = nest.map_structure(self._split, initial_state)

    @property
    def batch_size(self) -> Any:
        """How many examples there are."""
        return self._batch

    @property
    def tracks_own_finished(self) -> bool:
        """True: a beam that ended may be replaced by a continuing one."""
        return True

    @property
    def output_size(self) -> Any:
        """The number of beams, three times."""
        shape = tf.TensorShape([self._beams])
        return BeamSearchDecoderOutput(shape, shape, shape)

    @property
    def output_dtype(self) -> Any:
        """The dtypes of scores and ids."""
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    @property
    def _dtype(self) -> Any:
        return next(each.dtype for each in nest.flatten(self._state) if each.dtype.is_floating)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """(finished [batch, beams], first inputs, first state): only the first beam counts at first."""
        finished = tf.one_hot(
            tf.zeros(tf.stack([self._batch]), tf.int32), self._beams, on_value=False, off_value=True, dtype=tf.bool
        )
        first = tf.one_hot(
            tf.zeros(tf.stack([self._batch]), tf.int32), self._beams, on_value=0.0, off_value=float("-inf"),
            dtype=self._dtype,
        )  # fmt: skip
        lengths = tf.zeros(tf.stack([self._batch, self._beams]), tf.int64)
        lengths.set_shape([None, self._beams])
        state = BeamSearchDecoderState(self._state, first, finished, lengths, ())
        return finished, self._embed(self._start), state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """(outputs, next state, next inputs, finished)."""
        with tf.name_scope(name, "BeamSearchDecoderStep", [time, inputs]):
            output, cell_state = self._cell(self._merged(inputs), nest.map_structure(self._merge, state.cell_state))
            if self._layer is not None:
                output = self._layer(output)
            logits = tf.reshape(output, tf.stack([self._batch, self._beams, -1]))
            logits.set_shape([None, self._beams, output.get_shape()[-1].value])
            found, log_probs, finished, lengths = self._best(logits, state)
            parents = found.parent_ids
            after = nest.map_structure(
                lambda old, new: self._of_parents(self._split(new, like=old), parents), state.cell_state, cell_state
            )
            everything_ended = tf.reduce_all(finished)
            ids = found.predicted_ids
            inputs = tf.cond(everything_ended, lambda: self._embed(self._start), lambda: self._embed(ids))
            return found, BeamSearchDecoderState(after, log_probs, finished, lengths, ()), inputs, finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(FinalBeamSearchDecoderOutput, state): ids along the beams, [time, batch, beams]."""
        longest = tf.to_int32(tf.reduce_max(final_state.lengths, 1))
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        if self._reorder:
            cell_state = nest.map_structure(
                lambda each: self._history(each, outputs.parent_ids, final_state.lengths)
                if isinstance(each, tf.TensorArray) else each,
                final_state.cell_state,
            )  # fmt: skip
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _best(self, logits: Any, state: Any) -> tuple[Any, Any, Any, Any]:
        """(output, log-probabilities, finished, lengths) of the best continuations."""
        size = logits.get_shape()[-1].value or tf.shape(logits)[-1]
        only_end = tf.one_hot(self._end, size, on_value=0.0, off_value=logits.dtype.min, dtype=logits.dtype)
        ended = tf.cast(tf.expand_dims(state.finished, 2), logits.dtype)
        step = (1 - ended) * tf.nn.log_softmax(logits) + ended * only_end
        totals = tf.expand_dims(state.log_probs, 2) + step
        is_word = tf.one_hot(self._end, size, on_value=0, off_value=1, dtype=tf.int64)
        goes_on = tf.to_int64(tf.logical_not(state.finished))
        lengths = tf.expand_dims(state.lengths, 2) + tf.expand_dims(goes_on, 2) * is_word
        scores = self._scores(totals, lengths)
        flat = tf.reshape(scores, tf.stack([self._batch, -1]))
        best, places = tf.nn.top_k(flat, self._beams)
        best.set_shape([None, self._beams])
        ids, parents = tf.floormod(places, size), tf.floordiv(places, size)
        log_probs = tf.batch_gather(tf.reshape(totals, tf.stack([self._batch, -1])), places)
        was_finished = tf.batch_gather(state.finished, parents)
        finished = tf.logical_or(was_finished, tf.equal(ids, self._end))
        added = tf.to_int64(tf.logical_not(was_finished))
        after = tf.batch_gather(state.lengths, parents) + added
        for each in (ids, parents, log_probs, finished, after):
            each.set_shape([None, self._beams])
        return BeamSearchDecoderOutput(best, ids, parents), log_probs, finished, after

    def _scores(self, log_probs: Any, lengths: Any) -> Any:
        if not self._penalty:
            return log_probs
        penalty = tf.div((5.0 + tf.to_float(lengths)) ** self._penalty, 6.0**self._penalty)
        return log_probs / tf.cast(penalty, log_probs.dtype)

    def _split(self, tensor: Any, like: Any = None) -> Any:
        """[batch * beams, ...] -> [batch, beams, ...]; scalars and arrays are unchanged."""
        if isinstance(tensor, tf.TensorArray):
            return tensor
        tensor = tf.convert_to_tensor(tensor)
        rank = tensor.get_shape().ndims
        if rank is None:
            raise ValueError(f"Expected tensor ({tensor}) to have known rank, but ndims == None.")
        if rank == 0:
            return tensor
        rest = tensor.get_shape().as_list()[1:]
        result = tf.reshape(tensor, tf.concat([[self._batch, self._beams], tf.shape(tensor)[1:]], 0))
        result.set_shape([self._batch if isinstance(self._batch, int) else None, self._beams, *rest])
        return result

    def _merge(self, tensor: Any) -> Any:
        if isinstance(tensor, tf.TensorArray) or tensor.get_shape().ndims == 0:
            return tensor
        return self._merged(tensor)

    def _merged(self, tensor: Any) -> Any:
        rest = tensor.get_shape().as_list()[2:]
        result = tf.reshape(tensor, tf.concat([[self._batch * self._beams], tf.shape(tensor)[2:]], 0))
        result.set_shape([self._batch * self._beams if isinstance(self._batch, int) else None, *rest])
        return result

    def _of_parents(self, tensor: Any, parents: Any) -> Any:
        """The values of the parents of the new beams."""
        if isinstance(tensor, tf.TensorArray) or tensor.get_shape().ndims < 2:
            return tensor
        shape = tensor.get_shape()
        result = tf.batch_gather(tensor, parents)
        result.set_shape(shape)
        return result

    def _history(self, array: Any, parents: Any, lengths: Any) -> Any:
        """The alignments of an array of all steps, [batch * beams, time], along the beams."""
        stacked = array.stack()
        steps = tf.shape(parents)[0]
        shape = tf.concat([[steps, self._batch, self._beams], tf.shape(stacked)[2:]], 0)
        values = tf.reshape(stacked[:steps], shape)
        own = tf.tile(tf.reshape(tf.range(self._beams), [1, 1, -1]), tf.stack([steps, self._batch, 1]))
        longest = tf.to_int32(tf.reduce_max(lengths, 1))
        beams = gather_tree(own, parents, longest, self._beams + 1)
        mask = tf.transpose(tf.sequence_mask(lengths, steps), [2, 0, 1])
        beams = tf.where(mask, beams, own)
        found = tf.batch_gather(values, beams)
        merged = tf.concat([[steps, self._batch * self._beams], tf.shape(stacked)[2:]], 0)
        result = tf.TensorArray(array.dtype, tf.shape(stacked)[0], dynamic_size=False)
        return result.unstack(tf.reshape(found, merged))


def gather_tree(step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: Any = None) -> Any:
    """The ids along the beams, from each step's ids and parent beams.

    Args:
      step_ids, parent_ids: int32 [time, batch, beams].
      max_sequence_lengths: int32 [batch].
      end_token: the id after the end of a sequence.

    Returns:
      int32 [time, batch, beams].
    """
    with tf.name_scope(name, "gather_tree", [step_ids, parent_ids]):
        step_ids, parent_ids = tf.convert_to_tensor(step_ids), tf.convert_to_tensor(parent_ids)
        steps, batch, beams = tf.unstack(tf.shape(step_ids))
        end = tf.cast(end_token, tf.int32)
        own = tf.tile(tf.expand_dims(tf.range(beams), 0), tf.stack([batch, 1]))
        last = tf.minimum(tf.cast(max_sequence_lengths, tf.int32), steps) - 1

        def before(kept: Any, step: Any) -> Any:
            beam, _ = kept
            inside = tf.tile(tf.expand_dims(step <= last, 1), tf.stack([1, beams]))
            ids = tf.where(inside, tf.batch_gather(step_ids[step], beam), tf.fill(tf.stack([batch, beams]), end))
            parents = tf.where(inside, tf.batch_gather(parent_ids[step], beam), beam)
            return parents, ids

        backwards = tf.range(steps - 1, -1, -1)
        _, found = tf.scan(before, backwards, (own, tf.zeros_like(own)))
        ids = tf.reverse(found, [0])
        has_ended = tf.cumsum(tf.to_int32(tf.equal(ids, end)), 0, exclusive=True) > 0
        result = tf.where(has_ended, tf.fill(tf.shape(ids), end), ids)
        result.set_shape(step_ids.get_shape())
        return result


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each example `multiplier` times, next to each other."""

    def tiled(tensor: Any) -> Any:
        tensor = tf.convert_to_tensor(tensor)
        if tensor.get_shape().ndims is None:
            raise ValueError("t must have statically known rank")
        shape = tensor.get_shape().as_list()
        many = tf.tile(tf.expand_dims(tensor, 1), [1, multiplier, *[1] * (len(shape) - 1)])
        result = tf.reshape(many, tf.concat([[-1], tf.shape(tensor)[1:]], 0))
        result.set_shape([None if shape[0] is None else shape[0] * multiplier, *shape[1:]])
        return result

    with tf.name_scope(name, "tile_batch"):
        return nest.map_structure(tiled, t)
