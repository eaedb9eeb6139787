"""tf.contrib.crf: linear-chain conditional random fields.

    log_likelihood, transitions = tf.contrib.crf.crf_log_likelihood(scores, tags, lengths)
    best, score = tf.contrib.crf.crf_decode(scores, transitions, lengths)

Scores of tags ("potentials") are [batch, time, tags]; transitions [tags, tags], from row to column.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/crf
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dtf as tf
from dtf.nn.rnn_cell import RNNCell

__all__ = [
    "CrfDecodeBackwardRnnCell", "CrfDecodeForwardRnnCell", "CrfForwardRnnCell", "crf_binary_score", "crf_decode",
    "crf_log_likelihood", "crf_log_norm", "crf_multitag_sequence_score", "crf_sequence_score", "crf_unary_score",
    "viterbi_decode",
]  # fmt: skip


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """(log-likelihood of the tags [batch], the transitions).

    Args:
      inputs: the scores of tags.
      tag_indices: int [batch, time].
      sequence_lengths: int [batch].
      transition_params: the variable "transitions" by default.
    """
    tags = inputs.get_shape()[2].value
    if transition_params is None:
        transition_params = tf.get_variable("transitions", [tags, tags])
    lengths = tf.cast(sequence_lengths, tf.int32)
    score = crf_sequence_score(inputs, tag_indices, lengths, transition_params)
    return score - crf_log_norm(inputs, lengths, transition_params), transition_params


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The score [batch] of the tags that are given, not normalised; 0 for an empty sequence."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The score [batch] of all sequences whose tags are in bool [batch, time, tags], together."""
    allowed = tf.where(tag_bitmap, inputs, tf.fill(tf.shape(inputs), float("-inf")))
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithm [batch] of the sum over all sequences of tags; 0 for an empty sequence."""
    lengths = tf.cast(sequence_lengths, tf.int32)
    first = inputs[:, 0]
    cell = CrfForwardRnnCell(transition_params)
    _, alphas = tf.nn.dynamic_rnn(cell, inputs[:, 1:], tf.maximum(0, lengths - 1), first, dtype=tf.float32)
    norm = tf.reduce_logsumexp(alphas, [1])
    return tf.where(lengths <= 0, tf.zeros_like(norm), norm)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum [batch] of the scores of tags."""
    tags = tf.one_hot(tag_indices, tf.shape(inputs)[2], dtype=inputs.dtype)
    return tf.reduce_sum(tf.reduce_sum(inputs * tags, 2) * _mask(tag_indices, sequence_lengths), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum [batch] of the scores of transitions."""
    tag_indices, lengths = tf.cast(tag_indices, tf.int32), tf.cast(sequence_lengths, tf.int32)
    tags = tf.shape(transition_params)[0]
    pairs = tag_indices[:, :-1] * tags + tag_indices[:, 1:]
    scores = tf.gather(tf.reshape(transition_params, [-1]), pairs)
    return tf.reduce_sum(scores * _mask(pairs, lengths - 1), 1)


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """(the best tags, int32 [batch, time]; their score [batch])."""
    tags = potentials.get_shape()[2].value
    transition_params = tf.convert_to_tensor(transition_params)
    lengths = tf.maximum(tf.cast(sequence_length, tf.int32) - 1, 0)
    cell = CrfDecodeForwardRnnCell(transition_params)
    with tf.variable_scope("crf_fwd"):
        pointers, last = tf.nn.dynamic_rnn(cell, potentials[:, 1:], lengths, potentials[:, 0], dtype=tf.int32)
    pointers = tf.reverse_sequence(pointers, lengths, seq_axis=1)
    start = tf.expand_dims(tf.cast(tf.argmax(last, 1), tf.int32), 1)
    with tf.variable_scope("crf_bwd"):
        back, _ = tf.nn.dynamic_rnn(CrfDecodeBackwardRnnCell(tags), pointers, lengths, start, dtype=tf.int32)
    found = tf.concat([start, tf.squeeze(back, [2])], 1)
    return tf.reverse_sequence(found, lengths + 1, seq_axis=1), tf.reduce_max(last, 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], float]:
    """(the best tags, their score) of one sequence, in numpy: score [time, tags]."""
    trellis = np.zeros_like(score)
    pointers = np.zeros_like(score, dtype=np.int32)
    trellis[0] = score[0]
    for step in range(1, len(score)):
        sums = np.expand_dims(trellis[step - 1], 1) + transition_params
        trellis[step] = score[step] + np.max(sums, 0)
        pointers[step] = np.argmax(sums, 0)
    found = [int(np.argmax(trellis[-1]))]
    for pointer in reversed(pointers[1:]):
        found.append(int(pointer[found[-1]]))
    return found[::-1], np.max(trellis[-1])


class _Cell(RNNCell):
    """A step over tags."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    @property
    def state_size(self) -> Any:
        """The number of tags."""
        return self._size

    @property
    def output_size(self) -> Any:
        """The number of tags."""
        return self._size


class CrfForwardRnnCell(_Cell):
    """One step of the forward sums: state [batch, tags]."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__(transition_params.get_shape()[0].value)
        self._transitions = tf.expand_dims(transition_params, 0)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        after = inputs + tf.reduce_logsumexp(tf.expand_dims(state, 2) + self._transitions, [1])
        return after, after


class CrfDecodeForwardRnnCell(CrfForwardRnnCell):
    """One step of Viterbi's search: outputs are the tags before, int32 [batch, tags]."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        sums = tf.expand_dims(state, 2) + self._transitions
        return tf.cast(tf.argmax(sums, 1), tf.int32), inputs + tf.reduce_max(sums, [1])


class CrfDecodeBackwardRnnCell(_Cell):
    """One step back along the tags before: inputs [batch, tags], state [batch, 1]."""

    @property
    def state_size(self) -> Any:
        """One tag."""
        return 1

    @property
    def output_size(self) -> Any:
        """One tag."""
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        flat = tf.squeeze(state, [1])
        rows = tf.range(tf.shape(inputs)[0])
        tags = tf.expand_dims(tf.gather_nd(inputs, tf.stack([rows, flat], 1)), 1)
        return tags, tags


def _mask(values: Any, lengths: Any) -> Any:
    return tf.sequence_mask(lengths, tf.shape(values)[1], tf.float32)
