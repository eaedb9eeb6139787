"""Why a step takes as long as it does, in numbers and words, and what to try. Pure: from a Trace to an Explanation.

Each client's critical paths are added up by kind, task and variable. Rules look at the sums; each gives a Finding with
its share of the step, the largest first. A rule's limits are the constants beside it.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dtfctl.trace.critical_path import COMPUTE, FEED, OVERHEAD, SERVE, TRANSFER, WAIT, Part, critical_path
from dtfctl.trace.model import Client, Step, Trace

PAUSE_SHARE_MIN = 0.3
"""Of the time from one step to the next, outside of session.run."""
HOT_SHARE_MIN = 0.25
"""Of the time of a step in which something is done (Breakdown.share_of_work)."""
HOT_RATIO_MIN = 1.6
"""How many times the mean of all parameter servers the bytes of a hot one are. Bytes do not depend on the machine's
load; times do, and decide only where few bytes move."""
HOT_BYTES_MIN = 1 << 20
HOT_SERVED_S_MIN = 2e-3
"""Where fewer bytes move, a hot parameter server takes at least so long for a step, and HOT_RATIO_MIN of the mean."""
LARGE_SHARE_MIN = 0.3
"""Of the time of a step in which something is done."""
LARGE_PART_MIN = 0.5
"""Of the bytes that a step moves, in one variable."""
SLOW_RATIO_MIN = 1.5
WAIT_SHARE_MIN = 0.25
SERVE_SHARE_MIN = 0.3
COMPUTE_SHARE_MIN = 0.6
SMALL_COMPUTE_SHARE_MAX = 0.35
SMALL_BYTES_MAX = 4 << 20
TRANSFER_SHARE_MIN = 0.35


@dataclass(frozen=True)
class Finding:
    """`what` is the kind in one word, `words` the sentence, `advice` what to try. `share` is the part of the step that
    it concerns, `task` and `variable` what it is about, where it is about one."""

    what: str
    words: str
    advice: str
    share: float
    task: str = ""
    variable: str = ""


@dataclass(frozen=True)
class Breakdown:
    """The mean of a client's traced steps. `seconds` by kind of critical_path; `by_task` of those on other tasks,
    serving and transfers together; `moved` bytes by (variable or tensor) of a step; `step_s` is that of a traced step,
    `untraced_s` of one without a trace, `pause_s` between two. `computed_s` is the median of the task's own
    operations."""

    task: str
    steps: int
    step_s: float
    untraced_s: float | None
    pause_s: float
    seconds: dict[str, float] = field(default_factory=dict)
    by_task: dict[str, float] = field(default_factory=dict)
    ops: dict[str, float] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=dict)
    moved_s: dict[str, float] = field(default_factory=dict)
    moved_by_task: dict[str, dict[str, float]] = field(default_factory=dict)
    computed_s: float = 0.0
    waits: dict[str, float] = field(default_factory=dict)

    def share(self, *kinds: str) -> float:
        return sum(self.seconds.get(kind, 0.0) for kind in kinds) / self.step_s if self.step_s else 0.0

    def share_of_work(self, seconds: float) -> float:
        """A part of the time without requests, answers and pauses, which a busy machine stretches most."""
        work_s = sum(self.seconds.get(kind, 0.0) for kind in (COMPUTE, SERVE, TRANSFER, WAIT))
        return seconds / work_s if work_s else 0.0

    @property
    def period_s(self) -> float:
        """From one step to the next, as without tracing."""
        return (self.step_s if self.untraced_s is None else self.untraced_s) + self.pause_s


@dataclass(frozen=True)
class Explanation:
    cluster: str
    clients: tuple[Breakdown, ...]
    findings: tuple[Finding, ...]
    missing: tuple[str, ...] = ()


def explain(trace: Trace) -> Explanation:
    clients = tuple(_breakdown(client) for client in trace.clients if client.main_steps)
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in _findings(trace, clients):
        key = finding.what, finding.task, finding.variable
        if key not in found or finding.share > found[key].share:
            found[key] = finding
    findings = sorted(found.values(), key=lambda finding: -finding.share)
    return Explanation(trace.cluster, clients, tuple(findings), trace.missing)


def lines(explanation: Explanation) -> list[str]:
    """For people."""
    result = []
    for client in explanation.clients:
        untraced = "" if client.untraced_s is None else f", {_time(client.untraced_s)} untraced"
        steps = f"{client.steps} step{'s' if client.steps > 1 else ''}"
        result.append(f"{client.task}: a step takes {_time(client.step_s)} ({steps} traced{untraced})")
        for kind, words in _KIND_WORDS.items():
            took_s = client.seconds.get(kind, 0.0)
            if took_s > 0.005 * client.step_s:
                result.append(f"  {took_s / client.step_s:>4.0%}  {_time(took_s):>8}  {words}{_details(client, kind)}")
        if client.pause_s > 0.02 * client.period_s:
            result.append(f"        {_time(client.pause_s):>8}  between two steps, outside of the session")
    for task in explanation.missing:
        result.append(f"{task}: gave no trace; it made no step meanwhile, or is not a program of dtf")
    if not explanation.clients:
        return [*result, "nothing was traced"]
    result.append("")
    if not explanation.findings:
        result.append("No single cause stands out.")
    for finding in explanation.findings:
        result += [f"{finding.share:.0%}  {finding.words}", f"      try: {finding.advice}"]
    return result


_KIND_WORDS = {
    COMPUTE: "computing",
    SERVE: "served by other tasks",
    TRANSFER: "tensors on their way",
    WAIT: "waiting for others",
    FEED: "values that the program feeds",
    OVERHEAD: "requests, answers and pauses between operations",
}


def _details(client: Breakdown, kind: str) -> str:
    if kind == COMPUTE:
        return _top(client.ops)
    if kind == SERVE:
        return _top(client.by_task)
    if kind == TRANSFER:
        return _top(client.moved_s)
    return _top(client.waits) if kind == WAIT else ""


def _top(seconds: dict[str, float], most: int = 3) -> str:
    best = sorted(seconds.items(), key=lambda item: -item[1])[:most]
    names = [f"{name} {_time(took_s)}" for name, took_s in best if took_s > 0]
    return f" ({', '.join(names)})" if names else ""


# -- sums


def _breakdown(client: Client) -> Breakdown:
    steps = client.main_steps
    count = len(steps)
    result = Breakdown(
        client.task, count, sum(step.duration_us for step in steps) / count / 1e6, client.untraced_s, client.pause_s
    )
    computed_s = []
    for step in steps:
        own_s = 0.0
        for part in critical_path(step):
            _add(result, step, part, count)
        for node in step.nodes:
            if node.is_receive and node.edge is not None and node.edge.source != node.edge.destination:
                name = _moved_name(step, node.edge.tensor)
                _sum(result.moved, name, node.bytes / count)
                other = node.edge.source if node.edge.source != client.task else node.edge.destination
                _sum(result.moved_by_task.setdefault(other, {}), name, node.bytes / count)
            elif node.task == client.task and not (node.is_send or node.is_receive or node.waits):
                own_s += (node.end_us - node.start_us) / 1e6
        computed_s.append(own_s)
    return Breakdown(**{**result.__dict__, "computed_s": statistics.median(computed_s)})


def _add(result: Breakdown, step: Step, part: Part, count: int) -> None:
    took_s = part.duration_us / count / 1e6
    _sum(result.seconds, part.kind, took_s)
    if part.kind == COMPUTE:
        _sum(result.ops, part.op, took_s)
    elif part.kind == SERVE:
        _sum(result.by_task, part.task, took_s)
    elif part.kind == TRANSFER:
        _sum(result.by_task, part.to if part.task == step.client else part.task, took_s)
        _sum(result.moved_s, part.variable or _moved_name(step, part.name), took_s)
    elif part.kind == WAIT:
        _sum(result.waits, f"{part.name} on {part.task}", took_s)


def _moved_name(step: Step, tensor: str) -> str:
    return step.variables.get(tensor) or re.sub(r"^edge_\d+_", "", tensor)


def _sum(table: dict[str, float], key: str, value: float) -> None:
    table[key] = table.get(key, 0.0) + value


# -- rules


def _findings(trace: Trace, clients: Sequence[Breakdown]) -> Iterator[Finding]:
    yield from _slow_clients(clients)
    for client in clients:
        named = set()
        for finding in (*_hot_helper(trace, client), *_large_variable(client)):
            named.add(finding.what)
            yield finding
        yield from _pause(client)
        yield from _waiting(client)
        if not named:
            yield from _serving(trace, client)
            yield from _transfers(client)
            yield from _small_steps(client)
        yield from _computing(client)


def _slow_clients(clients: Sequence[Breakdown]) -> Iterator[Finding]:
    """A worker whose own work takes longer than that of the others: arithmetic, and what it does between steps."""
    if len(clients) < 2:
        return
    own_s = {client.task: client.computed_s + client.pause_s for client in clients}
    for client in clients:
        others_s = statistics.median(took for task, took in own_s.items() if task != client.task)
        mine_s = own_s[client.task]
        if mine_s > SLOW_RATIO_MIN * others_s and mine_s - others_s > 0.1 * client.period_s:
            what = "computes" if client.computed_s >= client.pause_s else "spends outside of the session"
            yield Finding(
                "slow worker",
                f"{client.task} is slow: it {what} {_time(max(client.computed_s, client.pause_s))} for each step, "
                f"all of its own work takes {_time(mine_s)}, and that of the others {_time(others_s)}",
                "look at its host (dtfctl top): other programs, fewer cores, `cpus` and `threads` of the cluster file; "
                "with SyncReplicasOptimizer fewer replicas_to_aggregate than workers",
                min(1.0, (mine_s - others_s) / client.period_s),
                client.task,
            )


def _hot_helper(trace: Trace, client: Breakdown) -> Iterator[Finding]:
    """One parameter server has much more to do than the others, and a step takes the time for it."""
    helpers = [task for task in trace.helpers if task != client.task]
    bytes_of = {task: sum(client.moved_by_task.get(task, {}).values()) for task in helpers}
    if len(helpers) < 2 or not any(bytes_of.values()):
        return
    busy = max(helpers, key=lambda task: bytes_of[task])
    if bytes_of[busy] <= HOT_RATIO_MIN * statistics.mean(bytes_of.values()):
        return
    times_s = {task: client.by_task.get(task, 0.0) for task in helpers}
    took_s, mean_s = times_s[busy], statistics.mean(times_s.values())
    if bytes_of[busy] >= HOT_BYTES_MIN:
        is_hot = client.share_of_work(sum(times_s.values())) >= HOT_SHARE_MIN
    else:
        is_hot = took_s >= max(HOT_SHARE_MIN * client.step_s, HOT_RATIO_MIN * mean_s, HOT_SERVED_S_MIN)
    if not is_hot:
        return
    moved = client.moved_by_task.get(busy, {})
    largest = max(moved, key=lambda name: moved[name], default="")
    is_one = bool(largest) and moved[largest] >= LARGE_PART_MIN * bytes_of[busy]
    others = ", ".join(
        f"{task} {_size(bytes_of[task])} and {times_s[task] / client.step_s:.0%}" for task in helpers if task != busy
    )
    advice = (
        f"partition {largest} over the parameter servers (tf.fixed_size_partitioner), or move other variables away"
        if is_one
        else "move variables to the others: tf.train.replica_device_setter with "
        "ps_strategy=tf.contrib.training.GreedyLoadBalancingStrategy"
    )
    yield Finding(
        "hot ps",
        f"{busy} is the hot parameter server: {_size(bytes_of[busy])} go to and from it in a step of {client.task}, "
        f"and {took_s / client.step_s:.0%} of the step is its ({others})"
        + (f"; most is {largest}, {_size(moved[largest])}" if is_one else ""),
        advice,
        took_s / client.step_s,
        busy,
        largest if is_one else "",
    )


def _large_variable(client: Breakdown) -> Iterator[Finding]:
    total = sum(client.moved.values())
    largest = max(client.moved, key=lambda name: client.moved[name], default="")
    share = client.share(TRANSFER, SERVE)
    part = client.share_of_work(client.seconds.get(TRANSFER, 0.0) + client.seconds.get(SERVE, 0.0))
    if not largest or total < SMALL_BYTES_MAX or part < LARGE_SHARE_MIN:
        return
    if client.moved[largest] >= LARGE_PART_MIN * total:
        yield Finding(
            "large variable",
            f"{largest} moves {_size(client.moved[largest])} in each step of {client.task}, of {_size(total)} in all",
            f"partition {largest} over more parameter servers (tf.fixed_size_partitioner); where a step uses few rows, "
            "tf.nn.embedding_lookup moves only these; a larger batch moves it less often",
            share,
            client.task,
            largest,
        )


def _pause(client: Breakdown) -> Iterator[Finding]:
    share = client.pause_s / client.period_s if client.period_s else 0.0
    if share >= PAUSE_SHARE_MIN:
        yield Finding(
            "input",
            f"{client.task} spends {_time(client.pause_s)} between two steps outside of session.run, "
            f"{share:.0%} of its time",
            "make the next batch while a step runs: tf.data with prefetch, or an input queue",
            share,
            client.task,
        )


def _waiting(client: Breakdown) -> Iterator[Finding]:
    share = client.share(WAIT)
    if share >= WAIT_SHARE_MIN:
        longest = max(client.waits, key=lambda name: client.waits[name])
        what = re.sub(r"^(.*/)?", "", longest)
        advice = "look for the slowest worker: the others wait for its gradients"
        if not re.search("sync|token|grad|barrier|collective|reduce", longest, re.IGNORECASE):
            advice = "fill the queue faster: more threads of its queue runners, a larger capacity"
        yield Finding(
            "waiting", f"{client.task} waits {_time(client.seconds[WAIT])} in each step, most of it in {what}", advice,
            share, client.task,
        )  # fmt: skip


def _serving(trace: Trace, client: Breakdown) -> Iterator[Finding]:
    share = client.share(SERVE)
    if share >= SERVE_SHARE_MIN:
        count = len(trace.helpers)
        yield Finding(
            "serving",
            f"the other tasks take {_time(client.seconds[SERVE])} to serve a step of {client.task}"
            f"{_top(client.by_task)}",
            f"more parameter servers (there {'is' if count == 1 else 'are'} {count}), or more `threads` for them",
            share,
            client.task,
        )


def _transfers(client: Breakdown) -> Iterator[Finding]:
    share = client.share(TRANSFER)
    total = sum(client.moved.values())
    if share >= TRANSFER_SHARE_MIN and total >= SMALL_BYTES_MAX:
        yield Finding(
            "transfer",
            f"{_size(total)} move in each step of {client.task}, and take {_time(client.seconds[TRANSFER])}",
            "more parameter servers on other hosts, or a larger batch, which moves the variables less often",
            share,
            client.task,
        )


def _small_steps(client: Breakdown) -> Iterator[Finding]:
    """Little arithmetic, little to move: what is left is the fixed price of a step."""
    computed = client.computed_s / client.step_s if client.step_s else 0.0
    if computed <= SMALL_COMPUTE_SHARE_MAX and sum(client.moved.values()) < SMALL_BYTES_MAX:
        share = client.share(OVERHEAD, TRANSFER, FEED)
        if share >= 0.4:
            yield Finding(
                "small batch",
                f"a step of {client.task} computes only {_time(client.computed_s)} of {_time(client.step_s)}; "
                "most of the rest is the fixed price of its messages",
                "a larger batch, so that each step does more for the same price",
                share,
                client.task,
            )


def _computing(client: Breakdown) -> Iterator[Finding]:
    share = client.share(COMPUTE)
    if share >= COMPUTE_SHARE_MIN:
        more = "more workers, or more `threads` and `cpus` for each"
        if any(op.startswith(("Conv2D", "MaxPool")) for op in Counter(client.ops)):
            more += "; pip install 'dtf[fast-kernels]' for convolutions"
        yield Finding(
            "compute",
            f"the arithmetic of {client.task} takes {_time(client.seconds[COMPUTE])} of a step{_top(client.ops)}",
            more,
            share,
            client.task,
        )


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError
