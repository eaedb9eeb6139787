"""Pattern: a regular expression that comes from outside, matched in time that grows with the text and not beyond.

Owns the matching, which is RE2's as in TensorFlow, its rewrites, and the words for what RE2 refuses. Python's own `re`
must never see such a pattern: it takes exponential time for some, and stops all threads meanwhile. RE2 lets them run.
"""

from __future__ import annotations

from types import ModuleType
from typing import Protocol

from dtf.wire import errors
from dtf.wire.text_cache import cached_by_text

__all__ = ["Pattern"]

_CACHED_MAX = 32
"""Each may take 8 MB, RE2's own limit, once it has been used for much."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...

    def __getitem__(self, group: int | bytes) -> bytes | None: ...


class _Regexp(Protocol):
    groups: int
    programsize: int

    def fullmatch(self, text: bytes) -> _Match | None: ...

    def search(self, text: bytes, pos: int = 0) -> _Match | None: ...


_CAPTURED_BYTES_MAX = 1 << 28


class Pattern:
    """A compiled pattern, as bytes in UTF-8. Any number of threads may use it at the same time."""

    __slots__ = ("_group_count", "_regexp", "_uncaptured")

    def __init__(self, pattern: bytes) -> None:
        """Compiles `pattern`.

        Raises:
          InvalidArgumentError: it is no pattern of RE2's syntax.
          UnimplementedError: RE2 is not installed.
        """
        re2 = _re2()
        options = re2.Options()
        options.log_errors = False  # which anybody could fill the disk with
        try:
            self._regexp: _Regexp = re2.compile(pattern, options)
            # Where nobody asks for groups they cost nothing. Ten thousand of them cost three gigabytes.
            options.never_capture = True
            self._uncaptured = re2.compile(pattern, options) if self._regexp.groups else self._regexp
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise errors.InvalidArgumentError.of(
                f"Invalid pattern: {pattern.decode(errors='replace')}, error: {text}"
            ) from None
        finally:
            re2.purge()  # its own cache would keep a gigabyte
        self._group_count: int = self._regexp.groups

    @staticmethod
    @cached_by_text(_CACHED_MAX)
    def of(pattern: bytes) -> Pattern:
        """The same, kept for the next time. Errors as the constructor."""
        return Pattern(pattern)

    def matches(self, text: bytes) -> bool:
        """Whether the pattern matches the whole of `text`."""
        return self._uncaptured.fullmatch(text) is not None

    def replace(self, text: bytes, rewrite: bytes, is_global: bool) -> bytes:
        r"""The text with its first match, or every match, replaced by `rewrite`.

        In a rewrite \0 is the match, \1 to \9 its groups, \\ a backslash. RE2 leaves the text alone where a rewrite
        names a group that is not there. What is no rewrite ends at its fault; a first match alone then stays.
        """
        pieces, last_group, is_valid = _read_rewrite(rewrite)
        if last_group > self._group_count or (not is_global and not is_valid):
            return text
        captured_bytes = 16 * self._group_count * self._regexp.programsize
        if last_group and captured_bytes > _CAPTURED_BYTES_MAX:
            message = f"A rewrite with a pattern of {self._group_count} groups may take {captured_bytes} bytes"
            raise errors.ResourceExhaustedError.of(message)
        search = (self._regexp if last_group else self._uncaptured).search
        out: list[bytes] = []
        position, last_end = 0, -1
        while position <= len(text):
            match = search(text, position)
            if match is None:
                break
            start, end = match.span()
            out.append(text[position:start])
            position = start
            if start == end == last_end:
                # An empty match right after a match is none; goes on behind the next character.
                position += _character_length(text, start)
                out.append(text[start:position])
                position = max(position, start + 1)
                continue
            out += [piece if type(piece) is bytes else match[piece] or b"" for piece in pieces]
            position = last_end = end
            if not is_global:
                break
        out.append(text[position:])
        return b"".join(out)


@cached_by_text(256)
def _read_rewrite(rewrite: bytes) -> tuple[tuple[bytes | int, ...], int, bool]:
    """The pieces of a rewrite (bytes, or the number of a group), its highest group, and whether all of it is valid."""
    pieces: list[bytes | int] = []
    last_group = 0
    is_valid = True
    for number, part in enumerate(_split_escapes(rewrite)):
        if number % 2 == 0:
            if is_valid and part:
                pieces.append(part)
        elif part.isdigit():
            last_group = max(last_group, int(part))
            if is_valid:
                pieces.append(int(part))
        elif part == b"\\":
            if is_valid:
                pieces.append(part)
        else:
            is_valid = False
    return tuple(pieces), last_group, is_valid


def _split_escapes(rewrite: bytes) -> list[bytes]:
    r"""What is between the escapes, and what follows the backslash of each, in turn; b"" when nothing does."""
    parts: list[bytes] = []
    start = 0
    while (found := rewrite.find(b"\\", start)) >= 0:
        parts += [rewrite[start:found], rewrite[found + 1 : found + 2]]
        start = found + 2
    parts.append(rewrite[start:])
    return parts


def _character_length(text: bytes, position: int) -> int:
    """How many bytes the character there has: one where it is no valid UTF-8, none at the end."""
    for length in range(1, 5):
        try:
            text[position : position + length].decode(errors="surrogatepass")
        except UnicodeDecodeError:
            continue
        return min(length, len(text) - position)
    return 1


def _re2() -> ModuleType:
    try:
        import re2
    except ImportError as error:
        raise errors.UnimplementedError.of(f"Regular expressions need RE2: pip install google-re2 ({error})") from None
    if not hasattr(re2, "Options") or not hasattr(re2, "purge"):
        raise errors.UnimplementedError.of(
            "Regular expressions need google-re2, but another package named re2 is installed."
        )
    return re2
