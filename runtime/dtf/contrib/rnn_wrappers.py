"""Cells of tf.contrib.rnn around other cells, and the convolutional memories.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dtf as tf
from dtf.build import nest
from dtf.contrib.rnn_cells import linear
from dtf.nn.rnn_cell import LSTMStateTuple, RNNCell
from dtf.nn.rnn_cell.base import check_is_cell

__all__ = [
    "AttentionCellWrapper", "CompiledWrapper", "Conv1DLSTMCell", "Conv2DLSTMCell",
    "Conv3DLSTMCell", "ConvLSTMCell", "EmbeddingWrapper", "HighwayWrapper", "InputProjectionWrapper",
    "OutputProjectionWrapper",
]  # fmt: skip


class _Wrapper(RNNCell):
    """A cell around one."""

    def __init__(self, cell: Any, reuse: bool | None = None) -> None:
        super().__init__(_reuse=reuse)
        check_is_cell(cell)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """The cell's state size."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The cell's output size."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The cell's first state."""
        return self._cell.zero_state(batch_size, dtype)


class CompiledWrapper(_Wrapper):
    """Returns the cell unchanged: dtf has no compiler."""

    def __init__(self, cell: Any, compile_stateful: bool = False) -> None:
        super().__init__(cell)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._cell(inputs, state, scope=scope)


class InputProjectionWrapper(_Wrapper):
    """The inputs pass a linear layer before the cell."""

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: None = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell, reuse)
        self._projected, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        projected = linear(inputs, self._projected)
        return self._cell(self._activation(projected) if self._activation else projected, state)


class OutputProjectionWrapper(_Wrapper):
    """The outputs of the cell pass a linear layer."""

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None) -> None:
        super().__init__(cell, reuse)
        self._size, self._activation = output_size, activation

    @property
    def output_size(self) -> Any:
        """The size of the projection."""
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        output, after = self._cell(inputs, state)
        projected = linear(output, self._size)
        return (self._activation(projected) if self._activation else projected), after


class EmbeddingWrapper(_Wrapper):
    """The inputs are ids [batch] or [batch, 1]; the cell gets their vectors."""

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(f"Both must be > 0: {embedding_classes}, {embedding_size}.")
        self._classes, self._size, self._initializer = embedding_classes, embedding_size, initializer

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        initializer = self._initializer or tf.get_variable_scope().initializer
        initializer = initializer or tf.random_uniform_initializer(-math.sqrt(3), math.sqrt(3))
        dtype = nest.flatten(state)[0].dtype
        table = tf.get_variable("embedding", [self._classes, self._size], dtype, initializer)
        return self._cell(tf.nn.embedding_lookup(table, tf.reshape(inputs, [-1])), state)


class HighwayWrapper(_Wrapper):
    """A gate decides how much of the inputs passes the cell by.

    Source: Zilly et al. (2016), arXiv 1607.03474
    """

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__(cell)
        self._couple, self._bias = couple_carry_transform_gates, carry_bias_init

    def _gate(self, inputs: Any, name: str, bias: float) -> Any:
        size = inputs.get_shape()[-1].value
        with tf.variable_scope(name):
            weights = tf.get_variable(f"{name}_w", [size, size], inputs.dtype)
            start = tf.constant_initializer(bias)
            return tf.sigmoid(
                tf.nn.xw_plus_b(inputs, weights, tf.get_variable(f"{name}_b", [size], inputs.dtype, start))
            )

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        output, after = self._cell(inputs, state)
        carry = self._gate(inputs, "carry", self._bias)
        transform = 1 - carry if self._couple else self._gate(inputs, "transform", -self._bias)
        return inputs * carry + output * transform, after


