"""Initial values from a checkpoint's matrices whose rows or columns belong to words of a vocabulary.

Owns the functions that make the ops GenerateVocabRemapping and LoadAndRemapMatrix, and initializers made of them.
`tf.contrib.framework` has the public ones. A vocabulary is a text file with a word on each line.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/framework/load_and_remap_matrix_initializer
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.initializers import PartitionInfo, truncated_normal_initializer, zeros_initializer
from dtf.build.ops.joining import concat
from dtf.build.ops.math import range as number_range
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

__all__ = [
    "load_and_remap_matrix", "load_and_remap_matrix_initializer", "load_embedding_initializer",
    "load_linear_multiclass_bias_initializer", "load_variable_slot_initializer",
]  # fmt: skip

Initializer = Callable[..., Tensor]


def load_and_remap_matrix(
    ckpt_path: str, old_tensor_name: str, new_row_vocab_offset: int, num_rows_to_load: int, new_col_vocab_size: int,
    initializer: Callable[[list[Any]], Any], old_row_vocab_size: int = -1, old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None, old_col_vocab_file: Any = None, new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0, num_col_oov_buckets: int = 0, max_rows_in_memory: int = -1,
) -> Tensor:  # fmt: skip
    """Part of a checkpoint's matrix, with rows or columns in the order of new vocabularies.

    Args:
      ckpt_path: prefix of the checkpoint.
      old_tensor_name: a float32 matrix in it.
      new_row_vocab_offset: the line of the new row vocabulary at which this part begins.
      num_rows_to_load: how many of its lines this part has.
      new_col_vocab_size: number of columns, without additional ones.
      initializer: takes a shape and makes values of words that the old vocabulary lacks.
      old_row_vocab_size: how many lines of the old row vocabulary count; -1: all.
      old_row_vocab_file, new_row_vocab_file: row vocabularies; both None if rows keep their order.
      old_col_vocab_file, new_col_vocab_file: column vocabularies; both None if columns keep their order.
      num_row_oov_buckets, num_col_oov_buckets: rows and columns that are added behind, for unknown words.
      max_rows_in_memory: how many rows of the checkpoint are read at once; all by default.

    Returns:
      float32 of shape [num_rows_to_load + num_row_oov_buckets, new_col_vocab_size + num_col_oov_buckets].

    Raises:
      ValueError: a number of buckets is negative, one of two files is missing, or no vocabulary is given.
    """
    for name, count in (("num_row_oov_buckets", num_row_oov_buckets), ("num_col_oov_buckets", num_col_oov_buckets)):
        if count < 0:
            raise ValueError(f"{name} must be >= 0, but received {count}")
    has_rows = _is_pair("row", old_row_vocab_file, new_row_vocab_file)
    has_columns = _is_pair("col", old_col_vocab_file, new_col_vocab_file)
    if not has_rows and not has_columns:
        raise ValueError(
            "Must provide either row or column vocab files. If no remapping is necessary, consider using "
            "`tf.contrib.framework.init_from_checkpoint` instead."
        )
    rows_present: Any = num_rows_to_load
    columns_present: Any = new_col_vocab_size
    columns: Any = []
    if has_rows:
        rows, rows_present = apply_op(
            "GenerateVocabRemapping",
            None,
            new_vocab_file=new_row_vocab_file,
            old_vocab_file=old_row_vocab_file,
            new_vocab_offset=new_row_vocab_offset,
            num_new_vocab=num_rows_to_load,
            old_vocab_size=old_row_vocab_size,
        )
    else:  # a part of a variable begins at its offset
        rows = number_range(new_row_vocab_offset, new_row_vocab_offset + num_rows_to_load, dtype=dtypes.int64)
    if has_columns:
        columns, columns_present = apply_op(
            "GenerateVocabRemapping",
            None,
            new_vocab_file=new_col_vocab_file,
            old_vocab_file=old_col_vocab_file,
            new_vocab_offset=0,
            num_new_vocab=new_col_vocab_size,
        )
    missing = num_rows_to_load * new_col_vocab_size - rows_present * columns_present
    matrix = apply_op(
        "LoadAndRemapMatrix",
        None,
        ckpt_path=ckpt_path,
        old_tensor_name=old_tensor_name,
        row_remapping=rows,
        col_remapping=columns,
        initializing_values=initializer([missing, 1]),
        num_rows=num_rows_to_load,
        num_cols=new_col_vocab_size,
        max_rows_in_memory=max_rows_in_memory,
    )
    if num_row_oov_buckets:
        added = convert_to_tensor(initializer([num_row_oov_buckets, new_col_vocab_size]))
        matrix = concat([matrix, added], 0)
    if num_col_oov_buckets:
        added = convert_to_tensor(initializer([num_rows_to_load + num_row_oov_buckets, num_col_oov_buckets]))
        matrix = concat([matrix, added], 1)
    return matrix


def load_and_remap_matrix_initializer(
    ckpt_path: str, old_tensor_name: str, new_row_vocab_size: int, new_col_vocab_size: int,
    old_row_vocab_size: int = -1, old_row_vocab_file: Any = None, new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None, new_col_vocab_file: Any = None, num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0, initializer: Callable[..., Any] | None = None, max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """An initializer of a matrix, or of its parts by rows, with the values of a checkpoint's matrix.

    Args:
      new_row_vocab_size: number of rows of the whole, without `num_row_oov_buckets`.
      initializer: makes values of new words and buckets; zeros by default.
      The other arguments are those of `load_and_remap_matrix`.

    Returns:
      A function of (shape, dtype=float32, partition_info=None). It raises TypeError for another dtype and ValueError
      for a shape that does not fit.

    Raises:
      TypeError: `initializer` is not a function.
    """
    initializer = zeros_initializer() if initializer is None else initializer
    if not callable(initializer):
        raise TypeError(f"initializer must be callable, instead of being {initializer} of type {type(initializer)}.")
    make = initializer

    def initial(shape: Sequence[int], dtype: Any = dtypes.float32, partition_info: PartitionInfo | None = None) -> Any:
        if dtype != dtypes.float32:
            raise TypeError(f"Currently, only float32 is supported. Received dtype: {dtype}")
        rows, first = _check_part(
            shape, partition_info, new_row_vocab_size, num_row_oov_buckets, new_col_vocab_size, num_col_oov_buckets
        )
        buckets = min(rows, max(0, first + rows - new_row_vocab_size))
        if first > new_row_vocab_size:
            return make(shape)
        return load_and_remap_matrix(
            ckpt_path=ckpt_path,
            old_tensor_name=old_tensor_name,
            new_row_vocab_offset=first,
            num_rows_to_load=rows - buckets,
            new_col_vocab_size=new_col_vocab_size,
            initializer=make,
            old_row_vocab_size=old_row_vocab_size,
            old_row_vocab_file=old_row_vocab_file,
            new_row_vocab_file=new_row_vocab_file,
            old_col_vocab_file=old_col_vocab_file,
            new_col_vocab_file=new_col_vocab_file,
            num_row_oov_buckets=buckets,
            num_col_oov_buckets=num_col_oov_buckets,
            max_rows_in_memory=max_rows_in_memory,
        )

    return initial


def _is_pair(which: str, old: Any, new: Any) -> bool:
    if (old is None or isinstance(old, str) and not old) != (new is None or isinstance(new, str) and not new):
        raise ValueError(
            f"old_{which}_vocab_file and new_{which}_vocab_file must both be specified or left unspecified. "
            f"old_{which}_vocab_file='{old}', new_{which}_vocab_file='{new}'"
        )
    return not (old is None or isinstance(old, str) and not old)


def _check_part(
    shape: Sequence[int], partition_info: PartitionInfo | None, rows: int, row_buckets: int, columns: int,
    column_buckets: int,
) -> tuple[int, int]:  # fmt: skip
    """The number of rows of a part, and the first."""
    if len(shape) != 2:
        raise ValueError(f"Expected 2-dim shape, but received: {shape}")
    if shape[0] <= 0:
        raise ValueError(f"Expected 1st dim of shape to be > 0, but received shape: {shape}")
    if shape[1] != columns + column_buckets:
        raise ValueError(
            f"Expected 2nd dim of shape to be new_col_vocab_size ({columns}) + num_col_oov_buckets ({column_buckets}) "
            f"= {columns + column_buckets}, but received shape: {shape}"
        )
    first = 0 if partition_info is None else partition_info.single_offset(list(shape))
    if first + shape[0] > rows + row_buckets:
        raise ValueError(
            f"Trying to initialize {shape[0]} additional rows after {first} rows have already been initialized, which "
            f"would exceed expected total row count of new_row_vocab_size ({rows}) + num_row_oov_buckets "
            f"({row_buckets}) = {rows + row_buckets}."
        )
    return int(shape[0]), first


def load_embedding_initializer(
    ckpt_path: str, embedding_tensor_name: str, new_vocab_size: int, embedding_dim: int, old_vocab_file: Any,
    new_vocab_file: Any, old_vocab_size: int = -1, num_oov_buckets: int = 0,
    initializer: Callable[..., Any] | None = None, max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """`load_and_remap_matrix_initializer` for embeddings: one row of `embedding_dim` numbers for each word.

    New words and buckets get a truncated normal distribution of deviation 1/sqrt(embedding_dim) by default.
    """
    if initializer is None:
        initializer = truncated_normal_initializer(stddev=1.0 / math.sqrt(embedding_dim))
    return load_and_remap_matrix_initializer(
        ckpt_path,
        embedding_tensor_name,
        new_vocab_size,
        embedding_dim,
        old_row_vocab_size=old_vocab_size,
        old_row_vocab_file=old_vocab_file,
        new_row_vocab_file=new_vocab_file,
        num_row_oov_buckets=num_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_linear_multiclass_bias_initializer(
    ckpt_path: str, bias_tensor_name: str, new_class_vocab_size: int, old_class_vocab_file: Any,
    new_class_vocab_file: Any, num_class_oov_buckets: int = 0, initializer: Callable[..., Any] | None = None,
    max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """`load_and_remap_matrix_initializer` for biases of classes: a column with one row for each class."""
    return load_and_remap_matrix_initializer(
        ckpt_path,
        bias_tensor_name,
        new_class_vocab_size,
        1,
        old_row_vocab_file=old_class_vocab_file,
        new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_variable_slot_initializer(
    ckpt_path: str, old_tensor_name: str, primary_partition_info: PartitionInfo | None, new_row_vocab_size: int,
    new_col_vocab_size: int, old_row_vocab_size: int = -1, old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None, old_col_vocab_file: Any = None, new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0, num_col_oov_buckets: int = 0, initializer: Callable[..., Any] | None = None,
    max_rows_in_memory: int = -1,
) -> Initializer:  # fmt: skip
    """`load_and_remap_matrix_initializer` for an optimizer's slot, whose part is that of its variable.

    Args:
      primary_partition_info: the variable's part of the whole; None for a whole variable.
    """
    load = load_and_remap_matrix_initializer(
        ckpt_path,
        old_tensor_name,
        new_row_vocab_size,
        new_col_vocab_size,
        old_row_vocab_size=old_row_vocab_size,
        old_row_vocab_file=old_row_vocab_file,
        new_row_vocab_file=new_row_vocab_file,
        old_col_vocab_file=old_col_vocab_file,
        new_col_vocab_file=new_col_vocab_file,
        num_row_oov_buckets=num_row_oov_buckets,
        num_col_oov_buckets=num_col_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )

    def initial(shape: Sequence[int], dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        return load(shape, dtype, primary_partition_info)

    return initial
