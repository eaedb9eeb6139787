"""The fields of a CSV record, as TensorFlow's DecodeCSV has them: what is not well formed is refused, never guessed."""

from __future__ import annotations

from dtf.wire import errors

__all__ = ["csv_fields"]

_LINE_ENDS = (b"\n", b"\r")


def csv_fields(line: bytes, delimiter: bytes, quote: bytes) -> list[bytes]:
    """The fields of one record; none of an empty one.

    Args:
      delimiter: one byte.
      quote: one byte, or b"" where fields have no quotes.

    Raises:
      InvalidArgumentError: a quote is not closed, or a quote or a line's end is within a field without quotes.
    """
    special = (quote, *_LINE_ENDS) if quote else _LINE_ENDS
    if not line:
        return []
    if not any(mark in line for mark in special):
        return line.split(delimiter)
    fields, at = [], 0
    while at < len(line):
        first = line[at : at + 1]
        if first in _LINE_ENDS:  # before a field
            at += 1
        elif quote and first == quote:
            text, at = _quoted_field(line, at + 1, delimiter, quote)
            fields.append(text)
        else:
            end = line.find(delimiter, at)
            text = line[at : end if end >= 0 else len(line)]
            if any(mark in text for mark in special):
                raise errors.InvalidArgumentError.of("Unquoted fields cannot have quotes/CRLFs inside")
            fields.append(text)
            at += len(text) + 1
    if line.endswith(delimiter):
        fields.append(b"")
    return fields


def _quoted_field(line: bytes, start: int, delimiter: bytes, quote: bytes) -> tuple[bytes, int]:
    """A field from behind its first quote, and where the next one begins."""
    pieces = []
    while True:
        end = line.find(quote, start)
        if end < 0:
            raise errors.InvalidArgumentError.of("Quoted field has to end with quote followed by delim or end")
        pieces.append(line[start:end])
        following = line[end + 1 : end + 2]
        if following in (b"", delimiter):
            return quote.join(pieces), end + 2
        if following != quote:
            raise errors.InvalidArgumentError.of("Quote inside a string has to be escaped by another quote")
        start = end + 2
