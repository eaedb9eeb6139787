"""The main job's program, file and launcher with real TensorFlow in every task."""

from __future__ import annotations

import pytest

from tests.e2e.digits_cluster import DigitsCluster
from tests.interop.tensorflow_process import PYTHON, needs_tensorflow

pytestmark = [*needs_tensorflow, pytest.mark.slow]


def test_the_same_trainer_and_cluster_file_run_on_tensorflow(tmp_path):
    cluster = DigitsCluster(tmp_path, train_steps=600)
    file = cluster.folder / "cluster.yaml"
    text = file.read_text().replace("python trainer.py", f"{PYTHON} trainer.py --runtime=tensorflow")
    file.write_text(text)
    cluster.environment["PYTHONPATH"] = str(cluster.environment["PYTHONPATH"].split(":")[1])
    try:
        up = cluster.start_up("--attach")
        assert up.wait(200) == 0, cluster.printed()
        assert cluster.accuracy() >= 95.0
    finally:
        cluster.dtfctl("down", check=False)
    assert not cluster.processes()
