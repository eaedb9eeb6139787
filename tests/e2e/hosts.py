"""Machines with an sshd and a home of their own, see machines.py, and a laboratory from which dtfctl reaches them.

/etc/passwd gives each another home. What has no sshd here is skipped in plain words: `why_not()`.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.e2e import machines
from tests.e2e.machines import Machine, Network, run, tool

TOOLS = ("ssh", "ssh-keygen", "sshd")

PROGRAM = """
mkdir /run/sshd
mount --bind {folder}/passwd /etc/passwd
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
    return machines.missing(TOOLS, "openssh-client, openssh-server") or machines.why_not()


class Host(Machine):
    """One machine with an sshd. It is off until `boot`."""

    def __init__(self, laboratory: Laboratory, name: str, number: int) -> None:
        super().__init__(laboratory, name, number)
        self.home = self.folder / "home"
        self._wire: subprocess.Popen[bytes] | None = None
        self.home.mkdir()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "host_key"))
        shutil.copy(laboratory.folder / "key.pub", self.folder / "authorized_keys")
        entries = Path("/etc/passwd").read_text().splitlines()
        own = [f"root:x:0:0:root:{self.home}:/bin/sh" if line.startswith("root:") else line for line in entries]
        (self.folder / "passwd").write_text("\n".join(own) + "\n")
        (self.folder / "sshd_config").write_text(SSHD.format(folder=self.folder))

    def configure(self, line: str) -> None:
        """Another line of sshd's configuration, before `boot`."""
        with open(self.folder / "sshd_config", "a") as file:
            file.write(line + "\n")

    def program(self) -> str:
        return PROGRAM.format(folder=self.folder, sshd=tool("sshd"))

    def is_up(self) -> bool:
        return "Server listening" in self.log.read_text()

    def power_off(self) -> None:
        super().power_off()
        if self._wire is not None:
            self._wire.kill()
            self._wire.wait()
            self._wire = None

    def degrade(self, delay_ms: float, loss: float) -> str:
        """Makes its wire slow and bad in both directions: by netem, or by a program where the kernel has no netem."""
        setting = ("netem", "delay", f"{delay_ms}ms", "loss", f"{100 * loss}%")
        try:
            self._network.run("tc", "qdisc", "add", "dev", self.name, "root", *setting)
            self.run("tc", "qdisc", "add", "dev", "eth0", "root", *setting)
            return "netem"
        except (subprocess.CalledProcessError, FileNotFoundError):
            pass
        inner, outer = f"{self.name}i", f"{self.name}o"
        self._network.run("ip", "link", "add", inner, "type", "veth", "peer", "name", outer)
        self._network.run("ip", "link", "set", self.name, "nomaster", "promisc", "on")
        self._network.run("ip", "link", "set", outer, "master", "bridge0", "up")
        self._network.run("ip", "link", "set", inner, "promisc", "on", "up")
        wire = Path(__file__).with_name("bad_wire.py")
        self._wire = subprocess.Popen(
            [*self._network.prefix, sys.executable, str(wire), self.name, inner, str(delay_ms), str(loss)],
            stdout=subprocess.PIPE,
        )
        assert self._wire.stdout is not None
        self._wire.stdout.readline()
        self._wire.stdout.close()
        return "program"


class Laboratory(Network):
    """`with Laboratory(tmp_path, 4) as laboratory:` gives node1 to node4, which are off until `boot`."""

    def __init__(self, folder: Path, count: int) -> None:
        super().__init__(folder / "laboratory", platform.node())
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "key"))
        self.hosts = {f"node{number}": Host(self, f"node{number}", number) for number in range(1, count + 1)}
        self._write_ssh_config()

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: Any) -> None:
        for host in self.hosts.values():
            host.power_off()
        super().__exit__()

    def boot(self, *names: str) -> None:
        for name in names or self.hosts:
            self.hosts[name].boot()

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
        keys = [f"{host.address} {(host.folder / 'host_key.pub').read_text()}" for host in self.hosts.values()]
        (self.folder / "known_hosts").write_text("".join(keys))
