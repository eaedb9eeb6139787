"""The cells of tf.contrib.rnn: fused, normalised, gated and convolutional cells.

Owns one class for each kind; `rnn_wrappers` has the cells around other cells. Variables have TensorFlow's names.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn and the papers that are named
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf import raw_ops
from dtf.nn.rnn_cell import LSTMStateTuple, RNNCell

__all__ = [
    "CoupledInputForgetGateLSTMCell", "GRUBlockCell", "GRUBlockCellV2", "IndRNNCell", "IntersectionRNNCell",
    "LSTMBlockCell", "LayerNormBasicLSTMCell", "NASCell", "PhasedLSTMCell", "SRUCell", "SimpleCell", "UGRNNCell",
    "linear",
]  # fmt: skip

_OPS: Any = raw_ops  # its functions are made when they are used


def linear(values: Any, size: int, bias: bool = True, initializer: Any = None, bias_start: float = 0.0) -> Any:
    """[batch, size]: the values [batch, any] side by side, times the variable "kernel", plus "bias"."""
    joined = tf.concat(values, 1) if isinstance(values, list | tuple) else values
    kernel = tf.get_variable("kernel", [joined.get_shape()[1].value, size], joined.dtype, initializer)
    product = tf.matmul(joined, kernel)
    if not bias:
        return product
    start = tf.constant_initializer(bias_start)
    return tf.nn.bias_add(product, tf.get_variable("bias", [size], joined.dtype, start))


class SimpleCell(RNNCell):
    """Base of the cells below: states and outputs of `num_units` numbers."""

    def __init__(self, num_units: int, reuse: bool | None = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._units = num_units

    @property
    def state_size(self) -> Any:
        """The sizes of the state."""
        return self._units

    @property
    def output_size(self) -> Any:
        """The number of units."""
        return self._units


class _MemoryCell(SimpleCell):
    """Cells whose state is an LSTMStateTuple, or both of its parts side by side."""

    _is_tuple = True

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        sizes = LSTMStateTuple(self._units, self.output_size)
        return sizes if self._is_tuple else sum(sizes)

    def _parts(self, state: Any) -> Any:
        return state if self._is_tuple else tf.split(state, [self._units, self.output_size], 1)

    def _joined(self, c: Any, h: Any) -> Any:
        return LSTMStateTuple(c, h) if self._is_tuple else tf.concat([c, h], 1)


class LSTMBlockCell(_MemoryCell):
    """The long short-term memory in one op, without a projection.

    Args:
      num_units: the size of the state and the output.
      forget_bias: added to the gate that forgets.
      cell_clip: the bound of c to both sides; None or -1 for none.
      use_peephole: whether the gates see c.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn/LSTMBlockCell
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None, use_peephole: bool = False,
        dtype: Any = None, reuse: bool | None = None, name: str | None = "lstm_cell",
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse, name, dtype=dtype)
        self._forget_bias, self._use_peephole = forget_bias, use_peephole
        self._clip = cell_clip if cell_clip is not None else -1.0

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        depth, units = inputs.get_shape()[1].value, self._units
        kernel = tf.get_variable("kernel", [depth + units, 4 * units], inputs.dtype)
        bias = tf.get_variable("bias", [4 * units], inputs.dtype, tf.zeros_initializer())
        if self._use_peephole:
            peepholes = [tf.get_variable(f"w_{gate}_diag", [units], inputs.dtype) for gate in "ifo"]
        else:
            peepholes = [tf.zeros([units], inputs.dtype)] * 3
        found = _OPS.LSTMBlockCell(
            x=inputs, cs_prev=c, h_prev=h, w=kernel, wci=peepholes[0], wcf=peepholes[1], wco=peepholes[2], b=bias,
            forget_bias=self._forget_bias, cell_clip=self._clip, use_peephole=self._use_peephole,
        )  # fmt: skip
        return found[6], LSTMStateTuple(found[1], found[6])


