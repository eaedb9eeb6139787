"""Which tasks are to be looked at, without looking at all of them."""

from __future__ import annotations

import random
from dataclasses import replace

from dtfctl.values import state
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import TaskStatus

NAMES = [f"worker:{index}" for index in range(20)]


def test_the_order_is_that_in_which_they_came_and_a_new_one_is_last():
    statuses = Statuses(map(TaskStatus, NAMES))
    statuses.put(replace(statuses["worker:3"], state=state.EXITED))
    statuses.put(replace(statuses["worker:1"], state=state.EXITED))
    statuses.remove("worker:0")
    statuses.put(TaskStatus("ps:0", state.EXITED))
    assert list(statuses) == [*NAMES[1:], "ps:0"]
    assert statuses.in_state(state.EXITED) == ["worker:1", "worker:3", "ps:0"]


def test_only_the_task_that_was_changed_is_restless():
    statuses = Statuses(TaskStatus(name, state.RUNNING) for name in NAMES)
    assert statuses.restless() == set()
    for changed in ({"state": state.EXITED}, {"renew": "a wish"}, {"ailing": "it hangs"}, {"notice": "it will go"}):
        statuses.put(replace(TaskStatus("worker:7", state.RUNNING), **changed))
        assert statuses.restless() == {"worker:7"}
        statuses.put(TaskStatus("worker:7", state.SUCCEEDED))
        assert statuses.restless() == set()


def test_whatever_is_put_and_removed_each_task_stands_in_one_state():
    chance = random.Random(1)
    statuses = Statuses()
    for _ in range(500):
        name = chance.choice(NAMES)
        if chance.random() < 0.2 and name in statuses:
            statuses.remove(name)
        else:
            statuses.put(TaskStatus(name, chance.choice(state.STATES)))
    assert statuses.in_state(*state.STATES) == list(statuses)
    for each in state.STATES:
        assert statuses.in_state(each) == [name for name in statuses if statuses[name].state == each]
    calm = {name for name in statuses if statuses[name].state in state.ALIVE | state.ENDED}
    assert set(statuses.restless()) == set(statuses) - calm


def test_counts_and_hosts_follow_whatever_is_put_and_removed():
    chance = random.Random(2)
    statuses = Statuses()
    for _ in range(500):
        name = chance.choice([*NAMES, "ps:0", "ps:1"])
        if chance.random() < 0.2 and name in statuses:
            statuses.remove(name)
        else:
            planned_at = chance.choice([None, 1.0])
            statuses.put(
                TaskStatus(name, chance.choice(state.STATES), host=chance.choice("ab"), planned_at=planned_at)
            )
    every = list(statuses.values())
    for each in state.STATES:
        here = [status.name for status in every if status.state == each]
        assert statuses.count(each) == len(here)
        assert statuses.number("ps", each) == sum(name.startswith("ps:") for name in here)
        assert statuses.among(NAMES[:5], each) == set(here) & set(NAMES[:5])
    for host in "ab":
        assert statuses.on_host(host) == [status.name for status in every if status.host == host]
    assert statuses.on_host("c") == []
    assert statuses.planned() == [status.name for status in every if status.planned_at is not None]
