"""Programs that import tensorflow must run as clusters on dtf: the example, and each style of the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.example_cluster import ExampleCluster

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "runtime" / "bringing-a-tf1-trainer.md"
EXAMPLES = dict(re.findall(r"<!-- example: ([\w-]+) -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL))


def test_the_page_has_an_example_of_each_style():
    assert list(EXAMPLES) == ["flags", "tf-config", "estimator", "supervisor", "slim"]


@pytest.mark.slow
def test_a_plain_trainer_must_train_on_dtf(tmp_path):
    cluster = ExampleCluster(tmp_path, "tensorflow-trainer")
    try:
        assert cluster.run_well() == 0, cluster.printed()
        printed = cluster.printed()
        assert "worker:0 | dtf: import tensorflow gives dtf" in printed
        assert cluster.figure("held-out accuracy") > 95
    finally:
        cluster.end()


@pytest.mark.slow
@pytest.mark.parametrize("style", EXAMPLES)
def test_each_style_must_run_from_what_init_writes(style, tmp_path):
    (tmp_path / "trainer.py").write_text(EXAMPLES[style])
    environment = {
        **os.environ, "DTFCTL_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": f"{ROOT / 'runtime'}:{ROOT}"
    }  # fmt: skip

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments], cwd=tmp_path, env=environment, text=True, timeout=110,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    check = run("dtf.check", "trainer.py")
    assert check.returncode == 0, check.stdout
    assert run("dtfctl", "init", "trainer.py").returncode == 0
    assert run("dtfctl", "validate").returncode == 0
    try:
        up = run("dtfctl", "up", "--attach")
        assert up.returncode == 0, up.stdout
        assert "w is near 3: True" in up.stdout
    finally:
        run("dtfctl", "down")
