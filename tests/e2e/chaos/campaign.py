"""Kills drawn from a seed, at moments that are events: what each round does, and whether all is well after it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dtf as tf
from tests.e2e.chaos import checks
from tests.e2e.chaos.cluster import LocalTraining, RemoteTraining, kill, variables_of
from tests.e2e.chaos.trainer import CHECKPOINTS, MARKS, NAMES, STEP, WRONG

Cluster = LocalTraining | RemoteTraining

PATIENCE_S = 150.0
END_PATIENCE_S = 80.0
"""For the end of all processes: a connection of ssh's that nobody uses stays for a minute."""

MOMENT_S_MAX = 5.0
"""A moment that has not come by then may never come."""

KILLS_AT_ONCE_MAX = 5
HOSTS_UNUSABLE = 8
"""The exit status of `up` that says which host could not be reached or used, and that nothing was begun."""

TASKS = ("chief", "ps", "worker")
VICTIMS = (
    *(("chief",), ("ps",), ("worker",), ("supervisor",), ("keeper",), ("shim",), ("recorder",), ("command",)),
    *(("supervisor", "keeper"), ("keeper", "shim"), ("shim", "ps"), ("supervisor", "chief"), ("keeper", "worker")),
    *(("keeper", "shim", "ps"), ("supervisor", "keeper", "shim", "recorder")),
)
REMOTE_VICTIMS = (("agent",), ("ssh",), ("sshd",), ("supervisor", "agent"), ("agent", "keeper"), ("sshd", "ps"))
OPERATIONS = ("nothing", "save", "scale", "restart", "stop", "down")
HAPPENINGS_MAX = {"scale": 30, "restart": 14, "stop": 8, "down": 12, "up": 16}


class Lost(Exception):
    """Something that must not be lost is."""


@dataclass
class Report:
    tried: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    runs: int = 0
    saved: int = 0

    @property
    def kills(self) -> int:
        return sum(self.tried.values())

    def __str__(self) -> str:
        def words(counts: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in counts.most_common())

        lines = [f"{self.kills} kills tried ({words(self.tried)})", f"during: {words(self.moments)}"]
        lines += [f"{self.runs} runs examined, {self.saved} steps saved, {len(self.lost)} lost", *self.lost]
        return "\n".join(lines)


