"""tf.contrib.cudnn_rnn without cuDNN: the same layers and cells, made of the cells of dtf.

    outputs, (h, c) = tf.contrib.cudnn_rnn.CudnnLSTM(2, 128)(inputs)  # inputs [time, batch, size]

Variables are those of the cells, under the names that TensorFlow's canonical checkpoints have.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/cudnn_rnn
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.contrib.rnn_cells import LSTMBlockCell
from dtf.nn.rnn_cell import GRUCell, LSTMStateTuple

__all__ = ["CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell", "CudnnGRU", "CudnnLSTM"]

CUDNN_RNN_UNIDIRECTION = "unidirectional"
CUDNN_RNN_BIDIRECTION = "bidirectional"


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """LSTMBlockCell without a forget bias."""

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(num_units, forget_bias=0.0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """GRUCell whose reset gate is applied to the product of state and weights."""

    def __init__(self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)
        self._width = num_units

    def build(self, input_shape: Any) -> None:
        """Makes the gates, and the candidate's weights for the input and for the state."""
        depth, units = tf.TensorShape(input_shape).as_list()[-1] or 0, self._width
        zeros = tf.zeros_initializer()
        self._gate_kernel = self.add_variable("gates/kernel", [depth + units, 2 * units])
        self._gate_bias = self.add_variable("gates/bias", [2 * units], initializer=tf.ones_initializer())
        self._input_kernel = self.add_variable("candidate/input_projection/kernel", [depth, units])
        self._input_bias = self.add_variable("candidate/input_projection/bias", [units], initializer=zeros)
        self._state_kernel = self.add_variable("candidate/hidden_projection/kernel", [units, units])
        self._state_bias = self.add_variable("candidate/hidden_projection/bias", [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        gates = tf.sigmoid(tf.matmul(tf.concat([inputs, state], 1), self._gate_kernel) + self._gate_bias)
        reset, update = tf.split(gates, 2, 1)
        of_state = tf.matmul(state, self._state_kernel) + self._state_bias
        candidate = tf.tanh(tf.matmul(inputs, self._input_kernel) + self._input_bias + reset * of_state)
        output = (1.0 - update) * candidate + update * state
        return output, output


class _CudnnRNN(tf.layers.Layer):
    """Layers of cells over inputs [time, batch, size].

    Args:
      num_layers: how many are stacked.
      num_units: the size of their states.
      input_mode, seed: accepted.
      direction: "unidirectional" or "bidirectional"; outputs of both directions stand side by side.
      dropout: the share of a layer's outputs that the next one does not see while training.
    """

    def __init__(
        self, num_layers: int, num_units: int, input_mode: str = "linear_input", direction: str = "unidirectional",
        dropout: float = 0.0, seed: int | None = None, dtype: Any = tf.float32, kernel_initializer: Any = None,
        bias_initializer: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        del input_mode, bias_initializer
        super().__init__(dtype=dtype, name=name)
        self._num_layers, self._num_units, self._dropout, self._seed = num_layers, num_units, dropout, seed
        self._kernel_initializer = kernel_initializer
        if direction not in ("unidirectional", "bidirectional"):
            raise ValueError(f"direction must be unidirectional or bidirectional, got {direction!r}")
        self._directions = 2 if direction == "bidirectional" else 1

    num_layers = property(lambda self: self._num_layers)
    num_units = property(lambda self: self._num_units)
    num_dirs = property(lambda self: self._directions)

    def _cell(self) -> Any:
        raise NotImplementedError

    def _state_of(self, states: list[Any]) -> Any:
        raise NotImplementedError

    def _first(self, initial_state: Any, index: int) -> Any:
        raise NotImplementedError

    def call(
        self, inputs: Any, initial_state: Any = None, sequence_lengths: Any = None, time_major: bool = True,
        training: bool = True,
    ) -> Any:  # fmt: skip
        """(outputs [time, batch, directions * units], the last states)."""
        states: list[Any] = []
        value = inputs
        for layer in range(self._num_layers):
            if layer and self._dropout and training:
                value = tf.nn.dropout(value, rate=self._dropout, seed=self._seed)
            outputs = []
            for direction in range(self._directions):
                number = layer * self._directions + direction
                first = None if initial_state is None else self._first(initial_state, number)
                with tf.variable_scope(f"rnn_{layer}_{direction}", initializer=self._kernel_initializer):
                    forward = _reversed(value, sequence_lengths, time_major) if direction else value
                    output, state = tf.nn.dynamic_rnn(
                        self._cell(), forward, sequence_lengths, first, self.dtype, time_major=time_major)  # fmt: skip
                    outputs.append(_reversed(output, sequence_lengths, time_major) if direction else output)
                states.append(state)
            value = outputs[0] if len(outputs) == 1 else tf.concat(outputs, 2)
        return value, self._state_of(states)


class CudnnLSTM(_CudnnRNN):
    """Stacked long short-term memories; states are (h, c), each [layers * directions, batch, units]."""

    def _cell(self) -> Any:
        return CudnnCompatibleLSTMCell(self._num_units)

    def _state_of(self, states: list[Any]) -> Any:
        return tf.stack([state.h for state in states]), tf.stack([state.c for state in states])

    def _first(self, initial_state: Any, index: int) -> Any:
        h, c = initial_state
        return LSTMStateTuple(c[index], h[index])


class CudnnGRU(_CudnnRNN):
    """Stacked gated recurrent units; the state is (h,), [layers * directions, batch, units]."""

    def _cell(self) -> Any:
        return CudnnCompatibleGRUCell(self._num_units)

    def _state_of(self, states: list[Any]) -> Any:
        return (tf.stack(states),)

    def _first(self, initial_state: Any, index: int) -> Any:
        return initial_state[0][index]


def _reversed(value: Any, lengths: Any, time_major: bool) -> Any:
    time, batch = (0, 1) if time_major else (1, 0)
    if lengths is None:
        return tf.reverse(value, [time])
    return tf.reverse_sequence(value, lengths, seq_axis=time, batch_axis=batch)
