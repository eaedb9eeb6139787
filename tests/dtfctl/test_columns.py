"""Tables in narrow terminals, colours, and commands that can be pasted."""

from __future__ import annotations

import re
import shlex

import pytest

from dtfctl import hints
from dtfctl.show import columns, view
from dtfctl.values.history import Happening
from dtfctl.values.run import Run
from dtfctl.values.snapshot import take
from dtfctl.values.task import Exit, TaskStatus
from tests.dtfctl.fakes import plan_of

NOW = 100_000.0
PLAN = plan_of("name: trial\nprogram: x\njobs: {worker: 13, evaluator: 1}")


def a_run(**changes):
    return Run(1, "t", "b", PLAN, {}, {"evaluator:0": "127.0.0.1:23001"}, 0.0, **changes)


STATUSES = {
    status.name: status
    for status in (
        TaskStatus("evaluator:0", "running", 3, 12, 123456, started_at=NOW - 90000, ready_at=NOW, reason="x" * 80),
        TaskStatus("worker:12", "backoff", 3, 2, next_start_at=NOW + 12, exit=Exit(NOW - 7, 1), reason="exited"),
    )
}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", range(30, 200, 3))
@pytest.mark.parametrize("is_wide", [False, True])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width, is_wide):
    cells = view.rows(take(a_run(), STATUSES, NOW, 0.0), is_wide)
    lines = columns.lines(cells, width)
    assert all(len(line) <= max(width, 31) for line in lines)
    headings = lines[0].split()
    for column in ("READY", "RESTARTS"):
        assert column in headings
        place = cells[0].index(column)
        for row, line in zip(cells[1:], lines[1:], strict=True):
            assert row[place] in line.replace("…", " ").split()
    for heading in {"PID", "SINCE", "GENERATION"} & set(headings):
        assert all(row[cells[0].index(heading)] in line for row, line in zip(cells, lines, strict=True))


def test_at_forty_columns_the_tasks_their_states_and_counts_are_there():
    assert columns.lines(view.rows(take(a_run(), {"worker:12": STATUSES["worker:12"]}, NOW, 0.0)), 40) == [
        "TASK       STATE        READY  RESTARTS",
        "worker:12  backoff 12s  no     2",
    ]
    shown = columns.lines(view.rows(take(a_run(), STATUSES, NOW, 0.0)), 40)
    assert shown[1].split()[-1] == "12" and "evaluator:0" in shown[1]


def test_the_last_words_give_way_first():
    cells = view.rows(take(a_run(), STATUSES, NOW, 0.0))
    natural = max(map(len, columns.lines(cells)))
    cut = columns.lines(cells, natural - 30)
    assert cut[0].split() == cells[0] and cut[1].endswith("…")
    assert cut[1][: cut[0].index("LAST")] == columns.lines(cells)[1][: cut[0].index("LAST")]


def test_states_are_coloured_and_nothing_else_is():
    cells = [["TASK", "STATE", "LAST"], ["a:0", "running", "failed"], ["b:0", "backoff 3s", "-"]]
    lines = columns.lines(cells, None, True)
    assert lines[1] == "a:0   \x1b[32mrunning   \x1b[0m  failed"
    assert COLOUR.findall(lines[2]) == ["\x1b[33m", "\x1b[0m"]
    assert [COLOUR.sub("", line) for line in lines] == columns.lines(cells)
    assert "\x1b" not in lines[0]


def test_causes_from_outside_only_show():
    attack = "\x1b]0;owned\x07\x1b[2Jgone\nnext line"
    statuses = {"worker:1": TaskStatus("worker:1", "failed", reason=attack, exit=Exit(NOW, error=attack))}
    run = a_run(outcome="failed", why=attack, strays=((7, "localhost", attack),))
    snapshot = take(run, statuses, NOW, 0.0)
    for text in (view.table(snapshot), view.headline(snapshot), str(view.missing(snapshot))):
        assert "\x1b" not in text and "\x07" not in text
    assert len(view.table(snapshot).splitlines()) == 4
    assert "\x1b" not in view.event(Happening(NOW, "worker:1", "ended", attack), 9, is_json=False)


# -- hints


def test_a_printed_command_can_be_pasted():
    assert hints.command("logs", "digits", "worker:1") == "dtfctl logs -c digits worker:1"
    assert hints.command("status", "digits") == "dtfctl status digits"
    assert hints.command("up", "/my files/cluster.yaml", "-n", "b") == "dtfctl up '/my files/cluster.yaml' -n b"
    hints.remember_state_dir("/tmp/a b")
    try:
        words = shlex.split(hints.command("down", "$(reboot)", "--purge"))
        assert words == ["dtfctl", "--state-dir", "/tmp/a b", "down", "$(reboot)", "--purge"]
    finally:
        hints.remember_state_dir(None)
