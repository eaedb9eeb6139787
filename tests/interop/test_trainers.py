"""Programs of strangers that import tensorflow must have the same losses on dtf and on TensorFlow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow
HERE = Path(__file__).parent


NUMBER = re.compile(r"[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+|nan|inf)")


def start(*command: str, runner: str = "trainer_runner.py", folder: str = "trainers") -> subprocess.Popen[str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT / "runtime")}
    quiet |= {"TF_USE_LEGACY_KERAS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
    words = [*command, str(HERE / runner), str(HERE / folder)]
    environment = {**os.environ, **quiet}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_trainers_in_many_styles_have_the_same_losses():
    results = []
    for process in [start(PYTHON), start(sys.executable, "-m", "dtf")]:
        output, complaints = process.communicate(timeout=280)
        assert process.returncode == 0, complaints[-4000:]
        results.append(json.loads(output.strip().splitlines()[-1]))
    theirs, ours = results
    assert theirs.keys() == ours.keys() and len(ours) == 23
    for name, losses in theirs.items():
        assert len(losses) >= 5 and np.isfinite(losses).all()
        np.testing.assert_allclose(ours[name], losses, rtol=2e-3, atol=2e-4, err_msg=name)


def test_whole_scripts_of_strangers_print_the_same_figures():
    results = []
    for command in [(PYTHON,), (sys.executable, "-m", "dtf")]:
        process = start(*command, runner="stranger_runner.py", folder="strangers")
        output, complaints = process.communicate(timeout=280)
        assert process.returncode == 0, complaints[-4000:]
        results.append(json.loads(output.strip().splitlines()[-1]))
    theirs, ours = results
    assert theirs.keys() == ours.keys() and len(ours) == 11
    for name, text in theirs.items():
        figures, expected = (np.array(NUMBER.findall(each), float) for each in (ours[name], text))
        assert len(figures) == len(expected) >= 10, f"{name}:\n{ours[name]}\n{text}"
        assert np.isfinite(expected).all(), name
        np.testing.assert_allclose(figures, expected, rtol=3e-3, atol=3e-4, err_msg=name)
