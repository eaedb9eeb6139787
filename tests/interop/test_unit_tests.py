"""Unit tests in the style of TensorFlow's own must pass on dtf as they do on TensorFlow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow
HERE = Path(__file__).parent


def start(*command: str) -> subprocess.Popen[str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT / "runtime")}
    words = [*command, str(HERE / "unit_test_runner.py"), str(HERE / "unit_tests")]
    environment = {**os.environ, **quiet}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_unit_tests_pass_on_both_runtimes():
    processes = {"TensorFlow": start(PYTHON), "dtf": start(sys.executable, "-m", "dtf")}
    found = {}
    for name, process in processes.items():
        output, complaints = process.communicate(timeout=450)
        assert process.returncode == 0, complaints[-4000:]
        found[name] = json.loads(output.strip().splitlines()[-1])
    failed = [f"{test} on {name}:\n{error}" for name in found for test, error in found[name].items() if error]
    assert not failed, "\n\n".join(failed)
    assert methods(found["dtf"]) == methods(found["TensorFlow"])


def methods(found: dict[str, str]) -> set[str]:
    """The tests without what a release of the library of parameters adds to their names."""
    return {re.sub(r"_test_(0_)?mode_.*", "", name) for name in found}