class GRUBlockCell(SimpleCell):
    """The gated recurrent unit in one op.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn/GRUBlockCell
    """

    _names = ("w_ru", "w_c", "b_ru", "b_c")

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None, reuse: bool | None = None,
        name: str | None = "gru_cell",
    ) -> None:  # fmt: skip
        units = num_units if num_units is not None else cell_size
        if units is None:
            raise ValueError("GRUBlockCell needs num_units")
        super().__init__(units, reuse, name)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        units = self._units
        rows = inputs.get_shape()[1].value + units
        gates = tf.get_variable(self._names[0], [rows, 2 * units])
        candidate = tf.get_variable(self._names[1], [rows, units])
        gate_bias = tf.get_variable(self._names[2], [2 * units], initializer=tf.constant_initializer(1.0))
        bias = tf.get_variable(self._names[3], [units], initializer=tf.constant_initializer(0.0))
        found = _OPS.GRUBlockCell(x=inputs, h_prev=state, w_ru=gates, w_c=candidate, b_ru=gate_bias, b_c=bias)
        return found[3], found[3]


class GRUBlockCellV2(GRUBlockCell):
    """GRUBlockCell with the variable names of GRUCell, so that they share checkpoints."""

    _names = ("gates/kernel", "candidate/kernel", "gates/bias", "candidate/bias")


class LayerNormBasicLSTMCell(_MemoryCell):
    """A long short-term memory with layer normalization and recurrent dropout.

    Args:
      num_units: the size of the state and the output.
      layer_norm: whether to normalise the gates and c.
      norm_gain, norm_shift: the initial value of the scales and offsets.
      dropout_keep_prob: the probability to keep a candidate value.

    Source: arXiv 1607.06450 and 1603.05118
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, input_size: None = None, activation: Any = None,
        layer_norm: bool = True, norm_gain: float = 1.0, norm_shift: float = 0.0, dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None, reuse: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse)
        self._activation = activation or tf.tanh
        self._forget_bias, self._keep, self._seed = forget_bias, dropout_keep_prob, dropout_prob_seed
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift

    def _normal(self, values: Any, scope: str) -> Any:
        if not self._layer_norm:
            return values
        with tf.variable_scope(scope):
            size = [values.get_shape()[-1].value]
            gamma = tf.get_variable("gamma", size, values.dtype, tf.constant_initializer(self._gain))
            beta = tf.get_variable("beta", size, values.dtype, tf.constant_initializer(self._shift))
        mean, variance = tf.nn.moments(values, [-1], keep_dims=True)
        return tf.nn.batch_normalization(values, mean, variance, beta, gamma, 1e-12)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        gates = linear([inputs, h], 4 * self._units, bias=not self._layer_norm)
        scopes = ("input", "transform", "forget", "output")
        write, new, forget, read = (
            self._normal(each, scope) for each, scope in zip(tf.split(gates, 4, 1), scopes, strict=True)
        )
        candidate = self._activation(new)
        if not isinstance(self._keep, float) or self._keep < 1:
            candidate = tf.nn.dropout(candidate, self._keep, seed=self._seed)
        c = self._normal(c * tf.sigmoid(forget + self._forget_bias) + tf.sigmoid(write) * candidate, "state")
        h = self._activation(c) * tf.sigmoid(read)
        return h, LSTMStateTuple(c, h)


class CoupledInputForgetGateLSTMCell(_MemoryCell):
    """A long short-term memory that writes as much as it forgets: one gate for both.

    Args: as for LSTMCell.

    Source: Greff et al. (2015), arXiv 1503.04069
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, initializer: Any = None, num_proj: int | None = None,
        proj_clip: float | None = None, num_unit_shards: int = 1, num_proj_shards: int = 1, forget_bias: float = 1.0,
        state_is_tuple: bool = True, activation: Any = None, reuse: bool | None = None, layer_norm: bool = False,
        norm_gain: float = 1.0, norm_shift: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse)
        if layer_norm:
            raise NotImplementedError("layer_norm is not supported here; use LayerNormBasicLSTMCell")
        self._peepholes, self._initializer, self._forget_bias = use_peepholes, initializer, forget_bias
        self._projected, self._proj_clip = num_proj, proj_clip
        self._is_tuple, self._activation = state_is_tuple, activation or tf.tanh

    @property
    def output_size(self) -> Any:
        """The number of units, or of the projection."""
        return self._projected or self._units

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = self._parts(state)
        new, forget, read = tf.split(linear([inputs, h], 3 * self._units, initializer=self._initializer), 3, 1)
        forget = forget + self._forget_bias
        if self._peepholes:
            forget = forget + tf.get_variable("w_f_diag", [self._units], initializer=self._initializer) * c
        keep = tf.sigmoid(forget)
        c = keep * c + (1 - keep) * self._activation(new)
        if self._peepholes:
            read = read + tf.get_variable("w_o_diag", [self._units], initializer=self._initializer) * c
        h = tf.sigmoid(read) * self._activation(c)
        if self._projected is not None:
            with tf.variable_scope("projection"):
                h = linear(h, self._projected, bias=False, initializer=self._initializer)
            if self._proj_clip is not None:
                h = tf.clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, self._joined(c, h)


