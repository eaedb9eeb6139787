"""A Slurm cluster of several nodes on this machine: real slurmctld and slurmd on loopback, without munge, as any user.

All nodes share one address and one file system; a node's name is known by SLURMD_NODENAME alone.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.warden import Warden, parents
from tests.ports import free_ports

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
TOOLS = ("slurmctld", "slurmd", "sinfo", "sbatch", "srun", "salloc", "scancel", "scontrol", "squeue")
START_S = 60.0
ATTEMPTS = 3

CONF = """\
ClusterName=test
{site}
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
GresTypes=gpu
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=0
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=5
SlurmdTimeout=10
MessageTimeout=20
KillWait=5
JobRequeue=1
SlurmdParameters=config_overrides
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=main Nodes=node[1-{count}] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=120
PartitionName=urgent Nodes=node[1-{count}] MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
"""

NODE = "NodeName=node{number} {place} Port={port} CPUs=8 RealMemory=4000 Gres=gpu:4"
LOOPBACK = """\
SlurmctldHost=localhost(127.0.0.1)
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
"""
COMMAND = """\
#!/bin/sh
if [ -e "{folder}/cut-$SLURMD_NODENAME" ]; then
    echo "{name}: error: Unable to contact slurm controller (connect failure)" >&2
    exit 1
fi
exec {command} "$@"
"""
"""On a node that was cut off the controller does not answer."""

GPUS = ("null", "zero", "full", "random")
"""Devices that every machine has stand for each node's GPUs."""


