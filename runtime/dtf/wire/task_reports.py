"""What the task of this process reports when its supervisor asks for it: its counts, its clock, traces of its steps.

Owns a field of GetStatusRequest and GetStatusResponse that TensorFlow does not know and therefore skips, with JSON in
it, compressed in the response. `task_notes` has what a task says unasked. The request has any of

    {"report": true}                                  the counts of `measures`
    {"clock": true}                                   the wall clock's nanoseconds
    {"trace": {"number": n, "steps": k, "pause": p}}  from now on k runs are traced, and p others after each
    {"traced": n}                                     what has been traced for that request; {"forget": true} ends it
"""

from __future__ import annotations

import json
import os
import time
import zlib
from typing import Any

from dtf.wire import codec
from dtf.wire.measures import measures
from dtf.wire.step_traces import step_traces

FIELD = 47_476
REQUEST_BYTES_MAX = 4096


def answer(request: bytes) -> bytes:
    """What is appended to a serialized GetStatusResponse for a GetStatusRequest: nothing unless it asks."""
    wanted = _wanted(request)
    if not wanted:
        return b""
    document: dict[str, Any] = {"pid": os.getpid()}
    if wanted.get("report"):
        document["report"] = measures.report()
    if isinstance(trace := wanted.get("trace"), dict):
        step_traces.ask(trace.get("number"), trace.get("steps"), trace.get("pause"))
    if "traced" in wanted:
        document["traced"] = step_traces.found(wanted["traced"], forget=bool(wanted.get("forget")))
    if wanted.get("clock"):
        document["clock_ns"] = time.time_ns()
    value = zlib.compress(json.dumps(document).encode(), 1)
    return codec.length_delimited(FIELD, len(value)) + value


def _wanted(request: bytes) -> dict[str, Any]:
    """What cannot be read asks for nothing."""
    try:
        for field, value, _ in codec.message_fields(memoryview(request)):
            if field == FIELD and len(value) <= REQUEST_BYTES_MAX:
                found = json.loads(bytes(value))
                return found if isinstance(found, dict) else {}
    except Exception:  # a field of another program
        pass
    return {}
