"""Hosts for the launchers' conformance tests. A launcher joins with one row of `KINDS`: a context manager that gives a
LauncherHost for a folder. Real ones run a small script as each task; the fake one plays it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dtfctl import config
from dtfctl.launchers.base import Event, HostLauncher, Launch
from dtfctl.launchers.bridge import client
from dtfctl.launchers.bridge.engines import program_of
from dtfctl.launchers.bridge.launcher import BridgeLauncher
from dtfctl.launchers.bridge.pipe import BridgePipe
from dtfctl.launchers.fake import FakeLauncher, FakeProvisioner
from dtfctl.launchers.here import HerePipe
from dtfctl.launchers.kubernetes.api import Api
from dtfctl.launchers.kubernetes.launcher import KubernetesLauncher
from dtfctl.launchers.kubernetes.provision import KubernetesProvisioner
from dtfctl.launchers.local import LocalLauncher
from dtfctl.launchers.mpi import MpiPipe
from dtfctl.launchers.pipe import Call, Pipe
from dtfctl.launchers.provision import AgentProvisioner, Provisioner
from dtfctl.launchers.remote import RemoteLauncher
from dtfctl.launchers.slurm import SlurmPipe
from dtfctl.launchers.ssh import SshPipe
from dtfctl.values.engines import GroupSettings, MpiSettings, RaySettings, SlurmSettings, SparkSettings, SshSettings
from dtfctl.values.plan import HERE, KUBERNETES, LOCALHOST, MPI, RAY, SLURM, SPARK, SSH, HostPlan
from dtfctl.values.run import Run
from tests.e2e import hosts, ray_cluster, spark_cluster
from tests.e2e import mpi as mpi_hosts
from tests.e2e import slurm as slurm_cluster
from tests.e2e.kubernetes_api import Kubernetes
from tests.kubernetes import control_plane
from tests.kubernetes.control_plane import RealKubernetes

EVENT_S = 60.0

TASK = """\
trap 'echo deaf' USR1
echo begun
while [ ! -e "$END" ]; do sleep 0.01; done
exit $(cat "$END")
"""
"""Goes on until a file holds the status with which it is to exit."""

MakeLauncher = Callable[[Path, Callable[[Event], None]], HostLauncher]


class LauncherHost:
    """A host with a run folder. `make` makes its launcher, which a test may do again after `cut`."""

    name = LOCALHOST
    is_real = True
    kill_signals = frozenset({signal.SIGKILL})
    """What may have ended a task that was swept away."""
    lacks: Mapping[str, str] = {}
    """By the name of a test: why what it asks for is not for this kind of host to give."""

    def __init__(self, folder: Path, make: MakeLauncher, provisioner: Provisioner, address: str = "127.0.0.1") -> None:
        self.folder = folder
        self.address = address
        self.provisioner = provisioner
        self.events: list[Event] = []
        self._changed = asyncio.Event()
        self._make = make
        self._launchers: list[HostLauncher] = []
        self._keep_calls: list[Call] = []
        self._keepers: list[subprocess.Popen[bytes] | None] = []
        (folder / "logs").mkdir()
        # Its own: a sweep ends everything that has it, another test's processes too.
        (folder / "token").write_text(secrets.token_hex(12))

    async def connect(self) -> HostLauncher:
        launcher = self._make(self.folder, self._take)
        self._launchers.append(launcher)
        launcher.connect()
        await asyncio.wait_for(launcher.wait_until_listed(), EVENT_S)
        return launcher

    async def cut(self) -> None:
        """The connection is lost; the host does not notice."""
        for launcher in self._launchers:
            assert isinstance(launcher, LocalLauncher | RemoteLauncher)
            await launcher._keeper_client.cut()
            if isinstance(launcher, LocalLauncher):
                self._keepers.append(launcher._keeper)
            if isinstance(launcher, RemoteLauncher):
                if launcher._call is not None:
                    launcher._call.kill()
                    await launcher._call.end()
                if launcher._keep_call is not None:
                    self._keep_calls.append(launcher._keep_call)
        self._launchers.clear()

    async def close(self) -> None:
        for launcher in self._launchers:
            assert await launcher.sweep() == ()
            await launcher.close()
        for call in self._keep_calls:
            await call.end()
        for keeper in self._keepers:
            if keeper is not None:
                keeper.wait(EVENT_S)

    def launch(self, task: str = "t:0", generation: int = 1) -> Launch:
        return Launch(
            task,
            generation,
            ("/bin/sh", "-c", TASK),
            {"PATH": os.environ["PATH"], "END": str(self._end_file(task, generation))},
            working_dir="/",
            log=str(self.log_file(task, generation)),
            host=self.name,
        )

    def log_file(self, task: str, generation: int = 1) -> Path:
        return self.folder / "logs" / f"{task.replace(':', '-')}.{generation}.log"

    def end(self, task: str, generation: int = 1, status: int = 0) -> None:
        """The task's process ends by itself."""
        path = self._end_file(task, generation)
        path.with_suffix(".part").write_text(str(status))
        path.with_suffix(".part").rename(path)

    def _end_file(self, task: str, generation: int) -> Path:
        return self.folder / f"{task.replace(':', '-')}.{generation}.end"

    @contextlib.contextmanager
    def port_in_use(self):
        """A port of the host that another process holds."""
        with socket.create_server((self.address, 0)) as server:
            yield server.getsockname()[1]

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def next(self, kind: type, task: str = "t:0"):
        """Waits for an event and takes it out."""

        async def look():
            while True:
                for event in self.events:
                    if isinstance(event, kind) and getattr(event, "task", task) == task:
                        self.events.remove(event)
                        return event
                self._changed.clear()
                await self._changed.wait()

        return await asyncio.wait_for(look(), EVENT_S)


