"""Drives `dtfctl` on a private copy of one of clusters/, as a user at a shell would."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.troubles import TroubleNotes
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent


class ExampleCluster:
    """One copy of an example with a state folder of its own.

    cluster = ExampleCluster(tmp_path, "digits", "--train_steps=600")
    up = cluster.start_up("--attach")
    cluster.wait_for_step(300)
    cluster.kill("ps:0")
    assert up.wait() == 0

    Args:
      folder: where to put the copy.
      name: of the folder below clusters/.
      flags: for the trainer, beside those of its cluster file.
      tensorflow: a Python that has TensorFlow, to run all tasks on that instead of dtf.
    """

    def __init__(self, folder: Path, name: str, flags: str = "", tensorflow: str = "") -> None:
        self.folder = folder / name
        ignored = shutil.ignore_patterns("checkpoints*", "logs", "__pycache__")
        shutil.copytree(ROOT / "clusters" / name, self.folder, ignore=ignored)
        file = self.folder / "cluster.yaml"
        python = f"{tensorflow} trainer.py --runtime=tensorflow" if tensorflow else "python trainer.py"
        file.write_text(file.read_text().replace("program: python trainer.py", f"program: {python} {flags}"))
        self.environment = {
            **os.environ,
            "DTFCTL_STATE_DIR": str(folder / "state"),
            "PYTHONPATH": str(ROOT) if tensorflow else f"{ROOT / 'runtime'}:{ROOT}",
        }
        self.output = folder / "up.txt"
        self._started: list[subprocess.Popen[bytes]] = []

    def dtfctl(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs one command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "dtfctl", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert not check or done.returncode == 0, done.stdout
        return done

    def start_up(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts `dtfctl up` in a session of its own; its output goes to the file `output`."""
        with open(self.output, "ab") as file:
            up = subprocess.Popen(
                [sys.executable, "-m", "dtfctl", "up", "cluster.yaml", *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(up)
        return up

    def exit_status(self, up: subprocess.Popen[bytes], timeout_s: float) -> int:
        """That of an `up`; fails with all that it printed when it does not end."""
        try:
            return up.wait(timeout_s)
        except subprocess.TimeoutExpired:
            told = self.dtfctl("status", check=False).stdout
            raise AssertionError(f"up has not ended after {timeout_s} s\n{told}\n{self.printed()}") from None

    def run_well(self, *arguments: str, timeout_s: float = 100) -> int:
        """The exit status of `up --attach`, in which the page would name no trouble."""
        with TroubleNotes(Path(self.environment["DTFCTL_STATE_DIR"]) / self.folder.name) as notes:
            status = self.exit_status(self.start_up("--attach", *arguments), timeout_s)
        assert notes.found == {}, f"{notes.found}\n{self.printed()}"
        return status

    def end(self) -> None:
        """Takes everything down. What is left then is an error; of a test that failed nothing is left either."""
        self.dtfctl("down", check=False)
        for up in self._started:
            try:
                up.wait(10)
            except subprocess.TimeoutExpired:
                up.kill()
                up.wait()
                raise
        assert not self.processes()

    def status(self) -> dict[str, Any]:
        """The document of `status -o json`, {} where there is none."""
        done = subprocess.run(
            [sys.executable, "-m", "dtfctl", "status", "-o", "json"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=60,
        )
        return json.loads(done.stdout) if done.stdout.startswith("{") else {}

    def task(self, name: str) -> dict[str, Any]:
        """One task of the status document."""
        return next((task for task in self.status().get("tasks", []) if task["name"] == name), {})

    def checkpoint_step(self) -> int:
        """The global step of the newest complete checkpoint, 0 without one."""
        state = self.folder / "checkpoints" / "checkpoint"
        match = re.search(r'model\.ckpt-(\d+)"', state.read_text()) if state.exists() else None
        return int(match[1]) if match else 0

    def wait_for_step(self, step: int) -> None:
        """Returns when a checkpoint of `step` or later is complete."""
        wait_until(lambda: self.checkpoint_step() >= step, f"a checkpoint of step {step}\n{self.printed()}")

    def kill(self, *names: str) -> None:
        """kill -9 of the tasks' processes, all at once: what one death brings about comes after the others."""
        processes = {task["name"]: task["pid"] for task in self.status().get("tasks", [])}
        for name in names:
            os.kill(processes[name], signal.SIGKILL)

    def printed(self) -> str:
        """What `up` has printed so far."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def figure(self, name: str) -> float:
        """The number that the chief printed last after `name` and a colon."""
        found = re.findall(rf"{re.escape(name)}: (-?[\d.]+)", self.printed())
        assert found, self.printed()
        return float(found[-1])

    def accuracy(self) -> float:
        """The held-out accuracy that the chief printed last, in percent."""
        return self.figure("held-out accuracy")

    def processes(self) -> list[str]:
        """Command lines of all processes whose environment names this state folder, this test's own aside."""
        token = f"DTFCTL_STATE_DIR={self.environment['DTFCTL_STATE_DIR']}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if token in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return [line for line in found if line]
