"""String ops: their public functions and static shapes. Strings are bytes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/strings
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.composite import Composite
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.shape_rules import broadcast_shape, scalar, shape_rule, unchanged
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "as_string",
    "decode_base64",
    "decode_compressed",
    "decode_csv",
    "decode_raw",
    "encode_base64",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "string_join",
    "string_length",
    "string_lower",
    "string_split",
    "string_split_v2",
    "string_strip",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
    "string_to_number",
    "string_upper",
    "substr",
]


@dispatched
def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """Joins strings element by element; scalars are repeated.

    Args:
      inputs: string tensors of one shape, or scalars.
      separator: text between two parts.
      name: the name of the operation.

    Returns:
      A string Tensor of their shape.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/strings/join
    """
    return apply_op("StringJoin", name, inputs=list(inputs), separator=separator)


def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """Splits each string of a vector at any of the characters of `delimiter` (a blank by default).

    Args:
      source: a string vector.
      sep: text between two parts; the newer form of `delimiter`.
      skip_empty: leave out empty parts.
      delimiter: the separators: each character separates parts.
      result_type: "SparseTensor" or "RaggedTensor".
      name: the name of the operation.

    Returns:
      A string SparseTensor [batch, most parts], or a RaggedTensor [batch, None].

    Raises:
      ValueError: another `result_type`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/string_split
    """
    _check_result_type(result_type)
    marks = delimiter if delimiter is not None else sep if sep is not None else " "
    made = apply_op("StringSplit", name, input=source, delimiter=marks, skip_empty=skip_empty)
    if result_type == "RaggedTensor":
        from dtf.build.ops.ragged_strings import rows_of_sparse

        rows = made[0].op.inputs[0].shape.as_list()[0]
        return rows_of_sparse(made[0], made[1], made[2], rows)
    return SparseTensor(*made)


def string_split_v2(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Splits each string at the string `sep` (runs of white space by default), as Python's str.split.

    Args:
      input: strings of any known rank, or a RaggedTensor of them; a single string counts as a vector of one.
      sep: the separator.
      maxsplit: the most cuts; -1 for any number.
      result_type: "SparseTensor" or "RaggedTensor".
      source: the older name of `input`.
      name: the name of the operation.

    Returns:
      A string SparseTensor or RaggedTensor of one more dimension.

    Raises:
      ValueError: another `result_type`, or a rank that is not known.
    """
    _check_result_type(result_type)
    with name_scope(name, "StringSplit"):
        strings = source if input is None else input
        if not isinstance(strings, Composite):
            strings = convert_to_tensor(strings, dtypes.string, name="input")
            if strings.shape.ndims == 0:
                strings = apply_op("ExpandDims", input=strings, dim=0)
            if strings.shape.ndims in (1, None) and result_type == "SparseTensor":
                made = apply_op("StringSplitV2", input=strings, sep="" if sep is None else sep, maxsplit=maxsplit)
                return SparseTensor(*made)
        from dtf.build.ops.ragged_strings import split_to_ragged

        result = split_to_ragged(strings, sep, maxsplit)
        return result.to_sparse() if result_type == "SparseTensor" else result


def _check_result_type(result_type: str) -> None:
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")


