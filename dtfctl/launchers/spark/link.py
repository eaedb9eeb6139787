"""What the driver and its processes on executors say to each other: JSON with bytes beside it, after both have proved
that they know the application's secret. Needs nothing but Python."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import struct
from typing import Any

FRAME_BYTES_MAX = 1 << 26
GREETING_BYTES_MAX = 1 << 16
"""The largest frame from a peer that has not authenticated yet."""

Frame = tuple[dict[str, Any], bytes]
_SIZES = struct.Struct("!II")


class LinkError(Exception):
    """The other end is not what it should be."""


def frame(header: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return _SIZES.pack(len(text), len(data)) + text + data


async def receive(reader: asyncio.StreamReader, bytes_max: int = FRAME_BYTES_MAX) -> Frame:
    """Raises asyncio.IncompleteReadError at the end, and LinkError for what is no frame."""
    text_size, data_size = _SIZES.unpack(await reader.readexactly(_SIZES.size))
    if text_size + data_size > bytes_max:
        raise LinkError(f"a frame of {text_size + data_size} bytes")
    try:
        header = json.loads(await reader.readexactly(text_size))
    except ValueError:
        raise LinkError("a frame that is not JSON") from None
    if not isinstance(header, dict):
        raise LinkError("a frame that is not an object")
    return header, await reader.readexactly(data_size)


def nonce() -> str:
    return secrets.token_hex(16)


def proof(secret: str, side: str, *nonces: str) -> str:
    return hmac.digest(secret.encode(), json.dumps([side, *nonces]).encode(), "sha256").hex()


def is_proof(given: object, secret: str, side: str, *nonces: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(), proof(secret, side, *nonces).encode())
