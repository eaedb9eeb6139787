"""The one decision of the supervisor: desired and observed in, a plan of actions out. No I/O, no clock, no state.

`up`, `down`, a crash, a command on some tasks, a changed cluster file, the end of the training and the daemon's own
return are the same call with other values. The plan prints, one action a line, each with its cause; the tests compare
that text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dtfctl.supervise import planned_ends
from dtfctl.supervise.restart import Decision, decide
from dtfctl.values import state
from dtfctl.values.plan import ALL, ANY, CLUSTER, TASK, ClusterPlan, Task
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import TaskStatus, Then
from dtfctl.values.word import Word

SUCCEEDED = "succeeded"
FAILED = "failed"
STOPPED = "stopped"

FOLLOWS_WITHIN_S = 30.0
"""A failure may be the consequence of one that came at most so long before it."""

KILL_PATIENCE_S = 5.0
"""How long a process may outlive SIGKILL (uninterruptible in the kernel) before it is given up and named."""

NOT_WANTED = "removed from the cluster"
_TRAINING_DONE = "the training is done"


@dataclass(frozen=True)
class Desired:
    """The cluster file, kept up until there is an `outcome` (decided here, or by `down`) and its `why`.

    `held` are tasks that the user has stopped and why, `leaving` those of a former cluster file that are still there.
    On hosts that are `away` nothing can be started. `grace_period_s` overrides that of the jobs: 0 kills at once.
    """

    plan: ClusterPlan
    outcome: str = ""
    why: str = ""
    grace_period_s: float | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    leaving: Mapping[str, Task] = field(default_factory=dict)
    away: frozenset[str] = frozenset()

    def task(self, name: str) -> Task:
        return self.leaving.get(name) or self.plan.task(name)

    def why_not(self, name: str) -> str:
        """Why a task must not run while the cluster does; "" for one that may."""
        return NOT_WANTED if name in self.leaving else self.held.get(name, "")


class Verb(Word):
    """Of actions. The first ones make or end a process, the next change what is wanted, and the last say what the end
    of a process means."""

    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"
    ABANDON = "abandon"
    STOP = "stop"
    RENEW = "renew"
    FORGET = "forget"
    FINISH = "finish"
    SUCCEED = "succeed"
    RETRY = "retry"
    FAIL = "fail"
    GIVE_UP = "give-up"


@dataclass(frozen=True)
class Action:
    """What is done now to a task, or to the cluster (FINISH; then `task` is empty). `then` follows a TERMINATE."""

    verb: Verb
    task: str
    cause: str
    delay_s: float = 0.0
    decision: Decision | None = None
    then: Then = Then.STOP
    outcome: str = ""

    def __str__(self) -> str:
        later = f"in {self.delay_s:.1f}s: " if self.delay_s else ""
        return f"{self.verb:<10}{self.task or self.outcome:<12}{later}{self.cause}"


@dataclass(frozen=True)
class Plan:
    """What to do now, and when to look again though nothing has happened (None: not by the clock).

    With `outcome` the cluster is being ended, for `why`.
    """

    actions: tuple[Action, ...]
    look_again_at: float | None = None
    outcome: str = ""
    why: str = ""

    def __str__(self) -> str:
        return "\n".join(map(str, self.actions))


def reconcile(desired: Desired, observed: Statuses, now: float, jitter: Callable[[], float]) -> Plan:
    """What brings `observed` closer to `desired`. First what has ended is settled, for the rest depends on it.

    `observed` has a status for each task of the plan and each that is leaving; `jitter` gives numbers in [0, 1). While
    the cluster is kept up only those tasks are looked at of which something may be wanted.
    """
    settled = [
        _settle(desired.task(name), observed[name], desired.outcome, desired.why_not(name), jitter)
        for name in observed.in_state(state.EXITED)
    ]
    if settled:
        return Plan(tuple(settled))
    outcome, cause = _outcome(desired, observed)
    if outcome:
        return _wind_up(desired, observed, now, outcome, cause)
    held = observed.among(desired.held.keys(), *state.ALIVE)
    leaving = (name for name in desired.leaving if name in observed)
    names = observed.in_order({*observed.restless(), *held, *leaving})
    return _keep_up(desired, [desired.task(name) for name in names], observed, now)


def companions(plan: ClusterPlan, task: Task, observed: Statuses) -> list[str]:
    """The tasks that restart with one that is restarted after its end: those of its restart scope that run."""
    scope = task.settings.restart.scope
    if scope == TASK:
        return []
    tasks = (other for other in plan.tasks() if other.name != task.name and not other.job.is_sidecar)
    names = {other.name for other in tasks if scope == CLUSTER or other.job.name == task.job.name}
    return [name for name in observed.in_state(*state.ALIVE) if name in names and not observed[name].renew]


def troubles(observed: Mapping[str, TaskStatus]) -> list[TaskStatus]:
    """Whose trouble led to a failure that the policy does not forgive, in the order in which it began. Empty while
    every failure is forgiven.

    A forgiven failure counts too when it came shortly before: the worker that could not bear the loss of a ps.
    """
    unforgiven = [status.troubles[0] for status in observed.values() if status.state in state.UNFORGIVEN]
    if not unforgiven:
        return []
    since = min(unforgiven) - FOLLOWS_WITHIN_S
    began = {
        status.name: min(at for at in status.troubles if at >= since)
        for status in observed.values()
        if any(at >= since for at in status.troubles)
    }
    return [observed[name] for name in sorted(began, key=lambda name: began[name])]


@dataclass(frozen=True)
class Verdict:
    """Why a cluster has failed: the `culprit` gave up, `before` it others had trouble of another kind, `after` it
    perhaps because of it."""

    culprit: TaskStatus
    before: tuple[TaskStatus, ...]
    after: tuple[TaskStatus, ...]

    def __str__(self) -> str:
        earlier = "".join(f"; before that {status.name}: {status.exit}" for status in self.before if status.exit)
        return f"{self.culprit.name} failed: {self.culprit.reason}{earlier}"


def verdict(plan: ClusterPlan, observed: Mapping[str, TaskStatus]) -> Verdict | None:
    """None while every failure is forgiven. A sidecar that has given up is missed by nobody who trains."""
    members = {task.name for task in plan.tasks() if not task.job.is_sidecar}
    found = troubles({name: status for name, status in observed.items() if name in members})
    culprit = next((status for status in found if status.state in state.UNFORGIVEN), None)
    if culprit is None:
        return None
    at = found.index(culprit)
    before = tuple(status for status in found[:at] if str(status.exit) != str(culprit.exit))
    alike = [status for status in found[:at] if status not in before]
    return Verdict(culprit, before, (*alike, *found[at + 1 :]))


def _settle(task: Task, status: TaskStatus, outcome: str, not_wanted: str, jitter: Callable[[], float]) -> Action:
    """`not_wanted` says why this task must not run while the cluster does."""
    assert status.exit is not None
    if status.stop_why and status.after_stop == Then.SUCCEED:
        return Action(Verb.SUCCEED, task.name, f"{status.stop_why}: {status.exit}")
    if status.stop_why and (outcome or not_wanted):
        return Action(Verb.STOP, task.name, f"{status.stop_why}: {status.exit}")
    if not_wanted and not status.exit.ok:
        return Action(Verb.STOP, task.name, f"{not_wanted}: {status.exit}")
    if outcome and status.exit.preempted:
        return Action(Verb.STOP, task.name, f"{status.exit}")
    if status.renew and not outcome and not not_wanted:
        return Action(Verb.RENEW, task.name, status.renew)
    if status.stop_why and status.after_stop == Then.STOP:
        return Action(Verb.STOP, task.name, f"{status.stop_why}: {status.exit}")
    if status.exit.ok and task.job.is_done_once and not status.exit.preempted:
        return Action(Verb.SUCCEED, task.name, str(status.exit))
    decision = decide(task.settings.restart, status, jitter(), task.settings.readiness.kind != "none")
    return Action(Verb(decision.event), task.name, decision.reason, decision.delay_s, decision)


def _outcome(desired: Desired, observed: Statuses) -> tuple[str, str]:
    if desired.outcome:
        return desired.outcome, desired.why
    if observed.count(state.SUCCEEDED) and _is_trained(desired, observed):
        return SUCCEEDED, _TRAINING_DONE
    if any(_is_missed(desired.plan, name) for name in observed.in_state(*state.UNFORGIVEN)):
        found = verdict(desired.plan, observed)
        if found is not None:
            return FAILED, str(found)
    return "", ""


def _is_trained(desired: Desired, observed: Statuses) -> bool:
    """Whether the tasks that decide have succeeded. It is asked at each event, so whole jobs are counted first."""
    plan = desired.plan
    jobs = [job for job in plan.jobs if job.name in plan.success]
    done = sum(observed.number(job.name, state.SUCCEEDED) for job in jobs)
    wanted = sum(job.replicas for job in jobs) if plan.success_rule == ALL else 1
    if not done or done + len(desired.held) < wanted:
        return False
    deciding = {task.name for task in plan.deciding_tasks()}
    succeeded = observed.among(deciding, state.SUCCEEDED)
    # The end of a task that the user has removed is not awaited; but at least one task must have ended.
    return bool(succeeded) and (plan.success_rule == ANY or deciding - desired.held.keys() <= succeeded)


def _is_missed(plan: ClusterPlan, name: str) -> bool:
    return plan.has_task(name) and not plan.task(name).job.is_sidecar


def _wind_up(
    desired: Desired,
    observed: Statuses,
    now: float,
    outcome: str,
    cause: str,
) -> Plan:
    """Everything ends, in the order of planned_ends: a chief saves its last checkpoint in its grace period."""
    left = [desired.task(name) for name in observed.in_state(*state.NOT_ENDED)]
    if not left:
        return Plan((Action(Verb.FINISH, "", cause, outcome=outcome),), None, outcome, cause)
    ending = [task for task in left if observed[task.name].state in state.WITH_PROCESS]
    wait_s = planned_ends.CHIEF_WAITS_S
    if desired.grace_period_s is not None:
        wait_s = min(wait_s, desired.grace_period_s)
    may_end, later = planned_ends.due(ending, desired.plan.chief, observed, now, wait_s)
    actions = [Action(Verb.STOP, task.name, cause) for task in left if observed[task.name].state in state.WAITING]
    look_again_at: list[float] = [] if later is None else [later]
    then = Then.SUCCEED if outcome == SUCCEEDED else Then.STOP
    for task in reversed(ending):
        status = observed[task.name]
        if status.state in state.ALIVE and task.name in may_end:
            actions.append(Action(Verb.TERMINATE, task.name, cause, then=then))
        elif status.state == state.STOPPING:
            _insist(desired, task, status, now, actions, look_again_at)
    return Plan(tuple(actions), min(look_again_at, default=None), outcome, cause)


def _insist(
    desired: Desired, task: Task, status: TaskStatus, now: float, actions: list[Action], look_again_at: list[float]
) -> None:
    """What a task that was asked to end gets next, or when to look at it again."""
    assert status.stop_at is not None
    grace_s = task.settings.grace_period_s if desired.grace_period_s is None else desired.grace_period_s
    if status.kill_at is None:
        if now < status.stop_at + grace_s:
            look_again_at.append(status.stop_at + grace_s)
        else:
            cause = f"still there {grace_s:g}s after {task.settings.stop_signal}"
            actions.append(Action(Verb.KILL, task.name, cause))
    elif now < status.kill_at + KILL_PATIENCE_S:
        look_again_at.append(status.kill_at + KILL_PATIENCE_S)
    else:
        cause = f"pid {status.pid} outlived SIGKILL by {KILL_PATIENCE_S:g}s"
        actions.append(Action(Verb.ABANDON, task.name, cause))


def _keep_up(
    desired: Desired,
    tasks: list[Task],
    observed: Mapping[str, TaskStatus],
    now: float,
) -> Plan:
    """Ends come before starts, and in reverse order. `tasks` are those that are not at rest, and those that must not
    run."""
    ends: list[Action] = []
    starts: list[Action] = []
    ending = [task for task in tasks if _is_ending(desired, task, observed[task.name])]
    may_end, later = planned_ends.due(ending, desired.plan.chief, observed, now)
    look_again_at: list[float] = [] if later is None else [later]
    for task in reversed(tasks):
        status = observed[task.name]
        if status.state in state.ALIVE:
            why, then = _why_to_end(status, desired.why_not(task.name))
            if then is not None and (then not in planned_ends.PLANNED or task.name in may_end):
                ends.append(Action(Verb.TERMINATE, task.name, why, then=then))
        elif status.state == state.STOPPING:
            # Where no signal arrives it cannot be said that one was outlived.
            if not _is_away(desired, task, status):
                _insist(desired, task, status, now, ends, look_again_at)
        elif status.state in state.WAITING and desired.why_not(task.name):
            ends.append(Action(Verb.STOP, task.name, desired.why_not(task.name)))
    must_wait = planned_ends.holds_up_starts(ending)
    for task in tasks:
        status = observed[task.name]
        if why_not := desired.why_not(task.name):
            if status.state in state.ENDED and why_not == NOT_WANTED:
                ends.append(Action(Verb.FORGET, task.name, NOT_WANTED))
        elif status.renew and status.state in (state.BACKOFF, *state.ENDED):
            starts.append(Action(Verb.RENEW, task.name, status.renew))
        elif task.host.name in desired.away or (must_wait and not task.job.stops_last):
            continue
        elif status.state == state.PENDING:
            starts.append(Action(Verb.START, task.name, status.renew or "it is in the cluster file"))
        elif status.state == state.BACKOFF and not status.notice:
            assert status.next_start_at is not None
            if now >= status.next_start_at:
                starts.append(Action(Verb.START, task.name, status.reason))
            else:
                look_again_at.append(status.next_start_at)
    return Plan((*ends, *starts), min(look_again_at, default=None))


def _is_ending(desired: Desired, task: Task, status: TaskStatus) -> bool:
    """Whether a process of the task is to end by plan, and can be asked to."""
    if status.state not in state.WITH_PROCESS or _is_away(desired, task, status):
        return False
    if status.state == state.STOPPING:
        return status.after_stop in planned_ends.PLANNED
    return _why_to_end(status, desired.why_not(task.name))[1] in planned_ends.PLANNED


def _is_away(desired: Desired, task: Task, status: TaskStatus) -> bool:
    return (status.host or task.host.name) in desired.away


def _why_to_end(status: TaskStatus, not_wanted: str) -> tuple[str, Then | None]:
    """(why, what then) of a process that must go, or ("", None)."""
    if not_wanted:
        return not_wanted, Then.STOP
    if status.renew:
        return status.renew, Then.RENEW
    if status.notice:
        return status.notice, Then.PREEMPT
    if status.ailing:
        return status.ailing, Then.RETRY
    return "", None
