"""Asks the tasks of a running training for traces of a few steps, and compares their clocks with the one here.

Owns the conversation; dtf's `wire/step_traces` has the other end. Tasks that only serve take part in the steps of
others, and are asked for their clocks only. Whatever happens, the wish is withdrawn at the end.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dtfctl.probes import task_reports
from dtfctl.trace.documents import COUNT, TRACED
from dtfctl.trace.model import Clock
from dtfctl.wire.messages import fields, maybe

LOOK_AGAIN_S = 0.2
CLOCK_SAMPLES = 7
FETCH_TIMEOUT_S = 30.0
LATE_S = 10.0
"""So long after the first task others may begin to train."""
ANSWER = fields({}, {"report": task_reports.REPORT, "clock_ns": COUNT, "traced": maybe(TRACED)}, is_open=True)


class Tracing:
    """`addresses` and `hosts` are by task; `local` is the name of the host whose clock is the one here."""

    def __init__(
        self, addresses: Mapping[str, str], hosts: Mapping[str, str], local: str, tls: ssl.SSLContext | None
    ) -> None:
        self._addresses = addresses
        self._hosts = hosts
        self._local = local
        self._tls = tls

    async def clocks(self) -> list[Clock]:
        """The clock of each task that answers, those of one host as one."""
        of_host: dict[str, tuple[float, float]] = {self._local: (0.0, 0.0)}
        found = []
        for task, address in self._addresses.items():
            host = self._hosts.get(task, "")
            if host not in of_host:
                offset = await self._offset(address)
                if offset is None:
                    continue
                of_host[host] = offset
            found.append(Clock(task, host, *of_host[host]))
        return found

    async def _offset(self, address: str) -> tuple[float, float] | None:
        """(microseconds ahead, error): of some round trips the shortest is the most exact."""
        best: tuple[float, float] | None = None
        for _ in range(CLOCK_SAMPLES):
            before_ns = time.time_ns()
            answer = await task_reports.ask(address, self._tls, {"clock": True})
            after_ns = time.time_ns()
            if answer is None or "clock_ns" not in answer:
                continue
            error_us = (after_ns - before_ns) / 2000
            if best is None or error_us < best[1]:
                best = (answer["clock_ns"] - (before_ns + after_ns) / 2) / 1000, error_us
        return best

    async def traces(
        self, steps: int, pause: int, expected: Collection[str], timeout_s: float, say: Callable[[str], None]
    ) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """({task: its document}, tasks that train and made no step) of all tasks that have sessions. Those `expected`
        to train are waited for while they begin."""
        number = time.time_ns() // 1000
        wish = {"trace": {"number": number, "steps": steps, "pause": pause}, "traced": number, "report": True}
        deadline, patient_until = time.monotonic() + timeout_s, math.inf
        found: dict[str, dict[str, Any]] = {}
        training: set[str] = set()
        asked: set[str] = set()
        try:
            while True:
                answers = await self._all({t: a for t, a in self._addresses.items() if t not in found}, wish)
                asked |= answers.keys()
                training |= {task for task, answer in answers.items() if _runs(answer) > 0}
                found |= {task: answer["traced"] for task, answer in answers.items() if _is_fulfilled(answer)}
                if training:
                    patient_until = min(patient_until, time.monotonic() + LATE_S)
                is_patient = time.monotonic() < patient_until
                late = {task for task in expected if is_patient and "report" in answers.get(task, {})}
                if not (training | late) - found.keys() or time.monotonic() >= deadline:
                    break
                await asyncio.sleep(LOOK_AGAIN_S)
            if training - found.keys():
                say(f"not all steps within {timeout_s:g}s: {', '.join(sorted(training - found.keys()))}")
        finally:
            left = {task: self._addresses[task] for task in asked}
            for task, answer in (await self._all(left, {"traced": number, "forget": True})).items():
                if task not in found and answer.get("traced"):
                    found[task] = answer["traced"]
        made = {task: found[task] for task in self._addresses if any(p["runs"] for p in _plans(found.get(task)))}
        return made, [task for task in self._addresses if task in training and task not in made]

    async def _all(self, addresses: Mapping[str, str], wanted: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        turn = asyncio.Semaphore(task_reports.AT_ONCE_MAX)

        async def one(address: str) -> dict[str, Any] | None:
            async with turn:
                return await task_reports.ask(address, self._tls, wanted, ANSWER, FETCH_TIMEOUT_S)

        answers = await asyncio.gather(*(one(address) for address in addresses.values()))
        return {task: answer for task, answer in zip(addresses, answers, strict=True) if answer is not None}


def _runs(answer: Mapping[str, Any]) -> int:
    """How many runs the sessions of a task have made."""
    return sum(answer["report"]["runs"][1]) if "report" in answer else 0


def _is_fulfilled(answer: Mapping[str, Any]) -> bool:
    traced = answer.get("traced")
    return traced is not None and bool(traced["is_fulfilled"])


def _plans(document: Mapping[str, Any] | None) -> list[Any]:
    return [] if document is None else document["plans"]
