"""Synchronous replicas whose number follows the workers: decisions from reports, and real clusters."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtf as tf
from dtf.testing import LocalCluster
from dtf.train import elastic_replicas
from dtf.train.elastic_replicas import LEASE_S, Membership, Report
from dtf.wire.cluster import ELASTIC_VARIABLE
from tests.interop.synchronous import Replica, data, together


def members(*names: int, aggregate: int = 3, total: int = 3, trusts: bool = True) -> Membership:
    made = Membership(aggregate, total, step=7, now=0.0, trusts=trusts)
    for name in names:
        made.hear(Report(name, 1, 7, 0, 0), 0.0)
    return made


def hand_in(membership: Membership, *names: int, step: int = 7, count: int = 1, now: float = 1.0) -> None:
    for name in names:
        membership.hear(Report(name, 1, step, count, count - 1), now)


def test_an_update_waits_for_all_members_and_gives_each_a_token():
    found = members(0, 1, 2)
    hand_in(found, 0, 1)
    assert not found.is_due(1.0) and found.missing(1.0) == 1
    hand_in(found, 2)
    assert found.is_due(1.0) and found.waiting() == 3
    found.updated(8, 1.0)
    assert not found.is_due(1.0) and found.tokens_due(1.0) == 0 and found.missing(1.0) == 3


def test_a_member_that_joins_counts_from_its_first_report_and_one_that_leaves_until_its_last():
    found = members(0, 1, 2)
    hand_in(found, 0, 1, 2)
    found.hear(Report(3, 1, 7, 0, 0), 1.0)
    assert found.required(1.0) == 4 and not found.is_due(1.0)
    found.hear(Report(3, 1, 7, 0, 0, leaves=True), 1.0)
    assert found.required(1.0) == 3 and found.is_due(1.0)
    found.hear(Report(3, 1, 7, 0, 0), 1.0)
    assert found.required(1.0) == 3, "a report from before its end came late"


def test_a_member_that_reports_no_longer_is_lost_after_its_lease():
    found = members(0, 1, 2)
    hand_in(found, 0, 1, now=LEASE_S)
    assert found.lose(LEASE_S + 1) == 1 and found.members == {0, 1} and found.is_due(LEASE_S + 1)


def test_a_member_that_returns_takes_the_place_of_its_earlier_life():
    found = members(0, 1, 2)
    hand_in(found, 0, 1)
    found.hear(Report(2, 5, 7, 0, 0), 1.0)
    hand_in(found, 2)
    assert not found.is_due(1.0), "a report of the earlier life came late"
    found.hear(Report(2, 5, 7, 1, 0), 1.0)
    assert found.is_due(1.0)


@pytest.mark.parametrize(
    ("aggregate", "total", "count", "required"),
    [(3, 4, 4, 3), (3, 4, 6, 5), (3, 4, 1, 1), (4, 2, 3, 6), (3, 2, 3, 5), (2, 2, 5, 5)],
)
def test_backups_remain_backups_and_several_gradients_remain_several(aggregate, total, count, required):
    assert members(*range(count), aggregate=aggregate, total=total).required(0.0) == required


def test_an_update_does_not_wait_for_a_member_whose_gradient_was_stale_and_gives_it_a_token():
    found = members(0, 1, 2)
    hand_in(found, 0, step=6)
    assert found.tokens_due(1.0) == 0 and found.required(1.0) == 2
    hand_in(found, 1, 2)
    assert found.is_due(1.0) and found.waiting() == 3


def test_members_that_are_all_stale_get_tokens_at_once():
    found = members(0, 1)
    hand_in(found, 0, 1, step=6)
    assert found.tokens_due(1.0) == 2 and found.tokens_due(1.0) == 0
    assert found.required(1.0) == 2, "they compute"


def test_a_member_whose_token_was_lost_stops_no_update_and_gets_another():
    found = members(0, 1, 2)
    hand_in(found, 0, 1, 2)
    found.updated(8, 1.0)
    for name in (1, 2):
        found.hear(Report(name, 1, 8, 1, 1), 2.0)
        hand_in(found, name, step=8, count=2, now=2.0)
    assert not found.is_due(2.0) and found.is_due(5.0) and found.waiting() == 3


def test_the_first_update_waits_for_the_members_of_the_start_but_not_for_ever():
    found = members(0)
    hand_in(found, 0)
    assert not found.is_due(LEASE_S - 1) and found.is_due(LEASE_S)


def test_a_chief_that_lost_gradients_lets_their_members_compute_them_again():
    found = members(trusts=False)
    hand_in(found, 0, 1, 2)
    assert not found.is_due(1.0) and found.tokens_due(1.0) == 3


def test_a_member_with_several_gradients_an_update_gets_a_token_for_each():
    found = members(0, 1, aggregate=4, total=2)
    hand_in(found, 0)
    assert found.tokens_due(1.0) == 1
    found.hear(Report(0, 1, 7, 2, 1), 1.0)
    hand_in(found, 1)
    found.hear(Report(1, 1, 7, 2, 1), 1.0)
    assert found.is_due(1.0)


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv(ELASTIC_VARIABLE, "1")
    monkeypatch.setattr(elastic_replicas, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(elastic_replicas, "LEASE_S", 0.5)
    with LocalCluster({"ps": 2, "worker": 3}) as made:
        yield made


def replica(cluster: LocalCluster, index: int, workers: int = 2) -> Replica:
    return Replica(tf, cluster.target("worker", index), cluster.cluster_spec, index, data(3), False, workers)


@pytest.mark.slow
def test_workers_join_and_leave_and_each_update_has_the_gradients_of_those_that_are_there(cluster):
    chief, leaving, joining = (replica(cluster, index) for index in range(3))
    left = threading.Event()

    def leave():
        leaving.start()
        for _ in range(5):
            leaving.step()
        leaving.end()
        left.set()

    def join():
        left.wait(30)
        joining.run()

    together(lambda: chief.run(last_step=40), leave, join)
    # All compute the same gradient, so the losses are those of one worker, whatever the number of gradients.
    for each in (leaving, joining):
        assert each.tokens == list(range(each.tokens[0], each.tokens[-1] + 1))
        for token, loss in list(zip(each.tokens, each.losses, strict=True))[1:]:  # the first may be stale
            np.testing.assert_allclose(loss, chief.losses[chief.tokens.index(token)], rtol=1e-4)
    assert chief.tokens == list(range(1, 41)) and leaving.tokens[-1] >= 4 and joining.tokens


@pytest.mark.slow
def test_a_killed_worker_holds_the_others_for_its_lease_and_no_longer(cluster):
    chief, killed = replica(cluster, 0), replica(cluster, 1)

    def die():
        killed.start()
        killed.step()
        killed.session._creator.abandon()

    together(lambda: chief.run(last_step=20), die)
    assert chief.tokens == list(range(1, 21))
