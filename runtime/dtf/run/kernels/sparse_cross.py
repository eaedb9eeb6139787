"""Kernels of feature crosses: every combination of one feature of each column, row by row, joined or hashed.

Columns are sparse or dense matrices of int64 or strings; the sparse ones come first. The last column varies fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room, scalar, shape_text
from dtf.run.lib.fingerprints import fingerprint64
from dtf.run.value_types import Array, NumpyType, Scalar
from dtf.wire import dtypes

_MASK = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_INT64_MAX = (1 << 63) - 1


def concatenated_fingerprint(first: int, second: int) -> int:
    """The fingerprint of two fingerprints one after another, as TensorFlow mixes them."""

    def mixed(value: int) -> int:
        return value ^ (value >> 47)

    result = first ^ _MULTIPLIER
    result ^= mixed(second * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK
    result = result * _MULTIPLIER & _MASK
    return mixed(mixed(result) * _MULTIPLIER & _MASK)


@kernel("SparseCross")
def _(node: KernelNode) -> Function:
    taken = [*node.attr("sparse_types"), *node.attr("dense_types")]
    if node.attr("out_type") != dtypes.string and node.attr("internal_type") == dtypes.string and dtypes.int64 in taken:
        raise invalid("Input values should be of the internal type string but received int64")
    # TensorFlow goes by the type of the output, and does not read hashed_output.
    if node.attr("out_type") == dtypes.string:
        return _crosses(node, object, lambda features: b"_X_".join(map(_as_bytes, features)))
    buckets, key = node.attr("num_buckets"), node.attr("hash_key")
    return _crosses(node, np.int64, lambda features: _hashed(features, key, buckets))


@kernel("SparseCrossV2")
def _(node: KernelNode) -> Function:
    count = _column_arguments(node)

    def cross(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        separator = scalar(arguments[count], "Input separator")
        return _crosses(node, object, lambda features: separator.join(map(_as_bytes, features)))(*arguments[:count])

    return cross


def _column_arguments(node: KernelNode) -> int:
    return 2 * node.attr("N") + len(node.attr("sparse_types")) + len(node.attr("dense_types"))


def _hashed(features: Sequence[Array], key: int, buckets: int) -> int:
    result = key & _MASK
    for feature in features:
        number = fingerprint64(feature) if isinstance(feature, bytes) else int(feature) & _MASK
        result = concatenated_fingerprint(result, number)
    return result % (buckets or _INT64_MAX)


def _as_bytes(feature: Array) -> bytes:
    return feature if isinstance(feature, bytes) else str(feature).encode()


def _crosses(
    node: KernelNode, dtype: NumpyType, join: Callable[[Sequence[Scalar]], bytes | int]
) -> Callable[..., tuple[np.ndarray, ...]]:
    count = node.attr("N")

    def cross(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        indices, values = arguments[:count], arguments[count : 2 * count]
        shapes, dense = arguments[2 * count : 3 * count], arguments[3 * count :]
        given: list[Sequence[int] | np.ndarray] = [*shapes, *(each.shape for each in dense)]
        for each in given:
            if len(each) != 2:
                raise invalid(f"Expected matrices, got shape {shape_text(each)}")
        sizes = [int(shape[0]) for shape in shapes] + [len(each) for each in dense]
        if len(set(sizes)) > 1:
            raise invalid(f"Expected as many rows in all inputs, got {sizes}")
        rows = sizes[0] if sizes else 0
        room((rows, 8 * (count + 1)), np.int64)  # a list for each row and column
        columns = [_rows_of(*each, rows) for each in zip(indices, values, strict=True)]
        columns += [each.tolist() for each in dense]
        total = sum(math.prod(len(column[row]) for column in columns) for row in range(rows))
        room((total, 16), np.int64)
        crossed = [
            [join(one) for one in itertools.product(*(column[row] for column in columns))] for row in range(rows)
        ]
        places = [(row, number) for row, made in enumerate(crossed) for number in range(len(made))]
        out = np.empty(len(places), dtype)
        out[:] = [one for made in crossed for one in made]
        longest = max(map(len, crossed), default=0)
        return np.array(places, np.int64).reshape(-1, 2), out, np.array([rows, longest], np.int64)

    return cross


def _rows_of(indices: np.ndarray, values: np.ndarray, rows: int) -> list[list[Array]]:
    found: list[list[Array]] = [[] for _ in range(rows)]
    for row, value in zip(indices[:, 0].tolist(), values.tolist(), strict=True):
        if not 0 <= row < rows:
            raise invalid(f"Row {row} of the indices is not in [0, {rows})")
        found[row].append(value)
    return found
