"""The endpoint of a task's channel, and how the two ends prove that they mean the same task.

The endpoint travels inside GetStatusResponse, in a field that TensorFlow does not know and therefore skips. Its token
is random and new at every start of a task. A peer that knows the token has asked this very incarnation; a stranger or
a restarted task on the same port does not know it. The token itself is never sent over the channel's sockets.

    client -> server   greeting: magic, nonce, id of the connection, number of the lane
    server -> client   magic, nonce, HMAC(token, "server" + greeting + nonce)
    client -> server   HMAC(token, "client" + greeting + nonce)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import socket
import struct
import time
from typing import Any, NamedTuple

from dtf.wire import codec

STATUS_FIELD = 47_474
"""Number of the field of GetStatusResponse that holds the endpoint."""

_MAGIC = b"dtf-ch1\n"
_GREETING = struct.Struct("<8s16s16sB7x")
_REPLY = struct.Struct("<8s16s32s")
_PROOF_BYTES = 32
_PEER = struct.Struct("3i")
_NONCE_BYTES = 16


class Endpoint(NamedTuple):
    """Where a channel listens.

    Attributes:
      unix: name of an abstract Unix socket, for peers on the same host; "" if not available.
      port: TCP port at the task's host.
      token: secret of the task's incarnation.
    """

    unix: str
    port: int
    token: bytes

    def encode(self) -> bytes:
        """The field to append to a serialized GetStatusResponse."""
        value = json.dumps({"unix": self.unix, "port": self.port, "token": self.token.hex()}).encode()
        return codec.length_delimited(STATUS_FIELD, len(value)) + value


def find_endpoint(status_response: bytes) -> Endpoint | None:
    """The endpoint in a serialized GetStatusResponse, or None if it has no usable one."""
    try:
        for field, value, _ in codec.message_fields(memoryview(status_response)):
            if field == STATUS_FIELD:
                found = json.loads(bytes(value))
                return Endpoint(str(found["unix"]), int(found["port"]), bytes.fromhex(found["token"]))
    except Exception:  # a field of another extension
        return None
    return None


def new_token() -> bytes:
    """A token for one start of a task."""
    return secrets.token_bytes(32)


def new_connection_id() -> bytes:
    return os.urandom(_NONCE_BYTES)


def is_same_user(sock: socket.socket) -> bool:
    """Whether the process at the other end of a connected Unix socket belongs to this process's user."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    user: int = _PEER.unpack(credentials)[1]
    return user == os.geteuid()


def greet(sock: Any, token: bytes, connection_id: bytes, lane: int) -> bool:
    """The client's side. False when the other end does not know the token. Raises OSError when the socket fails."""
    greeting = _GREETING.pack(_MAGIC, os.urandom(_NONCE_BYTES), connection_id, lane)
    sock.sendall(greeting)
    reply = _receive(sock, _REPLY.size)
    if len(reply) != _REPLY.size:
        return False
    magic, nonce, proof = _REPLY.unpack(reply)
    if magic != _MAGIC or not hmac.compare_digest(proof, _proof(token, b"server", greeting, nonce)):
        return False
    sock.sendall(_proof(token, b"client", greeting, nonce))
    return True


def welcome(sock: Any, token: bytes) -> tuple[bytes, int] | None:
    """The server's side: (id of the connection, lane), or None for a stranger. Raises OSError when the socket fails."""
    greeting = _receive(sock, _GREETING.size)
    if len(greeting) != _GREETING.size or not greeting.startswith(_MAGIC):
        return None
    nonce = os.urandom(_NONCE_BYTES)
    sock.sendall(_REPLY.pack(_MAGIC, nonce, _proof(token, b"server", greeting, nonce)))
    if not hmac.compare_digest(_receive(sock, _PROOF_BYTES), _proof(token, b"client", greeting, nonce)):
        return None
    _, _, connection_id, lane = _GREETING.unpack(greeting)
    return connection_id, lane


def _proof(token: bytes, side: bytes, greeting: bytes, nonce: bytes) -> bytes:
    return hmac.new(token, side + greeting + nonce, hashlib.sha256).digest()


def _receive(sock: Any, size: int) -> bytes:
    """`size` bytes, or fewer when the other end has closed, or does not begin as a peer would."""
    received = b""
    deadline = time.monotonic() + (sock.gettimeout() or math.inf)
    while len(received) < size:
        if time.monotonic() > deadline:
            raise TimeoutError("the greeting takes too long")
        chunk = sock.recv(size - len(received))
        if not chunk:
            break
        received += chunk
        if not received.startswith(_MAGIC[: len(received)]) and size != _PROOF_BYTES:
            break
    return received
