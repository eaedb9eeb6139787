"""tf.keras.layers: RNN and its cells, and LSTM, GRU and SimpleRNN, with the weights and gates that Keras has.

Owns the steps; the loop over sequences is `tf.nn.dynamic_rnn`. Weights are kernel [inputs, gates * units],
recurrent_kernel [units, gates * units] and bias [gates * units]. LSTM's gates are i, f, c, o; GRU's are z, r, h. A
masked step leaves the state as it was.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/LSTM
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build import nest
from dtf.build.ops.array import expand_dims, shape_of
from dtf.build.ops.filling import ones, zeros
from dtf.build.ops.joining import concat, split
from dtf.build.ops.linalg import matmul
from dtf.build.ops.math import cast
from dtf.build.ops.nn import bias_add, dropout
from dtf.build.ops.rearranging import reverse
from dtf.build.ops.searching import where
from dtf.build.tensor import Tensor
from dtf.keras import activations, constraints, initializers, regularizers
from dtf.keras.base import Layer
from dtf.keras.kept_states import KeepsStates
from dtf.keras.noise import while_training
from dtf.nn.rnn_cell import RNNCell
from dtf.nn.rnn_loops import dynamic_rnn
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "CuDNNGRU", "CuDNNLSTM", "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "SimpleRNN", "SimpleRNNCell",
    "StackedRNNCells",
]  # fmt: skip


class _Cell(Layer):
    """One step of a recurrent layer: (inputs, states) -> (output, states)."""

    _gates: int
    _states: int

    def __init__(
        self, units: int, activation: Any = "tanh", use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None, bias_regularizer: Any = None, kernel_constraint: Any = None,
        recurrent_constraint: Any = None, bias_constraint: Any = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = regularizers.get(recurrent_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.recurrent_constraint = constraints.get(recurrent_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout
        self.bias: Any = None

    @property
    def state_size(self) -> Any:
        """The sizes of the states."""
        return [self.units] * self._states if self._states > 1 else self.units

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self.units

    def build(self, input_shape: Any) -> None:
        """Makes kernel, recurrent_kernel and bias."""
        width, all_gates = input_shape[-1].value, self._gates * self.units
        self.kernel = self.add_weight(
            "kernel", [width, all_gates], initializer=self.kernel_initializer, regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint)  # fmt: skip
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", [self.units, all_gates], initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer, constraint=self.recurrent_constraint)  # fmt: skip
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [all_gates], initializer=self._first_bias(), regularizer=self.bias_regularizer,
                constraint=self.bias_constraint)  # fmt: skip
        super().build(input_shape)

    def _first_bias(self) -> Any:
        return self.bias_initializer

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        """One step: (output, [states])."""
        states = list(nest.flatten(states))
        if self.recurrent_dropout and training is not None:
            states[0] = _dropped(states[0], self.recurrent_dropout, training)
        if self.dropout and training is not None:
            inputs = _dropped(inputs, self.dropout, training)
        return self._step(inputs, states)

    def _step(self, inputs: Any, states: list[Any]) -> Any:
        raise NotImplementedError

    def _entering(self, inputs: Any) -> Any:
        given = matmul(inputs, self.kernel)
        return given if self.bias is None else bias_add(given, self.bias)


class SimpleRNNCell(_Cell):
    """output = state = activation(inputs @ kernel + state @ recurrent_kernel + bias)."""

    _gates = _states = 1

    def _step(self, inputs: Any, states: list[Any]) -> Any:
        output = self._entering(inputs) + matmul(states[0], self.recurrent_kernel)
        output = output if self.activation is None else self.activation(output)
        return output, [output]


class _GatedCell(_Cell):
    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid",
                 use_bias: bool = True, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(units, activation, use_bias, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)


class LSTMCell(_GatedCell):
    """One step of long short-term memory; the states are the output and the memory."""

    _gates, _states = 4, 2

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid",
                 use_bias: bool = True, unit_forget_bias: bool = True, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(units, activation, recurrent_activation, use_bias, **kwargs)
        self.unit_forget_bias = unit_forget_bias

    def _first_bias(self) -> Any:
        return _forget_ones if self.unit_forget_bias else self.bias_initializer

    def _step(self, inputs: Any, states: list[Any]) -> Any:
        before, kept = states
        gate, activation = self.recurrent_activation or activations.linear, self.activation or activations.linear
        parts = split(self._entering(inputs) + matmul(before, self.recurrent_kernel), 4, axis=1)
        kept = gate(parts[1]) * kept + gate(parts[0]) * activation(parts[2])
        output = gate(parts[3]) * activation(kept)
        return output, [output, kept]


class GRUCell(_GatedCell):
    """One step of a gated recurrent unit that applies the reset gate before the product."""

    _gates, _states = 3, 1

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid",
                 use_bias: bool = True, reset_after: bool = False, **kwargs: Any) -> None:  # fmt: skip
        if reset_after:
            raise ValueError("GRU with reset_after=True is not supported; TensorFlow 1.x uses reset_after=False")
        super().__init__(units, activation, recurrent_activation, use_bias, **kwargs)
        self.reset_after = reset_after

    def _step(self, inputs: Any, states: list[Any]) -> Any:
        state = states[0]
        gate, activation = self.recurrent_activation or activations.linear, self.activation or activations.linear
        update, reset, candidate = split(self._entering(inputs), 3, axis=1)
        of_update, of_reset, of_candidate = split(self.recurrent_kernel, 3, axis=1)
        z = gate(update + matmul(state, of_update))
        r = gate(reset + matmul(state, of_reset))
        output = z * state + (1.0 - z) * activation(candidate + matmul(r * state, of_candidate))
        return output, [output]


class StackedRNNCells(Layer):
    """Cells one above the other, as one cell."""

    def __init__(self, cells: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.cells = list(cells)

    @property
    def state_size(self) -> Any:
        """The sizes of the states, cell by cell."""
        return tuple(each.state_size for each in self.cells)

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return _output_size(self.cells[-1])

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        """One step through all cells."""
        flat, made = list(nest.flatten(states)), []
        for cell in self.cells:
            count = len(nest.flatten(cell.state_size))
            own, flat = flat[:count], flat[count:]
            inputs, after = cell(inputs, own)
            made.extend(nest.flatten(after))
        return inputs, made


class RNN(KeepsStates):
    """A cell along sequences [batch, time, ...].

    Args:
      cell: with `state_size` and a call (inputs, states) -> (output, states); or a list of cells.
      return_sequences: whether to return the outputs of all steps.
      return_state: whether to return the last states too.
      go_backwards: whether to begin at the end.
      stateful: whether a batch begins with the states that the batch before ended with; see `reset_states`.
      unroll: accepted.
    """

    supports_masking = True

    def __init__(
        self, cell: Any, return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.stateful = bool(stateful)
        self.cell = StackedRNNCells(cell) if isinstance(cell, list | tuple) else cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.unroll = go_backwards, unroll

    def __call__(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        """The outputs; `initial_state` may also be the rest of a list of inputs."""
        if isinstance(inputs, list | tuple) and initial_state is None:
            inputs, initial_state = inputs[0], list(inputs[1:]) or None
        given = {} if initial_state is None else {"initial_state": initial_state}
        return super().__call__(inputs, **given, **kwargs)

    def call(self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None) -> Any:
        """The last output, or those of all steps; with `return_state` a list with the states."""
        mask = mask[0] if isinstance(mask, list | tuple) else mask
        size = self.cell.state_size
        state = None
        if initial_state is not None:
            state = nest.pack_sequence_as(_as_state(size), nest.flatten(initial_state))
        if self.stateful:
            batch = inputs.shape[0].value
            first = self._first_states([[batch, *TensorShape(each).as_list()] for each in nest.flatten(size)])
            state = nest.pack_sequence_as(_as_state(size), first) if state is None else state
        if self.go_backwards:
            inputs = reverse(inputs, [1])
            mask = None if mask is None else reverse(mask, [1])
        if hasattr(self.cell, "built") and not self.cell.built:
            _build(self.cell, inputs)
        given = inputs
        if mask is not None:
            given = concat([inputs, expand_dims(cast(mask, inputs.dtype), -1)], -1)
        steps = _Steps(self, inputs.shape[-1].value if mask is not None else None, training)
        outputs, last = dynamic_rnn(steps, given, initial_state=state, dtype=dtypes.float32)
        states = nest.flatten(last)
        if self.stateful:
            self._keep_states(states)
        if self.return_sequences:
            result = outputs
        else:
            width = nest.flatten(size)[0]
            is_state = len(states) and _output_size(self.cell) == width and _returns_state(self.cell)
            result = states[0] if is_state else outputs[:, -1]
        return [result, *states] if self.return_state else result

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the steps, if they are returned."""
        found = [each for each in nest.flatten(mask) if each is not None]
        own = found[0] if found and self.return_sequences else None
        if self.return_state and own is not None:
            return [own] + [None] * len(nest.flatten(self.cell.state_size))
        return own

    def __getattr__(self, name: str) -> Any:
        cell = vars(self).get("cell")
        if cell is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(cell, name)


