"""Hosts for Open MPI's mpirun on this machine: each has a host name of its own, and nothing else."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path

import psutil

AGENT = """\
#!/bin/sh
host=$1
shift
exec {inside} sh -c "hostname $host; $*"
"""


def _inside() -> tuple[str, ...]:
    return ("unshare", "--uts") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--uts")


@cache
def why_not() -> str:
    """Why mpirun has no hosts here, or ""."""
    missing = [name for name in ("mpirun", "orted", "unshare", "hostname") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: openmpi-bin)"
    done = subprocess.run([*_inside(), "hostname", "node1"], capture_output=True, text=True)
    return f"no host name of one's own: {done.stderr.strip()}" if done.returncode else ""


class Mpi:
    """`settings` are those of engine.mpi for a cluster file."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self._agent = folder / "start-on"
        self._agent.write_text(AGENT.format(inside=shlex.join(_inside())))
        self._agent.chmod(0o755)
        (folder / "hostfile").write_text("".join(f"node{number + 1}\n" for number in range(nodes)))
        words = ("mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--mca", "plm", "rsh")
        self.mpirun = shlex.join((*words, "--mca", "plm_rsh_agent", str(self._agent)))
        self.options = (f"--hostfile {folder / 'hostfile'}",)

    @property
    def settings(self) -> str:
        return f'mpirun: "{self.mpirun}", options: ["{self.options[0]}"], address: 127.0.0.1'

    def cut(self, node: str) -> None:
        """Kills mpirun's daemons on a node."""
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if line[:2] == ["sh", "-c"] and line[2].startswith(f"hostname {node}; ") and str(self._agent) in line[2]:
                for child in process.children():
                    child.send_signal(signal.SIGKILL)
