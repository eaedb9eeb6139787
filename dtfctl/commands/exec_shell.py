"""Stepping into a cluster's world: a command as a task sees it (`exec`), and a shell on a host (`ssh`).

Both replace this process, so that terminal, signals and exit status are the command's own. The environment of a
running task is read from its process, on its host; so nothing of it stands on a command line.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import NoReturn

from dtfctl.control.cluster import SSH_VARIABLE
from dtfctl.errors import DtfctlError
from dtfctl.launchers.keeper import TOKEN_VARIABLE
from dtfctl.plan import expand
from dtfctl.supervise import host_failover
from dtfctl.values import state
from dtfctl.values.plan import BRIDGED, KUBERNETES, MPI, SLURM, ClusterPlan, HostPlan
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus

_ENTER = f"""\
import os, sys
pid, words = sys.argv[1], sys.argv[2:]
with open(f"/proc/{{pid}}/environ", "rb") as file:
    pairs = [pair.split(b"=", 1) for pair in file.read().split(b"\\0") if b"=" in pair]
environment = {{key: value for key, value in pairs if key != b"{TOKEN_VARIABLE}"}}
environment[b"TERM"] = os.environb.get(b"TERM", b"dumb")
os.chdir(f"/proc/{{pid}}/cwd")
try:
    os.execvpe(words[0], words, environment)
except OSError as error:
    sys.exit(f"error: {{words[0]}}: {{error.strerror}}")
"""
"""For the task's own host, whose Python need not have dtfctl. The token stays out: `down` must not end what a person
does there."""


def enter(run: Run, status: TaskStatus, words: tuple[str, ...]) -> NoReturn:
    """Becomes the command in the task's folder and environment, on its host."""
    task = run.task(status.name)
    is_alive = status.pid is not None and status.state in state.WITH_PROCESS
    if task.host.via == KUBERNETES and is_alive:
        become(_in_pod(run, status, words), dict(os.environ))
    if task.host.is_local and not is_alive:
        inherited = host_failover.inherited(run, task)
        environment = dict(expand.environment(run.plan, task, run.addresses, inherited, run.secrets))
        os.chdir(task.working_dir)
        become(words, environment)
    if not is_alive:
        raise DtfctlError(f"{status.name} has no process on {task.host.name} whose environment could be had")
    if task.host.is_local:
        become((sys.executable, "-I", "-c", _ENTER, str(status.pid), *words), dict(os.environ))
    remote = (task.host.python or "python3", "-c", _ENTER, str(status.pid), *words)
    log_in(run.plan, task.host, remote)


def _in_pod(run: Run, status: TaskStatus, words: tuple[str, ...]) -> tuple[str, ...]:
    """kubectl's command: what it runs has the environment of the container already."""
    from dtfctl.launchers.kubernetes.pods import pod_name

    settings = run.plan.kubernetes
    place = [*(["--context", settings.context] if settings.context else [])]
    place += ["--namespace", settings.namespace] if settings.namespace else []
    terminal = "-it" if sys.stdin.isatty() and sys.stdout.isatty() else "-i"
    name = pod_name(run.plan.name, status.name, run.token, status.generation)
    return ("kubectl", *place, "exec", terminal, name, "-c", "task", "--", *words)


def log_in(plan: ClusterPlan, host: HostPlan, words: tuple[str, ...]) -> NoReturn:
    """Becomes ssh (or a step of srun) on a host, with a terminal where there is one here; without words, its login
    shell.

    The supervisor's own connection is not used: what a person does must not hold it up.
    """
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if host.via == SLURM:
        from dtfctl.launchers.slurm import own_environment, step

        line = step(plan.slurm, host, is_terminal, words or (os.environ.get("SHELL", "/bin/sh"), "-l"))
        become(line, own_environment(os.environ))
    from dtfctl.launchers.ssh import login

    # Such an engine gives no way for a person to its nodes.
    target = host.address if host.via in (*BRIDGED, MPI) else host.target
    settings = plan.ssh
    command = [*shlex.split(os.environ.get(SSH_VARIABLE) or settings.command)]
    if is_terminal:
        command.append("-t")
    if settings.accept_new:
        command += ["-o", "StrictHostKeyChecking=accept-new"]
    become((*command, *login(host), target, *([shlex.join(words)] if words else [])), dict(os.environ))


def become(words: tuple[str, ...], environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        raise DtfctlError(f"{words[0]}: {error.strerror}") from None