class FakeHost(LauncherHost):
    """Its processes are entries of a FakeLauncher."""

    is_real = False

    def __init__(self, folder: Path) -> None:
        self.world = FakeLauncher(time.monotonic)

        def make(folder: Path, take: Callable[[Event], None]) -> HostLauncher:
            self.world.on_event = take
            return self.world.on(LOCALHOST)

        found = {"folder": str(folder), "has_rsync": False, "free_bytes": 1 << 40}
        super().__init__(folder, make, FakeProvisioner(HostPlan("fake", "127.0.0.1", "python3", "/"), found))

    def end(self, task: str, generation: int = 1, status: int = 0) -> None:
        self.world.end(task, status)

    async def cut(self) -> None:
        """The events that come meanwhile are lost."""
        self._launchers.clear()
        self.world.on_event = lambda event: None

    @contextlib.contextmanager
    def port_in_use(self):
        self.world.taken_ports |= {40404}
        yield 40404


def remote_host(folder: Path, pipe: Pipe, address: str = "127.0.0.1") -> LauncherHost:
    """A host at the other end of a pipe that shares this machine's file system."""

    def make(run_dir: Path, take: Callable[[Event], None]) -> HostLauncher:
        return RemoteLauncher(pipe, f"conformance-{(run_dir / 'token').read_text()}", run_dir, take)

    host = LauncherHost(folder, make, AgentProvisioner(pipe), address)
    host.name = pipe.host.name
    return host


class KubernetesHost(LauncherHost):
    """A namespace. Its tasks are pods without a keeper: the engine starts, signals and keeps them."""

    name = KUBERNETES
    # A kubelet sends SIGTERM first.
    kill_signals = frozenset({signal.SIGTERM, signal.SIGKILL})
    lacks: Mapping[str, str] = {
        "test_a_port_is_held_and_a_fixed_one_that_is_taken_is_an_error": "a pod has its own address and ports",
        "test_what_a_task_takes_is_measured": "nothing of dtfctl runs beside a pod",
        "test_commands_and_files_are_looked_at_on_the_host": "probes of pods are asked by their kubelet",
        "test_a_host_is_looked_at_and_gets_the_folder_and_is_cleaned": "the image has the folder",
        "test_an_environment_that_cannot_be_made_is_told_with_its_command": "the image has the environment",
    }

    def __init__(self, folder: Path) -> None:
        plan = config.parse(NAMESPACE, "cluster.yaml", Path("/"))
        addresses = {task.name: f"{task.advertised_host}:2222" for task in plan.tasks()}

        def make(run_dir: Path, take: Callable[[Event], None]) -> HostLauncher:
            run = Run(1, (run_dir / "token").read_text(), "boot", plan, {}, addresses, time.time())
            return KubernetesLauncher(run_dir, lambda: run, take, partial(Api, plan.kubernetes))

        super().__init__(folder, make, KubernetesProvisioner(plan, plan.hosts[0]))

    def launch(self, task: str = "t:0", generation: int = 1) -> Launch:
        """A container's variables are those of the plan."""
        found = super().launch(task, generation)
        return replace(found, argv=("/bin/sh", "-c", f"END={found.environment['END']}\n{TASK}"))

    async def cut(self) -> None:
        """The supervisor is gone; the API server and the pods do not notice."""
        for launcher in self._launchers:
            assert isinstance(launcher, KubernetesLauncher)
            await launcher.abandon()
        self._launchers.clear()


