"""The inputs of a decoder: given inputs, its own outputs, or a mixture of both.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.build import nest

__all__ = [
    "CustomHelper", "GreedyEmbeddingHelper", "Helper", "InferenceHelper", "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper", "TrainingHelper",
]  # fmt: skip


class Helper:
    """Feeds a decoder: its first inputs, and the next ones after each output."""

    batch_size: Any
    sample_ids_shape: Any = ()
    sample_ids_dtype: Any = None

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], first inputs)."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The ids of outputs."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        raise NotImplementedError


class TrainingHelper(Helper):
    """Feeds given inputs [batch, time, depth] of lengths [batch], or a structure of inputs."""

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        def steps_first(tensor: Any) -> Any:
            tensor = tf.convert_to_tensor(tensor)
            return tensor if time_major else tf.transpose(tensor, [1, 0, *range(2, tensor.get_shape().ndims)])

        self._inputs = nest.map_structure(steps_first, inputs)
        self._lengths = tf.convert_to_tensor(sequence_length)
        if self._lengths.get_shape().ndims != 1:
            raise ValueError(
                f"Expected sequence_length to be a vector, but received shape: {self._lengths.get_shape()}"
            )
        self.batch_size = tf.size(self._lengths)

    @property
    def inputs(self) -> Any:
        """The inputs to feed."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The lengths [batch]."""
        return self._lengths

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], first inputs)."""
        return tf.equal(self._lengths, 0), self._at(0)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The greatest outputs."""
        return tf.cast(tf.argmax(outputs, -1), tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        return tf.greater_equal(time + 1, tf.cast(self._lengths, tf.int32)), self._at(time + 1), state

    def _at(self, time: Any) -> Any:
        def step(tensor: Any) -> Any:
            inputs = tensor[tf.minimum(time, tf.shape(tensor)[0] - 1)]
            inputs.set_shape([None, *tensor.get_shape().as_list()[2:]])
            return inputs

        return nest.map_structure(step, self._inputs)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Feeds, with a probability, the vector of an id drawn from the last output instead of the input that is given.

    Source: Bengio et al. (2015), arXiv 1506.03099
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, embedding: Any, sampling_probability: Any, time_major: bool = False,
        seed: int | None = None, scheduling_seed: int | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inputs, sequence_length, time_major)
        self._embed = embedding if callable(embedding) else lambda ids: tf.nn.embedding_lookup(embedding, ids)
        self._probability = tf.convert_to_tensor(sampling_probability, tf.float32)
        self._seed, self._scheduling_seed = seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids [batch]; -1 where the input is taken."""
        chosen = tf.random_uniform([self.batch_size], seed=self._scheduling_seed) < self._probability
        drawn = tf.cast(tf.squeeze(tf.multinomial(outputs, 1, seed=self._seed), [1]), tf.int32)
        return tf.where(chosen, drawn, tf.fill([self.batch_size], -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
        own = self._embed(tf.maximum(sample_ids, 0))
        return finished, tf.where(sample_ids > -1, own, given), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds, with a probability, the last output instead of the input that is given."""

    def __init__(
        self, inputs: Any, sequence_length: Any, sampling_probability: Any, time_major: bool = False,
        seed: int | None = None, next_inputs_fn: Any = None, auxiliary_inputs: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inputs, sequence_length, time_major)
        if auxiliary_inputs is not None:
            raise NotImplementedError("auxiliary_inputs are not supported; join them to the inputs in next_inputs_fn")
        self._probability = tf.convert_to_tensor(sampling_probability, tf.float32)
        self._seed, self._function = seed, next_inputs_fn or (lambda outputs: outputs)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """int32 [batch]: 1 where the output is fed."""
        return tf.to_int32(tf.random_uniform([self.batch_size], seed=self._seed) < self._probability)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
        return finished, tf.where(sample_ids > 0, self._function(outputs), given), state


class CustomHelper(Helper):
    """Feeds what three functions say: as the methods of Helper, called with keywords.

    Args:
      initialize_fn: gives (finished, first inputs).
      sample_fn: gives ids of (time, outputs, state).
      next_inputs_fn: gives (finished, next inputs, next state) of (time, outputs, state, sample_ids).
    """

    def __init__(
        self, initialize_fn: Callable[..., Any], sample_fn: Callable[..., Any], next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None, sample_ids_dtype: Any = None,
    ) -> None:  # fmt: skip
        self._first, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self.sample_ids_shape = tf.TensorShape([] if sample_ids_shape is None else sample_ids_shape)
        self.sample_ids_dtype = sample_ids_dtype or tf.int32
        self.batch_size = None

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], first inputs)."""
        finished, inputs = self._first()
        if self.batch_size is None:
            self.batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The ids of outputs."""
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        return self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class InferenceHelper(Helper):
    """Feeds a decoder its own samples.

    Args:
      sample_fn: gives the sample of outputs.
      sample_shape, sample_dtype: of one sample.
      start_inputs: [batch, ...].
      end_fn: bool [batch] of samples.
      next_inputs_fn: the inputs of samples; the samples themselves by default.
    """

    def __init__(
        self, sample_fn: Any, sample_shape: Any, sample_dtype: Any, start_inputs: Any, end_fn: Any,
        next_inputs_fn: Any = None,
    ) -> None:  # fmt: skip
        self._sample, self._end, self._next = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_shape, self.sample_ids_dtype = tf.TensorShape(sample_shape), sample_dtype
        self._start = tf.convert_to_tensor(start_inputs)
        self.batch_size = tf.shape(self._start)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], first inputs)."""
        return tf.fill([self.batch_size], False), self._start

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The samples of outputs."""
        return self._sample(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        inputs = sample_ids if self._next is None else self._next(sample_ids)
        return self._end(sample_ids), inputs, state


class GreedyEmbeddingHelper(Helper):
    """Feeds the embedding of the greatest output until it is the end token.

    Args:
      embedding: a function of ids, or a table.
      start_tokens: [batch].
      end_token: a scalar.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = embedding if callable(embedding) else lambda ids: tf.nn.embedding_lookup(embedding, ids)
        self._start = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end = tf.convert_to_tensor(end_token, tf.int32)
        self.batch_size = tf.size(self._start)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], first inputs)."""
        return tf.fill([self.batch_size], False), self._embed(self._start)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The greatest outputs."""
        return tf.cast(tf.argmax(outputs, -1), tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, next inputs, next state)."""
        return tf.equal(sample_ids, self._end), self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As the greedy one, with ids drawn by the probabilities of the outputs."""

    def __init__(
        self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids [batch]."""
        logits = outputs if self._temperature is None else outputs / self._temperature
        return tf.cast(tf.squeeze(tf.multinomial(logits, 1, seed=self._seed), [1]), tf.int32)
