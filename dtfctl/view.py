"""What the user sees of a run, as text and as JSON. Pure: values in, strings out."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dtfctl import columns, host_failover, state
from dtfctl.hosts import CONNECTED, UNREACHABLE
from dtfctl.store import Happening, Run
from dtfctl.task import TaskStatus
from dtfctl.wording import printable

if TYPE_CHECKING:
    from dtfctl.progress import Progress
    from dtfctl.usage import Usage

API_VERSION = "dtfctl/v1"


def cluster_state(run: Run) -> str:
    """starting, running, succeeded, failed or stopped; the last three only once nothing runs any more."""
    if run.is_over:
        return run.outcome
    return "running" if run.all_were_ready else "starting"


def document(run: Run, statuses: Mapping[str, TaskStatus]) -> dict[str, Any]:
    """What `status -o json` prints; its keys stay as they are."""
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
                "host": host_failover.host_of(run, status),
                "address": run.addresses.get(status.name),
                "restarts": status.restarts,
                "reason": _reason(status),
                **({"stalled": _stalled_document(status)} if status.stalled else {}),
            }
            for status in statuses.values()
        ],
    }


def table(
    run: Run, statuses: Mapping[str, TaskStatus], now: float, is_wide: bool = False, is_coloured: bool = False
) -> str:
    """`now` is the monotonic clock's."""
    cells = rows(run, statuses, now, is_wide)
    return "\n".join([headline(run, is_coloured), *stalled(statuses), *columns.lines(cells, is_coloured=is_coloured)])


def rows(run: Run, statuses: Mapping[str, TaskStatus], now: float, is_wide: bool = False) -> list[list[str]]:
    """The table's cells, headings first."""
    is_wide = is_wide or bool(run.hosts)
    headings = ["TASK", "STATE", "READY", "RESTARTS", "PID", "SINCE", "ADDRESS"]
    cells = [headings + (["HOST", "GENERATION"] if is_wide else []) + ["LAST"]]
    for status in statuses.values():
        wide = [host_failover.host_of(run, status), str(status.generation)] if is_wide else []
        cells.append(
            [
                status.name,
                UNREACHABLE if _is_away(run, status) else _state(status, now),
                "yes" if status.ready else "no",
                str(status.restarts),
                str(status.pid or "-"),
                _since(status, now),
                run.addresses.get(status.name, "-"),
                *wide,
                printable(status.waiting_for or _reason(status) or "-"),
            ]
        )
    return cells


def summary(run: Run, statuses: Mapping[str, TaskStatus]) -> dict[str, Any]:
    """One cluster among several, as `ls -o json` prints it."""
    return {
        "name": run.plan.name,
        "state": cluster_state(run),
        "tasks": len(statuses),
        "ready": sum(status.ready for status in statuses.values()),
        "restarts": sum(status.restarts for status in statuses.values()),
        "started": _rfc3339(run.started_at),
        "file": run.plan.file,
        "reason": run.why,
    }


def clusters_table(summaries: list[dict[str, Any]], now: float, is_coloured: bool = False) -> str:
    """`now` is the wall clock's."""
    cells = [["NAME", "STATE", "READY", "RESTARTS", "SINCE", "FILE"]]
    for each in summaries:
        if each["state"] == "damaged":
            cells.append([each["name"], each["state"], "-", "-", "-", printable(each["reason"])])
            continue
        since = _age(now - datetime.fromisoformat(each["started"].replace("Z", "+00:00")).timestamp())
        ready = f"{each['ready']}/{each['tasks']}"
        cells.append([each["name"], each["state"], ready, str(each["restarts"]), since, printable(each["file"])])
    return "\n".join(columns.lines(cells, is_coloured=is_coloured))


def event(happening: Happening, width: int, is_json: bool, is_coloured: bool = False) -> str:
    """One line of the history."""
    if is_json:
        document = {
            "time": _rfc3339(happening.time),
            "task": happening.task,
            "what": happening.what,
            "cause": happening.cause,
        }
        return json.dumps(document)
    at = datetime.fromtimestamp(happening.time).isoformat(sep=" ", timespec="milliseconds")
    what = f"{printable(happening.what):<10}"
    if is_coloured:
        what = columns.coloured(what, happening.what, columns.EVENT_COLOURS)
    return f"{at}  {happening.task or '-':{width}}  {what}  {printable(happening.cause)}".rstrip()