NAMESPACE = """
name: conformance
program: "true"
readiness: none
engine: {kubernetes: {image: "images/any:1", folder: /}}
jobs: {t: 1, u: 1}
"""


@asynccontextmanager
async def namespace(folder: Path, kind: type[Kubernetes | RealKubernetes]) -> AsyncIterator[LauncherHost]:
    with kind(folder, nodes=1) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        yield KubernetesHost(folder)
        assert cluster.left() == []


@asynccontextmanager
async def local(folder: Path) -> AsyncIterator[LauncherHost]:
    here = HostPlan(LOCALHOST, "127.0.0.1", sys.executable, "/")
    yield LauncherHost(
        folder, lambda run_dir, take: LocalLauncher(run_dir, run_dir, take), AgentProvisioner(HerePipe(here))
    )


@asynccontextmanager
async def piped(folder: Path) -> AsyncIterator[LauncherHost]:
    """A remote launcher whose pipe is a child process: all of another machine but the network."""
    yield remote_host(folder, HerePipe(HostPlan("piped", "127.0.0.1", sys.executable, "/", via=HERE)))


@asynccontextmanager
async def fake(folder: Path) -> AsyncIterator[LauncherHost]:
    yield FakeHost(folder)


@asynccontextmanager
async def ssh(folder: Path) -> AsyncIterator[LauncherHost]:
    with hosts.Laboratory(folder, 1) as laboratory:
        laboratory.boot()
        inside = " ".join((*laboratory.prefix, laboratory.ssh))
        node = HostPlan("node1", laboratory.hosts["node1"].address, sys.executable, "/", via=SSH, target="node1")
        yield SshHost(folder, SshPipe(SshSettings(inside), node, folder / "sockets"), laboratory.hosts["node1"])


class SshHost(LauncherHost):
    """A machine of namespaces."""

    def __init__(self, folder: Path, pipe: Pipe, machine: hosts.Host) -> None:
        def make(run_dir: Path, take: Callable[[Event], None]) -> HostLauncher:
            return RemoteLauncher(pipe, "conformance", run_dir, take)

        super().__init__(folder, make, AgentProvisioner(pipe), machine.address)
        self.name = "node1"
        self._machine = machine

    @contextlib.contextmanager
    def port_in_use(self):
        # sshd's own.
        yield 22


@asynccontextmanager
async def slurm(folder: Path) -> AsyncIterator[LauncherHost]:
    """A node of an allocation, on this machine."""
    with slurm_cluster.Slurm(folder, 2) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        settings = SlurmSettings(cluster.allocate(2))
        node = HostPlan("node2", "127.0.0.1", sys.executable, "/", via=SLURM, target="node2")
        yield remote_host(folder, SlurmPipe(settings, node))


@asynccontextmanager
async def mpi(folder: Path) -> AsyncIterator[LauncherHost]:
    """A host of mpirun, on this machine."""
    hosts_of_mpi = mpi_hosts.Mpi(folder, 1)
    settings = MpiSettings(mpirun=hosts_of_mpi.mpirun, options=hosts_of_mpi.options)
    node = HostPlan("node-1", "127.0.0.1", sys.executable, "/", via=MPI, target="node1")
    yield remote_host(folder, MpiPipe(settings, node, folder))


