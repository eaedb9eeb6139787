"""Recurrent networks as long graphs: one copy of the cell's operations for each step of a list of inputs.

For short sequences of one length; what works for any number of steps is `rnn_loops`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/static_rnn and the page of the other
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import joining, rearranging
from dtf.build.ops import math as math_ops
from dtf.build.variable_scope import variable_scope
from dtf.nn.rnn_cell.base import check_is_cell
from dtf.nn.rnn_steps import checked_lengths, first_state, masked_step, size_in_all
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["static_bidirectional_rnn", "static_rnn"]


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
      inputs: for each step [batch, size], or a structure of such.
      initial_state: as the cell's `zero_state`, which it is by default.
      dtype: of the first state, if that is not given.
      sequence_length: an integer vector [batch]; behind the end of a sequence the outputs are zeros, and the state
        stays what it was.
      scope: of the variables; "rnn" by default.

    Returns:
      (the list of the outputs, the last state)

    Raises:
      TypeError: `cell` is no cell, or `inputs` no list.
      ValueError: there are no inputs, they differ in their batch, or neither a first state nor a dtype is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/static_rnn
    """
    check_is_cell(cell)
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"Argument `inputs` must be a sequence of the steps' inputs. Received: {inputs}")
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")
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
      (the list of the outputs, those of both directions joined along their second dimension; the last state forwards;
      the last state backwards)
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
