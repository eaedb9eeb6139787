"""What the kernels of the array families share: reading their arguments, and the words of their errors.

Owns no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from dtf.run.interfaces import Done, Outputs, Value
from dtf.run.kernels import KernelNode
from dtf.run.value_types import Array, NumpyType, Scalar
from dtf.wire import errors, limits

_Shape = TypeVar("_Shape", bound=Sequence[int])


def index_text(position: Sequence[int]) -> str:
    """Returns "[2,3]" for a position in an index tensor and "" in a scalar, as TensorFlow's messages have it."""
    return f"[{','.join(map(str, position))}]" if len(position) else ""


def shape_text(shape: Sequence[int | None] | np.ndarray) -> str:
    """Returns a shape as TensorFlow's messages have it: "[2,3]"."""
    return f"[{','.join(map(str, shape))}]"


def check_indices(name: str, indices: np.ndarray, limit: int) -> None:
    """Raises InvalidArgumentError for the first of `indices` outside [0, limit)."""
    if indices.size and (indices.min() < 0 or indices.max() >= limit):
        position = np.argwhere((indices < 0) | (indices >= limit))[0]
        raise invalid(f"{name}{index_text(position)} = {indices[tuple(position)]} is not in [0, {limit})")


def invalid(message: str) -> errors.OpError:
    """The InvalidArgumentError of a kernel, to which the executor adds the node."""
    return errors.InvalidArgumentError.of(message)


def numpy_dtype(node: KernelNode, attr: str = "T") -> type[np.generic]:
    """The numpy type of the node's type attribute `attr`."""
    return node.attr(attr).as_numpy_dtype


def zero_of(dtype: NumpyType) -> Scalar:
    """The value that fills what nobody wrote: b"" for strings, else the dtype's zero."""
    return b"" if dtype == np.object_ else np.zeros((), dtype)[()]


def shape_of(value: Array) -> tuple[int, ...]:
    """As np.shape, several times as fast for what nearly every value is."""
    return value.shape if type(value) is np.ndarray else np.shape(value)


def vector(value: Array, what: str) -> list[Scalar]:
    """The elements of a tensor that must have one dimension; `what` is what the message calls it."""
    if len(shape_of(value)) != 1:
        raise invalid(f"{what} must be a vector, got shape {shape_text(np.shape(value))}")
    return value.tolist()


def scalar(value: Array, what: str) -> Scalar:
    """The element of a tensor that must have no dimension; `what` is what the message calls it."""
    if np.ndim(value):
        raise invalid(f"{what} must be a scalar, got shape {shape_text(np.shape(value))}")
    return value.item()


def legacy_scalar(value: Array, what: str) -> Scalar:
    """The element of a tensor of one element, which TensorFlow takes for a scalar in some of its oldest ops."""
    if np.ndim(value) > 1 or np.size(value) != 1:
        raise invalid(f"{what} must be a scalar, got shape {shape_text(np.shape(value))}")
    return value.item()


def dimensions(shape: Array) -> tuple[int, ...]:
    """A shape tensor as a tuple; one that is no vector, or has a negative dimension, is the caller's error."""
    dims = tuple(vector(shape, "shape"))
    if dims and min(dims) < 0:
        at = next(i for i, dim in enumerate(dims) if dim < 0)
        raise invalid(f"Dimension {dims[at]} must be >= 0")
    return dims


def room(shape: _Shape, dtype: NumpyType) -> _Shape:
    """`shape`, for an array that is about to be made. ResourceExhaustedError where memory has no room for it."""
    kind = np.dtype(dtype)
    limits.check_room(shape, kind.itemsize, kind)
    return shape


def scalar_axis(axis: Array | int, rank: int, what: str = "axis") -> int:
    """A scalar axis tensor as an int within [0, rank)."""
    value = int(scalar(np.asarray(axis), what))
    if not -rank <= value < rank:
        raise invalid(f"Expected {what} in the range [{-rank}, {rank}), but got {value}")
    return value % rank


def as_text(value: str | bytes) -> str:
    """A string attribute as text, whether it came as bytes or not."""
    return value.decode() if isinstance(value, bytes) else value


def of_components(node: KernelNode, done: Done[Outputs]) -> Done[Sequence[Value]]:
    """`done` for a tuple of components: a single component is the value itself."""

    def report(components: Sequence[Value] = (), error: errors.OpError | None = None) -> None:
        if error is not None:
            done(error=error)
        elif node.num_outputs == 1:
            done(components[0])
        else:
            done(components)

    return report
