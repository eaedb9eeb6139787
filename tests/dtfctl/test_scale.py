"""What one event costs must not depend on how many tasks there are: lines of Python are counted, no time is taken."""

from __future__ import annotations

import time

import pytest

from dtfctl.supervise import standstill
from dtfctl.values.run import Run
from tests.bench.scale import World, lines_of, plan_of

FEW, MANY = 60, 600


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """A cluster of few tasks and one of ten times as many, both at work."""
    made = [World(tmp_path_factory.mktemp("scale") / "scale", plan_of(count)) for count in (FEW, MANY)]
    for world in made:
        world.up()
        # Each event leaves its traces for the next ones; the first of a kind may have more to do.
        world.die("worker:7")
    yield made
    for world in made:
        world.store.close()


def costs(worlds, event):
    """The lines that an event takes in each cluster, when something like it was before."""
    for world in worlds:
        event(world)
    return [lines_of(lambda world=world: event(world)) for world in worlds]


EVENTS = {
    "a death from outside": lambda world: world.die("worker:8"),
    "a failure": lambda world: world.fail("worker:9"),
    "a restart by the user": lambda world: restart(world, "worker:10"),
    "a task that is held and released": lambda world: hold(world, "worker:11"),
    "a look for servers that have ended": lambda world: look_for_servers(world),
    "the first look of a host's keeper": lambda world: world.fake.tell("node3"),
}


def restart(world, name):
    world.now += 100.0
    world.supervisor.restart([name], "a wish")
    world.supervisor.step()
    world.become_ready(name)


def hold(world, name):
    world.now += 100.0
    world.supervisor.hold([name], "a wish")
    world.supervisor.step()
    world.supervisor.release([name], "a wish")
    world.supervisor.step()
    world.become_ready(name)


def look_for_servers(world):
    assert standstill.ended_server(world.supervisor.run.plan, world.supervisor.statuses, world.now) is None


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_on_one_task_must_cost_the_same_among_few_and_many(worlds, event):
    few, many = costs(worlds, EVENTS[event])
    assert few > 0 and many <= few * 1.1, f"{event}: {few} lines among {FEW} tasks, {many} among {MANY}"


def test_a_host_that_is_away_for_a_moment_must_cost_no_look_at_each_task(worlds):
    few, many = costs(worlds, lambda world: world.lose_sight_of("node2"))
    hosts = len(worlds[1].supervisor.run.hosts) - len(worlds[0].supervisor.run.hosts)
    # Which of the hosts differs from what is on disk is looked up by host.
    assert many <= few * 1.1 + 12 * hosts


def test_a_sidecar_that_has_given_up_must_not_make_each_event_dearer(worlds):
    for world in worlds:
        world.give_up("board:0")
        world.die("worker:12")
    few, many = costs(worlds, lambda world: world.die("worker:12"))
    assert many <= few * 1.1


def test_the_end_of_one_worker_must_cost_the_same_among_few_and_many(worlds):
    for world in worlds:
        world.finish("worker:20")
    few, many = [lines_of(lambda world=world: world.finish("worker:21")) for world in worlds]
    assert many <= few * 1.1
    few, many = [lines_of(lambda world=world: world.die("worker:22")) for world in worlds]
    assert many <= few * 1.1


def test_adoption_must_cost_each_task_the_same_however_many_there_are(worlds):
    few, many = [lines_of(world.adopt) / len(world.supervisor.statuses) for world in worlds]
    assert many <= few * 1.2, f"{few:.0f} lines for each of {FEW} tasks, {many:.0f} for each of {MANY}"


def test_what_a_run_derives_must_be_kept_only_while_it_holds(worlds):
    run = worlds[0].supervisor.run
    before = run.actual
    assert run.but(why="x").actual is before
    away = run.with_host(run.hosts["node2"].move("unreachable", time.time(), 1.0))
    assert away.actual is before and away.away == {"node2"}
    assert away.with_host(away.hosts["node2"].move("connected", time.time(), 2.0)).away == frozenset()
    moved = run.but(moves={"worker:0": "node3"})
    assert moved.actual.task("worker:0").host.name == "node3"
    assert {name: getattr(moved, name) for name in ("away", "spares", "leaving")} == {
        name: getattr(Run(**{field: getattr(moved, field) for field in Run.__dataclass_fields__}), name)
        for name in ("away", "spares", "leaving")
    }
