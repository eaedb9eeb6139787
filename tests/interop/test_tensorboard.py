"""`dtfctl tensorboard` runs the real TensorBoard of another environment on the folder of a run that has ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import dtf as tf
from tests.e2e.page import made_up
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow
from tests.waiting import wait_until

pytestmark = needs_tensorflow


def test_tensorboard_of_another_environment_shows_the_curves_of_an_ended_run(tmp_path):
    state = tmp_path / "state"
    _, plan = made_up(state, "ended")
    writer = tf.summary.FileWriter(plan.checkpoint_folder)
    for step in range(1, 4):
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1.0 / step)]), step)
    writer.close()
    out = tmp_path / "out"
    with open(out, "w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "dtfctl", "tensorboard", "ended"],
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("DTFCTL_")},
                "DTFCTL_STATE_DIR": str(state),
                "PYTHONPATH": str(ROOT),
                "PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}",
            },
            stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=tmp_path,
        )  # fmt: skip

    def scalars():
        assert process.poll() is None, out.read_text()
        address = re.search(r"http://[^/ ]+/", out.read_text())
        if address is None:
            return None
        try:
            with urllib.request.urlopen(f"{address[0]}data/plugin/scalars/tags", timeout=20) as response:
                return json.load(response)
        except OSError:
            return None

    try:
        assert list(wait_until(scalars, "TensorBoard's answer", 120)["."]) == ["loss"]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
