"""The life of a task: its states, what may happen to it, and the one table of what follows. Imports nothing.

        start           ready           exit
pending ----> starting ------> running ------> exited --+-- succeed --> succeeded
   ^            ^  |  \\                  exit    ^  |    +-- fail -----> failed
   |      start |  |   +---- stop --> stopping ---+  |    +-- give-up --> gave-up
   |            |  +---------- exit ----------> (exited)  +-- stop -----> stopped
   |          backoff <---------------- retry ------+     |
   +------------+--------------- renew ---------------- (any of these)

`exited` is the moment between a process's end and the decision what that end means: reconcile takes it at once.
`renew` is a request for a new process, of a task without one.
"""

PENDING = "pending"
STARTING = "starting"
RUNNING = "running"
EXITED = "exited"
BACKOFF = "backoff"
STOPPING = "stopping"
STOPPED = "stopped"
SUCCEEDED = "succeeded"
FAILED = "failed"
GAVE_UP = "gave-up"

STATES = (PENDING, STARTING, RUNNING, EXITED, BACKOFF, STOPPING, STOPPED, SUCCEEDED, FAILED, GAVE_UP)

ALIVE = frozenset({STARTING, RUNNING})
"""A process of the task exists or has been requested, and no end has been requested."""

WITH_PROCESS = frozenset({*ALIVE, STOPPING})
"""A process of the task exists, or has been asked for."""

WAITING = frozenset({PENDING, BACKOFF})
"""No process yet, one is wanted."""

ENDED = frozenset({STOPPED, SUCCEEDED, FAILED, GAVE_UP})
"""Nothing more happens by itself."""

NOT_ENDED = tuple(each for each in STATES if each not in ENDED)

UNFORGIVEN = frozenset({FAILED, GAVE_UP})
"""The restart policy has had its last word, and the whole cluster fails with the task."""

# What may happen to a task: the events of the table.
START = "start"
READY = "ready"
EXIT = "exit"
SUCCEED = "succeed"
RETRY = "retry"
FAIL = "fail"
GIVE_UP = "give-up"
STOP = "stop"
ABANDON = "abandon"
RENEW = "renew"

TRANSITIONS = {
    (PENDING, START): STARTING,
    (BACKOFF, START): STARTING,
    (STARTING, READY): RUNNING,
    (STARTING, EXIT): EXITED,
    (RUNNING, EXIT): EXITED,
    (STOPPING, EXIT): EXITED,
    (EXITED, SUCCEED): SUCCEEDED,
    (EXITED, RETRY): BACKOFF,
    (EXITED, FAIL): FAILED,
    (EXITED, GIVE_UP): GAVE_UP,
    (EXITED, STOP): STOPPED,
    (PENDING, STOP): STOPPED,
    (BACKOFF, STOP): STOPPED,
    (STARTING, STOP): STOPPING,
    (RUNNING, STOP): STOPPING,
    (STOPPING, ABANDON): STOPPED,
    (EXITED, RENEW): PENDING,
    (BACKOFF, RENEW): PENDING,
    (STOPPED, RENEW): PENDING,
    (SUCCEEDED, RENEW): PENDING,
    (FAILED, RENEW): PENDING,
    (GAVE_UP, RENEW): PENDING,
}


class IllegalTransition(AssertionError):
    """A programmer's error: this event cannot happen in this state."""


def after(state: str, event: str) -> str:
    """The state that `event` leads to from `state`; raises IllegalTransition where the table has no such line."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"a task that is {state} cannot {event}") from None
