"""Desired and observed in, the plan's text out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dtfctl.supervise.reconcile import Desired, reconcile, verdict
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import Exit, TaskStatus
from tests.dtfctl.fakes import plan_of

NOW = 1000.0


def observed(**changes):
    """The three tasks of the shared cluster file; keywords are task names with _ for the colon."""
    statuses = {name: TaskStatus(name) for name in ("ps:0", "worker:0", "worker:1")}
    for key, status in changes.items():
        name = key.replace("_", ":")
        statuses[name] = replace(status, name=name)
    return Statuses(statuses.values())


def task(state, **changes):
    return TaskStatus("", state, generation=1, pid=7, **changes)


RUNNING = task("running", started_at=900.0, ready_at=901.0)
SUCCEEDED = task("succeeded", exit=Exit(990.0, 0))


def plan_text(statuses, **desired):
    return str(reconcile(Desired(plan_of(), **desired), statuses, NOW, lambda: 0.0))


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_fresh_cluster_is_started_whole():
    assert lines(plan_text(observed())) == [
        "start ps:0 it is in the cluster file",
        "start worker:0 it is in the cluster file",
        "start worker:1 it is in the cluster file",
    ]


def test_a_cluster_that_is_as_it_should_be_is_left_alone():
    assert plan_text(observed(ps_0=RUNNING, worker_0=RUNNING, worker_1=RUNNING)) == ""


def test_a_killed_ps_is_settled_first_and_then_started_at_once():
    killed = replace(RUNNING, state="exited", exit=Exit(NOW, signal=9))
    text = plan_text(observed(ps_0=killed, worker_0=RUNNING, worker_1=RUNNING))
    assert lines(text) == ["retry ps:0 killed by SIGKILL from outside; restart not counted"]
    waiting = task("backoff", next_start_at=NOW, reason="killed by SIGKILL")
    text = plan_text(observed(ps_0=waiting, worker_0=RUNNING, worker_1=RUNNING))
    assert lines(text) == ["start ps:0 killed by SIGKILL"]


def test_a_backoff_that_is_not_over_says_when_to_look_again():
    waiting = task("backoff", next_start_at=NOW + 3, reason="exited with status 1")
    plan = reconcile(Desired(plan_of()), observed(ps_0=waiting, worker_0=RUNNING, worker_1=RUNNING), NOW, lambda: 0.0)
    assert (str(plan), plan.look_again_at) == ("", NOW + 3)


def test_a_worker_that_is_done_is_not_started_again_while_the_other_works():
    assert plan_text(observed(ps_0=RUNNING, worker_0=SUCCEEDED, worker_1=RUNNING)) == ""


def test_a_worker_that_is_done_is_not_restarted_even_if_everything_always_is():
    plan = plan_of("program: x\nrestart: always\njobs: {ps: 1, worker: 2}")
    done = replace(RUNNING, state="exited", exit=Exit(NOW, 0))
    statuses = observed(ps_0=done, worker_0=done, worker_1=RUNNING)
    assert lines(str(reconcile(Desired(plan), statuses, NOW, lambda: 0.0))) == [
        "retry ps:0 exited with status 0; restart 1 of 5 within 10m",
        "succeed worker:0 exited with status 0",
    ]


def test_when_all_workers_are_done_the_ps_is_stopped_and_counts_as_a_success():
    done = observed(ps_0=RUNNING, worker_0=SUCCEEDED, worker_1=SUCCEEDED)
    assert lines(plan_text(done)) == ["terminate ps:0 the training is done"]
    terminated = replace(
        RUNNING, state="exited", stop_why="the training is done", after_stop="succeed", exit=Exit(NOW, signal=15)
    )
    done = observed(ps_0=terminated, worker_0=SUCCEEDED, worker_1=SUCCEEDED)
    assert lines(plan_text(done)) == ["succeed ps:0 the training is done: killed by SIGTERM"]
    done = observed(ps_0=SUCCEEDED, worker_0=SUCCEEDED, worker_1=SUCCEEDED)
    assert lines(plan_text(done)) == ["finish succeeded the training is done"]


def test_down_stops_workers_first_then_the_chief_and_the_ps_only_when_they_are_gone():
    down = {"outcome": "stopped", "why": "stopped by dtfctl down"}
    text = plan_text(observed(ps_0=RUNNING, worker_0=RUNNING, worker_1=RUNNING), **down)
    assert lines(text) == ["terminate worker:1 stopped by dtfctl down"]
    stopping = task("stopping", stop_at=NOW - 1)
    plan = reconcile(
        Desired(plan_of(), **down), observed(ps_0=RUNNING, worker_0=RUNNING, worker_1=stopping), NOW, lambda: 0.0
    )
    assert (str(plan), plan.look_again_at) == ("", NOW + 2), "the chief waits for the workers, but not for long"
    lingering = task("stopping", stop_at=NOW - 3)
    text = plan_text(observed(ps_0=RUNNING, worker_0=RUNNING, worker_1=lingering), **down)
    assert lines(text) == ["terminate worker:0 stopped by dtfctl down"]
    assert plan_text(observed(ps_0=RUNNING, worker_0=task("stopped"), worker_1=stopping), **down) == ""
    text = plan_text(observed(ps_0=RUNNING, worker_0=task("stopped"), worker_1=task("stopped")), **down)
    assert lines(text) == ["terminate ps:0 stopped by dtfctl down"]


@pytest.mark.parametrize(
    ("status", "text", "look_again_at"),
    [
        (task("stopping", stop_at=NOW - 9.9), [], NOW + 0.1),
        (task("stopping", stop_at=NOW - 10), ["kill ps:0 still there 10s after SIGTERM"], None),
        (task("stopping", stop_at=NOW - 12, kill_at=NOW - 2), [], NOW + 3),
        (
            task("stopping", stop_at=NOW - 15, kill_at=NOW - 5),
            ["abandon ps:0 pid 7 outlived SIGKILL by 5s"],
            None,
        ),
    ],
)
def test_stopping_insists_and_is_bounded(status, text, look_again_at):
    gone = task("stopped")
    desired = Desired(plan_of(), "stopped", "down")
    plan = reconcile(desired, observed(ps_0=status, worker_0=gone, worker_1=gone), NOW, lambda: 0.0)
    assert lines(str(plan)) == text
    assert plan.look_again_at == pytest.approx(look_again_at)


def test_a_grace_period_of_zero_kills_at_once():
    gone = task("stopped")
    statuses = observed(ps_0=task("stopping", stop_at=NOW), worker_0=gone, worker_1=gone)
    text = plan_text(statuses, outcome="stopped", why="down", grace_period_s=0.0)
    assert lines(text) == ["kill ps:0 still there 0s after SIGTERM"]


def test_a_failure_that_is_not_forgiven_ends_the_cluster_and_is_named():
    gave_up = task("gave-up", exit=Exit(990.0, 1), failures=(980.0, 990.0), reason="exited with status 1; gave up")
    plan = reconcile(Desired(plan_of()), observed(ps_0=RUNNING, worker_0=gave_up, worker_1=RUNNING), NOW, lambda: 0.0)
    assert (plan.outcome, plan.why) == ("failed", "worker:0 failed: exited with status 1; gave up")
    assert lines(str(plan)) == [f"terminate worker:1 {plan.why}"]


def test_what_waits_to_be_started_is_not_started_any_more_when_the_cluster_ends():
    statuses = observed(ps_0=task("backoff", next_start_at=NOW - 1), worker_0=RUNNING, worker_1=TaskStatus(""))
    assert lines(plan_text(statuses, outcome="stopped", why="down")) == [
        "stop ps:0 down",
        "stop worker:1 down",
        "terminate worker:0 down",
    ]


def test_the_chief_alone_decides_where_there_is_one():
    plan = plan_of("program: train\njobs: {chief: 1, worker: 1, ps: 1}")
    statuses = {"chief:0": SUCCEEDED, "worker:0": RUNNING, "ps:0": RUNNING}
    named = Statuses(replace(status, name=name) for name, status in statuses.items())
    assert lines(str(reconcile(Desired(plan), named, NOW, lambda: 0.0))) == [
        "terminate worker:0 the training is done"
    ]


def test_a_process_on_a_host_that_is_away_is_not_said_to_have_outlived_anything():
    deaf = task("stopping", host="far", stop_at=NOW - 60, kill_at=NOW - 50, stop_why="hung", after_stop="retry")
    statuses = observed(ps_0=RUNNING, worker_0=deaf, worker_1=RUNNING)
    outlived = "abandon worker:0 pid 7 outlived SIGKILL by 5s"
    assert plan_text(statuses, away=frozenset({"far"})) == ""
    assert lines(plan_text(statuses)) == [outlived]
    # When all is to end, that has its end too.
    assert outlived in lines(plan_text(statuses, away=frozenset({"far"}), outcome="stopped", why="down"))


def test_the_verdict_names_who_gave_up_and_what_came_before_it():
    first = task("running", failures=(985.0,), exit=Exit(985.0, signal=9), reason="killed by SIGKILL")
    gave_up = task("failed", failures=(986.0,), exit=Exit(986.0, 1), reason="exited with status 1")
    last = task("backoff", failures=(987.0,), exit=Exit(987.0, 1), next_start_at=1001.0)
    found = verdict(plan_of(), observed(ps_0=first, worker_0=gave_up, worker_1=last))
    assert str(found) == "worker:0 failed: exited with status 1; before that ps:0: killed by SIGKILL"
    assert [status.name for status in found.after] == ["worker:1"]


def test_a_task_that_still_had_tries_is_not_blamed_though_it_failed_first():
    """All run the same broken program: who gave up first is named, the others only follow."""
    first = task("backoff", failures=(985.0,), exit=Exit(985.0, 1), next_start_at=1001.0)
    gave_up = task("gave-up", failures=(985.5, 986.0), exit=Exit(986.0, 1), reason="exited with status 1; gave up")
    found = verdict(plan_of(), observed(ps_0=first, worker_0=gave_up, worker_1=RUNNING))
    assert str(found) == "worker:0 failed: exited with status 1; gave up"
    assert [status.name for status in found.after] == ["ps:0"]


def test_a_failure_that_was_forgiven_long_ago_is_nobodys_cause():
    long_ago = task("running", failures=(600.0,), exit=Exit(600.0, signal=9))
    culprit = task("failed", failures=(986.0,), exit=Exit(986.0, 1))
    found = verdict(plan_of(), observed(ps_0=long_ago, worker_0=culprit))
    assert (found.culprit.name, found.before) == ("worker:0", ())


def test_without_an_unforgiven_failure_there_is_no_verdict():
    assert verdict(plan_of(), observed(ps_0=task("backoff", failures=(999.0,), next_start_at=1001.0))) is None
