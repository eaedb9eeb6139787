"""Frames of the channel as bytes, for peers that tests play by hand."""

from __future__ import annotations

import struct

from dtf.channel import lane as lanes


def frame(
    call_id: int,
    body: bytes = b"",
    kind: int = lanes.REQUEST,
    number: int = 0,
    mark: int = lanes._MARK,
    length: int | None = None,
) -> bytes:
    """A frame without flags. `length`: what it claims of its body, if that is not the truth."""
    return struct.pack("<BBHIQQ", kind, 0, number, mark, call_id, len(body) if length is None else length) + body
