"""Tasks on a host of Ray: as on any other over a pipe, but that they end with the host's actor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dtfctl.launchers.base import Event, Launch
from dtfctl.launchers.guard import guard_of
from dtfctl.launchers.ray.pipe import RayPipe
from dtfctl.launchers.remote import RemoteLauncher
from dtfctl.values.plan import HostPlan, RaySettings

GPUS = "CUDA_VISIBLE_DEVICES"


class RayLauncher(RemoteLauncher):
    """See base.HostLauncher. What an actor leaves when it dies is ended by a guard on its host: Ray regards the host's
    resources as free then, and may give the tasks a new host."""

    def __init__(
        self,
        settings: RaySettings,
        host: HostPlan,
        sockets: Path,
        run: str,
        run_dir: Path,
        on_event: Callable[[Event], None],
        fence_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        pipe = RayPipe(settings, host, sockets, guard_of(host, run, run_dir))
        super().__init__(pipe, run, run_dir, on_event, fence_s)
        self._gpus = settings.gpus.get(host.name, "").split(",")

    def start(self, launch: Launch) -> None:
        super().start(replace(launch, environment=own_gpus(launch.environment, self._gpus)))


def own_gpus(environment: dict[str, str], group: list[str]) -> dict[str, str]:
    """A task's GPUs are counted from the first one of the host; which those are of the machine's Ray decides."""
    chosen = environment.get(GPUS, "").split(",")
    if group == [""] or not all(gpu.isdigit() and int(gpu) < len(group) for gpu in chosen):
        return environment
    return {**environment, GPUS: ",".join(group[int(gpu)] for gpu in chosen)}
