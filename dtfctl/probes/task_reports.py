"""Reports, clocks and traces of dtf tasks, asked for beside GetStatus. Tasks of TensorFlow skip the question.

Owns the field and the JSON in it, whose other end is dtf's `wire/task_reports`. What comes from outside is checked and
bounded: a task costs its supervisor at most `DOCUMENT_BYTES_MAX` of memory and `TIMEOUT_S` of waiting.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dtfctl.probes.get_status import NoAnswer, get_status
from dtfctl.values.report import TaskReport, Times, Traffic
from dtfctl.wire.messages import BadMessage, Shape, checked, each, fields, number, row, table, text, whole
from dtfctl.wire.protobuf import BYTES, varint
from dtfctl.wire.protobuf import fields as fields_of

FIELD = 47_476
TIMEOUT_S = 3.0
AT_ONCE_MAX = 64
DOCUMENT_BYTES_MAX = 64 << 20
COUNT = whole(0, (1 << 63) - 1)
_NAME = text(1000)
_TIMES = row(number(0, 1e15), each(COUNT, 100))

REPORT: Shape = fields(
    {
        "bounds_s": each(number(0, 1e9), 99),
        "traffic": each(row(_NAME, text(20), text(20), COUNT, COUNT), 10_000),
        "calls": table(_TIMES, _NAME),
        "runs": _TIMES,
        "saves": _TIMES,
        "saved_at": number(0, 1e12),
        "stale": row(COUNT, COUNT, COUNT),
        "values": table(table(number(), _NAME), text(100)),
    },
    is_open=True,
)
ANSWER = fields({}, {"report": REPORT, "clock_ns": COUNT, "pid": COUNT}, is_open=True)


def request(wanted: Mapping[str, Any]) -> bytes:
    """A GetStatusRequest that asks for `wanted`: see dtf's `wire/task_reports`."""
    value = json.dumps(wanted).encode()
    return varint(FIELD << 3 | 2) + varint(len(value)) + value


def answer_in(reply: bytes, shape: Shape = ANSWER) -> dict[str, Any] | None:
    """The document in a GetStatusResponse, None where it has none that can be understood."""
    try:
        for number_of_field, kind, value in fields_of(reply):
            if number_of_field == FIELD and kind == BYTES and isinstance(value, bytes):
                unpacker = zlib.decompressobj()
                document = unpacker.decompress(value, DOCUMENT_BYTES_MAX)
                if unpacker.unconsumed_tail or not unpacker.eof:
                    return None
                found: dict[str, Any] = checked(document, shape)
                return found
    except (ValueError, IndexError, zlib.error, BadMessage):
        pass
    return None


async def ask(
    address: str, tls: ssl.SSLContext | None, wanted: Mapping[str, Any], shape: Shape = ANSWER,
    timeout_s: float = TIMEOUT_S,
) -> dict[str, Any] | None:
    """The answer of the task at `address` (host:port); None where nobody answers, or nobody who knows the question."""
    try:
        return answer_in(await get_status(address, timeout_s, tls, request(wanted)), shape)
    except (OSError, asyncio.TimeoutError, NoAnswer, ssl.SSLError):
        return None


async def gather(addresses: Mapping[str, str], tls: ssl.SSLContext | None) -> dict[str, TaskReport]:
    """The reports of those tasks that answer, by name; `addresses` are host:port by task."""
    turn = asyncio.Semaphore(AT_ONCE_MAX)

    async def one(address: str) -> tuple[dict[str, Any] | None, float]:
        async with turn:
            begun = time.monotonic()
            return await ask(address, tls, {"report": True}), time.monotonic() - begun

    answers = await asyncio.gather(*(one(address) for address in addresses.values()))
    return {
        task: replace(report_of(answer["report"]), answered_s=took_s)
        for task, (answer, took_s) in zip(addresses, answers, strict=True)
        if answer is not None and "report" in answer
    }


def report_of(document: Mapping[str, Any]) -> TaskReport:
    """From a document of the shape REPORT."""
    updates, total, most = document["stale"]
    return TaskReport(
        bounds_s=tuple(document["bounds_s"]),
        traffic=tuple(Traffic(*each_row) for each_row in document["traffic"]),
        calls={name: _times(row_of) for name, row_of in document["calls"].items()},
        runs=_times(document["runs"]),
        saves=_times(document["saves"]),
        saved_at=document["saved_at"],
        stale_updates=updates,
        stale_sum=total,
        stale_max=most,
        values=document["values"],
    )


def _times(row_of: Any) -> Times:
    total_s, counts = row_of
    return Times(total_s, tuple(counts))
