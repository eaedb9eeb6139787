"""From what tasks answer (dtf's `wire/step_traces`) to a Trace, all times on the clock here. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dtfctl.trace.model import Client, Clock, Edge, Node, Step, Trace
from dtfctl.wire.messages import BadMessage, Shape, each, fields, flag, number, text, whole

_NAME = text(10_000)
_TIME = number(-1e18, 1e18)
COUNT = whole(0, (1 << 62) - 1)


def _node_row(value: object, where: str) -> None:
    """[name, op, start, duration, bytes, inputs] and, of what goes between tasks, tensor, source, destination."""
    if not isinstance(value, list) or len(value) not in (6, 9):
        raise BadMessage(f'"{where}" must be a list of 6 or 9')
    shapes = (_NAME, text(300), _TIME, number(0, 1e15), COUNT, each(_NAME, 10_000), _NAME, _NAME, _NAME)
    for position, (shape, item) in enumerate(zip(shapes, value, strict=False)):
        shape(item, f"{where}[{position}]")


_DEVICE = fields({"name": _NAME, "nodes": each(_node_row, 1_000_000)})
_RUN = fields({"start_us": _TIME, "end_us": _TIME, "devices": each(_DEVICE, 100_000)})
_PLAN = fields(
    {
        "fetches": each(_NAME, 100),
        "is_main": flag,
        "untraced_runs": COUNT,
        "untraced_s": number(0, 1e12),
        "pauses": COUNT,
        "paused_s": number(0, 1e12),
        "runs": each(_RUN, 1000),
    },
    is_open=True,
)
TRACED: Shape = fields({"number": COUNT, "is_fulfilled": flag, "plans": each(_PLAN, 100)}, is_open=True)
"""Of `traced` in a task's answer."""


def trace_of(
    cluster: str,
    answers: Mapping[str, Mapping[str, Any]],
    clocks: Sequence[Clock],
    missing: Sequence[str] = (),
    helpers: Sequence[str] = (),
) -> Trace:
    """`answers` are documents of the shape TRACED by task."""
    ahead_us = {clock.task: clock.offset_us for clock in clocks}
    clients = [_client(task, document, ahead_us) for task, document in answers.items()]
    found = tuple(client for client in clients if client.steps)
    return Trace(cluster, found, tuple(clocks), tuple(missing), tuple(helpers))


def _client(task: str, document: Mapping[str, Any], ahead_us: Mapping[str, float]) -> Client:
    plans = document["plans"]
    main = _main_plan(plans)
    steps = []
    for plan in plans:
        for run in plan["runs"]:
            steps.append(_step(task, plan["fetches"], run, ahead_us, plan is main))
    steps.sort(key=lambda step: step[0])
    made = tuple(
        Step(task, number, fetches, start_us, end_us, nodes, is_main)
        for number, (start_us, end_us, fetches, nodes, is_main) in enumerate(steps, 1)
    )
    if main is None:
        return Client(task, made)
    untraced_s = main["untraced_s"] / main["untraced_runs"] if main["untraced_runs"] else None
    return Client(task, made, untraced_s, main["paused_s"] / main["pauses"] if main["pauses"] else 0.0)


def _main_plan(plans: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The runs in which the main thread spends most of its time: the training's steps."""

    def weight(plan: Mapping[str, Any]) -> tuple[bool, float]:
        """Steps are many, and take long; what hooks run besides is seldom, or short."""
        spent_s = plan["untraced_s"] + sum(run["end_us"] - run["start_us"] for run in plan["runs"]) / 1e6
        return plan["is_main"], spent_s * (plan["untraced_runs"] + len(plan["runs"]))

    return max((plan for plan in plans if plan["runs"]), key=weight, default=None)


def _step(
    task: str, fetches: Sequence[str], run: Mapping[str, Any], ahead_us: Mapping[str, float], is_main: bool
) -> tuple[float, float, tuple[str, ...], tuple[Node, ...], bool]:
    own_us = ahead_us.get(task, 0.0)
    nodes = []
    for device in run["devices"]:
        where = task_of(device["name"]) or task
        offset_us = ahead_us.get(where, 0.0)
        for name, op, start_us, took_us, size, inputs, *edge in device["nodes"]:
            nodes.append(
                Node(
                    where,
                    name,
                    op,
                    start_us - offset_us,
                    start_us - offset_us + took_us,
                    size,
                    tuple(each_input.partition(":")[0] for each_input in inputs),
                    Edge(edge[0], task_of(edge[1]) or task, task_of(edge[2]) or task) if edge else None,
                )
            )
    nodes.sort(key=lambda node: node.start_us)
    return run["start_us"] - own_us, run["end_us"] - own_us, tuple(fetches), tuple(nodes), is_main


def task_of(device: str) -> str:
    """The short name in a device's name, "" where it has none."""
    match = _DEVICE_NAME.search(device)
    return f"{match[1]}:{match[2]}" if match else ""


_DEVICE_NAME = re.compile(r"/job:([^/\s]+)/(?:replica:\d+/)?task:(\d+)")
