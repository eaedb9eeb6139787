"""tf.keras.layers: an LSTM whose products are convolutions of images.

Owns its steps; the loop is `scan`. Weights are kernel [rows, columns, channels, 4 * filters], recurrent_kernel
[rows, columns, filters, 4 * filters] and bias [4 * filters]; the gates are i, f, c, o.

Source: Shi et al. (2015), https://arxiv.org/abs/1506.04214;
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/ConvLSTM2D
"""

from __future__ import annotations

from typing import Any

from dtf.build.ops.array import shape_of
from dtf.build.ops.convolution import convolution
from dtf.build.ops.filling import ones, zeros
from dtf.build.ops.functional import scan
from dtf.build.ops.joining import concat, split
from dtf.build.ops.nn import bias_add, dropout
from dtf.build.ops.rearranging import reverse, transpose
from dtf.keras import activations, constraints, initializers, regularizers
from dtf.keras.kept_states import KeepsStates
from dtf.keras.noise import while_training

__all__ = ["ConvLSTM2D"]


class ConvLSTM2D(KeepsStates):
    """An LSTM along sequences of images [batch, time, rows, columns, channels].

    Args:
      filters: the number of channels of the outputs.
      kernel_size, strides, padding, dilation_rate: of the convolution of the inputs.
      return_sequences: whether to return the outputs of all steps.
      return_state: whether to return the last output and the last state too.
      go_backwards: whether to begin at the end.
      stateful: whether a batch begins with the states that the batch before ended with; see `reset_states`.
      dropout, recurrent_dropout: the parts of the inputs and of the states to drop while training.

    Raises:
      ValueError: `data_format` is channels_first.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = None, dilation_rate: Any = 1, activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid", use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None, recurrent_constraint: Any = None,
        bias_constraint: Any = None, return_sequences: bool = False, go_backwards: bool = False,
        stateful: bool = False, dropout: float = 0.0, recurrent_dropout: float = 0.0, return_state: bool = False,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, activity_regularizer=activity_regularizer, **kwargs)
        if data_format == "channels_first":
            raise ValueError("ConvLSTM2D is supported for data_format channels_last only; transpose the images")
        self.stateful = bool(stateful)
        self.filters, self.data_format, self.padding = int(filters), "channels_last", padding.lower()
        self.kernel_size, self.strides, self.dilation_rate = _two(kernel_size), _two(strides), _two(dilation_rate)
        self.activation: Any = activations.get(activation)
        self.recurrent_activation: Any = activations.get(recurrent_activation)
        self.use_bias, self.unit_forget_bias = use_bias, unit_forget_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = regularizers.get(recurrent_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.recurrent_constraint = constraints.get(recurrent_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards
        self.dropout, self.recurrent_dropout = float(dropout), float(recurrent_dropout)

    def build(self, input_shape: Any) -> None:
        """Makes the kernels and the bias, whose forget gates begin at 1."""
        channels = input_shape[-1].value
        self.kernel = self.add_weight(
            "kernel", [*self.kernel_size, channels, 4 * self.filters], initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", [*self.kernel_size, self.filters, 4 * self.filters],
            initializer=self.recurrent_initializer, regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
        )  # fmt: skip
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [4 * self.filters], initializer=self._first_bias if self.unit_forget_bias
                else self.bias_initializer, regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip
        super().build(input_shape)

    def _first_bias(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        count = self.filters
        first = self.bias_initializer([count], dtype=dtype)
        rest = self.bias_initializer([2 * count], dtype=dtype)
        return concat([first, ones([count], dtype), rest], 0)

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The last output, or those of all steps; with `return_state` a list with the last output and state."""
        if self.go_backwards:
            inputs = reverse(inputs, [1])
        if self.dropout:
            inputs = while_training(training, lambda: dropout(inputs, rate=self.dropout), inputs)
        frames = transpose(inputs, [1, 0, 2, 3, 4])
        first = self._entering(frames[0])
        state = zeros(shape_of(first), inputs.dtype)[..., : self.filters]
        state.set_shape([*first.shape.as_list()[:-1], self.filters])

        begin = [state, state]
        if self.stateful:
            begin = self._first_states([state.shape.as_list()] * 2)

        def step(states: Any, frame: Any) -> Any:
            return self._step(states, self._entering(frame), training)

        outputs, memories = scan(step, frames, initializer=(begin[0], begin[1]))
        last = outputs[-1]
        if self.stateful:
            self._keep_states([last, memories[-1]])
        result = transpose(outputs, [1, 0, 2, 3, 4]) if self.return_sequences else last
        return [result, last, memories[-1]] if self.return_state else result

    def _entering(self, frame: Any) -> Any:
        found = convolution(
            frame, self.kernel, self.padding.upper(), strides=self.strides, dilation_rate=self.dilation_rate
        )
        return found if self.bias is None else bias_add(found, self.bias)

    def _step(self, states: Any, entering: Any, training: Any) -> tuple[Any, Any]:
        hidden, memory = states
        given = hidden
        if self.recurrent_dropout:
            given = while_training(training, lambda: dropout(hidden, rate=self.recurrent_dropout), hidden)
        found = entering + convolution(given, self.recurrent_kernel, "SAME")
        enters, stays, candidate, leaves = split(found, 4, -1)
        gate = self.recurrent_activation
        memory = gate(stays) * memory + gate(enters) * self.activation(candidate)
        return gate(leaves) * self.activation(memory), memory


def _two(size: Any) -> tuple[int, int]:
    one, other = (size, size) if isinstance(size, int) else size
    return one, other
