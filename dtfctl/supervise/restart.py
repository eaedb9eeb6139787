"""What an ended task deserves: a function from policy and history to a decision with its reason. No I/O, no clock."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import dataclass, replace

from dtfctl.values import state
from dtfctl.values.plan import ALWAYS, EXIT_CODE, NEVER, RestartPolicy
from dtfctl.values.task import Exit, Life, TaskStatus

OUTSIDERS = frozenset({signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP})
"""Signals that do not come from a program's own mistakes: a user or the machine's owner ended the task."""

SHORT_LIFE_S = 10.0
ALIKE_WITHIN_S = 0.5
ALIKE_PART = 0.25
"""Two lives are alike when both were short, and differ by no more than this time or this part of the longer one."""

NO_PROGRAM = {126: "the program cannot be executed", 127: "the program is not found"}
"""What these exit statuses say, the shell's words for a program that it could not start."""

UNSTARTABLE = tuple(
    os.strerror(number) for number in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR)
)
"""Why a program that could not be started will not start the next time either."""

LASTING = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "TabError"})
"""Exceptions that say that the program's text is wrong or incomplete: it will be the same the next time."""

PASSING = frozenset(
    """
    AbortedError BlockingIOError BrokenPipeError CancelledError ConnectionAbortedError ConnectionError
    ConnectionRefusedError ConnectionResetError DeadlineExceededError FailedPreconditionError InternalError
    InterruptedError MemoryError OSError ResourceExhaustedError TimeoutError UnavailableError UnknownError
    _InactiveRpcError gaierror timeout
    """.split()
)
"""Exceptions that speak of others, or of a moment: waiting may help."""


@dataclass(frozen=True)
class Decision:
    """`event` is one of values/state.py's: succeed, retry (after `delay_s`), fail or give-up.

    `failures`, `preemptions` and `alike` are what the task's status holds from now on.
    """

    event: str
    reason: str
    delay_s: float = 0.0
    failures: tuple[float, ...] = ()
    preemptions: tuple[float, ...] = ()
    alike: int = 0


def decide(policy: RestartPolicy, status: TaskStatus, jitter: float, is_asked: bool = True) -> Decision:
    """`status` has an exit that nobody here asked for; `jitter` lies in [0, 1). `is_asked`: the task was ready once it
    had answered a probe, not as soon as it was started.

    A delay is stretched by up to the part `policy.jitter` of itself, so that tasks that died together do not return
    together. The first restart of a task that had been ready is immediate: a preempted ps holds up everybody else.
    A preemption is nobody's failure: it only delays the next start when it comes again and again. A failure that
    another start cannot heal ends the attempts, whatever is left of them.
    """
    ended = status.exit
    assert ended is not None
    why_preempted = preempted(status)
    if ended.ok and not why_preempted and policy.policy != ALWAYS:
        return Decision(state.SUCCEED, str(ended))
    was_healthy = status.ready_at is not None and ended.at - status.ready_at >= policy.healthy_s

    def recent(times: tuple[float, ...]) -> tuple[float, ...]:
        return () if was_healthy else tuple(at for at in times if ended.at - at < policy.window_s)

    failures, preemptions = recent(status.failures), recent(status.preemptions)
    if why_preempted:
        preemptions += (ended.at,)
    else:
        failures += (ended.at,)
    alike = _alike(status) if not (why_preempted or was_healthy) else 0
    history = Decision("", "", failures=failures, preemptions=preemptions, alike=alike)
    if policy.policy == NEVER:
        return replace(history, event=state.FAIL, reason=f"{ended} (restart: never)")
    if policy.policy == EXIT_CODE and not _is_among(policy.codes, ended):
        return replace(history, event=state.FAIL, reason=f"{ended} (not among the exit codes that are retried)")
    if why_preempted:
        count, words = len(preemptions), f"{why_preempted}; restart not counted"
    else:
        why_lasting = "" if policy.policy == EXIT_CODE or not policy.alike else _lasting(status, is_asked)
        if why_lasting:
            return replace(history, event=state.GIVE_UP, reason=f"{ended}; gave up: {why_lasting}")
        count, window = len(failures), _words(policy.window_s)
        if count > policy.attempts:
            reason = f"{ended}; gave up after {policy.attempts} restarts within {window}"
            return replace(history, event=state.GIVE_UP, reason=reason)
        if policy.alike and alike >= policy.alike:
            lived = f"{ended.at - (status.started_at or ended.at):.1f}s"
            reason = f"{ended}; gave up: failed {alike} times in a row after about {lived}"
            return replace(history, event=state.GIVE_UP, reason=reason)
        words = f"{ended}; restart {count} of {policy.attempts} within {window}"
    delay_s = 0.0
    if count > 1 or status.ready_at is None:
        # The exponent is bounded so that no number of attempts overflows a float.
        delay_s = min(policy.backoff_max_s, policy.backoff_s * 2.0 ** min(count - 1, 60)) * (1 + policy.jitter * jitter)
    return replace(history, event=state.RETRY, reason=words, delay_s=delay_s)


