"""What is wrong with a cluster, in words, from a Snapshot alone. Pure.

`findings` gives the gravest first. The five cases that stop most trainings: a hot parameter server, a slow worker, a
loss that is not a number, a full disk, a crash loop. Besides: an end by failure, hosts out of reach, stalled tasks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from dtfctl.values import state
from dtfctl.values.snapshot import Snapshot, TaskView
from dtfctl.values.word import Word
from dtfctl.wording import printable

HOT_CORES = 0.6
"""A parameter server that uses less than this part of a core is not what others wait for."""

HOT_CORES_LEAST = 0.15
"""On a busy machine no task gets a core for itself, and the limit falls with its part, down to this."""

HOT_TIMES = 2.5
"""So many times as busy as the other parameter servers on average."""

SLOW_PART = 0.5
"""A worker that makes less than this part of the other workers' median of steps."""

RATE_MIN = 0.05
"""Steps per second of the other workers below which rates are too coarse to be compared."""

YOUNG_S = 45.0
"""Rates of a process that is younger are those of its start, and not compared."""

CRASHES = 3
FULL_BYTES = 64 << 20
FULL_PART = 0.005
"""A disk with less room than both of these is full for a training."""

_NAN = re.compile(r"NanLossDuringTraining|NaN loss|loss = nan|Nan in summary|tensor had (NaN|Inf)", re.IGNORECASE)
_FULL = re.compile(r"No space left on device|Disk quota exceeded|database or disk is full|ENOSPC", re.IGNORECASE)

_GPU_MEMORY = re.compile(
    r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|OOM when allocating tensor.*(GPU|cuda)", re.IGNORECASE
)
_GPU_BROKEN = re.compile(
    r"uncorrectable ECC|ECC error|fallen off the bus|NVRM: Xid|CUDA_ERROR_(LAUNCH_FAILED|ECC_UNCORRECTABLE)"
    r"|CUDA error: (unspecified launch failure|an illegal memory access|device-side assert)",
    re.IGNORECASE,
)
_NO_GPU = re.compile(
    r"no CUDA-capable device is detected|CUDA driver version is insufficient|driver on your system is too old"
    r"|Driver/library version mismatch",
    re.IGNORECASE,
)


class Kind(Word):
    """Of a finding; the name is stable, for programs."""

    FAILED = "failed"
    NAN_LOSS = "nan-loss"
    FULL_DISK = "full-disk"
    GPU = "gpu"
    CRASH_LOOP = "crash-loop"
    HOST_AWAY = "host-away"
    STALLED = "stalled"
    HOT_PS = "hot-ps"
    SLOW_WORKER = "slow-worker"
    LEFT_BEHIND = "left-behind"


class Grade(Word):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """`task` is "" where the cluster is meant; `words` say what is wrong, `advice` what to do."""

    kind: Kind
    grade: Grade
    task: str
    words: str
    advice: str

    def __str__(self) -> str:
        return f"{self.words} ({self.advice})" if self.advice else self.words


def findings(snapshot: Snapshot) -> list[Finding]:
    """The gravest first; none where all is well as far as the snapshot tells."""
    found = [finding for rule in _RULES for finding in rule(snapshot)]
    return sorted(found, key=lambda finding: finding.grade != Grade.ERROR)


def headline(snapshot: Snapshot, found: list[Finding]) -> str:
    """One line: the first finding, or that nothing is wrong."""
    if found:
        return found[0].words
    if snapshot.is_over:
        return f"The run has ended: {snapshot.outcome}"
    if snapshot.outcome:
        return f"The cluster is ending: {printable(snapshot.why)}"
    waiting = [task for task in snapshot.tasks if not task.is_ready and task.state not in state.ENDED]
    if waiting:
        names = ", ".join(task.name for task in waiting[:3]) + (" ..." if len(waiting) > 3 else "")
        return f"Waiting for {names}: {snapshot.ready} of {len(snapshot.tasks)} tasks are ready"
    return f"Nothing is wrong: {snapshot.ready} of {len(snapshot.tasks)} tasks are ready"


