"""Slurm's nodes as hosts: a step of the allocation is the pipe, and one long step on each node keeps the keeper.

`srun --overlap` starts a step beside those that run, and carries its input and output byte for byte. All that a step
has started ends with it, so the keeper has a step of its own (agent `keep`) that lasts as long as the run. A task that
exits with an error ends nothing else, whatever the site's defaults.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from dtfctl.launchers.pipe import PipeError, ProcessCall, open_process
from dtfctl.launchers.ssh import PYTHONS
from dtfctl.values.engines import SlurmSettings
from dtfctl.values.plan import HostPlan
from dtfctl.wording import reason_of

STEP = (
    "--overlap",
    "--nodes=1",
    "--ntasks=1",
    "--unbuffered",
    "--no-kill",
    "--wait=0",
    "--kill-on-bad-exit=0",
    "--cpu-bind=none",
    "--mpi=none",
    "--chdir=/",
)
"""Options of each step: it shares everything, and neither ends others nor is ended by them. The folder from which it
is started need not be on the node."""

CONNECT_S = 60.0
"""Slurm makes a step within a second; its controller may be away for a while."""

_INHERITED = ("SLURM_", "SRUN_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_")
_KEPT = {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"}
_PLAIN_END = re.compile(r"srun: error: [^:]+: tasks? [\d,-]+: (Exited with exit code|Terminated|Killed)")


class SlurmPipe:
    """See pipe.Pipe. The host's `target` is the node's name in the allocation `settings.job`."""

    connect_timeout_s = CONNECT_S
    is_shared = False
    outlives = False

    def __init__(self, settings: SlurmSettings, host: HostPlan) -> None:
        self.settings = settings
        self.host = host

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.host.python, *PYTHONS)))

    async def open(self, command: Sequence[str]) -> ProcessCall:
        line = (*self._srun(), *command)
        try:
            return await open_process(line, environment=own_environment(os.environ))
        except OSError as error:
            why = f"{line[0]} cannot be run: {reason_of(error)}; run dtfctl on a machine with Slurm's commands"
            raise PipeError(why, self.by_hand()) from None

    def failure(self, status: int, words: str) -> PipeError:
        why, is_connection = explain(words, status)
        return PipeError(why, self.by_hand(), is_connection)

    def by_hand(self, *words: str) -> str:
        place = (*_job(self.settings, self.host), "--overlap", "-N1", "-n1", "-w", self.host.target)
        return shlex.join((*shlex.split(self.settings.srun), *place, *(words or ("true",))))

    def rsync_target(self, folder: str) -> None:
        return None

    async def disconnect(self) -> None:
        return None

    def _srun(self) -> tuple[str, ...]:
        place = (*_job(self.settings, self.host), f"--nodelist={self.host.target}")
        return (*shlex.split(self.settings.srun), *STEP, *place)


def step(
    settings: SlurmSettings, host: HostPlan, is_terminal: bool, words: Sequence[str], folder: str | None = None
) -> tuple[str, ...]:
    """The line that becomes a command of a person on a node, beside all that runs there."""
    place = (*_job(settings, host), "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={host.target}", "--quiet")
    where = () if folder is None else (f"--chdir={folder}",)
    return (*shlex.split(settings.srun), *place, *where, "--pty" if is_terminal else "--unbuffered", *words)


def _job(settings: SlurmSettings, host: HostPlan) -> tuple[str, ...]:
    """A step of a heterogeneous job has to name the node's group, the first one too."""
    group = settings.group_of(host.target)
    return (f"--jobid={settings.job}", *([] if group is None else [f"--het-group={group}"]))


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """For Slurm's commands: what a batch script inherits of its job would change a step (SLURM_NTASKS), and what a user
    prefers to see would change an answer (SQUEUE_STATES)."""
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT or not name.startswith(_INHERITED)
    }


def explain(words: str, status: int) -> tuple[str, bool]:
    """(why a step came to nothing, whether Slurm made none at all), from what srun and the command wrote."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    refused = [line for line in lines if line.startswith("srun: error:") and not _PLAIN_END.match(line)]
    if refused:
        # The last one says only that the step was not made.
        return refused[0].removeprefix("srun: error: "), True
    own = [line for line in lines if not line.startswith("srun:")]
    return (own or lines or [f"srun exits with status {status}"])[-1], status < 0