class Campaign:
    """Attacks one cluster until `kills` were tried. Raises Lost at the first loss."""

    def __init__(
        self, cluster: Cluster, seed: int, kills: int, report: Report, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._cluster = cluster
        self._rng = random.Random(seed)
        self._kills = kills
        self._report = report
        self._say = say
        self._victims = VICTIMS + (REMOTE_VICTIMS if cluster.machines else ())
        self._tried = 0
        self._killed: Counter[str] = Counter()
        self._hit: set[str] = set()
        self._workers = 2
        self._former: dict[str, Any] | None = None
        self._saved = 0
        self._known: set[str] = set()
        self._arguments = ""

    def run(self) -> None:
        """A run after the other, and an orderly end of the training at last."""
        self._up()
        while self._tried < self._kills:
            operation = self._rng.choice(OPERATIONS)
            before = self._cluster.progress()
            self._hit = set()
            {
                "nothing": lambda: self._attack("nothing", None),
                "save": lambda: self._attack("save", None),
                "scale": self._scale,
                "restart": lambda: self._command("restart", self._some()),
                "stop": self._stop,
                "down": self._down_and_up,
            }[operation]()
            self._converge(operation)
            if operation in ("scale", "restart", "down") and not self._hit & {*TASKS, "shim"}:
                self._expect_nothing_trained_again(operation, before)
        self.finish()

    # -- what is done, and attacked while it is done

    def _some(self) -> str:
        return self._rng.choice(("ps", "ps:0", "ps:1", "worker:0", "worker", "*"))

    def _scale(self) -> None:
        wanted = self._rng.choice([count for count in (1, 2, 3) if count != self._workers])
        if self._command("scale", f"worker={wanted}"):
            self._workers = wanted
        else:  # the command was killed: perhaps before it was heard
            self._workers = 0

    def _stop(self) -> None:
        name = self._rng.choice(("ps:1", "worker:0", "ps"))
        self._command("stop", name)
        self._cluster.run("start", name)

    def _up(self) -> None:
        self._killed.clear()
        self._workers = 2
        if not self._command("up"):
            self._cluster.run("up")
        self._converge("up")

    def _down_and_up(self) -> None:
        if not self._command("down"):
            self._cluster.run("down")
        self._examine_end()
        hit, self._hit = self._hit, set()
        self._up()
        self._hit |= hit

    def finish(self) -> None:
        """An orderly end of the training, attacked while it lasts, and examined."""
        self._cluster.finish()
        self._attack("finish", None)
        wait_until(lambda: self._cluster.status()["state"] == "succeeded", "the end of the training")
        self._cluster.run("down", status=None)
        self._examine_end(is_finished=True)

    def _command(self, *arguments: str) -> bool:
        """Whether it came to its end."""
        self._arguments = " ".join(arguments[1:])
        command = self._cluster.start(*arguments)
        self._attack(arguments[0], command)
        try:
            status = command.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            command.kill()
            command.wait()
            raise Lost(f"dtfctl {' '.join(arguments)} does not end") from None
        if status == -signal.SIGKILL or (status == HOSTS_UNUSABLE and self._hit & {"agent", "ssh", "sshd"}):
            return False
        if status:
            raise Lost(f"dtfctl {' '.join(arguments)} ended with {status}: {self._cluster.err()[-2000:]}")
        return True

    # -- the kills

    def _attack(self, operation: str, command: subprocess.Popen[str] | None) -> None:
        rng, cluster = self._rng, self._cluster
        begun = cluster.happenings()
        there = {pid for pids in cluster.roles().values() for pid in pids}
        most = HAPPENINGS_MAX.get(operation, 0)
        # A parameter server that dies during the last save makes the chief's close fail, as it does in TensorFlow.
        possible = [each for each in self._victims if operation != "finish" or "ps" not in each]
        drawn = sorted(
            (rng.randint(0, most), rng.choice(("happenings", "process", "happenings")), rng.choice(possible))
            for _ in range(rng.randint(2, KILLS_AT_ONCE_MAX))
        )
        for count, kind, victims in drawn:
            if self._tried >= self._kills and operation != "finish":
                return

            def is_time(count: int = count, kind: str = kind, role: str = victims[0]) -> bool:
                if operation == "save":
                    return cluster.is_saving()
                if operation in ("nothing", "finish") or (command is not None and command.poll() is not None):
                    return True
                if kind == "process" and (operation == "up" or role in TASKS):
                    return bool(set(cluster.roles().get(role, ())) - there - {command.pid if command else 0})
                return cluster.happenings() - begun >= count

            deadline = time.monotonic() + MOMENT_S_MAX
            while not is_time() and time.monotonic() < deadline:
                time.sleep(0.002)
            self._kill(operation, victims, command)

    def _kill(self, operation: str, victims: tuple[str, ...], command: subprocess.Popen[str] | None) -> None:
        roles = self._cluster.roles()
        if command is not None and command.poll() is None:
            roles["command"] = [command.pid]
        chosen = [(role, self._rng.choice(roles[role])) for role in victims if roles.get(role)]
        names = {pid: variables_of(pid).get("DTFCTL_TASK", "") for _, pid in chosen}
        done = [(role, pid) for role, pid in chosen if kill(pid)]
        for role, pid in done:
            self._hit.add(role)
            self._killed[names[pid]] += 1
            self._report.tried[role] += 1
        self._tried += len(done)
        if done:
            self._report.moments[operation] += len(done)
            self._say(f"{operation}: " + ", ".join(f"{role} {names[pid]} (pid {pid})" for role, pid in done))

    # -- whether all is well

    def _converge(self, operation: str) -> None:
        """The cluster is as it is wanted, and trains."""
        cluster = self._cluster

        def is_well() -> bool:
            status = cluster.status()
            names = [task["name"] for task in status["tasks"]]
            workers = sum(name.startswith("worker") for name in names)
            return (
                status["state"] == "running"
                and all(task["ready"] for task in status["tasks"])
                and self._workers in (0, workers)
            )

        wait_until(is_well, f"all tasks to be ready after {operation}", 0.2)
        name, _, step = cluster.progress()

        def goes_on() -> bool:
            now = cluster.progress()
            return now[2] >= step + 3 if now[0] == name else now[2] >= 3 and now[1] >= 5

        wait_until(goes_on, f"the training to go on after {operation}")
        self._workers = self._workers or sum(
            task["name"].startswith("worker") for task in cluster.status()["tasks"]
        )
        self._examine_checkpoint()

    def _expect_nothing_trained_again(self, operation: str, before: tuple[str, int, int]) -> None:
        """The chief saves at a planned end: no step is lost by it."""
        present = self._cluster.progress()[0][-8:]

        def begun() -> list[int]:
            matches = [checks.LINE.fullmatch(line) for text in self._chief_logs() for line in text.splitlines()]
            return [int(match[4]) for match in matches if match and match[3] == "from" and match[1] == present]

        # A log of another host comes over a connection that may have been cut.
        wait_until(begun, "the log of the chief")
        if begun()[-1] < before[2]:
            words = f"after {operation} {self._arguments} the training goes on from step {begun()[-1]}"
            raise Lost(f"{words}; it had reached {before[2]}")

    def _examine_checkpoint(self) -> None:
        if (self._cluster.base / WRONG).exists():
            raise Lost("the trainer saw a wrong state")
        values = self._checkpoint()
        if values is not None:
            self._complain(checks.of_checkpoint(values, self._former))
            self._former = values
        elif self._former is not None:
            raise Lost("the checkpoints are gone")

    def _checkpoint(self) -> dict[str, Any] | None:
        """The values of the last checkpoint. One may be removed while it is read, by the chief that goes on."""
        folder = str(self._cluster.base / CHECKPOINTS)
        for _ in range(20):
            latest = tf.train.latest_checkpoint(folder)
            if latest is None:
                return None
            try:
                reader = tf.train.NewCheckpointReader(latest)
                return {name: reader.get_tensor(name) for name in NAMES}
            except tf.errors.OpError as error:
                if latest == tf.train.latest_checkpoint(folder):
                    raise Lost(f"{latest} cannot be read: {error}") from error
        raise Lost("no checkpoint stays long enough to be read")

    def _chief_logs(self) -> list[str]:
        """The logs of the chief's processes in the present run, in their order."""
        logs = list(self._run_dir().glob("logs/worker-0.*.log"))
        return [log.read_text() for log in sorted(logs, key=lambda log: int(log.name.split(".")[1]))]

    def _run_dir(self) -> Path:
        return max((self._cluster.state / "chaos" / "runs").iterdir())

    def _examine_end(self, is_finished: bool = False) -> None:
        """After `down`: nothing is left, nothing was lost, and everything was counted right."""
        cluster = self._cluster
        left = f"the end of all processes, at first {cluster.roles()}"
        wait_until(lambda: not cluster.roles(), left, patience_s=END_PATIENCE_S)
        marks = {mark.name: mark for mark in (cluster.base / MARKS).iterdir()}
        written = {name[-8:]: _count(mark) for name, mark in marks.items() if name not in self._known}
        self._known |= marks.keys()
        logs = {log.name: log.read_text() for log in self._run_dir().glob("logs/*.log")}
        self._complain(checks.of_lines(logs.values(), written), "in the files: ")
        printed = cluster.run("logs", "--no-prefix").stdout
        # Of a task that `scale` has removed the log is in its file only.
        there = tuple(task["name"].replace(":", "-") + "." for task in cluster.status()["tasks"])
        lines = sorted(line for name, text in logs.items() if name.startswith(there) for line in text.splitlines())
        if sorted(printed.splitlines()) != lines:
            raise Lost(f"dtfctl logs prints {len(printed.splitlines())} lines of {len(lines)}")
        wrong, self._saved = checks.of_chief(self._chief_logs(), self._saved)
        self._complain(wrong)
        events = [json.loads(line) for line in cluster.run("events", "-o", "json").stdout.splitlines()]
        self._complain(checks.of_history(events, self._killed))
        status = cluster.status()
        self._complain(checks.of_restarts(events, {task["name"]: task["restarts"] for task in status["tasks"]}))
        if not cluster.machines and (taken := cluster.free_addresses([task["address"] for task in status["tasks"]])):
            raise Lost(f"processes still hold {taken}")
        self._examine_checkpoint()
        self._examine_files(is_finished)
        self._report.runs += 1
        self._report.saved = max(self._report.saved, self._saved)

    def _examine_files(self, is_finished: bool) -> None:
        run_dir = self._run_dir()
        odd = [path for path in run_dir.rglob("*") if path.name.endswith((".tmp", ".new", ".pem", ".key"))]
        if odd:
            raise Lost(f"files are left: {odd}")
        for host in self._cluster.machines.values():
            if left := list((host.home / ".local/state/dtfctl/hosts").glob("*")):
                raise Lost(f"files are left on {host.name}: {left}")
        if is_finished:
            if self._cluster.is_saving():
                raise Lost(f"temporary files are left: {self._cluster.checkpoint_files()}")
            values = self._checkpoint()
            assert values is not None
            reached = self._cluster.progress()[2]
            if int(values[STEP]) < reached:
                raise Lost(f"the training ended at step {reached}, and {values[STEP]} is saved")

    def _complain(self, wrong: list[str], where: str = "") -> None:
        if wrong:
            raise Lost(where + "; ".join(wrong[:5]))


def describe(cluster: Cluster) -> str:
    """What helps to understand a loss."""
    parts = [f"roles: {cluster.roles()}"]
    for arguments in (("status",), ("events", "-n", "60"), ("logs", "-n", "60", "--grep", "^[^@]|from|saved")):
        parts.append(cluster.run(*arguments, status=None).stdout)
    log = cluster.state / "chaos" / "daemon.log"
    parts.append(log.read_text()[-3000:] if log.exists() else "")
    return "\n".join(parts)


def wait_until(
    condition: Callable[[], object], what: str, pause_s: float = 0.05, patience_s: float = PATIENCE_S
) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise Lost(f"waited {patience_s:g} s for {what}")
        time.sleep(pause_s)


def _count(mark: Path) -> int:
    words = mark.read_text().split()
    return int(words[0]) if words else 0
