"""GetStatus asked of a dtf or TensorFlow server with nothing but a socket: one gRPC call in a few HTTP/2 frames.

The supervisor asks hundreds of servers for months; a gRPC library would cost it 16 MB and threads for that. What it
needs of HTTP/2 (RFC 9113), HPACK (RFC 7541) and gRPC over HTTP/2 fits here: one request without a body, and whether
a message comes back.
"""

from __future__ import annotations

import asyncio
import ssl
import struct

PATH = "/tensorflow.WorkerService/GetStatus"

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 0x1, 0x1, 0x4, 0x8
_STREAM = 1
_FRAME_BYTES_MAX = 1 << 20
_INITIAL_WINDOW_SIZE = 4
_WINDOW_BYTES_AT_FIRST = 65_535
REPLY_BYTES_MAX = 64 << 20
"""As many bytes a server may send before it waits for word from here: a reply is never longer."""


class NoAnswer(Exception):
    """The server is there and does not answer the call; the text says what it does instead."""


async def get_status(
    address: str, timeout_s: float, tls: ssl.SSLContext | None = None, request: bytes = b""
) -> bytes:
    """The reply, a GetStatusResponse in its wire format, to a GetStatusRequest in the same.

    Raises OSError when nothing listens at `address` (host:port), asyncio.TimeoutError, ssl.SSLError, NoAnswer.
    """
    return await asyncio.wait_for(_ask(address, tls, request), timeout_s)


async def _ask(address: str, tls: ssl.SSLContext | None, request: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    try:
        writer.write(_request(address, tls is not None, request))
        return await _reply(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        raise NoAnswer("it hangs up") from None
    finally:
        # Not closed with courtesy: by TLS that waits for the server's farewell, and gRPC's servers send none.
        writer.transport.abort()


def _request(authority: str, is_secure: bool, message: bytes) -> bytes:
    """The connection's preface, our settings (room for a whole reply), the headers, and one message."""
    headers = (
        # Indexed fields of HPACK's static table: the method POST and the scheme.
        bytes([0x83, 0x87 if is_secure else 0x86])
        # Names from that table, with values that are not to be indexed.
        + _literal(4, PATH)
        + _literal(1, authority)
        + _literal(31, "application/grpc")
        + b"\x00" + _text("te") + _text("trailers")
    )
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW_SIZE, REPLY_BYTES_MAX))
        + _frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", REPLY_BYTES_MAX - _WINDOW_BYTES_AT_FIRST))
        + _frame(_HEADERS, _END_HEADERS, _STREAM, headers)
        + _frame(_DATA, _END_STREAM, _STREAM, struct.pack(">BI", 0, len(message)) + message)
    )


async def _reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    body = bytearray()
    while True:
        head = await reader.readexactly(9)
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        if length > _FRAME_BYTES_MAX or kind > 32:
            raise NoAnswer("it does not speak gRPC")
        payload = await reader.readexactly(length)
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            writer.write(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _GOAWAY:
            raise NoAnswer("it is shutting down")
        elif stream != _STREAM:
            continue
        elif kind == _RST_STREAM:
            raise NoAnswer("it refuses the call")
        elif kind == _DATA:
            if len(body) + length > REPLY_BYTES_MAX:
                raise NoAnswer("its answer is too long")
            body += payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            return _message(bytes(body))


def _message(body: bytes) -> bytes:
    """A gRPC message comes after a flag and its length. A call that failed has trailers only."""
    if len(body) < 5:
        raise NoAnswer("the call fails")
    is_compressed, length = struct.unpack(">BI", body[:5])
    if is_compressed or len(body) - 5 < length:
        raise NoAnswer("its answer cannot be read")
    return body[5 : 5 + length]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _literal(name: int, value: str) -> bytes:
    """A header that is not to be indexed, its name by number in the static table."""
    return (bytes([name]) if name < 15 else bytes([15, name - 15])) + _text(value)


def _text(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > 126:
        raise NoAnswer("its name is too long")
    return bytes([len(encoded)]) + encoded
