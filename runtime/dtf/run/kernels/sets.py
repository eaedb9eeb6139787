"""Kernels of set operations: the last dimension of a tensor holds sets, one per place of the dimensions before it.

A set comes as a row of a dense tensor or as the stored elements of a row of a sparse one; repeated elements count once.
Results are sparse, their elements sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, shape_text
from dtf.run.value_types import Array, Scalar

_Groups = dict[tuple[int, ...], list[Scalar]]

_Operation = Callable[[set[Scalar], set[Scalar]], set[Scalar]]

_OPERATIONS: dict[str, _Operation] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _dense_groups(values: np.ndarray) -> tuple[_Groups, tuple[int, ...]]:
    if values.ndim < 2:
        raise invalid(f"Input set should be at least a 2-D tensor, got shape {shape_text(values.shape)}.")
    lead = values.shape[:-1]
    return {place: values[place].tolist() for place in np.ndindex(lead)}, lead


def _sparse_groups(
    validate: bool, indices: np.ndarray, values: np.ndarray, shape: np.ndarray
) -> tuple[_Groups, tuple[int, ...]]:
    if len(shape) < 2:
        raise invalid(f"Input set should be at least a 2-D tensor, got shape {shape_text(shape.tolist())}.")
    if len(indices) and ((indices < 0) | (indices >= shape)).any():
        at = int(np.flatnonzero(((indices < 0) | (indices >= shape)).any(axis=1))[0])
        raise invalid(f"indices[{at}] = {shape_text(indices[at].tolist())} is out of bounds: need 0 <= index < "
                      f"{shape_text(shape.tolist())}")  # fmt: skip
    if validate:
        order = np.lexsort(indices.T[::-1])
        wrong = np.flatnonzero(order != np.arange(len(order)))
        if wrong.size:
            at = int(wrong[0]) + 1
            raise invalid(f"indices[{at}] = {shape_text(indices[at].tolist())} is out of order")
    groups: _Groups = {}
    for place, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist(), strict=True):
        groups.setdefault(place, []).append(value)
    return groups, tuple(shape[:-1].tolist())


def _combined(
    node: KernelNode, first: tuple[_Groups, tuple[int, ...]], second: tuple[_Groups, tuple[int, ...]]
) -> tuple[Array, Array, Array]:
    name = as_text(node.attr("set_operation")).lower()
    operation = _OPERATIONS.get(name)
    if operation is None:
        raise invalid(f"Invalid set_operation {name}.")
    (a_groups, a_lead), (b_groups, b_lead) = first, second
    if a_lead != b_lead:
        raise invalid(f"Mismatched shapes {shape_text(a_lead)} vs {shape_text(b_lead)}")
    rows = list(_sorted_results(operation, a_groups, b_groups))
    indices = [(*place, number) for place, members in rows for number in range(len(members))]
    dtype = node.attr("T").as_numpy_dtype
    values = np.empty(len(indices), dtype)
    values[:] = [member for _, members in rows for member in members]
    longest = max((len(members) for _, members in rows), default=0)
    return (
        np.array(indices, np.int64).reshape(len(indices), len(a_lead) + 1),
        values,
        np.array([*a_lead, longest], np.int64),
    )


def _sorted_results(
    operation: _Operation, first: _Groups, second: _Groups
) -> Iterator[tuple[tuple[int, ...], list[Scalar]]]:
    for place in sorted({*first, *second}):
        yield place, sorted(operation(set(first.get(place, ())), set(second.get(place, ()))))


@kernel("DenseToDenseSetOperation")
def _(node: KernelNode) -> Function:
    return lambda first, second: _combined(node, _dense_groups(first), _dense_groups(second))


@kernel("DenseToSparseSetOperation")
def _(node: KernelNode) -> Function:
    validate = node.attr("validate_indices")
    return lambda first, *second: _combined(node, _dense_groups(first), _sparse_groups(validate, *second))


@kernel("SparseToSparseSetOperation")
def _(node: KernelNode) -> Function:
    validate = node.attr("validate_indices")

    def combine(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        first, second = arguments[:3], arguments[3:]
        return _combined(node, _sparse_groups(validate, *first), _sparse_groups(validate, *second))

    return combine


@kernel("SetSize")
def _(node: KernelNode) -> Function:
    validate = node.attr("validate_indices")

    def sizes(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
        groups, lead = _sparse_groups(validate, indices, values, shape)
        out = np.zeros(lead, np.int32)
        for place, members in groups.items():
            out[place] = len(set(members))
        return out

    return sizes
