"""Loops for joined elementwise operations: from operations and the shapes of a step to one loop over memory.

All arrays of a loop are seen as matrices of some rows and columns: each array has an element for each of both, for
each column (a bias), for each row (a mean), or one. Which rows and columns these are follows from the shapes; where
there are none that all operations fit, there is no loop.

Owns which operations a loop can compute, and how. Which of them are joined is in `joined_elements`, the loop itself in
`lib.vector_code`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from dtf.run.executor.instructions import ALIASES
from dtf.run.interfaces import Outputs
from dtf.run.kernels import KernelNode
from dtf.run.lib.vector_code import loops
from dtf.run.lib.vector_code.loops import COLUMN_SUM, MATRIX, ROW, SINGLE, Builder
from dtf.run.value_types import Array

__all__ = ["Member", "Planner", "ends_loop", "is_alias", "takes"]

_Shape = tuple[int, ...]


class Member(NamedTuple):
    """An operation of a group. `sources`: other members by number, or inputs of the group as -1, -2 ...; `known`: the
    values of its inputs that are constants.
    """

    node: KernelNode
    sources: tuple[int, ...]
    known: tuple[Array | None, ...]


def is_alias(node: KernelNode) -> bool:
    """Whether an operation computes nothing."""
    return node.op in ALIASES or node.op in ("Reshape", "BroadcastTo")


def ends_loop(node: KernelNode, known: Sequence[Array | None]) -> bool:
    """Whether an operation's result is known only when the loop has ended: a sum over the first axis."""
    if node.op == "BiasAddGrad":
        return True
    return node.op in _SUMS and known[1] is not None and 0 in np.ravel(known[1])


def takes(node: KernelNode, known: Sequence[Array | None]) -> bool:
    """Whether a loop may compute an operation. `known`: the values of its inputs that are constants."""
    if node.op in _SUMS:
        return len(known) == 2 and known[1] is not None and known[1].size > 0
    if node.op in ("Reshape", "BroadcastTo"):
        return len(known) == 2 and known[1] is not None
    if node.op in ("BiasAdd", "BiasAddGrad"):
        return bool(node.attr("data_format") == b"NHWC")
    return node.op in ALIASES or node.op in _ELEMENTWISE


_SUMS = frozenset({"Sum", "Mean"})


class _Operand(NamedTuple):
    """A value in a loop: its node, its shape, and its kind: MATRIX, "column", ROW or SINGLE. `same_as`: the input of
    the group that it is another name of.
    """

    node: int
    shape: _Shape
    kind: str
    same_as: int | None = None


_COLUMN = "column"


class _UnfitError(Exception):
    """The operations do not fit these rows and columns."""


def _in_order(op: str) -> Callable[..., int]:
    return lambda builder, *nodes: builder.node(op, *nodes)


def _squared_difference(b: Builder, x: int, y: int) -> int:
    difference = b.node("subtract", x, y)
    return b.node("multiply", difference, difference)


def _rsqrt_grad(b: Builder, y: int, dy: int) -> int:
    cube = b.node("multiply", b.node("multiply", y, y), y)
    result = b.node("multiply", b.node("multiply", cube, dy), b.number(-0.5))
    return b.node("zero where zero", dy, result)


def _sigmoid(b: Builder, x: int) -> int:
    one = b.number(1.0)
    return b.node("divide", one, b.node("add", one, b.node("exp", b.node("negative", x))))


def _sigmoid_grad(b: Builder, y: int, dy: int) -> int:
    return b.node("multiply", b.node("multiply", b.node("subtract", b.number(1.0), y), y), dy)


def _tanh_grad(b: Builder, y: int, dy: int) -> int:
    return b.node("multiply", b.node("subtract", b.number(1.0), b.node("multiply", y, y)), dy)


def _add_n(b: Builder, first: int, *others: int) -> int:
    for other in others:
        first = b.node("add", first, other)
    return first


