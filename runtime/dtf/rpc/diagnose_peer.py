"""Diagnoses a port that gRPC could not connect to: which program answers there, and why TLS failed.

Uses plain sockets, and only after a call has failed; no call depends on it. Its results are only for error messages:
it reads a greeting and certificate names without verifying them.
"""

from __future__ import annotations

import socket
import ssl
import time

from dtf.wire import credentials as environment
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials, names_of

_TIMEOUT_S = 1.0
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_HEADER_BYTES = 9
_SETTINGS = 4
_PAGE_CHARACTERS_MAX = 80


def who_answers(address: str) -> str | None:
    """The first bytes that the server at `address` sends; None if it speaks HTTP/2, sends nothing, or is
    unreachable."""
    received = _answer(address)
    if not received or _is_http2(received):
        return None
    return repr(received.splitlines()[0][:_PAGE_CHARACTERS_MAX].decode("latin1"))


def why_no_trust(address: str, credentials: Credentials | None) -> str:
    """Why TLS fails between the server at `address` and a client with these credentials; "" if it does not."""
    found = _certificate(address)
    if credentials is None:
        if found is None:
            return ""
        issuer, subject = names_of(found)
        return (
            f"it speaks TLS only (it is {subject} of {issuer}), and this process has no certificate of that cluster; "
            f"set {', '.join(environment.VARIABLES)}"
        )
    cluster, task = credentials.names
    own = f"this process is {task} of {cluster}"
    if found is None:
        return f"it does not speak TLS, and {own}, which requires TLS" if _is_http2(_answer(address)) else ""
    issuer, subject = names_of(found)
    other = f"it is {subject} of {issuer}"
    refused = _refusal(address, credentials)
    if not refused:
        return ""
    if issuer != cluster:
        return f"it belongs to another cluster: {other}; {own}"
    return f"the certificates do not match ({refused}): {other}; {own}"


def _certificate(address: str) -> bytes | None:
    """The certificate that a server shows before authentication, in DER; None if it does not speak TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with _connected(address) as sock, context.wrap_socket(sock) as secured:
            return secured.getpeercert(binary_form=True)
    except (OSError, ValueError):
        return None


def _refusal(address: str, credentials: Credentials) -> str:
    """Why one end rejects the other's certificate; "" if it does not."""
    host, _ = split_address(address)
    try:
        with (
            _connected(address) as sock,
            credentials.client_context.wrap_socket(sock, server_hostname=host) as secured,
        ):
            secured.sendall(_HTTP2_PREFACE)
            secured.recv(_HEADER_BYTES)  # the server looks at the client's certificate after the client's handshake
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return (error.reason or str(error)).lower().replace("_", " ")
    except OSError:
        return ""
    return ""


def _connected(address: str) -> socket.socket:
    return socket.create_connection(split_address(address), timeout=_TIMEOUT_S)


def _answer(address: str) -> bytes:
    """The first bytes that a server sends to a gRPC client without TLS."""
    received = b""
    try:
        with _connected(address) as probe:
            probe.sendall(_HTTP2_PREFACE)
            deadline = time.monotonic() + _TIMEOUT_S
            while len(received) < _HEADER_BYTES and time.monotonic() < deadline:
                chunk = probe.recv(256)
                if not chunk:
                    break
                received += chunk
    except OSError:
        return b""
    return received


def _is_http2(received: bytes) -> bool:
    return len(received) >= _HEADER_BYTES and received[3] == _SETTINGS
