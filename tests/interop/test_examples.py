"""The examples with real TensorFlow in every task: the same programs, files and launcher, and the same numbers."""

from __future__ import annotations

import re

import pytest

from tests.e2e.example_cluster import ExampleCluster
from tests.interop.tensorflow_process import PYTHON, needs_tensorflow

pytestmark = [*needs_tensorflow, pytest.mark.slow]

EXAMPLES = {
    # One worker where TensorFlow's second one would look only every 30 s whether the first is ready.
    "digits-sync": ("--train_steps=12 --log_steps=1", ["jobs.worker=1", "jobs.ps=1"]),
    "in-graph": ("--train_steps=12 --log_steps=1", ["jobs.worker=2", "jobs.ps=1"]),
    "embedding": ("--train_steps=12 --log_steps=1", ["jobs.worker=1"]),
    "model-parallel": ("--train_steps=8 --log_steps=1 --width=64", []),
    "evolution": ("--generations=4", []),
}
FIGURE = re.compile(r"(?:step|generation) \d+: .*?([\d.]+)(?: of 200 steps)?\s*$", re.MULTILINE)


def figures(folder, name, python):
    """What each step printed."""
    flags, settings = EXAMPLES[name]
    folder.mkdir()
    cluster = ExampleCluster(folder, name, flags, tensorflow=python)
    try:
        up = cluster.start_up("--attach", *(word for setting in settings for word in ("--set", setting)))
        assert cluster.exit_status(up, 200) == 0, cluster.printed()
    finally:
        cluster.end()
    lines = [line for line in cluster.printed().splitlines() if "| step " in line or "| generation " in line]
    return [float(FIGURE.search(line)[1]) for line in lines]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_the_same_figures_on_both(tmp_path, name):
    ours, theirs = figures(tmp_path / "dtf", name, ""), figures(tmp_path / "tensorflow", name, PYTHON)
    assert len(ours) == len(theirs) >= 4
    assert ours == pytest.approx(theirs, rel=1e-4)
