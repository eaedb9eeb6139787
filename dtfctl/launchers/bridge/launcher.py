"""Tasks on a host that an engine may take back: as on any other over a pipe, but that they end with the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dtfctl.launchers.base import Event, Launch
from dtfctl.launchers.bridge.client import BridgeProgram
from dtfctl.launchers.bridge.pipe import BridgePipe
from dtfctl.launchers.guard import guard_of
from dtfctl.launchers.remote import RemoteLauncher
from dtfctl.values.plan import HostPlan

GPUS = "CUDA_VISIBLE_DEVICES"


class BridgeLauncher(RemoteLauncher):
    """See base.HostLauncher. What the engine's process leaves on a host when it dies is ended by a guard there: the
    engine regards the host's resources as free then, and may give the tasks a new host. `gpus` are those of the host
    that are the engine's to give, as CUDA_VISIBLE_DEVICES."""

    def __init__(
        self,
        bridge: BridgeProgram,
        host: HostPlan,
        sockets: Path,
        run: str,
        run_dir: Path,
        on_event: Callable[[Event], None],
        fence_s: Callable[[], float] = lambda: 0.0,
        gpus: str = "",
    ) -> None:
        pipe = BridgePipe(bridge, host, sockets, guard_of(host, run, run_dir))
        super().__init__(pipe, run, run_dir, on_event, fence_s)
        self._gpus = gpus.split(",")

    def start(self, launch: Launch) -> None:
        super().start(replace(launch, environment=own_gpus(launch.environment, self._gpus)))


def own_gpus(environment: dict[str, str], group: list[str]) -> dict[str, str]:
    """A task's GPUs are counted from the first one of the host; which those are of the machine's the engine decides."""
    chosen = environment.get(GPUS, "").split(",")
    if group == [""] or not all(gpu.isdigit() and int(gpu) < len(group) for gpu in chosen):
        return environment
    return {**environment, GPUS: ",".join(group[int(gpu)] for gpu in chosen)}
