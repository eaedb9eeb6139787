"""Machines that are real to the software: namespaces with an address, a host name and processes of their own.

    the network (a network and a host name namespace with a bridge)
        |- node1: network, mount, pid and host name namespaces
        `- node2 ...

All of them share this machine's disk, so that one Python serves all. What a machine runs is its subclass's: hosts.py
has an sshd, slurm_machines.py a slurmd. What needs to be root is skipped in plain words: `why_not()`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

SUBNET = "10.77.0"
OUTSIDE = f"{SUBNET}.254"
"""The address of the network's own namespace, from which commands are run."""
TOOLS = ("unshare", "nsenter", "ip")

INIT = """
set -e
mount -t tmpfs tmpfs /run
mount --bind {folder}/boot_id /proc/sys/kernel/random/boot_id
hostname {name}
ip link set lo up
{program}
"""


def missing(tools: Iterable[str], packages: str) -> str:
    """Which of these tools are not here, in words; "" when all are."""
    absent = [name for name in tools if tool(name) is None]
    return f"there is no {', '.join(absent)} (Debian: {packages})" if absent else ""


@cache
def why_not() -> str:
    """Why there cannot be such machines here; "" when there can."""
    if words := missing(TOOLS, "util-linux, iproute2"):
        return words
    trial = "ip link add bridge0 type bridge && mount -t tmpfs tmpfs /run"
    tried = subprocess.run(["unshare", "-n", "-m", "-u", "-p", "-f", "sh", "-c", trial], capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"namespaces are not permitted: {tried.stderr.strip().splitlines()[-1]}"


def tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


class Machine:
    """One machine. It is off until `boot`."""

    environment: Mapping[str, str] | None = None
    """That of its first process; None: this process's."""

    def __init__(self, network: Network, name: str, number: int) -> None:
        self.name = name
        self.address = f"{SUBNET}.{number}"
        self.folder = network.folder / name
        self._network = network
        self._process: subprocess.Popen[bytes] | None = None
        self.folder.mkdir(parents=True)

    def program(self) -> str:
        """The lines of its first process, a shell, once it has its name; their output is in `log`."""
        raise NotImplementedError

    def is_up(self) -> bool:
        """Whether its program answers, once it has its address."""
        return True

    @property
    def log(self) -> Path:
        return self.folder / "program.log"

    def boot(self) -> None:
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        script = INIT.format(folder=self.folder, name=self.name, program=self.program())
        flags = ("-n", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child")
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                ["unshare", *flags, "/bin/sh", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
            )
        wait_until(self.init, f"{self.name} to start")
        net = f"/proc/{self.init()}/ns/net"
        wait_until(lambda: os.path.exists(net) and os.readlink(net) != os.readlink("/proc/self/ns/net"), "its network")
        ends = ("type", "veth", "peer", "name", "eth0", "netns", str(self.init()))
        self._network.run("ip", "link", "add", self.name, *ends)
        # As with a real machine it is the same each time: neighbours remember it.
        self.run("ip", "link", "set", "eth0", "address", f"02:00:0a:4d:00:{int(self.address.rpartition('.')[2]):02x}")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self._network.run("ip", "link", "set", self.name, "master", "bridge0", "up")
        wait_until(self.is_up, f"the program of {self.name}; its log is {self.log}")

    def power_off(self) -> None:
        """All its processes are gone at once, and its address with them."""
        if self._process is not None:
            os.kill(self.init() or self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None
        self.log.unlink(missing_ok=True)
        with contextlib.suppress(subprocess.CalledProcessError):
            self._network.run("ip", "link", "delete", self.name)

    def unplug(self) -> None:
        self._network.run("ip", "link", "set", self.name, "down")

    def plug_in(self) -> None:
        self._network.run("ip", "link", "set", self.name, "up")

    def run(self, *command: str) -> str:
        """Runs a command there."""
        return run("nsenter", "-t", str(self.init()), "-n", "-m", "-u", "-p", "--", *command)

    def processes(self, containing: str = "") -> dict[int, str]:
        """pid, as seen from outside -> command line of the processes of this machine, zombies apart."""
        own = os.readlink(f"/proc/{self.init()}/ns/pid")
        found = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "ns" / "pid") == own:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                    if command and containing in command:
                        found[int(entry.name)] = command
        return found

    def init(self) -> int:
        """The pid, seen from outside, of its first process."""
        assert self._process is not None
        try:
            text = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        except FileNotFoundError:
            return 0
        return int(text.split()[0]) if text.split() else 0


class Network:
    """A bridge in a namespace of its own, whose host name is `name`. `prefix` runs a command there."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.folder.mkdir(mode=0o700)
        self._bridge = subprocess.Popen(
            # It ends with its input, also when the test is killed.
            ["unshare", "-n", "-u", "/bin/sh", "-c", f"hostname {name}; echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._bridge.stdout is not None
        self._bridge.stdout.readline()
        self._bridge.stdout.close()
        spaces = f"/proc/{self._bridge.pid}/ns"
        self.prefix = ("nsenter", f"--net={spaces}/net", f"--uts={spaces}/uts", "--")
        for line in (
            "ip link set lo up",
            "ip link add bridge0 type bridge",
            f"ip address add {OUTSIDE}/24 dev bridge0",
            "ip link set bridge0 up",
        ):
            self.run(*line.split())

    def __exit__(self, *_: Any) -> None:
        assert self._bridge.stdin is not None
        self._bridge.stdin.close()
        self._bridge.wait(10)

    def run(self, *command: str) -> str:
        """Runs a command in the network's own namespace."""
        return run(*self.prefix, *command)


def run(*command: str) -> str:
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path})
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout
