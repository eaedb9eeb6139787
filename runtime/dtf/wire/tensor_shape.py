"""Static shapes: `TensorShape` and `Dimension`, with TensorFlow 1's behaviour.

A TensorShape is unknown altogether (rank None) or a list of dimensions, each a size or unknown (None). Both
are values: nothing changes one after it was made. Indexing and iterating give `Dimension`s, as TensorFlow 1
does (`shape[0].value`); `as_list()` gives plain integers and Nones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Union

DimensionLike = Union[int, "Dimension", None]
ShapeLike = Any  # TensorShape, TensorShapeProto, None, an int, or an iterable of DimensionLike


_IN_GRAPH = "in_graph"


def misfit(message: str, in_graph: str) -> ValueError:
    """The error of two shapes, or of a shape and a rank, that do not go together; see `words_in_graph`."""
    error = ValueError(message)
    vars(error)[_IN_GRAPH] = in_graph
    return error


def words_in_graph(error: Exception) -> str:
    """The message where inputs of an op do not fit: TensorFlow has other words there than for shapes by themselves."""
    return str(vars(error).get(_IN_GRAPH, error))


class Dimension:
    """The size of one dimension: a non-negative integer, or None when unknown.

    Arithmetic with an unknown side is unknown, a comparison with one is None (neither true nor false).
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = dimension_value(value)

    @property
    def value(self) -> int | None:
        return self._value

    def is_compatible_with(self, other: DimensionLike) -> bool:
        """True when both may be the same size."""
        other_value = dimension_value(other)
        return self._value is None or other_value is None or self._value == other_value

    def assert_is_compatible_with(self, other: DimensionLike) -> None:
        if not self.is_compatible_with(other):
            other = as_dimension(other)
            raise misfit(
                f"Dimensions {self} and {other} are not compatible",
                f"Dimensions must be equal, but are {self} and {other}",
            )

    def merge_with(self, other: DimensionLike) -> Dimension:
        """What both sides together know; a ValueError when they contradict each other."""
        self.assert_is_compatible_with(other)
        return as_dimension(other) if self._value is None else self

    def __eq__(self, other: object) -> Any:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compare(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compare(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(operator.ge, other)

    def __add__(self, other: Any) -> Dimension:
        return self._combine(operator.add, other)

    def __radd__(self, other: Any) -> Dimension:
        return self._combine(operator.add, other)

    def __sub__(self, other: Any) -> Dimension:
        return self._combine(operator.sub, other)

    def __rsub__(self, other: Any) -> Dimension:
        return as_dimension(other) - self

    def __mul__(self, other: Any) -> Dimension:
        return self._combine(operator.mul, other)

    def __rmul__(self, other: Any) -> Dimension:
        return self._combine(operator.mul, other)

    def __floordiv__(self, other: Any) -> Dimension:
        return self._combine(operator.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Dimension:
        return as_dimension(other) // self

    def __div__(self, other: Any) -> Dimension:
        return self // other

    def __truediv__(self, other: Any) -> Dimension:
        raise TypeError(f"Dimension / {type(other).__name__} is not defined, please use // instead")

    def __rtruediv__(self, other: Any) -> Dimension:
        raise TypeError(f"{type(other).__name__} / Dimension is not defined, please use // instead")

    def __mod__(self, other: Any) -> Dimension:
        return self._combine(operator.mod, other)

    def __rmod__(self, other: Any) -> Dimension:
        return as_dimension(other) % self

    def __int__(self) -> int | None:
        return self._value

    def __index__(self) -> int | None:
        return self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)

    def _compare(self, comparison: Callable[[Any, Any], bool], other: object) -> Any:
        try:
            other_value = dimension_value(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other_value is None:
            return None
        return comparison(self._value, other_value)

    def _combine(self, function: Callable[[int, int], int], other: object) -> Any:
        try:
            other_value = dimension_value(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other_value is None:
            return Dimension(None)
        return Dimension(function(self._value, other_value))


class TensorShape:
    """A static shape.

    Args:
      dims: None (nothing is known), another TensorShape, a TensorShapeProto, one size, or an iterable of
        sizes, Dimensions and Nones.

    Raises:
      TypeError: `dims` is none of these.
      ValueError: a size is negative.
    """

    __slots__ = ("_sizes",)

    def __init__(self, dims: ShapeLike) -> None:
        self._sizes: tuple[int | None, ...] | None = _sizes_of(dims)

    @property
    def rank(self) -> int | None:
        return None if self._sizes is None else len(self._sizes)

    @property
    def ndims(self) -> int | None:
        return self.rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The Dimensions, or None when the rank is unknown."""
        return None if self._sizes is None else [Dimension(size) for size in self._sizes]

    def as_list(self) -> list[int | None]:
        """The sizes as integers and Nones; a ValueError when the rank is unknown."""
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._sizes)

    def num_elements(self) -> int | None:
        """The number of elements, or None when it is not known."""
        if self._sizes is None:
            return None
        product = 1
        for size in self._sizes:
            if size is None:
                return None
            product *= size
        return product

    def is_fully_defined(self) -> bool:
        return self._sizes is not None and None not in self._sizes

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """True when there is a shape that fits both."""
        other = as_shape(other)
        if self._sizes is None or other._sizes is None:
            return True
        return len(self._sizes) == len(other._sizes) and all(
            mine is None or theirs is None or mine == theirs
            for mine, theirs in zip(self._sizes, other._sizes, strict=True)
        )

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        if not self.is_compatible_with(other):
            other = as_shape(other)
            raise misfit(f"Shapes {self} and {other} are incompatible", _difference(self, other))

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """What both shapes together know; a ValueError when they contradict each other."""
        other = as_shape(other)
        if self._sizes is None:
            return other
        if other._sizes is None:
            return self
        if not self.is_compatible_with(other):
            raise misfit(f"Shapes {self} and {other} are not compatible", _difference(self, other))
        pairs = zip(self._sizes, other._sizes, strict=True)
        return _of_sizes(tuple(theirs if mine is None else mine for mine, theirs in pairs))

    def most_specific_compatible_shape(self, other: ShapeLike) -> TensorShape:
        """The narrowest shape that both shapes fit into."""
        other = as_shape(other)
        if self._sizes is None or other._sizes is None or len(self._sizes) != len(other._sizes):
            return unknown_shape()
        pairs = zip(self._sizes, other._sizes, strict=True)
        return _of_sizes(tuple(mine if mine == theirs else None for mine, theirs in pairs))

    def concatenate(self, other: ShapeLike) -> TensorShape:
        """The dimensions of this shape, then those of `other`."""
        other = as_shape(other)
        if self._sizes is None or other._sizes is None:
            return unknown_shape()
        return _of_sizes(self._sizes + other._sizes)

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, known to have `rank` dimensions; a ValueError when it has not."""
        if self._sizes is None:
            return unknown_shape(rank)
        if len(self._sizes) != rank:
            raise _wrong_rank(self, f"must have rank {rank}", f"must be rank {rank}")
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self._sizes is not None and len(self._sizes) < rank:
            raise _wrong_rank(self, f"must have rank at least {rank}", f"must be at least rank {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self._sizes is not None and len(self._sizes) > rank:
            raise _wrong_rank(self, f"must have rank at most {rank}", f"must be at most rank {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        self.with_rank(rank)

    def assert_same_rank(self, other: ShapeLike) -> None:
        other = as_shape(other)
        if self._sizes is not None and other._sizes is not None and len(self._sizes) != len(other._sizes):
            raise misfit(f"Shapes {self} and {other} must have the same rank", _difference(self, other))

    def as_proto(self) -> Any:
        """The `TensorShapeProto`."""
        from dtf.wire.pb import tensor_shape_pb2

        if self._sizes is None:
            return tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
        dim = tensor_shape_pb2.TensorShapeProto.Dim
        return tensor_shape_pb2.TensorShapeProto(
            dim=[dim(size=-1 if size is None else size) for size in self._sizes]
        )

    def __len__(self) -> int:
        if self._sizes is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._sizes)

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._sizes is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return (Dimension(size) for size in self._sizes)

    def __getitem__(self, key: Any) -> Any:
        """A Dimension, or the TensorShape of a slice, whose length may be known where the rank is not."""
        if isinstance(key, slice):
            if self._sizes is not None:
                return _of_sizes(self._sizes[key])
            start, stop = key.start or 0, key.stop
            if key.step not in (None, 1):
                raise ValueError("Steps are not yet handled where the rank of a shape is unknown.")
            if stop is None or stop < 0 or start < 0:
                return unknown_shape()
            return unknown_shape(max(0, stop - start))
        return Dimension(None if self._sizes is None else self._sizes[key])

    def __add__(self, other: ShapeLike) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: ShapeLike) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._sizes == as_shape(other)._sizes
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __str__(self) -> str:
        if self._sizes is None:
            return "<unknown>"
        if len(self._sizes) == 1:
            return f"({'?' if self._sizes[0] is None else self._sizes[0]},)"
        return "(" + ", ".join("?" if size is None else str(size) for size in self._sizes) + ")"

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._sizes,)


def as_shape(shape: ShapeLike) -> TensorShape:
    """`shape` itself when it is a TensorShape, else the TensorShape of it."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def as_dimension(value: DimensionLike) -> Dimension:
    """`value` itself when it is a Dimension, else the Dimension of it."""
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(value: Any) -> int | None:
    """The integer or None of a Dimension, an integer-like value or None.

    Raises:
      TypeError: `value` is no integer.
      ValueError: it is negative.
    """
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value._value
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got value {value!r} "
            f"with type {type(value)!r}"
        ) from None
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def bracketed(shape: TensorShape) -> str:
    """The shape as TensorFlow's runtime writes it: [2,?], or <unknown>."""
    if shape.ndims is None:
        return "<unknown>"
    return f"[{','.join('?' if size is None else str(size) for size in shape.as_list())}]"


def _difference(first: TensorShape, second: TensorShape) -> str:
    """The words for two shapes that are not the same."""
    sizes, others = first.as_list(), second.as_list()
    if len(sizes) != len(others):
        return f"Shapes must be equal rank, but are {len(sizes)} and {len(others)}"
    index = next(place for place, (mine, theirs) in enumerate(zip(sizes, others, strict=True))
                 if None not in (mine, theirs) and mine != theirs)  # fmt: skip
    return (
        f"Dimension {index} in both shapes must be equal, but are {sizes[index]} and {others[index]}. "
        f"Shapes are {bracketed(first)} and {bracketed(second)}."
    )


def _wrong_rank(shape: TensorShape, words: str, in_graph: str) -> ValueError:
    return misfit(f"Shape {shape} {words}", f"Shape {in_graph} but is rank {shape.ndims}")


def unknown_shape(rank: int | None = None, ndims: int | None = None) -> TensorShape:
    """A shape of `rank` (of old: `ndims`) unknown dimensions, or of unknown rank.

    Raises:
      ValueError: `rank` is negative or more than a tensor may have.
    """
    rank = ndims if rank is None else rank
    if rank is not None and not 0 <= rank <= TENSORFLOW_RANK_MAX:
        raise ValueError(f"A shape has from 0 to {TENSORFLOW_RANK_MAX} dimensions, not {rank}")
    return _of_sizes(None if rank is None else (None,) * rank)


def scalar() -> TensorShape:
    return _of_sizes(())


def vector(length: DimensionLike) -> TensorShape:
    return TensorShape([length])


def matrix(rows: DimensionLike, columns: DimensionLike) -> TensorShape:
    return TensorShape([rows, columns])


def _of_sizes(sizes: tuple[int | None, ...] | None) -> TensorShape:
    shape = TensorShape.__new__(TensorShape)
    shape._sizes = sizes
    return shape


def _sizes_of(dims: ShapeLike) -> tuple[int | None, ...] | None:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._sizes
    if isinstance(dims, (tuple, list)):
        return tuple(dimension_value(each) for each in dims)
    if hasattr(dims, "unknown_rank"):  # a TensorShapeProto, ours or TensorFlow's
        if dims.unknown_rank:
            return None
        return tuple(None if dim.size < 0 else dim.size for dim in dims.dim)
    if isinstance(dims, (str, bytes)):
        raise TypeError(f"A shape is one dimension or an iterable of dimensions, got {dims!r}")
    try:
        entries = iter(dims)
    except TypeError:
        return (dimension_value(dims),)
    return tuple(dimension_value(each) for each in entries)


RANK_MAX = 64
"""numpy's."""
TENSORFLOW_RANK_MAX = 254
"""That of a shape that is only declared."""
_ELEMENTS_MAX = 1 << 56


def is_possible(sizes: Iterable[int]) -> bool:
    """Whether a tensor may have these sizes: none is negative, and they are neither too many nor too large together."""
    rank, count = 0, 1
    for size in sizes:
        if size < 0:
            return False
        rank += 1
        count *= size or 1
    return rank <= RANK_MAX and count <= _ELEMENTS_MAX