class _Steps(RNNCell):
    """A Keras cell as `dynamic_rnn` takes cells; the last input is the mask, if `width` is given."""

    def __init__(self, layer: RNN, width: int | None, training: Any) -> None:
        super().__init__(name=f"{layer.name}_steps")
        self._layer, self._width, self._phase = layer, width, training

    @property
    def state_size(self) -> Any:
        return _as_state(self._layer.cell.state_size)

    @property
    def output_size(self) -> Any:
        return _output_size(self._layer.cell)

    def call(self, inputs: Any, state: Any) -> Any:
        cell, kept = self._layer.cell, None
        if self._width is not None:
            inputs, kept = inputs[:, : self._width], inputs[:, self._width] > 0.5
        before = list(nest.flatten(state))
        output, after = _stepped(cell, inputs, before, self._phase)
        after = list(nest.flatten(after))
        if kept is not None:
            after = [where(kept, new, old) for new, old in zip(after, before, strict=True)]
            if output.shape.is_compatible_with(before[0].shape):
                output = where(kept, output, before[0])
        return output, nest.pack_sequence_as(_as_state(cell.state_size), after)


def _stepped(cell: Any, inputs: Any, states: list[Any], training: Any) -> Any:
    if isinstance(cell, Layer):
        from dtf import layers

        arguments = cell._completed({"states": states}, None) if training is None else {"states": states}
        parameters = _call_parameters(cell)
        if "training" in parameters and training is not None:
            arguments["training"] = training
        named = {("states" if "states" in parameters else parameters[1]): arguments.pop("states"), **arguments}
        return layers.Layer.__call__(cell, inputs, **named)
    return cell(inputs, states)