class AttentionCellWrapper(_Wrapper):
    """The cell attends to its last `attn_length` outputs.

    Args:
      attn_length: how many outputs are kept.
      attn_size: the size of the attention output; by default the cell's output size.
      attn_vec_size: the size of the hidden layer of the scores.
      input_size: the size of the cell's inputs; the inputs' own by default.

    Source: Bahdanau et al. (2014), arXiv 1409.0473
    """

    def __init__(
        self, cell: Any, attn_length: int, attn_size: int | None = None, attn_vec_size: int | None = None,
        input_size: int | None = None, state_is_tuple: bool = True, reuse: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cell, reuse)
        if attn_length <= 0:
            raise ValueError(f"attn_length must be greater than zero; it is {attn_length}")
        if not state_is_tuple:
            raise NotImplementedError("AttentionCellWrapper needs state_is_tuple=True")
        self._length, self._size = attn_length, attn_size or cell.output_size
        self._hidden, self._input_size = attn_vec_size or self._size, input_size

    @property
    def state_size(self) -> Any:
        """(the cell's size, the attention's size, the size of the kept outputs)."""
        return self._cell.state_size, self._size, self._size * self._length

    @property
    def output_size(self) -> Any:
        """The attention output."""
        return self._size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros."""
        return RNNCell.zero_state(self, batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        kept, attention, outputs = state
        outputs = tf.reshape(outputs, [-1, self._length, self._size])
        size = self._input_size or inputs.get_shape()[1].value
        output, kept = self._cell(linear([inputs, attention], size), kept)
        flat = tf.concat(nest.flatten(kept), 1)
        attention, outputs = self._attend(flat, outputs)
        with tf.variable_scope("attn_output_projection"):
            result = linear([output, attention], self._size)
        outputs = tf.concat([outputs, tf.expand_dims(result, 1)], 1)
        return result, (kept, attention, tf.reshape(outputs, [-1, self._size * self._length]))

    def _attend(self, query: Any, outputs: Any) -> tuple[Any, Any]:
        with tf.variable_scope("attention"):
            weights = tf.get_variable("attn_w", [1, 1, self._size, self._hidden])
            vector = tf.get_variable("attn_v", [self._hidden])
            hidden = tf.reshape(outputs, [-1, self._length, 1, self._size])
            features = tf.nn.conv2d(hidden, weights, [1, 1, 1, 1], "SAME")
            projected = tf.reshape(linear(query, self._hidden), [-1, 1, 1, self._hidden])
            scores = tf.nn.softmax(tf.reduce_sum(vector * tf.tanh(features + projected), [2, 3]))
            read = tf.reduce_sum(tf.reshape(scores, [-1, self._length, 1, 1]) * hidden, [1, 2])
            return tf.reshape(read, [-1, self._size]), outputs[:, 1:]


class ConvLSTMCell(RNNCell):
    """A long short-term memory of images: its products are convolutions.

    Args:
      conv_ndims: 1, 2 or 3.
      input_shape: of an input without the batch; channels last.
      output_channels: of the state and the output.
      kernel_shape: of the convolution.
      skip_connection: whether the inputs are joined to the output.

    Source: Shi et al. (2015), arXiv 1506.04214
    """

    def __init__(
        self, conv_ndims: int, input_shape: Sequence[int], output_channels: int, kernel_shape: Sequence[int],
        use_bias: bool = True, skip_connection: bool = False, forget_bias: float = 1.0, initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:  # fmt: skip
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {list(input_shape)} for conv_ndims={conv_ndims}.")
        self._rank, self._input, self._channels = conv_ndims, [int(each) for each in input_shape], output_channels
        self._kernel, self._use_bias, self._skip = list(kernel_shape), use_bias, skip_connection
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> Any:
        """The shapes of c and h."""
        shape = tf.TensorShape([*self._input[:-1], self._channels])
        return LSTMStateTuple(shape, shape)

    @property
    def output_size(self) -> Any:
        """The shape of an output."""
        channels = self._channels + (self._input[-1] if self._skip else 0)
        return tf.TensorShape([*self._input[:-1], channels])

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        joined = tf.concat([inputs, h], -1)
        shape = [*self._kernel, joined.get_shape()[-1].value, 4 * self._channels]
        gates = tf.nn.convolution(joined, tf.get_variable("kernel", shape, joined.dtype), "SAME")
        if self._use_bias:
            gates += tf.get_variable("biases", [4 * self._channels], joined.dtype, tf.constant_initializer(0.0))
        write, new, forget, read = tf.split(gates, 4, self._rank + 1)
        c = tf.sigmoid(forget + self._forget_bias) * c + tf.sigmoid(write) * tf.tanh(new)
        output = tf.tanh(c) * tf.sigmoid(read)
        after = LSTMStateTuple(c, output)
        return (tf.concat([output, inputs], -1) if self._skip else output), after


class Conv1DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell of sequences."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell of images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell of volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(3, name=name, **kwargs)
