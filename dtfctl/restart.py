"""What an ended task deserves: a function from policy and history to a decision with its reason. No I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from dtfctl.plan import ALWAYS, EXIT_CODE, NEVER, RestartPolicy
from dtfctl.task import Exit, TaskStatus


@dataclass(frozen=True)
class Decision:
    """`event` is one of state.py's: succeed, retry (after `delay_s`), fail or give-up."""

    event: str
    reason: str
    delay_s: float = 0.0
    failures: tuple[float, ...] = ()


def decide(policy: RestartPolicy, status: TaskStatus, jitter: float) -> Decision:
    """`status` has an exit that nobody asked for; `jitter` lies in [0, 1).

    A delay is stretched by up to the part `policy.jitter` of itself, so that tasks that died together do not return
    together. The first restart of a task that had been ready is immediate: a preempted ps holds up everybody else.
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
    if policy.policy == EXIT_CODE and not _is_among(policy.codes, ended):
        return Decision("fail", f"{ended} (not among the exit codes that are tried again)", failures=failures)
    count = len(failures)
    window = _words(policy.window_s)
    if count > policy.attempts:
        reason = f"{ended}; gave up after {policy.attempts} restarts within {window}"
        return Decision("give-up", reason, failures=failures)
    delay_s = 0.0
    if count > 1 or status.ready_at is None:
        # The exponent is bounded so that no number of attempts overflows a float.
        delay_s = min(policy.backoff_max_s, policy.backoff_s * 2.0 ** min(count - 1, 60)) * (1 + policy.jitter * jitter)
    return Decision("retry", f"{ended}; restart {count} of {policy.attempts} within {window}", delay_s, failures)


def _is_among(codes: tuple[tuple[int, int], ...], ended: Exit) -> bool:
    """A task that was lost from sight, or could not be started, has no code and is tried again."""
    code = ended.code if ended.signal is None else 128 + ended.signal
    return code is None or any(first <= code <= last for first, last in codes)


def _words(seconds: float) -> str:
    """600.0 is 10m, 90.0 is 90s."""
    for unit, letter in ((3600, "h"), (60, "m")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:.0f}{letter}"
    return f"{seconds:g}s"