class UGRNNCell(SimpleCell):
    """The update gate network: one gate between the last state and the candidate.

    Source: Collins et al. (2016), arXiv 1611.09913
    """

    def __init__(
        self, num_units: int, initializer: Any = None, forget_bias: float = 1.0, activation: Any = None,
        reuse: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse)
        self._initializer, self._forget_bias, self._activation = initializer, forget_bias, activation or tf.tanh

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            gate, candidate = tf.split(linear([inputs, state], 2 * self._units), 2, 1)
        gate = tf.sigmoid(gate + self._forget_bias)
        state = gate * state + (1 - gate) * self._activation(candidate)
        return state, state


class IntersectionRNNCell(SimpleCell):
    """The +RNN cell: gates for the recurrence and for the way past it.

    Source: Collins et al. (2016), arXiv 1611.09913
    """

    def __init__(
        self, num_units: int, num_in_proj: int | None = None, initializer: Any = None, forget_bias: float = 1.0,
        y_activation: Any = None, reuse: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse)
        self._in_projection, self._initializer, self._forget_bias = num_in_proj, initializer, forget_bias
        self._activation = y_activation or tf.nn.relu

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        units = self._units
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            if inputs.get_shape()[1].value != units:
                if self._in_projection != units:
                    raise ValueError(f"inputs must have {units} units, or num_in_proj must be {units}")
                with tf.variable_scope("in_projection"):
                    inputs = linear(inputs, units)
            hidden = linear([inputs, state], 4 * units)
        new_state, gate_state, new_output, gate_output = tf.split(hidden, 4, 1)
        gate_state = tf.sigmoid(gate_state + self._forget_bias)
        gate_output = tf.sigmoid(gate_output + self._forget_bias)
        output = gate_output * inputs + (1 - gate_output) * self._activation(new_output)
        return output, gate_state * state + (1 - gate_state) * tf.tanh(new_state)


