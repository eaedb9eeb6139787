"""Functions of strings whose results are ragged: parts, bytes, characters and n-grams.

Each string gives a row. Strings of a matrix or of ragged rows give rows within rows; a single string gives a vector.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/strings
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, filling, joining
from dtf.build.ops.ragged_functions import map_flat_values
from dtf.build.ragged import RaggedTensor, ragged_or_dense
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    pass

__all__ = [
    "bytes_split", "ngrams", "rows_of_sparse", "split_to_ragged", "unicode_decode", "unicode_decode_with_offsets",
    "unicode_encode", "unicode_split", "unicode_split_with_offsets",
]  # fmt: skip


def split_to_ragged(
    input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None
) -> Any:
    """The parts of each string between separators; a single string gives a vector.

    Args:
      input: strings of any known rank, or a RaggedTensor of them.
      sep: the separator; runs of white space by default.
      maxsplit: the most cuts; -1 for any number.
      name: a prefix of the names of the operations.
    """

    def rows(strings: Tensor) -> RaggedTensor:
        parts = apply_op("StringSplitV2", input=strings, sep="" if sep is None else sep, maxsplit=maxsplit)
        return rows_of_sparse(parts[0], parts[1], parts[2])

    with name_scope(name, "StringSplit"):
        return _in_rows(rows, ragged_or_dense(input, dtypes.string, name="input"))


def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of each string; a single string gives a vector.

    Args:
      input: strings of any known rank, or a RaggedTensor of them.
      name: a prefix of the names of the operations.

    Returns:
      A RaggedTensor of one more dimension than `input`; a Tensor [bytes] for a single string.
    """

    def rows(strings: Tensor) -> RaggedTensor:
        parts = apply_op("StringSplit", input=strings, delimiter="", skip_empty=False)
        return rows_of_sparse(parts[0], parts[1], parts[2])

    with name_scope(name, "StringsByteSplit"):
        return _in_rows(rows, ragged_or_dense(input, dtypes.string, name="input"))


