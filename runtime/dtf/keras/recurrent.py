"""tf.keras.layers: LSTM, GRU and SimpleRNN, with the weights and gates that Keras has.

Owns the steps; the loop over sequences is `tf.nn.dynamic_rnn`. Weights are kernel [inputs, gates * units],
recurrent_kernel [units, gates * units] and bias [gates * units]. LSTM's gates are i, f, c, o; GRU's are z, r, h.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/LSTM
"""

from __future__ import annotations

from typing import Any

from dtf import layers
from dtf.build import nest
from dtf.build.ops.filling import ones, zeros
from dtf.build.ops.joining import concat, split
from dtf.build.ops.linalg import matmul
from dtf.build.ops.nn import bias_add
from dtf.build.ops.rearranging import reverse
from dtf.build.tensor import Tensor
from dtf.keras import activations, initializers
from dtf.keras.layers import Recipe, _input_shape
from dtf.nn.rnn_cell import RNNCell
from dtf.nn.rnn_loops import dynamic_rnn
from dtf.wire import dtypes

__all__ = ["GRU", "LSTM", "SimpleRNN"]


def LSTM(  # noqa: N802
    units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid", **kwargs: Any
) -> Recipe:
    """Long short-term memory.

    Args:
      units: the size of the outputs.
      activation, recurrent_activation: of the candidate and the outputs; of the gates.
      kwargs: use_bias, kernel_initializer, recurrent_initializer, bias_initializer, unit_forget_bias,
        return_sequences, return_state, go_backwards, name, input_shape.
    """
    return _recurrent("lstm", 4, 2, units, activation, recurrent_activation, kwargs)


def GRU(  # noqa: N802
    units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid", **kwargs: Any
) -> Recipe:
    """Gated recurrent unit that applies the reset gate before the product; the arguments are as in LSTM."""
    if kwargs.pop("reset_after", False):
        raise ValueError("GRU with reset_after=True is not supported; TensorFlow 1.x uses reset_after=False")
    return _recurrent("gru", 3, 1, units, activation, recurrent_activation, kwargs)


def SimpleRNN(units: int, activation: Any = "tanh", **kwargs: Any) -> Recipe:  # noqa: N802
    """output = state = activation(inputs @ kernel + state @ recurrent_kernel + bias)."""
    return _recurrent("simple_rnn", 1, 1, units, activation, None, kwargs)


def _recurrent(
    kind: str, gates: int, states: int, units: int, activation: Any, of_gates: Any, kwargs: dict[str, Any]
) -> Recipe:
    defaults: dict[str, Any] = {
        "use_bias": True, "kernel_initializer": "glorot_uniform", "recurrent_initializer": "orthogonal",
        "bias_initializer": "zeros", "unit_forget_bias": kind == "lstm", "return_sequences": False,
        "return_state": False, "go_backwards": False,
    }  # fmt: skip
    settings = {name: kwargs.pop(name, default) for name, default in defaults.items()}
    name = kwargs.pop("name", None)
    for unused in ("unroll", "implementation"):  # how, not what, is computed
        kwargs.pop(unused, None)
    functions = (activations.get(activation), activations.get(of_gates))
    for each in ("kernel_initializer", "recurrent_initializer", "bias_initializer"):
        settings[each] = initializers.get(settings[each])
    return Recipe(
        kind, lambda name: _Recurrent(kind, gates, states, units, functions, settings, name), name, _input_shape(kwargs)
    )


class _Recurrent(layers.Layer):
    def __init__(
        self,
        kind: str,
        gates: int,
        states: int,
        units: int,
        functions: tuple[Any, Any],
        settings: dict[str, Any],
        name: str,
    ) -> None:
        super().__init__(name=name, dtype=dtypes.float32)
        self.units = units
        self._kind, self._gates, self._states = kind, gates, states
        self._functions, self._settings = functions, settings
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        settings = self._settings
        width, all_gates = input_shape[-1].value, self._gates * self.units
        self.kernel = self.add_weight("kernel", [width, all_gates], initializer=settings["kernel_initializer"])
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", [self.units, all_gates], initializer=settings["recurrent_initializer"]
        )
        if settings["use_bias"]:
            initializer = _forget_ones if settings["unit_forget_bias"] else settings["bias_initializer"]
            self.bias = self.add_weight("bias", [all_gates], initializer=initializer)
        super().build(input_shape)

    def call(self, inputs: Tensor, initial_state: Any = None) -> Any:
        settings = self._settings
        given = None if initial_state is None else tuple(nest.flatten(initial_state))
        state = given if given is None or self._states > 1 else given[0]
        if settings["go_backwards"]:
            inputs = reverse(inputs, [1])
        outputs, last = dynamic_rnn(_Cell(self), inputs, initial_state=state, dtype=inputs.dtype)
        states = nest.flatten(last)
        result = outputs if settings["return_sequences"] else states[0]
        return [result, *states] if settings["return_state"] else result

    def step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One step: (output, next state)."""
        activation, gate = self._functions
        given = matmul(inputs, self.kernel)
        if self.bias is not None:
            given = bias_add(given, self.bias)
        if self._kind == "simple_rnn":
            output = activation(given + matmul(state, self.recurrent_kernel))
            return output, output
        if self._kind == "lstm":
            before, kept = state
            parts = split(given + matmul(before, self.recurrent_kernel), 4, axis=1)
            kept = gate(parts[1]) * kept + gate(parts[0]) * activation(parts[2])
            output = gate(parts[3]) * activation(kept)
            return output, (output, kept)
        update, reset, candidate = split(given, 3, axis=1)
        of_update, of_reset, of_candidate = split(self.recurrent_kernel, 3, axis=1)
        z = gate(update + matmul(state, of_update))
        r = gate(reset + matmul(state, of_reset))
        output = z * state + (1.0 - z) * activation(candidate + matmul(r * state, of_candidate))
        return output, output


class _Cell(RNNCell):
    """The steps of a layer as `dynamic_rnn` takes them; the weights are the layer's."""

    def __init__(self, layer: _Recurrent) -> None:
        super().__init__(name=f"{layer.name}_cell")
        self._layer = layer

    @property
    def state_size(self) -> Any:
        units = self._layer.units
        return (units, units) if self._layer._states == 2 else units

    @property
    def output_size(self) -> int:
        return self._layer.units

    def call(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        return self._layer.step(inputs, state)


def _forget_ones(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Tensor:
    """A bias of zeros whose second quarter, the forget gates', is ones."""
    units = int(shape[0]) // 4
    return concat([zeros([units], dtype), ones([units], dtype), zeros([2 * units], dtype)], 0)
