"""Kernels of the string ops. Strings are bytes in object arrays, of any rank.

Owns joining, splitting, matching, and conversion from and to numbers. Regular expressions are
those of `patterns`.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room, scalar, shape_text, vector
from dtf.run.lib.csv_fields import csv_fields
from dtf.run.lib.number_text import number_of
from dtf.run.lib.patterns import Pattern
from dtf.run.value_types import Array, NumpyType, Scalar
from dtf.wire import errors, limits


def each_string(function: Callable[[bytes], Scalar], values: np.ndarray, dtype: NumpyType = object) -> np.ndarray:
    """The array of `function(string)` for every string of `values`."""
    out = np.empty(np.shape(values), dtype)
    flat = out.reshape(-1)
    for i, value in enumerate(np.ravel(values)):
        flat[i] = function(value)
    return out


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _bytes(value: str | bytes) -> bytes:
    value = value.item() if isinstance(value, np.ndarray) else value
    return value.encode() if isinstance(value, str) else value


def _strings(values: Sequence[bytes]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


# -- joining and splitting


@kernel("StringJoin")
def _(node: KernelNode) -> Function:
    separator = _bytes(node.attr("separator"))

    def string_join(*inputs: np.ndarray) -> np.ndarray:
        shapes = {np.shape(value) for value in inputs if np.ndim(value)}
        if len(shapes) > 1:
            first, second = sorted(shapes)[:2]
            raise invalid(f"Input shapes do not match: {list(first)} vs. {list(second)}")
        shape = shapes.pop() if shapes else ()
        if not inputs:
            return np.array(b"", object)
        _check_joined(inputs, math.prod(shape), len(separator))
        columns = [np.broadcast_to(value, shape).ravel() for value in inputs]
        out = np.empty(shape, object)
        out.reshape(-1)[:] = _strings([separator.join(parts) for parts in zip(*columns, strict=True)])
        return out

    return string_join


def _check_joined(inputs: Sequence[Array], count: int, separator_bytes: int) -> None:
    """Looks at the room for `count` strings, each with the scalars among the inputs in it."""
    each = separator_bytes * max(len(inputs) - 1, 0) + sum(len(value.item()) for value in inputs if not np.ndim(value))
    limits.check_room((count, each), 1, "string")


@kernel("ReduceJoin")
def _(node: KernelNode) -> Function:
    keep_dims, separator = node.attr("keep_dims"), _bytes(node.attr("separator"))

    def reduce_join(values: np.ndarray, reduction_indices: np.ndarray) -> np.ndarray:
        rank = np.ndim(values)
        axes = [int(axis) for axis in np.ravel(reduction_indices)]
        for axis in axes:
            if not -rank <= axis < rank:
                raise errors.OutOfRangeError.of(
                    f"Invalid reduction dimension {axis} for input with {rank} dimension(s)"
                )
        axes = [axis % rank for axis in axes]
        if len(set(axes)) != len(axes):
            raise invalid("Duplicate reduction dimension")
        if not axes and rank:
            return values
        kept = [axis for axis in range(rank) if axis not in axes]
        shape = [np.shape(values)[axis] for axis in kept]
        rows = np.transpose(values, [*kept, *reversed(axes)]).reshape(int(np.prod(shape, dtype=np.int64)), -1)
        joined = _strings([separator.join(row) for row in rows.tolist()])
        if keep_dims:
            shape = [1 if axis in axes else np.shape(values)[axis] for axis in range(rank)]
        return joined.reshape(shape)

    return reduce_join


def _ragged(rows: list[list[bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of strings as the three parts of a sparse matrix."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    longest = max((len(row) for row in rows), default=0)
    return (
        np.array(indices, np.int64).reshape(-1, 2),
        _strings([value for row in rows for value in row]),
        np.array([len(rows), longest], np.int64),
    )


@kernel("StringSplit")
def _(node: KernelNode) -> Function:
    skip_empty = node.attr("skip_empty")

    def string_split(values: np.ndarray, delimiter: np.ndarray) -> tuple[np.ndarray, ...]:
        vector(values, "input")
        marks = _bytes(scalar(delimiter, "delimiter"))
        pattern = re.compile(b"[" + re.escape(marks) + b"]") if marks else None

        def split(value: bytes) -> list[bytes]:
            if not value:
                return []
            parts = [value[i : i + 1] for i in range(len(value))] if pattern is None else pattern.split(value)
            return [part for part in parts if part] if skip_empty else parts

        return _ragged([split(value) for value in values])

    return string_split


@kernel("StringSplitV2")
def _(node: KernelNode) -> Function:
    most = node.attr("maxsplit")

    def string_split(values: np.ndarray, separator: np.ndarray) -> tuple[np.ndarray, ...]:
        vector(values, "input")
        mark = _bytes(scalar(separator, "sep"))
        return _ragged([parts(value, mark) for value in values])

    def parts(value: bytes, mark: bytes) -> list[bytes]:
        found = value.split(mark or None, most)
        # TensorFlow counts the rest after the last cut as a part, even where it is empty.
        return [*found, b""] if not mark and 0 < most == len(found) else found

    return string_split


# -- one string at a time


@kernel("StringLength")
def _(node: KernelNode) -> Function:
    in_characters = _text(node.attr("unit")) == "UTF8_CHAR"

    def length(value: bytes) -> int:
        # A UTF-8 character has one byte that does not continue another.
        return sum(byte & 0xC0 != 0x80 for byte in value) if in_characters else len(value)

    return lambda values: each_string(length, values, np.int32)


@kernel("StringStrip")
def _(node: KernelNode) -> Function:
    return lambda values: each_string(bytes.strip, values)


@kernel("StringLower")
def _(node: KernelNode) -> Function:
    return _change_case(node, bytes.lower, str.lower)


@kernel("StringUpper")
def _(node: KernelNode) -> Function:
    return _change_case(node, bytes.upper, str.upper)


def _change_case(
    node: KernelNode, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str]
) -> Callable[..., np.ndarray]:
    encoding = _text(node.attr("encoding"))
    if encoding not in ("", "utf-8"):
        raise invalid(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
    if encoding:
        return lambda values: each_string(lambda value: of_text(value.decode()).encode(), values)
    return lambda values: each_string(of_bytes, values)


@kernel("Substr")
def _(node: KernelNode) -> Function:
    in_characters = _text(node.attr("unit")) == "UTF8_CHAR"

    def cut(number: int, value: bytes, position: int, length: int) -> bytes:
        whole: str | bytes = value.decode(errors="replace") if in_characters else value
        start = position + len(whole) if position < 0 else position
        if not 0 <= start <= len(whole):
            text = value.decode(errors="replace")
            raise invalid(f"pos {position} out of range for string b'{text}' at index {number}")
        part = whole[start:] if length < 0 else whole[start : start + length]
        return part.encode() if isinstance(part, str) else part

    def substr(values: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
        if np.shape(position) != np.shape(length):
            raise invalid(
                "pos and len should have the same shape, got: "
                f"{shape_text(np.shape(position))} vs. {shape_text(np.shape(length))}"
            )
        shape = np.broadcast_shapes(np.shape(values), np.shape(position))
        out = np.empty(shape, object)
        columns = (np.broadcast_to(each, shape).ravel().tolist() for each in (values, position, length))
        out.reshape(-1)[:] = _strings([cut(i, *row) for i, row in enumerate(zip(*columns, strict=True))])
        return out

    return substr


# -- regular expressions


@kernel("RegexFullMatch")
def _(node: KernelNode) -> Function:
    return lambda values, pattern: _full_match(values, Pattern.of(_bytes(scalar(pattern, "Pattern"))))


@kernel("StaticRegexFullMatch")
def _(node: KernelNode) -> Function:
    pattern = Pattern(_bytes(node.attr("pattern")))
    return lambda values: _full_match(values, pattern)


def _full_match(values: np.ndarray, pattern: Pattern) -> np.ndarray:
    return each_string(pattern.matches, values, np.bool_)


@kernel("RegexReplace")
def _(node: KernelNode) -> Function:
    is_global = node.attr("replace_global")
    return lambda values, pattern, rewrite: _replace(
        values, Pattern.of(_bytes(scalar(pattern, "Pattern"))), _bytes(scalar(rewrite, "Rewrite")), is_global
    )


@kernel("StaticRegexReplace")
def _(node: KernelNode) -> Function:
    is_global = node.attr("replace_global")
    pattern, rewrite = Pattern(_bytes(node.attr("pattern"))), _bytes(node.attr("rewrite"))
    return lambda values: _replace(values, pattern, rewrite, is_global)


def _replace(values: np.ndarray, pattern: Pattern, rewrite: bytes, is_global: bool) -> np.ndarray:
    groups = rewrite.count(b"\\")

    def replaced(value: bytes) -> bytes:
        # At most, the rewrite stands between all bytes, and what its groups name is all of the value.
        limits.check_room((len(value) + 1, len(rewrite)), 1 + groups, "string")
        return pattern.replace(value, rewrite, is_global)

    return each_string(replaced, values)


# -- from and to numbers


_FILLS = ("", " ", "+", "-", "0", "#")


_FORMATTED_CHARACTERS_MAX = 100_000
"""More than any number has: a double has at most 1,074 decimals that are not 0."""


@kernel("AsString")
def _(node: KernelNode) -> Function:
    dtype = node.attr("T")
    precision, width, fill = node.attr("precision"), node.attr("width"), _text(node.attr("fill"))
    places = f".{precision}" if precision >= 0 else ""
    width_text = f"{fill}{width}" if width >= 0 else ""
    if len(fill) > 1:
        raise invalid("Fill string must be one or fewer characters")
    if fill not in _FILLS:
        raise invalid(f'Fill argument not supported: "{fill}"')
    if node.attr("shortest") and node.attr("scientific"):
        raise invalid("Cannot select both scientific and shortest notation")
    if (node.attr("shortest") or node.attr("scientific")) and (dtype.is_integer or dtype.is_bool):
        raise invalid(f"scientific and shortest format not supported for datatype {dtype.name}")
    if precision >= 0 and (dtype.is_integer or dtype.is_bool):
        raise invalid(f"precision not supported for datatype {dtype.name}")
    letter = "g" if node.attr("shortest") else "e" if node.attr("scientific") else "f"
    template = f"%{width_text}d" if dtype.is_integer else f"%{width_text}{places}{letter}"
    if max(width, precision) > _FORMATTED_CHARACTERS_MAX:
        # Python formats under its lock, which would stop all threads of the process.
        raise invalid(
            f"width ({width}) and precision ({precision}) must be at most {_FORMATTED_CHARACTERS_MAX}"
        )

    def as_string(value: Scalar) -> bytes:
        if isinstance(value, bytes):
            return (b"%-*s" if fill == "-" else b"%*s") % (max(width, 0), value)
        if isinstance(value, (bool, np.bool_)):
            return b"true" if value else b"false"
        if isinstance(value, (complex, np.complexfloating)):
            return f"({template % value.real},{template % value.imag})".encode()
        return (template % value).encode()

    def as_strings(values: np.ndarray) -> np.ndarray:
        room((np.size(values), max(width, precision, 0)), np.uint8)
        return each_string(as_string, values)

    return as_strings


@kernel("StringToNumber")
def _(node: KernelNode) -> Function:
    dtype = node.attr("out_type").as_numpy_dtype

    def number(value: bytes) -> Scalar:
        try:
            return number_of(value, dtype)
        except (ValueError, OverflowError):
            text = value.decode(errors="replace")
            raise invalid(f"StringToNumberOp could not correctly convert string: {text}") from None

    return lambda values: each_string(number, values, dtype)


@kernel("EncodeBase64")
def _(node: KernelNode) -> Function:
    padded = node.attr("pad")

    def encode(value: bytes) -> bytes:
        encoded = base64.urlsafe_b64encode(value)
        return encoded if padded else encoded.rstrip(b"=")

    return lambda values: each_string(encode, values)


@kernel("DecodeBase64")
def _(node: KernelNode) -> Function:
    def decode(value: bytes) -> bytes:
        bare = value.rstrip(b"=")
        if not re.fullmatch(rb"[A-Za-z0-9_-]*", bare) or len(bare) % 4 == 1:
            raise invalid("Invalid character found in base64.")
        try:
            return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
        except binascii.Error:
            raise invalid("Invalid character found in base64.") from None

    return lambda values: each_string(decode, values)


@kernel("DecodeRaw")
def _(node: KernelNode) -> Function:
    dtype = np.dtype(node.attr("out_type").as_numpy_dtype)
    swap = not node.attr("little_endian") and dtype.itemsize > 1

    def decode_raw(values: np.ndarray) -> np.ndarray:
        lengths = {len(value) for value in np.ravel(values)}
        if len(lengths) > 1:
            raise invalid(
                "DecodeRaw requires input strings to all be the same size, but the sizes are "
                f"{', '.join(map(str, sorted(lengths)))}"
            )
        length = lengths.pop() if lengths else 0
        if length % dtype.itemsize:
            raise invalid(
                f"Input to DecodeRaw has length {length} that is not a multiple of {dtype.itemsize}, the size of "
                f"{dtype.name}"
            )
        flat = np.frombuffer(b"".join(np.ravel(values).tolist()), dtype)
        return (flat.byteswap() if swap else flat).reshape(*np.shape(values), length // dtype.itemsize)

    return decode_raw


@kernel("DecodeCSV")
def _(node: KernelNode) -> Function:
    types = [dtype.as_numpy_dtype for dtype in node.attr("OUT_TYPE")]
    missing = _bytes(node.attr("na_value"))
    chosen = list(node.attr("select_cols"))
    delimiter = _bytes(node.attr("field_delim"))
    quote = b'"' if node.attr("use_quote_delim") else b""
    if len(delimiter) != 1:
        raise invalid("field_delim should be only 1 char")

    def field(text: bytes, column: int, record: int, default: np.ndarray) -> Scalar:
        dtype = types[column]
        if text in (b"", missing):
            if np.size(default) == 0:
                raise invalid(f"Field {column} is required but missing in record {record}!")
            return np.ravel(default)[0]
        if dtype == np.object_:
            return text
        try:
            return number_of(text, dtype)
        except (ValueError, OverflowError):
            words = text.decode(errors="replace")
            raise invalid(f"Field {column} in record {record} is not a valid {np.dtype(dtype).name}: {words}") from None

    def decode_csv(records: np.ndarray, *defaults: np.ndarray) -> np.ndarray | list[np.ndarray]:
        if any(np.ndim(default) > 1 for default in defaults):
            raise invalid("Each record default should be at most rank 1")
        lines = np.ravel(records).tolist()
        outputs = [np.empty(len(lines), dtype) for dtype in types]
        for i, line in enumerate(lines):
            row = csv_fields(line, delimiter, quote)
            row = [row[column] for column in chosen if column < len(row)] if chosen else row
            if len(row) != len(types):
                raise invalid(f"Expect {len(types)} fields but have {len(row)} in record {i}")
            for column, text in enumerate(row):
                outputs[column][i] = field(text, column, i, defaults[column])
        shaped = [output.reshape(np.shape(records)) for output in outputs]
        return shaped[0] if len(shaped) == 1 else shaped

    return decode_csv
