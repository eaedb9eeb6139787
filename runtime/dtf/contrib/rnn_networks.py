"""Networks of tf.contrib.rnn: stacks of layers in both directions, and layers that take a whole sequence at once.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf import raw_ops
from dtf.build import nest
from dtf.nn.rnn_cell import LSTMStateTuple

__all__ = [
    "FusedRNNCell", "FusedRNNCellAdaptor", "LSTMBlockFusedCell", "LSTMBlockWrapper", "TimeReversedFusedRNN",
    "best_effort_input_batch_size", "stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn",
    "transpose_batch_time",
]  # fmt: skip

_OPS: Any = raw_ops  # its functions are made when they are used


def stack_bidirectional_dynamic_rnn(
    cells_fw: Any, cells_bw: Any, inputs: Any, initial_states_fw: Any = None, initial_states_bw: Any = None,
    dtype: Any = None, sequence_length: Any = None, parallel_iterations: int | None = None, time_major: bool = False,
    scope: Any = None, swap_memory: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Layers of two directions, each on the joined outputs of the layer below.

    Returns:
      (outputs [batch, time, both sizes], the last states forward, and backward: one for each layer).

    Raises:
      ValueError: the lists of cells or states are not of one length, or are empty.
    """
    _check_layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    forward, backward = [], []
    with tf.variable_scope(scope, "stack_bidirectional_rnn"):
        for number, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with tf.variable_scope(f"cell_{number}"):
                outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
                    fw, bw, inputs, sequence_length=sequence_length,
                    initial_state_fw=initial_states_fw[number] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[number] if initial_states_bw else None,
                    dtype=dtype, parallel_iterations=parallel_iterations, time_major=time_major,
                    swap_memory=swap_memory,
                )  # fmt: skip
                inputs = tf.concat(outputs, 2)
            forward.append(state_fw)
            backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)


def stack_bidirectional_rnn(
    cells_fw: Any, cells_bw: Any, inputs: Any, initial_states_fw: Any = None, initial_states_bw: Any = None,
    dtype: Any = None, sequence_length: Any = None, scope: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """As `stack_bidirectional_dynamic_rnn`, for a list of inputs, one for each step."""
    _check_layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    forward, backward = [], []
    with tf.variable_scope(scope, "stack_bidirectional_rnn"):
        for number, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with tf.variable_scope(f"cell_{number}") as layer:
                inputs, state_fw, state_bw = tf.nn.static_bidirectional_rnn(
                    fw, bw, inputs,
                    initial_state_fw=initial_states_fw[number] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[number] if initial_states_bw else None,
                    dtype=dtype, sequence_length=sequence_length, scope=layer,
                )  # fmt: skip
            forward.append(state_fw)
            backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)


def _check_layers(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> None:
    for name, cells in [("cells_fw", cells_fw), ("cells_bw", cells_bw)]:
        if not isinstance(cells, list) or not cells:
            raise ValueError(f"{name} must be a list of one cell or more.")
    if len(cells_fw) != len(cells_bw):
        raise ValueError(f"cells_fw has {len(cells_fw)} cells and cells_bw {len(cells_bw)}; they must be as many.")
    for name, states in [("initial_states_fw", states_fw), ("initial_states_bw", states_bw)]:
        if states is not None and len(states) != len(cells_fw):
            raise ValueError(f"{name} must be a list of {len(cells_fw)} states, one for each layer.")


def transpose_batch_time(x: Any) -> Any:
    """The first two dimensions changed over, where there are two."""
    x = tf.convert_to_tensor(x)
    rank = x.get_shape().ndims
    return x if rank is not None and rank < 2 else tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], 0))


def best_effort_input_batch_size(flat_input: Any) -> Any:
    """The batch size of inputs [time, batch, ...]: a number if known, else a tensor."""
    for each in flat_input:
        size = each.get_shape()[1].value if each.get_shape().ndims else None
        if size is not None:
            return size
    return tf.shape(flat_input[0])[1]