def _call_parameters(cell: Any) -> list[str]:
    import inspect

    return [each for each in inspect.signature(cell.call).parameters if each != "self"]


def _build(cell: Any, inputs: Any) -> None:
    """Makes the variables of a cell outside the loop."""
    step = inputs[:, 0]
    batch = shape_of(inputs)[0]
    states = [zeros([batch, size]) for size in nest.flatten(cell.state_size)]
    _stepped(cell, step, states, False)


def _as_state(size: Any) -> Any:
    if isinstance(size, list):
        return tuple(size)
    return size


def _output_size(cell: Any) -> Any:
    found = getattr(cell, "output_size", None)
    return nest.flatten(cell.state_size)[0] if found is None else found


def _returns_state(cell: Any) -> bool:
    return isinstance(cell, _Cell)


def _dropped(value: Any, rate: float, training: Any) -> Any:
    return while_training(training, lambda: dropout(value, rate=rate), value)


class _OfCell(RNN):
    """A recurrent layer with its own kind of cell."""

    _cell: Callable[..., Any]

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        own = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "name", "input_shape",
               "batch_input_shape", "input_dim", "input_length", "weights", "trainable", "activity_regularizer",
               "batch_size")  # fmt: skip
        kwargs.pop("implementation", None)
        kwargs.pop("time_major", None)
        kwargs.pop("dtype", None)
        given = {name: kwargs.pop(name) for name in own if name in kwargs}
        super().__init__(type(self)._cell(units, *args, **kwargs), **given)

    def build(self, input_shape: Any) -> None:
        """Makes the weights, under the layer's own name."""
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        cell = self.cell
        cell._scope, cell._graph = self._scope, self._graph
        cell._dtype = cell._dtype or dtypes.float32
        cell.build(shape)
        super().build(input_shape)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        of_cell = {key: value for key, value in self.cell.get_config().items()
                   if key not in ("name", "trainable", "dtype", "batch_input_shape")}  # fmt: skip
        own = {key: value for key, value in super().get_config().items() if key not in ("cell",)}
        kept = {key: getattr(self, key) for key in ("return_sequences", "return_state", "go_backwards", "unroll")}
        return {**own, **of_cell, **kept, "stateful": self.stateful}


class SimpleRNN(_OfCell):
    """output = state = activation(inputs @ kernel + state @ recurrent_kernel + bias), along sequences."""

    _cell = SimpleRNNCell


class LSTM(_OfCell):
    """Long short-term memory along sequences.

    Args:
      units: the size of the outputs.
      args, kwargs: those of `LSTMCell` and `RNN`.
    """

    _cell = LSTMCell


class GRU(_OfCell):
    """Gated recurrent units along sequences; the arguments are those of `GRUCell` and `RNN`."""

    _cell = GRUCell


def _sigmoid_gates(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"recurrent_activation": "sigmoid", **kwargs}


class CuDNNLSTM(LSTM):
    """LSTM whose gates are sigmoids; it runs on CPUs."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(units, **_sigmoid_gates(kwargs))


class CuDNNGRU(GRU):
    """GRU whose gates are sigmoids; it runs on CPUs. The reset gate is applied before the product."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(units, **_sigmoid_gates(kwargs))


def _forget_ones(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Tensor:
    """A bias of zeros whose second quarter, the forget gates', is ones."""
    units = int(shape[0]) // 4
    return concat([zeros([units], dtype), ones([units], dtype), zeros([2 * units], dtype)], 0)
