"""AttentionWrapper: a cell whose inputs get what attention reads from one or several memories.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq/AttentionWrapper
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.build import nest
from dtf.build.tensor import Tensor
from dtf.nn import rnn_cell

__all__ = ["AttentionWrapper", "AttentionWrapperState"]


class AttentionWrapperState(
    collections.namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an AttentionWrapper."""

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy of the state with some parts replaced."""
        replaced = self._replace(**kwargs)

        def with_shape(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor) and new.get_shape().ndims is None:
                new.set_shape(old.get_shape())
            return new

        return nest.map_structure(with_shape, self, replaced)


class AttentionWrapper(rnn_cell.RNNCell):
    """A cell whose inputs get what attention reads from a memory.

    Args:
      cell: the cell.
      attention_mechanism: an AttentionMechanism, or a list of them.
      attention_layer_size: of the layer over output and context, or a list of sizes; None for the context alone.
      alignment_history: whether the state keeps the alignments of all steps, in a TensorArray.
      cell_input_fn: makes the cell's input of (inputs, attention); joined by default.
      output_attention: whether the output is the attention, not the cell's.
      initial_cell_state: the cell's first state.
      attention_layer: instead of a size, the layer, or a list of layers.
      attention_fn: computes (attention, alignments, next state) of (mechanism, output, state, layer).

    Raises:
      ValueError: sizes and layers are not as many as the mechanisms, or both are given.
    """

    def __init__(
        self, cell: Any, attention_mechanism: Any, attention_layer_size: Any = None,
        alignment_history: bool = False, cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True, initial_cell_state: Any = None, name: str | None = None,
        attention_layer: Any = None, attention_fn: Callable[..., Any] | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name)
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._mechanisms = list(attention_mechanism) if self._is_multi else [attention_mechanism]
        self._cell, self._keeps_history = cell, alignment_history
        self._layers, self._attention_size = self._made_layers(attention_layer_size, attention_layer, dtype)
        self._input_fn = cell_input_fn or (lambda inputs, attention: tf.concat([inputs, attention], -1))
        self._attention_fn = attention_fn or _attend
        self._output_attention = output_attention
        self._initial_cell_state = initial_cell_state

    def _made_layers(self, sizes: Any, layers: Any, dtype: Any) -> tuple[list[Any], int]:
        number = len(self._mechanisms)
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        listed = [list(each) if isinstance(each, list | tuple) else [each] * number for each in (sizes, layers)]
        if any(len(each) != number for each in listed):
            raise ValueError(f"there are {number} attention mechanisms; give as many attention layers or sizes")
        depths = [mechanism.values.get_shape()[-1].value for mechanism in self._mechanisms]
        if sizes is not None:
            kind = dtype or tf.float32
            made = [tf.layers.Dense(size, use_bias=False, name="attention_layer", dtype=kind) for size in listed[0]]
            return made, sum(listed[0])
        if layers is not None:
            return listed[1], sum(layer.units for layer in listed[1])
        return [None] * number, sum(depths)

    def _one_or_all(self, values: list[Any]) -> Any:
        return tuple(values) if self._is_multi else values[0]

    def _all(self, value: Any) -> Any:
        return value if self._is_multi else (value,)

    @property
    def output_size(self) -> Any:
        """The size of the attention, or of the cell's output."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        """The sizes of the parts of the state."""
        steps = self._one_or_all([each.alignments_size for each in self._mechanisms])
        states = self._one_or_all([each.state_size for each in self._mechanisms])
        history = self._one_or_all([() for _ in self._mechanisms]) if self._keeps_history else ()
        return AttentionWrapperState(
            self._cell.state_size, self._attention_size, tf.TensorShape([]), steps, history, states
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The first state: no attention yet."""
        cell_state = self._initial_cell_state
        if cell_state is None:
            cell_state = self._cell.zero_state(batch_size, dtype)
        attention = tf.zeros(tf.stack([batch_size, self._attention_size]), dtype)
        attention.set_shape([None, self._attention_size])
        alignments = [each.initial_alignments(batch_size, dtype) for each in self._mechanisms]
        states = [each.initial_state(batch_size, dtype) for each in self._mechanisms]
        history: Any = ()
        if self._keeps_history:
            shapes = [each.get_shape() for each in alignments]
            history = self._one_or_all([
                tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=[None, shape[1].value]) for shape in shapes
            ])  # fmt: skip
        return AttentionWrapperState(
            cell_state, attention, tf.constant(0), self._one_or_all(alignments), history, self._one_or_all(states)
        )

    def call(self, inputs: Any, state: AttentionWrapperState) -> tuple[Any, AttentionWrapperState]:
        """(output, next state).

        Raises:
          TypeError: the state is no AttentionWrapperState.
        """
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(f"Expected state to be an AttentionWrapperState. Received {type(state).__name__}.")
        output, cell_state = self._cell(self._input_fn(inputs, state.attention), state.cell_state)
        attentions, alignments, states = [], [], []
        befores = self._all(state.attention_state)
        for mechanism, before, layer in zip(self._mechanisms, befores, self._layers, strict=True):
            attention, alignment, after = self._attention_fn(mechanism, output, before, layer)
            attentions.append(attention)
            alignments.append(alignment)
            states.append(after)
        history = state.alignment_history
        if self._keeps_history:
            kept = zip(self._all(history), alignments, strict=True)
            history = self._one_or_all([array.write(state.time, each) for array, each in kept])
        joined = tf.concat(attentions, 1)
        result = AttentionWrapperState(
            cell_state, joined, state.time + 1, self._one_or_all(alignments), history, self._one_or_all(states)
        )
        return (joined if self._output_attention else output), result


def _attend(mechanism: Any, output: Any, state: Any, layer: Any) -> tuple[Any, Any, Any]:
    alignments, after = mechanism(output, state)
    context = tf.squeeze(tf.matmul(tf.expand_dims(alignments, 1), mechanism.values), [1])
    return (layer(tf.concat([output, context], 1)) if layer is not None else context), alignments, after
