"""Recurrent networks as long graphs: one copy of the cell's operations for each step of a list of inputs.

For short sequences of one length; `rnn_loops` works for any number of steps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/static_rnn and static_bidirectional_rnn
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops import joining, rearranging
from dtf.build.ops import math as math_ops
from dtf.build.ops.array import identity
from dtf.build.variable_scope import variable_scope
from dtf.nn.rnn_cell.base import check_is_cell
from dtf.nn.rnn_steps import checked_lengths, first_state, masked_step, size_in_all
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"]


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """The steps of a cell over a list of inputs.

    Args:
      cell: an RNNCell.
      inputs: for each step [batch, size], or a structure of tensors.
      initial_state: as the cell's `zero_state`, which it is by default.
      dtype: of the first state, if that is not given.
      sequence_length: an integer vector [batch]; after the end of a sequence the outputs are zeros, and the state is
        kept.
      scope: of the variables; "rnn" by default.

    Returns:
      (the list of the outputs, the last state)

    Raises:
      TypeError: `cell` is not a cell, or `inputs` is not a list.
      ValueError: there are no inputs, they differ in their batch, or neither a first state nor a dtype is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/static_rnn
    """
    check_is_cell(cell)
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"inputs must be a sequence of the steps' inputs. Received: {inputs}")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope(scope or "rnn") as names:
        values = [nest.map_structure(lambda each: convert_to_tensor(each), each) for each in inputs]
        batch = size_in_all([tensor for each in values for tensor in nest.flatten(each)], 0)
        lengths = None if sequence_length is None else checked_lengths(sequence_length, batch)
        state = first_state(cell, initial_state, batch, dtype)
        outputs = []
        for time, value in enumerate(values):
            if time:
                names.reuse_variables()
            output, state = masked_step(cell, value, state, time, lengths, batch)
            outputs.append(output)
        return outputs, state


class StateSaver(Protocol):
    """Keeps the states of sequences between the steps of a session, by name."""

    def state(self, name: str) -> Any: ...

    def save_state(self, name: str, value: Any) -> Any: ...


def static_state_saving_rnn(
    cell: Any,
    inputs: Sequence[Any],
    state_saver: StateSaver,
    state_name: str | Sequence[str],
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`static_rnn` that begins with a state which the last step of the session left, and saves its own.

    Args:
      cell: an RNNCell.
      inputs: for each step [batch, size], or a structure of tensors.
      state_saver: an object with `state(name)`, which gives a tensor, and `save_state(name, tensor)`, which gives
        the operation that saves it.
      state_name: the state's name in the state saver; a structure of names if the cell's state is one.
      sequence_length: an integer vector [batch], as in `static_rnn`.
      scope: of the variables; "rnn" by default.

    Returns:
      (the list of the outputs, the last state); the last output and state are available once the state is saved

    Raises:
      TypeError: `cell` is not a cell, or `inputs` is not a list.
      ValueError: there are no inputs, they differ in their batch, or `state_name` does not have the state's structure.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/static_state_saving_rnn
    """
    check_is_cell(cell)
    several, several_names = nest.is_nested(cell.state_size), nest.is_nested(state_name)
    if several != several_names:
        kind = "a structure" if several else "one state"
        raise ValueError(
            f"state_name should be the same type as cell.state_size, which is {kind}. "
            f"Received: {state_name}"
        )
    names = nest.flatten(state_name)
    sizes = nest.flatten(cell.state_size)
    if len(names) != len(sizes):
        raise ValueError(f"#elems(state_name) != #elems(cell.state_size): {len(names)} vs. {len(sizes)}")
    first = [state_saver.state(name) for name in names]
    initial_state = nest.pack_sequence_as(cell.state_size, first) if several else first[0]
    outputs, state = static_rnn(cell, inputs, initial_state, None, sequence_length, scope)
    saved = [state_saver.save_state(name, each) for name, each in zip(names, nest.flatten(state), strict=True)]
    with control_dependencies(saved):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        return outputs, nest.map_structure(identity, state)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """`static_rnn` of one cell forwards and of another one from the end of each sequence backwards.

    Returns:
      (the list of the outputs, with both directions joined along their second dimension; the last forward state; the
      last backward state)
    """
    check_is_cell(cell_fw, "cell_fw")
    check_is_cell(cell_bw, "cell_bw")

    def backwards(steps: Sequence[Any]) -> list[Any]:
        if sequence_length is None:
            return list(reversed(steps))
        columns = []
        for tensors in zip(*(nest.flatten(step) for step in steps), strict=True):
            lengths = math_ops.cast(sequence_length, dtypes.int64)
            turned = rearranging.reverse_sequence(joining.stack(tensors), lengths, seq_axis=0, batch_axis=1)
            columns.append(joining.unstack(turned, len(steps)))
        return [nest.pack_sequence_as(steps[0], each) for each in zip(*columns, strict=True)]

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as direction:
            ahead, last_ahead = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, direction)
        with variable_scope("bw") as direction:
            turned, last_back = static_rnn(
                cell_bw, backwards(inputs), initial_state_bw, dtype, sequence_length, direction
            )
    joined = [
        nest.map_structure(lambda one, other: joining.concat([one, other], 1), forward, backward)
        for forward, backward in zip(ahead, backwards(turned), strict=True)
    ]
    return joined, last_ahead, last_back
