"""Static shape inference: the table of shape rules, and the rules that many ops share.

A rule is a function from an operation to a list of TensorShapes, one for each output. It raises ValueError for inputs
that do not fit; `infer` adds the op and its inputs to the message. Rules of one op family are with its public
functions in `ops/<family>.py`; an op without a rule has unknown shapes.

    @shape_rule("MatMul")
    def matmul(op):
        rows, inner = op.inputs[0].shape.with_rank(2)
        inner.assert_is_compatible_with(op.inputs[1].shape.with_rank(2)[0])
        return [TensorShape([rows, op.inputs[1].shape[1]])]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dtf.build import input_ranks
from dtf.build.constant_value import inference
from dtf.wire.registry import Table
from dtf.wire.tensor_shape import TensorShape, bracketed, words_in_graph

if TYPE_CHECKING:
    from dtf.build.tensor import Operation, Tensor

Rule = Callable[["Operation"], Sequence[TensorShape]]

table: Table[Rule] = Table("shape rule")
shape_rule = table

_SCALAR = TensorShape([])
_UNKNOWN = TensorShape(None)


_OF_ARGUMENTS = (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError)
"""All but the first are for inputs that a rule has not thought of, which a test of ranks finds."""


def infer(op: Operation) -> None:
    """Sets the static shapes of the outputs of `op`.

    Raises:
      ValueError: the shapes of the inputs do not fit; the message names the op, its type and those shapes.
    """
    rule = table.get(op.type)
    if rule is None:
        return
    was_running, inference.is_running = inference.is_running, True
    try:
        input_ranks.check(op)
        shapes = rule(op)
    except _OF_ARGUMENTS as error:
        inputs = ", ".join(bracketed(tensor.shape) for tensor in op.inputs)
        cause = None if isinstance(error, ValueError) else error
        words = words_in_graph(error)
        raise ValueError(f"{words} for '{op.name}' (op: '{op.type}') with input shapes: {inputs}.") from cause
    finally:
        inference.is_running = was_running
    assert len(shapes) == len(op.outputs), f"the shape rule of {op.type} gives {len(shapes)} shapes"
    for tensor, shape in zip(op.outputs, shapes, strict=True):
        tensor._shape = shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unchanged(op: Operation) -> list[TensorShape]:
    """Every output has the shape of the first input."""
    return [op.inputs[0].shape] * len(op.outputs)


def scalar(op: Operation) -> list[TensorShape]:
    """Every output is a scalar."""
    return [_SCALAR] * len(op.outputs)


def unknown(op: Operation) -> list[TensorShape]:
    """Nothing is known before the op has run."""
    return [_UNKNOWN] * len(op.outputs)


def no_outputs(op: Operation) -> list[TensorShape]:
    """The op has no outputs."""
    return []


def merge_all(op: Operation) -> list[TensorShape]:
    """All inputs must have one shape; every output has that shape."""
    shape = _UNKNOWN
    for tensor in op.inputs:
        shape = shape.merge_with(tensor.shape)
    return [shape] * len(op.outputs)


def broadcast(op: Operation) -> list[TensorShape]:
    """The outputs have the shape that numpy broadcasts all inputs to."""
    shape = op.inputs[0].shape
    for tensor in op.inputs[1:]:
        shape = broadcast_shape(shape, tensor.shape)
    return [shape] * len(op.outputs)


def broadcast_shape(first: TensorShape, second: TensorShape) -> TensorShape:
    """The broadcast shape of two shapes, which may have unknown sizes.

    Raises:
      ValueError: they do not.
    """
    if first.ndims is None or second.ndims is None:
        return _UNKNOWN
    rank = max(first.ndims, second.ndims)
    pairs = zip(_padded(first, rank), _padded(second, rank), strict=True)
    return TensorShape([_broadcast_size(size_a, size_b) for size_a, size_b in pairs])


def is_broadcast_compatible(first: TensorShape, second: TensorShape) -> bool:
    """Whether both ranks are known and the shapes broadcast."""
    if first.ndims is None or second.ndims is None:
        return False
    try:
        broadcast_shape(first, second)
    except ValueError:
        return False
    return True


def sizes_of(tensor: Tensor) -> list[int | None] | None:
    """The static sizes of a tensor, or None when not even their number is known."""
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def axis_within(axis: int, rank: int, words: str = "axis = {axis} not in [{low}, {rank})") -> int:
    """`axis` counted from the front.

    Args:
      words: the message where it is outside of the range.

    Raises:
      ValueError: it is outside of [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise ValueError(words.format(axis=axis, low=-rank, rank=rank, last=rank - 1))
    return axis % rank


def axis_of_rank(axis: int, rank: int) -> int:
    """`axis` counted from the front; the error for an axis outside names the needed rank.

    Raises:
      ValueError: it is outside of [-rank, rank).
    """
    needed = axis + 1 if axis >= 0 else -axis
    return axis_within(axis, rank, f"Shape must be at least rank {needed} but is rank {rank}")


def _padded(shape: TensorShape, rank: int) -> list[int | None]:
    sizes = shape.as_list()
    return [*[1] * (rank - len(sizes)), *sizes]


def _broadcast_size(a: int | None, b: int | None) -> int | None:
    if a == 1:
        return b
    if b == 1 or a == b:
        return a
    if a is None or b is None:
        # One side is known and not 1, so the other one is 1 or equal to it.
        return b if a is None else a
    raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
