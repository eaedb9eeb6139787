"""A Trace as a file for Perfetto (ui.perfetto.dev) and chrome://tracing, and for the page. Pure.

Each task is a process of the picture, with its sessions' steps in the first rows and its operations below. Messages
are arrows from the operation that sends a tensor to the one that receives it. One more process has the critical paths.
The key "dtf" has the same in a form that other programs can rely on: its keys stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dtfctl.errors import TraceUnreadable
from dtfctl.trace.critical_path import OVERHEAD, Part, critical_path
from dtfctl.trace.explain import Explanation
from dtfctl.trace.model import Node, Step, Trace
from dtfctl.wire.messages import BadMessage
from dtfctl.wire.typed import from_document, shape_of

VERSION = 1
_PATH_PROCESS = 1
_COLOURS = {"wait": "terrible", "transfer": "thread_state_iowait", "serve": "thread_state_runnable"}


def document(trace: Trace, explanation: Explanation) -> dict[str, Any]:
    """For JSON. Times of events are microseconds since the first step."""
    began_us = min((step.start_us for step in trace.steps), default=0.0)
    paths = {id(step): critical_path(step) for step in trace.steps}
    return {
        "traceEvents": list(_events(trace, paths, began_us)),
        "displayTimeUnit": "ms",
        "dtf": {
            "version": VERSION,
            "cluster": trace.cluster,
            "began_us": began_us,
            "tasks": [asdict(clock) for clock in trace.clocks],
            "missing": list(trace.missing),
            "steps": [_step(step, paths[id(step)], began_us) for step in trace.steps],
            "explanation": explanation_document(explanation),
        },
    }


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """What `explain -o json` prints; its keys stay as they are."""
    return asdict(explanation)


def explanation_of(document: Any) -> Explanation:
    """That of a file which `document` made.

    Raises:
      TraceUnreadable: it is another file.
    """
    if not isinstance(document, dict) or not isinstance(document.get("dtf"), dict):
        raise TraceUnreadable("not a file of dtfctl trace")
    found = document["dtf"].get("explanation")
    try:
        shape_of(Explanation)(found, "explanation")
    except BadMessage as error:
        raise TraceUnreadable(f"not a file of dtfctl trace: {error}") from None
    return from_document(Explanation, found)


def _step(step: Step, path: tuple[Part, ...], began_us: float) -> dict[str, Any]:
    return {
        "client": step.client,
        "number": step.number,
        "is_main": step.is_main,
        "fetches": list(step.fetches),
        "start_us": step.start_us - began_us,
        "duration_us": step.duration_us,
        "path": [
            {
                "kind": part.kind,
                "task": part.task,
                "to": part.to,
                "name": part.name,
                "op": part.op,
                "variable": part.variable,
                "bytes": part.bytes,
                "start_us": part.start_us - began_us,
                "duration_us": part.duration_us,
            }
            for part in path
        ],
    }


def _events(trace: Trace, paths: dict[int, tuple[Part, ...]], began_us: float) -> Iterator[dict[str, Any]]:
    tasks = sorted({node.task for step in trace.steps for node in step.nodes} | {c.task for c in trace.clients})
    numbers = {task: number for number, task in enumerate(tasks, _PATH_PROCESS + 1)}
    yield from _process(_PATH_PROCESS, "critical path", 0)
    for task, number in numbers.items():
        yield from _process(number, task, number)
    for row, client in enumerate(trace.clients, 1):
        yield _named_row(_PATH_PROCESS, row, client.task)
        for step in client.steps:
            for part in paths[id(step)] if step.is_main else ():
                told = {key: getattr(part, key) for key in ("task", "to", "variable", "bytes")}
                yield _slice(
                    _words(part), part.kind, _PATH_PROCESS, row, part.start_us - began_us, part.duration_us,
                    {**told, "step": step.number}, _COLOURS.get(part.kind),
                )  # fmt: skip
    rows = _Rows(first=2)
    flow = 0
    for client in trace.clients:
        yield _named_row(numbers[client.task], 1, "session.run")
        for step in client.steps:
            critical = {(part.task, part.name) for part in paths[id(step)] if part.kind != OVERHEAD}
            critical |= {(part.to, part.name) for part in paths[id(step)] if part.to}
            yield _slice(
                f"step {step.number}", "step", numbers[client.task], 1, step.start_us - began_us, step.duration_us,
                {"fetches": ", ".join(step.fetches), "client": client.task},
            )  # fmt: skip
            placed = {}
            for node in step.nodes:
                row = placed[node] = rows.row(node)
                name = node.edge.tensor if node.edge is not None else node.name
                is_critical = (node.task, name) in critical
                yield _slice(
                    node.op, _category(step, node), numbers[node.task], row, node.start_us - began_us,
                    node.end_us - node.start_us, _arguments(step, node, is_critical), "bad" if is_critical else None,
                )  # fmt: skip
            receivers = {node.edge: node for node in step.nodes if node.is_receive}
            for sender in step.nodes:
                receiver = receivers.get(sender.edge) if sender.is_send else None
                if receiver is None or receiver.task == sender.task:
                    continue
                flow += 1
                assert sender.edge is not None
                for phase, node, at_us in (("s", sender, sender.start_us), ("f", receiver, receiver.end_us)):
                    yield {
                        "ph": phase, "cat": "message", "name": sender.edge.tensor, "id": flow,
                        "pid": numbers[node.task], "tid": placed[node], "ts": at_us - began_us,
                        **({"bp": "e"} if phase == "f" else {}),
                    }  # fmt: skip


class _Rows:
    """Gives each operation the first row of its task that is free when it begins."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._free_from: dict[str, list[float]] = {}

    def row(self, node: Node) -> int:
        free_from = self._free_from.setdefault(node.task, [])
        place = next((place for place, at in enumerate(free_from) if at <= node.start_us), len(free_from))
        free_from[place : place + 1] = [node.end_us]
        return self._first + place


def _category(step: Step, node: Node) -> str:
    if node.is_receive or node.waits:
        return "wait"
    if node.is_send:
        return "send"
    return "compute" if node.task == step.client else "serve"


def _arguments(step: Step, node: Node, is_critical: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": node.name, "step": step.number, "client": step.client}
    if node.bytes:
        found["bytes"] = node.bytes
    if node.edge is not None:
        found |= {"tensor": node.edge.tensor, "from": node.edge.source, "to": node.edge.destination}
    if is_critical:
        found["critical"] = True
    return found


def _words(part: Part) -> str:
    if part.kind == OVERHEAD:
        return f"{part.kind} ({part.task})"
    if part.to:
        return f"{part.kind}: {part.variable or part.name}"
    return f"{part.kind}: {part.op} {part.name}".rstrip()


def _slice(
    name: str, category: str, pid: int, tid: int, ts: float, duration: float, arguments: dict[str, Any],
    colour: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    event = {
        "ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": ts, "dur": duration, "args": arguments,
    }  # fmt: skip
    return event if colour is None else {**event, "cname": colour}


def _process(pid: int, name: str, order: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": order}}


def _named_row(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
