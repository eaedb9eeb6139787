"""What an ended task deserves: a function from policy and history to a decision with its reason. No I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from dtfctl.plan import ALWAYS, NEVER, RestartPolicy
from dtfctl.task import TaskStatus

JITTER = 0.25
"""A delay is stretched by up to this part of itself, so that tasks that died together do not return together."""


@dataclass(frozen=True)
class Decision:
    """`event` is one of state.py's: succeed, retry (after `delay_s`), fail or give-up."""

    event: str
    reason: str
    delay_s: float = 0.0
    failures: tuple[float, ...] = ()


def decide(policy: RestartPolicy, status: TaskStatus, jitter: float) -> Decision:
    """`status` has an exit that nobody asked for; `jitter` lies in [0, 1).

    The first restart of a task that had been ready is immediate: a preempted ps holds up everybody else.
    """
    ended = status.exit
    assert ended is not None
    if ended.ok and policy.policy != ALWAYS:
        return Decision("succeed", str(ended))
    was_healthy = status.ready_at is not None and ended.at - status.ready_at >= policy.healthy_s
    earlier = () if was_healthy else status.failures
    failures = tuple(at for at in earlier if ended.at - at < policy.window_s) + (ended.at,)
    if policy.policy == NEVER:
        return Decision("fail", f"{ended} (restart: never)", failures=failures)
    count = len(failures)
    window = _words(policy.window_s)
    if count > policy.attempts:
        reason = f"{ended}; gave up after {policy.attempts} restarts within {window}"
        return Decision("give-up", reason, failures=failures)
    delay_s = 0.0
    if count > 1 or status.ready_at is None:
        # The exponent is bounded so that no number of attempts overflows a float.
        delay_s = min(policy.backoff_max_s, policy.backoff_s * 2.0 ** min(count - 1, 60)) * (1 + JITTER * jitter)
    return Decision("retry", f"{ended}; restart {count} of {policy.attempts} within {window}", delay_s, failures)


def _words(seconds: float) -> str:
    """600.0 is 10m, 90.0 is 90s."""
    for unit, letter in ((3600, "h"), (60, "m")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:.0f}{letter}"
    return f"{seconds:g}s"
