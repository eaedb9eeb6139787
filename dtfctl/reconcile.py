"""The one decision of the supervisor: desired and observed in, a plan of actions out. No I/O, no clock, no state.

`up`, `down`, a crash, the end of the training and the daemon's own return are the same call with other values.
The plan prints, one action a line, each with its cause; the tests compare that text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dtfctl import state
from dtfctl.plan import ANY, ClusterPlan, Task
from dtfctl.restart import decide
from dtfctl.task import TaskStatus

SUCCEEDED = "succeeded"
FAILED = "failed"
STOPPED = "stopped"

FOLLOWS_WITHIN_S = 30.0
"""A failure may be the consequence of one that came at most so long before it."""

KILL_PATIENCE_S = 5.0
"""How long a process may outlive SIGKILL (uninterruptible in the kernel) before it is given up and named."""


@dataclass(frozen=True)
class Desired:
    """The cluster file, kept up until there is an `outcome` (decided here, or by `down`) and its `why`.

    `grace_period_s` overrides that of the jobs: 0 kills at once.
    """

    plan: ClusterPlan
    outcome: str = ""
    why: str = ""
    grace_period_s: float | None = None


@dataclass(frozen=True)
class Action:
    """`verb` is start, terminate, kill, abandon, one of restart.py's events, stop, or finish (then `task` is empty)."""

    verb: str
    task: str
    cause: str
    delay_s: float = 0.0
    failures: tuple[float, ...] = ()
    outcome: str = ""

    def __str__(self) -> str:
        later = f"in {self.delay_s:.1f}s: " if self.delay_s else ""
        return f"{self.verb:<10}{self.task or self.outcome:<12}{later}{self.cause}"


@dataclass(frozen=True)
class Plan:
    """What to do now, and when to look again though nothing has happened (None: not by the clock).

    A plan that has an `outcome` ends the cluster; the caller keeps it, for what is decided stays decided.
    """

    actions: tuple[Action, ...]
    look_again_at: float | None = None
    outcome: str = ""
    why: str = ""

    def __str__(self) -> str:
        return "\n".join(map(str, self.actions))


def reconcile(desired: Desired, observed: Mapping[str, TaskStatus], now: float, jitter: Callable[[], float]) -> Plan:
    """One round. The caller applies the actions and asks again until the plan is empty."""
    tasks = list(desired.plan.tasks())
    settled = [_settle(task, observed[task.name], jitter) for task in tasks if _is(observed, task, {state.EXITED})]
    if settled:
        return Plan(tuple(settled))
    outcome, cause = _outcome(desired, observed)
    if outcome:
        return _wind_up(desired, tasks, observed, now, outcome, cause)
    return _keep_up(tasks, observed, now)


def root_cause(observed: Mapping[str, TaskStatus]) -> TaskStatus | None:
    """None while every failure is forgiven; else the task whose trouble began first: the others may only follow.

    A forgiven failure counts too when it came shortly before: the worker that could not bear the loss of a ps.
    """
    unforgiven = [status.failures[0] for status in observed.values() if status.state in state.UNFORGIVEN]
    if not unforgiven:
        return None
    since = min(unforgiven) - FOLLOWS_WITHIN_S
    recent = {
        min(at for at in status.failures if at >= since): status
        for status in observed.values()
        if any(at >= since for at in status.failures)
    }
    return recent[min(recent)]


def _settle(task: Task, status: TaskStatus, jitter: Callable[[], float]) -> Action:
    assert status.exit is not None
    if status.stop_why == _TRAINING_DONE:
        return Action("succeed", task.name, f"{status.stop_why}: {status.exit}")
    if status.stop_why:
        return Action("stop", task.name, f"{status.stop_why}: {status.exit}")
    if status.exit.ok and task.job.is_done_once:
        return Action("succeed", task.name, str(status.exit))
    decision = decide(task.settings.restart, status, jitter())
    return Action(decision.event, task.name, decision.reason, decision.delay_s, decision.failures)


_TRAINING_DONE = "the training is done"


def _outcome(desired: Desired, observed: Mapping[str, TaskStatus]) -> tuple[str, str]:
    if desired.outcome:
        return desired.outcome, desired.why
    plan = desired.plan
    deciding = [observed[task.name].state == state.SUCCEEDED for task in plan.deciding_tasks()]
    if all(deciding) or (plan.success_rule == ANY and any(deciding)):
        return SUCCEEDED, _TRAINING_DONE
    # A sidecar that has given up is missed by nobody who trains.
    culprit = root_cause({task.name: observed[task.name] for task in plan.tasks() if not task.job.is_sidecar})
    if culprit is not None:
        return FAILED, f"{culprit.name} failed: {culprit.reason}"
    return "", ""


def _wind_up(
    desired: Desired,
    tasks: list[Task],
    observed: Mapping[str, TaskStatus],
    now: float,
    outcome: str,
    cause: str,
) -> Plan:
    """Everything ends, parameter servers after the others: a worker may save a checkpoint in its grace period."""
    left = [task for task in tasks if observed[task.name].state not in state.ENDED]
    if not left:
        return Plan((Action("finish", "", cause, outcome=outcome),), None, outcome, cause)
    wave = [task for task in left if not task.job.stops_last] or left
    actions = [Action("stop", task.name, cause) for task in left if _is(observed, task, state.WAITING)]
    look_again_at: list[float] = []
    for task in reversed(wave):
        status = observed[task.name]
        if status.state in (state.STARTING, state.RUNNING):
            actions.append(Action("terminate", task.name, cause))
        elif status.state == state.STOPPING:
            action, at = _insist(desired, task, status, now)
            actions += [action] if action else []
            look_again_at += [at] if at is not None else []
    return Plan(tuple(actions), min(look_again_at, default=None), outcome, cause)


def _insist(desired: Desired, task: Task, status: TaskStatus, now: float) -> tuple[Action | None, float | None]:
    """What a task that was asked to end gets next, or when to look at it again."""
    assert status.stop_at is not None
    grace_s = task.settings.grace_period_s if desired.grace_period_s is None else desired.grace_period_s
    if status.kill_at is None:
        if now < status.stop_at + grace_s:
            return None, status.stop_at + grace_s
        return Action("kill", task.name, f"still there {grace_s:g}s after SIGTERM"), None
    if now < status.kill_at + KILL_PATIENCE_S:
        return None, status.kill_at + KILL_PATIENCE_S
    return Action("abandon", task.name, f"pid {status.pid} outlived SIGKILL by {KILL_PATIENCE_S:g}s"), None


def _keep_up(tasks: list[Task], observed: Mapping[str, TaskStatus], now: float) -> Plan:
    actions = []
    look_again_at = []
    for task in tasks:
        status = observed[task.name]
        if status.state == state.PENDING:
            actions.append(Action("start", task.name, "the cluster file wants it"))
        elif status.state == state.BACKOFF:
            assert status.next_start_at is not None
            if now >= status.next_start_at:
                actions.append(Action("start", task.name, status.reason))
            else:
                look_again_at.append(status.next_start_at)
    return Plan(tuple(actions), min(look_again_at, default=None))


def _is(observed: Mapping[str, TaskStatus], task: Task, states: frozenset[str] | set[str]) -> bool:
    return observed[task.name].state in states
