"""Ends that somebody has planned lose nothing and are nobody's failure: workers, then the chief, then the ps."""

from __future__ import annotations

import signal

import pytest

from dtfctl.supervise import planned_ends
from tests.dtfctl.fakes import CLUSTER, World, addresses_of, plan_of

THREE = CLUSTER.replace("worker: 2", "worker: 3")
WHY = "restarted by dtfctl restart"


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.make_ready()
    world.launcher.obeys_sigterm = False
    yield world
    world.store.close()


def asked(world):
    return [name for name, number in world.launcher.signals if number == signal.SIGTERM]


def end(world, name, code=143):
    world.launcher.end(name, code=code)
    world.supervisor.step()


def test_a_change_that_restarts_all_ends_workers_then_the_chief_then_the_ps_and_starts_after_that(world):
    plan = plan_of(THREE)
    world.supervisor.apply(plan, addresses_of(plan), {})
    world.supervisor.step()
    assert asked(world) == ["worker:1"]
    assert len(world.started()) == 3, "a new worker would train what is about to go"
    end(world, "worker:1")
    assert asked(world) == ["worker:1", "worker:0"]
    end(world, "worker:0")
    assert asked(world) == ["worker:1", "worker:0", "ps:0"]
    assert len(world.started()) == 3
    end(world, "ps:0")
    assert sorted(world.started()[3:]) == [("ps:0", 2), ("worker:0", 2), ("worker:1", 2), ("worker:2", 1)]
    assert all(not status.failures for status in world.supervisor.statuses.values())


@pytest.mark.parametrize("do", ["restart", "hold"])
def test_all_tasks_of_a_command_end_in_that_order(world, do):
    getattr(world.supervisor, do)(["ps:0", "worker:0", "worker:1"], "because")
    for expected in (["worker:1"], ["worker:1", "worker:0"], ["worker:1", "worker:0", "ps:0"]):
        world.supervisor.step()
        assert asked(world) == expected
        end(world, expected[-1])
    assert set(world.launcher.alive) == (set(world.supervisor.statuses) if do == "restart" else set())


def test_a_machine_that_is_to_go_lets_the_chief_save_before_the_ps(world):
    for name in ("ps:0", "worker:0"):
        world.supervisor.note_notice(name, "preempted: the file /gone is there")
    world.supervisor.step()
    assert asked(world) == ["worker:0"]
    end(world, "worker:0")
    assert asked(world) == ["worker:0", "ps:0"]


def test_the_chief_does_not_wait_for_a_worker_that_does_not_end(world):
    world.supervisor.restart(["ps:0", "worker:0", "worker:1"], WHY)
    assert world.supervisor.step() == world.clock() + planned_ends.CHIEF_WAITS_S
    world.clock.pass_(planned_ends.CHIEF_WAITS_S)
    world.supervisor.step()
    assert asked(world) == ["worker:1", "worker:0"]
    end(world, "worker:0")
    assert "ps:0" not in asked(world), "the ps waits for all"
    world.clock.pass_(10)
    world.supervisor.step()
    assert asked(world)[-1] == "ps:0"


def test_a_hung_task_is_ended_at_once_whatever_else_is_planned(world):
    world.supervisor.restart(["worker:1"], WHY)
    world.supervisor.note_ailing("ps:0", 1, "hung")
    world.supervisor.step()
    assert sorted(asked(world)) == ["ps:0", "worker:1"]


def test_down_in_the_middle_goes_on_from_there(world):
    world.supervisor.restart(["ps:0", "worker:0", "worker:1"], WHY)
    world.supervisor.step()
    world.supervisor.stop("enough")
    for name in ("worker:1", "worker:0", "ps:0"):
        world.supervisor.step()
        end(world, name)
    assert world.supervisor.is_finished
    assert len(world.started()) == 3


def test_a_supervisor_that_is_replaced_in_the_middle_keeps_the_order(world):
    world.supervisor.restart(["ps:0", "worker:0", "worker:1"], WHY)
    world.supervisor.step()
    world.replace_supervisor()
    world.launcher.tell()
    world.supervisor.step()
    assert "ps:0" not in asked(world)
    end(world, "worker:1")
    end(world, "worker:0")
    assert asked(world)[-1] == "ps:0"


# -- ends that only follow


def ps_restarts(world):
    world.supervisor.restart(["ps:0"], WHY)
    world.supervisor.step()


def test_a_worker_that_does_not_bear_the_planned_end_of_a_ps_has_not_failed(world):
    for _ in range(8):
        ps_restarts(world)
        end(world, "worker:0", code=1)
        end(world, "ps:0")
        while (at := world.supervisor.step()) is not None:
            world.clock.now = at
        world.make_ready()
    status = world.supervisor.statuses["worker:0"]
    assert (status.failures, world.supervisor.run.outcome) == ((), "")
    assert status.restart_reason == f"exited with status 1 after the end of ps:0 ({WHY}); restart not counted"


def test_as_long_as_a_ps_is_stopped_nobody_fails_for_want_of_it(world):
    world.supervisor.hold(["ps:0"], "stopped by dtfctl stop")
    world.supervisor.step()
    end(world, "ps:0")
    for _ in range(20):
        world.clock.pass_(100)
        world.supervisor.step()
        end(world, "worker:1", code=1)
    assert world.supervisor.statuses["worker:1"].failures == ()
    assert world.supervisor.run.outcome == ""


@pytest.mark.parametrize("late", [False, True])
def test_what_has_nothing_to_do_with_it_counts(world, late):
    """A worker that began after the ps was back, or ends long after that."""
    ps_restarts(world)
    end(world, "ps:0")
    world.make_ready()
    if late:
        world.clock.pass_(planned_ends.FOLLOWS_WITHIN_S + 1)
    else:
        world.clock.pass_(1)
        world.supervisor.restart(["worker:0"], WHY)
        world.supervisor.step()
        end(world, "worker:0")
        world.clock.pass_(planned_ends.FOLLOWS_WITHIN_S + 1)
    end(world, "worker:0", code=1)
    assert len(world.supervisor.statuses["worker:0"].failures) == 1


def test_an_end_of_its_own_is_judged_as_ever(world):
    """The killed ps was nobody's plan, so what follows from it is a failure of the worker."""
    world.launcher.end("ps:0", signal_number=9)
    world.supervisor.step()
    end(world, "worker:0", code=1)
    assert len(world.supervisor.statuses["worker:0"].failures) == 1


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ({"worker:1"}, []),
        (
            {"ps:0"},
            ["cost the steps since the last checkpoint of worker:0, which is asked for one (dtf's sessions save then)"],
        ),
        (
            {"ps:0", "worker:0", "worker:1"},
            [
                "order worker:1, then worker:0 (it saves), then ps:0; new tasks start after that",
                "cost no step if worker:0 saves at SIGTERM, as dtf's sessions do; else the steps since its checkpoint",
            ],
        ),
    ],
)
def test_what_it_costs_is_said_in_words(ends, told):
    assert [" ".join(line.split()) for line in planned_ends.in_words(plan_of(), ends)] == told
