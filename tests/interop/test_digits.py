"""The main job's program, file and launcher with real TensorFlow in every task."""

from __future__ import annotations

import pytest

from tests.e2e.example_cluster import ExampleCluster
from tests.interop.tensorflow_process import PYTHON, needs_tensorflow

pytestmark = [*needs_tensorflow, pytest.mark.slow]


@pytest.mark.parametrize(("name", "steps"), [("digits", 600), ("ring", 200)])
def test_the_same_trainer_and_cluster_file_run_on_tensorflow(tmp_path, name, steps):
    cluster = ExampleCluster(tmp_path, name, f"--train_steps={steps}", tensorflow=PYTHON)
    try:
        up = cluster.start_up("--attach")
        assert cluster.exit_status(up, 200) == 0, cluster.printed()
        assert cluster.accuracy() >= 95.0
    finally:
        cluster.end()
