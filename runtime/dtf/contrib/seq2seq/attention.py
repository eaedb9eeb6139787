"""Attention mechanisms: how well a query fits each step of a memory.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq and the papers that are named
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = [
    "AttentionMechanism", "BahdanauAttention", "BahdanauMonotonicAttention", "LuongAttention",
    "LuongMonotonicAttention", "hardmax", "monotonic_attention", "safe_cumprod",
]  # fmt: skip


class AttentionMechanism:
    """Base of attention mechanisms: memory [batch, time, depth], its keys, and the mask of its lengths."""

    def __init__(
        self, query_layer: Any, memory: Any, memory_layer: Any, memory_sequence_length: Any, num_units: int,
        probability_fn: Callable[[Any, Any], Any], score_mask_value: float | None,
    ) -> None:  # fmt: skip
        memory = tf.convert_to_tensor(memory)
        self._mask: Any = None
        if memory_sequence_length is not None:
            self._mask = tf.sequence_mask(memory_sequence_length, maxlen=tf.shape(memory)[1], dtype=memory.dtype)
            memory = memory * tf.expand_dims(self._mask, 2)
        self.values = memory
        self.keys = memory_layer(memory) if memory_layer is not None else memory
        self.query_layer, self.memory_layer, self.num_units = query_layer, memory_layer, num_units
        self._probability_fn, self._mask_value = probability_fn, score_mask_value
        self.batch_size = self.keys.get_shape()[0].value or tf.shape(self.keys)[0]

    @property
    def alignments_size(self) -> Any:
        """The number of steps of the memory."""
        return self.keys.get_shape()[1].value or tf.shape(self.keys)[1]

    @property
    def state_size(self) -> Any:
        """The size of the state: one number for each step."""
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros [batch, time]."""
        steps = self.alignments_size
        result = tf.zeros(tf.stack([batch_size, steps]), dtype)
        result.set_shape([None, steps if isinstance(steps, int) else None])
        return result

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step."""
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query: Any, state: Any = None) -> tuple[Any, Any]:
        """(alignments [batch, time], the next state, which equals the alignments)."""
        score = self._score(query)
        if self._mask is not None:
            outside = float("-inf") if self._mask_value is None else float(self._mask_value)
            score = tf.where(self._mask > 0, score, tf.fill(tf.shape(score), outside))
        alignments = self._probability_fn(score, state)
        return alignments, alignments

    def _score(self, query: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _score.")


def _plain(probability_fn: Callable[[Any], Any] | None) -> Callable[[Any, Any], Any]:
    function = probability_fn or tf.nn.softmax
    return lambda score, state: function(score)


def _dense(size: int, name: str, dtype: Any) -> Any:
    return tf.layers.Dense(size, use_bias=False, name=name, dtype=dtype or tf.float32)


class LuongAttention(AttentionMechanism):
    """Scores by the product of query and keys.

    Source: Luong et al. (2015), https://arxiv.org/abs/1508.04025
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, scale: bool = False,
        probability_fn: Any = None, score_mask_value: Any = None, dtype: Any = None, custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:  # fmt: skip
        layer = _dense(num_units, "memory_layer", dtype)
        super().__init__(
            None, memory, layer, memory_sequence_length, num_units, _plain(probability_fn), score_mask_value
        )
        self._scale, self._name = scale, name

    def _product(self, query: Any) -> Any:
        depth = query.get_shape()[-1].value
        if depth != self.num_units:
            raise ValueError(f"the query has {depth} units, the memory {self.num_units}: they must be the same")
        score = tf.squeeze(tf.matmul(tf.expand_dims(query, 1), self.keys, transpose_b=True), [1])
        if self._scale:
            score *= tf.get_variable("attention_g", [], score.dtype, tf.ones_initializer())
        return score

    def _score(self, query: Any) -> Any:
        with tf.variable_scope(None, "luong_attention", [query]):
            return self._product(query)