def _nan_loss(snapshot: Snapshot) -> Iterator[Finding]:
    progress = snapshot.progress
    advice = "lower the learning rate, clip gradients, or look for bad input; go back to an earlier checkpoint"
    if progress is not None and progress.loss is not None and not math.isfinite(progress.loss):
        shown = "NaN" if math.isnan(progress.loss) else "infinite"
        words = f"The loss is {shown} since step {progress.step} or earlier"
        yield Finding(Kind.NAN_LOSS, Grade.ERROR, "", words, advice)
        return
    for task in snapshot.tasks:
        if _says(task, _NAN):
            words = f"The loss became NaN: {task.name} ended because of it"
            yield Finding(Kind.NAN_LOSS, Grade.ERROR, task.name, words, advice)
            return


def _full_disk(snapshot: Snapshot) -> Iterator[Finding]:
    for disk in snapshot.disks:
        if disk.free_bytes < FULL_BYTES and disk.free_bytes < FULL_PART * disk.total_bytes:
            words = f"The disk of {printable(disk.path)} ({disk.use}) is full: {_size(disk.free_bytes)} are left"
            yield Finding(Kind.FULL_DISK, Grade.ERROR, "", words, f"make room there: df -h {printable(disk.path)}")
            return
    for task in snapshot.tasks:
        if _says(task, _FULL):
            words = f"A disk is full: {task.name} on {task.host} could not write"
            yield Finding(Kind.FULL_DISK, Grade.ERROR, task.name, words, f"make room on {task.host}: df -h")
            return


def _gpu(snapshot: Snapshot) -> Iterator[Finding]:
    for task in snapshot.tasks:
        for pattern, words, advice in _OF_GPUS:
            if _says(task, pattern):
                told = words.format(task=task.name, host=task.host)
                yield Finding(Kind.GPU, Grade.ERROR, task.name, told, advice.format(host=task.host))
                break


_OF_GPUS = (
    (
        _GPU_MEMORY,
        "The memory of a GPU of {host} is full: {task} ended because of it",
        "smaller batches, or a GPU for each task: gpus: 1",
    ),
    (
        _GPU_BROKEN,
        "A GPU of {host} failed under {task}",
        "look for Xid and ECC errors on {host}: dmesg | grep Xid; nvidia-smi -q -d ECC. Reset the GPU, or leave it out "
        "with gpus: [...]",
    ),
    (
        _NO_GPU,
        "{task} finds no usable GPU on {host}",
        "nvidia-smi on {host} shows GPUs and driver; a driver that is too old needs an update",
    ),
)


def _crash_loop(snapshot: Snapshot) -> Iterator[Finding]:
    for task in snapshot.tasks:
        is_over = task.state in (state.GAVE_UP, state.FAILED)
        is_looping = task.failures >= CRASHES and task.state not in (state.SUCCEEDED, state.STOPPED)
        if not (is_over and task.failures >= 2) and not is_looping:
            continue
        cause = task.traceback.rpartition("\n")[2] or task.reason or task.earlier
        then = "and was given up" if is_over else "and is started again each time"
        words = f"{task.name} crashes in a loop: it failed {task.failures} times {then}: {printable(cause)}"
        advice = f"read its log: dtfctl logs {task.name} --previous; mend the program, then dtfctl restart {task.name}"
        yield Finding(Kind.CRASH_LOOP, Grade.ERROR, task.name, words, advice)


