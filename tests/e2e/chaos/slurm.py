"""Kills on Slurm: tasks, steps, slurmd, whole nodes and requeues, drawn from a seed, while the known training runs.

`python -m tests.e2e.chaos.slurm --seed 1 --kills 100 --minutes 30` stops at whichever comes first, ends the training
in order and examines its state: see trainer.py and checks.py.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dtf as tf
from tests.e2e import slurm as slurm_cluster
from tests.e2e.chaos import checks
from tests.e2e.chaos.campaign import Lost
from tests.e2e.chaos.cluster import FILE, Training, kill
from tests.e2e.chaos.trainer import CHECKPOINTS, MARKS, NAMES, WRONG
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.e2e.slurm import Slurm, processes_of_node
from tests.e2e.warden import parents

NODES = 3
SLURM = f"""
host_lost_after: 15s
engine: {{slurm: {{nodes: {NODES}, spares: 1, interface: lo}}}}
jobs: {{ps: 2, worker: 2}}
"""
PATIENCE_S = 200.0
KINDS = ("task", "task", "task", "step", "step", "supervisor", "keeper", "slurmd", "requeue", "node")


class SlurmTraining(Training, CommandLine):
    """The training as a job of Slurm; `base` has its marks and checkpoints."""

    timeout_s = 180.0

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.base = folder
        text = FILE.format(security="none", python=sys.executable, folder=folder, root=ROOT) + SLURM
        CommandLine.__init__(self, folder, text)
        self.environment.update({name: slurm.environment[name] for name in ("PATH", "SLURM_CONF", "XDG_STATE_HOME")})
        (folder / MARKS).mkdir()

    def processes(self, containing: str = "") -> dict[int, str]:
        """With the tasks: they have the environment of their node, and the training's folder in their command."""
        return {**CommandLine.processes(self, containing), **_trainers(self.base)}


def _trainers(folder: Path) -> dict[int, str]:
    found = {}
    for pid in parents():
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "chaos.trainer" in command and str(folder) in command:
                found[pid] = command
    return found


class SlurmCampaign:
    """Raises Lost, or AssertionError for a wait that is too long."""

    def __init__(self, cluster: SlurmTraining, slurm: Slurm, seed: int, say: Callable[[str], None]) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster
        self._slurm = slurm
        self._rng = random.Random(seed)
        self._say = say
        self._former: dict[str, Any] | None = None

    def run(self, kills: int, until: float) -> None:
        self._cluster.run("up")
        self._goes_on(("", 0, 0))
        while sum(self.done.values()) < kills and time.monotonic() < until:
            kind = self._rng.choice(KINDS)
            if not self._strike(kind):
                continue
            self.done[kind] += 1
            # From here on, not from before: what the kill has stopped has to begin again.
            self._goes_on(self._cluster.progress())
            if kind == "node":
                # The job has lost the node for good; the next allocation has all of them.
                self._requeue()
                self._goes_on(self._cluster.progress())
            self._examine()
            self._say(f"{kind}: step {self._cluster.progress()[2]}")
        self._cluster.finish()
        self._slurm.wait_until(lambda: not self._job(), "the end of the job", PATIENCE_S)
        status = self._cluster.status()
        if status["state"] != "succeeded":
            raise Lost(f"the training has ended as {status['state']}: {status}")
        self._examine()
        if self._cluster.processes():
            raise Lost(f"left behind: {self._cluster.processes()}")

    def _job(self) -> str:
        return self._slurm.run("squeue", "-h", "-o", "%A")

    def _strike(self, kind: str) -> bool:
        """Whether there was something to kill."""
        name = f"node{self._rng.randint(1, NODES)}"
        if kind == "requeue":
            self._requeue()
            return True
        if kind == "node":
            self._slurm.kill_node(name)
            self._slurm.wait_until(lambda: self._is_down(name), "Slurm to see the loss", PATIENCE_S)
            self._slurm.start_node(name)
            if name == "node1":
                # With it went the script: Slurm keeps the job, and leaves it to its user to queue it again.
                self._requeue()
            return True
        if kind == "slurmd":
            self._slurm.kill_daemon(name)
            self._slurm.start_node(name)
            return True
        roles = self._cluster.roles()
        pids = {
            "task": [pid for role in ("chief", "ps", "worker") for pid in roles.get(role, ())],
            "supervisor": roles.get("supervisor", []),
            "keeper": roles.get("keeper", []),
            "step": self._steps(),
        }[kind]
        return bool(pids) and kill(self._rng.choice(pids))

    def _states(self) -> str:
        return self._slurm.run("squeue", "-h", "-o", "%T")

    def _is_down(self, name: str) -> bool:
        return self._slurm.run("sinfo", "-h", "-N", "-n", name, "-o", "%T").startswith("down")

    def _requeue(self) -> None:
        """Returns when the job runs again. While it ends, or waits, Slurm queues it once only."""
        job = self._job()
        self._slurm.wait_until(lambda: self._states() == "RUNNING", "the job", PATIENCE_S)
        restarts = self._restarts(job)
        self._slurm.run("scontrol", "requeue", job)
        self._slurm.wait_until(lambda: self._restarts(job) != restarts, "the requeue", PATIENCE_S)
        self._slurm.wait_until(lambda: self._states() == "RUNNING", "the job again", PATIENCE_S)

    def _restarts(self, job: str) -> str:
        words = self._slurm.run("scontrol", "show", "job", job).split()
        return next(word for word in words if word.startswith("Restarts="))

    def _steps(self) -> list[int]:
        """The srun of each pipe, and of each keeper's own step."""
        known = parents()
        conf = self._slurm.environment["SLURM_CONF"]
        found = {pid for number in range(1, NODES + 1) for pid in processes_of_node(f"node{number}", conf)}
        return [pid for pid in found & set(known) if _comm(pid) == "srun"]

    def _goes_on(self, before: tuple[str, int, int]) -> None:
        def is_on() -> bool:
            now = self._cluster.progress()
            return now[2] >= before[2] + 3 if now[0] == before[0] else now[2] >= 3 and now[1] >= 5

        self._slurm.wait_until(is_on, "the training to go on", PATIENCE_S)

    def _examine(self) -> None:
        if (self._cluster.base / WRONG).exists():
            raise Lost("the trainer saw a wrong state")
        folder = str(self._cluster.base / CHECKPOINTS)
        with contextlib.suppress(tf.errors.OpError):  # one may be removed while it is read
            latest = tf.train.latest_checkpoint(folder)
            if latest is not None:
                reader = tf.train.NewCheckpointReader(latest)
                values = {name: reader.get_tensor(name) for name in NAMES}
                if complaints := checks.of_checkpoint(values, self._former):
                    raise Lost("; ".join(complaints))
                self._former = values


def _comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills what runs of a known training on Slurm.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    if slurm_cluster.why_not():
        parser.error(slurm_cluster.why_not())
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="dtf-chaos-slurm-"))
    is_lost = False

    def say(words: str) -> None:
        print(f"{time.monotonic() - begun:7.1f}s {words}", flush=True)

    with Slurm(folder, NODES) as slurm:
        cluster = SlurmTraining(folder, slurm)
        campaign = SlurmCampaign(cluster, slurm, options.seed, say)
        try:
            campaign.run(options.kills, begun + options.minutes * 60)
        except (Lost, AssertionError) as loss:
            is_lost = True
            say(f"LOST: {loss}\n{cluster.run('events', status=None).stdout[-3000:]}")
        say(f"{sum(campaign.done.values())} kills: {dict(campaign.done)}; step {cluster.progress()[2]}")
    if not is_lost:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(is_lost)


if __name__ == "__main__":
    main()