class BahdanauAttention(AttentionMechanism):
    """Scores by a small network of query and keys.

    Source: Bahdanau et al. (2014), https://arxiv.org/abs/1409.0473
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, normalize: bool = False,
        probability_fn: Any = None, score_mask_value: Any = None, dtype: Any = None, custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:  # fmt: skip
        query_layer = _dense(num_units, "query_layer", dtype)
        layer = _dense(num_units, "memory_layer", dtype)
        super().__init__(
            query_layer, memory, layer, memory_sequence_length, num_units, _plain(probability_fn), score_mask_value
        )
        self._normalize = normalize

    def _network(self, query: Any) -> Any:
        hidden = tf.expand_dims(self.query_layer(query), 1) + self.keys
        weights = tf.get_variable("attention_v", [self.num_units], hidden.dtype)
        if self._normalize:
            start = tf.constant_initializer((1.0 / self.num_units) ** 0.5)
            factor = tf.get_variable("attention_g", [], hidden.dtype, start)
            bias = tf.get_variable("attention_b", [self.num_units], hidden.dtype, tf.zeros_initializer())
            weights = factor * weights * tf.rsqrt(tf.reduce_sum(tf.square(weights)))
            hidden += bias
        return tf.reduce_sum(weights * tf.tanh(hidden), [2])

    def _score(self, query: Any) -> Any:
        with tf.variable_scope(None, "bahdanau_attention", [query]):
            return self._network(query)


class _Monotonic(AttentionMechanism):
    """Attention that only moves forward.

    Source: Raffel et al. (2017), https://arxiv.org/abs/1704.00784
    """

    _mode: str
    _noise: float
    _seed: int | None
    _bias_start: float

    def _monotonic(self, noise: float, seed: int | None, bias_start: float, mode: str) -> None:
        self._mode, self._noise, self._seed, self._bias_start = mode, noise, seed, bias_start
        self._probability_fn = self._chosen
        if self._mask_value is None:
            self._mask_value = float("-inf")

    def _biased(self, score: Any) -> Any:
        start = tf.constant_initializer(self._bias_start)
        return score + tf.get_variable("attention_score_bias", [], score.dtype, start)

    def _chosen(self, score: Any, previous: Any) -> Any:
        if self._noise > 0:
            score += self._noise * tf.random_normal(tf.shape(score), dtype=score.dtype, seed=self._seed)
        choose = tf.cast(score > 0, score.dtype) if self._mode == "hard" else tf.sigmoid(score)
        return monotonic_attention(choose, previous, self._mode)

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """All attention on the first step."""
        steps = self.alignments_size
        return tf.one_hot(tf.zeros(tf.stack([batch_size]), tf.int32), steps, dtype=dtype)


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """Monotonic attention with the scores of BahdanauAttention."""

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, normalize: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0, mode: str = "parallel", dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:  # fmt: skip
        BahdanauAttention.__init__(
            self, num_units, memory, memory_sequence_length, normalize, None, score_mask_value, dtype, name=name
        )
        self._monotonic(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)

    def _score(self, query: Any) -> Any:
        with tf.variable_scope(None, "bahdanau_monotonic_attention", [query]):
            return self._biased(self._network(query))


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """Monotonic attention with the scores of LuongAttention."""

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, scale: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0, mode: str = "parallel", dtype: Any = None, name: str = "LuongMonotonicAttention",
    ) -> None:  # fmt: skip
        LuongAttention.__init__(
            self, num_units, memory, memory_sequence_length, scale, None, score_mask_value, dtype, name=name
        )
        self._monotonic(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)

    def _score(self, query: Any) -> Any:
        with tf.variable_scope(None, "luong_monotonic_attention", [query]):
            return self._biased(self._product(query))


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Any:
    """cumprod by logarithms, of values from 0 to 1, with a finite gradient."""
    with tf.name_scope(None, "SafeCumprod", [x]):
        x = tf.convert_to_tensor(x)
        tiny = x.dtype.as_numpy_dtype(2.0**-126)
        return tf.exp(tf.cumsum(tf.log(tf.clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """The attention [batch, time] after one more step.

    Args:
      p_choose_i: the probability [batch, time] to stop at each step of the memory.
      previous_attention: [batch, time].
      mode: "recursive", "parallel" or "hard".

    Raises:
      ValueError: the mode is another one.
    """
    choose = tf.convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = tf.convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        ones = tf.ones_like(choose[:, :1])
        shifted = tf.transpose(tf.concat([ones, 1 - choose[:, :-1]], 1))
        steps = functools.partial(tf.scan, lambda kept, now: now[0] * kept + now[1])
        return choose * tf.transpose(steps([shifted, tf.transpose(previous)], initializer=tf.zeros_like(choose[:, 0])))
    if mode == "parallel":
        left = safe_cumprod(1 - choose, axis=1, exclusive=True)
        return choose * left * tf.cumsum(previous / tf.clip_by_value(left, 1e-10, 1.0), axis=1)
    if mode == "hard":
        choose = choose * tf.cumsum(previous, axis=1)
        return choose * tf.cumprod(1 - choose, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def hardmax(logits: Any, name: str | None = None) -> Any:
    """One for the greatest of the last dimension, zero for the others."""
    with tf.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        depth = logits.get_shape()[-1].value or tf.shape(logits)[-1]
        return tf.one_hot(tf.argmax(logits, -1), depth, dtype=logits.dtype)
