"""Machines that are real to the software: namespaces with an address, an sshd, a home and processes of their own.

    laboratory (a network namespace with a bridge, from which dtfctl is run)
        |- node1: network, mount, pid and host name namespaces; init is its sshd
        `- node2 ...

All of them share this machine's disk, so that one Python serves all; /etc/passwd gives each another home. What needs
to be root, or has no sshd here, is skipped in plain words: `why_not()`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from functools import cache
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

NETWORK = "10.77.0"
LAUNCHER = f"{NETWORK}.254"
TOOLS = ("unshare", "nsenter", "ip", "ssh", "ssh-keygen", "sshd")

INIT = """
set -e
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/boot_id /proc/sys/kernel/random/boot_id
hostname {name}
ip link set lo up
exec {sshd} -D -e -f {folder}/sshd_config
"""

SSHD = """
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
PermitRootLogin yes
"""


@cache
def why_not() -> str:
    """Why there cannot be such machines here; "" when there can."""
    missing = [tool for tool in TOOLS if _tool(tool) is None]
    if missing:
        return f"there is no {', '.join(missing)} (Debian: util-linux, iproute2, openssh-client, openssh-server)"
    trial = "ip link add bridge0 type bridge && mount -t tmpfs tmpfs /run"
    tried = subprocess.run(
        ["unshare", "-n", "-m", "-u", "-p", "-f", "sh", "-c", trial], capture_output=True, text=True
    )
    return "" if tried.returncode == 0 else f"namespaces are not permitted: {tried.stderr.strip().splitlines()[-1]}"


def _tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


class Host:
    """One machine. It is off until `boot`."""

    def __init__(self, laboratory: Laboratory, name: str, number: int) -> None:
        self.name = name
        self.address = f"{NETWORK}.{number}"
        self.folder = laboratory.folder / name
        self.home = self.folder / "home"
        self._laboratory = laboratory
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: subprocess.Popen[bytes] | None = None
        self.home.mkdir(parents=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "host_key"))
        shutil.copy(laboratory.folder / "key.pub", self.folder / "authorized_keys")
        entries = Path("/etc/passwd").read_text().splitlines()
        own = [f"root:x:0:0:root:{self.home}:/bin/sh" if line.startswith("root:") else line for line in entries]
        (self.folder / "passwd").write_text("\n".join(own) + "\n")
        (self.folder / "sshd_config").write_text(SSHD.format(folder=self.folder))

    def configure(self, line: str) -> None:
        """Another line of sshd's configuration, before `boot`."""
        with open(self.folder / "sshd_config", "a") as file:
            file.write(line + "\n")

    def boot(self) -> None:
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        script = INIT.format(folder=self.folder, name=self.name, sshd=_tool("sshd"))
        flags = ("-n", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child")
        with open(self.folder / "sshd.log", "ab") as log:
            self._process = subprocess.Popen(
                ["unshare", *flags, "/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(self.init, f"{self.name} to start")
        net = f"/proc/{self.init()}/ns/net"
        wait_until(lambda: os.path.exists(net) and os.readlink(net) != os.readlink("/proc/self/ns/net"), "its network")
        laboratory = self._laboratory
        ends = ("type", "veth", "peer", "name", "eth0", "netns", str(self.init()))
        laboratory.run("ip", "link", "add", self.name, *ends)
        # As with a real machine it is the same each time: neighbours remember it.
        self.run("ip", "link", "set", "eth0", "address", f"02:00:0a:4d:00:{int(self.address.rpartition('.')[2]):02x}")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        laboratory.run("ip", "link", "set", self.name, "master", "bridge0", "up")
        listening = f"{self.folder}/sshd.log"
        wait_until(lambda: "Server listening" in Path(listening).read_text(), f"sshd of {self.name}")

    def power_off(self) -> None:
        """All its processes are gone at once, and its address with them."""
        if self._process is not None:
            os.kill(self.init() or self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None
        if self._wire is not None:
            self._wire.kill()
            self._wire.wait()
            self._wire = None
        (self.folder / "sshd.log").unlink(missing_ok=True)
        with contextlib.suppress(subprocess.CalledProcessError):
            self._laboratory.run("ip", "link", "delete", self.name)

    def unplug(self) -> None:
        self._laboratory.run("ip", "link", "set", self.name, "down")

    def plug_in(self) -> None:
        self._laboratory.run("ip", "link", "set", self.name, "up")

    def degrade(self, delay_ms: float, loss: float) -> str:
        """Makes its wire slow and bad in both directions: by netem, or by a program where the kernel has no netem."""
        setting = ("netem", "delay", f"{delay_ms}ms", "loss", f"{100 * loss}%")
        try:
            self._laboratory.run("tc", "qdisc", "add", "dev", self.name, "root", *setting)
            self.run("tc", "qdisc", "add", "dev", "eth0", "root", *setting)
            return "netem"
        except (subprocess.CalledProcessError, FileNotFoundError):
            pass
        inner, outer = f"{self.name}i", f"{self.name}o"
        self._laboratory.run("ip", "link", "add", inner, "type", "veth", "peer", "name", outer)
        self._laboratory.run("ip", "link", "set", self.name, "nomaster", "promisc", "on")
        self._laboratory.run("ip", "link", "set", outer, "master", "bridge0", "up")
        self._laboratory.run("ip", "link", "set", inner, "promisc", "on", "up")
        wire = Path(__file__).with_name("bad_wire.py")
        self._wire = subprocess.Popen(
            [*self._laboratory.prefix, sys.executable, str(wire), self.name, inner, str(delay_ms), str(loss)],
            stdout=subprocess.PIPE,
        )
        assert self._wire.stdout is not None
        self._wire.stdout.readline()
        self._wire.stdout.close()
        return "program"

    def run(self, *command: str) -> str:
        """Runs a command there."""
        return _run("nsenter", "-t", str(self.init()), "-n", "-m", "-u", "-p", "--", *command)

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


class Laboratory:
    """`with Laboratory(tmp_path, 4) as laboratory:` gives node1 to node4, each booted unless `boots` says otherwise."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder / "laboratory"
        self.folder.mkdir(mode=0o700)
        self._bridge = subprocess.Popen(
            ["unshare", "-n", "/bin/sh", "-c", "echo ready; exec sleep 1000000"], stdout=subprocess.PIPE
        )
        assert self._bridge.stdout is not None
        self._bridge.stdout.readline()
        self._bridge.stdout.close()
        self.prefix = ("nsenter", f"--net=/proc/{self._bridge.pid}/ns/net", "--")
        for line in (
            "ip link set lo up",
            "ip link add bridge0 type bridge",
            f"ip address add {LAUNCHER}/24 dev bridge0",
            "ip link set bridge0 up",
        ):
            self.run(*line.split())
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "key"))
        self.hosts = {f"node{number}": Host(self, f"node{number}", number) for number in range(1, count + 1)}
        self._write_ssh_config()

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: Any) -> None:
        for host in self.hosts.values():
            host.power_off()
        self._bridge.kill()
        self._bridge.wait()

    def boot(self, *names: str) -> None:
        for name in names or self.hosts:
            self.hosts[name].boot()

    def run(self, *command: str) -> str:
        """Runs a command where dtfctl runs."""
        return _run(*self.prefix, *command)

    @property
    def ssh(self) -> str:
        """The ssh of a user with a config; impatient, so that the tests need not wait."""
        alive = "-o ServerAliveInterval=1 -o ServerAliveCountMax=3 -o ConnectTimeout=3"
        return f"ssh -F {self.folder / 'ssh_config'} {alive}"

    def _write_ssh_config(self) -> None:
        own = [
            f"User root\nIdentityFile {self.folder / 'key'}\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {self.folder / 'known_hosts'}\nGlobalKnownHostsFile /dev/null\nCheckHostIP no\n"
        ]
        own += [f"Host {host.name}\nHostName {host.address}\n" for host in self.hosts.values()]
        (self.folder / "ssh_config").write_text("\n".join(own))
        keys = [
            f"{host.address} {(host.folder / 'host_key.pub').read_text()}" for host in self.hosts.values()
        ]
        (self.folder / "known_hosts").write_text("".join(keys))


def _run(*command: str) -> str:
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path})
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout
