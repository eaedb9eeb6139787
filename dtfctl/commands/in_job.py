"""Commands on a cluster that runs in a job of Slurm: typed outside of the job, they are carried out in it.

Such a command becomes the same command on the job's first node, where the supervisor is. Of a job that waits, has
ended or has lost its first node it says so.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from typing import NoReturn

from dtfctl.control.cluster import CLUSTER_VARIABLE, Cluster
from dtfctl.errors import CommandEnded
from dtfctl.launchers import slurm_job
from dtfctl.launchers.slurm_job import Submitted
from dtfctl.supervise import allocation

NOT_RUNNING = CommandEnded.NOT_RUNNING

_WHEN_BEGUN = f"""\
[ -e "$1" ] || {{ echo "error: $2; its cluster has not begun yet" >&2; exit {NOT_RUNNING}; }}
shift 2
exec env "$@"
"""
"""On the first node of a job that shares no file system with this machine."""


def follow(cluster: Cluster, is_end: bool) -> None:
    """A cluster that runs in a job of Slurm is asked there: this process becomes the same command on its first node."""
    noted = slurm_job.noted(cluster.paths.folder)
    job = slurm_job.look_after_end(noted.number) if noted is not None else None
    if noted is None or job is None:
        return
    if not job.state:
        if noted.apart:
            _tell_of_end_elsewhere(cluster, noted, is_end)
        _tell_of_early_end(cluster, job.number, is_end)
        return
    if slurm_job.has_lost_script(job):
        why = f"{cluster.name}: job {job.number} of Slurm has lost its first node, {job.node}, which ran dtfctl"
        raise _without_script(job.number, why, is_end, "dtfctl up, or ")
    if job.state in slurm_job.AT_WORK and (noted.apart or cluster.paths.store.exists()):
        python, state_dir = noted.apart or sys.executable, str(cluster.paths.folder.parent)
        words = (python, "-m", "dtfctl", "--state-dir", state_dir, *_own_arguments())
        is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if noted.apart:
            begun = ("/bin/sh", "-c", _WHEN_BEGUN, "sh", str(cluster.paths.store), f"{cluster.name}: {job}")
            words = (*begun, f"{CLUSTER_VARIABLE}={cluster.name}", *words)
        slurm_job.step_into(job, noted.srun, words, is_terminal, "/" if noted.apart else None)
    if is_end:
        slurm_job.cancel(job.number)
        # Nothing of it has begun, so nothing of it is left to be asked about.
        slurm_job.forget(cluster.paths.folder)
        raise CommandEnded(f"{cluster.name}: {job}; it is cancelled")
    raise CommandEnded(f"{cluster.name}: {job}", NOT_RUNNING)


def _tell_of_end_elsewhere(cluster: Cluster, noted: Submitted, is_end: bool) -> NoReturn:
    """State and logs of a job whose nodes share no file system with this machine stay on its first node."""
    ended = slurm_job.last_seen(noted.number)
    how = "; ".join(filter(None, (ended.words, ended.comment)))
    why = f"{cluster.name}: job {noted.number} of Slurm has ended{f' ({how})' if how else ''}"
    if is_end:
        slurm_job.forget(cluster.paths.folder)
        raise CommandEnded(why)
    look = (noted.apart, "-m", "dtfctl", "--state-dir", str(cluster.paths.folder.parent), "status", cluster.name)
    node = ended.node or "NODE"
    line = shlex.join((*shlex.split(noted.srun), "-N1", "-n1", "-w", node, "--chdir=/", *look))
    where = node if ended.node else "its first node"
    raise CommandEnded(f"{why}; its state and logs are on {where}: {line}", NOT_RUNNING)


def examine_first_node(cluster: Cluster, is_end: bool) -> None:
    """A supervisor that was revived in such a job would end with this command, or hold the nodes after the training."""
    job = allocation.job_of_restarted_node(cluster, os.environ.get("SLURMD_NODENAME", ""))
    if job is not None:
        why = (
            f"{cluster.name}: {job.node}, the first node of job {job.number} of Slurm, was restarted; dtfctl ran there"
        )
        raise _without_script(job.number, why, is_end)


def _without_script(number: str, why: str, is_end: bool, shorter: str = "") -> CommandEnded:
    if is_end:
        # A command that is a step of the job gets the signal of the job's end too.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        slurm_job.cancel(number)
        return CommandEnded(f"{why}; the job is cancelled")
    return CommandEnded(f"{why}; to begin its next run: {shorter}scontrol requeue {number}", NOT_RUNNING)


def _tell_of_early_end(cluster: Cluster, number: str, is_end: bool) -> None:
    """A job that ended before its cluster began has said why in its log."""
    found = cluster.find()
    if found is not None and found[0].plan.slurm.job == number:
        return
    log = slurm_job.log_of(cluster.paths.folder, number)
    lines = slurm_job.last_words(log)
    ended = slurm_job.last_seen(number).words
    why = f"{cluster.name}: job {number} of Slurm ended before the cluster started{f' ({ended})' if ended else ''}"
    words = "\n       ".join([f"{why}; its log: {log}" if lines else f"{why}; see: scontrol show job {number}", *lines])
    if found is None:
        raise CommandEnded(words, 0 if is_end else NOT_RUNNING)
    print(f"warning: {words}", file=sys.stderr)


def _own_arguments() -> list[str]:
    """Those of this command, without the state folder."""
    words = sys.argv[1:]
    if words[:1] == ["--state-dir"]:
        return words[2:]
    return [word for word in words if not word.startswith("--state-dir=")]
