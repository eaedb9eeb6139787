"""Recurrent networks as loops: `tf.nn.dynamic_rnn`, its form for both directions, and `tf.nn.raw_rnn`.

Each is a `while_loop` over TensorArrays of the steps' inputs and outputs. The graph thus does not grow with the number
of steps, which need not be known statically. `rnn_unrolled` has the same for a known number of steps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/dynamic_rnn and the pages of the others
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining, rearranging, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ops.control_flow import while_loop
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.nn.rnn_cell.base import check_is_cell, sizes_with_batch
from dtf.nn.rnn_steps import (
    as_sizes,
    checked_lengths,
    chosen,
    first_state,
    masked_step,
    size_in_all,
    size_of,
)
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn", "raw_rnn"]


def dynamic_rnn(
    cell: Any,
    inputs: TensorLike,
    sequence_length: TensorLike | None = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """The steps of a cell over sequences.

    Args:
      cell: an RNNCell.
      inputs: [batch, steps, ...], or a structure of tensors.
      sequence_length: an integer vector [batch]; after the end of a sequence the outputs are zeros, and the state is
        kept.
      initial_state: as the cell's `zero_state`, which it is by default.
      dtype: of the first state, if that is not given.
      parallel_iterations: how many steps may be under way at once; 32 by default.
      swap_memory: accepted; dtf does not swap memory.
      time_major: whether inputs and outputs are [steps, batch, ...].
      scope: of the variables; "rnn" by default.

    Returns:
      (outputs [batch, steps, ...], the last state)

    Raises:
      TypeError: `cell` is not a cell.
      ValueError: neither a first state nor a dtype is given, or inputs and lengths do not fit together.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/dynamic_rnn
    """
    check_is_cell(cell)
    with variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(each) for each in nest.flatten(inputs)]
        flat = flat if time_major else [_exchanged(each) for each in flat]
        steps, batch = size_in_all(flat, 0), size_in_all(flat, 1)
        if sequence_length is not None:
            sequence_length = checked_lengths(sequence_length, batch)
        state = first_state(cell, initial_state, batch, dtype)
        arrays = [TensorArray(each.dtype, steps).unstack(each) for each in flat]

        def read(time: Tensor) -> Any:
            return nest.pack_sequence_as(inputs, [array.read(time) for array in arrays])

        def body(time: Tensor, arrays: Any, state: Any) -> tuple[Any, ...]:
            outputs, state = masked_step(cell, read(time), state, time, sequence_length, batch)
            written = [array.write(time, value) for array, value in zip(arrays, nest.flatten(outputs), strict=True)]
            return time + 1, written, state

        limit = steps
        if sequence_length is not None:
            # Steps after the longest sequence are skipped; one step gives the shapes of the missing outputs.
            limit = math_ops.minimum(steps, math_ops.maximum(1, reductions.reduce_max(sequence_length)))
        sizes = nest.flatten(cell.output_size)
        results = [TensorArray(_dtype_of(state, dtype), steps) for _ in sizes]
        _, results, state = while_loop(
            lambda time, *_: time < limit,
            body,
            (constant(0, dtypes.int32, name="time"), results, state),
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        stacked = [_stacked(array, steps, batch, size) for array, size in zip(results, sizes, strict=True)]
        outputs = [each if time_major else _exchanged(each) for each in stacked]
        return nest.pack_sequence_as(cell.output_size, outputs), state


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: TensorLike,
    sequence_length: TensorLike | None = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`dynamic_rnn` of one cell forwards and of another one from the end of each sequence backwards.

    Returns:
      ((outputs forwards, outputs backwards, each in the order of the inputs), (both last states))

    Args:
      cell_fw: the RNNCell that goes forwards.
      cell_bw: the RNNCell that goes backwards.
      inputs: [batch, steps, ...], or a structure of tensors.
      sequence_length: an integer vector [batch].
      initial_state_fw: the first state of `cell_fw`; zeros by default.
      initial_state_bw: the first state of `cell_bw`; zeros by default.
      dtype: of the first states, if they are not given.
      parallel_iterations: how many steps may be under way at once; 32 by default.
      swap_memory: accepted; dtf does not swap memory.
      time_major: whether inputs and outputs are [steps, batch, ...].
      scope: of the variables; "bidirectional_rnn" by default.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/bidirectional_dynamic_rnn
    """
    check_is_cell(cell_fw, "cell_fw")
    check_is_cell(cell_bw, "cell_bw")
    time, batch = (0, 1) if time_major else (1, 0)

    def reversed_in_time(value: Any) -> Tensor:
        if sequence_length is None:
            return rearranging.reverse(value, [time])
        return rearranging.reverse_sequence(value, sequence_length, seq_axis=time, batch_axis=batch)

    def run(cell: Any, values: Any, first: Any, direction: Any) -> tuple[Any, Any]:
        return dynamic_rnn(
            cell, values, sequence_length, first, dtype, parallel_iterations, swap_memory, time_major, direction
        )

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as direction:
            forwards, last_forwards = run(cell_fw, inputs, initial_state_fw, direction)
        with variable_scope("bw") as direction:
            backwards, last_backwards = run(
                cell_bw, nest.map_structure(reversed_in_time, inputs), initial_state_bw, direction
            )
    return (forwards, nest.map_structure(reversed_in_time, backwards)), (last_forwards, last_backwards)


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[TensorArray, Any, Any]:
    """A loop of a cell whose inputs, end and outputs a function decides, step by step.

    Args:
      loop_fn: a function from (time, output, state, loop state) to (finished, next input, next state, what to emit,
        next loop state). At time 0 the output and state are None. The first emitted value then gives sizes and dtypes
        without the batch (None: the cell's output size and dtype). `finished` is a bool vector [batch]; the loop ends
        when all are. A finished example emits zeros and keeps its state. A loop state that is not used is None.

    Returns:
      (a TensorArray of the emitted values, or a structure of arrays; the last state; the last loop state)
    """
    check_is_cell(cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn"):
        start = constant(0, dtypes.int32)
        finished, next_input, state, emitted, loop_state = loop_fn(start, None, None, None)
        next_input = nest.map_structure(convert_to_tensor, next_input)
        state = nest.map_structure(convert_to_tensor, state)
        batch = size_of(nest.flatten(next_input)[0], 0)
        if emitted is None:
            form = cell.output_size
            kinds = [(as_sizes(each), nest.flatten(state)[0].dtype) for each in nest.flatten(form)]
        else:
            form = emitted
            kinds = [(each.shape, each.dtype) for each in map(convert_to_tensor, nest.flatten(emitted))]
        arrays = [TensorArray(dtype, 0, dynamic_size=True) for _, dtype in kinds]
        zeros = [filling_ops.zeros(sizes_with_batch(batch, shape), dtype) for shape, dtype in kinds]
        has_loop_state = loop_state is not None
        loop_state = constant(0, dtypes.int32) if loop_state is None else loop_state

        def body(
            time: Tensor, finished: Tensor, current: Any, arrays: Any, state: Any, loop_state: Any
        ) -> tuple[Any, ...]:
            output, after = cell(current, state)
            nest.assert_same_structure(state, after)
            now_finished, next_input, after, emitted, next_loop_state = loop_fn(
                time + 1, output, after, loop_state if has_loop_state else None
            )
            nest.assert_same_structure(state, after)
            nest.assert_same_structure(current, next_input)
            nest.assert_same_structure(form, emitted)
            after = nest.map_structure(lambda old, new: chosen(finished, old, new), state, after)
            written = [
                array.write(time, chosen(finished, zero, value))
                for array, zero, value in zip(arrays, zeros, nest.flatten(emitted), strict=True)
            ]
            finished = math_ops.logical_or(finished, now_finished)
            next_loop_state = loop_state if next_loop_state is None else next_loop_state
            return time + 1, finished, next_input, written, after, next_loop_state

        _, _, _, arrays, state, loop_state = while_loop(
            lambda time, finished, *_: math_ops.logical_not(reductions.reduce_all(finished)),
            body,
            [start, convert_to_tensor(finished, dtypes.bool), next_input, arrays, state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return nest.pack_sequence_as(form, arrays), state, loop_state if has_loop_state else None


def _exchanged(value: Tensor) -> Tensor:
    """The first two dimensions exchanged: time and batch."""
    rank = value.shape.ndims
    if rank is None:
        order: Any = joining.concat([[1, 0], math_ops.range(2, array_ops.rank(value))], 0)
    elif rank < 2:
        raise ValueError(f"Inputs of a recurrent network have the dimensions of batch and time; got {value.shape}")
    else:
        order = [1, 0, *range(2, rank)]
    return rearranging.transpose(value, order)


def _stacked(array: TensorArray, steps: Any, batch: Any, size: Any) -> Tensor:
    value = array.stack()
    known = [None if isinstance(each, Tensor) else each for each in (steps, batch)]
    value.set_shape(TensorShape(known).concatenate(as_sizes(size)))
    return value


def _dtype_of(state: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    found = {each.dtype.base_dtype for each in nest.flatten(state)}
    if len(found) != 1:
        raise ValueError(f"The parts of the state have the dtypes {sorted(each.name for each in found)}: give a dtype.")
    return found.pop()
