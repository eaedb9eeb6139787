"""Kernels of the rarer array ops: rows written as older graphs write them, and translations of indices and formats.

Owns InplaceAdd and its like (which copy here: nobody's value changes), UnravelIndex, the layout optimizer's
permutations of dimensions, and EditDistance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, dimensions, invalid, room, shape_text
from dtf.run.value_types import Array


def _row_writer(op: str, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    @kernel(op)
    def factory(node: KernelNode) -> Function:
        def write(x: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
            if np.ndim(rows) == 0:
                rows, values = np.reshape(rows, 1), values[None]
            if rows.shape[0] != values.shape[0] or values.shape[1:] != x.shape[1:]:
                raise invalid(
                    f"x of shape {shape_text(x.shape)}, i of shape {shape_text(rows.shape)} and v of shape "
                    f"{shape_text(values.shape)} do not fit"
                )
            if op != "InplaceUpdate" and (x.dtype == object or x.dtype == np.bool_):
                raise invalid(f"Unsupported data type: {x.dtype}")
            out = x.copy()
            if not len(out):
                return out
            for row, value in zip(rows.tolist(), values, strict=True):  # one by one: rows may repeat
                row %= len(out)
                out[row] = combine(out[row], value)
            return out

        return write


_row_writer("InplaceUpdate", lambda old, new: new)
_row_writer("InplaceAdd", np.add)
_row_writer("InplaceSub", np.subtract)


@kernel("UnravelIndex")
def _(node: KernelNode) -> Function:
    def unravel(indices: np.ndarray, dims: np.ndarray) -> np.ndarray:
        if np.ndim(dims) != 1 or np.ndim(indices) > 1:
            raise invalid(
                f"The indices can only be scalar or vector, got \"{shape_text(np.shape(indices))}\", and dims a vector"
            )
        if (np.asarray(dims) == 0).any():
            raise invalid("Input dims cannot contain a dim of zero")
        if not np.size(indices):
            raise invalid(f"received empty tensor indices of shape {shape_text(np.shape(indices))}")
        size = int(np.prod(dims, dtype=np.int64))
        if np.size(indices) and (np.min(indices) < 0 or np.max(indices) >= size):
            raise invalid("index is out of bound as with dims")
        return np.stack(np.unravel_index(indices, tuple(dims.tolist()))).astype(dims.dtype).reshape(
            len(dims), *np.shape(indices)
        )

    return unravel


@kernel("DataFormatDimMap")
def _(node: KernelNode) -> Function:
    source, target = (as_text(node.attr(name)) for name in ("src_format", "dst_format"))
    places = np.array([target.index(letter) for letter in source])

    def dim_map(axes: np.ndarray) -> np.ndarray:
        if np.size(axes) and (np.min(axes) < -len(source) or np.max(axes) >= len(source)):
            raise invalid(f"Source dimension index {axes} is not in [-{len(source)}, {len(source)})")
        return places[np.mod(axes, len(source))].astype(np.asarray(axes).dtype)

    return dim_map


@kernel("DataFormatVecPermute")
def _(node: KernelNode) -> Function:
    source, target = (as_text(node.attr(name)) for name in ("src_format", "dst_format"))

    def permute(x: np.ndarray) -> np.ndarray:
        letters_from, letters_to = source, target
        if len(x) == len(source) - 2:  # sizes of the spatial dimensions only
            letters_from, letters_to = (
                "".join(letter for letter in letters if letter not in "NC") for letters in (source, target)
            )
        if len(x) != len(letters_from):
            raise invalid(f"1D input must be of size {len(source)} or {len(source) - 2}, but got shape "
                          f"{shape_text(x.shape)}")  # fmt: skip
        return x[[letters_from.index(letter) for letter in letters_to]]

    return permute


@kernel("EditDistance")
def _(node: KernelNode) -> Function:
    normalize = node.attr("normalize")

    def edit_distance(
        h_indices: np.ndarray,
        h_values: np.ndarray,
        h_shape: np.ndarray,
        t_indices: np.ndarray,
        t_values: np.ndarray,
        t_shape: np.ndarray,
    ) -> np.ndarray:
        if len(h_shape) != len(t_shape) or len(h_shape) < 2:
            raise invalid(f"hypothesis_shape and truth_shape should be of one rank of at least 2, got "
                          f"{shape_text(h_shape)} and {shape_text(t_shape)}")  # fmt: skip
        for shape in (h_shape, t_shape):
            dimensions(shape)
        sizes = tuple(np.maximum(h_shape[:-1], t_shape[:-1]).tolist())
        out = np.zeros(room(sizes, np.float32), np.float32)
        hypotheses, truths = _sequences(h_indices, h_values), _sequences(t_indices, t_values)
        for place in {*hypotheses, *truths}:
            hypothesis, truth = hypotheses.get(place, []), truths.get(place, [])
            distance = float(_levenshtein(hypothesis, truth))
            if normalize:
                distance = distance / len(truth) if truth else np.inf
            out[place] = distance
        return out

    return edit_distance


def _sequences(indices: np.ndarray, values: np.ndarray) -> dict[tuple[int, ...], list[Array]]:
    found: dict[tuple[int, ...], list[Array]] = {}
    for place, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist(), strict=True):
        found.setdefault(place, []).append(value)
    return found


def _levenshtein(first: list[Array], second: list[Array]) -> int:
    """How many insertions, deletions and replacements turn one sequence into the other."""
    distances = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        diagonal, distances[0] = distances[0], i
        for j, right in enumerate(second, 1):
            replaced = diagonal + (left != right)
            diagonal = distances[j]
            distances[j] = min(replaced, distances[j] + 1, distances[j - 1] + 1)
    return distances[-1]
