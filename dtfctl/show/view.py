"""What the user sees of a run, as text and as JSON: renderings of a Snapshot. Pure: values in, strings out."""

from __future__ import annotations

import json
import math
import shlex
from datetime import datetime, timezone
from typing import Any

from dtfctl.show import columns
from dtfctl.show.diagnosis import Kind, findings
from dtfctl.values import state
from dtfctl.values.history import Happening
from dtfctl.values.hosts import UNREACHABLE
from dtfctl.values.snapshot import GpuUse, Snapshot, TaskView
from dtfctl.wording import printable

API_VERSION = "dtfctl/v1"


def document(snapshot: Snapshot) -> dict[str, Any]:
    """What `status -o json` prints; its keys stay as they are."""
    return {
        "apiVersion": API_VERSION,
        "name": snapshot.name,
        "state": snapshot.state,
        "hosts": [
            {"name": host.name, "state": host.state, "since": host.since, "reason": host.why} for host in snapshot.hosts
        ],
        "tasks": [
            {
                "name": task.name,
                "state": UNREACHABLE if task.is_away else task.state,
                "ready": task.is_ready,
                "pid": task.pid,
                "host": task.host,
                "address": task.address,
                "restarts": task.restarts,
                "reason": task.words,
                **({"role": task.role} if task.role else {}),
                **({"stalled": _stalled_document(task)} if task.stalled else {}),
            }
            for task in snapshot.tasks
        ],
    }


def table(snapshot: Snapshot, is_wide: bool = False, is_coloured: bool = False) -> str:
    lines = columns.lines(rows(snapshot, is_wide), is_coloured=is_coloured)
    return "\n".join([headline(snapshot, is_coloured), *stalled(snapshot), *wrong(snapshot), *boards(snapshot), *lines])


