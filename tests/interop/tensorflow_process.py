"""Runs pieces of program under real TensorFlow, in a process and environment of its own.

The Python that has TensorFlow is named by DTF_TENSORFLOW_PYTHON; tests that need it are skipped where it is unset.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
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


def start(program: str, *arguments: str, complaints: Any = subprocess.PIPE) -> subprocess.Popen[str]:
    """Starts a program; it finds tf, np and json imported and its arguments in sys.argv[1:].

    `complaints` is where its standard error goes.
    """
    return subprocess.Popen(
        [PYTHON, "-c", _PRELUDE + textwrap.dedent(program), *arguments],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
    )


def run(program: str, *arguments: str) -> Any:
    """Runs a program to its end and returns the JSON value that its last line prints (None without output)."""
    process = start(program, *arguments)
    output, complaints = process.communicate(timeout=280)
    assert process.returncode == 0, complaints[-4000:]
    lines = output.strip().splitlines()
    return json.loads(lines[-1]) if lines else None


_RUN_ONE_AFTER_ANOTHER = """
import contextlib, io, textwrap, traceback

for line in sys.stdin:
    program, sys.argv[1:] = json.loads(line)
    printed = io.StringIO()
    # What a program leaves in `kept` is there for those after it.
    names = {"tf": tf, "np": np, "json": json, "sys": sys, "kept": globals().setdefault("kept", {})}
    try:
        with contextlib.redirect_stdout(printed), tf.Graph().as_default():
            exec(textwrap.dedent(program), names)
        answer = {"printed": printed.getvalue()}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
import os
os._exit(0)
"""


class TensorFlowPrograms:
    """One process that runs program after program, each in a new graph: TensorFlow is imported only once."""

    def __init__(self) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self._process = start(_RUN_ONE_AFTER_ANOTHER, complaints=self._complaints)

    def run(self, program: str, *arguments: str) -> Any:
        """Runs a program to its end and returns the JSON value that its last line prints (None without output)."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([program, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._complaints.seek(0)
            raise AssertionError(self._complaints.read()[-4000:].decode(errors="replace"))
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        lines = answer["printed"].strip().splitlines()
        return json.loads(lines[-1]) if lines else None

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._complaints.close()


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


_SERVE_SEVERAL = """
servers = [tf.train.Server(*task) for task in json.loads(sys.argv[1])]
print("ready", flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


@contextlib.contextmanager
def tensorflow_servers(tasks: Sequence[tuple[dict[str, list[str]], str, int]]) -> Iterator[None]:
    """Servers of TensorFlow's for (cluster, job, index), all in one process."""
    process = start(_SERVE_SEVERAL, json.dumps(tasks))
    assert process.stdout is not None
    line = process.stdout.readline()
    if line.strip() != "ready":
        raise AssertionError(process.communicate()[1][-3000:])
    try:
        yield
    finally:
        process.kill()
        process.communicate()
