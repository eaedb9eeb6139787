"""Which pipe leads to a host: one row for each `HostPlan.via`; and what prepares the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dtfctl.launchers.bridge.engines import program_of
from dtfctl.launchers.bridge.pipe import BridgePipe
from dtfctl.launchers.here import HerePipe
from dtfctl.launchers.mpi import MpiPipe
from dtfctl.launchers.pipe import Pipe
from dtfctl.launchers.provision import AgentProvisioner, Provisioner
from dtfctl.launchers.slurm import SlurmPipe
from dtfctl.launchers.ssh import SshPipe
from dtfctl.values.plan import BRIDGED, HERE, KUBERNETES, MPI, SLURM, SSH, ClusterPlan, HostPlan


def _bridged(plan: ClusterPlan, host: HostPlan, sockets: Path) -> Pipe:
    return BridgePipe(program_of(plan.engine, plan.group), host, sockets)


PIPES: dict[str, Callable[[ClusterPlan, HostPlan, Path], Pipe]] = {
    HERE: lambda plan, host, sockets: HerePipe(host),
    SSH: lambda plan, host, sockets: SshPipe(plan.ssh, host, sockets),
    **dict.fromkeys(BRIDGED, _bridged),
    SLURM: lambda plan, host, sockets: SlurmPipe(plan.slurm, host),
    MPI: lambda plan, host, sockets: MpiPipe(plan.mpi, host, Path(plan.folder)),
}
"""Called with the plan, the host, and a private folder for sockets."""


def pipe_to(plan: ClusterPlan, host: HostPlan, sockets: Path) -> Pipe:
    return PIPES[host.via](plan, host, sockets)


def provisioner_of(plan: ClusterPlan, host: HostPlan, sockets: Path) -> Provisioner:
    """What looks at a host, prepares and cleans it. Kubernetes, whose pods have no pipe, does that by its API."""
    if host.via == KUBERNETES:
        # Its modules need a package that not everybody has, and few clusters.
        from dtfctl.launchers.kubernetes.provision import KubernetesProvisioner

        return KubernetesProvisioner(plan, host)
    return AgentProvisioner(pipe_to(plan, host, sockets))
