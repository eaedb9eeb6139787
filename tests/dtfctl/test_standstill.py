"""A task that gets nowhere though it runs is noticed: by its sessions' steps, the global step, and who has ended."""

from __future__ import annotations

import pytest

from dtfctl.show import view
from dtfctl.supervise.standstill import SERVER_ENDED_S, Standstill, ended_server
from dtfctl.values.plan import Probe
from dtfctl.values.snapshot import take
from tests.dtfctl.fakes import CLUSTER, World, plan_of


def stood(*looks):
    """The seconds after each look: (runs, step, now)."""
    still = Standstill()
    return [still.look(*look) for look in looks]


def test_sessions_that_run_no_step_stand_still():
    looks = stood((5, None, 10), (6, None, 20), (6, None, 50), (None, None, 90), (7, None, 91))
    assert looks == [0, 0, 30, 70, 0]


def test_of_a_task_that_has_not_begun_to_train_nothing_is_concluded():
    looks = stood((None, None, 10), (0, None, 500), (0, None, 1000), (1, None, 1001), (1, None, 1011))
    assert looks == [0, 0, 0, 0, 10]


def test_without_a_word_from_the_task_the_global_step_counts():
    assert stood((None, 10, 0), (None, 20, 10), (None, 20, 100), (None, None, 200)) == [0, 0, 90, 190]


def test_what_the_task_says_itself_counts_more_than_a_step_of_all():
    """Others may train on: it is this one that stands still."""
    assert stood((5, 100, 0), (5, 200, 60))[-1] == 60


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.make_ready()
    yield world
    world.store.close()


def test_a_ps_that_ends_by_itself_while_others_work_is_named(world):
    plan, supervisor = world.supervisor.run.plan, world.supervisor
    world.launcher.end("ps:0", code=0)
    supervisor.step()
    now = world.clock()
    assert ended_server(plan, supervisor.statuses, now) is None, "the training may be about to end"
    why, since = ended_server(plan, supervisor.statuses, now + SERVER_ENDED_S)
    assert (why, since) == ("ps:0 exited with status 0: does its program call server.join()?", now)


def shown(supervisor):
    return take(supervisor.run, supervisor.statuses, 0.0, 0.0)


def test_status_and_history_say_since_when_and_a_new_process_begins_anew(world):
    supervisor = world.supervisor
    assert supervisor.note_stalled("worker:0", 1, "its sessions run no step", 30.0)
    assert not supervisor.note_stalled("worker:0", 1, "its sessions run no step", 60.0)
    supervisor.step()
    (line,) = view.stalled(shown(supervisor))
    assert line.startswith("worker:0 stalled since ") and line.endswith(": its sessions run no step")
    document = view.document(shown(supervisor))
    assert [task["name"] for task in document["tasks"] if "stalled" in task] == ["worker:0"]
    assert supervisor.note_stalled("worker:0", 1, "")
    assert supervisor.note_stalled("worker:0", 1, "again", 1.0)
    world.launcher.end("worker:0", code=1)
    supervisor.step()
    assert view.stalled(shown(supervisor)) == []
    assert [line for line in world.history() if "stalled" in line or "gets on" in line] == [
        "worker:0 stalled stalled: its sessions run no step",
        "worker:0 goes on gets on again",
        "worker:0 stalled stalled: again",
    ]


def test_progress_is_a_liveness_probe_with_its_own_patience():
    plan = plan_of(CLUSTER + "liveness: progress\n")
    assert plan.task("worker:0").settings.liveness == Probe("progress", interval_s=10.0, timeout_s=600.0)
    plan = plan_of(CLUSTER + "liveness: {probe: progress, timeout: 90s}\n")
    assert plan.task("worker:0").settings.liveness.timeout_s == 90
    with pytest.raises(Exception, match="readiness"):
        plan_of(CLUSTER + "readiness: progress\n")