@dispatched
def reduce_join(
    inputs: TensorLike,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Joins the strings along the dimensions `axis`, in that order; all, from the last to the first, without it."""
    axis = reduction_indices if axis is None else axis
    keep = bool(keepdims if keep_dims is None else keep_dims)
    with name_scope(name, "reduce_join", [inputs]) as scope:
        inputs = convert_to_tensor(inputs)
        if axis is None:
            if inputs.shape.ndims is None:
                axis = apply_op(
                    "Range", start=apply_op("Sub", x=apply_op("Rank", input=inputs), y=1), limit=-1, delta=-1
                )
            else:
                axis = convert_to_tensor(list(range(inputs.shape.ndims))[::-1], dtypes.int32)
        return apply_op("ReduceJoin", scope, inputs=inputs, reduction_indices=axis, keep_dims=keep, separator=separator)


@dispatched
def string_length(input: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Lengths as int32, in bytes or (unit UTF8_CHAR) in characters."""
    return apply_op("StringLength", name, input=input, unit=unit)


@dispatched
def string_strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Without white space at both ends."""
    return apply_op("StringStrip", name, input=input)


@dispatched
def string_lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """In lower case; only ASCII letters unless `encoding` is utf-8."""
    return apply_op("StringLower", name, input=input, encoding=encoding)


@dispatched
def string_upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """In upper case; only ASCII letters unless `encoding` is utf-8."""
    return apply_op("StringUpper", name, input=input, encoding=encoding)


@dispatched
def substr(input: TensorLike, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """`len` bytes (or characters) from `pos` on; a negative `pos` counts from the end."""
    return apply_op("Substr", name, input=input, pos=pos, len=len, unit=unit)


@dispatched
def regex_full_match(input: TensorLike, pattern: TensorLike, name: str | None = None) -> Tensor:
    """Whether the whole of each string matches."""
    if isinstance(pattern, (str, bytes)):
        return apply_op("StaticRegexFullMatch", name, input=input, pattern=pattern)
    return apply_op("RegexFullMatch", name, input=input, pattern=pattern)


@dispatched
def regex_replace(
    input: TensorLike, pattern: TensorLike, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Replaces matches by `rewrite`, where \1 ... \9 are the groups and \0 is the whole match."""
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return apply_op(
            "StaticRegexReplace", name, input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global
        )
    return apply_op("RegexReplace", name, input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global)


@dispatched
def string_to_hash_bucket(
    string_tensor: TensorLike | None = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """A bucket in [0, num_buckets) for each string, int64; the oldest hash, kept for old graphs."""
    given = input if string_tensor is None else string_tensor
    return apply_op("StringToHashBucket", name, string_tensor=given, num_buckets=num_buckets)


@dispatched
def string_to_hash_bucket_fast(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket in [0, num_buckets) for each string, int64, by FarmHash."""
    return apply_op("StringToHashBucketFast", name, input=input, num_buckets=num_buckets)


@dispatched
def string_to_hash_bucket_strong(
    input: TensorLike, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """A bucket in [0, num_buckets) for each string, int64, by SipHash with a key of two integers."""
    return apply_op("StringToHashBucketStrong", name, input=input, num_buckets=num_buckets, key=list(key))


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """The template with each placeholder replaced by a tensor in words.

    summarize: how many entries to show from both ends of every dimension; -1 for all.
    """
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if template.count(placeholder) != len(given):
        raise ValueError(f"{template.count(placeholder)} placeholders in the template for {len(given)} inputs")
    return apply_op(
        "StringFormat", name, inputs=given, template=template, placeholder=placeholder, summarize=summarize
    )


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins the strings of each segment in input order. -> [num_segments, ...]"""
    return apply_op(
        "UnsortedSegmentJoin",
        name,
        inputs=inputs,
        segment_ids=segment_ids,
        num_segments=num_segments,
        separator=separator,
    )


@dispatched
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Text in another encoding. errors: "strict", "replace" or "ignore" what is malformed."""
    return apply_op(
        "UnicodeTranscode",
        name,
        input=input,
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
    )


@dispatched
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Decompresses strings of "ZLIB" or "GZIP"; returns strings of type "" unchanged."""
    return apply_op("DecodeCompressed", name, bytes=bytes, compression_type=compression_type)


@dispatched
def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers in words, as printf formats them."""
    return apply_op(
        "AsString",
        name,
        input=input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
    )


@dispatched
def string_to_number(
    string_tensor: TensorLike | None = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The numbers that strings spell. InvalidArgumentError for invalid input."""
    given = input if string_tensor is None else string_tensor
    return apply_op("StringToNumber", name, string_tensor=given, out_type=dtypes.as_dtype(out_type))


@dispatched
def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Web-safe base64."""
    return apply_op("EncodeBase64", name, input=input, pad=pad)


@dispatched
def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `encode_base64`, padded or not."""
    return apply_op("DecodeBase64", name, input=input)


def decode_raw(
    input_bytes: Any = None,
    out_type: DTypeLike | None = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The bytes of strings of one length as numbers, along a new last dimension.

    Args:
      input_bytes: strings of one length.
      out_type: the dtype of the numbers.
      little_endian: the order of the bytes of a number.
      name: the name of the operation.
      bytes: the older name of `input_bytes`.

    Returns:
      A Tensor of shape input_bytes.shape + [length / bytes of a number].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/decode_raw
    """
    given = bytes if input_bytes is None else input_bytes
    return apply_op("DecodeRaw", name, bytes=given, out_type=dtypes.as_dtype(out_type), little_endian=little_endian)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """One tensor per column; the defaults give the dtypes and replace empty fields (an empty default: required)."""
    made = apply_op(
        "DecodeCSV",
        name,
        records=records,
        record_defaults=[convert_to_tensor(each) for each in record_defaults],
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=list(select_cols or []),
    )
    return list(made)


# -- shape rules

shape_rule(
    *(
        "StringLength StringStrip StringLower StringUpper RegexReplace RegexFullMatch StaticRegexFullMatch "
        "StaticRegexReplace "
        "AsString StringToNumber EncodeBase64 DecodeBase64 StringToHashBucket StringToHashBucketFast "
        "StringToHashBucketStrong UnicodeTranscode DecodeCompressed"
    ).split()
)(unchanged)


@shape_rule("StringJoin")
def _(op):
    shape = TensorShape([])
    for tensor in op.inputs:
        if tensor.shape.ndims:
            shape = tensor.shape.merge_with(shape if shape.ndims else None)
    if shape.ndims == 0 and any(tensor.shape.ndims is None for tensor in op.inputs):
        return [TensorShape(None)]
    return [shape] if op.inputs else scalar(op)


@shape_rule("StringSplit", "StringSplitV2")
def _(op):
    op.inputs[0].shape.assert_has_rank(1)
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2])]


@shape_rule("ReduceJoin")
def _(op):
    axes, shape = constant_value(op.inputs[1]), op.inputs[0].shape
    if axes is None or shape.ndims is None:
        return [TensorShape(None)]
    if not axes.size:
        return [shape]
    dims = shape.as_list()
    for axis in axes.ravel().tolist():
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"Invalid reduction dimension {axis} for input with {len(dims)} dimensions")
    reduced = {int(axis) % len(dims) for axis in axes.ravel()}
    if op.get_attr("keep_dims"):
        return [TensorShape([1 if axis in reduced else dim for axis, dim in enumerate(dims)])]
    return [TensorShape([dim for axis, dim in enumerate(dims) if axis not in reduced])]


@shape_rule("Substr")
def _(op):
    return [broadcast_shape(op.inputs[0].shape, op.inputs[1].shape)]


shape_rule("StringFormat")(scalar)


@shape_rule("UnsortedSegmentJoin")
def _(op):
    values, ids = op.inputs[0].shape, op.inputs[1].shape
    count = constant_value(op.inputs[2])
    if values.ndims is None or ids.ndims is None:
        return [TensorShape(None)]
    return [TensorShape([None if count is None else int(count), *values.as_list()[ids.ndims :]])]


@shape_rule("Fingerprint")
def _(op):
    shape = op.inputs[0].shape.with_rank_at_least(1)
    return [TensorShape([shape[0] if shape.ndims else None, 8])]


@shape_rule("StringNGrams")
def _(op):
    return [TensorShape([None]), op.inputs[1].shape]


@shape_rule("UnicodeEncode")
def _(op):
    (count,) = op.inputs[1].shape.with_rank(1).as_list()
    return [TensorShape([None if count is None else count - 1])]


@shape_rule("UnicodeDecode", "UnicodeDecodeWithOffsets")
def _(op):
    size = op.inputs[0].shape.num_elements()
    return [TensorShape([None if size is None else size + 1]), *[TensorShape([None])] * (len(op.outputs) - 1)]


@shape_rule("DecodePaddedRaw")
def _(op):
    length, dtype = constant_value(op.inputs[1]), op.outputs[0].dtype
    return [op.inputs[0].shape.concatenate([None if length is None else int(length) // dtype.size])]


@shape_rule("DecodeRaw")
def _(op):
    return [op.inputs[0].shape.concatenate([None])]


@shape_rule("DecodeCSV")
def _(op):
    return [op.inputs[0].shape] * len(op.outputs)
