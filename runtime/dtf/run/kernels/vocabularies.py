"""Kernels that carry matrices of a checkpoint over to other vocabularies: their lines reordered, removed or added.

Owns `GenerateVocabRemapping`, which compares two vocabulary files, and `LoadAndRemapMatrix`, which reads rows and
columns by its result. A negative entry of a remapping stands for a row or column that the checkpoint lacks.
"""

from __future__ import annotations

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, room, scalar, shape_text
from dtf.wire import errors, filesystems, limits
from dtf.wire.checkpoint_v1 import Checkpoint, open_checkpoint
from dtf.wire.files import file_errors, read_within_memory

_LINE_BYTES = 100
"""About the size of a line as an element of a list and a key of a dict."""


@kernel("GenerateVocabRemapping", stateful=True)
def _(node: KernelNode) -> Function:
    offset, count, old_size = node.attr("new_vocab_offset"), node.attr("num_new_vocab"), node.attr("old_vocab_size")

    def remap(step: StepContext, new_vocab: np.ndarray, old_vocab: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        new_path, old_path = as_text(scalar(new_vocab, "new_vocab_file")), as_text(scalar(old_vocab, "old_vocab_file"))
        for path, which in ((new_path, "new"), (old_path, "old")):
            if not path:
                raise invalid(f"{which} vocab filename cannot be empty.")
        old_lines = _lines(old_path)
        if old_size >= 0:
            if len(old_lines) < old_size:
                raise invalid(f"Invalid vocab_size in {old_path}: expected {old_size} but got {len(old_lines)}")
            old_lines = old_lines[:old_size]
        places: dict[bytes, int] = {}
        for place, line in enumerate(old_lines):
            if places.setdefault(line, place) != place:
                raise errors.FailedPreconditionError.of(
                    f"HashTable has different value for same key. Key {line.decode(errors='replace')} has "
                    f"{places[line]} and trying to add value {place}"
                )
        new_lines = _lines(new_path)
        if offset + count > len(new_lines):
            raise invalid("lookup table size must be larger than last new vocab entry's line")
        remapping = np.array([places.get(line, -1) for line in new_lines[offset : offset + count]], np.int64)
        return remapping, np.int32(np.count_nonzero(remapping >= 0))[()]

    return remap


def _lines(path: str) -> list[bytes]:
    with file_errors(path), filesystems.open(path, "rb") as file:
        text = read_within_memory(file, path)
    limits.check_free(text.count(b"\n") * _LINE_BYTES, path)
    return text.splitlines()


@kernel("LoadAndRemapMatrix", stateful=True)
def _(node: KernelNode) -> Function:
    num_rows, num_cols = node.attr("num_rows"), node.attr("num_cols")
    rows_at_once = node.attr("max_rows_in_memory")

    def load(
        step: StepContext, ckpt_path: np.ndarray, old_tensor_name: np.ndarray, row_remapping: np.ndarray,
        col_remapping: np.ndarray, initializing_values: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        rows, cols = np.asarray(row_remapping), np.asarray(col_remapping)
        for which, given in (("row_remapping", rows), ("col_remapping", cols)):
            if given.ndim != 1:
                raise invalid(f"The `{which}` tensor must be 1-D, got a tensor of shape {shape_text(given.shape)}")
        if len(rows) != num_rows:
            raise invalid(f"Size of row_remapping is {len(rows)} instead of being equal to num_rows={num_rows}")
        if len(cols) and len(cols) != num_cols:
            raise invalid(
                f"Provided col_remapping, but its size is {len(cols)} instead of being equal to num_cols={num_cols}"
            )
        _check_once(rows)
        _check_once(cols)
        reader = open_checkpoint(as_text(scalar(ckpt_path, "ckpt_path")))
        name = as_text(scalar(old_tensor_name, "old_tensor_name"))
        old_shape = _old_shape(reader, name, num_cols if not len(cols) else None)
        cols = cols if len(cols) else np.arange(num_cols)
        for which, remapping, size in (("row_remapping", rows, old_shape[0]), ("col_remapping", cols, old_shape[1])):
            if len(remapping) and remapping.max() >= size:
                raise invalid(
                    f"{which} refers to {remapping.max()}, but the size of that dimension of tensor {name} is {size}"
                )
        matrix = np.empty(room((num_rows, num_cols), np.float32), np.float32)
        loaded = np.logical_and.outer(rows >= 0, cols >= 0)
        _copy(reader, name, old_shape, rows, cols, matrix, rows_at_once)
        _fill(matrix, ~loaded, np.ravel(initializing_values))
        return matrix

    return load


def _check_once(remapping: np.ndarray) -> None:
    """Each old row or column has at most one place in the new matrix."""
    present = np.flatnonzero(remapping >= 0)
    old = remapping[present]
    _, first, inverse = np.unique(old, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[inverse] != np.arange(len(old)))
    if len(repeated):
        at = repeated[0]
        raise errors.UnimplementedError.of(
            f"Old ID {old[at]} is mapped to both new ID {present[first[inverse[at]]]} and {present[at]}, "
            "which is not supported."
        )


def _old_shape(reader: Checkpoint, name: str, wanted_columns: int | None) -> list[int]:
    if reader.dtype(name).name != "float32":
        raise invalid(f"Tensor {name} has invalid type {reader.dtype(name).name} instead of expected type float")
    shape = [size or 0 for size in reader.shape(name).as_list()]
    if len(shape) != 2:
        raise invalid(
            f"Tensor {name} has shape {shape_text(shape)} of invalid rank {len(shape)} instead of expected shape of "
            "rank 2."
        )
    if wanted_columns is not None and shape[1] != wanted_columns:
        raise invalid(
            f"Tensor {name} has shape {shape_text(shape)}, where the size of its 2nd dimension is {shape[1]} instead "
            f"of being equal to num_cols={wanted_columns}"
        )
    return shape


def _copy(
    reader: Checkpoint, name: str, old_shape: list[int], rows: np.ndarray, cols: np.ndarray, matrix: np.ndarray,
    rows_at_once: int,
) -> None:  # fmt: skip
    """Copies the rows and columns that the checkpoint has, at most `rows_at_once` rows of it at a time."""
    new_rows, new_cols = np.flatnonzero(rows >= 0), np.flatnonzero(cols >= 0)
    if not len(new_rows):
        return
    first, end = int(rows[new_rows].min()), int(rows[new_rows].max()) + 1
    piece_rows = rows_at_once if rows_at_once > 0 else end - first
    for start in range(first, end, piece_rows):
        stop = min(start + piece_rows, end)
        inside = new_rows[(rows[new_rows] >= start) & (rows[new_rows] < stop)]
        if len(inside):
            piece = reader.read_slice(name, [(start, stop - start), (0, old_shape[1])])
            matrix[np.ix_(inside, new_cols)] = piece[np.ix_(rows[inside] - start, cols[new_cols])]


def _fill(matrix: np.ndarray, missing: np.ndarray, values: np.ndarray) -> None:
    """Puts `values`, in the order of rows, where the checkpoint has no value."""
    count = int(np.count_nonzero(missing))
    if len(values) < count:
        raise invalid(f"initializing_values contained {len(values)} elements, but more missing values remain.")
    if len(values) > count:
        raise invalid(
            f"initializing_values contained {len(values)} elements, but only {count} elements were used to fill in "
            "missing values."
        )
    matrix[missing] = values
