"""A Slurm cluster of machines: each slurmd in namespaces with its own address and host name, with a real munged.

See slurm.py for the cluster and machines.py for the machines. Only root can have it. slurmctld and the users' commands
run in the network's own namespace, whose host name is `head`. A node is cut off by its link, and reboots with new
processes. The file system, and so munged's socket, is shared by all machines.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e import machines, slurm
from tests.e2e.machines import OUTSIDE, SUBNET, Machine, Network
from tests.e2e.slurm import Slurm
from tests.waiting import wait_until

HEAD = "head"
KEY_BYTES = 128

MUNGE = """\
SlurmctldHost={head}({address})
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={socket},cred_expire=5
"""

PROGRAM = """
mount --bind {hosts} /etc/hosts
{mounts}
until ip -4 -o address show dev eth0 up 2> /dev/null | grep -q inet; do sleep 0.02; done
slurmd -D -N {name} -f "$SLURM_CONF" &
wait
"""
"""The shell stays, as init: it reaps what has lost its parent. The machine ends with its slurmd."""


def why_not() -> str:
    """Why there can be no such cluster here; "" where there can."""
    if os.geteuid():
        return "machines of namespaces need root"
    return slurm.why_not() or machines.missing(["munged"], "munge") or machines.why_not()


class Node(Machine):
    """One machine with a slurmd."""

    def __init__(self, cluster: SlurmMachines, network: Network, number: int) -> None:
        super().__init__(network, f"node{number}", number)
        self.environment = cluster.environment
        self._hosts = network.folder / "hosts"
        self._own = {str(folder): self.folder / "own" / str(number) for number, folder in enumerate(cluster.apart)}
        for own in self._own.values():
            own.mkdir(parents=True)

    def program(self) -> str:
        mounts = "\n".join(f"mount --bind {own} {folder}" for folder, own in self._own.items())
        return PROGRAM.format(hosts=self._hosts, name=self.name, mounts=mounts)

    def own(self, folder: Path) -> Path:
        """Where the node's own content of one of the cluster's `apart` folders is, seen from outside."""
        return self._own[str(folder)]


class SlurmMachines(Slurm):
    """`with SlurmMachines(tmp_path, 3) as slurm:` gives node1 to node3, idle, each a machine of `nodes`."""

    attempts = 1
    """Nobody else takes ports of these machines."""

    def __init__(self, folder: Path, count: int, apart: tuple[Path, ...] = ()) -> None:
        """Each node and the submit host have a content of their own of the folders `apart`, which are there."""
        super().__init__(folder, count)
        self.apart = apart
        self.nodes: dict[str, Node] = {}
        self._network: Network | None = None

    def start_node(self, name: str) -> None:
        self.nodes[name].boot()

    def kill_node(self, name: str) -> None:
        self.nodes[name].power_off()

    def cut_node(self, name: str) -> None:
        self.nodes[name].unplug()

    def mend_node(self, name: str) -> None:
        """The wire of a node that was cut off is back."""
        self.nodes[name].plug_in()

    def _start_controller(self) -> None:
        self._start_munge()
        numbers = range(1, self.count + 1)
        self._network = Network(self.folder / "machines", HEAD)
        self.prefix = self._network.prefix
        names = [f"{SUBNET}.{number} node{number}\n" for number in numbers]
        (self._network.folder / "hosts").write_text(f"127.0.0.1 localhost\n{OUTSIDE} {HEAD}\n{''.join(names)}")
        self.nodes = {node.name: node for node in (Node(self, self._network, number) for number in numbers)}
        super()._start_controller()

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        folder.mkdir()
        (folder / "key").touch(0o600)
        (folder / "key").write_bytes(os.urandom(KEY_BYTES))
        files = {"key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed", "socket": "socket"}
        assert self._warden is not None
        # The folder above is its owner's alone, which munged refuses without --force: its users are all root here.
        options = [f"--{option}={folder / name}" for option, name in files.items()]
        self._warden.start("munged", "--foreground", "--force", *options)
        wait_until((folder / "socket").exists, f"munged; its log is {folder / 'log'}")

    def _stop_daemons(self) -> None:
        for node in self.nodes.values():
            node.power_off()
        super()._stop_daemons()
        if self._network is not None:
            self._network.__exit__()

    def _site(self) -> str:
        return MUNGE.format(head=HEAD, address=OUTSIDE, socket=self.folder / "munge" / "socket")

    def _place(self, number: int) -> str:
        return f"NodeAddr={SUBNET}.{number}"
