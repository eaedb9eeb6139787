"""The snapshot: status, top and all views are renderings of this one value."""

from __future__ import annotations

from dtfctl.launchers.usage import Usage
from dtfctl.logs.progress import Progress
from dtfctl.show import view
from dtfctl.storage.store import Store
from dtfctl.values.history import Happening
from dtfctl.values.hosts import CONNECTED, UNREACHABLE, HostStatus
from dtfctl.values.run import Run
from dtfctl.values.snapshot import take
from dtfctl.values.task import Exit, TaskStatus
from tests.dtfctl.fakes import plan_of

NOW = 10_000.0
PLAN = plan_of("""
name: trial
program: x
hosts: {a: {ssh: a}, b: {ssh: b}}
jobs:
  ps: {hosts: [a]}
  worker: {hosts: [b]}
""")
STATUSES = {
    "ps:0": TaskStatus("ps:0", "backoff", 2, 1, exit=Exit(NOW - 3, 1), next_start_at=NOW + 4, reason="failed"),
    "worker:0": TaskStatus("worker:0", "running", 1, pid=7, host="b", started_at=NOW - 60, ready_at=NOW - 50),
}


def a_run(state=CONNECTED, **changes):
    found = {"environment": {"PASSWORD": "secret-of-b"}, "folder": "/b", "python": "python3"}
    host = HostStatus("b", state, 1.0, NOW, "no route", found)
    given = {"environment": {"PASSWORD": "secret-of-up"}, "secrets": {"env:KEY": "secret-value"}, "hosts": {"b": host}}
    return Run(1, "secret-token", "b", PLAN, addresses={}, started_at=0.0, **given, **changes)


def test_a_snapshot_has_ages_and_what_was_measured():
    progress, history = Progress(9), [Happening(1.0, "ps:0", "ended", "killed", 5)]
    usage = Usage(1.0, 2, 3, 4)
    snapshot = take(a_run(), STATUSES, NOW, 77.0, {"worker:0": (0.5, usage)}, progress, history)
    ps, worker = snapshot.tasks
    assert (ps.since_s, ps.next_start_s, ps.cores) == (3.0, 4.0, None)
    assert (worker.since_s, worker.next_start_s, worker.cores, worker.usage) == (60.0, None, 0.5, usage)
    assert (snapshot.at, snapshot.progress, snapshot.history) == (77.0, progress, tuple(history))
    assert (snapshot.ready, snapshot.restarts) == (1, 1)


def test_a_snapshot_holds_no_secret():
    assert "secret" not in repr(take(a_run(), STATUSES, NOW, 0.0))


def test_a_process_on_a_host_that_does_not_answer_is_away_until_the_end():
    away = take(a_run(UNREACHABLE), STATUSES, NOW, 0.0)
    assert [task.is_away for task in away.tasks] == [False, True]
    assert [task["state"] for task in view.document(away)["tasks"]] == ["backoff", "unreachable"]
    over = take(a_run(UNREACHABLE, is_over=True, outcome="stopped"), STATUSES, NOW, 0.0)
    assert not any(task.is_away for task in over.tasks)


def test_the_history_is_read_on_after_an_id(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.begin(a_run(), STATUSES.values())
    for what in ("start", "started", "ready"):
        store.save(a_run(), (), [store.happening("ps:0", what, "")])
    first, *rest = store.history(1)
    assert [happening.what for happening in store.history(1, after=first.id)] == ["started", "ready"]
    assert store.history(1, after=rest[-1].id) == []
    store.close()
