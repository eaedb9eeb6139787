"""What the user reads, letter by letter."""

from __future__ import annotations

from dtfctl.show import view
from dtfctl.values.run import Run
from dtfctl.values.snapshot import take
from dtfctl.values.task import Exit, TaskStatus
from tests.dtfctl.fakes import plan_of

ADDRESSES = {"ps:0": "127.0.0.1:23001", "worker:0": "127.0.0.1:23002", "worker:1": "127.0.0.1:23003"}
NOW = 10_000.0

STATUSES = {
    status.name: status
    for status in (
        TaskStatus(
            "ps:0",
            "running",
            generation=2,
            restarts=1,
            pid=881,
            started_at=NOW - 40,
            reason="killed by SIGKILL; restart 1 of 5",
            restart_reason="killed by SIGKILL; restart 1 of 5",
        ),
        TaskStatus(
            "worker:0", "starting", 1, pid=882, started_at=NOW - 7300, waiting_for="127.0.0.1:23002 is not open yet"
        ),
        TaskStatus(
            "worker:1", "backoff", 5, 4, exit=Exit(NOW - 1, 1), next_start_at=NOW + 4, reason="exited with status 1"
        ),
    )
}


def a_run(**changes):
    return Run(1, "t", "b", plan_of(), {}, ADDRESSES, 0.0, **changes)


def test_the_table_shows_state_and_cause():
    assert view.table(take(a_run(all_were_ready=True), STATUSES, NOW, 0.0)).splitlines() == [
        "trial: running",
        "TASK      STATE       READY  RESTARTS  PID  SINCE  ADDRESS          LAST",
        "ps:0      running     yes    1         881  40s    127.0.0.1:23001  killed by SIGKILL; restart 1 of 5",
        "worker:0  starting    no     0         882  2h     127.0.0.1:23002  127.0.0.1:23002 is not open yet",
        "worker:1  backoff 4s  no     4         -    1s     127.0.0.1:23003  exited with status 1",
    ]


def test_the_headline_names_the_end_and_what_was_left_behind():
    run = a_run(outcome="failed", why="worker:1 failed: exited with status 1", is_over=True)
    assert view.headline(take(run, {}, NOW, 0.0)) == "trial: failed (worker:1 failed: exited with status 1)"
    run = a_run(outcome="stopped", why="enough", is_over=True, strays=((7, "localhost", "sleep 9"),))
    assert view.headline(take(run, {}, NOW, 0.0)) == "trial: stopped\nleft behind: pid 7 on localhost: sleep 9"
    run = a_run(outcome="stopped", why="enough")
    assert view.headline(take(run, {}, NOW, 0.0)) == "trial: starting (ending: enough)"


def test_who_is_missing_is_said_with_why():
    assert view.missing(take(a_run(), STATUSES, NOW, 0.0)) == [
        ("worker:0", "starting (2h): 127.0.0.1:23002 is not open yet"),
        ("worker:1", "backoff 4s: exited with status 1"),
    ]


def test_the_document_has_the_same_keys_whatever_happens():
    document = view.document(take(a_run(), STATUSES, NOW, 0.0))
    assert list(document) == ["apiVersion", "name", "state", "hosts", "tasks"]
    keys = ["name", "state", "ready", "pid", "host", "address", "restarts", "reason"]
    assert all(list(task) == keys for task in document["tasks"])
    assert document["tasks"][1]["reason"] == "127.0.0.1:23002 is not open yet"