_OF_EQUAL_SHAPES: Mapping[str, Callable[..., int]] = {
    "AddN": _add_n,
    "ReluGrad": lambda b, gradient, x: b.node("multiply", gradient, b.node("one above zero", x)),
    "RsqrtGrad": _rsqrt_grad,
    "SigmoidGrad": _sigmoid_grad,
    "TanhGrad": _tanh_grad,
}
_ELEMENTWISE: Mapping[str, Callable[..., int]] = {
    **_OF_EQUAL_SHAPES,
    "Abs": _in_order("absolute"),
    "Add": _in_order("add"),
    "AddV2": _in_order("add"),
    "Div": _in_order("divide"),
    "Exp": _in_order("exp"),
    "Maximum": _in_order("larger"),
    "Minimum": _in_order("lesser"),
    "Mul": _in_order("multiply"),
    "Neg": _in_order("negative"),
    "RealDiv": _in_order("divide"),
    "Reciprocal": lambda b, x: b.node("divide", b.number(1.0), x),
    "Relu": lambda b, x: b.node("larger of", b.number(0.0), x),
    "Rsqrt": lambda b, x: b.node("divide", b.number(1.0), b.node("square root", x)),
    "Sigmoid": _sigmoid,
    "Sqrt": _in_order("square root"),
    "Square": lambda b, x: b.node("multiply", x, x),
    "SquaredDifference": _squared_difference,
    "Sub": _in_order("subtract"),
    "Tanh": _in_order("tanh"),
}


class Planner:
    """The loops of one group: at most `_PLANS_MAX`, by the shapes of its inputs."""

    def __init__(self, members: Sequence[Member], input_count: int, outputs: Sequence[int]) -> None:
        """`outputs`: the members whose results others want, by number."""
        self._members = members
        self._input_count = input_count
        self._outputs = outputs
        self._used = sorted({-1 - source for each in members for source in _read_sources(each)})
        self._plans: dict[tuple[_Shape, ...], _Plan | None] = {}

    def run(self, values: Sequence[Array]) -> Outputs:
        """The results of the group for these inputs; None where no loop can compute them."""
        shapes = tuple([value.shape for value in values])
        try:
            plan = self._plans[shapes]
        except KeyError:
            if len(self._plans) >= _PLANS_MAX:
                return None
            plan = self._plans[shapes] = self._plan(shapes)
        if plan is None:
            return None
        return plan.run(values)

    def _plan(self, shapes: Sequence[_Shape]) -> _Plan | None:
        largest = max((shapes[number] for number in self._used), key=math.prod, default=())
        if not math.prod(largest):
            return None
        for split in range(len(largest) + 1):
            columns = math.prod(largest[split:])
            if split and columns < _COLUMNS_MIN:
                break
            try:
                return _Attempt(math.prod(largest[:split]), columns).plan(self, shapes)
            except _UnfitError:
                continue
        return None


_PLANS_MAX = 16
_COLUMNS_MIN = 8
_SUMMED_COLUMNS_MAX = 1 << 14
"""Columns of a row that is summed, in one register: more would make the sum inexact."""
_TOTAL_COLUMNS_MAX = 1 << 16


def _read_sources(member: Member) -> list[int]:
    """The inputs of the group that a member reads the elements of: no axes, no shapes."""
    sources = member.sources[:1] if member.node.op in _SUMS or is_alias(member.node) else member.sources
    return [source for source in sources if source < 0]


