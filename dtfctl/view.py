"""What the user sees of a run, as text and as JSON. Pure: values in, strings out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dtfctl import state
from dtfctl.hosts import CONNECTED, UNREACHABLE
from dtfctl.store import Run
from dtfctl.task import TaskStatus

API_VERSION = "dtfctl/v1"


def cluster_state(run: Run) -> str:
    """starting, running, succeeded, failed or stopped; the last three only once nothing runs any more."""
    if run.is_over:
        return run.outcome
    return "running" if run.all_were_ready else "starting"


def document(run: Run, statuses: Mapping[str, TaskStatus]) -> dict[str, Any]:
    """What `status -o json` prints; its keys stay as they are."""
    hosts = {task.name: task.host.name for task in run.actual.tasks()}
    return {
        "apiVersion": API_VERSION,
        "name": run.plan.name,
        "state": cluster_state(run),
        "hosts": [
            {"name": host.name, "state": host.state, "since": host.since, "reason": host.why}
            for host in run.hosts.values()
        ],
        "tasks": [
            {
                "name": status.name,
                "state": UNREACHABLE if _is_away(run, status) else status.state,
                "ready": status.ready,
                "pid": status.pid,
                "host": hosts[status.name],
                "address": run.addresses.get(status.name),
                "restarts": status.restarts,
                "reason": _reason(status),
            }
            for status in statuses.values()
        ],
    }


def table(run: Run, statuses: Mapping[str, TaskStatus], now: float, is_wide: bool = False) -> str:
    """`now` is the monotonic clock's."""
    hosts = {task.name: task.host.name for task in run.actual.tasks()}
    is_wide = is_wide or bool(run.hosts)
    headings = ["TASK", "STATE", "READY", "RESTARTS", "PID", "SINCE", "ADDRESS"]
    rows = [headings + (["HOST", "GENERATION"] if is_wide else []) + ["LAST"]]
    for status in statuses.values():
        wide = [hosts[status.name], str(status.generation)] if is_wide else []
        rows.append(
            [
                status.name,
                UNREACHABLE if _is_away(run, status) else _state(status, now),
                "yes" if status.ready else "no",
                str(status.restarts),
                str(status.pid or "-"),
                _since(status, now),
                run.addresses.get(status.name, "-"),
                *wide,
                status.waiting_for or _reason(status) or "-",
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([headline(run), *lines])


def expansion(hosts: list[dict[str, Any]]) -> str:
    """What `expand.described` has found, for people."""
    lines = []
    for host in hosts:
        ssh = f", ssh {host['ssh']}" if host["ssh"] else ""
        lines.append(f"# {host['host']} ({host['address']}{ssh})")
        for task in host["tasks"]:
            lines.append(f"{task['task']}:")
            lines.append(f"  argv: {shlex.join(task['argv'])}")
            lines.append(f"  working_dir: {task['working_dir']}")
            if task["bind"]:
                lines.append(f"  bind: {task['bind']}, known as {task['address']}")
            if task["cpus"]:
                lines.append(f"  cpus: {', '.join(map(str, task['cpus']))}")
            if task["limits"]:
                lines.append(f"  limits: {', '.join(f'{key}={value}' for key, value in task['limits'].items())}")
            lines += [f"  {key}={value}" for key, value in task["environment"].items()]
    return "\n".join(lines)


def headline(run: Run) -> str:
    words = f"{run.plan.name}: {cluster_state(run)}"
    if run.outcome == "failed" or (run.outcome and not run.is_over):
        words += f" ({'ending: ' if not run.is_over else ''}{run.why})"
    for away in (host for host in run.hosts.values() if host.state != CONNECTED and not run.is_over):
        words += f"\n{away.name} is {away.state} since {_clock(away.since)}: {away.why}"
    for pid, host, command in run.strays:
        words += f"\nleft behind: pid {pid} on {host}: {command}"
    return words


def missing(statuses: Mapping[str, TaskStatus], now: float) -> list[tuple[str, str]]:
    """(task, why it is not ready) of those that are not."""
    lines = []
    for status in statuses.values():
        if status.ready or status.state == state.SUCCEEDED:
            continue
        words = status.waiting_for if status.state == state.STARTING else status.reason
        since = f" ({_age(now - status.started_at)})" if status.started_at is not None else ""
        lines.append((status.name, f"{_state(status, now)}{since}" + (f": {words}" if words else "")))
    return lines


def _reason(status: TaskStatus) -> str:
    """The task's last change in words; that it was restarted, and why, is not forgotten over its end."""
    if status.restart_reason and status.restart_reason != status.reason:
        return f"{status.reason}; earlier: {status.restart_reason}"
    return status.reason or status.waiting_for


def _state(status: TaskStatus, now: float) -> str:
    if status.state == state.BACKOFF and status.next_start_at is not None:
        return f"backoff {max(0.0, status.next_start_at - now):.0f}s"
    return status.state


def _since(status: TaskStatus, now: float) -> str:
    if status.state in state.WITH_PROCESS:
        return _age(now - status.started_at) if status.started_at is not None else "-"
    return _age(now - status.exit.at) if status.exit is not None else "-"


def _is_away(run: Run, status: TaskStatus) -> bool:
    """Whether it is on a host of which nothing is known at present."""
    host = run.hosts.get(run.actual.task(status.name).host.name)
    return host is not None and host.state != CONNECTED and status.state in state.WITH_PROCESS and not run.is_over


def _clock(wall: float) -> str:
    return datetime.fromtimestamp(wall).strftime("%H:%M:%S")


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for unit, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f}{letter}"
    return f"{seconds:.0f}s"