def remembering(status: TaskStatus, decision: Decision) -> TaskStatus:
    """The status with what the decision says is to be held against the task from now on."""
    former = status.former
    if status.exit is not None and (decision.alike or status.exit.traceback):
        lived_s = status.exit.at - (status.started_at or status.exit.at)
        former = Life(str(status.exit), lived_s, status.exit.traceback)
    return replace(
        status, failures=decision.failures, preemptions=decision.preemptions, alike=decision.alike, former=former
    )


def preempted(status: TaskStatus) -> str:
    """Why the end was caused from outside, "" when the task caused it.

    A signal from outside counts so once the task had been ready: one that dies before may be killed for what it
    does at its start. What the kernel killed for want of memory has taken too much of it.
    """
    ended = status.exit
    assert ended is not None
    if ended.preempted:
        return ended.preempted
    if status.ready_at is None or ended.is_out_of_memory:
        return ""
    number = ended.signal if ended.signal is not None else (ended.code or 0) - 128
    return f"{ended} from outside" if number in OUTSIDERS else ""


def _lasting(status: TaskStatus, is_asked: bool) -> str:
    """Why another start would end the same way, "" when it may not."""
    ended = status.exit
    assert ended is not None
    if ended.error:
        is_lasting = ended.error.startswith("could not be started: ") and ended.error.endswith(UNSTARTABLE)
        return "a restart cannot fix that" if is_lasting else ""
    lived_s = 0.0 if status.started_at is None else ended.at - status.started_at
    has_answered = status.ready_at is not None if is_asked else lived_s > SHORT_LIFE_S
    if has_answered or ended.is_out_of_memory:
        return ""
    if ended.code in NO_PROGRAM:
        return NO_PROGRAM[ended.code]
    if not ended.traceback:
        return ""
    words = ended.traceback.rpartition("\n")[2]
    name = words.partition(":")[0].rpartition(".")[2]
    if name in LASTING or _is_of_interpreter(words):
        return f"{words} (a restart cannot fix that)"
    is_same = status.former is not None and status.former.traceback == ended.traceback
    return f"{words} (the same traceback twice, before it was ready)" if is_same and name not in PASSING else ""


def _is_of_interpreter(words: str) -> bool:
    """Whether Python itself says so, of a program that it does not find: `python3: can't open file ...`."""
    return os.path.basename(words.partition(": ")[0]).startswith("python")


def _alike(status: TaskStatus) -> int:
    """How many lives in a row, this one included, were short and ended like this one."""
    ended, former = status.exit, status.former
    assert ended is not None
    # Of what never began, the same words are the same end.
    lived = 0.0 if status.started_at is None else ended.at - status.started_at
    if lived > SHORT_LIFE_S:
        return 0
    if former is None or former.words != str(ended):
        return 1
    is_alike = abs(former.lived_s - lived) <= max(ALIKE_WITHIN_S, ALIKE_PART * max(former.lived_s, lived))
    return status.alike + 1 if is_alike else 1


def _is_among(codes: tuple[tuple[int, int], ...], ended: Exit) -> bool:
    """A task that was lost from sight, or could not be started, has no code and is tried again."""
    code = ended.code if ended.signal is None else 128 + ended.signal
    return bool(ended.preempted) or code is None or any(first <= code <= last for first, last in codes)


def _words(seconds: float) -> str:
    """600.0 is 10m, 90.0 is 90s."""
    for unit, letter in ((3600, "h"), (60, "m")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:.0f}{letter}"
    return f"{seconds:g}s"
