"""The embedding example: tables in pieces on several ps must learn what the made-up language is known to mean."""

from __future__ import annotations

import pytest

from tests.e2e.example_cluster import ExampleCluster


def learned(tmp_path, flags: str, victim: str = "") -> float:
    """The percentage of neighbours that are of the word's own group."""
    cluster = ExampleCluster(tmp_path, "embedding", flags)
    try:
        up = cluster.start_up("--attach")
        if victim:
            cluster.wait_for_step(100)
            cluster.kill(victim)
        assert up.wait(100) == 0, cluster.printed()
        assert not victim or cluster.task(victim)["restarts"] >= 1
    finally:
        cluster.dtfctl("down", check=False)
    assert not cluster.processes()
    return cluster.figure("neighbours of the same group")


def test_words_that_occur_together_must_come_close_to_each_other(tmp_path):
    assert learned(tmp_path, "--train_steps=350") > 90


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["--partitioner=axis_size --optimizer=adam --train_steps=300", "--partitioner=min_max --optimizer=ftrl"]
)
def test_so_they_must_with_other_pieces_and_optimizers(tmp_path, flags):
    assert learned(tmp_path, flags) > 95


@pytest.mark.slow
def test_a_killed_ps_must_cost_no_row(tmp_path):
    assert learned(tmp_path, "--save_steps=50", "ps:1") > 95
