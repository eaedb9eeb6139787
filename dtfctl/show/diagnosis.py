"""What is wrong with a cluster, in words, from a Snapshot alone. Pure.

`findings` gives the gravest first. The five cases that stop most trainings: a hot parameter server, a slow worker, a
loss that is not a number, a full disk, a crash loop. Besides: an end by failure, hosts out of reach, stalled tasks, a
loss that grows; and, from what dtf's tasks report while a page is open (TaskPace), workers that starve or hold others
up, slow checkpoints, slow answers.
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

TRAINERS = ("worker", "chief", "master")
"""Jobs whose tasks make steps."""

LOCKSTEP = 0.02
LOCKSTEP_RUNS = 2
PACE_S = 25.0
"""Workers go in step (synchronous replicas, or a token for each step) when their rates over PACE_S differ by less than
this part and so many runs. Workers that do not wait for each other may have like rates, but not for long the same."""

OUTSIDE_S = 0.01
"""Less time than this between two runs is the scheduling of a busy machine."""

STARVED_S = 30.0
STARVED_TOGETHER_S = 15.0
"""A worker that makes no step waits for the queue at which an operation has waited as long, within so much."""

GROWN_TIMES = 2.0
GROWN_OVER_BEST = 4.0
"""A loss diverges when it is so many times the first one, and so many times the best."""

SAVE_PART = 0.2
SAVE_S = 0.5
SAVES_MIN = 3
"""Checkpoints take too long when they take this part of the time, and each at least so many seconds. Those at the
beginning and the end of a training say nothing."""

ANSWER_S = 0.04
ANSWER_TIMES = 6.0
"""A task is far or overloaded when its fastest answer takes so long, and so many times the others' median. Where
programs wait for the cores of this machine the first limit rises with their number."""

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
    STRAGGLER = "straggler"
    STARVED = "starved"
    DIVERGING = "diverging"
    SLOW_SAVES = "slow-saves"
    SLOW_ANSWERS = "slow-answers"
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


def _diverging(snapshot: Snapshot) -> Iterator[Finding]:
    progress = snapshot.progress
    trend = None if progress is None else progress.trend
    if progress is None or trend is None or trend.best <= 0 or snapshot.is_over:
        return
    if trend.now >= GROWN_TIMES * trend.first and trend.now >= GROWN_OVER_BEST * trend.best:
        words = (
            f"The loss grows: about {trend.now:.3g} at step {progress.step}, {trend.first:.3g} at the beginning, "
            f"{trend.best:.3g} at best"
        )
        advice = "lower the learning rate, or clip gradients; then go back to an earlier checkpoint"
        yield Finding(Kind.DIVERGING, Grade.WARNING, "", words, advice)


def _starved(snapshot: Snapshot) -> Iterator[Finding]:
    """A worker that makes no step while an operation waits for an element of an empty queue."""
    if snapshot.is_over:
        return
    waits = [
        (waited_s, queue, task.name)
        for task in snapshot.tasks
        if task.pace is not None
        for queue, waited_s in task.pace.waits_s.items()
        if waited_s >= STARVED_S
    ]
    idle = [(task, task.pace.idle_s) for task in _trainers(snapshot) if task.pace and task.pace.idle_s >= STARVED_S]
    for task, idle_s in idle:
        # Nobody saw when it became idle, if it was so at the first look.
        fitting = [wait for wait in waits if wait[0] >= idle_s - STARVED_TOGETHER_S]
        if not fitting:
            continue
        waited_s, queue, owner = min(fitting)
        others = f" (and {len(idle) - 1} more workers)" if len(idle) > 1 else ""
        words = (
            f"{task.name} makes no step{others}: for {waited_s:.0f} s it waits for an element of the queue "
            f"{printable(queue)} on {owner}, and nobody fills it"
        )
        advice = (
            "look at what should enqueue: is tf.train.start_queue_runners called, does its thread fail, is each worker "
            f"of a synchronous training there? dtfctl logs {task.name}"
        )
        yield Finding(Kind.STARVED, Grade.ERROR, task.name, words, advice)
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
        if _is_steady(task) and task.steps_per_s is not None and task.job in TRAINERS
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


def _straggler(snapshot: Snapshot) -> Iterator[Finding]:
    """Workers that go in step: the one that the others wait for computes, or is outside of its session, longest."""
    paces = [(task, task.pace) for task in _trainers(snapshot) if task.pace is not None and _is_steady(task)]
    rates = [pace.runs_per_s for _, pace in paces if pace.runs_per_s]
    if len(paces) < 2 or len(rates) < len(paces):
        return
    if max(rates) - min(rates) > LOCKSTEP * max(rates) + LOCKSTEP_RUNS / PACE_S:
        return
    rate = median(rates)
    outside = sorted(((pace.outside_s or 0.0, task.name) for task, pace in paces), reverse=True)
    most_s, name = outside[0]
    usual_s = median(each for each, _ in outside[1:])
    if most_s >= max(OUTSIDE_S, 0.3 / rate) and most_s >= 3 * usual_s and usual_s <= 0.2 / rate:
        words = (
            f"{name} holds the others up: it spends {_seconds(most_s)} of each step outside of session.run, "
            f"they {_seconds(usual_s)}, and all make {rate:.3g} steps/s"
        )
        advice = "look at its input: tf.data with prefetch, or an input queue"
        yield Finding(Kind.STRAGGLER, Grade.WARNING, name, words, advice)
        return
    if any(task.cores is None for task, _ in paces):
        return
    busiest, *others = sorted((task for task, _ in paces), key=_cores, reverse=True)
    mean = sum(map(_cores, others)) / len(others)
    enough = max(HOT_CORES_LEAST, HOT_CORES / max(1.0, snapshot.strain))
    if _cores(busiest) >= enough and _cores(busiest) >= HOT_TIMES * mean:
        words = (
            f"{busiest.name} holds the others up: it uses {_percent(_cores(busiest))} of a core, they "
            f"{_percent(mean)} on average, and all make {rate:.3g} steps/s"
        )
        advice = f"give it less work for each step, or more cores; dtfctl explain; look at its host {busiest.host}"
        yield Finding(Kind.STRAGGLER, Grade.WARNING, busiest.name, words, advice)


def _slow_saves(snapshot: Snapshot) -> Iterator[Finding]:
    for task in snapshot.tasks:
        pace = task.pace
        if pace is not None and pace.saves >= SAVES_MIN and pace.save_s >= SAVE_S and pace.save_part >= SAVE_PART:
            words = (
                f"Checkpoints take too long: {task.name} saves for {_seconds(pace.save_s)} each time, "
                f"{_percent(pace.save_part)} of its time"
            )
            advice = "save less often (save_checkpoint_secs), to a faster disk, or with tf.train.Saver(increments=9)"
            yield Finding(Kind.SLOW_SAVES, Grade.WARNING, task.name, words, advice)


def _slow_answers(snapshot: Snapshot) -> Iterator[Finding]:
    known = [(task.pace.answer_s, task) for task in snapshot.tasks if task.pace and task.pace.answer_s is not None]
    if len(known) < 3:
        return
    slowest_s, task = max(known, key=lambda pair: pair[0])
    usual_s = median(each for each, _ in known)
    if slowest_s >= ANSWER_S * max(1.0, snapshot.strain) and slowest_s >= ANSWER_TIMES * usual_s:
        words = (
            f"{task.name} answers slowly: {_seconds(slowest_s)} for the smallest question, "
            f"the other tasks {_seconds(usual_s)}"
        )
        advice = f"look at the network to its host {task.host}, and at other programs there: ping, dtfctl top"
        yield Finding(Kind.SLOW_ANSWERS, Grade.WARNING, task.name, words, advice)


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
    _starved,
    _stalled,
    _diverging,
    _hot_ps,
    _slow_answers,
    _slow_worker,
    _straggler,
    _slow_saves,
    _left_behind,
)


def _says(task: TaskView, pattern: re.Pattern[str]) -> bool:
    """Whether the last end of the task's processes, or its trouble now, is of this kind. A task that has trained on
    since then has got over it."""
    if task.is_ready and not task.failures:
        return False
    return any(pattern.search(text[-4000:]) for text in (task.traceback, task.reason, task.earlier, task.waiting_for))


def _trainers(snapshot: Snapshot) -> list[TaskView]:
    return [task for task in snapshot.tasks if task.job in TRAINERS and task.is_ready]


def _is_steady(task: TaskView) -> bool:
    return task.is_ready and task.started_s is not None and task.started_s >= YOUNG_S


def _cores(task: TaskView) -> float:
    return task.cores or 0.0


def _percent(cores: float) -> str:
    return f"{100 * cores:.0f} %"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _size(count: float) -> str:
    return f"{count / (1 << 20):.0f} MiB" if count >= 1 << 20 else f"{count / 1024:.0f} KiB"