class FusedRNNCell:
    """A layer that takes inputs [time, batch, size] at once and returns (outputs, last state)."""

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __call__.")


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell as a fused layer."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._dynamic = cell, use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        is_list = isinstance(inputs, list)
        if self._dynamic:
            outputs, state = tf.nn.dynamic_rnn(
                self._cell, tf.stack(inputs) if is_list else inputs, sequence_length, initial_state, dtype,
                time_major=True, scope=scope,
            )  # fmt: skip
            return (tf.unstack(outputs) if is_list else outputs), state
        steps = inputs if is_list else tf.unstack(inputs)
        outputs, state = tf.nn.static_rnn(self._cell, steps, initial_state, dtype, sequence_length, scope)
        return (outputs if is_list else tf.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """The layer on the reversed sequence; its outputs are in the order of the inputs."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        def reversed_(value: Any) -> Any:
            if isinstance(value, list):
                return value[::-1]
            if sequence_length is None:
                return tf.reverse(value, [0])
            return tf.reverse_sequence(value, sequence_length, seq_axis=0, batch_axis=1)

        outputs, state = self._cell(reversed_(inputs), initial_state, dtype, sequence_length, scope)
        return nest.map_structure(reversed_, outputs) if not isinstance(outputs, list) else outputs[::-1], state


class LSTMBlockFusedCell(FusedRNNCell):
    """A long short-term memory over a whole sequence in one op.

    Args:
      num_units: the size of the state and the outputs.
      forget_bias: added to the gate that forgets.
      cell_clip: the bound of c to both sides; None for none.
      use_peephole: whether the gates see c.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn/LSTMBlockFusedCell
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None, use_peephole: bool = False,
        reuse: bool | None = None, dtype: Any = None, name: str = "lstm_fused_cell",
    ) -> None:  # fmt: skip
        self._units, self._forget_bias, self._use_peephole = num_units, forget_bias, use_peephole
        self._clip, self._reuse, self._name = -1.0 if cell_clip is None else cell_clip, reuse, name
        self._scope: Any = None

    @property
    def num_units(self) -> int:
        """The size of the state and the outputs."""
        return self._units

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        """(outputs [time, batch, units], LSTMStateTuple of the last steps)."""
        is_list = isinstance(inputs, list)
        inputs = tf.stack(inputs) if is_list else tf.convert_to_tensor(inputs)
        again = self._scope is not None or self._reuse
        with tf.variable_scope(self._scope or scope, self._name, reuse=again or None) as here:
            self._scope = here
            outputs, state = self._run(inputs, initial_state, sequence_length)
        return (tf.unstack(outputs) if is_list else outputs), state

    def _run(self, inputs: Any, initial_state: Any, sequence_length: Any) -> Any:
        units, kind = self._units, inputs.dtype
        kernel = tf.get_variable("kernel", [inputs.get_shape()[2].value + units, 4 * units], kind)
        bias = tf.get_variable("bias", [4 * units], kind, tf.zeros_initializer())
        if self._use_peephole:
            peepholes = [tf.get_variable(f"w_{gate}_diag", [units], kind) for gate in "ifo"]
        else:
            peepholes = [tf.zeros([units], kind)] * 3
        steps, batch = tf.shape(inputs)[0], tf.shape(inputs)[1]
        if initial_state is None:
            c = h = tf.zeros(tf.stack([batch, units]), kind)
        else:
            c, h = initial_state
        longest = tf.to_int64(steps if sequence_length is None else tf.reduce_max(sequence_length))
        found = _OPS.BlockLSTM(
            seq_len_max=longest, x=inputs, cs_prev=c, h_prev=h, w=kernel, wci=peepholes[0], wcf=peepholes[1],
            wco=peepholes[2], b=bias, forget_bias=self._forget_bias, cell_clip=self._clip,
            use_peephole=self._use_peephole,
        )  # fmt: skip
        cells, outputs = found[1], found[6]
        if sequence_length is None:
            return outputs, LSTMStateTuple(cells[-1], outputs[-1])
        lengths = tf.to_int32(sequence_length)
        mask = tf.expand_dims(tf.transpose(tf.sequence_mask(lengths, steps, kind)), -1)
        indices = tf.stack([lengths, tf.range(batch)], 1)
        all_cells = tf.concat([tf.expand_dims(c, 0), cells], 0)
        all_outputs = tf.concat([tf.expand_dims(h, 0), outputs], 0)
        return outputs * mask, LSTMStateTuple(tf.gather_nd(all_cells, indices), tf.gather_nd(all_outputs, indices))


LSTMBlockWrapper = LSTMBlockFusedCell
