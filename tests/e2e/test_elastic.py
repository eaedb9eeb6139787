"""The example of a work queue: each record must count exactly as often as asked, whatever is killed."""

from __future__ import annotations

import pytest

from tests.e2e.example_cluster import ExampleCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COUNTED = "records counted 2 times: 2000 of 2000"


@pytest.fixture
def cluster(tmp_path):
    made = ExampleCluster(tmp_path, "elastic", "--step_s=0.03 --lease_s=3")
    yield made
    made.end()


@pytest.mark.parametrize("victims", [("worker:1", "worker:2"), ("worker:0", "ps:0", "worker:1")], ids="-".join)
def test_killed_tasks_must_neither_lose_nor_repeat_a_record(cluster, victims):
    up = cluster.start_up("--attach")
    for number, victim in enumerate(victims):
        cluster.wait_for_step(60 + 80 * number)
        cluster.kill(victim)
    assert cluster.exit_status(up, 80) == 0, cluster.printed()
    assert COUNTED in cluster.printed()
    assert all(cluster.task(victim)["restarts"] >= 1 for victim in victims)
