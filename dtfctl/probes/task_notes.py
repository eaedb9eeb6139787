"""What a task of dtf says of itself beside GetStatus, and what it can be asked there: a checkpoint before a parameter
server ends. Tasks of TensorFlow skip the question and say nothing.

Owns the field and the JSON in it, whose other end is dtf's `wire/task_notes`. What comes from outside is checked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from dataclasses import dataclass

from dtfctl.probes.get_status import NoAnswer, get_status
from dtfctl.wire.protobuf import BYTES, fields, varint

FIELD = 47_475
ATTEMPT_TIMEOUT_S = 2.0
LOOK_AGAIN_S = 0.03
COUNT_MAX = 1 << 62
HOLD_S = 2.0
"""How long a chief that has saved waits for the end of the parameter server."""


@dataclass(frozen=True)
class TaskNotes:
    """`runs` of its sessions have ended well; `savers` of them can save when asked; `saved` is the number of the last
    request that was fulfilled."""

    runs: int = 0
    savers: int = 0
    saved: int = 0


def found_in(reply: bytes) -> TaskNotes | None:
    """What a GetStatusResponse says, None where it says nothing that can be understood."""
    try:
        for number, kind, value in fields(reply):
            if number == FIELD and kind == BYTES and isinstance(value, bytes):
                document = json.loads(value)
                counts = [document[name] for name in ("runs", "savers", "saved")]
                if all(type(count) is int and 0 <= count <= COUNT_MAX for count in counts):
                    return TaskNotes(*counts)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        pass
    return None


def request_for_checkpoint(number: int, hold_s: float) -> bytes:
    """A GetStatusRequest that asks for a checkpoint, and for no further step within `hold_s` after it."""
    value = json.dumps({"save": number, "hold_s": hold_s}).encode()
    return varint(FIELD << 3 | 2) + varint(len(value)) + value


async def ask(address: str, tls: ssl.SSLContext | None, request: bytes = b"") -> TaskNotes | None:
    """None where nobody answers, or who answers says nothing of itself."""
    try:
        return found_in(await get_status(address, ATTEMPT_TIMEOUT_S, tls, request))
    except (OSError, asyncio.TimeoutError, NoAnswer):
        return None


async def have_saved(address: str, tls: ssl.SSLContext | None, timeout_s: float, hold_s: float = HOLD_S) -> bool:
    """Asks the chief at `address` for a checkpoint and waits for it; whether it has saved within `timeout_s`."""
    number = time.time_ns() // 1000
    request = request_for_checkpoint(number, hold_s)
    deadline = time.monotonic() + timeout_s
    while True:
        notes = await ask(address, tls, request)
        if notes is not None and notes.saved == number:
            return True
        if notes is None or not notes.savers or time.monotonic() >= deadline:
            return False
        await asyncio.sleep(LOOK_AGAIN_S)