def usage_rows(
    run: Run, statuses: Mapping[str, TaskStatus], usages: Mapping[str, tuple[float, Usage]], now: float
) -> list[list[str]]:
    """Cells for `top`; `usages` are (cores in use, Usage) of tasks, as far as it is known."""
    cells = [["TASK", "STATE", "CPU%", "MEMORY", "THREADS", "PROCESSES", "PID", "SINCE", "RESTARTS"]]
    for status in statuses.values():
        cores, usage = usages.get(status.name, (None, None))
        measured = (
            ["-", "-", "-", "-"]
            if cores is None or usage is None
            else [f"{100 * cores:.0f}", size(usage.memory_bytes), str(usage.threads), str(usage.processes)]
        )
        pid, since = str(status.pid or "-"), _since(status, now)
        cells.append([status.name, _state(status, now), *measured, pid, since, str(status.restarts)])
    return cells


def usage_document(
    run: Run,
    statuses: Mapping[str, TaskStatus],
    usages: Mapping[str, tuple[float, Usage]],
    progress: Progress | None,
    now: float,
) -> dict[str, Any]:
    """What `top -o json` prints, one such line for each look. `now` is the wall clock's."""
    return {
        "time": _rfc3339(now),
        "name": run.plan.name,
        "state": cluster_state(run),
        "progress": None
        if progress is None
        else {
            "step": progress.step,
            "steps_per_s": _finite(progress.steps_per_s),
            "loss": _finite(progress.loss),
        },
        "tasks": [
            {
                "name": name,
                "state": status.state,
                "cpu_cores": round(usages[name][0], 4) if name in usages else None,
                "memory_bytes": usages[name][1].memory_bytes if name in usages else None,
                "threads": usages[name][1].threads if name in usages else None,
                "processes": usages[name][1].processes if name in usages else None,
                "restarts": status.restarts,
            }
            for name, status in statuses.items()
        ],
    }


def _finite(value: float | None) -> float | None:
    """JSON knows no infinity."""
    return value if value is not None and math.isfinite(value) else None


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


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


def headline(run: Run, is_coloured: bool = False) -> str:
    shown = cluster_state(run)
    words = f"{run.plan.name}: {columns.coloured(shown, shown) if is_coloured else shown}"
    if run.outcome == "failed" or (run.outcome and not run.is_over):
        words += f" ({'ending: ' if not run.is_over else ''}{printable(run.why)})"
    for away in (host for host in run.hosts.values() if host.state != CONNECTED and not run.is_over):
        words += f"\n{away.name} is {away.state} since {_clock(away.since)}: {printable(away.why)}"
    for pid, host, command in run.strays:
        words += f"\nleft behind: pid {pid} on {host}: {printable(command)}"
    return words


def stalled(statuses: Mapping[str, TaskStatus]) -> list[str]:
    """A line for each task that gets nowhere though it runs."""
    return [
        f"{status.name} stalled since {_clock(status.stalled_since or 0.0)}: {printable(status.stalled)}"
        for status in statuses.values()
        if status.stalled
    ]


def missing(statuses: Mapping[str, TaskStatus], now: float) -> list[tuple[str, str]]:
    """(task, why it is not ready) of those that are not."""
    lines = []
    for status in statuses.values():
        if status.ready or status.state in (state.SUCCEEDED, state.STOPPED):
            continue
        starting = status.stalled or status.waiting_for
        words = printable(starting if status.state == state.STARTING else status.reason)
        since = f" ({_age(now - status.started_at)})" if status.started_at is not None else ""
        lines.append((status.name, f"{_state(status, now)}{since}" + (f": {words}" if words else "")))
    return lines


def _stalled_document(status: TaskStatus) -> dict[str, str]:
    return {"since": _rfc3339(status.stalled_since or 0.0), "why": status.stalled}


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
    host = run.hosts.get(host_failover.host_of(run, status))
    return host is not None and host.state != CONNECTED and status.state in state.WITH_PROCESS and not run.is_over


def _clock(wall: float) -> str:
    return datetime.fromtimestamp(wall).strftime("%H:%M:%S")


def _rfc3339(wall: float) -> str:
    return datetime.fromtimestamp(wall, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for unit, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f}{letter}"
    return f"{seconds:.0f}s"