def unicode_decode(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The code points of each string; a single string gives a vector.

    Args:
      input: strings of any known rank, or a RaggedTensor of them.
      input_encoding: an encoding, such as "UTF-8".
      errors: "replace", "strict" or "ignore" for bytes that are no characters.
      replacement_char: the code point put for those.
      replace_control_characters: replace the characters below U+0020 too.
      name: a prefix of the names of the operations.

    Returns:
      A RaggedTensor of int32 of one more dimension than `input`; a Tensor for a single string.
    """
    with name_scope(name, "UnicodeDecode"):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters)[0]


def unicode_decode_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The code points of each string, and the position of the first byte of each. Arguments as `unicode_decode`."""
    with name_scope(name, "UnicodeDecodeWithOffsets"):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters)


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The characters of each string, as strings of this encoding. Arguments as `unicode_decode`."""
    with name_scope(name, "UnicodeSplit"):
        codepoints, _ = _decoded(input, input_encoding, errors, replacement_char, False)
        return _characters(codepoints, input_encoding, errors, replacement_char)


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The characters of each string, and the position of the first byte of each. Arguments as `unicode_decode`."""
    with name_scope(name, "UnicodeSplitWithOffsets"):
        codepoints, offsets = _decoded(input, input_encoding, errors, replacement_char, False)
        return _characters(codepoints, input_encoding, errors, replacement_char), offsets


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The strings of code points: one string for each row of the innermost dimension.

    Args:
      input: int32 code points, a tensor of rank 1 or more or a RaggedTensor.
      output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
      errors: "replace", "ignore" or "strict" for numbers that are no code points.
      replacement_char: the code point put for those.
      name: a prefix of the names of the operations.

    Returns:
      Strings: a tensor, or a RaggedTensor, of one dimension less.

    Raises:
      ValueError: the rank of `input` is unknown or 0.
    """
    with name_scope(name, "UnicodeEncode"):
        return _encoded(ragged_or_dense(input, name="input"), output_encoding, errors, replacement_char)


def ngrams(
    data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None, padding_width: int | None = None,
    preserve_short_sequences: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The n-grams of the rows of strings, joined by a separator.

    Args:
      data: strings, a tensor of rank 1 or more or a RaggedTensor.
      ngram_width: how many strings an n-gram has, or a list of such numbers.
      separator: the text between the strings of an n-gram.
      pad_values: a string, or a pair of them, put before and after each row; None for no padding.
      padding_width: how many paddings; one less than the width by default.
      preserve_short_sequences: give one n-gram for a row that is too short for any.
      name: a prefix of the names of the operations.

    Returns:
      A RaggedTensor; a Tensor for data of rank 1.

    Raises:
      TypeError: an argument is of the wrong type.
      ValueError: a width is not positive.
    """
    with name_scope(name, "StringNGrams"):
        left, right, width = _paddings(pad_values, padding_width)
        widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
        if not all(isinstance(each, int) for each in widths):
            raise TypeError(f"ngram_width must be an integer or list of integers: got {ngram_width}")
        if any(each < 1 for each in widths):
            raise ValueError(f"All ngram_widths must be greater than 0. Got: {ngram_width}")
        data = ragged_or_dense(data, dtypes.string, name="data")
        rank, dense = data.shape.ndims, not isinstance(data, RaggedTensor)
        if dense:
            if not rank:
                raise ValueError("Data must have a non-zero and known rank.")
            data = RaggedTensor.from_tensor(
                data[None] if rank == 1 else data, ragged_rank=1 if rank == 1 else rank - 1
            )
        elif rank is None or rank != data.ragged_rank + 1:
            raise ValueError(f"data must be ragged in all dimensions but the first, got {data!r}")
        rows = data
        while isinstance(rows.values, RaggedTensor):
            rows = rows.values
        values, splits = apply_op(
            "StringNGrams", data=rows.values, data_splits=rows.row_splits, separator=separator, ngram_widths=widths,
            left_pad=left, right_pad=right, pad_width=-1 if width is None else width,
            preserve_short_sequences=preserve_short_sequences,
        )  # fmt: skip
        splits.set_shape(rows.row_splits.shape)
        result = RaggedTensor(values, splits, True)
        if rank == 1:
            return result.values
        whole = _with_innermost(data, result)
        return whole.to_tensor() if dense else whole


def _paddings(pad_values: Any, padding_width: int | None) -> tuple[str, str, int | None]:
    if pad_values is None:
        if padding_width is not None:
            raise ValueError("pad_values must be provided if padding_width is set.")
        return "", "", 0
    if isinstance(pad_values, (list, tuple)):
        if not all(isinstance(each, (str, bytes)) for each in pad_values):
            raise TypeError("pad_values must be a string, tuple of strings, or None.")
        if len(pad_values) != 2:
            raise TypeError("pad_values must be a string, tuple of two strings, or None.")
        left, right = pad_values
    elif isinstance(pad_values, (str, bytes)):
        left = right = pad_values
    else:
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if padding_width is not None and padding_width < 1:
        raise ValueError(f"padding_width must be greater than 0. Got: {padding_width}")
    return left, right, padding_width


def _with_innermost(data: RaggedTensor, innermost: RaggedTensor) -> RaggedTensor:
    if isinstance(data.values, RaggedTensor):
        return data.with_values(_with_innermost(data.values, innermost))
    return innermost


def rows_of_sparse(indices: Tensor, values: Tensor, shape: Tensor, rows: int | None = None) -> RaggedTensor:
    """The rows of the parts of a SparseTensor [batch, parts]; their number, if it is known."""
    result = RaggedTensor.from_value_rowids(values, indices[:, 0], shape[0], validate=False)
    result.row_splits.set_shape([None if rows is None else rows + 1])
    return result


