"""Questions to the peer port of a place, and answers: one line of JSON each.

Owns how a place is reached. What it answers is `place`'s.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from dtf.places.frames import Reader
from dtf.wire import errors
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials
from dtf.wire.durability import Place, parse_place

__all__ = ["LINE_BYTES_MAX", "VERSION", "Line", "ask", "encoded", "parsed", "places_known_to"]

VERSION = 1
LINE_BYTES_MAX = 1 << 16
_WHERE_S = 0.5


class Line:
    """A connection to the peer port of a place."""

    def __init__(self, address: str, timeout_s: float, credentials: Credentials | None) -> None:
        """Connects.

        Raises:
          UnavailableError: the place cannot be reached.
          UnauthenticatedError: one end does not trust the other.
        """
        import ssl

        host, port = split_address(address)
        self.address = address
        try:
            self.socket: Any = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise errors.UnavailableError.of(f"{address} does not answer: {error.strerror or error}") from None
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if credentials is not None:
                from dtf.channel.tls import TlsSocket

                self.socket = TlsSocket(self.socket, credentials.client_context, host)
        except ssl.SSLError as error:
            self.socket.close()
            raise errors.UnauthenticatedError.of(f"{address}: {error.reason or error}") from None
        except OSError as error:
            self.socket.close()
            raise errors.UnavailableError.of(f"{address} does not answer: {error.strerror or error}") from None
        self.reader = Reader(self.socket)

    def ask(self, question: dict[str, object]) -> dict[str, Any]:
        """The answer to a question. Raises UnavailableError when none comes."""
        try:
            self.socket.sendall(encoded({"dtf": VERSION, **question}))
            return parsed(self.reader.line(LINE_BYTES_MAX))
        except EOFError:
            raise errors.UnavailableError.of(f"{self.address} has closed the connection") from None
        except OSError as error:
            raise errors.UnavailableError.of(f"{self.address} does not answer: {error.strerror or error}") from None
        except ValueError as error:
            raise errors.DataLossError.of(f"{self.address} has sent an answer of another program: {error}") from None

    def close(self) -> None:
        """Ends the connection."""
        self.socket.close()


def ask(
    address: str, question: dict[str, object], timeout_s: float, credentials: Credentials | None = None
) -> dict[str, Any]:
    """The answer of a place to one question; raises as `Line`."""
    line = Line(address, timeout_s, credentials)
    try:
        return line.ask(question)
    finally:
        line.close()


def places_known_to(place: Place, credentials: Credentials | None = None) -> tuple[Place, ...]:
    """Where the places of its task are, as a place says; () when it does not answer."""
    if not place.peer_address:
        return ()
    try:
        state = ask(place.peer_address, {"ask": "state"}, _WHERE_S, credentials).get("state")
        said = state.get("places") if isinstance(state, dict) else None
        return tuple(parse_place(str(each)) for each in said) if isinstance(said, list) else ()
    except errors.OpError:
        return ()


def encoded(value: dict[str, Any]) -> bytes:
    """A line."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def parsed(line: bytes) -> dict[str, Any]:
    """What a line says. Raises ValueError for another than an object."""
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value