def why_not() -> str:
    """Why there can be no Slurm here; "" where there can."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]
    return f"Debian's slurm-wlm is not installed ({', '.join(missing)})" if missing else ""


class Slurm:
    """`with Slurm(tmp_path, 4) as slurm:` gives node1 to node4, idle. `environment` is that of Slurm's users.

    At the end nothing is left of the daemons, of their steps, and of processes whose environment names `folder`.
    """

    prefix: tuple[str, ...] = ()
    """What comes before each command of a user."""
    attempts = ATTEMPTS

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder / "slurm"
        self.count = count
        self.environment = {
            **os.environ,
            "PATH": f"{self.folder}/commands:{PATH}",
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "XDG_STATE_HOME": str(folder / "home"),
        }
        self._log = self.folder / "log" / "daemons"
        self._warden: Warden | None = None
        self._daemons: dict[str, int] = {}

    def __enter__(self) -> Slurm:
        spools = [f"spool/node{number}" for number in range(1, self.count + 1)]
        for room in ("state", "run", "log", "commands", *spools):
            (self.folder / room).mkdir(parents=True)
        for name in ("squeue", "srun"):
            command = self.folder / "commands" / name
            command.write_text(COMMAND.format(folder=self.folder, name=name, command=shutil.which(name, path=PATH)))
            command.chmod(0o755)
        for attempt in range(self.attempts):
            try:
                self._start_daemons()
                self.wait_until(self._is_idle, f"{self.count} idle nodes", START_S)
                break
            except BaseException as error:
                self._stop_daemons()
                # Another process may have taken a port meanwhile.
                if not isinstance(error, AssertionError) or attempt == self.attempts - 1:
                    raise
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            with contextlib.suppress(subprocess.SubprocessError, AssertionError):
                self.end_all()
        finally:
            self._stop_daemons()

    def run(self, *command: str, check: bool = True) -> str:
        line = (*self.prefix, *command)
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=120)
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def state_of(self, name: str) -> str:
        """Slurm's word for the state of a node; a node that does not answer has an asterisk."""
        return self.run("sinfo", "-h", "-p", "main", "-n", name, "-o", "%T")

    def allocate(self, nodes: int) -> str:
        """The id of a job with so many nodes that runs nothing."""
        words = self.run("sbatch", "--parsable", f"-N{nodes}", "--no-kill", "-o", "/dev/null", "--wrap", "sleep 100000")
        self.wait_until(lambda: self.run("squeue", "-h", "-j", words, "-o", "%T") == "RUNNING", "the allocation")
        return words

    def start_node(self, name: str) -> None:
        (self.folder / f"cut-{name}").unlink(missing_ok=True)
        assert self._warden is not None
        conf = self.environment["SLURM_CONF"]
        self._daemons[name] = self._warden.start("slurmd", "-D", "-N", name, "-f", conf)

    def kill_daemon(self, name: str) -> None:
        """SIGKILL to the slurmd of a node; its steps go on."""
        kill(self._daemons[name])

    def kill_node(self, name: str) -> None:
        """SIGKILL to the slurmd of a node, its steps and all that runs in them, as a power failure does."""
        kill(self._daemons[name])
        while found := processes_of_node(name, self.environment["SLURM_CONF"]):
            for pid in found:
                kill(pid)
            time.sleep(0.02)

    def cut_node(self, name: str) -> None:
        """Nothing is heard of the node any more, nor there of others; what runs on it goes on."""
        (self.folder / f"cut-{name}").touch()
        stop(self._daemons[name])
        conf = self.environment["SLURM_CONF"]
        for pid in (*steps_of_node(name, conf), *clients_of_node(name, conf)):
            stop(pid)

    def end_all(self) -> None:
        """Ends all jobs, and returns when they have gone."""
        if self.run("squeue", "-h", "-o", "%A", check=False):
            self.run("scancel", "--user", getpass.getuser(), check=False)
            self.wait_until(lambda: not self.run("squeue", "-h", "-o", "%A", check=False), "the end of all jobs")

    def wait_until(self, condition: Any, what: str, timeout_s: float = 120.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (value := condition()):
            assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}; the logs are in {self.folder}/log"
            time.sleep(0.1)
        return value

    def _is_idle(self) -> bool:
        return self.run("sinfo", "-h", "-o", "%D %T", check=False) == f"{self.count} idle"

    def _start_daemons(self) -> None:
        self._warden = Warden(self.folder.parent, self.environment, self._log)
        self._write_conf()
        self._start_controller()
        for number in range(1, self.count + 1):
            self.start_node(f"node{number}")

    def _site(self) -> str:
        """Where the controller is, and how all prove who they are."""
        return LOOPBACK

    def _place(self, number: int) -> str:
        """Where a node is."""
        return "NodeHostname=localhost NodeAddr=127.0.0.1"

    def _start_controller(self) -> None:
        assert self._warden is not None
        self._warden.start(*self.prefix, "slurmctld", "-D", "-f", self.environment["SLURM_CONF"])

    def _write_conf(self) -> None:
        ports = free_ports(self.count + 1)
        numbers = range(1, self.count + 1)
        nodes = "\n".join(NODE.format(number=one, place=self._place(one), port=ports[one]) for one in numbers)
        gpus = [f"NodeName=node[1-{self.count}] Name=gpu File=/dev/{device}\n" for device in GPUS]
        (self.folder / "gres.conf").write_text("".join(gpus))
        values = {"folder": self.folder, "site": self._site(), "ports": ports, "nodes": nodes, "count": self.count}
        (self.folder / "slurm.conf").write_text(CONF.format(user=getpass.getuser(), **values))

    def _stop_daemons(self) -> None:
        if self._warden is not None:
            self._warden.__exit__()
            self._warden = None


def processes_of_node(name: str, conf: str) -> set[int]:
    """The processes of the steps of a node, and the slurmstepd of each step."""
    found, known = set(), parents()
    for pid in _marked(name, conf, known):
        found.add(pid)
        with contextlib.suppress(OSError):
            if Path(f"/proc/{known[pid]}/comm").read_text() == "slurmstepd\n":
                found.add(known[pid])
    return found


def steps_of_node(name: str, conf: str) -> set[int]:
    """The slurmstepd of each step of a node: all that its processes read and write of other nodes passes there."""
    known = parents()
    return processes_of_node(name, conf) - set(_marked(name, conf, known))


def tasks_of_node(name: str, conf: str) -> set[int]:
    """All that runs in the steps of a node, but for the clients of steps elsewhere."""
    return set(_marked(name, conf, parents())) - clients_of_node(name, conf)


def clients_of_node(name: str, conf: str) -> set[int]:
    """Each srun that was started on a node: what goes from there to steps on other nodes passes it."""
    found = set()
    for pid in _marked(name, conf, parents()):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text() == "srun\n":
                found.add(pid)
    return found


def _marked(name: str, conf: str, known: Mapping[int, int]) -> list[int]:
    found = []
    marks = {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={conf}".encode()}
    for pid in known:
        with contextlib.suppress(OSError):
            if marks <= set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                found.append(pid)
    return found


def stop(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