def _in_rows(rows: Callable[[Tensor], RaggedTensor], strings: Any) -> Any:
    """`rows` makes a row of each string of a vector; here of strings of any rank."""
    if isinstance(strings, RaggedTensor):
        return map_flat_values(lambda flat: _in_rows(rows, flat), strings)
    rank = strings.shape.ndims
    if rank is None:
        raise ValueError("input must have a statically-known rank.")
    if rank == 0:
        return rows(array.reshape(strings, [1])).values
    if rank == 1:
        result = rows(strings)
        count = strings.shape.as_list()[0]
        result.row_splits.set_shape([None if count is None else count + 1])
        return result
    flat = rows(array.reshape(strings, [-1]))
    return _outer_dimensions(strings).with_flat_values(flat)


def _outer_dimensions(strings: Tensor) -> RaggedTensor:
    return RaggedTensor.from_tensor(strings, ragged_rank=(strings.shape.ndims or 1) - 1)


def _decoded(input: Any, encoding: str, errors: str, replacement: int, controls: bool) -> tuple[Any, Any]:
    strings = ragged_or_dense(input, dtypes.string, name="input")
    if isinstance(strings, RaggedTensor):
        codepoints, offsets = _decoded(strings.flat_values, encoding, errors, replacement, controls)
        return strings.with_flat_values(codepoints), strings.with_flat_values(offsets)
    rank = strings.shape.ndims
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank > 1:
        codepoints, offsets = _decoded(array.reshape(strings, [-1]), encoding, errors, replacement, controls)
        outer = _outer_dimensions(strings)
        return outer.with_flat_values(codepoints), outer.with_flat_values(offsets)
    splits, values, starts = apply_op(
        "UnicodeDecodeWithOffsets", input=strings if rank else array.reshape(strings, [1]), input_encoding=encoding,
        errors=errors, replacement_char=replacement, replace_control_characters=controls,
    )  # fmt: skip
    if not rank:
        return values, starts
    return RaggedTensor(values, splits, True), RaggedTensor(starts, splits, True)


def _characters(codepoints: Any, encoding: str, errors: str, replacement: int) -> Any:
    if isinstance(codepoints, RaggedTensor):
        return codepoints.with_flat_values(_characters(codepoints.flat_values, encoding, errors, replacement))
    return _encoded(codepoints[:, None], encoding, errors, replacement)


def _encoded(codepoints: Any, encoding: str, errors: str, replacement: int) -> Any:
    if codepoints.shape.ndims is None:
        raise ValueError("Rank of `input` must be statically known.")
    if isinstance(codepoints, RaggedTensor):
        if isinstance(codepoints.values, RaggedTensor):
            return codepoints.with_values(_encoded(codepoints.values, encoding, errors, replacement))
        if (codepoints.values.shape.ndims or 0) > 1:
            inner = RaggedTensor.from_tensor(codepoints.values)
            return codepoints.with_values(_encoded(inner, encoding, errors, replacement))
        return apply_op(
            "UnicodeEncode", input_values=codepoints.values, input_splits=codepoints.row_splits,
            output_encoding=encoding, errors=errors, replacement_char=replacement,
        )  # fmt: skip
    rank = codepoints.shape.ndims
    if rank == 0:
        raise ValueError("input_tensor's rank must be at least 1.")
    if rank == 1:
        count = array.shape(codepoints, out_type=dtypes.int64)
        splits = joining.concat([filling.zeros([1], dtypes.int64), count], axis=0)
        return array.reshape(_encoded(RaggedTensor(codepoints, splits, True), encoding, errors, replacement), [])
    if rank == 2:
        return _encoded(RaggedTensor.from_tensor(codepoints), encoding, errors, replacement)
    sizes = array.shape(codepoints)
    rows = array.reshape(codepoints, joining.concat([[-1], sizes[-1:]], axis=0))
    strings = array.reshape(_encoded(rows, encoding, errors, replacement), sizes[:-1])
    strings.set_shape(codepoints.shape[:-1])
    return strings