def rows(snapshot: Snapshot, is_wide: bool = False) -> list[list[str]]:
    """The table's cells, headings first."""
    is_wide = is_wide or bool(snapshot.hosts)
    headings = ["TASK", "STATE", "READY", "RESTARTS", "PID", "SINCE", "ADDRESS"]
    cells = [headings + (["HOST", "GENERATION"] if is_wide else []) + ["LAST"]]
    for task in snapshot.tasks:
        cells.append(
            [
                task.name,
                UNREACHABLE if task.is_away else _state(task),
                "yes" if task.is_ready else "no",
                str(task.restarts),
                str(task.pid or "-"),
                _since(task),
                task.address or "-",
                *([task.host, str(task.generation)] if is_wide else []),
                printable(task.waiting_for or task.words or "-"),
            ]
        )
    return cells


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """One cluster among several, as `ls -o json` prints it."""
    return {
        "name": snapshot.name,
        "state": snapshot.state,
        "tasks": len(snapshot.tasks),
        "ready": snapshot.ready,
        "restarts": snapshot.restarts,
        "started": _rfc3339(snapshot.started_at),
        "file": snapshot.file,
        "reason": snapshot.why,
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


def usage_rows(snapshot: Snapshot) -> list[list[str]]:
    """Cells for `top`."""
    has_gpus = any(task.gpus is not None for task in snapshot.tasks)
    of_gpus = ["GPU%", "GPU MEMORY"] if has_gpus else []
    cells = [["TASK", "STATE", "CPU%", "MEMORY", *of_gpus, "THREADS", "PROCESSES", "PID", "SINCE", "RESTARTS"]]
    for task in snapshot.tasks:
        usage = task.usage
        measured, counted = ["-", "-"], ["-", "-"]
        if task.cores is not None and usage is not None:
            measured = [f"{100 * task.cores:.0f}", size(usage.memory_bytes)]
            counted = [str(usage.threads), str(usage.processes)]
        if has_gpus:
            measured += _gpu_cells(task.gpus)
        rest = [str(task.pid or "-"), _since(task), str(task.restarts)]
        cells.append([task.name, _state(task), *measured, *counted, *rest])
    return cells


def _gpu_cells(use: GpuUse | None) -> list[str]:
    if use is None:
        return ["-", "-"]
    busy = "-" if use.busy is None else f"{100 * use.busy:.0f}"
    return [busy, f"{size(use.used_bytes)} of {size(use.total_bytes)}"]


def usage_document(snapshot: Snapshot) -> dict[str, Any]:
    """What `top -o json` prints, one such line for each look."""
    progress = snapshot.progress
    return {
        "time": _rfc3339(snapshot.at),
        "name": snapshot.name,
        "state": snapshot.state,
        "progress": None
        if progress is None
        else {
            "step": progress.step,
            "steps_per_s": _finite(progress.steps_per_s),
            "loss": _finite(progress.loss),
        },
        "tasks": [
            {
                "name": task.name,
                "state": task.state,
                "cpu_cores": None if task.cores is None else round(task.cores, 4),
                "memory_bytes": None if task.usage is None else task.usage.memory_bytes,
                "threads": None if task.usage is None else task.usage.threads,
                "processes": None if task.usage is None else task.usage.processes,
                "gpus": None if task.gpus is None else vars(task.gpus),
                "restarts": task.restarts,
            }
            for task in snapshot.tasks
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


def headline(snapshot: Snapshot, is_coloured: bool = False) -> str:
    shown = snapshot.state
    words = f"{snapshot.name}: {columns.coloured(shown, shown) if is_coloured else shown}"
    if snapshot.outcome == "failed" or (snapshot.outcome and not snapshot.is_over):
        words += f" ({'ending: ' if not snapshot.is_over else ''}{printable(snapshot.why)})"
    for away in (host for host in snapshot.hosts if not (host.is_connected or snapshot.is_over)):
        words += f"\n{away.name} is {away.state} since {_clock(away.since)}: {printable(away.why)}"
    for pid, host, command in snapshot.strays:
        words += f"\nleft behind: pid {pid} on {host}: {printable(command)}"
    return words


def stalled(snapshot: Snapshot) -> list[str]:
    """A line for each task that gets nowhere though it runs."""
    return [
        f"{task.name} stalled since {_clock(task.stalled_since)}: {printable(task.stalled)}"
        for task in snapshot.tasks
        if task.stalled
    ]


def wrong(snapshot: Snapshot) -> list[str]:
    """A line for each finding of the diagnosis that the headline and the stalled tasks do not show already."""
    shown = (Kind.FAILED, Kind.HOST_AWAY, Kind.STALLED, Kind.LEFT_BEHIND)
    return [f"wrong: {finding.words}" for finding in findings(snapshot) if finding.kind not in shown]


def boards(snapshot: Snapshot) -> list[str]:
    """Where a TensorBoard beside the training can be seen."""
    ready = [task for task in snapshot.tasks if task.name.partition(":")[0] == "tensorboard" and task.is_ready]
    return [f"TensorBoard: http://{task.address}/" for task in ready if task.address]


def missing(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(task, why it is not ready) of those that are not."""
    lines = []
    for task in snapshot.tasks:
        if task.is_ready or task.state in (state.SUCCEEDED, state.STOPPED):
            continue
        words = printable((task.stalled or task.waiting_for) if task.state == state.STARTING else task.reason)
        since = f" ({_age(task.started_s)})" if task.started_s is not None else ""
        lines.append((task.name, f"{_state(task)}{since}" + (f": {words}" if words else "")))
    return lines


def _stalled_document(task: TaskView) -> dict[str, str]:
    return {"since": _rfc3339(task.stalled_since), "why": task.stalled}


def _state(task: TaskView) -> str:
    if task.state == state.BACKOFF and task.next_start_s is not None:
        return f"backoff {max(0.0, task.next_start_s):.0f}s"
    return task.state


def _since(task: TaskView) -> str:
    return "-" if task.since_s is None else _age(task.since_s)


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
