"""Examples that are over soon: each is brought up, must end well, and must have learned what there is to learn. The
page names no trouble of a run in which nothing was killed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.e2e.example_cluster import ExampleCluster


@pytest.fixture
def bring_up(tmp_path):
    """Runs an example to its end."""
    made: list[ExampleCluster] = []

    def run(
        name: str, flags: str = "", victim: str = "", after_step: int = 0, options: Sequence[str] = ()
    ) -> ExampleCluster:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        cluster = ExampleCluster(folder, name, flags)
        made.append(cluster)
        if victim:
            up = cluster.start_up("--attach", *options)
            cluster.wait_for_step(after_step)
            cluster.kill(victim)
            assert cluster.exit_status(up, 100) == 0, cluster.printed()
        else:
            assert cluster.run_well(*options) == 0, cluster.printed()
        assert cluster.status()["state"] == "succeeded"
        assert not victim or cluster.task(victim)["restarts"] >= 1
        return cluster

    yield run
    for cluster in made:
        cluster.end()


def test_hello_must_greet(bring_up):
    assert "worker:0 | Hello, distributed TensorFlow!" in bring_up("hello").printed()


@pytest.mark.slow
def test_words_that_occur_together_must_come_close_to_each_other(bring_up):
    cluster = bring_up("embedding", "--train_steps=400")
    assert cluster.figure("neighbours of the same group") > 95


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["--partitioner=axis_size --optimizer=adam", "--partitioner=min_max --optimizer=ftrl"]
)
def test_so_they_must_with_other_pieces_and_optimizers(bring_up, flags):
    assert bring_up("embedding", flags).figure("neighbours of the same group") > 95


@pytest.mark.slow
def test_a_killed_ps_must_cost_no_row(bring_up):
    cluster = bring_up("embedding", "--save_steps=50", "ps:1", 100)
    assert cluster.figure("neighbours of the same group") > 95


@pytest.mark.slow
def test_a_population_must_learn_to_balance_the_pole(bring_up):
    assert bring_up("evolution", "--generations=20").figure("the parent lasts, of 200 steps") > 190


@pytest.mark.slow
def test_a_killed_worker_must_not_end_the_evolution(bring_up):
    cluster = bring_up("evolution", victim="worker:1", after_step=10)
    assert cluster.figure("the parent lasts, of 200 steps") > 190


@pytest.mark.slow
def test_layers_on_different_tasks_must_train_the_digits(bring_up):
    assert bring_up("model-parallel", "--train_steps=40 --width=256").accuracy() > 90


@pytest.mark.slow
def test_any_number_of_stages_and_micro_batches_must_give_the_same_losses(bring_up):
    runs = []
    for stages, micro_batches in ((1, 1), (2, 4), (3, 5)):
        flags = f"--train_steps=11 --log_steps=1 --width=128 --micro_batches={micro_batches}"
        cluster = bring_up("model-parallel", flags, options=["--set", f"jobs.stage={stages}"])
        runs.append([float(loss) for loss in re.findall(r"step \d+: loss ([\d.]+)", cluster.printed())])
    # Later, rounding tells.
    assert all(run == pytest.approx(runs[0], rel=1e-4) and len(run) == 11 for run in runs)


@pytest.mark.slow
def test_a_killed_stage_must_come_back_with_its_layers(bring_up):
    cluster = bring_up("model-parallel", "--width=256 --save_steps=25", "stage:1", 50)
    assert cluster.accuracy() > 96
