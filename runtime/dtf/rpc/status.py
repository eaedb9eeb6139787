"""Errors as gRPC statuses and back.

The codes have the same numbers. The flag that an error is derived is sent twice: in the trailing metadata
`grpc-status-details-bin` (TensorFlow 2), and as a mark in the text (TensorFlow 1.15).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import grpc

from dtf.wire import errors
from dtf.wire.pb import distributed_runtime_payloads_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_DERIVED_PAYLOAD = "type.googleapis.com/tensorflow.DerivedStatus"
_RESTARTED_PAYLOAD = "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted"
_DERIVED_MARK = "[_Derived_]"
_MESSAGE_CHARACTERS_MAX = 3072
_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}

Metadata = tuple[tuple[str, bytes], ...]


def encode(error: errors.OpError) -> tuple[Any, str, Metadata]:
    """(status code, details, trailing metadata) of an error."""
    payloads = {}
    if error.derived:
        payloads[_DERIVED_PAYLOAD] = b""
    if error.error_code == errors.ABORTED and "restarted" in error.message:
        payloads[_RESTARTED_PAYLOAD] = b""
    metadata: Metadata = ()
    if payloads:
        container = distributed_runtime_payloads_pb2.GrpcPayloadContainer(payloads=payloads)
        metadata = ((_DETAILS_KEY, container.SerializeToString()),)
    code = _STATUS_CODES.get(error.error_code, grpc.StatusCode.UNKNOWN)
    return code, encode_message(error), metadata


def code_of(error: errors.OpError) -> Any:
    """The code as used in responses that carry errors."""
    return error.error_code


def encode_message(error: errors.OpError) -> str:
    """The text of an error as it travels: marked when derived, and cut where headers would grow too long."""
    message = error.message
    if error.derived and not message.startswith(_DERIVED_MARK):
        message = _DERIVED_MARK + message
    if len(message) > _MESSAGE_CHARACTERS_MAX:
        message = message[:_MESSAGE_CHARACTERS_MAX] + " ... [truncated]"
    return message


def decode(code: int, message: str, metadata: Iterable[tuple[str, Any]] | None = None) -> errors.OpError:
    """The error of a code (a number) and its text, with the trailing metadata where there is any."""
    derived = message.startswith(_DERIVED_MARK)
    if derived:
        message = message[len(_DERIVED_MARK) :]
    for key, value in metadata or ():
        if key == _DETAILS_KEY:
            container = distributed_runtime_payloads_pb2.GrpcPayloadContainer()
            try:
                container.ParseFromString(value)
            except Exception:  # unknown details; use the code and the text
                continue
            derived = derived or any(name.endswith("DerivedStatus") for name in container.payloads)
    if code == errors.UNKNOWN and "Stream removed" in message:
        code = errors.UNAVAILABLE
    error = errors.error_from_code(code, message)
    error.derived = derived or code == errors.CANCELLED
    return error


def decode_call(call: Any, where: str) -> errors.OpError:
    """The error of a failed call. An error of gRPC itself becomes a sentence that begins with `where`."""
    code = call.code().value[0]
    details = call.details() or ""
    if code == errors.CANCELLED and (details == "CANCELLED" or "RST_STREAM" in details):
        # These words are gRPC's own: the server has dropped the call, as one does that is being stopped.
        return errors.UnavailableError.of(f"{where}: the call was dropped, the server may be shutting down")
    error = decode(code, details, call.trailing_metadata())
    if error.error_code in (errors.UNAVAILABLE, errors.DEADLINE_EXCEEDED) or (
        error.error_code == errors.CANCELLED and details in ("", "Locally cancelled by application!")
    ):
        renamed = errors.error_from_code(error.error_code, f"{where}: {_plain(details)}")
        renamed.derived = error.derived
        return renamed
    return error


def _plain(details: str) -> str:
    """gRPC's report without its inner workings."""
    if "onnection refused" in details:
        return "connection refused"
    if re.search("DNS resolution failed|errors resolving|lookup failed|C-ares status|Name or service not", details):
        return "the host name does not resolve"
    if "Socket closed" in details or "Connection reset" in details or "recvmsg" in details:
        return "the connection was lost"
    if "handshake failed" in details:
        found = re.search("OPENSSL_internal:(?:CERTIFICATE_VERIFY_FAILED: ([^:]*)|([A-Z_]+))", details)
        why = (found[1] or found[2].lower().replace("_", " ")) if found else "the two ends do not trust each other"
        return f"no TLS connection: {why}"
    if details == "Deadline Exceeded":
        return "no answer in time"
    return re.sub(r"^failed to connect to all addresses; last error: (UNKNOWN: |UNAVAILABLE: )?", "", details)