def _failed(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.outcome == "failed":
        yield Finding(Kind.FAILED, Grade.ERROR, "", f"The training failed: {printable(snapshot.why)}", "read the logs")


def _hosts(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.is_over:
        return
    for host in snapshot.hosts:
        if not host.is_connected:
            words = f"The host {host.name} is {host.state}: {printable(host.why)}"
            yield Finding(Kind.HOST_AWAY, Grade.ERROR, "", words, f"look whether it answers: ssh {host.name}")


def _stalled(snapshot: Snapshot) -> Iterator[Finding]:
    stalled = [task for task in snapshot.tasks if task.stalled and not snapshot.is_over]
    if stalled:
        first = stalled[0]
        others = f" (and {len(stalled) - 1} more tasks)" if len(stalled) > 1 else ""
        words = f"{first.name} is stalled{others}: {printable(first.stalled)}"
        yield Finding(Kind.STALLED, Grade.ERROR, first.name, words, f"dtfctl logs {first.name}")


def _hot_ps(snapshot: Snapshot) -> Iterator[Finding]:
    servers = [task for task in snapshot.tasks if task.job == "ps" and _is_steady(task) and task.cores is not None]
    if len(servers) < 2:
        return
    hottest = max(servers, key=_cores)
    others = sum(map(_cores, servers)) - _cores(hottest)
    mean = others / (len(servers) - 1)
    enough = max(HOT_CORES_LEAST, HOT_CORES / max(1.0, snapshot.strain))
    if _cores(hottest) >= enough and _cores(hottest) >= HOT_TIMES * mean:
        words = (
            f"{hottest.name} is hot: it uses {_percent(_cores(hottest))} of a core, "
            f"the other parameter servers {_percent(mean)} on average"
        )
        advice = "spread the variables: a partitioner for the large ones, or a placement strategy by size"
        yield Finding(Kind.HOT_PS, Grade.WARNING, hottest.name, words, advice)


def _slow_worker(snapshot: Snapshot) -> Iterator[Finding]:
    rates = {
        task.name: (task, task.steps_per_s)
        for task in snapshot.tasks
        if _is_steady(task) and task.steps_per_s is not None and task.job in ("worker", "chief", "master")
    }
    if len(rates) < 2:
        return
    slowest, rate = min(rates.values(), key=lambda pair: pair[1])
    usual = median(other for task, other in rates.values() if task is not slowest)
    if usual >= RATE_MIN and rate < SLOW_PART * usual and not slowest.stalled:
        words = f"{slowest.name} is slow: it makes {rate:.3g} steps/s, the other workers {usual:.3g}"
        cores = "" if slowest.cores is None else f"; it uses {_percent(slowest.cores)} of a core"
        advice = f"look at its host {slowest.host} (other load, throttling), and at its input{cores}"
        yield Finding(Kind.SLOW_WORKER, Grade.WARNING, slowest.name, words, advice)


def _left_behind(snapshot: Snapshot) -> Iterator[Finding]:
    for pid, host, command in snapshot.strays:
        words = f"A process was left behind: pid {pid} on {host}: {printable(command)}"
        yield Finding(Kind.LEFT_BEHIND, Grade.WARNING, "", words, "dtfctl down ends it")


_RULES: tuple[Callable[[Snapshot], Iterator[Finding]], ...] = (
    _nan_loss,
    _full_disk,
    _gpu,
    _crash_loop,
    _failed,
    _hosts,
    _stalled,
    _hot_ps,
    _slow_worker,
    _left_behind,
)


def _says(task: TaskView, pattern: re.Pattern[str]) -> bool:
    """Whether the last end of the task's processes, or its trouble now, is of this kind. A task that has trained on
    since then has got over it."""
    if task.is_ready and not task.failures:
        return False
    return any(pattern.search(text[-4000:]) for text in (task.traceback, task.reason, task.earlier, task.waiting_for))


def _is_steady(task: TaskView) -> bool:
    return task.is_ready and task.started_s is not None and task.started_s >= YOUNG_S


def _cores(task: TaskView) -> float:
    return task.cores or 0.0


def _percent(cores: float) -> str:
    return f"{100 * cores:.0f} %"


def _size(count: float) -> str:
    return f"{count / (1 << 20):.0f} MiB" if count >= 1 << 20 else f"{count / 1024:.0f} KiB"
