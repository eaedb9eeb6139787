"""Lives of tasks from the history, restarts, and the levels of log lines."""

from __future__ import annotations

import pytest

from dtfctl.logs.patterns import level_of
from dtfctl.show.lives import restarts, stretches
from dtfctl.values.history import Happening

HISTORY = [
    Happening(1.0, "ps:0", "start", "it is in the cluster file", 1),
    Happening(1.1, "ps:0", "started", "pid 7", 2),
    Happening(2.0, "ps:0", "ready", "after 1.0s", 3),
    Happening(5.0, "ps:0", "ended", "killed by SIGKILL", 4),
    Happening(5.1, "ps:0", "retry", "killed by SIGKILL from outside; restart not counted", 5),
    Happening(6.0, "ps:0", "start", "killed by SIGKILL from outside", 6),
    Happening(7.0, "ps:0", "ready", "after 1.0s", 7),
    Happening(8.0, "", "ready", "all tasks are ready", 8),
    Happening(9.0, "ps:0", "terminate", "stopped by dtfctl down", 9),
    Happening(9.5, "ps:0", "ended", "exited with status 0", 10),
    Happening(9.6, "ps:0", "stop", "stopped by dtfctl down", 11),
]


def test_a_life_is_told_in_stretches_with_their_causes():
    (life,) = stretches(HISTORY, end=10.0).values()
    assert [(each.state, each.since, each.until) for each in life] == [
        ("starting", 1.0, 2.0),
        ("running", 2.0, 5.0),
        ("backoff", 5.0, 6.0),
        ("starting", 6.0, 7.0),
        ("running", 7.0, 9.0),
        ("stopping", 9.0, 9.5),
        ("backoff", 9.5, 9.6),
        ("stopped", 9.6, 10.0),
    ]
    assert life[2].cause == "killed by SIGKILL from outside; restart not counted"


def test_the_last_stretch_lasts_while_the_run_does():
    (life,) = stretches(HISTORY[:3]).values()
    assert life[-1].until is None


def test_only_later_processes_are_restarts():
    assert restarts(HISTORY) == [(6.0, "ps:0", "killed by SIGKILL from outside")]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("E1124 06:22:00.1 7 x.cc:1] bad", "error"),
        ("ERROR:root:bad", "error"),
        ("Traceback (most recent call last):", "error"),
        ("dtf.errors.AbortedError: gone", "error"),
        ("2026-11-24 06:22:00 ERROR bad", "error"),
        ("WARNING:dtf:slow", "warning"),
        ("W1124 06:22 slow", "warning"),
        ("INFO:dtf:global_step/sec: 10", "info"),
        ("I1124 06:22 note", "info"),
        ("step 5, loss 0.3", ""),
        ("no Error here", ""),
    ],
)
def test_levels_are_those_of_well_known_loggers(line, level):
    assert level_of(line) == level
