"""The cells: Elman's, the long short-term memories, and the gated recurrent unit.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell and the papers that are named
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dtf.build.initializers import constant_initializer, zeros_initializer
from dtf.build.ops import joining
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import nn as nn_ops
from dtf.build.ops.clip import clip_by_value
from dtf.build.partitioned import fixed_size_partitioner
from dtf.build.tensor import Tensor
from dtf.layers.base import InputSpec
from dtf.layers.choices import Activation, checked_activation, known_size
from dtf.nn.rnn_cell.base import LayerCell
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

__all__ = ["BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell", "LSTMStateTuple"]


class LSTMStateTuple(NamedTuple):
    """The state of a long short-term memory: its cell state, and its last output."""

    c: Any
    h: Any

    @property
    def dtype(self) -> DType:
        """The dtype of both.

        Raises:
          TypeError: they are not of one.
        """
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


class BasicRNNCell(LayerCell):
    """output = state = activation([inputs, state] @ kernel + bias), the network of Elman (1990)."""

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """activation: tanh by default. reuse: whether to use existing variables of the scope."""
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = num_units
        self._activation = checked_activation(activation) or math_ops.tanh
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> int:
        return self._units

    @property
    def output_size(self) -> int:
        return self._units

    def build(self, input_shape: Any) -> None:
        input_shape = TensorShape(input_shape)
        depth = known_size(input_shape, -1, self.name)
        self._kernel = self.add_weight("kernel", [depth + self._units, self._units])
        self._bias = self.add_weight("bias", [self._units], initializer=zeros_initializer())
        super().build(input_shape)

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        output = self._activation(_linear([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(LayerCell):
    """The gated recurrent unit, arXiv 1406.1078.

    reset, update = split(sigmoid([inputs, state] @ gates/kernel + gates/bias))
    candidate = activation([inputs, reset * state] @ candidate/kernel + candidate/bias)
    output = state = update * state + (1 - update) * candidate

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell/GRUCell
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          activation: tanh by default.
          bias_initializer: the initializer of both biases. By default the gates' bias starts with ones, so that
            nothing is forgotten, and the candidate's bias with zeros.
        """
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = num_units
        self._activation = checked_activation(activation) or math_ops.tanh
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> int:
        return self._units

    @property
    def output_size(self) -> int:
        return self._units

    def build(self, input_shape: Any) -> None:
        input_shape = TensorShape(input_shape)
        rows = known_size(input_shape, -1, self.name) + self._units
        ones, zeros = constant_initializer(1.0), zeros_initializer()
        self._gates = (
            self.add_weight("gates/kernel", [rows, 2 * self._units], initializer=self._kernel_initializer),
            self.add_weight("gates/bias", [2 * self._units], initializer=self._bias_initializer or ones),
        )
        self._candidate = (
            self.add_weight("candidate/kernel", [rows, self._units], initializer=self._kernel_initializer),
            self.add_weight("candidate/bias", [self._units], initializer=self._bias_initializer or zeros),
        )
        super().build(input_shape)

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        gates = math_ops.sigmoid(_linear([inputs, state], *self._gates))
        reset, update = joining.split(gates, 2, axis=1)
        candidate = self._activation(_linear([inputs, reset * state], *self._candidate))
        output = update * state + (1 - update) * candidate
        return output, output


class LSTMCell(LayerCell):
    """The long short-term memory with forget gate, and optionally with peepholes and a projection (arXiv 1402.1128).

    i, j, f, o = split([inputs, h] @ kernel + bias)
    c = sigmoid(f + forget_bias + w_f_diag * c) * c + sigmoid(i + w_i_diag * c) * activation(j)
    h = sigmoid(o + w_o_diag * c) * activation(c) @ projection/kernel

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell/LSTMCell
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          cell_clip: the bound of c to both sides.
          initializer: of the kernels and the peepholes.
          num_proj: the size of the outputs, which then are projected; num_units without by default.
          proj_clip: the bound of the projected outputs to both sides.
          num_unit_shards, num_proj_shards: into how many parts to divide the kernel and the projection.
          state_is_tuple: whether the state is an LSTMStateTuple or one tensor [batch, c and h].
          activation: tanh by default.
        """
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units, self._use_peepholes = num_units, use_peepholes
        self._cell_clip, self._proj_clip = cell_clip, proj_clip
        self._initializer = initializer
        self._projected = num_proj
        self._unit_shards, self._proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = checked_activation(activation) or math_ops.tanh
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> Any:
        sizes = LSTMStateTuple(self._units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._projected or self._units

    def build(self, input_shape: Any) -> None:
        input_shape = TensorShape(input_shape)
        depth = known_size(input_shape, -1, self.name)
        self._kernel = self._add_kernel("kernel", [depth + self.output_size, 4 * self._units], self._unit_shards)
        self._bias = self.add_weight("bias", [4 * self._units], initializer=zeros_initializer())
        if self._use_peepholes:
            self._forget_peephole, self._input_peephole, self._output_peephole = (
                self.add_weight(f"w_{gate}_diag", [self._units], initializer=self._initializer) for gate in "fio"
            )
        if self._projected is not None:
            self._projection = self._add_kernel("projection/kernel", [self._units, self._projected], self._proj_shards)
        super().build(input_shape)

    def _add_kernel(self, name: str, shape: list[int], shards: int | None) -> Any:
        partitioner = None if shards is None else fixed_size_partitioner(shards)
        return self.add_weight(name, shape, initializer=self._initializer, partitioner=partitioner)

    def call(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        kept, before = state if self._state_is_tuple else joining.split(
            state, [self._units, self.output_size], axis=1
        )
        gates = _linear([inputs, before], self._kernel, self._bias)
        write, new, forget, read = joining.split(gates, 4, axis=1)
        forget = forget + self._forget_bias
        if self._use_peepholes:
            forget, write = forget + self._forget_peephole * kept, write + self._input_peephole * kept
        kept = math_ops.sigmoid(forget) * kept + math_ops.sigmoid(write) * self._activation(new)
        if self._cell_clip is not None:
            kept = clip_by_value(kept, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            read = read + self._output_peephole * kept
        output = math_ops.sigmoid(read) * self._activation(kept)
        if self._projected is not None:
            output = linalg_ops.matmul(output, self._projection)
            if self._proj_clip is not None:
                output = clip_by_value(output, -self._proj_clip, self._proj_clip)
        return output, LSTMStateTuple(kept, output) if self._state_is_tuple else joining.concat([kept, output], 1)


class BasicLSTMCell(LSTMCell):
    """The long short-term memory without peepholes, projection and bounds: `LSTMCell` with fewer arguments."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """forget_bias: added to the gate that forgets. activation: tanh by default."""
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
            **kwargs,
        )


def _linear(values: list[Tensor], kernel: Any, bias: Any) -> Tensor:
    return nn_ops.bias_add(linalg_ops.matmul(joining.concat(values, 1), kernel), bias)