@asynccontextmanager
async def ray(folder: Path) -> AsyncIterator[LauncherHost]:
    """A host of a placement group, on this machine."""
    settings = RaySettings(address=ray_cluster.shared().address, python=ray_cluster.PYTHON)
    wanted = {"bundles": [{"CPU": 1}], "strategy": "PACK", "options": {}, "wait_s": 60, "is_new": True}
    async with bridged(folder, RAY, settings, wanted) as host:
        yield host


@asynccontextmanager
async def spark(folder: Path) -> AsyncIterator[LauncherHost]:
    """An executor of an application, on this machine."""
    conf = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
    settings = SparkSettings(master=spark_cluster.shared().master, python=spark_cluster.PYTHON, conf=conf)
    # One application for all tests: its start is most of their time.
    async with bridged(folder, SPARK, settings, {"wait_s": 60}, spark_cluster.sockets()) as host:
        yield host


@asynccontextmanager
async def bridged(
    folder: Path, engine: str, settings: GroupSettings, wanted: dict[str, Any], shared: Path | None = None
) -> AsyncIterator[LauncherHost]:
    """The one host of a group of an engine. A bridge at `shared` sockets stays."""
    bridge, sockets = program_of(engine, settings), shared or folder / "sockets"
    group: dict[str, Any] = {"group": f"conformance-{secrets.token_hex(4)}"}
    group["hosts"] = [target := f"{group['group']}/node-1"]
    reply = await client.ask(bridge, sockets, {"do": "group", **group, **wanted})
    node = HostPlan("node-1", reply["hosts"][0]["address"], sys.executable, "/", via=engine, target=target)

    def make(run_dir: Path, take: Callable[[Event], None]) -> HostLauncher:
        run = f"conformance-{(run_dir / 'token').read_text()}"
        return BridgeLauncher(bridge, node, sockets, run, run_dir, take)

    host = LauncherHost(folder, make, AgentProvisioner(BridgePipe(bridge, node, sockets)), node.address)
    host.name = node.name
    try:
        yield host
    finally:
        await client.ask(bridge, sockets, {"do": "release", **group})
        if shared is None:
            await client.ask(bridge, sockets, {"do": "leave"})


Kind = Callable[[Path], AbstractAsyncContextManager[LauncherHost]]
NO_MACHINES = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(hosts.why_not()), reason=f"no machines of their own: {hosts.why_not()}"),
]

NO_SLURM = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(slurm_cluster.why_not()), reason=f"no Slurm: {slurm_cluster.why_not()}"),
]

NO_RAY = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ray_cluster.why_not()), reason=f"no Ray: {ray_cluster.why_not()}"),
]

NO_MPI = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(mpi_hosts.why_not()), reason=f"no MPI: {mpi_hosts.why_not()}"),
]

NO_SPARK = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(spark_cluster.why_not()), reason=f"no Spark: {spark_cluster.why_not()}"),
]

NO_KUBERNETES = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("kubernetes") is None, reason="needs pip install 'dtf[kubernetes]'"),
]

NO_CONTROL_PLANE = [
    *NO_KUBERNETES,
    pytest.mark.kubernetes,
    pytest.mark.skipif(bool(control_plane.why_not()), reason=f"no control plane: {control_plane.why_not()}"),
]

KINDS = [
    pytest.param(local, id="local"),
    pytest.param(piped, id="piped"),
    pytest.param(fake, id="fake"),
    pytest.param(ssh, id="ssh", marks=NO_MACHINES),
    pytest.param(mpi, id="mpi", marks=NO_MPI),
    pytest.param(ray, id="ray", marks=NO_RAY),
    pytest.param(spark, id="spark", marks=NO_SPARK),
    pytest.param(slurm, id="slurm", marks=NO_SLURM),
    pytest.param(partial(namespace, kind=Kubernetes), id="kubernetes", marks=NO_KUBERNETES),
    pytest.param(partial(namespace, kind=RealKubernetes), id="control-plane", marks=NO_CONTROL_PLANE),
]
"""The launchers that are held to what base.HostLauncher promises."""
