"""The parent's end of `runner`: a process that runs jobs, and is started again when a job ends it.

Owns the process and its pipes; knows nothing of what the jobs are about.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.tensorflow_process import PYTHON, ROOT

RUNNER = Path(__file__).with_name("runner.py")
JOB_S_MAX = 60


class Runner:
    """One runtime, "dtf" or "tensorflow.compat.v1", in a process of its own."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self.crashes = 0

    def run(self, jobs: list[Any]) -> list[dict[str, Any]]:
        """One outcome per job; that of a job that ended the process, or took too long, is an error of phase "crash"."""
        return [self.run_one(job) for job in jobs]

    def run_one(self, job: Any) -> Any:
        """The outcome of one job."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            if not select.select([process.stdout], [], [], JOB_S_MAX)[0]:
                process.kill()
            return pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            status = process.wait()
            self._process = None
            self.crashes += 1
            name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            return {"error": ("crash", name, self._last_words())}

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._complaints.close()

    def _start(self) -> subprocess.Popen[bytes]:
        ours = self._runtime == "dtf"
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
        environment["PYTHONPATH"] = str(ROOT / "runtime") if ours else ""
        self._process = subprocess.Popen(
            [sys.executable if ours else PYTHON, str(RUNNER), self._runtime],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=environment,
        )
        return self._process

    def _last_words(self) -> str:
        """The end of what the process wrote to standard error."""
        size = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, size - 1000))
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return next((line for line in reversed(lines) if "Check failed" in line), lines[-1] if lines else "")[:400]
