"""Runs pieces of program under real TensorFlow, in a process and environment of its own.

The Python that has TensorFlow is named by DTF_TENSORFLOW_PYTHON; tests that need it are skipped where it is unset.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("DTF_TENSORFLOW_PYTHON", "")

needs_tensorflow = [
    pytest.mark.interop,
    pytest.mark.skipif(not PYTHON, reason="DTF_TENSORFLOW_PYTHON is not set"),
    pytest.mark.timeout(300),
]
"""For a module's `pytestmark`."""

_PRELUDE = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts a program; it finds tf, np and json imported and its arguments in sys.argv[1:]."""
    return subprocess.Popen(
        [PYTHON, "-c", _PRELUDE + textwrap.dedent(program), *arguments],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, *arguments: str) -> Any:
    """Runs a program to its end and returns the JSON value that its last line prints (None without output)."""
    process = start(program, *arguments)
    output, complaints = process.communicate(timeout=280)
    assert process.returncode == 0, complaints[-4000:]
    lines = output.strip().splitlines()
    return json.loads(lines[-1]) if lines else None


_SERVE = """
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


@contextlib.contextmanager
def tensorflow_server(cluster: dict[str, list[str]], job: str, index: int) -> Iterator[None]:
    """A server of TensorFlow's, from when it answers to the end of the block."""
    process = start(_SERVE, json.dumps(cluster), job, str(index))
    assert process.stdout is not None
    line = process.stdout.readline()
    if line.strip() != "ready":
        raise AssertionError(process.communicate()[1][-3000:])
    try:
        yield
    finally:
        process.kill()
        process.communicate()