class IndRNNCell(SimpleCell):
    """A cell whose units see their own last values only.

    Source: Li et al. (2018), arXiv 1803.04831
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: bool | None = None, name: str | None = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse, name, dtype=dtype)
        self._activation = activation or tf.tanh

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        kernel = tf.get_variable("kernel_w", [inputs.get_shape()[1].value, self._units], inputs.dtype)
        start = tf.random_uniform_initializer(-1, 1)
        own = tf.get_variable("kernel_u", [self._units], inputs.dtype, start)
        bias = tf.get_variable("bias", [self._units], inputs.dtype, tf.zeros_initializer())
        output = self._activation(tf.nn.bias_add(tf.matmul(inputs, kernel) + state * own, bias))
        return output, output


class NASCell(_MemoryCell):
    """The cell that a search over architectures found.

    Source: Zoph and Le (2016), arXiv 1611.01578
    """

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False, reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse, **kwargs)
        self._projected, self._use_bias = num_proj, use_bias

    @property
    def output_size(self) -> Any:
        """The number of units, or of the projection."""
        return self._projected or self._units

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        units = self._units
        kernel = tf.get_variable("kernel", [inputs.get_shape()[1].value, 8 * units], inputs.dtype)
        recurrent = tf.get_variable("recurrent_kernel", [self.output_size, 8 * units], inputs.dtype)
        from_h = tf.matmul(h, recurrent)
        if self._use_bias:
            start = tf.zeros_initializer()
            from_h = tf.nn.bias_add(from_h, tf.get_variable("bias", [8 * units], inputs.dtype, start))
        a, b = tf.split(from_h, 8, 1), tf.split(tf.matmul(inputs, kernel), 8, 1)
        first = [
            tf.sigmoid(b[0] + a[0]), tf.nn.relu(b[1] + a[1]), tf.sigmoid(b[2] + a[2]), tf.nn.relu(b[3] * a[3]),
            tf.tanh(b[4] + a[4]), tf.sigmoid(b[5] + a[5]), tf.tanh(b[6] + a[6]), tf.sigmoid(b[7] + a[7]),
        ]  # fmt: skip
        second = [
            tf.tanh(first[0] * first[1]), tf.tanh(first[2] + first[3]), tf.tanh(first[4] * first[5]),
            tf.sigmoid(first[6] + first[7]),
        ]  # fmt: skip
        second[0] = tf.tanh(second[0] + c)
        c = second[0] * second[1]
        h = tf.tanh(c * tf.tanh(second[2] + second[3]))
        if self._projected is not None:
            h = tf.matmul(h, tf.get_variable("projection_weights", [units, self._projected], inputs.dtype))
        return h, LSTMStateTuple(c, h)


class SRUCell(SimpleCell):
    """The simple recurrent unit: its gates see the inputs only.

    Source: Lei et al. (2017), arXiv 1709.02755
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: bool | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(num_units, reuse, name, **kwargs)
        self._activation = activation or tf.tanh

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        units = self._units
        kernel = tf.get_variable("kernel", [inputs.get_shape()[1].value, 4 * units], inputs.dtype)
        bias = tf.get_variable("bias", [2 * units], inputs.dtype, tf.zeros_initializer())
        new, forget, read, highway = tf.split(tf.matmul(inputs, kernel), 4, 1)
        forget, read = tf.split(tf.sigmoid(tf.nn.bias_add(tf.concat([forget, read], 1), bias)), 2, 1)
        c = forget * state + (1.0 - forget) * new
        return read * self._activation(c) + (1.0 - read) * highway, c


class PhasedLSTMCell(_MemoryCell):
    """A long short-term memory that updates while its clock is open. Inputs are (time [batch, 1], values).

    Source: Neil et al. (2016), arXiv 1610.09513
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, leak: float = 0.001, ratio_on: float = 0.1,
        trainable_ratio_on: bool = True, period_init_min: float = 1.0, period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, reuse)
        self._peepholes, self._leak, self._ratio, self._train_ratio = use_peepholes, leak, ratio_on, trainable_ratio_on
        self._periods = period_init_min, period_init_max

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        import math

        c, h = state
        time, values = inputs
        units = self._units
        seen = [values, h, c] if self._peepholes else [values, h]
        with tf.variable_scope("mask_gates"):
            write, forget = tf.split(tf.sigmoid(linear(seen, 2 * units, bias_start=1.0)), 2, 1)
        with tf.variable_scope("new_input"):
            new = tf.tanh(linear([values, h], units))
        updated = c * forget + write * new
        with tf.variable_scope("output_gate"):
            read = tf.sigmoid(linear([values, h, updated] if self._peepholes else [values, h], units))
        low, high = (math.log(each) for each in self._periods)
        log_period = tf.get_variable("period", [units], tf.float32, tf.random_uniform_initializer(low, high))
        period = tf.exp(log_period)
        phase = tf.get_variable(
            "phase", [units], tf.float32, lambda shape, dtype=None, partition_info=None:
            tf.random_uniform(shape, 0.0, 1.0) * tf.exp(log_period.initialized_value()),
        )  # fmt: skip
        start = tf.constant_initializer(self._ratio)
        ratio = tf.get_variable("ratio_on", [units], tf.float32, start, trainable=self._train_ratio)
        cycle = tf.floormod(tf.cast(time, tf.float32) - phase, period) / period
        half = 0.5 * ratio
        opened = tf.where(cycle < tf.broadcast_to(half, tf.shape(cycle)), cycle / half, 2.0 - cycle / half)
        openness = tf.where(cycle < tf.broadcast_to(ratio, tf.shape(cycle)), opened, self._leak * cycle)
        new_h = tf.tanh(updated) * read
        c, h = openness * updated + (1 - openness) * c, openness * new_h + (1 - openness) * h
        return h, LSTMStateTuple(c, h)
