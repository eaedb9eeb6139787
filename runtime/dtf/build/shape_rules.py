"""Static shape inference: the table of shape rules, and the rules that many ops share.

A rule is a function from an operation to the shapes of its outputs, a list of one TensorShape each; it raises
ValueError for inputs that do not fit, and `infer` adds which op it was and what it got. Rules of one op family
stand beside its public functions in `ops/<family>.py`; an op without a rule has unknown shapes.

    @shape_rule("MatMul")
    def matmul(op):
        rows, inner = op.inputs[0].shape.with_rank(2)
        inner.assert_is_compatible_with(op.inputs[1].shape.with_rank(2)[0])
        return [TensorShape([rows, op.inputs[1].shape[1]])]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dtf.wire.registry import Table
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor import Operation, Tensor

Rule = Callable[["Operation"], Sequence[TensorShape]]

table: Table[Rule] = Table("shape rule")
shape_rule = table

_SCALAR = TensorShape([])
_UNKNOWN = TensorShape(None)


def load() -> None:
    """Fills the table with the rules of all families; those of `import dtf` alone are the common ones."""
    from dtf.build.ops import load_shape_rules

    load_shape_rules()


def infer(op: Operation) -> None:
    """Sets the static shapes of the outputs of `op`.

    Raises:
      ValueError: the shapes of the inputs do not fit; the message names the op, its type and those shapes.
    """
    rule = table.get(op.type)
    if rule is None:
        return
    try:
        shapes = rule(op)
    except ValueError as error:
        inputs = ", ".join(str(tensor.shape) for tensor in op.inputs)
        raise ValueError(f"{error} for '{op.name}' (op: '{op.type}') with input shapes: {inputs}.") from None
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
    """All inputs must have one shape, which is that of every output."""
    shape = _UNKNOWN
    for tensor in op.inputs:
        shape = shape.merge_with(tensor.shape)
    return [shape] * len(op.outputs)


def broadcast(op: Operation) -> list[TensorShape]:
    """The outputs have the shape to which numpy broadcasts all inputs."""
    shape = op.inputs[0].shape
    for tensor in op.inputs[1:]:
        shape = broadcast_shape(shape, tensor.shape)
    return [shape] * len(op.outputs)


def broadcast_shape(first: TensorShape, second: TensorShape) -> TensorShape:
    """The shape to which two shapes broadcast, unknown sizes included.

    Raises:
      ValueError: they do not.
    """
    if first.ndims is None or second.ndims is None:
        return _UNKNOWN
    rank = max(first.ndims, second.ndims)
    pairs = zip(_padded(first, rank), _padded(second, rank), strict=True)
    return TensorShape([_broadcast_size(size_a, size_b) for size_a, size_b in pairs])


def sizes_of(tensor: Tensor) -> list[int | None] | None:
    """The static sizes of a tensor, or None when not even their number is known."""
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def axis_within(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front.

    Raises:
      ValueError: it is outside of [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise ValueError(f"{what} {axis} is out of range [{-rank}, {rank})")
    return axis % rank


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