class _Attempt:
    """The group as a loop over some rows and columns. Raises _UnfitError where it is none."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._builder = Builder()

    def plan(self, planner: Planner, shapes: Sequence[_Shape]) -> _Plan:
        builder = self._builder
        inputs: dict[int, _Operand] = {}
        for number in planner._used:
            kind = self._kind(shapes[number])
            inputs[number] = _Operand(builder.array(MATRIX if kind == _COLUMN else kind), shapes[number], kind, number)
        made: list[_Operand | None] = []
        summed: dict[int, tuple[int, _Shape, float, bool]] = {}
        for index, member in enumerate(planner._members):
            if ends_loop(member.node, member.known):
                summed[index] = self._sum_over_rows(member, self._sources(member, made, inputs)[0])
                made.append(None)
            else:
                made.append(self._made(member, self._sources(member, made, inputs)))
        outputs = []
        for index in planner._outputs:
            result = made[index]
            if result is None:
                node, shape, factor, is_total = summed[index]
                builder.store(node, COLUMN_SUM)
                outputs.append(_Output(shape, COLUMN_SUM, factor, is_total))
            elif result.same_as is not None:
                outputs.append(_Output(result.shape, result.kind, same_as=result.same_as))
            else:
                builder.store(result.node, MATRIX if result.kind == _COLUMN else result.kind)
                outputs.append(_Output(result.shape, result.kind))
        run = loops.compiled(builder.loop())
        if run is None:
            raise _UnfitError
        kinds = [(number, operand.kind) for number, operand in inputs.items()]
        return _Plan(run, self._rows, self._columns, kinds, outputs)

    def _sources(
        self, member: Member, made: Sequence[_Operand | None], inputs: Mapping[int, _Operand]
    ) -> list[_Operand]:
        count = 1 if member.node.op in _SUMS or is_alias(member.node) else len(member.sources)
        found = []
        for source in member.sources[:count]:
            operand = made[source] if source >= 0 else inputs[-1 - source]
            if operand is None:
                raise _UnfitError
            found.append(operand)
        return found

    def _kind(self, shape: _Shape) -> str:
        size = math.prod(shape)
        if size == 1:
            return SINGLE
        if size == self._rows * self._columns:
            return MATRIX
        if size == self._rows and (size != self._columns or shape[-1] == 1):
            return ROW
        if size == self._columns:
            return _COLUMN
        raise _UnfitError

    def _made(self, member: Member, sources: Sequence[_Operand]) -> _Operand:
        node, first = member.node, sources[0]
        if node.op in ALIASES:
            return first
        if node.op == "Reshape":
            return first._replace(shape=_reshaped(first.shape, member.known[1]))
        if node.op == "BroadcastTo":
            return self._broadcast(first, tuple(np.ravel(cast(Array, member.known[1])).tolist()))
        if node.op in _SUMS:
            return self._sum_over_columns(member, first)
        if node.op == "BiasAdd":
            if len(sources[1].shape) != 1 or len(first.shape) < 2 or sources[1].shape[0] != first.shape[-1]:
                raise _UnfitError
            return self._combined(lambda b, *nodes: b.node("add", *nodes), sources)
        if node.op in _OF_EQUAL_SHAPES and any(each.shape != first.shape for each in sources):
            raise _UnfitError
        return self._combined(_ELEMENTWISE[node.op], sources)

    def _combined(self, function: Callable[..., int], sources: Sequence[_Operand]) -> _Operand:
        try:
            shape = np.broadcast_shapes(*(each.shape for each in sources))
        except ValueError:
            raise _UnfitError from None
        result = _Operand(function(self._builder, *(each.node for each in sources)), shape, self._kind(shape))
        for each in sources:
            self._check_fits(each, result)
        return result

    def _broadcast(self, source: _Operand, shape: _Shape) -> _Operand:
        try:
            if np.broadcast_shapes(source.shape, shape) != shape:
                raise _UnfitError
        except ValueError:
            raise _UnfitError from None
        if source.shape == shape:
            return source
        result = _Operand(source.node, shape, self._kind(shape))
        self._check_fits(source, result)
        return result

    def _check_fits(self, source: _Operand, result: _Operand) -> None:
        """Raises unless the element of a row and column that the loop takes is the one that is broadcast there."""
        if source.kind in (SINGLE, result.kind):
            return  # of one size: the same elements in the same order
        if result.kind != MATRIX:
            raise _UnfitError
        shape = (1,) * (len(result.shape) - len(source.shape)) + source.shape
        differing = [axis for axis, size in enumerate(shape) if size != result.shape[axis]]
        if source.kind == _COLUMN:
            kept = result.shape[max(differing, default=-1) + 1 :]
            fits = all(size == 1 for size in shape[: len(shape) - len(kept)]) and math.prod(kept) == self._columns
        else:
            kept = result.shape[: min(differing, default=len(shape))]
            fits = all(size == 1 for size in shape[len(kept) :]) and math.prod(kept) == self._rows
        if not fits:
            raise _UnfitError

    def _sum_over_columns(self, member: Member, source: _Operand) -> _Operand:
        axes = _axes(member, source.shape)
        rank = len(source.shape)
        is_fit = source.kind == MATRIX and axes == list(range(rank - len(axes), rank))
        if not is_fit or math.prod(source.shape[axes[0] :]) != self._columns or self._columns > _SUMMED_COLUMNS_MAX:
            raise _UnfitError
        total = self._builder.node("row sum", source.node)
        if member.node.op == "Mean":
            total = self._builder.node("divide", total, self._builder.number(float(self._columns)))
        shape = source.shape[: axes[0]] + ((1,) * len(axes) if member.node.attr("keep_dims") else ())
        return _Operand(total, shape, self._kind(shape))

    def _sum_over_rows(self, member: Member, source: _Operand) -> tuple[int, _Shape, float, bool]:
        """The node that is summed, the shape of the sum, what to divide it by, and whether it is of all columns too."""
        rank = len(source.shape)
        axes = list(range(rank - 1)) if member.node.op == "BiasAddGrad" else _axes(member, source.shape)
        if source.kind != MATRIX or not axes or axes != list(range(len(axes))) or rank < 2:
            raise _UnfitError
        keeps = member.node.op != "BiasAddGrad" and member.node.attr("keep_dims")
        shape = ((1,) * len(axes) if keeps else ()) + source.shape[len(axes) :]
        count = math.prod(source.shape[: len(axes)])
        is_total = len(axes) == rank
        if (self._columns > _TOTAL_COLUMNS_MAX) if is_total else count != self._rows:
            raise _UnfitError
        return source.node, shape, float(count) if member.node.op == "Mean" else 0.0, is_total


def _axes(member: Member, shape: _Shape) -> list[int]:
    axes = [axis + len(shape) * (axis < 0) for axis in np.ravel(cast(Array, member.known[1])).tolist()]
    if len(set(axes)) < len(axes) or not all(0 <= axis < len(shape) for axis in axes):
        raise _UnfitError
    return sorted(axes)


def _reshaped(shape: _Shape, wanted: Array | None) -> _Shape:
    sizes = np.ravel(cast(Array, wanted)).tolist()
    known = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known:
        sizes[sizes.index(-1)] = math.prod(shape) // known
    if math.prod(sizes) != math.prod(shape) or min(sizes, default=0) < 0:
        raise _UnfitError
    return tuple(sizes)


class _Output(NamedTuple):
    shape: _Shape
    kind: str
    divisor: float = 0.0
    is_total: bool = False
    same_as: int | None = None


class _Plan:
    """A loop, and how the arrays of a step are its arrays."""

    def __init__(
        self,
        run: loops.Runner,
        rows: int,
        columns: int,
        inputs: Sequence[tuple[int, str]],
        outputs: Sequence[_Output],
    ) -> None:
        self._run, self._rows, self._columns = run, rows, columns
        self._row_bytes = columns * _FLOAT32_BYTES
        self._inputs = inputs
        self._outputs = outputs
        self._pitches = {MATRIX: self._row_bytes, _COLUMN: 0, ROW: _FLOAT32_BYTES, SINGLE: 0, COLUMN_SUM: 0}

    def run(self, values: Sequence[Array]) -> Outputs:
        places: list[tuple[int, int]] = []
        kept: list[Array] = []
        for number, kind in self._inputs:
            value = values[number]
            if value.dtype != np.float32:
                return None
            pitch = self._pitches[kind]
            if type(value) is not np.ndarray or not value.flags.c_contiguous:
                if kind == MATRIX and value.ndim == 2 and value.shape[0] == self._rows and value.strides[1] == 4:
                    pitch = value.strides[0]
                else:
                    value = np.ascontiguousarray(value)
            kept.append(value)
            places.append((value.__array_interface__["data"][0], pitch))
        results: list[Array] = []
        for output in self._outputs:
            if output.same_as is not None:
                results.append(values[output.same_as].reshape(output.shape))
                continue
            if output.kind == COLUMN_SUM:
                made = np.zeros(self._columns, np.float32)
            else:
                made = np.empty(output.shape, np.float32)
            results.append(made)
            places.append((made.__array_interface__["data"][0], self._pitches[output.kind]))
        self._run(self._rows, self._columns, places)
        for number, output in enumerate(self._outputs):
            if output.kind == COLUMN_SUM:
                total = results[number].sum() if output.is_total else results[number]
                if output.divisor:
                    total = total / np.float32(output.divisor)
                results[number] = np.reshape(total, output.shape)
        return results[0] if len(results) == 1 else results


_FLOAT32_BYTES = 4
