"""How many tasks a job with `autoscale` gets: each decision with its reason, and the measurement that it needs."""

from __future__ import annotations

import asyncio

import pytest

from dtfctl.control.autoscaler import Autoscaler, places
from dtfctl.plan.diff import scaled
from dtfctl.supervise.autoscale import HOLD_S, UNLIMITED, Decision, Look, Memory, decide
from dtfctl.values.plan import Autoscale
from tests.dtfctl.fakes import CLUSTER, World, plan_of

LIMITS = Autoscale("worker", 2, 16)

DECISIONS = [
    # replicas, places, steps/s, memory -> replicas, why
    (1, 9, None, Memory(), 2, "worker has 1 task, at least 2 are wanted"),
    (20, 30, None, Memory(), 16, "worker has 20 tasks, at most 16 are wanted"),
    (2, 9, None, Memory(), None, ""),
    (2, 9, 100.0, Memory(), 3, "100 steps/s with 2 tasks, and there is room for 7 more"),
    (8, UNLIMITED, 100.0, Memory(), 12, "100 steps/s with 8 tasks, and there is room for 8 more"),
    (8, 9, 100.0, Memory(), 9, "100 steps/s with 8 tasks, and there is room for 1 more"),
    (2, 2, 100.0, Memory(), None, ""),
    (16, 99, 100.0, Memory(), None, ""),
    (4, 4, 150.0, Memory({2: 100.0}, 2), None, ""),
    (4, 9, 150.0, Memory({2: 100.0}, 2), 6, "150 steps/s with 4 tasks, and there is room for 5 more"),
    (4, 9, 120.0, Memory({2: 100.0}, 2), 2, "120 steps/s with 4 tasks, 100 with 2: more do not help"),
    (4, 9, 80.0, Memory({2: 100.0}, 2), 2, "80 steps/s with 4 tasks, 100 with 2: more do not help"),
    (3, 9, 100.0, Memory({3: 90.0}, 3), 4, "100 steps/s with 3 tasks, and there is room for 6 more"),
]


@pytest.mark.parametrize("replicas, places, rate, memory, wanted, why", DECISIONS)
def test_each_decision_has_its_reason(replicas, places, rate, memory, wanted, why):
    _, decision = decide(LIMITS, Look(replicas, places, rate, 0.0), memory)
    assert decision == (None if wanted is None else Decision(wanted, why))


def test_growth_that_has_not_paid_is_tried_again_later_or_with_other_hosts():
    memory, decision = decide(LIMITS, Look(4, 9, 100.0, 50.0), Memory({2: 100.0}, 2))
    assert decision is not None and decision.replicas == 2
    memory, decision = decide(LIMITS, Look(2, 9, 100.0, 60.0), memory)
    assert decision is None
    _, decision = decide(LIMITS, Look(2, 10, 100.0, 70.0), memory)
    assert decision is not None and decision.replicas == 3
    _, decision = decide(LIMITS, Look(2, 9, 100.0, 50.0 + HOLD_S), memory)
    assert decision is not None and decision.replicas == 3


@pytest.mark.parametrize("best", [2, 5, 16])
def test_a_job_grows_to_about_where_its_steps_stop_growing(best):
    replicas, memory, numbers = 2, Memory(), []
    for now in range(20):
        memory, decision = decide(LIMITS, Look(replicas, 99, 10.0 * min(replicas, best), float(now)), memory)
        if decision is not None:
            replicas = decision.replicas
        numbers.append(replicas)
    assert numbers[-1] == numbers[-5] and best / 1.6 <= replicas <= best * 1.5


MACHINES = "hosts: {a: {slots: 4, address: 10.0.0.1}, b: {slots: 2, address: 10.0.0.2}}\n"


@pytest.mark.parametrize("away, expected", [((), 5), ("a", 2), ("b", 3), ("ab", 0)])
def test_places_are_the_slots_of_the_hosts_that_answer(away, expected):
    plan = plan_of(
        f"{MACHINES}jobs: {{ps: {{replicas: 1, hosts: a, program: p}}, worker: {{hosts: [a, b], program: p}}}}\n"
    )
    assert places(plan, "worker", frozenset(away)) == expected


def test_a_host_without_slots_has_room_for_any_number():
    assert places(plan_of(CLUSTER), "worker", frozenset()) == UNLIMITED


class Scaler:
    """An Autoscaler of a world whose tasks report `runs`, looked at by hand."""

    def __init__(self, world: World) -> None:
        self.world, self.runs, self.asked = world, {}, []
        self.answer: dict[str, str] = {}
        self.scaler = Autoscaler(world.supervisor, lambda: self.runs, self._scale, lambda: world.clock.now)

    async def _scale(self, job: str, replicas: int) -> dict[str, str]:
        self.asked.append((job, replicas))
        return self.answer

    def look(self, seconds: float, *runs: int) -> None:
        self.world.clock.now += seconds
        self.runs = {f"worker:{index}": (each, self.world.clock.now) for index, each in enumerate(runs)}
        asyncio.run(self.scaler._look(LIMITS))

    def happenings(self) -> list[str]:
        return [str(each.cause) for each in self.world.store.history(1) if each.what in ("autoscale", "trouble")]


@pytest.fixture
def scaler(tmp_path):
    world = World(tmp_path, CLUSTER + "cluster_spec: elastic\n")
    world.make_ready()
    yield Scaler(world)
    world.store.close()


def test_nothing_is_decided_before_all_tasks_have_made_steps_for_a_while(scaler):
    scaler.look(5, 10, 0)
    scaler.look(5, 50, 0)
    scaler.look(5, 90, 10)
    scaler.look(20, 290, 210)
    assert scaler.asked == []
    scaler.look(10, 390, 310)
    assert scaler.asked == [("worker", 3)]


def test_the_reason_is_in_the_history(scaler):
    scaler.look(5, 10, 10)
    scaler.look(30, 310, 310)
    scaler.world.supervisor.step()
    assert scaler.happenings() == ["worker=3: 20 steps/s with 2 tasks, and there is room for 14 more"]


def test_a_refusal_is_told_once(scaler):
    scaler.answer = {"error": "port 1 is taken"}
    for number in range(1, 4):
        scaler.look(40, 100 * number, 100 * number)
    scaler.world.supervisor.step()
    assert scaler.happenings() == ["worker cannot have 3 tasks: port 1 is taken"]


def test_only_hosts_that_have_joined_get_tasks_of_their_own_accord():
    jobs = "{ps: {replicas: 1, hosts: a, program: p}, worker: {replicas: 1, hosts: [a, b], program: p}}"
    plan = plan_of(f"{MACHINES}jobs: {jobs}\n")
    joined = {host.name for host in plan.hosts}
    assert joined == {"a"}
    assert [place.host for place in scaled(plan, "worker", 3, joined).jobs[1].places] == ["a"] * 3
    with pytest.raises(ValueError, match="no slot is left"):
        scaled(plan, "worker", 4, joined)
