"""Kernels that decode, encode and transcode text. Encodings are Python's codecs under ICU's names."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid
from dtf.run.kernels.string import each_string

_SURROGATES = range(0xD800, 0xE000)
_CONTROL = frozenset([*range(0x20), *range(0x7F, 0xA0)])


@kernel("UnicodeTranscode")
def _(node: KernelNode) -> Function:
    decode = _decoder(node)
    encoding = _codec(node.attr("output_encoding"))
    return lambda values: each_string(
        lambda value: "".join(map(chr, (code for code, _ in decode(value)))).encode(encoding), values
    )


@kernel("UnicodeDecode")
def _(node: KernelNode) -> Function:
    return _decode_rows(node)


@kernel("UnicodeDecodeWithOffsets")
def _(node: KernelNode) -> Function:
    return _decode_rows(node)


def _decode_rows(node: KernelNode) -> Function:
    decode, splits_type = _decoder(node), node.attr("Tsplits").as_numpy_dtype

    def decode_rows(values: np.ndarray) -> tuple[np.ndarray, ...]:
        rows = [decode(value) for value in np.ravel(values)]
        splits = np.cumsum([0, *map(len, rows)]).astype(splits_type)
        characters = np.array([code for row in rows for code, _ in row], np.int32)
        offsets = np.array([at for row in rows for _, at in row], np.int64)
        return (splits, characters, offsets)[: node.num_outputs]

    return decode_rows


@kernel("UnicodeEncode")
def _(node: KernelNode) -> Function:
    encoding, errors, replacement = _codec(node.attr("output_encoding")), as_text(node.attr("errors")), _spare(node)

    def encode(values: np.ndarray, splits: np.ndarray) -> np.ndarray:
        if not splits.size or splits[0] != 0 or splits[-1] != values.size or (np.diff(splits) < 0).any():
            raise invalid("Values in input_splits must be ascending, from 0 to the number of input_values")
        good = (values >= 0) & (values < 0x110000) & ~((values >= _SURROGATES.start) & (values < _SURROGATES.stop))
        if errors == "strict" and not good.all():
            raise invalid("Code point is out of range for Unicode, or is a surrogate.")
        out = np.empty(splits.size - 1, object)
        for row, (start, stop) in enumerate(zip(splits[:-1].tolist(), splits[1:].tolist(), strict=True)):
            codes = zip(values[start:stop].tolist(), good[start:stop].tolist(), strict=True)
            kept = (code if fits else replacement for code, fits in codes if fits or errors == "replace")
            out[row] = "".join(map(chr, kept)).encode(encoding)
        return out

    return encode


def _decoder(node: KernelNode) -> Callable[[bytes], list[tuple[int, int]]]:
    """Returns a function from bytes to (code point, position of its first byte), with the node's way with errors."""
    named, errors, replacement = _codec(node.attr("input_encoding")), as_text(node.attr("errors")), _spare(node)
    replaced_controls = _CONTROL if node.attr("replace_control_characters") else frozenset()

    def decode(value: bytes) -> list[tuple[int, int]]:
        characters: list[tuple[int, int]] = []
        encoding, at = _byte_order(named, value)
        mark = at
        while at < len(value):
            try:
                good, wrong = value[at:].decode(encoding), None
            except UnicodeDecodeError as error:
                good, wrong = value[at : at + error.start].decode(encoding), error
                if encoding == "cp1252":
                    # The five bytes without a character stand for the control characters of their number.
                    good, wrong = good + chr(error.object[error.start]), None
            for character in good:
                code = ord(character)
                if code not in replaced_controls:
                    characters.append((code, at))
                elif errors != "ignore":
                    characters.append((replacement, at))
                at += 1 if encoding == "cp1252" else len(character.encode(encoding))
            if wrong is None:
                if encoding == "cp1252":
                    continue
                break
            if errors == "strict":
                raise invalid("Invalid formatting on input string")
            if errors == "replace":
                characters.append((replacement, at))
            at += wrong.end - wrong.start
        if mark and characters:
            # The mark counts to the first character.
            characters[0] = characters[0][0], 0
        return characters

    return decode


_MARKS = {
    "utf-16": ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
    "utf-32": ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")),
}


def _byte_order(encoding: str, value: bytes) -> tuple[str, int]:
    """The codec of a value, and the length of its byte-order mark. Without a mark the high byte comes first."""
    marks = _MARKS.get(encoding)
    if marks is None:
        return encoding, 0
    for mark, found in marks:
        if value.startswith(mark):
            return found, len(mark)
    return f"{encoding}-be", 0


def _spare(node: KernelNode) -> int:
    code = node.attr("replacement_char")
    if not 0 <= code < 0x110000 or code in _SURROGATES:
        raise invalid(f"replacement_char out of unicode codepoint range: {code}")
    return code


_OF_PYTHON = frozenset(("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"))
"""Codecs for Python's own use, no encodings of ICU's; the time of some grows with the square of the text."""


def _codec(name: str | bytes) -> str:
    text = as_text(name)
    try:
        found = codecs.lookup(text).name
        b" ".decode(text)  # zlib and the like are codecs too, but not of text
    except UnicodeError:  # of a space alone
        pass
    except (LookupError, ValueError):
        found = ""
    if not found or found in _OF_PYTHON:
        raise invalid(f"Could not create converter for input encoding: {text}")
    return found
