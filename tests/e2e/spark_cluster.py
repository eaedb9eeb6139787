"""A standalone Spark of a master and two workers on this machine, one for all tests of a process.

DTF_SPARK_PYTHON names a Python that has pyspark, where the tests' own has none. Java must be in PATH.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

from tests.ports import free_ports
from tests.waiting import wait_until

PYTHON = os.environ.get("DTF_SPARK_PYTHON") or sys.executable

START_S = 240.0
CORES = 2
"""Of each of the two workers."""

_HOME = "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('pyspark').origin))"


@cache
def why_not() -> str:
    """Why there can be no Spark here; "" where there can."""
    if not _home():
        return f"{PYTHON} has no pyspark (pip install pyspark, and name that Python in DTF_SPARK_PYTHON)"
    return "" if shutil.which("java") else "no java (apt-get install openjdk-17-jre-headless)"


@cache
def _home() -> str:
    try:
        done = subprocess.run([PYTHON, "-c", _HOME], capture_output=True, text=True, timeout=START_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


class Spark:
    """`master` is the URL of its master."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="spark-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        port, page = free_ports(2)
        self.master = f"spark://127.0.0.1:{port}"
        self._page = f"http://127.0.0.1:{page}/json/"
        self._start("master.Master", "--port", str(port), "--webui-port", str(page))
        wait_until(lambda: self._state() is not None, "Spark's master", START_S)
        for number in range(2):
            place = ("--cores", str(CORES), "--memory", "4g", "--webui-port", "0")
            self._start("worker.Worker", self.master, *place, "--work-dir", str(self._folder / f"w{number}"))
        wait_until(lambda: len((self._state() or {}).get("workers", ())) == 2, "Spark's workers", START_S)

    def cores_used(self) -> int:
        """By applications, of both workers."""
        state = self._state()
        assert state is not None
        return int(state["coresused"])

    def executors(self) -> list[int]:
        """The pids of all executors."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdigit() else ""
                if "CoarseGrainedExecutorBackend" in words and str(self._folder) in os.readlink(entry / "cwd"):
                    found.append(int(entry.name))
        return sorted(found)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, name: str, *arguments: str) -> None:
        own = {"SPARK_HOME": _home(), "SPARK_DAEMON_MEMORY": "256m", "XDG_STATE_HOME": str(self._folder / "state")}
        with open(self._folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [f"{_home()}/bin/spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments],
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)

    def _state(self) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(self._page, timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None


@cache
def sockets() -> Path:
    """Where tests share an application. It ends after a minute without use."""
    folder = Path(tempfile.mkdtemp(prefix="spark-sockets-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def shared() -> Spark:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = Spark()
    atexit.register(spark.close)
    return spark
