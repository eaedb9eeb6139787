"""Where a cluster's state lies. One folder per cluster name, private to the user:

<state folder>/<name>/  store.sqlite  control.sock  daemon.lock  daemon.log  ssh/
                        runs/<number>/  keeper.sock  keeper.lock  keeper.log  records/  logs/<task>.<generation>.log
                                        times/<task>.<generation>
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STATE_DIR_VARIABLE = "DTFCTL_STATE_DIR"


def state_root(given: str | None = None) -> Path:
    """The folder of all clusters: `given`, else $DTFCTL_STATE_DIR, else $XDG_STATE_HOME/dtfctl."""
    chosen = given or os.environ.get(STATE_DIR_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "dtfctl"


TLS_FOLDER = "tls"


@dataclass(frozen=True)
class ClusterPaths:
    """The files of one cluster."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store.sqlite"

    @property
    def control(self) -> Path:
        return self.folder / "control.sock"

    @property
    def ssh(self) -> Path:
        """The sockets of the connections to other machines."""
        return self.folder / "ssh"

    @property
    def job(self) -> Path:
        """Which job of an engine the cluster runs in (launchers/slurm_job.py)."""
        return self.folder / "job"

    @property
    def lock(self) -> Path:
        return self.folder / "daemon.lock"

    @property
    def daemon_log(self) -> Path:
        return self.folder / "daemon.log"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def run(self, number: int) -> Path:
        return self.runs / f"{number:04d}"

    def tls(self, number: int) -> Path:
        """The certificates of a run that has security: tls."""
        return self.run(number) / TLS_FOLDER

    def logs(self, number: int) -> Path:
        return self.run(number) / "logs"

    def times(self, number: int) -> Path:
        return self.run(number) / "times"

    def log(self, number: int, task: str, generation: int) -> Path:
        return self.logs(number) / f"{task.replace(':', '-')}.{generation}.log"


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address for a Unix socket at any path: the kernel takes only 107 bytes, a folder's descriptor is shorter."""
    folder = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
