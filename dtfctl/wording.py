"""Words about what came from outside: why something failed, never empty, and text that a terminal only shows.

Needs only Python's standard library: the keeper and the agent on other machines use it too.
"""

from __future__ import annotations

import errno
import os
import re

_BARE = {
    "TimeoutError": "timed out",
    "CancelledError": "was cancelled",
    "IncompleteReadError": "the connection ended in the middle of a message",
    "EOFError": "ended too early",
    "MemoryError": "out of memory",
    "BrokenPipeError": "the other end has closed the connection",
    "ConnectionResetError": "the other end has reset the connection",
    "ConnectionAbortedError": "the connection was aborted",
    "ConnectionRefusedError": "the connection was refused",
    "ConnectionError": "the connection is closed",
}
"""For exceptions that are raised without a word."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def reason_of(error: BaseException) -> str:
    """What an exception says went wrong, on one line and never empty; the file that it names is left to the caller."""
    words = ""
    if isinstance(error, OSError):
        words = error.strerror or (os.strerror(error.errno) if error.errno else "")
    words = words or " ".join(str(error).split())
    if words:
        return words
    for kind in type(error).__mro__:
        if kind.__name__ in _BARE:
            return _BARE[kind.__name__]
    return type(error).__name__


def reason_and_file(error: OSError) -> str:
    """The same after the file that it is about, and with what to do about a full disk."""
    name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    to_do = "; make room there (df -h shows how much is free)" if is_full(error) else ""
    return f"{name}{reason_of(error)}{to_do}"


def is_full(error: OSError) -> bool:
    """Whether it is about a disk, or a quota, without room."""
    return error.errno in _FULL


_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,32}m)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a cursor, sets a title, answers for the user, or turns the direction of text; neither tab nor newline."""

PLAIN_COLOUR = "\x1b[0m"


def printable(text: str, lines: bool = False) -> str:
    """Text from outside as it may be shown at a terminal: control characters are spelled (\\x1b), so that none of them
    acts. On one line, unless it may have several `lines`."""
    if text.isprintable():
        return text
    text = _CONTROL.sub(lambda match: _spelled(match[0]), text)
    return text if lines else text.replace("\n", "\\n")


def coloured(text: str, is_kept: bool = True) -> str:
    """A line that a program has written, for a terminal: its colours are kept (or taken away), and end with the line;
    of what it wrote over with carriage returns the last is left; all other control characters are spelled."""
    if text.isprintable():
        return text
    if "\r" in text:
        pieces = [piece for piece in text.split("\r") if piece]
        text = pieces[-1] if pieces else ""
    parts = _COLOUR.split(text)
    if len(parts) == 1:
        return printable(text)
    plain = [printable(part) for part in parts[::2]]
    if not is_kept:
        return "".join(plain)
    colours = parts[1::2]
    shown = "".join(word + colour for word, colour in zip(plain, [*colours, ""], strict=True))
    return shown if colours[-1] in (PLAIN_COLOUR, "\x1b[m") else shown + PLAIN_COLOUR


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
