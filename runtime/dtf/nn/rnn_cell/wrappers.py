"""Cells made of other cells: stacked, with dropout, with residual connections, on a device.

A wrapper has no scope of its own: the variables of the wrapped cell have the names that they have without it.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell/DropoutWrapper and the others' pages
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import device, name_scope
from dtf.build.ops import joining
from dtf.build.ops import math as math_ops
from dtf.build.ops import nn as nn_ops
from dtf.build.ops import random as random_ops
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.build.variables import Variable
from dtf.nn.rnn_cell.base import RNNCell, check_is_cell, sizes_with_batch
from dtf.nn.rnn_cell.cells import LSTMStateTuple

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = ["DeviceWrapper", "DropoutWrapper", "MultiRNNCell", "ResidualWrapper"]


class MultiRNNCell(RNNCell):
    """Cells one over the other: each takes the output of the one below; the last one's is the output.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell/MultiRNNCell
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        """
        Args:
          cells: from the lowest to the highest.
          state_is_tuple: whether the state is a tuple of the cells' states, or their concatenation [batch, sizes].

        Raises:
          TypeError: `cells` is not a list or tuple of cells.
          ValueError: it is empty, or states that are tuples are to be concatenated.
        """
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, list | tuple):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        for number, cell in enumerate(cells):
            check_is_cell(cell, f"cells[{number}]")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. State sizes are: "
                f"{[cell.state_size for cell in cells]}"
            )

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    @property
    def trainable_weights(self) -> list[Variable]:
        return _weights(self._cells, "trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Variable]:
        return _weights(self._cells, "non_trainable_weights" if self.trainable else "weights")

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with name_scope(type(self).__name__ + "ZeroState"):
            return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> Any:
        if self._state_is_tuple:
            if not isinstance(state, list | tuple) or len(state) != len(self._cells):
                raise ValueError(f"Expected state to be a tuple of length {len(self._cells)}, but received: {state}")
        else:
            state = joining.split(state, [cell.state_size for cell in self._cells], axis=1)
        after = []
        for number, (cell, before) in enumerate(zip(self._cells, state, strict=True)):
            with variable_scope(f"cell_{number}"):
                inputs, new = cell(inputs, before)
            after.append(new)
        return inputs, tuple(after) if self._state_is_tuple else joining.concat(after, 1)


class _Wrapper(RNNCell):
    """Base of all wrappers: passes everything on."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_is_cell(cell)
        self._cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self._cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    @property
    def trainable_weights(self) -> list[Variable]:
        return _weights([self._cell], "trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Variable]:
        return _weights([self._cell], "non_trainable_weights" if self.trainable else "weights")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class ResidualWrapper(_Wrapper):
    """Adds the inputs to the outputs (arXiv 1609.08144); both have the same sizes."""

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any) -> None:
        """residual_fn: (inputs, outputs) -> outputs, instead of the sum."""
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        outputs, state = _called(self._cell, inputs, state, scope)
        return (self._residual_fn or _sum)(inputs, outputs), state


class DeviceWrapper(_Wrapper):
    """The cell on a device."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        """device: a device for `tf.device`."""
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with device(self._device):
            return super().zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        with device(self._device):
            return _called(self._cell, inputs, state, scope)


class DropoutWrapper(_Wrapper):
    """Dropout of the inputs, outputs and states of a cell; an LSTM's cell state is not dropped.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell/DropoutWrapper
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          input_keep_prob, output_keep_prob, state_keep_prob: numbers or scalar tensors, from 0 to 1.
          variational_recurrent: whether all steps drop the same elements (arXiv 1512.05287).
          input_size: the sizes of the inputs without the batch, and
          dtype: of inputs, outputs and states; both are needed if it is variational.
          dropout_state_filter_visitor: a function from a state (or a part of it) to whether to drop elements of it: a
            bool or a structure of bools. By default the `c` of an LSTMStateTuple and TensorArrays are not dropped.

        Raises:
          TypeError: `cell` is not a cell.
          ValueError: a probability is not from 0 to 1, or an argument is missing if it is variational.
        """
        super().__init__(cell, dtype=dtype, **kwargs)
        self._input_keep = _probability("input_keep_prob", input_keep_prob)
        self._output_keep = _probability("output_keep_prob", output_keep_prob)
        self._state_keep = _probability("state_keep_prob", state_keep_prob)
        self._seed = seed
        self._filter = dropout_state_filter_visitor or _droppable
        if not callable(self._filter):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            if input_size is None and _drops(self._input_keep):
                raise ValueError("When variational_recurrent=True and input_keep_prob < 1.0, input_size is required")
            for use, sizes in (("input", input_size), ("state", self.state_size), ("output", self.output_size)):
                if use != "input" or sizes is not None:
                    self._noise[use] = self._noise_for(use, sizes, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        if _drops(self._input_keep):
            inputs = self._dropped("input", inputs, self._input_keep)
        output, state = _called(self._cell, inputs, state, scope)
        if _drops(self._state_keep):
            state = self._dropped("state", state, self._state_keep, _chosen(self._filter, state))
        if _drops(self._output_keep):
            output = self._dropped("output", output, self._output_keep)
        return output, state

    def _noise_for(self, use: str, sizes: Any, dtype: Any) -> Any:
        flat = [
            random_ops.random_uniform(sizes_with_batch(1, size), dtype=dtype, seed=self._seed_of(use, index))
            for index, size in enumerate(nest.flatten(sizes))
        ]
        return nest.pack_sequence_as(sizes, flat)

    def _dropped(self, use: str, values: Any, keep: Any, chosen: Any = None) -> Any:
        noise = nest.flatten(self._noise[use]) if use in self._noise else None
        wanted = [True] * len(nest.flatten(values)) if chosen is None else nest.flatten(chosen)
        dropped = []
        for index, (value, drop) in enumerate(zip(nest.flatten(values), wanted, strict=True)):
            if not drop:
                dropped.append(value)
            elif noise is None:
                dropped.append(nn_ops.dropout(value, keep_prob=keep, seed=self._seed_of(use, index)))
            else:
                kept = math_ops.floor(noise[index] + convert_to_tensor(keep, noise[index].dtype))
                result = value / convert_to_tensor(keep, value.dtype) * kept
                result.set_shape(value.shape)
                dropped.append(result)
        return nest.pack_sequence_as(values, dropped)

    def _seed_of(self, use: str, index: int) -> int | None:
        """A seed that differs from use to use and from element to element."""
        if self._seed is None:
            return None
        digest = hashlib.md5(f"{self._seed}{use}_{index}".encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) & 0x7FFFFFFF


def _called(cell: Any, inputs: Any, state: Any, scope: Any) -> Any:
    return cell(inputs, state) if scope is None else cell(inputs, state, scope=scope)


def _sum(inputs: Any, outputs: Any) -> Any:
    def add(one: Any, other: Any) -> Tensor:
        one = convert_to_tensor(one)
        one.shape.assert_is_compatible_with(other.shape)
        return one + other

    return nest.map_structure(add, inputs, outputs)


def _droppable(state: Any) -> Any:
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(state, TensorArray)


def _chosen(visit: Callable[[Any], Any], state: Any) -> Any:
    """The result of `visit` for the parts of a state: False for a structure holds for all parts in it, True descends
    into it."""
    answer = visit(state)
    if not nest.is_nested(state):
        return answer
    if nest.is_nested(answer):
        nest.assert_same_structure(state, answer)
        return answer
    if not answer:
        return nest.map_structure(lambda _: False, state)
    parts = [state[key] for key in sorted(state)] if isinstance(state, dict) else state
    return [_chosen(visit, part) for part in parts]


def _probability(argument: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        return value
    value = float(value)
    if not 0 <= value <= 1:
        raise ValueError(f"Parameter {argument} must be between 0 and 1: {value}")
    return value


def _drops(keep: Any) -> bool:
    return not isinstance(keep, float) or keep < 1


def _weights(cells: Sequence[Any], kind: str) -> list[Variable]:
    """The variables of cells, each once: a cell may be there twice."""
    found = {id(each): each for cell in cells for each in getattr(cell, kind, [])}
    return list(found.values())
