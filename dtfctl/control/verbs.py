"""What the supervisor of a cluster can be asked. Quick to load; protocol.py has the shape of each request."""

from __future__ import annotations

from dtfctl.values.word import Word


class Verb(Word):
    """The `do` of a request; server.py describes each."""

    UP = "up"
    DOWN = "down"
    RESTART = "restart"
    STOP = "stop"
    START = "start"
    SCALE = "scale"
    MOVE = "move"
    USAGE = "usage"
    WATCH = "watch"


ON_TASKS = frozenset({Verb.RESTART, Verb.STOP, Verb.START})
"""Verbs whose objects are tasks."""


class Purpose(Word):
    """What a supervisor's process is started for: to continue a run that is not over, or to wait for an `up`."""

    ADOPT = "adopt"
    SERVE = "serve"
