"""The shared parts of both kinds of recurrent networks: a step, the first state, the lengths of sequences.

Owns the rule for sequences of different lengths. The ways are `rnn_loops` and `rnn_unrolled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import searching
from dtf.build.ops.check_ops import assert_equal
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor
from dtf.nn.rnn_cell.base import sizes_with_batch
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike


def masked_step(
    cell: Any, inputs: TensorLike, state: Any, time: Any, sequence_length: Tensor | None, batch: Any
) -> tuple[Any, Any]:
    """One step of a cell: (outputs, state), the one zeros and the other what it was where a sequence has ended."""
    outputs, after = cell(inputs, state)
    nest.assert_same_structure(state, after)
    nest.assert_same_structure(cell.output_size, outputs)
    if sequence_length is None:
        return outputs, after
    ended = math_ops.greater_equal(time, sequence_length)

    def cut(value: Any, size: Any) -> Any:
        return chosen(ended, filling_ops.zeros(sizes_with_batch(batch, size), value.dtype), value)

    outputs = nest.map_structure(cut, outputs, cell.output_size)
    return outputs, nest.map_structure(lambda old, new: chosen(ended, old, new), state, after)


def chosen(ended: Any, old: Any, new: Any) -> Any:
    """`old` for the examples that have ended, `new` for the others; values without a batch dimension are always
    new."""
    if isinstance(new, TensorArray) or new.shape.ndims == 0:
        return new
    result = searching.where(ended, old, new)
    result.set_shape(new.shape)
    return result


def first_state(cell: Any, initial_state: Any, batch: Any, dtype: DTypeLike) -> Any:
    """The state that is given, or zeros.

    Raises:
      ValueError: neither a state nor a dtype is given.
    """
    if initial_state is not None:
        return nest.map_structure(lambda each: convert_to_tensor(each), initial_state)
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype: argument `dtype` must be specified")
    return cell.zero_state(batch, dtype)


def checked_lengths(sequence_length: TensorLike, batch: Any) -> Tensor:
    """The lengths as an int32 vector, known or checked by the step to be of the batch's size.

    Raises:
      ValueError: they are not a vector, or have another number of elements.
    """
    lengths = math_ops.cast(sequence_length, dtypes.int32)
    size = None if isinstance(batch, Tensor) else batch
    if not lengths.shape.is_compatible_with([size]):
        raise ValueError(
            f"Argument sequence_length must be a vector of length batch_size ({size}), but its shape is {lengths.shape}"
        )
    if size is not None and lengths.shape.is_fully_defined():
        return lengths
    check = assert_equal(array_ops.size(lengths), batch, message="Expected shape for Tensor sequence_length is another")
    with control_dependencies([check]):
        return array_ops.identity(lengths, name="CheckSeqLen")


def size_in_all(values: Sequence[Tensor], axis: int) -> Any:
    """The size of a dimension that all tensors share: a number if any of them knows it, else a scalar tensor.

    Raises:
      ValueError: they differ.
    """
    merged = TensorShape([None])
    for value in values:
        shape = value.shape[axis : axis + 1]
        try:
            merged = merged.merge_with(shape)
        except ValueError:
            raise ValueError(f"The inputs differ in dimension {axis}: {[each.shape for each in values]}") from None
    size = merged.as_list()[0]
    return array_ops.shape(values[0])[axis] if size is None else size


def size_of(value: Tensor, axis: int) -> Any:
    """The size of a dimension: a number if known, else a scalar tensor."""
    return size_in_all([value], axis)


def as_sizes(size: Any) -> TensorShape:
    """A size of `state_size` or `output_size` as a shape without the batch."""
    return TensorShape([size] if isinstance(size, int) else size)
