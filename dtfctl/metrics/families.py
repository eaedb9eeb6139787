"""A Snapshot as metrics, in the formats that Prometheus reads. Pure, but that prometheus_client is loaded by it.

Names follow Prometheus' rules: base units, `_total` for what only grows, times instead of ages. Each metric has the
label `cluster`; what belongs to a task has `task`. `NAMES` lists all families, for the tests of dashboards and alerts.
Source: https://prometheus.io/docs/practices/naming
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dtfctl.errors import MetricsMissing
from dtfctl.values import state
from dtfctl.values.hosts import UNREACHABLE
from dtfctl.values.report import Times
from dtfctl.values.restarts import CAUSES
from dtfctl.values.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CLUSTER_STATES = ("starting", "running", "succeeded", "failed", "stopped")
SMALL = 100
"""Clusters of more tasks show only causes of restarts that there were."""

INSTALL = "pip install 'dtf[metrics]'"

FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "dtf_cluster_state": ("gauge", "1 for the state of the cluster, 0 for the others.", ("state",)),
    "dtf_cluster_start_time_seconds": ("gauge", "When the run began, in seconds since 1970.", ()),
    "dtf_host_connected": ("gauge", "Whether a host answers.", ("host",)),
    "dtf_tasks": ("gauge", "How many tasks of a job are in a state.", ("job", "state")),
    "dtf_task_ready": ("gauge", "Whether a task is ready.", ("task",)),
    "dtf_task_stalled": ("gauge", "Whether a task runs and makes no progress.", ("task",)),
    "dtf_task_restarts": ("counter", "Restarts of a task by their cause.", ("task", "cause")),
    "dtf_task_cpu_seconds": ("counter", "CPU time of the living processes of a task.", ("task",)),
    "dtf_task_memory_bytes": ("gauge", "Resident memory of the processes of a task.", ("task",)),
    "dtf_task_threads": ("gauge", "Threads of the processes of a task.", ("task",)),
    "dtf_global_step": ("gauge", "The training's global step; it falls when a checkpoint is restored.", ()),
    "dtf_steps_per_second": ("gauge", "Global steps per second, as the chief records them.", ()),
    "dtf_loss": ("gauge", "The loss, as the chief records it.", ()),
    "dtf_traffic_bytes": (
        "counter",
        "Bytes of messages that a task sent to or received from a peer.",
        ("task", "peer", "way", "direction"),
    ),
    "dtf_traffic_messages": (
        "counter",
        "Messages that a task sent to or received from a peer.",
        ("task", "peer", "way", "direction"),
    ),
    "dtf_rpc_duration_seconds": ("histogram", "Time of a task's calls, from request to answer.", ("task", "method")),
    "dtf_session_run_duration_seconds": ("histogram", "Time of the runs of a task's sessions.", ("task",)),
    "dtf_calls_waiting": ("gauge", "Calls to a peer that have no answer yet.", ("task", "peer")),
    "dtf_queue_elements": ("gauge", "Elements in a queue of a task.", ("task", "queue")),
    "dtf_variable_bytes": ("gauge", "Size of the variables that a task holds.", ("task",)),
    "dtf_staleness_updates": ("summary", "Updates of others between a worker's pull and its push.", ("task",)),
    "dtf_staleness_updates_max": ("gauge", "The largest staleness of an update so far.", ("task",)),
    "dtf_checkpoint_duration_seconds": ("histogram", "Time to save a checkpoint.", ("task",)),
    "dtf_checkpoint_timestamp_seconds": (
        "gauge",
        "When the last checkpoint was saved, in seconds since 1970.",
        ("task",),
    ),
}
"""Name without its suffix -> (type, help, labels besides the cluster's)."""

_Row = tuple[str, tuple[str, ...], Any]


def exposition(snapshot: Snapshot, accept: str = "") -> tuple[bytes, str]:
    """(the text, its content type): OpenMetrics where the HTTP header `accept` has it, else the older text format.

    Raises:
      MetricsMissing: prometheus_client is not installed.
    """
    families = list(_collected(snapshot))
    from prometheus_client.exposition import choose_encoder

    encoder, content_type = choose_encoder(accept)
    return encoder(_Registry(families)), content_type


class _Registry:
    """What the encoders of prometheus_client take."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _collected(snapshot: Snapshot) -> Iterator[Metric]:
    try:
        from prometheus_client import core
    except ImportError:
        raise MetricsMissing(f"metrics need prometheus_client: {INSTALL}") from None
    makers = {
        "gauge": core.GaugeMetricFamily,
        "counter": core.CounterMetricFamily,
        "histogram": core.HistogramMetricFamily,
        "summary": core.SummaryMetricFamily,
    }
    made = {}
    for name, (kind, words, labels) in FAMILIES.items():
        made[name] = makers[kind](name, words, labels=("cluster", *labels))
    for name, labels, value in _rows(snapshot):
        values = (snapshot.name, *labels)
        kind = FAMILIES[name][0]
        if kind == "histogram":
            buckets, total_s = value
            made[name].add_metric(values, buckets, total_s)
        elif kind == "summary":
            count, total = value
            made[name].add_metric(values, count, total)
        else:
            made[name].add_metric(values, value)
    yield from (family for family in made.values() if family.samples)


def _rows(snapshot: Snapshot) -> Iterator[_Row]:
    """(family, labels, value): of a histogram (buckets, sum), of a summary (count, sum)."""
    for each in CLUSTER_STATES:
        yield "dtf_cluster_state", (each,), float(snapshot.state == each)
    yield "dtf_cluster_start_time_seconds", (), snapshot.started_at
    for host in snapshot.hosts:
        yield "dtf_host_connected", (host.name,), float(host.is_connected)
    yield from _tasks(snapshot)
    progress = snapshot.progress
    if progress is not None:
        yield "dtf_global_step", (), progress.step
        if progress.steps_per_s is not None:
            yield "dtf_steps_per_second", (), progress.steps_per_s
        if progress.loss is not None:
            yield "dtf_loss", (), progress.loss
    yield from _reports(snapshot)


def _tasks(snapshot: Snapshot) -> Iterator[_Row]:
    jobs = {task.name.partition(":")[0]: None for task in snapshot.tasks}
    states = Counter(
        (task.name.partition(":")[0], UNREACHABLE if task.is_away else task.state) for task in snapshot.tasks
    )
    for job in jobs:
        for each in (*state.STATES, UNREACHABLE):
            yield "dtf_tasks", (job, each), states[job, each]
    is_small = len(snapshot.tasks) <= SMALL
    for task in snapshot.tasks:
        yield "dtf_task_ready", (task.name,), float(task.is_ready)
        yield "dtf_task_stalled", (task.name,), float(bool(task.stalled))
        for cause in CAUSES:
            count = snapshot.restarts_by_cause.get((task.name, cause), 0)
            if count or is_small:
                yield "dtf_task_restarts", (task.name, cause), count
        if task.usage is not None:
            yield "dtf_task_cpu_seconds", (task.name,), task.usage.cpu_s
            yield "dtf_task_memory_bytes", (task.name,), task.usage.memory_bytes
            yield "dtf_task_threads", (task.name,), task.usage.threads


def _reports(snapshot: Snapshot) -> Iterator[_Row]:
    for task, report in snapshot.reports.items():
        bounds_s = report.bounds_s
        for each in report.traffic:
            if not each.messages:
                continue
            labels = (task, each.peer, each.way, each.direction)
            yield "dtf_traffic_bytes", labels, each.bytes
            yield "dtf_traffic_messages", labels, each.messages
        for method, times in report.calls.items():
            yield "dtf_rpc_duration_seconds", (task, method), _buckets(bounds_s, times)
        if report.runs.count:
            yield "dtf_session_run_duration_seconds", (task,), _buckets(bounds_s, report.runs)
        for peer, count in _by_task(report.values.get("calls_waiting", {})).items():
            yield "dtf_calls_waiting", (task, peer), count
        for queue, count in report.values.get("queue_elements", {}).items():
            yield "dtf_queue_elements", (task, queue), count
        if "variable_bytes" in report.values:
            yield "dtf_variable_bytes", (task,), sum(report.values["variable_bytes"].values())
        if report.stale_updates:
            yield "dtf_staleness_updates", (task,), (report.stale_updates, report.stale_sum)
            yield "dtf_staleness_updates_max", (task,), report.stale_max
        if report.saves.count:
            yield "dtf_checkpoint_duration_seconds", (task,), _buckets(bounds_s, report.saves)
            yield "dtf_checkpoint_timestamp_seconds", (task,), report.saved_at


def _by_task(values: Any) -> dict[str, float]:
    """Several connections of one task as one."""
    found: dict[str, float] = {}
    for where, count in values.items():
        parts = where.partition(" ")[0].split("/")
        keys = dict(part.split(":", 1) for part in parts if ":" in part)
        name = f"{keys['job']}:{keys['task']}" if "job" in keys and "task" in keys else where
        found[name] = found.get(name, 0) + count
    return found


def _buckets(bounds_s: tuple[float, ...], times: Times) -> tuple[list[tuple[str, float]], float]:
    """The classes as a histogram has them: each counts all below its bound."""
    buckets, below = [], 0
    for bound, count in zip((*map(_spelled, bounds_s), "+Inf"), times.counts, strict=False):
        below += count
        buckets.append((bound, float(below)))
    if not buckets or buckets[-1][0] != "+Inf":
        buckets.append(("+Inf", float(times.count)))
    return buckets, times.total_s


def _spelled(bound: float) -> str:
    return repr(float(bound))
